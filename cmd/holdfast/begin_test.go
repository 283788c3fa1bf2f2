package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// sinceSeq is the end of the log at the start of a watch.
const sinceSeq = 5

// storeDocument stores the document of a session in place of a revision, and returns its own.
func storeDocument(t *testing.T, b *bus.Bus, id, title string, phase session.Phase, rev uint64) uint64 {
	t.Helper()
	s := session.New(events.Ref{Harness: "agent", Session: id})
	s.Title, s.Phase = title, phase
	s.Recent = []session.Ending{{Entity: "turn", ID: "before", Seq: sinceSeq},
		{Entity: "turn", ID: "since", Seq: sinceSeq + 1}}
	if phase == session.Waiting {
		s.Prompts = map[string]*session.Prompt{"waits": {Status: session.Awaiting}}
	}
	doc, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if rev, err = b.KV.Store(t.Context(), kv.State, events.SessionKey(s.Ref()), doc, rev); err != nil {
		t.Fatal(err)
	}
	return rev
}

// cellOf600 has 600 idle sessions, s0 to s599, and older ones: asks, with two prompts, one of which waits; asking,
// whose prompt waits, too; closed; and one that cannot be read. It returns the revision of s7.
func cellOf600(t *testing.T, b *bus.Bus) (rev uint64) {
	t.Helper()
	key := events.SessionKey(events.Ref{Harness: "agent", Session: "damaged"})
	if _, err := b.KV.Store(t.Context(), kv.State, key, []byte("{"), 0); err != nil {
		t.Fatal(err)
	}
	storeDocument(t, b, "closed", "", session.Closed, 0)
	asks := storeDocument(t, b, "asks", "", session.Waiting, 0)
	storePrompt := func(id, prompt string, status session.Status, rev uint64) {
		t.Helper()
		v := kv.View{Key: events.BlockerKey("agent", id, id, prompt), GuardRev: rev,
			GuardKey: events.SessionKey(events.Ref{Harness: "agent", Session: id}),
			Value: fmt.Appendf(nil, `{"harness":"agent","root":%q,"session":%q,"prompt":%q,"status":%q}`, id, id,
				prompt, status)}
		if _, err := b.KV.StoreView(t.Context(), v).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	storePrompt("asks", "waits", session.Awaiting, asks)
	storePrompt("asks", "settled", session.Answered, asks)
	storePrompt("asking", "second", session.Awaiting, storeDocument(t, b, "asking", "", session.Waiting, 0))
	for i := range 600 {
		if r := storeDocument(t, b, fmt.Sprint("s", i), "", session.Idle, 0); i == 7 {
			rev = r
		}
	}
	return rev
}

// TestWatchBeginsWithTheNewest: a watch begins with the sessions that changed last and those that wait for a person,
// and reads no others.
func TestWatchBeginsWithTheNewest(t *testing.T) {
	srv := natstest.Start(t)
	cellOf600(t, natstest.Bus(t, srv))
	const more = "and older ones (`holdfast sessions`, `holdfast prompts`)"
	for _, test := range []struct {
		args   []string
		want   []string
		others int // sessions that are not named in want
		not    string
	}{
		{[]string{"--limit", "3"}, []string{"agent/asks", "waits", "agent/asking", "second",
			"agent/s599", "agent/s598", "agent/s597", more}, 0,
			"of a newer form"},
		{[]string{"--limit", "0"}, []string{"agent/asks", "waits", "agent/s0 ", "of a newer form, not shown: 1 view"},
			600, more},
		{[]string{"--limit", "3", "--waiting"}, []string{"agent/asks", "waits", "agent/asking", "second"}, 0,
			"of a newer form"},
		{[]string{"--limit", "700"}, []string{"agent/asks", "agent/s0 ", "of a newer form"}, 600, more},
		{[]string{"--limit", "1", "--phase", "closed"}, []string{"agent/closed"}, 0, "agent/s599"},
		{[]string{"--limit", "1", "agent/s3"}, []string{"agent/s3"}, 0, more},
		{[]string{"--limit", "1", "agent/closed"}, []string{"agent/closed"}, 0, more},
		{[]string{"--limit", "1", "agent/asks"}, []string{"agent/asks", "waits"}, 0, "agent/s599"},
	} {
		var out, stderr bytes.Buffer
		p := &Program{Args: append([]string{"watch", "--once", "--nats", srv.URL(), "--timeout", "1m"}, test.args...),
			Stdout: &out, Stderr: &stderr}
		if code := p.Run(t.Context()); code != exitDone {
			t.Fatalf("%q: exit code %d\n%s", test.args, code, stderr.String())
		}
		sessions := 0
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in\n%.2000s", test.args, want, out.String())
			}
			sessions += strings.Count(want, "agent/")
		}
		if strings.Contains(out.String(), test.not) || strings.Contains(out.String(), "settled") {
			t.Errorf("%q: %q, or a settled prompt, in\n%.2000s", test.args, test.not, out.String())
		}
		table, _, _ := strings.Cut(out.String(), "\n\n")
		if n := strings.Count(table, "agent/"); n != sessions+test.others {
			t.Errorf("%q: %d sessions, want %d\n%.2000s", test.args, n, sessions+test.others, table)
		}
	}
	p := &Program{Args: []string{"watch", "--limit", "-1"}, Stdout: io.Discard, Stderr: io.Discard}
	if code := p.Run(t.Context()); code != exitUsage {
		t.Errorf("--limit -1: exit code %d", code)
	}
}

// TestWatchShowsChangesOfOlderSessions: what a watch did not begin with is shown once it changes.
func TestWatchShowsChangesOfOlderSessions(t *testing.T) {
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	seventh := cellOf600(t, b)
	seen, stderr := &output{}, &output{}
	has := func(o *output, text string) func() bool {
		return func() bool { return strings.Contains(o.String(), text) }
	}
	a := newApp(&Program{Stdout: seen, Stderr: stderr})
	a.timeout, a.nats = time.Minute, srv.URL()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	x := newBoard(&sessionFilter{}, 3)
	x.since = sinceSeq
	go func() { ended <- a.watchLines(ctx, b, x) }()
	natstest.Until(t, "the note about older sessions", has(stderr, "with --limit 0 it begins with all"))
	if !has(seen, "agent/s599")() || !has(seen, "agent/asks")() || has(seen, "agent/s7 ")() {
		t.Errorf("it began with\n%s", seen.String())
	}
	seventh = storeDocument(t, b, "s7", "seventh", session.Idle, seventh)
	natstest.Until(t, "the older session", has(seen, "agent/s7  turn since"))
	if has(seen, "agent/s7  turn before")() {
		t.Errorf("what ended before the watch is shown as a change:\n%s", seen.String())
	}
	storeDocument(t, b, "s7", "again", session.Running, seventh)
	natstest.Until(t, "its next change", has(seen, "agent/s7  idle → running"))
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if has(seen, "agent/s1 ")() {
		t.Errorf("a session that did not change was shown:\n%s", seen.String())
	}
}
