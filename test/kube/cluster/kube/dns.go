package main

import (
	"context"
	"flag"
	"log"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/clientcmd"
)

const ttl = 2 // seconds that a name server may keep an answer

// names knows the addresses of services and of the pods behind them.
type names struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// informersOf returns the caches of a client of the API server, and what starts those that are in use.
func informersOf(conf string) (factory informers.SharedInformerFactory, start func()) {
	config, err := clientcmd.BuildConfigFromFlags("", conf)
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	factory = informers.NewSharedInformerFactory(client, time.Minute)
	return factory, func() {
		factory.Start(context.Background().Done())
		factory.WaitForCacheSync(context.Background().Done())
	}
}

// serveNames answers questions for the addresses of <service>.<namespace>.svc.cluster.local and, of a service without
// an address, <host>.<service>.<namespace>.svc.cluster.local. Nothing else has a name.
func serveNames() {
	at := flag.String("listen", ":53", "address, UDP")
	conf := flag.String("kubeconfig", "", "file")
	flag.Parse()
	factory, start := informersOf(*conf)
	n := &names{factory.Core().V1().Services().Lister(), factory.Discovery().V1().EndpointSlices().Lister()}
	factory.Core().V1().Services().Informer()
	factory.Discovery().V1().EndpointSlices().Informer()
	start()
	socket, err := net.ListenPacket("udp", *at)
	if err != nil {
		log.Fatal(err)
	}
	question := make([]byte, 4096)
	for {
		size, from, err := socket.ReadFrom(question)
		if err != nil {
			log.Fatal(err)
		}
		answer, err := n.answer(question[:size])
		if err != nil {
			log.Printf("a question of %v: %v", from, err)
			continue
		}
		if _, err := socket.WriteTo(answer, from); err != nil {
			log.Printf("an answer for %v: %v", from, err)
		}
	}
}

// answer returns the message that answers a message.
func (n *names) answer(message []byte) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return nil, err
	}
	question, err := p.Question()
	if err != nil {
		return nil, err
	}
	addresses, known := n.resolve(question.Name.String())
	reply := dnsmessage.Message{Questions: []dnsmessage.Question{question}, Header: dnsmessage.Header{ID: header.ID,
		Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true}}
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, address := range addresses {
		if question.Type == dnsmessage.TypeA {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: ttl},
				Body:   &dnsmessage.AResource{A: [4]byte(address.To4())}})
		}
	}
	return reply.Pack()
}

// resolve returns the addresses of a name, and whether there is such a name.
func (n *names) resolve(name string) (addresses []net.IP, known bool) {
	rest, found := strings.CutSuffix(strings.ToLower(name), ".svc.cluster.local.")
	parts := strings.Split(rest, ".")
	if !found || len(parts) < 2 || len(parts) > 3 {
		return nil, false
	}
	host := ""
	if len(parts) == 3 {
		host, parts = parts[0], parts[1:]
	}
	service, err := n.services.Services(parts[1]).Get(parts[0])
	if err != nil {
		return nil, false
	}
	if service.Spec.ClusterIP != core.ClusterIPNone && host == "" {
		return []net.IP{net.ParseIP(service.Spec.ClusterIP)}, true
	}
	all, err := n.slices.EndpointSlices(parts[1]).List(labels.SelectorFromSet(
		labels.Set{discovery.LabelServiceName: parts[0]}))
	if err != nil {
		return nil, false
	}
	for _, s := range all {
		for _, e := range s.Endpoints {
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready || service.Spec.PublishNotReadyAddresses
			if !ready || host != "" && (e.Hostname == nil || *e.Hostname != host) {
				continue
			}
			for _, a := range e.Addresses {
				addresses = append(addresses, net.ParseIP(a))
			}
		}
	}
	return addresses, len(addresses) > 0
}
