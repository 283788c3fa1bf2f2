package reconciler

import (
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestGoneLeases: a lease is ended when its connection ended and it was not renewed since, for the grace, while this
// process could renew its own.
func TestGoneLeases(t *testing.T) {
	const grace = 1500 * time.Millisecond
	mine, other := presence.Connection{Server: "a", Client: 1}, presence.Connection{Server: "a", Client: 2}
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	broke, long := []presence.Connection{mine}, Seen{TTL: 20 * time.Second}
	named, longNamed := Seen{Name: "mine"}, Seen{Name: "mine", TTL: 20 * time.Second}
	for name, x := range map[string]struct {
		ended   []presence.Connection
		lease   Seen
		renewed int    // when the own lease was renewed for the last time, in ms from the end of the connection
		gap     int    // when a gap of the own lease ended; 0: it had none
		now     int    // in ms from the end of the connection
		want    uint64 // the revision of the lease to end, 0 for none
		putOff  bool   // counted as put off
		unready bool   // not all leases have been read
		open    string // the name of a connection that is open
		at      int    // when it was
		asks    bool   // the brokers are asked for open connections
	}{
		"its connection ended":          {ended: broke, renewed: 1400, now: 1500, want: 7},
		"not all leases are known":      {ended: broke, renewed: 1400, now: 1500, unready: true},
		"a moment ago":                  {ended: broke, renewed: 1400, now: 1499},
		"another connection ended":      {ended: []presence.Connection{other}, renewed: 1400, now: 1500},
		"it was renewed since":          {ended: broke, lease: Seen{Received: at(1)}, renewed: 1400, now: 1500},
		"the lease has ended":           {ended: broke, lease: Seen{Ended: at(1)}, renewed: 1400, now: 1500},
		"the own lease is not renewed":  {ended: broke, renewed: 1000, now: 1500, putOff: true},
		"it is not renewed for long":    {ended: broke, renewed: 900, now: 1499},
		"the own lease was not renewed": {ended: broke, renewed: 2400, gap: 1000, now: 2499, putOff: true},
		"renewed since, then a gap": {ended: broke, lease: Seen{Received: at(1100)}, renewed: 2400, gap: 1000,
			now: 2499},
		"long enough after that":  {ended: broke, renewed: 2400, gap: 1000, now: 2500, want: 7},
		"a longer lease":          {ended: broke, lease: long, renewed: 1900, now: 1999},
		"after a part of its TTL": {ended: broke, lease: long, renewed: 1900, now: 2000, want: 7},
		"nothing ended":           {renewed: 1400, now: 1500},

		"it has another connection": {ended: broke, lease: named, renewed: 1400, now: 1500, open: "mine", at: 100,
			asks: true},
		"it had, until a moment ago": {ended: broke, lease: named, renewed: 2000, now: 2099, open: "mine", at: 600,
			asks: true},
		"it had, long ago": {ended: broke, lease: named, renewed: 2000, now: 2100, open: "mine", at: 600, asks: true,
			want: 7},
		"a connection of another name": {ended: broke, lease: named, renewed: 1400, now: 1500, open: "other", at: 100,
			asks: true, want: 7},
		"a lease without a name":     {ended: broke, renewed: 1400, now: 1500, open: "mine", at: 100, want: 7},
		"a longer lease is not due":  {ended: broke, lease: longNamed, renewed: 400, now: 499},
		"a longer lease is soon due": {ended: broke, lease: longNamed, renewed: 400, now: 500, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newLeaseBook(Margins{})
			if !x.unready {
				k.start(begin)
			}
			l := x.lease
			l.Rev, l.Connected = 7, mine
			k.view.put("h", "1", &l)
			k.disconnected(x.ended, begin)
			// the brokers name a connection again and again
			k.disconnected(x.ended, at(x.now))
			if k.asks() {
				t.Error("asks before a lease was looked at")
			}
			k.gone(begin, grace)
			if x.open != "" {
				k.connected([]string{"foreign", x.open}, at(x.at))
			}
			k.view.Renewed = at(x.renewed)
			if x.gap != 0 {
				k.view.Gaps = []Gap{{End: at(x.gap)}}
			}
			all := k.gone(at(x.now), grace)
			k.gone(at(x.now), grace)
			if k.asks() != x.asks && x.lease.Name != "" {
				t.Errorf("asks for open connections: %t", k.asks())
			}
			if n := k.count.putOff.Load(); n > 1 || (n == 1) != x.putOff {
				t.Errorf("%d counted as put off, want %t", n, x.putOff)
			}
			switch {
			case x.want == 0 && len(all) == 0:
			case x.want != 0 && len(all) == 1 && all[0] == (overdueLease{"h", "1", x.want}):
			default:
				t.Errorf("to be ended: %v", all)
			}
		})
	}
}

// TestALeaseThatNamesAnothersConnection: a harness names the connection of another harness's process in its own lease.
// Both processes live. When the connection ends, the process that had it renews its lease under another one: only the
// lease that still names it ends. A lease that names a connection that never was is not ended.
func TestALeaseThatNamesAnothersConnection(t *testing.T) {
	const grace = 1500 * time.Millisecond
	first, second := presence.Connection{Server: "a", Client: 1}, presence.Connection{Server: "a", Client: 2}
	begin := time.Now()
	k := newLeaseBook(Margins{})
	k.start(begin)
	k.view.put("victim", "1", &Seen{Rev: 7, Connected: first})
	k.view.put("attacker", "1", &Seen{Rev: 8, Connected: first})
	k.view.put("attacker", "2", &Seen{Rev: 9, Connected: presence.Connection{Server: "none", Client: 3}})
	k.view.put("attacker", "3", &Seen{Rev: 10})
	k.disconnected([]presence.Connection{first}, begin)
	k.view.put("victim", "1", &Seen{Rev: 11, Connected: second, Received: begin.Add(time.Millisecond)})
	k.view.Renewed = begin.Add(2 * grace)
	if got := k.gone(begin.Add(2*grace), grace); len(got) != 1 || got[0] != (overdueLease{"attacker", "1", 8}) {
		t.Errorf("to be ended: %v", got)
	}
}

// TestEndedConnectionsAreForgotten: the list of ended connections has a limit and forgets those that no broker names
// any more, but not the one that a living lease names.
func TestEndedConnectionsAreForgotten(t *testing.T) {
	const ttl, grace = 20 * endedFor, time.Second
	k, begin := newLeaseBook(Margins{}), time.Now()
	all := make([]presence.Connection, endedMax+1)
	for i := range all {
		all[i] = presence.Connection{Server: "a", Client: uint64(i)}
	}
	k.start(begin)
	k.view.put("h", "1", &Seen{TTL: ttl, Connected: all[2], Rev: 7})
	k.disconnected(all, begin)
	if len(k.ended) != endedMax {
		t.Errorf("%d are kept, want %d", len(k.ended), endedMax)
	}
	for now := begin; now.Before(begin.Add(ttl / gracePart)); now = now.Add(endedFor / 2) {
		// named again and again
		k.disconnected(all[:1], now)
		k.view.Renewed = now
		if got := k.gone(now, grace); len(got) > 0 {
			t.Fatalf("to be ended after %s of %s: %v", now.Sub(begin), ttl/gracePart, got)
		}
	}
	if len(k.ended) != 2 {
		t.Errorf("%d are kept after their time, want 2", len(k.ended))
	}
	now := begin.Add(ttl / gracePart)
	k.view.Renewed = now
	if got := k.gone(now, grace); len(got) != 1 {
		t.Errorf("to be ended: %v, want the lease whose connection ended %s ago", got, ttl/gracePart)
	}
}

// TestRenewedLeaseIsNotEnded: a lease that was renewed after the reconciler had seen it stays; one that was not is
// ended, and counted.
func TestRenewedLeaseIsNotEnded(t *testing.T) {
	c := start(t)
	r, _ := c.reconcile(c.b, quick())
	p := c.harness("h", "ready", ttlLong)
	p.open("s", 1)
	seen := func() (x overdueLease) {
		natstest.Until(t, "the lease to be seen", func() bool {
			r.leases.mu.Lock()
			defer r.leases.mu.Unlock()
			l := r.leases.view.Leases["h"][p.incarnation]
			if l != nil {
				x = overdueLease{"h", p.incarnation, l.Rev}
			}
			return l != nil
		})
		return x
	}
	before := seen()
	p.renew("ready")
	r.endLeases(c.ctx, []overdueLease{before})
	if err := p.lease.Renew(c.ctx, nil); err != nil {
		t.Errorf("a renewed lease was ended: %v", err)
	}
	if n := r.Counts()["leases_ended"]; n != 0 {
		t.Errorf("%d leases count as ended", n)
	}
	natstest.Until(t, "the lease as it is to be ended", func() bool {
		r.endLeases(c.ctx, []overdueLease{seen()})
		return r.Counts()["leases_ended"] == 1
	})
	if err := p.lease.Renew(c.ctx, nil); err == nil {
		t.Error("an ended lease was renewed")
	}
}

// TestAProcessWithAConnectionKeepsItsLease: the connection that a lease names has ended, and the process cannot renew
// the lease. It keeps the lease as long as it has another connection.
func TestAProcessWithAConnectionKeepsItsLease(t *testing.T) {
	// the grace is a tenth of the TTL: 2 s
	const ttl, grace = 20 * time.Second, time.Second
	s := natstest.Start(t)
	c := newCell(t, natstest.Bus(t, s, func(c *bus.Config) { c.Server = s }))
	cfg := quick()
	cfg.DisconnectGrace = grace
	r, _ := c.reconcile(c.b, cfg)
	first, second := natstest.Bus(t, s), natstest.Bus(t, s)
	n, err := c.b.Leases.Ticket(c.ctx, "h", 0)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(lease.Record{ID: "h", State: lease.Ready, TTLMS: ttl.Milliseconds(),
		Connection: presence.Named{Connection: first.Presence.Own(), Name: second.Presence.Name()}})
	if err != nil {
		t.Fatal(err)
	}
	key := events.HarnessLeaseKey("h", strconv.FormatUint(n, 10))
	if _, err := c.b.Leases.Acquire(c.ctx, key, body, ttl); err != nil {
		t.Fatal(err)
	}
	gone := first.Presence.Own()
	first.Close()
	natstest.Until(t, "the second connection to be seen for twice the grace", func() bool {
		r.leases.mu.Lock()
		defer r.leases.mu.Unlock()
		e, ended := r.leases.ended[gone]
		return ended && r.leases.open[second.Presence.Name()].Sub(e.began) > ttl/gracePart*2
	})
	if n := r.Counts()["leases_ended"]; n != 0 {
		t.Errorf("%d leases of a process with a connection were ended", n)
	}
	second.Close()
	natstest.Until(t, "the lease to be ended", func() bool { return r.Counts()["leases_ended"] == 1 })
}

// TestNoLeaseIsEndedWithoutAGrace: with a disconnect grace of 0 the search for ended connections does not begin.
func TestNoLeaseIsEndedWithoutAGrace(t *testing.T) {
	r := cutOff(t, true)
	r.cfg.DisconnectGrace = 0
	if err := r.endDisconnected(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGapsAreCounted: a gap of the own lease is counted, and the detection that it puts off.
func TestGapsAreCounted(t *testing.T) {
	r := cutOff(t, true)
	mine, now := presence.Connection{Server: "a", Client: 1}, time.Now()
	r.leases.view.put("h", "18", &Seen{TTL: time.Second, Connected: mine})
	r.leases.disconnected([]presence.Connection{mine}, now)
	for _, x := range []struct{ gap, gaps, putOff uint64 }{{300, 0, 0}, {600, 1, 0}, {1_200, 2, 1}, {900, 3, 1}} {
		now = now.Add(time.Duration(x.gap) * time.Millisecond)
		r.leases.renewed(now)
		r.leases.gone(now, 2*time.Second)
		n := r.Counts()
		if n["lease_gaps"] != x.gaps || n["detections_put_off"] != x.putOff {
			t.Errorf("after a gap of %d ms: %v, want %+v", x.gap, n, x)
		}
	}
}

// TestALeaseTakesLittleMemory: a lease may have 16 KiB, and a harness 10,000 of them. The reconciler keeps little of
// each, whatever its fields are.
func TestALeaseTakesLittleMemory(t *testing.T) {
	// bytes of each, on average
	const leases, most = 1000, 1 << 10
	long := strings.Repeat("x", 15<<10)
	for name, body := range map[string]string{
		"state":      `{"state":"` + long + `"}`,
		"server":     `{"connection":{"server":"` + long + `","client":2}}`,
		"name":       `{"connection":{"server":"a","client":2,"name":"` + long + `"}}`,
		"abandoned":  `{"abandoned":"` + long + `"}`,
		"many blank": `{"abandoned":"` + strings.Repeat(" ", len(long)) + `x"}`,
		"another":    `{"other":"` + long + `"}`,
	} {
		kept := make([]*Seen, leases)
		before := heap()
		for i := range kept {
			kept[i] = readLease([]byte(body), unknownTTL)
		}
		if each := (int64(heap()) - int64(before)) / leases; each > most {
			t.Errorf("%s: a lease takes %d bytes", name, each)
		}
		runtime.KeepAlive(kept)
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLeaseNamesItsConnection: the lease that a harness writes is the one that a reconciler reads.
func TestLeaseNamesItsConnection(t *testing.T) {
	long := strings.Repeat("x", nameMax+1)
	for body, want := range map[string]presence.Connection{
		`{"connection":{"server":"a","client":2}}`: {Server: "a", Client: 2},
		`{"connection":"x"}`:                       {},
		`{"connection":7,"state":"ready"}`:         {},
		`{}`:                                       {},
		`{"connection":{"server":"a","client":2,"name":"` + long + `"}}`: {Server: "a", Client: 2},
	} {
		l := readLease([]byte(body), unknownTTL)
		if l.Connected != want || l.TTL != unknownTTL || l.Name != "" {
			t.Errorf("%s: %+v", body, l)
		}
	}
	if l := readLease([]byte(`{"connection":{"server":"a","client":2,"name":"n"}}`), unknownTTL); l.Name != "n" {
		t.Errorf("the name is %q", l.Name)
	}
}
