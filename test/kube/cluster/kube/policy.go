package main

import (
	"flag"
	"fmt"
	"log"
	"os/exec"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Marks of a packet that a policy allows.
const (
	markIn  = "0x100000"
	markOut = "0x200000"
	pace    = 200 * time.Millisecond // between two looks at the pods
)

// enforcePolicies keeps the chain FORWARD of this network namespace at what the NetworkPolicies say about the pods of a
// node. Every packet between pods passes that chain, because each pod has an interface of its own. The kubelet's probes
// come from the node itself and do not pass it: Kubernetes wants them to be let in.
func enforcePolicies() {
	conf, node := flag.String("kubeconfig", "", "file"), flag.String("node", "", "name of the node")
	flag.Parse()
	informers, start := informersOf(*conf)
	pods, policies := informers.Core().V1().Pods().Lister(), informers.Networking().V1().NetworkPolicies().Lister()
	informers.Core().V1().Pods().Informer()
	informers.Networking().V1().NetworkPolicies().Informer()
	start()
	last := ""
	for ; ; time.Sleep(pace) {
		allPods, err := pods.List(labels.Everything())
		if err != nil {
			log.Fatal(err)
		}
		allPolicies, err := policies.List(labels.Everything())
		if err != nil {
			log.Fatal(err)
		}
		rules := tableOf(*node, allPods, allPolicies)
		if rules == last {
			continue
		}
		restore := exec.Command("iptables-restore", "--noflush", "-w")
		restore.Stdin = strings.NewReader(rules)
		if out, err := restore.CombinedOutput(); err != nil {
			log.Fatalf("iptables-restore: %v: %s\n%s", err, out, rules)
		}
		if last == "" {
			out, err := exec.Command("iptables", "-w", "-I", "FORWARD", "1", "-j", "POLICY").CombinedOutput()
			if err != nil {
				log.Fatalf("iptables: %v: %s", err, out)
			}
		}
		last = rules
	}
}

// tableOf returns the chain POLICY as iptables-restore reads it. First every packet that a policy allows gets a mark.
// Then packets without it are refused.
func tableOf(node string, pods []*core.Pod, policies []*networking.NetworkPolicy) string {
	var marks, refusals []string
	for _, pod := range pods {
		if pod.Spec.NodeName != node || pod.Spec.HostNetwork || !isRunning(pod) {
			continue
		}
		ip := pod.Status.PodIP
		for _, p := range policies {
			if !selects(p.Namespace, &p.Spec.PodSelector, pod) {
				continue
			}
			if slices.Contains(p.Spec.PolicyTypes, networking.PolicyTypeIngress) {
				refusals = append(refusals, refusal("-d "+ip, markIn))
				for _, r := range p.Spec.Ingress {
					marks = append(marks, allowed(p.Namespace, "-d "+ip, "-s", markIn, r.From, r.Ports, pods)...)
				}
			}
			if slices.Contains(p.Spec.PolicyTypes, networking.PolicyTypeEgress) {
				refusals = append(refusals, refusal("-s "+ip, markOut))
				for _, r := range p.Spec.Egress {
					marks = append(marks, allowed(p.Namespace, "-s "+ip, "-d", markOut, r.To, r.Ports, pods)...)
				}
			}
		}
	}
	// The list of pods has no order.
	slices.Sort(marks)
	slices.Sort(refusals)
	lines := append(slices.Compact(marks), slices.Compact(refusals)...)
	return "*filter\n:POLICY - [0:0]\n-A POLICY -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN\n" +
		"-A POLICY -j MARK --set-xmark 0x0/0x300000\n" + strings.Join(lines, "") + "COMMIT\n"
}

func isRunning(pod *core.Pod) bool {
	return pod.Status.PodIP != "" && pod.Status.Phase != core.PodSucceeded && pod.Status.Phase != core.PodFailed
}

func selects(namespace string, selector *meta.LabelSelector, pod *core.Pod) bool {
	s, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		log.Fatal(err)
	}
	return pod.Namespace == namespace && s.Matches(labels.Set(pod.Labels))
}

func refusal(pod, mark string) string {
	return fmt.Sprintf("-A POLICY %s -m mark ! --mark %s/%s -j REJECT\n", pod, mark, mark)
}

// allowed returns the lines that mark what one rule of a policy allows to or from a pod. The flag says on which side
// the peers of the rule are.
func allowed(namespace, pod, flag, mark string, peers []networking.NetworkPolicyPeer,
	ports []networking.NetworkPolicyPort, pods []*core.Pod) (lines []string) {
	for _, peer := range peersOf(namespace, flag, peers, pods) {
		for _, port := range portsOf(ports) {
			lines = append(lines, fmt.Sprintf("-A POLICY %s %s %s -j MARK --set-xmark %s/%s\n", pod, peer, port, mark,
				mark))
		}
	}
	return lines
}

// peersOf returns a condition for each peer. Peers by namespace or by address are not known here.
func peersOf(namespace, flag string, peers []networking.NetworkPolicyPeer, pods []*core.Pod) (conditions []string) {
	if len(peers) == 0 {
		return []string{""}
	}
	for _, p := range peers {
		if p.IPBlock != nil || p.NamespaceSelector != nil || p.PodSelector == nil {
			log.Fatalf("a peer in a policy of %s that is no pod of that namespace: not implemented", namespace)
		}
		for _, pod := range pods {
			if isRunning(pod) && selects(namespace, p.PodSelector, pod) {
				conditions = append(conditions, flag+" "+pod.Status.PodIP)
			}
		}
	}
	return conditions
}

// portsOf returns a condition for each port.
func portsOf(ports []networking.NetworkPolicyPort) (conditions []string) {
	if len(ports) == 0 {
		return []string{""}
	}
	for _, p := range ports {
		protocol := "tcp"
		if p.Protocol != nil {
			protocol = strings.ToLower(string(*p.Protocol))
		}
		condition := "-p " + protocol
		if p.Port != nil {
			if p.Port.IntValue() == 0 {
				log.Fatalf("the port %s of a policy has a name: not implemented", p.Port)
			}
			condition += fmt.Sprintf(" --dport %d", p.Port.IntValue())
		}
		conditions = append(conditions, condition)
	}
	return conditions
}
