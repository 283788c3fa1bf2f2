package cluster

import (
	"fmt"
	"strings"
)

// probe is a pod without labels. It has the tools of the broker's image, and runs as `restricted` requires.
const probe = `apiVersion: v1
kind: Pod
metadata: {name: probe, namespace: %s}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: probe
      image: %s
      command: [sleep, "3600"]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// isFencedIn checks who reaches whom under the network policies, and that a pod with more rights is refused.
func (c *cell) isFencedIn() {
	c.t.Helper()
	image := c.do("kubectl -n holdfast get pod nats-0 -o jsonpath={.spec.containers[0].image}")
	out, err := c.at("kubectl -n holdfast run bad --image=" + image)
	if err == nil || !strings.Contains(out, "PodSecurity") {
		c.t.Errorf("a pod that does not run as `restricted` requires: %v: %s", err, out)
	}
	for _, namespace := range []string{"holdfast", "default"} {
		c.write("probe.yaml", fmt.Sprintf(probe, namespace, image))
		c.do("kubectl apply -f probe.yaml\n" +
			"kubectl -n " + namespace + " wait --for=condition=Ready pod/probe --timeout=60s")
	}
	ip := func(pod string) string {
		return strings.Fields(c.do("kubectl -n holdfast get pods -o jsonpath={.items[*].status.podIP} " + pod))[0]
	}
	broker, ledger := ip("-l app.kubernetes.io/name=nats"), ip("-l app.kubernetes.io/component=ledger")
	for _, p := range []struct {
		namespace, pod, ip string
		port               int
		want               bool
	}{
		{"holdfast", "probe", broker, 4222, false},
		{"holdfast", "probe", broker, 6222, false},
		{"holdfast", "probe", ledger, 8480, false},
		{"holdfast", "probe", hub, 6443, false},
		{"default", "probe", broker, 4222, true},
		{"default", "probe", broker, 6222, false},
		{"default", "probe", broker, 8222, false},
		{"default", "probe", ledger, 8480, true},
		{"default", "probe", hub, 6443, true},
		{"holdfast", "nats-0", ip("-l statefulset.kubernetes.io/pod-name=nats-1"), 6222, true},
		{"holdfast", "nats-0", ledger, 8480, false},
		{"holdfast", "nats-0", hub, 6443, false},
	} {
		out, err := c.at(fmt.Sprintf("kubectl -n %s exec %s -- nc -w 3 %s %d", p.namespace, p.pod, p.ip, p.port))
		if reached := err == nil; reached != p.want {
			c.t.Errorf("%s of %s reaches %s:%d: %v, want %v: %s", p.pod, p.namespace, p.ip, p.port, reached, p.want,
				out)
		}
	}
	for _, namespace := range []string{"holdfast", "default"} {
		c.do("kubectl -n " + namespace + " delete pod probe --grace-period=0 --force")
	}
}
