package cell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// The kubelet's times, divided by 20.
const (
	faster        = 20
	backOffMin    = 10 * time.Second / faster // before the second restart; doubled for each further one
	backOffMax    = 5 * time.Minute / faster
	backOffForget = 10 * time.Minute / faster // a container that ran this long is restarted at once
	failuresMax   = 3                         // for a probe that does not set it
)

// container has the fields of a container of the manifests that a process needs.
type container struct {
	Name    string     `yaml:"name"`
	Command []string   `yaml:"command"`
	Args    []string   `yaml:"args"`
	Env     []variable `yaml:"env"`
	EnvFrom []struct {
		ConfigMapRef struct {
			Name string `yaml:"name"`
		} `yaml:"configMapRef"`
	} `yaml:"envFrom"`
	Resources struct {
		Limits struct {
			Memory string `yaml:"memory"`
		} `yaml:"limits"`
	} `yaml:"resources"`
	Lifecycle struct {
		PreStop struct {
			Exec command `yaml:"exec"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	StartupProbe   *check `yaml:"startupProbe"`
	LivenessProbe  *check `yaml:"livenessProbe"`
	ReadinessProbe *check `yaml:"readinessProbe"`
}

type variable struct {
	Name      string `yaml:"name"`
	Value     string `yaml:"value"`
	ValueFrom struct {
		FieldRef struct {
			FieldPath string `yaml:"fieldPath"`
		} `yaml:"fieldRef"`
	} `yaml:"valueFrom"`
}

type command struct {
	Command []string `yaml:"command"`
}

// inquiry is what a probe asks over HTTP.
type inquiry struct {
	Path    string     `yaml:"path"`
	Port    string     `yaml:"port"` // its name
	Scheme  string     `yaml:"scheme"`
	Headers []variable `yaml:"httpHeaders"`
}

// check is a probe: it runs a command, or asks over HTTP.
type check struct {
	Exec             command `yaml:"exec"`
	HTTPGet          inquiry `yaml:"httpGet"`
	PeriodSeconds    int     `yaml:"periodSeconds"`
	FailureThreshold int     `yaml:"failureThreshold"`
}

func (c *check) every() time.Duration { return time.Duration(c.PeriodSeconds) * time.Second / faster }

func (c *check) failures() int {
	if c.FailureThreshold == 0 {
		return failuresMax
	}
	return c.FailureThreshold
}

// spec is the pod of a manifest.
type spec struct {
	Grace      int         `yaml:"terminationGracePeriodSeconds"`
	Containers []container `yaml:"containers"`
}

// podOf reads the pod of the first object with a pod in a file.
func podOf(t *testing.T, file string) spec {
	t.Helper()
	for dec := yaml.NewDecoder(strings.NewReader(read(t, file))); ; {
		var object struct {
			Spec struct {
				Template struct {
					Spec spec `yaml:"spec"`
				} `yaml:"template"`
			} `yaml:"spec"`
		}
		if err := dec.Decode(&object); err != nil {
			t.Fatalf("%s: no pod: %v", file, err)
		}
		if p := object.Spec.Template.Spec; len(p.Containers) == 1 {
			return p
		}
	}
}

// environment returns the environment that the kubelet gives a container of a pod.
func (c *container) environment(t *testing.T, pod string) []string {
	t.Helper()
	values := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef.Name == "" {
			continue
		}
		var shared struct {
			Data map[string]string `yaml:"data"`
		}
		if err := yaml.Unmarshal([]byte(read(t, "base/config.yaml")), &shared); err != nil {
			t.Fatal(err)
		}
		values = shared.Data
	}
	for _, e := range c.Env {
		switch {
		case e.ValueFrom.FieldRef.FieldPath == "metadata.name":
			values[e.Name] = pod
		case e.Value != "":
			text := strings.NewReplacer("$(", "${", ")", "}").Replace(e.Value)
			values[e.Name] = os.Expand(text, func(name string) string { return values[name] })
		}
	}
	var all []string
	for name, value := range values {
		all = append(all, name+"="+value)
	}
	return all
}

// pod is a process that the test keeps running as a kubelet does: it starts the process again when it ends, and kills
// and restarts it when its probes fail.
type pod struct {
	t       *testing.T
	name    string
	probes  container // its probes and its hook
	grace   time.Duration
	command func(args ...string) *exec.Cmd // makes a command in the pod's place
	args    []string
	env     []string
	settle  func(string) string // replaces the addresses of probes
	log     string

	halting sync.Once
	ended   chan struct{} // closed by halt
	over    chan struct{} // closed when it has ended for good

	mu       sync.Mutex
	cmd      *exec.Cmd
	gone     chan struct{} // closed when cmd has ended
	started  bool          // the startup probe has succeeded since
	ending   bool          // cmd was asked to end
	frozen   bool
	planned  bool // the end of cmd is no failure
	restarts []string
}

// start runs the pod until the test ends.
func (p *pod) start() {
	p.log = filepath.Join(p.t.TempDir(), p.name+".log")
	p.ended, p.over = make(chan struct{}), make(chan struct{})
	go p.keep()
	p.t.Cleanup(func() { p.halt(syscall.SIGKILL) })
}

// halt ends the pod for good. A further call does nothing.
func (p *pod) halt(s syscall.Signal) {
	p.halting.Do(func() {
		close(p.ended)
		p.thaw()
		p.end(s, true)
		<-p.over
	})
}

// keep starts the process again each time it has ended.
func (p *pod) keep() {
	defer close(p.over)
	for failures := 0; ; {
		began := time.Now()
		gone := p.launch()
		if gone == nil {
			return
		}
		p.watch(gone)
		p.mu.Lock()
		planned := p.planned
		p.mu.Unlock()
		if planned || time.Since(began) > backOffForget {
			failures = 0
			continue
		}
		delay := time.Duration(0)
		if failures > 0 {
			delay = min(backOffMin<<(failures-1), backOffMax)
		}
		failures++
		select {
		case <-p.ended:
			return
		case <-time.After(delay):
		}
	}
}

// launch starts the process and returns a channel that is closed when it has ended; nil after halt.
func (p *pod) launch() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return nil
	default:
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Error(err)
		return nil
	}
	p.cmd, p.gone, p.started, p.ending, p.planned = p.command(p.args...), make(chan struct{}), false, false, false
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Error(err, log.Close())
		return nil
	}
	cmd, gone := p.cmd, p.gone
	go func() {
		// kill and the test read the outcome
		if err := cmd.Wait(); err != nil {
			fmt.Fprintf(log, "--- %s ended: %v\n", p.name, err)
		}
		if err := log.Close(); err != nil {
			p.t.Error(err)
		}
		close(gone)
	}()
	return gone
}

// watch runs the probes until the process has ended.
func (p *pod) watch(gone chan struct{}) {
	probe, failed := p.probes.StartupProbe, 0
	if probe == nil {
		probe = p.probes.LivenessProbe
	}
	for {
		if probe == nil {
			<-gone
			return
		}
		select {
		case <-gone:
			return
		case <-time.After(probe.every()):
		}
		p.mu.Lock()
		frozen := p.frozen
		p.mu.Unlock()
		// for a shorter time than a kill takes
		if frozen {
			failed = 0
			continue
		}
		_, err := p.ask(probe.Exec.Command)
		if err == nil {
			failed = 0
			p.mu.Lock()
			p.started = true
			p.mu.Unlock()
			probe = p.probes.LivenessProbe
			continue
		}
		failed++
		if failed >= probe.failures() {
			p.mu.Lock()
			p.restarts, p.ending = append(p.restarts, err.Error()), true
			p.mu.Unlock()
			p.end(syscall.SIGTERM, false)
			<-gone
			return
		}
	}
}

// ask runs a probe of the manifest where the process runs. It returns the answer, and an error unless the answer is a
// success.
func (p *pod) ask(probe []string) (string, error) {
	cmd := p.command(p.here(probe)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(probe, " "), err, out)
	}
	return string(out), nil
}

// end ends the process, with SIGTERM and its hook first and SIGKILL after its grace, and returns when it has ended. The
// next process follows unless the pod is halted: at once if this end is planned.
func (p *pod) end(s syscall.Signal, planned bool) {
	p.mu.Lock()
	cmd, gone := p.cmd, p.gone
	p.planned, p.ending = planned, true
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	hook := p.probes.Lifecycle.PreStop.Exec.Command
	// the short form has no time for it
	if s == syscall.SIGTERM && len(hook) > 0 && (planned || long()) {
		if out, err := exec.Command(hook[0], p.here(hook[1:])...).CombinedOutput(); err != nil {
			p.t.Logf("%s: before its end: %v: %s", p.name, err, out)
		}
	}
	// an error means that it has ended
	_ = cmd.Process.Signal(s)
	select {
	case <-gone:
		return
	case <-time.After(p.grace):
	}
	p.t.Errorf("%s does not end within %s", p.name, p.grace)
	// an error means that it has ended
	_ = cmd.Process.Signal(syscall.SIGKILL)
	<-gone
}

// here returns a command of the manifest with the paths and addresses of this machine.
func (p *pod) here(args []string) []string {
	var all []string
	for _, a := range args {
		all = append(all, p.settle(a))
	}
	return all
}

// freeze is SIGSTOP.
func (p *pod) freeze() { p.pause(true, syscall.SIGSTOP) }

// thaw is SIGCONT.
func (p *pod) thaw() { p.pause(false, syscall.SIGCONT) }

func (p *pod) pause(frozen bool, s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
	if p.cmd != nil {
		// an error means that it has ended
		_ = p.cmd.Process.Signal(s)
	}
}

// ready reports whether the process runs and its startup probe has succeeded. A process that ends is not ready, and the
// one after it is ready when its own probe has succeeded.
func (p *pod) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started || p.ending {
		return false
	}
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// TestAPodThatEndsIsNotReady: the end of a process is noticed when the probe that runs meanwhile returns. Until then
// the pod must not count as ready: the next node would be ended while this one does not run.
func TestAPodThatEndsIsNotReady(t *testing.T) {
	for name, end := range map[string]func(*pod){
		"planned": func(p *pod) { p.end(syscall.SIGKILL, true) },
		"asked to end, while it still runs": func(p *pod) {
			p.mu.Lock()
			cmd, gone := p.cmd, p.gone
			p.mu.Unlock()
			ended := make(chan struct{})
			go func() { defer close(ended); p.end(syscall.SIGTERM, true) }()
			natstest.Until(t, "the pod not to be ready", func() bool { return !p.ready() })
			select {
			case <-gone:
				t.Error("it was ready until it had ended")
			default:
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-ended
		},
		"by itself": func(p *pod) {
			p.mu.Lock()
			cmd, gone := p.cmd, p.gone
			p.mu.Unlock()
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-gone
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, returns := filepath.Join(t.TempDir(), "asked"), filepath.Join(t.TempDir(), "returns")
			succeeds := check{Exec: command{[]string{"true"}}, PeriodSeconds: 1}
			waits := check{Exec: command{[]string{"sh", "-c",
				"touch " + asked + "; until test -e " + returns + "; do sleep 0.01; done"}}, PeriodSeconds: 1}
			p := &pod{t: t, name: "a pod", grace: patience / 2,
				args:    []string{"sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"},
				probes:  container{StartupProbe: &succeeds, LivenessProbe: &waits},
				command: func(args ...string) *exec.Cmd { return exec.Command(args[0], args[1:]...) },
				settle:  func(s string) string { return s }}
			p.start()
			natstest.Until(t, "a probe", func() bool { _, err := os.Stat(asked); return err == nil })
			if !p.ready() {
				t.Error("a process whose startup probe has succeeded is not ready")
			}
			end(p)
			if p.ready() {
				t.Error("a process that has ended is ready")
			}
			if err := os.WriteFile(returns, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			natstest.Until(t, "the next process", p.ready)
		})
	}
}

// killed returns the reasons for which its probes had it killed.
func (p *pod) killed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// tail returns the end of its log, without a line for each request.
func (p *pod) tail() string {
	body, err := os.ReadFile(p.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(body), "\n"), func(line string) bool {
		return strings.Contains(line, `"message":"request"`)
	})
	text := strings.Join(lines, "")
	return text[max(0, len(text)-16<<10):]
}
