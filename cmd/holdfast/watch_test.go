package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// screenshots keeps the last screen that was drawn.
type screenshots struct {
	mu   sync.Mutex
	last string
}

// Write takes one drawing: the table is written as a whole.
func (s *screenshots) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = string(text)
	return len(text), nil
}

func (s *screenshots) shows(texts ...string) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range texts {
			if !strings.Contains(s.last, t) {
				return false
			}
		}
		return true
	}
}

// The table on a terminal is drawn again after each change of a view, and reports when the broker is away.
func TestLiveTable(t *testing.T) {
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	store := func(title string, rev uint64) uint64 {
		s := session.New(events.Ref{Harness: "agent", Session: "s1"})
		s.Title = title
		doc, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		rev, err = b.KV.Store(t.Context(), kv.State, events.SessionKey(s.Ref()), doc, rev)
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	seen := &screenshots{}
	a := newApp(&Program{Stdout: seen, Stderr: io.Discard})
	a.timeout, a.nats = time.Minute, srv.URL()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.watchTable(ctx, b, newBoard(&sessionFilter{}, watchBeginsWith)) }()
	natstest.Until(t, "an empty table", seen.shows(clearScreen, "holdfast watch · "+srv.URL(), "no sessions"))
	rev := store("first", 0)
	natstest.Until(t, "the session", seen.shows(clearScreen, "agent/s1", "first"))
	store("second", rev)
	natstest.Until(t, "its new title", seen.shows(clearScreen, "agent/s1", "second"))
	srv.Shutdown()
	natstest.Until(t, "the broker to be missed", seen.shows("broker lost", "second"))
	natstest.Restart(t, srv)
	natstest.Until(t, "the broker to be back", seen.shows("Ctrl-C", "second"))
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Without a terminal, and if the environment says so, nothing is coloured.
func TestColourOnlyOnATerminal(t *testing.T) {
	a := newApp(&Program{})
	if st := a.style(&bytes.Buffer{}); st.Color || st.Width != 0 {
		t.Errorf("%+v into a buffer", st)
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		a.Env = []string{"TERM=xterm", env}
		if a.wantsColor() {
			t.Errorf("coloured with %s", env)
		}
	}
	a.Env = []string{"NO_COLOR=", "TERM=xterm"}
	if !a.wantsColor() {
		t.Error("not coloured on an ordinary terminal")
	}
}

// A board counts entries that it cannot read, and removes deleted ones.
func TestBoard(t *testing.T) {
	x := newBoard(&sessionFilter{}, 0)
	put := func(key, value string) { x.apply(kv.Update{Entry: kv.Entry{Key: key, Value: []byte(value)}}) }
	put("session.a.s1", `{"v":1,"harness":"a","session":"s1","phase":"running"}`)
	put("session.a.s2", `{"v":99,"harness":"a","session":"s2"}`)
	put("blocker.a.s1.s1.p1",
		`{"harness":"a","session":"s1","root":"s1","prompt":"p1","kind":"question","status":"awaiting"}`)
	put("blocker.a.s1.s1.p2", `[]`)
	text := x.text(time.Now(), terminal.Style{})
	for _, want := range []string{"a/s1", "p1", "of a newer form, not shown: 2 views; upgrade this program"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	other := newBoard(&sessionFilter{harness: "b"}, 0)
	other.sessions, other.blockers = x.sessions, x.blockers
	if text := other.text(time.Now(), terminal.Style{}); strings.Contains(text, "a/s1") ||
		strings.Contains(text, "p1") {
		t.Errorf("of harness b:\n%s", text)
	}
	x.apply(kv.Update{Entry: kv.Entry{Key: "session.a.s1", Deleted: true}})
	x.apply(kv.Update{Entry: kv.Entry{Key: "blocker.a.s1.s1.p1", Deleted: true}})
	if text := x.text(time.Now(), terminal.Style{}); strings.Contains(text, "a/s1") || strings.Contains(text, "p1") {
		t.Errorf("after both are gone:\n%s", text)
	}
}

// A table that does not fit the terminal is cut at the least urgent sessions, with a note.
func TestBoardFitsTheTerminal(t *testing.T) {
	x := newBoard(&sessionFilter{}, 0)
	put := func(key, value string) { x.apply(kv.Update{Entry: kv.Entry{Key: key, Value: []byte(value)}}) }
	for i := range 200 {
		put(fmt.Sprintf("session.a.s%03d", i), fmt.Sprintf(`{"v":1,"harness":"a","session":"s%03d","phase":"idle"}`, i))
	}
	put("session.a.z", `{"v":1,"harness":"a","session":"z","phase":"waiting"}`)
	put("blocker.a.z.z.p1", `{"harness":"a","session":"z","root":"z","prompt":"p1","kind":"question",`+
		`"status":"awaiting"}`)
	for _, height := range []int{2, 10, 24, 60, 500, 0} {
		text := fit("headline\n\n"+x.text(time.Now(), terminal.Style{Height: height}), height)
		lines := strings.Count(text, "\n") + 1
		switch {
		case height > 0 && lines > height:
			t.Errorf("%d lines on %d", lines, height)
		case height >= 10 && !strings.Contains(text, "a/z"):
			t.Errorf("the session that waits is not on a screen of %d lines:\n%s", height, text)
		case height >= 24 && !strings.Contains(text, "p1"):
			t.Errorf("the prompt is not on a screen of %d lines:\n%s", height, text)
		case (height == 24 || height == 60) &&
			!strings.Contains(text, fmt.Sprintf("and %d sessions more", 201-height/2)):
			t.Errorf("%d lines do not say how many are not shown:\n%s", height, text)
		case (height == 0 || height == 500) && !strings.Contains(text, "a/s199"):
			t.Errorf("not everything is there without a bound of %d", height)
		}
	}
	// each session has two lines
	narrow := terminal.Style{Width: 24, Height: 40}
	if text := fit("headline\n\n"+x.text(time.Now(), narrow), narrow.Height); !strings.Contains(text,
		"p1") {
		t.Errorf("the prompt is not on a narrow screen:\n%s", text)
	}
}
