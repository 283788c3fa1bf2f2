package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ended runs the program to its end.
func ended(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, string(out)
	case ok && ctx.Err() == nil:
		return exit.ExitCode(), string(out)
	}
	t.Fatalf("%v: %v: %s", args, err, out)
	return 0, ""
}

func (c *cell) get(path string) (code int, body string) {
	c.t.Helper()
	r, err := http.Get(c.http + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestEverythingIsSetUpAsWritten(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--prefix", "cell2")
	for name, ok := range map[string]func(jetstream.StreamConfig) bool{
		"CELL2_LOG": func(s jetstream.StreamConfig) bool {
			return s.Subjects[0] == "cell2.log.*.*.*" && s.Discard == jetstream.DiscardNew && s.MaxMsgSize == 512<<10 &&
				s.MaxAge == 0 && s.MaxMsgs < 0 && s.MaxBytes > 0 &&
				!s.AllowDirect && !s.AllowRollup && !s.AllowMsgSchedules && !s.AllowMsgTTL
		},
		"CELL2_FEED": func(s jetstream.StreamConfig) bool {
			return s.Subjects[0] == "cell2.feed.>" && s.MaxAge == 72*time.Hour
		},
		"CELL2_TIMERS": func(s jetstream.StreamConfig) bool {
			return s.AllowMsgSchedules && s.Discard == jetstream.DiscardOld
		},
		"CELL2_PARKED": func(s jetstream.StreamConfig) bool { return s.MaxAge == 30*24*time.Hour },
		"KV_cell2_state": func(s jetstream.StreamConfig) bool {
			return s.MaxMsgsPerSubject == 1 && s.AllowMsgTTL && s.SubjectDeleteMarkerTTL > 0 &&
				s.MaxConsumers == 100_000
		},
		"KV_cell2_leases": func(s jetstream.StreamConfig) bool {
			return s.MaxMsgsPerSubject == 1 && s.AllowMsgTTL && s.SubjectDeleteMarkerTTL > 0
		},
	} {
		s, err := c.js.Stream(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cfg := s.CachedInfo().Config
		if !ok(cfg) || cfg.Storage != jetstream.FileStorage || cfg.Replicas != 1 || cfg.Metadata["hf.layout"] == "" {
			t.Errorf("%s: %+v", name, cfg)
		}
	}
	for service, verbs := range map[string]string{"holdfast-ledger": "get list answer reject dismiss stop close " +
		"configure rebuild", "holdfast-reconciler": "sweep report"} {
		m, err := c.nc.Request("$SRV.INFO."+service, nil, patience)
		if err != nil {
			t.Fatal(err)
		}
		var info struct {
			Endpoints []struct{ Name, Subject string }
		}
		decode(t, m.Data, &info)
		for _, verb := range strings.Fields(verbs) {
			found := false
			for _, e := range info.Endpoints {
				found = found || e.Name == verb &&
					e.Subject == "cell2.svc."+strings.TrimPrefix(service, "holdfast-")+"."+verb
			}
			if !found {
				t.Errorf("%s does not offer %s: %s", service, verb, m.Data)
			}
		}
	}
	for path, want := range map[string]string{"/healthz": "", "/readyz": "", "/metrics": "# TYPE"} {
		if code, body := c.get(path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestATargetThatCannotStartReportsWhy(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	nats, data := c.nc.ConnectedUrl(), filepath.Join(c.dir, "data")
	other := t.TempDir()
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]struct {
		args []string
		code int
		text string
	}{
		"the same data": {[]string{"up", "--data", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, 1,
			data},
		"the same port": {[]string{"up", "--data", other, "--listen", strings.TrimPrefix(nats, "nats://"), "--http",
			"127.0.0.1:0"}, 1, "in use"},
		"the same http": {[]string{"up", "--data", other, "--listen", "127.0.0.1:0", "--http",
			strings.TrimPrefix(c.http, "http://")}, 1, "in use"},
		"a foreign folder": {[]string{"up", "--data", foreign, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, 1,
			foreign},
		"an unknown flag":  {[]string{"up", "--nonsense"}, 2, "nonsense"},
		"an unknown verb":  {[]string{"nonsense"}, 2, "nonsense"},
		"a wrong duration": {[]string{"up", "--grace", "soon"}, 2, "grace"},
		"a negative grace": {[]string{"up", "--grace=-1s"}, 2, "grace"},
		"no broker": {[]string{"sessions", "--nats", "nats://127.0.0.1:1", "--timeout", "300ms"}, 3,
			"127.0.0.1:1"},
		"no such session": {[]string{"show", "nope", "--nats", nats}, 1, "nope"},
	} {
		if code, output := ended(t, x.args...); code != x.code || !strings.Contains(output, x.text) {
			t.Errorf("%s: code %d, want %d: %s", what, code, x.code, output)
		}
	}
}

func TestANewerLayoutIsLeftAlone(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	s, err := c.js.Stream(t.Context(), "HF_LOG")
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Metadata["hf.layout"] = "99"
	if _, err := c.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if code, output := ended(t, "ledger", "--nats", c.nc.ConnectedUrl(), "--http", "127.0.0.1:0"); code != 1 ||
		!strings.Contains(output, "99") {
		t.Errorf("%d %s", code, output)
	}
	key := "session.h1.newer"
	if _, err := c.state.Put(t.Context(), key, []byte(`{"v":2,"harness":"h1","session":"newer","seq":1}`)); err != nil {
		t.Fatal(err)
	}
	inc := c.lease("ready", lasting)
	c.mustAppend("newer", inc, 1, fact{"session.opened", "newer", `{"incarnation":"` + inc + `"}`})
	c.begin("s1", inc)
	c.settled("s1")
	e, err := c.state.Get(t.Context(), key)
	var doc map[string]any
	if err != nil || json.Unmarshal(e.Value(), &doc) != nil || doc["v"] != 2.0 {
		t.Errorf("the newer document: %v %v", err, doc)
	}
	if code, reply := c.ask("ledger.get", `{"harness":"h1","session":"newer"}`); code != "503" ||
		reply["reason"] == nil {
		t.Errorf("get: %s %v", code, reply)
	}
}

// The feed has each counted fact in order, and what containment closed.
func TestTheFeed(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc, fact{"tool.started", "c1", `{"call":"c1","turn":"t1","name":"bash"}`},
		prompt("p1", `,"turn":"t1","delivery":"message"`))
	c.mustAppend("s1", inc, 1, fact{"tool.completed", "nope", `{"call":"nope"}`},
		fact{"turn.completed", "t1", `{"turn":"t1"}`})
	sub, err := c.js.OrderedConsumer(t.Context(), "HF_FEED", orderedFrom("hf.feed.>"))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for range 7 {
		m, err := sub.Next()
		if err != nil {
			t.Fatalf("%v after %s", err, got)
		}
		var e map[string]any
		decode(t, m.Data(), &e)
		h := m.Headers()
		if "holdfast."+strings.TrimPrefix(m.Subject(), "hf.feed.") != e["type"] || h.Get("Hf-Harness") != "h1" ||
			h.Get("Hf-Session") != "s1" || h.Get("Content-Type") != "application/cloudevents+json" {
			t.Errorf("%s %v %v", m.Subject(), h, e)
		}
		got += fmt.Sprint(h.Get("Hf-Seq"), " ", strings.TrimPrefix(m.Subject(), "hf.feed."), " ", e["derived"], "\n")
	}
	want := "1 session.opened <nil>\n1 turn.started <nil>\n1 tool.started <nil>\n1 prompt.requested <nil>\n2 " +
		"turn.completed <nil>\n2 tool.failed true\n2 prompt.withdrawn true\n"
	if got != want {
		t.Errorf("fed\n%s\nwant\n%s", got, want)
	}
}
