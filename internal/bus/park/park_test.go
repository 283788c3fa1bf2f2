package park_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestParkedWithoutItsBody: a message that is parked without its body has the body's size.
func TestParkedWithoutItsBody(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	for why, n := range map[string]int{"large": 7, "small": 0} {
		if err := b.Parking.Park(bustest.Within(t, bustest.Patience),
			park.Parked{Why: why, Ref: bustest.Session, Seq: 1, Reason: "x", Bytes: n}); err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(bustest.Within(t, bustest.Patience), b.Cell().ParkedStream())
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetLastMsgForSubject(bustest.Within(t, bustest.Patience),
			b.Cell().ParkedSubject(why, bustest.Session))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Header.Get("Hf-Parked-Bytes"); got != map[int]string{7: "7", 0: ""}[n] {
			t.Errorf("%s: %q", why, got)
		}
	}
}

func TestParkKeepsWhatCameOnce(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	p := park.Parked{Why: "malformed", Ref: bustest.Session, Reason: "line one\nline two", Seq: 7,
		Body: []byte("\x00junk"),
		Header: map[string][]string{"Content-Type": {"text/plain"}, "Nats-Expected-Last-Subject-Sequence": {"99"},
			"nats-rollup": {"all"}}}
	other := p
	other.Why, other.Facts, other.Header = "out-of-role", "0-3,7", map[string][]string{"a key": {"with a space"}}
	for _, p := range []park.Parked{p, p, other, p} {
		if err := b.Parking.Park(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	st, err := js.Stream(ctx, "HF_PARKED")
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 2 {
		t.Errorf("%d parked, want 2", n)
	}
	m, err := st.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "hf.parked.malformed.h.s" || string(m.Data) != "\x00junk" ||
		m.Header.Get("Hf-Parked-Reason") != "line one line two" ||
		m.Header.Get("Content-Type") != "text/plain" ||
		m.Header.Get("Hf-Original-Nats-Expected-Last-Subject-Sequence") != "99" {
		t.Errorf("parked = %s %q %v", m.Subject, m.Data, m.Header)
	}
	m, err = st.GetMsg(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if m.Header.Get("Hf-Parked-Facts") != "0-3,7" || m.Header.Get("Hf-Unreadable-Header") != `"a key: with a space"` {
		t.Errorf("parked with a key that cannot be sent: %v", m.Header)
	}
	if c := st.CachedInfo().Config; c.MaxBytes <= 0 || c.MaxAge <= 0 {
		t.Errorf("parked input has no limit: %d bytes, %s", c.MaxBytes, c.MaxAge)
	}
}

// TestParkedWithoutLargeHeaders: a message whose headers leave no room for those of the parked message is parked
// without its headers and its body, once.
func TestParkedWithoutLargeHeaders(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	// the broker stores at most 64 KiB of headers
	const large = 65_500
	header := map[string][]string{"X": {strings.Repeat("x", large)}}
	sent := nats.NewMsg("hf.log.h.a!7.harness")
	sent.Header, sent.Data = header, []byte("body")
	if _, err := js.PublishMsg(ctx, sent); err != nil {
		t.Fatal("the log does not store it: ", err)
	}
	for range 2 {
		if err := b.Parking.Park(ctx, park.Parked{Why: "malformed", Ref: bustest.Session, Reason: "no session", Seq: 7,
			Header: header, Body: sent.Data}); err != nil {
			t.Fatal(err)
		}
	}
	st, err := js.Stream(ctx, b.Cell().ParkedStream())
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d parked, want 1", n)
	}
	m, err := st.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Data) != 0 || m.Header.Get("X") != "" || m.Header.Get("Hf-Parked-Bytes") != "4" ||
		m.Header.Get("Hf-Parked-Seq") != "7" || m.Header.Get("Hf-Parked-Reason") != "no session" {
		t.Errorf("parked = %q %v", m.Data, m.Header)
	}
}

// TestATroubleOfTheBrokerCostsNoBody: an error that says nothing about the message leads to no second message. That one
// would be the only stored one when the broker stores it, without its headers and its body.
func TestATroubleOfTheBrokerCostsNoBody(t *testing.T) {
	p := park.Parked{Why: "malformed", Ref: bustest.Session, Reason: "x", Seq: 7, Body: []byte("body")}
	for name, x := range map[string]struct {
		answer []bustest.Reply
		line   string // of the protocol, for all clients
		leaves bool   // the caller, meanwhile
		want   error
	}{
		"a full disk": {answer: bustest.OneReply(`{"error":{"code":503,"err_code":10047,"description":"storage"}}`),
			want: bus.ErrFull},
		"no permission": {answer: bustest.Silence,
			line: `-ERR 'Permissions Violation for Publish to "hf.parked.malformed.h.s"'`, want: bus.ErrForbidden},
		"a caller that leaves": {answer: bustest.Trouble, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(bustest.Within(t, bustest.Patience))
			defer leave()
			bodies := make(chan string, 10)
			send := func(string) {}
			s := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				if !a.On("hf.parked.") {
					return bustest.Silence
				}
				bodies <- a.Body
				if x.leaves {
					leave()
				}
				if x.line != "" {
					send(x.line)
				}
				return x.answer
			})
			send = s.Send
			b := s.Open()
			if err := b.Parking.Park(ctx, p); err == nil || x.want != nil && !errors.Is(err, x.want) {
				t.Errorf("parked: %v, want %v", err, x.want)
			}
			// Close sends what waits
			b.Close()
			if len(bodies) != 1 || <-bodies != "body" {
				t.Errorf("%d more messages were sent", len(bodies))
			}
		})
	}
}
