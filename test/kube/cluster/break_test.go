package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// kill kills every process of the cell that runs this program with these arguments, and returns how many there were.
// The container of each is started again by its kubelet.
func (c *cell) kill(program string, args ...string) (killed int) {
	c.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil {
			// it has ended
			continue
		}
		words := strings.Split(string(line), "\x00")
		if words[0] != program || !slices.Equal(words[1:min(len(words), 1+len(args))], args) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.t.Fatal(err)
		}
		killed++
	}
	if killed == 0 {
		c.t.Fatalf("no process runs %s %s", program, args)
	}
	return killed
}

// killService kills all processes of a service.
func (c *cell) killService(name string) int { c.t.Helper(); return c.kill("/holdfast", name) }

// killBroker kills all nodes of the broker.
func (c *cell) killBroker() int {
	c.t.Helper()
	return c.kill("nats-server", "--config", "/etc/nats/nats.conf")
}
