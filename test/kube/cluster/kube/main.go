// Kube is a Kubernetes in one program, built from the Go module proxy. Its name, or its first argument, is the part
// that runs: etcd, apiserver, manager, scheduler, kubelet, proxy, kubectl, dns, policies or image.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// parts are the programs of Kubernetes.
var parts = map[string]func() *cobra.Command{
	"apiserver": apiserver.NewAPIServerCommand,
	"manager":   manager.NewControllerManagerCommand,
	"scheduler": func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":   func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"proxy":     proxy.NewProxyCommand,
	"kubectl":   kubectl.NewDefaultKubectlCommand,
}

// ours are the programs that a cluster needs beside them.
var ours = map[string]func(){
	"etcd":     func() { etcdmain.Main(os.Args) },
	"dns":      serveNames,
	"policies": enforcePolicies,
	"image":    writeImage,
}

func main() {
	part := filepath.Base(os.Args[0])
	if part == "kube" && len(os.Args) > 1 {
		part = os.Args[1]
		os.Args = os.Args[1:]
	}
	if run := ours[part]; run != nil {
		run()
		return
	}
	command := parts[part]
	if command == nil {
		fmt.Fprintf(os.Stderr, "kube has no part %q\n", part)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
