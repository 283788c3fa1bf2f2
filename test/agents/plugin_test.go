//go:build agents

package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/child"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

// plugged is a world whose OpenCode has the plugin. Its requests pass through the test.
type plugged struct {
	*world
	bridge *child.Process
	env    []string // of the bridge
	args   []string
	asked  chan string   // the call of each request
	pass   chan struct{} // closed: requests pass
}

// drivesAll is all that a bridge can drive.
const drivesAll = "queue,retry,compaction"

// newPlugged starts OpenCode with the plugin, and a bridge that follows it through the address front.
func newPlugged(t *testing.T, front func(w *world) string, args ...string) *plugged {
	t.Helper()
	p := &plugged{world: newServer(t), asked: make(chan string, 100), pass: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.ok(err)
	address := l.Addr().String()
	p.ok(l.Close())
	source, err := exec.Command(binary, "bridge", "opencode", "plugin").Output()
	p.ok(err)
	// in a folder of OpenCode, it would fetch packages with npm
	file := filepath.Join(t.TempDir(), "holdfast.js")
	p.ok(os.WriteFile(file, source, 0o600))
	p.configures(`"plugin": [` + strconv.Quote("file://"+file) + `],`)
	p.world.env = []string{"HOLDFAST_PLUGIN_URL=" + p.between("http://"+address), "HOLDFAST_PLUGIN_TOKEN=secret"}
	if slices.Contains(args, drivesAll) {
		p.world.env = append(p.world.env, "HOLDFAST_PLUGIN_QUEUE=1", "OPENCODE_DISABLE_AUTOCOMPACT=1")
	}
	p.starts()
	p.env, p.args = []string{"HOLDFAST_PLUGIN_TOKEN=secret"}, append([]string{"--plugin", address}, args...)
	p.bridge = p.bridges(front(p.world), p.env, p.args...)
	return p
}

// direct is the address of the server itself.
func direct(w *world) string { return w.url() }

// between passes the requests of the plugin on, once it may.
func (p *plugged) between(address string) string {
	to, err := url.Parse(address)
	p.ok(err)
	on := httputil.NewSingleHostReverseProxy(to)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var q struct {
			Call string `json:"call"`
		}
		if json.Unmarshal(body, &q) == nil && q.Call != "" {
			select {
			case p.asked <- q.Call:
			default:
			}
		}
		select {
		case <-p.pass:
		case <-req.Context().Done():
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		on.ServeHTTP(w, req)
	}))
	p.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

func (p *plugged) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.dir, name))
	return err == nil
}

// TestPluginStored: a command that shows its own session to itself finds itself in the log, although the bridge did
// nothing when OpenCode began with it. Killed then, OpenCode leaves a call that the log has.
func TestPluginStored(t *testing.T) {
	p := newPlugged(t, direct)
	id := p.opens("stored")
	p.until(id, "the session is open", func(*session.State) bool { return true })
	p.model.Script("stored", bash(fmt.Sprintf("%s show opencode/%s --nats %s >seen; touch ran; %s", binary, id, p.nats,
		waits)), mockmodel.Text("Done."))
	p.bridge.Stop()
	p.postMessage(id, "Please. <<stored>>")
	call := <-p.asked
	if p.exists("ran") {
		t.Error("the command ran before the bridge was asked")
	}
	close(p.pass)
	p.bridge.Continue()
	natstest.Until(t, "the command runs", func() bool { return p.exists("ran") })
	seen, err := os.ReadFile(filepath.Join(p.dir, "seen"))
	p.ok(err)
	if !strings.Contains(string(seen), "running") || !strings.Contains(string(seen), "bash") {
		t.Errorf("the command was shown\n%s", seen)
	}
	p.server.Kill()
	p.starts()
	s := p.until(id, "the turn is interrupted", interrupted)
	if e, ok := s.Ended(session.EntityTool, call); !ok {
		t.Errorf("the log has %+v of the call", e)
	}
	p.types("resume", "opencode/"+id)
	p.until(id, "the turn completed", completed)
}

// door is an address that leads to one server after the other.
type door struct {
	mu    sync.Mutex
	to    string
	conns []net.Conn
}

func (d *door) accept(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		out, err := net.Dial("tcp", d.to)
		if err == nil {
			d.conns = append(d.conns, in, out)
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		} else {
			_ = in.Close()
		}
		d.mu.Unlock()
	}
}

// leads has the door lead to another server: all connections to the old one end.
func (d *door) leads(to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = to
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
}

// TestPluginFenced: while a process of OpenCode waits for the bridge, another one takes its place. The old one lives,
// and does not run the call.
func TestPluginFenced(t *testing.T) {
	d := &door{}
	p := newPlugged(t, func(w *world) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		w.ok(err)
		w.Cleanup(func() { _ = l.Close(); d.leads("") })
		d.leads(strings.TrimPrefix(w.url(), "http://"))
		go d.accept(l)
		return "http://" + l.Addr().String()
	})
	p.model.Script("fenced", bash("touch ran"), mockmodel.Text("Done."))
	id := p.begins("fenced")
	<-p.asked
	first := p.url()
	p.port = p.freePort()
	// the next process, on the same store
	p.starts()
	d.leads(strings.TrimPrefix(p.url(), "http://"))
	p.until(id, "the turn is interrupted", interrupted)
	close(p.pass)
	natstest.Until(t, "the model of the old process has the result of its call", func() bool {
		return len(p.model.Requests("fenced")) == 2
	})
	// both processes have one store: an answer that the old one stores during the resume would leave nothing to run
	natstest.Until(t, "the old process has stored its answer", func() bool {
		return p.count(id, "assistant") == 2 && len(p.open(id)) == 0
	})
	if p.exists("ran") {
		t.Errorf("the command ran in the process at %s, which was replaced", first)
	}
	p.types("resume", "opencode/"+id)
	p.until(id, "the turn completed", completed)
}

// TestDriveQueue: messages that a person types in OpenCode while it runs wait in the queue, and each one has a turn and
// an answer of its own. Killed in the first turn, OpenCode forgets those that wait: the queue does not. The bridge
// drives retries and compactions, too.
func TestDriveQueue(t *testing.T) {
	p := newPlugged(t, direct, "--drive", drivesAll)
	close(p.pass)
	p.model.Script("first", bash(waits), mockmodel.Text("Done."), bash(waits), mockmodel.Text("Done."))
	for _, name := range []string{"second", "third", "fourth"} {
		p.model.Script(name, mockmodel.Text("Done with the "+name+"."))
	}
	id := p.begins("first")
	p.until(id, "a command runs", func(s *session.State) bool { return len(s.Tools) == 1 })
	for n, name := range []string{"second", "third"} {
		p.postMessage(id, "Please. <<"+name+">>")
		p.until(id, name+" waits", func(s *session.State) bool { return len(s.Queue) == n+1 })
	}
	if n := p.count(id, "user"); n != 1 {
		t.Errorf("OpenCode has %d messages of the person while the first one is answered", n)
	}
	p.write("go")
	p.until(id, "all are answered", func(s *session.State) bool {
		return completed(s) && len(s.Queue) == 0 && len(p.model.Requests("third")) > 0
	})
	if u, a := p.count(id, "user"), p.count(id, "assistant"); u != 3 || a != 4 {
		t.Errorf("%d messages of the person, %d of the model", u, a)
	}
	p.ok(os.Remove(filepath.Join(p.dir, "go")))
	p.postMessage(id, "Again. <<first>>")
	p.until(id, "a command runs again", func(s *session.State) bool { return len(s.Tools) == 1 })
	p.postMessage(id, "Please. <<fourth>>")
	p.until(id, "the fourth waits", func(s *session.State) bool { return len(s.Queue) == 1 })
	p.server.Kill()
	p.starts()
	p.until(id, "the turn is interrupted, and the fourth waits", func(s *session.State) bool {
		return interrupted(s) && len(s.Queue) == 1
	})
	p.types("resume", "opencode/"+id)
	p.until(id, "the fourth is answered", func(s *session.State) bool {
		return completed(s) && len(s.Queue) == 0 && len(p.model.Requests("fourth")) > 0
	})
	for _, name := range []string{"second", "third", "fourth"} {
		if n := len(p.model.Requests(name)); n != 1 {
			t.Errorf("the model was asked %d times for the %s", n, name)
		}
	}
}
