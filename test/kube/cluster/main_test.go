// Package cluster runs Holdfast on a real Kubernetes: etcd, the API server, the controllers, the scheduler, and nodes
// with kubelet, kube-proxy, containerd and runc, all on this machine. Tests install Holdfast by the commands of the
// guide, and break it under load.
//
// Everything runs in PID, mount and network namespaces of its own; a node has further ones. The end of their first
// process ends all others, and mounts, routes and interfaces end with the namespaces. Control groups and files are
// removed after it.
package cluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const (
	repository = "../../.."
	guides     = repository + "/docs/guide/"
)

// Variables of processes of this binary.
const (
	roleVariable   = "HOLDFAST_KUBE_ROLE"   // first, tests or node; the process that `go test` starts has none
	folderVariable = "HOLDFAST_KUBE_FOLDER" // of programs, images and clusters
)

// namespaces of the tests.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET

// folder has everything that is made for the tests. Its name is the name of the control groups, too.
var folder string

func TestMain(m *testing.M) {
	flag.Parse()
	folder = os.Getenv(folderVariable)
	status, err := 0, error(nil)
	switch os.Getenv(roleVariable) {
	case "":
		status, err = outside()
	case "first":
		status, err = first()
	case "tests":
		status = m.Run()
	case "node":
		err = runNode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// outside builds everything, runs the tests in namespaces, and looks for what they have left behind.
func outside() (status int, err error) {
	if err := permitted(); err != nil {
		fmt.Printf("NOT RUN: test/kube/cluster needs root, control groups of version 1, and the Debian packages "+
			"containerd, runc, containernetworking-plugins, iptables, iproute2 and busybox-static:\n%v\n", err)
		return 0, nil
	}
	if folder, err = os.MkdirTemp("", "holdfast-kube"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, leftBehind(), os.RemoveAll(folder)) }()
	if err := build(); err != nil {
		return 1, err
	}
	// The first process is killed when the thread that started it ends.
	runtime.LockOSThread()
	inside := exec.Command(os.Args[0], os.Args[1:]...)
	inside.Env = append(os.Environ(), roleVariable+"=first", folderVariable+"="+folder)
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true,
		Cloneflags: namespaces}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	if err := inside.Start(); err != nil {
		return 1, err
	}
	go func() {
		for range interrupted {
			// it may have ended
			_ = inside.Process.Kill()
		}
	}()
	err = inside.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// permitted returns nil if this machine has what a cluster needs.
func permitted() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("not root"))
	}
	if _, err := hierarchies(); err != nil {
		errs = append(errs, err)
	}
	for _, name := range []string{"containerd", "ctr", "runc", "iptables-restore", "ip"} {
		_, err := exec.LookPath(name)
		errs = append(errs, err)
	}
	for _, name := range []string{"ptp", "host-local", "loopback"} {
		_, err := os.Stat(filepath.Join(plugins, name))
		errs = append(errs, err)
	}
	_, err := busybox()
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	return errors.Join(append(errs, err, probe.Run())...)
}

// first is the first process of the PID namespace. It waits for every process that has lost its parent, and ends with
// the tests; the kernel then kills what is left.
func first() (int, error) {
	if err := prepare(); err != nil {
		return 1, err
	}
	if err := os.Setenv(roleVariable, "tests"); err != nil {
		return 1, err
	}
	tests, err := os.StartProcess(os.Args[0], os.Args, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return 1, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, err
		case pid == tests.Pid && status.Exited():
			return status.ExitStatus(), nil
		case pid == tests.Pid && status.Signaled():
			return 1, fmt.Errorf("the tests ended by %v", status.Signal())
		}
	}
}

// prepare gives the namespaces their own /proc, their name server, and files in place of the kernel's settings that a
// kubelet changes for the whole machine.
func prepare() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("a mount namespace: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	conf, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	if err := cover(conf, "nameserver "+hub+"\nsearch svc.cluster.local cluster.local\n"); err != nil {
		return err
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			return err
		}
		if err := cover("/proc/sys/"+name, string(value)); err != nil {
			return err
		}
	}
	return nil
}

// cover puts a file with this text in the place of another one, within the mount namespace.
func cover(path, text string) error {
	file := filepath.Join(folder, "covers", strings.ReplaceAll(path, "/", "."))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if err := syscall.Mount(file, path, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	return nil
}

// leftBehind removes the control groups of the tests, and returns an error for each process and mount that is left.
func leftBehind() error {
	errs := []error{removeGroups()}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), folder) {
		errs = append(errs, fmt.Errorf("a mount of %s is left", folder))
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, command := range commands {
		line, err := os.ReadFile(command)
		if err == nil && strings.Contains(string(line), folder) {
			errs = append(errs, fmt.Errorf("a process is left: %s: %q", command, line))
		}
	}
	return errors.Join(errs...)
}
