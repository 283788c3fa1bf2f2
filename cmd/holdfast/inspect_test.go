package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestSessionsBesideDocumentsThatCannotBeRead: `sessions` lists all others, names those, and exits with 1.
func TestSessionsBesideDocumentsThatCannotBeRead(t *testing.T) {
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	store := func(id string, doc []byte) {
		t.Helper()
		key := events.SessionKey(events.Ref{Harness: "agent", Session: id})
		if _, err := b.KV.Store(t.Context(), kv.State, key, doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	whole := func(id string) {
		t.Helper()
		doc, err := session.New(events.Ref{Harness: "agent", Session: id}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		store(id, doc)
	}
	whole("first")
	store("damaged", []byte("{"))
	store("newer", []byte(`{"v":99,"harness":"agent","session":"newer"}`))
	whole("last")
	for _, args := range [][]string{{"sessions"}, {"sessions", "--json"}, {"sessions", "--limit", "2"}} {
		var out, stderr bytes.Buffer
		p := &Program{Args: append(args, "--nats", srv.URL(), "--timeout", "1m"), Stdout: &out, Stderr: &stderr}
		if code := p.Run(t.Context()); code != exitFailed {
			t.Errorf("%q: exit code %d\n%s", args, code, stderr.String())
		}
		for _, id := range []string{"first", "last"} {
			if !strings.Contains(out.String(), id) {
				t.Errorf("%q: no session %s in\n%s", args, id, out.String())
			}
		}
		for _, want := range []string{"2 sessions cannot be read: agent/damaged: ", "; agent/newer: ", "version 99"} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%q: no %q in\n%s", args, want, stderr.String())
			}
		}
		if len(args) == 1 && !strings.HasSuffix(stderr.String(), "\n  upgrade this program, or `holdfast rebuild`\n") {
			t.Errorf("%q: no advice in\n%s", args, stderr.String())
		}
	}
}
