package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestLeaseLostOnTheWay is the same for a lease: it is asked for, or renewed, again.
func TestLeaseLostOnTheWay(t *testing.T) {
	s := natstest.Start(t)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	// sets the cell up
	natstest.Bus(t, s)
	var lease *lease.Lease
	for what, do := range []func() error{
		func() (err error) {
			lease, err = b.Leases.Acquire(bustest.Within(t, bustest.Patience), "harness.h.1", []byte("one"),
				time.Minute)
			return err
		},
		func() error { return lease.Renew(bustest.Within(t, bustest.Patience), []byte("two")) },
	} {
		p.Hold(true, false)
		done := make(chan error, 1)
		go func() { done <- do() }()
		p.Cut()
		p.Hold(false, false)
		if err := bustest.Receive(t, done, "the lease"); err != nil {
			t.Errorf("%d: %v", what, err)
		}
	}
}

// TestALeaseWhoseKeyIsGone: a renewal in place of a key that is not there is refused, and the lease is lost.
func TestALeaseWhoseKeyIsGone(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	_, js := bustest.Outsider(t, s)
	stream, err := js.Stream(bustest.Within(t, bustest.Patience), "KV_hf_leases")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(bustest.Within(t, bustest.Patience),
		jetstream.WithPurgeSubject("$KV.hf_leases."+bustest.LeaseKey)); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(bustest.Within(t, bustest.Patience), nil); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("%v, want ErrLeaseLost", err)
	}
}

// TestALeaseIsKeptAtAThirdOfItsTTL: when it is not said how often.
func TestALeaseIsKeptAtAThirdOfItsTTL(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const ttl = 3 * time.Second
	b := natstest.Bus(t, natstest.Start(t))
	l := bustest.Acquire(t, b, bustest.LeaseKey, ttl)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	renewed := make(chan time.Time, 1000)
	began := time.Now()
	ended := l.Keep(ctx, 0, func() []byte { renewed <- time.Now(); return nil })
	if took := bustest.Receive(t, renewed, "a renewal").Sub(began); took < ttl/3 {
		t.Errorf("renewed after %s, want a third of %s", took, ttl)
	}
	cancel()
	for range ended {
		t.Error("it is lost")
	}
}

// TestALeaseWhoseGuardOthersName: renewals are refused for longer than ten refusals take, because writes of others with
// the same guard are in flight. The lease is renewed when one gets through, and counts from about then.
func TestALeaseWhoseGuardOthersName(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const busy = 3 * time.Second
	var first time.Time
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("$KV.hf_leases."+bustest.LeaseKey, 5, "", "mine", time.Now())
		case first.IsZero():
			first = time.Now()
			return bustest.OneReply(`{"stream":"KV_hf_leases","seq":5}`)
		case time.Since(first) < busy:
			return bustest.InFlight
		}
		return bustest.OneReply(`{"stream":"KV_hf_leases","seq":6}`)
	}).Open()
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	acquired := l.LastRenewed()
	if err := l.Renew(bustest.Within(t, bustest.Patience), nil); err != nil {
		t.Fatalf("the lease of a living process: %v", err)
	}
	if after := l.LastRenewed().Sub(acquired); after < busy/2 {
		t.Errorf("renewed %s after its acquisition, want about %s", after, busy)
	}
}

// TestARenewalOfUnknownOutcome: the first message of a renewal may have been stored, so its refusals afterwards do not
// prove that the lease counts from a later instant. The lease stays as it is.
func TestARenewalOfUnknownOutcome(t *testing.T) {
	// it mostly waits
	t.Parallel()
	var first time.Time
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("$KV.hf_leases."+bustest.LeaseKey, 5, "", "mine", time.Now())
		case first.IsZero():
			first = time.Now()
			return bustest.OneReply(`{"stream":"KV_hf_leases","seq":5}`)
		case time.Since(first) < 50*time.Millisecond:
			return bustest.OneReply(
				`{"error":{"code":503,"err_code":10008,"description":"JetStream system unavailable"}}`)
		case time.Since(first) < 3*time.Second:
			return bustest.InFlight
		}
		return bustest.OneReply(`{"stream":"KV_hf_leases","seq":6}`)
	}).Open()
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	acquired := l.LastRenewed()
	if err := l.Renew(bustest.Within(t, bustest.Patience), nil); !errors.Is(err, bus.ErrUnreachable) ||
		l.LastRenewed() != acquired {
		t.Errorf("%v, renewed %s later; want ErrUnreachable", err, l.LastRenewed().Sub(acquired))
	}
}

// TestALeaseWithoutABucket: while the bucket cannot be found, as in a cluster that starts, a renewal fails and the
// lease is not lost.
func TestALeaseWithoutABucket(t *testing.T) {
	acquired := false
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.NoStream
		case !acquired:
			acquired = true
			return bustest.OneReply(`{"stream":"KV_hf_leases","seq":5}`)
		}
		return bustest.WrongLast
	}).Open()
	l := bustest.Acquire(t, b, bustest.LeaseKey, time.Minute)
	err := l.Renew(bustest.Within(t, bustest.Patience), nil)
	if !errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

// TestNoLeaseOfAClosedConnection: a lease that could not be written is an error.
func TestNoLeaseOfAClosedConnection(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	b.Close()
	l, err := b.Leases.Acquire(bustest.Within(t, bustest.Patience), "harness.h.1", nil, time.Minute)
	if err == nil || l != nil {
		t.Errorf("%v, %v", l, err)
	}
}

// TestTicketsFollowTheClockAndTheTicketBefore: a ticket is the broker's time, or one more than the ticket before it,
// and than what the caller names, if that is greater.
func TestTicketsFollowTheClockAndTheTicketBefore(t *testing.T) {
	const now, micro = "2026-11-24T01:02:03.123456789Z", 1795482123123456
	// the broker's clock is set to a time before all numbers
	const before = "1960-01-01T00:00:00Z"
	// after now
	const later = 1995482123123456
	// an entry of the older form
	const older = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	// of all incarnations
	const greatest = uint64(18446744073709551615)
	entry := func(n uint64) string { return fmt.Sprintf(`{"incarnation":"%d"}`, n) }
	for name, c := range map[string]struct {
		clock, value string // of the entry there is; "": none
		above, want  uint64
	}{
		"the first one":                       {clock: now, want: micro},
		"one before it":                       {clock: now, value: entry(micro - 1), want: micro},
		"at the same microsecond":             {clock: now, value: entry(micro), want: micro + 1},
		"the clock was set back":              {clock: now, value: entry(later), want: later + 1},
		"written by hand":                     {clock: now, value: `{"incarnation":1995482123123456}`, want: later + 1},
		"above the own one":                   {clock: now, above: later, want: later + 1},
		"above both":                          {clock: now, value: entry(later), above: 1, want: later + 1},
		"the older form":                      {clock: now, value: older, want: micro},
		"the older form, before all numbers":  {clock: before, value: older, want: 8},
		"an older form that is a number":      {clock: before, value: "77777", want: 8},
		"empty":                               {clock: before, value: " ", want: 8},
		"damaged":                             {clock: before, value: `{"incarnation":"x"}`, want: 8},
		"damaged, less than nothing":          {clock: before, value: `{"incarnation":-5}`, want: 8},
		"less than its revision":              {clock: before, value: entry(3), want: 8},
		"the first one, before all numbers":   {clock: before, want: 1},
		"the clock is set back, nothing else": {clock: before, value: entry(500), above: 400, want: 501},
		"the last but one":                    {clock: now, value: entry(greatest - 1), want: greatest},
		"after the greatest one":              {clock: now, value: entry(greatest)},
		"above the greatest one":              {clock: now, above: greatest},
	} {
		t.Run(name, func(t *testing.T) {
			var stored string
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				switch {
				case a.Is("STREAM.INFO.HF_LOG"):
					return bustest.OneReply(`{"ts":"` + c.clock + `"}`)
				case a.Is("STREAM.MSG.GET") && c.value == "":
					return bustest.NotFound
				case a.Is("STREAM.MSG.GET"):
					return bustest.Stored("$KV.hf_leases.ticket.h", 7, "", c.value, time.Now())
				}
				stored = a.Body
				return bustest.OneReply(`{"stream":"KV_hf_leases","seq":8}`)
			}).Open()
			n, err := b.Leases.Ticket(bustest.Within(t, bustest.Patience), "h", c.above)
			if c.want == 0 {
				if !errors.Is(err, events.ErrMalformed) || stored != "" {
					t.Errorf("%d, %v, stored %s; there is no greater one", n, err, stored)
				}
				return
			}
			if want := fmt.Sprintf(`{"incarnation":"%d","instance":"%s"}`, c.want, b.Instance()); n != c.want ||
				err != nil || stored != want {
				t.Errorf("%d, %v, stored %s; want %s", n, err, stored, want)
			}
		})
	}
}

// TestATicketLostOnTheWay: a ticket whose acknowledgement is lost is found, and is not drawn twice. One whose request
// is lost is drawn.
func TestATicketLostOnTheWay(t *testing.T) {
	s := natstest.Start(t)
	// sets the cell up
	natstest.Bus(t, s)
	var was uint64
	for i, towards := range []bool{false, true} {
		p := bustest.NewProxy(t, s)
		b := bustest.BusAt(t, p.Addr)
		lost := p.Lose(false, `MSG \S+ (\d+) \d+\r\n{"stream":"KV_hf_leases"`, 1, "99999999")
		if towards {
			lost = p.Lose(true, `HPUB \$KV\.hf_(leases)\.ticket`, 1, "others")
		}
		n, err := b.Leases.Ticket(bustest.Within(t, bustest.Patience), "h", 0)
		if err != nil || n <= was {
			t.Errorf("drew %d after %d: %v", n, was, err)
		}
		was = n
		bustest.Receive(t, lost, "the loss")
		e, err := b.KV.Load(bustest.Within(t, bustest.Patience), kv.Leases, events.TicketKey("h"))
		if err != nil || e.Rev != uint64(i+1) {
			t.Errorf("%d tickets were stored, want %d; %v", e.Rev, i+1, err)
		}
	}
}

// TestATicketThatAnotherProcessReplaces: a process that draws finds that the bucket has the ticket of another one that
// it has not read, although the acknowledgement was lost. It draws a number of its own.
func TestATicketThatAnotherProcessReplaces(t *testing.T) {
	const theirs = `{"incarnation":"3","instance":"theirs"}`
	var stored []string
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.INFO"):
			return bustest.OneReply(`{"ts":"1970-01-01T00:00:00.000001Z"}`)
		case a.Is("STREAM.MSG.GET") && len(stored) == 0:
			return bustest.NotFound
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("$KV.hf_leases.ticket.h", 2, "", theirs, time.Now())
		}
		if stored = append(stored, a.Body); len(stored) == 1 {
			return bustest.WrongLast
		}
		return bustest.OneReply(`{"stream":"KV_hf_leases","seq":3}`)
	}).Open()
	n, err := b.Leases.Ticket(bustest.Within(t, bustest.Patience), "h", 0)
	if n != 4 || err != nil || len(stored) != 2 {
		t.Errorf("%d, %v after %q; want 4", n, err, stored)
	}
}

// TestATicketThatIsInFlight: tickets of others are in flight for longer than a write is sent again. The process waits
// for its own until its context ends, also if it does not know whether its first message was stored.
func TestATicketThatIsInFlight(t *testing.T) {
	for name, unknown := range map[string]bool{"nothing of it was stored": false, "the outcome is unknown": true} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			const busy = 3 * time.Second
			var first time.Time
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				switch {
				case a.Is("STREAM.INFO"):
					return bustest.OneReply(`{"ts":"1970-01-01T00:00:00.000001Z"}`)
				case a.Is("STREAM.MSG.GET"):
					return bustest.NotFound
				case first.IsZero() && unknown:
					first = time.Now()
					return bustest.OneReply(
						`{"error":{"code":503,"err_code":10008,"description":"JetStream system unavailable"}}`)
				case first.IsZero():
					first = time.Now()
				case time.Since(first) > busy:
					return bustest.OneReply(`{"stream":"KV_hf_leases","seq":1}`)
				}
				return bustest.InFlight
			}).Open()
			if n, err := b.Leases.Ticket(bustest.Within(t, bustest.Patience), "h", 0); n != 1 || err != nil {
				t.Errorf("%d, %v; want 1", n, err)
			}
		})
	}
}

// TestNoTicketWithoutABucket: a bucket that is not there gives no ticket, and the caller learns which is missing.
func TestNoTicketWithoutABucket(t *testing.T) {
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		if a.Is("STREAM.INFO") {
			return bustest.OneReply(`{"ts":"2026-11-24T01:02:03Z"}`)
		}
		return bustest.NoStream
	}).Open()
	ctx := bustest.Within(t, bustest.Patience)
	if n, err := b.Leases.Ticket(ctx, "h", 0); n != 0 || !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("%d, %v, want ErrNotFound", n, err)
	}
	if n, _, err := b.Leases.Drawn(ctx, "h"); n != 0 || !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("%d, %v, want ErrNotFound", n, err)
	}
}
