package health

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// start runs a server until the test ends, and checks that it ends without an error.
func start(t *testing.T) *Server {
	t.Helper()
	s, err := Listen(t.Context(), "127.0.0.1:0", "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func consumer(pending uint64, active string, err error) []Consumer {
	return []Consumer{{Name: "c", Lag: func(context.Context) (uint64, string, error) { return pending, active, err }}}
}

func yes() bool { return true }

func TestReadyOnlyWhenEveryPartIs(t *testing.T) {
	good := Part{Name: "good", Connected: yes, Consumers: consumer(0, "", nil), ReadyLagMax: 10}
	for name, c := range map[string]struct {
		part   Part
		code   int
		reason string
	}{
		"nothing to consume": {Part{Name: "p", Connected: yes}, 200, ""},
		"idle, without an active process": {
			Part{Name: "p", Connected: yes, Consumers: consumer(0, "", nil), ReadyLagMax: 10}, 200, ""},
		"at the limit": {Part{Name: "p", Connected: yes, Consumers: consumer(10, "x", nil),
			ReadyLagMax: 10}, 200, ""},
		"over the limit": {Part{Name: "p", Connected: yes, Consumers: consumer(11, "x", nil), ReadyLagMax: 10}, 503,
			"consumer c: messages that wait: 11, more than 10"},
		"messages without an active process": {
			Part{Name: "p", Connected: yes, Consumers: consumer(1, "", nil), ReadyLagMax: 10}, 503,
			"consumer c: no process is active; messages that wait: 1"},
		"no such consumer": {Part{
			Name: "p", Connected: yes, Consumers: consumer(0, "", errors.New("not found")), ReadyLagMax: 10}, 503,
			"consumer c: not found"},
		"not connected": {Part{Name: "p", Connected: func() bool { return false },
			Consumers: consumer(0, "x", nil)}, 503, "not connected to the broker"},
		"the second of two consumers": {
			Part{Name: "p", Connected: yes, Consumers: append(consumer(0, "x", nil), consumer(5, "x", nil)...),
				ReadyLagMax: 1}, 503, "consumer c: messages that wait: 5, more than 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.Add(good)
			s.Add(c.part)
			s.Started()
			code, body := get(t, s.URL()+"/readyz")
			if code != c.code {
				t.Errorf("status %d, want %d: %s", code, c.code, body)
			}
			var rep Report
			if err := json.Unmarshal([]byte(body), &rep); err != nil {
				t.Fatal(err)
			}
			if len(rep.Parts) != 2 || !rep.Parts[0].OK || rep.Parts[1].Reason != c.reason || rep.OK != (c.code == 200) {
				t.Errorf("%+v, want reason %q", rep, c.reason)
			}
			if code, _ := get(t, s.URL()+"/healthz"); code != 200 {
				t.Errorf("alive is status %d", code)
			}
		})
	}
}

func TestNotReadyBeforeAllPartsAreThere(t *testing.T) {
	s := start(t)
	s.Add(Part{Name: "p", Connected: yes})
	if code, body := get(t, s.URL()+"/readyz"); code != 503 {
		t.Errorf("status %d while starting: %s", code, body)
	}
	s.Started()
	if code, body := get(t, s.URL()+"/readyz"); code != 200 {
		t.Errorf("status %d when started: %s", code, body)
	}
}

func TestMetrics(t *testing.T) {
	s := start(t)
	var done atomic.Uint64
	done.Store(41)
	s.Add(Part{Name: "ledger", Connected: yes, Consumers: consumer(7, "x", nil), ReadyLagMax: 10,
		Counts: func() map[string]uint64 { return map[string]uint64{"commits": done.Add(1)} }})
	s.Add(Part{Name: "retry", Connected: yes, Consumers: consumer(0, "", errors.New("not found"))})
	s.Started()
	code, body := get(t, s.URL()+"/metrics")
	if code != 200 {
		t.Fatalf("status %d: %s", code, body)
	}
	for _, want := range []string{
		`holdfast_info{version="1.2.3"} 1`,
		`holdfast_ready{service="ledger"} 1`,
		`holdfast_ready{service="retry"} 0`,
		`holdfast_connected{service="retry"} 1`,
		`holdfast_consumer_lag{consumer="c",service="ledger"} 7`,
		`holdfast_consumer_active{consumer="c",service="ledger"} 1`,
		`holdfast_events_total{kind="commits",service="ledger"} 42`,
		`go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, `holdfast_consumer_lag{consumer="c",service="retry"}`) {
		t.Error("a lag of a consumer that could not be asked")
	}
}

func TestPortInUse(t *testing.T) {
	s := start(t)
	_, err := Listen(t.Context(), strings.TrimPrefix(s.URL(), "http://"), "")
	if !errors.Is(err, ErrPortInUse) {
		t.Errorf("a second server on the same port: %v", err)
	}
	if _, err := Listen(t.Context(), "nonsense", ""); err == nil || errors.Is(err, ErrPortInUse) {
		t.Errorf("an invalid address: %v", err)
	}
}

func TestSomethingElseBeside(t *testing.T) {
	s := start(t)
	s.Handle(
		"GET /board",
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
	)
	if code, _ := get(t, s.URL()+"/board"); code != http.StatusTeapot {
		t.Errorf("status %d", code)
	}
}
