package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

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
	other, err := session.New(events.Ref{Harness: "agent", Session: "first"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	store("strange", other)
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
		for _, want := range []string{"3 sessions cannot be read: agent/damaged: ", "; agent/newer: ", "version 99",
			"; agent/strange: it is not what its key names"} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%q: no %q in\n%s", args, want, stderr.String())
			}
		}
		if len(args) == 1 && !strings.HasSuffix(stderr.String(), "\n  upgrade this program, or `holdfast rebuild`\n") {
			t.Errorf("%q: no advice in\n%s", args, stderr.String())
		}
	}
}

// TestNewestSessionsAreReadAlone: `sessions --limit` reads the sessions that changed last, and not what is older.
func TestNewestSessionsAreReadAlone(t *testing.T) {
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	const n = 600
	key := func(i int) string {
		return events.SessionKey(events.Ref{Harness: "agent", Session: fmt.Sprint("s", i)})
	}
	if _, err := b.KV.Store(t.Context(), kv.State, key(n), []byte("{"), 0); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		s := session.New(events.Ref{Harness: "agent", Session: fmt.Sprint("s", i)})
		s.UpdatedAt = time.Unix(int64(i), 0).UTC()
		doc, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.KV.Store(t.Context(), kv.State, key(i), doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]struct{ code, sessions int }{3: {0, 3}, 200: {0, 200},
		2 * n: {exitFailed, n}, 0: {exitFailed, n}} {
		var out, stderr bytes.Buffer
		p := &Program{Args: []string{"sessions", "--json", "--limit", fmt.Sprint(limit), "--nats", srv.URL(),
			"--timeout", "1m"}, Stdout: &out, Stderr: &stderr}
		code := p.Run(t.Context())
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		first := fmt.Sprintf(`"session":"s%d"`, n-1)
		if code != want.code || len(lines) != want.sessions || !strings.Contains(lines[0], first) {
			t.Errorf("--limit %d: exit code %d, %d sessions, the first is %.200s\n%s", limit, code, len(lines),
				lines[0], stderr.String())
		}
		older := fmt.Sprintf("only the %d that changed last: without --limit all are listed\n", limit)
		if got := strings.Contains(stderr.String(), older); got != (limit > 0 && limit < n) {
			t.Errorf("--limit %d: %s", limit, stderr.String())
		}
	}
}

// TestPromptsBesideEntriesThatCannotBeRead: `prompts` lists all others, names those, and exits with 1.
func TestPromptsBesideEntriesThatCannotBeRead(t *testing.T) {
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	store := func(prompt, body string) {
		t.Helper()
		key := events.BlockerKey("agent", "root", "s 1", prompt)
		if _, err := b.KV.Store(t.Context(), kv.State, key, []byte(body), 0); err != nil {
			t.Fatal(err)
		}
	}
	const whole = `{"harness":"agent","root":"root","session":"s 1","prompt":"%s",` +
		`"status":"awaiting","title":"t %[1]s"}`
	for _, prompt := range []string{"first", "last"} {
		store(prompt, fmt.Sprintf(whole, prompt))
	}
	store("damaged", "{")
	store("null", "null")
	store("strange", fmt.Sprintf(whole, "first"))
	for _, args := range [][]string{{"prompts"}, {"prompts", "--json"}, {"prompts", "--all", "--harness", "agent"}} {
		var out, stderr bytes.Buffer
		p := &Program{Args: append(args, "--nats", srv.URL(), "--timeout", "1m"), Stdout: &out, Stderr: &stderr}
		if code := p.Run(t.Context()); code != exitFailed {
			t.Errorf("%q: exit code %d\n%s", args, code, stderr.String())
		}
		for _, prompt := range []string{"first", "last"} {
			if strings.Count(out.String(), "t "+prompt) != 1 {
				t.Errorf("%q: prompt %s is not listed once in\n%s", args, prompt, out.String())
			}
		}
		for _, want := range []string{"3 prompts cannot be read: agent/s 1 damaged: ",
			"; agent/s 1 null: it is not what its key names", "; agent/s 1 strange: it is not what its key names",
			"upgrade this program, or `holdfast rebuild`"} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%q: no %q in\n%s", args, want, stderr.String())
			}
		}
	}
	other := events.Ref{Harness: "agent", Session: "s 2"}
	doc, err := session.New(other).Encode()
	if err == nil {
		_, err = b.KV.Store(t.Context(), kv.State, events.SessionKey(other), doc, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if output := runAs(t, srv.URL(), exitDone, "prompts", "agent/s 2"); strings.Contains(output, "cannot be read") {
		t.Errorf("about another session: %s", output)
	}
}
