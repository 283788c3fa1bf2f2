package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// kill kills every process whose arguments begin with these and whose environment has this variable, if it is not
// empty. The container of each is started again by its kubelet.
func (c *cell) kill(variable string, args ...string) {
	c.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		c.t.Fatal(err)
	}
	killed := 0
	for _, dir := range all {
		line, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			// it has ended
			continue
		}
		words := strings.Split(string(line), "\x00")
		if !slices.Equal(words[:min(len(words), len(args))], args) {
			continue
		}
		env, err := os.ReadFile(dir + "/environ")
		if err != nil {
			c.t.Fatal(err)
		}
		if variable != "" && !slices.Contains(strings.Split(string(env), "\x00"), variable) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.t.Fatal(err)
		}
		killed++
	}
	if killed == 0 {
		c.t.Fatalf("no process runs %q with %q", args, variable)
	}
}

// killService kills all processes of a service.
func (c *cell) killService(name string) { c.t.Helper(); c.kill("", "/holdfast", name) }

// killNode kills a node of the broker.
func (c *cell) killNode(name string) {
	c.t.Helper()
	c.kill("SERVER_NAME="+name, "nats-server", "--config")
}

// killBroker kills all nodes of the broker.
func (c *cell) killBroker() { c.t.Helper(); c.kill("", "nats-server", "--config") }
