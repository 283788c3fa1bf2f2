package reconciler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of the lease history.
const (
	gapsMax      = 64
	clockSlack   = 100 * time.Millisecond // the error of the broker's measured time
	endedKept    = time.Hour              // an ended lease; later it counts as never seen: its owner is dead
	harnessClass = "harness"
	earlyPart    = 5               // a lease that ends with more than this fraction of its TTL left was ended early
	overdueMin   = 2 * time.Second // how long after its TTL a lease that the broker still has counts as ended
	overdueEvery = time.Second     // interval of the search for such leases
	nameMax      = 512             // bytes of a state, and of the names of a connection; a longer one counts as none
	forgetEvery  = time.Minute     // interval of the search for leases that ended long ago

	// leasesMax is how many leases one harness may have, dead ones included. A lease takes up to 16 KiB of the broker's
	// store, which all sessions share. A user of a secured cell has at most 256 connections.
	leasesMax = 10_000

	// checkEvery is after how many changes the broker's keys of one harness are checked against leasesMax
	checkEvery = 1_000

	// writtenMax is for how many harnesses changes are counted. Beyond it some are checked early.
	writtenMax = 10_000
	// writtenAtOnce is how many are checked early together
	writtenAtOnce = 100
)

// leaseBook is the shared history of leases.
type leaseBook struct {
	margins Margins
	ready   chan struct{} // closed when all existing leases have been read

	mu       sync.Mutex
	view     LeaseView
	isReady  bool
	services map[string]bool // keys of service leases
	written  map[string]*writes
	ended    map[presence.Connection]ending
	open     map[string]time.Time // names of the connections that are asked for, and when one was last seen open
	count    leaseCounts
}

// leaseCounts are counters, which only grow.
type leaseCounts struct {
	gaps   atomic.Uint64 // of the own lease
	ended  atomic.Uint64 // leases that were ended because their connection had ended
	putOff atomic.Uint64 // leases that were not ended then, because the own lease had a gap
}

// writes counts what one harness stored among the leases since the last check: every change but the renewal of a known
// lease, also a deletion and a key that cannot be read, because the broker keeps those as well. After a check that
// removed keys renewals count, too: the broker may have removed the leases that are renewed.
type writes struct {
	since   int
	removed bool
}

// wrote counts a change of a key, by the filter for all keys of its harness.
func (b *leaseBook) wrote(u kv.Update) {
	class, rest, _ := strings.Cut(u.Key, ".")
	harness, member, ok := strings.Cut(rest, ".")
	if class != harnessClass || !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	filter := harnessClass + "." + harness + ".*"
	w := b.written[filter]
	if !u.Deleted && (w == nil || !w.removed) && b.renews(harness, member) {
		return
	}
	if w == nil {
		w = &writes{}
		b.written[filter] = w
	}
	w.since++
}

// renews reports whether a key is that of a known lease that has not ended.
func (b *leaseBook) renews(harness, member string) bool {
	_, id, incarnation, err := events.ParseLeaseKey(harnessClass + "." + harness + "." + member)
	l := b.view.Leases[id][incarnation]
	return err == nil && l != nil && l.Ended.IsZero()
}

func newLeaseBook(m Margins) *leaseBook {
	return &leaseBook{margins: m, ready: make(chan struct{}), view: LeaseView{
		Leases: map[string]map[string]*Seen{}, ranks: map[string][]string{}},
		services: map[string]bool{}, written: map[string]*writes{}, ended: map[presence.Connection]ending{}}
}

// moment is one instant on two clocks: the broker's, which may be set at any time, and this process's monotonic one.
// Liveness depends on the second alone.
type moment struct {
	events.Clock
	here time.Time
}

func atMoment(c events.Clock) moment { return moment{c, time.Now()} }

// now returns the present moment.
func (r *Reconciler) now(ctx context.Context) (moment, error) {
	c, err := r.loop.Now(ctx)
	return atMoment(c), err
}

// local converts an instant of the broker's clock to this process's clock.
func (m moment) local(at time.Time) time.Time { return m.here.Add(at.Sub(m.Now)) }

// ago converts an instant of the broker's clock to one as long ago on this process's clock; a future one counts as now.
func (m moment) ago(at time.Time) time.Time { return m.here.Add(-max(0, m.Now.Sub(at))) }

// input returns the input of a decision at this moment, without the owner.
func (m moment) input() Input { return Input{Now: m.Now, Steps: m.Steps} }

// checkOwner returns the verdict from the seen leases; known is false for an owner whose lease was never seen.
func (b *leaseBook) checkOwner(s *session.State, now moment) (o Owner, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isReady {
		return Owner{Liveness: Alive, CheckAt: now.Now.Add(tooEarly)}, true
	}
	here := *s
	here.UpdatedAt = now.ago(now.Steps.Since(s.UpdatedAt, s.Seq))
	o = CheckOwner(&b.view, b.margins, &here, now.here)
	if !o.CheckAt.IsZero() {
		o.CheckAt = now.Now.Add(o.CheckAt.Sub(now.here))
	}
	return o, b.view.Leases[s.Harness][s.Incarnation] != nil
}

// renewed records a renewal of the own lease, and the gap before it.
func (b *leaseBook) renewed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := &b.view
	if last := v.Renewed; !last.IsZero() && now.Sub(last) >= gapMin {
		if len(v.Gaps) >= gapsMax {
			v.Gaps = v.Gaps[1:]
		}
		v.Gaps = append(v.Gaps, Gap{Began: last, End: now})
		b.count.gaps.Add(1)
	}
	v.Renewed = now
}

// absent records that the leader has no such lease: its owner counts as seen from the start of the watch.
func (b *leaseBook) absent(s *session.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	start := b.view.Start
	b.view.put(s.Harness, s.Incarnation,
		&Seen{Exclusive: s.Exclusive, State: lease.Ready, TTL: b.margins.Unknown, Since: start, Renewed: start,
			Ended: start})
}

// renewed is called after each renewal of the own lease.
func (r *Reconciler) renewed(_, acked time.Time) { r.leases.renewed(acked) }

// watchLeases follows all leases, and plans the passes that their changes need.
func (r *Reconciler) watchLeases(ctx context.Context) error {
	filters := []string{events.HarnessLeaseKeys(""), "service.>"}
	err := r.bus.KV.WatchEvery(ctx, kv.Leases, filters, func(u kv.Update) error {
		now, err := r.now(ctx)
		if err == nil {
			r.leaseChanged(u, now)
		}
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// leaseChanged records one change of the leases, and plans the passes that it needs.
func (r *Reconciler) leaseChanged(u kv.Update, now moment) {
	if u.Ready {
		r.leases.start(now.here)
		return
	}
	r.leases.wrote(u)
	class, id, member, err := events.ParseLeaseKey(u.Key)
	switch {
	case err != nil, u.Unseen:
		// a foreign key, or the end of a lease that this process never saw
	case class != harnessClass:
		if r.leases.service(u.Key, !u.Deleted) {
			r.loop.WalkSoon()
		}
	default:
		if at := r.leases.seen(id, member, u.Entry, now); !at.IsZero() {
			r.plan.add(id, at)
		}
	}
}

// start records that all existing leases have been read.
func (b *leaseBook) start(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isReady {
		b.view.Start, b.isReady = now, true
		close(b.ready)
	}
}

// service records a service's lease and reports whether it is new since the start.
func (b *leaseBook) service(key string, alive bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !alive {
		delete(b.services, key)
		return false
	}
	known := b.services[key]
	b.services[key] = true
	return !known && b.isReady
}

// seen records a harness's lease and returns when to pass over the harness because of it, zero for never.
func (b *leaseBook) seen(harness, incarnation string, e kv.Entry, now moment) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.view.Leases[harness][incarnation]
	if old != nil && old.Abandoned != "" {
		// it ended then, and an incarnation does not live again
		return time.Time{}
	}
	if e.Deleted {
		l := &Seen{TTL: b.margins.Unknown, Since: now.here, Renewed: now.here}
		if old != nil {
			*l = *old
		}
		l.Ended, l.Released = now.here, !e.Expired
		l.Early = old != nil && e.Expired && now.here.Sub(old.Renewed) < l.TTL-l.TTL/earlyPart
		b.view.put(harness, incarnation, l)
		if l.Released {
			return now.here
		}
		return now.here.Add(b.margins.Grace)
	}
	l := readLease(e.Value, b.margins.Unknown)
	l.Since, l.Renewed, l.Received, l.Rev, l.Kept = now.here, now.here, now.here, e.Rev, e.TTL
	// it was renewed before the watch started
	if !b.isReady {
		l.Since, l.Renewed = now.ago(e.At), now.ago(e.At)
	}
	// a renewal is not a claim: it does not extend the adoption
	if old != nil {
		l.Since, l.Claimed, l.Checked, l.Unread, l.Readable = old.Since, old.Claimed, old.Checked, old.Unread,
			old.Readable
	}
	if l.Abandoned != "" {
		l.Ended, l.Released = now.here, true
	}
	b.view.put(harness, incarnation, l)
	switch {
	case l.Abandoned != "":
		return now.here
	case old != nil && old.State == l.State:
		return time.Time{}
	case l.State == lease.Starting:
		return l.Since.Add(b.margins.Adoption)
	}
	return now.here
}

// readLease decodes a harness's lease. A lease that cannot be decoded counts as alive, and supersedes nothing. It keeps
// little of a lease that is long: a harness may have many.
func readLease(body []byte, unknown time.Duration) *Seen {
	var l lease.Record
	if err := json.Unmarshal(body, &l); err != nil {
		return &Seen{State: lease.Ready, TTL: unknown}
	}
	ttl := time.Duration(l.TTLMS) * time.Millisecond
	if ttl <= 0 {
		ttl = unknown
	}
	// a part of a text keeps all of it
	seen := &Seen{Exclusive: l.Exclusive, State: l.State, TTL: ttl, Connected: l.Connection.Connection,
		Abandoned: strings.Clone(events.Detail(l.Abandoned))}
	if len(l.Connection.Name) <= nameMax {
		seen.Name = l.Connection.Name
	}
	// no process is in such a state
	if len(l.State) > nameMax {
		seen.State = lease.Ready
	}
	// no broker has such an id
	if len(l.Connection.Server) > nameMax {
		seen.Connected = presence.Connection{}
	}
	return seen
}

// forgetEnded drops all leases that ended long ago.
func (b *leaseBook) forgetEnded(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for harness := range b.view.Leases {
		b.forget(harness, now)
	}
}

// forget drops leases of a harness that ended long ago. b.mu is held.
func (b *leaseBook) forget(harness string, now time.Time) {
	for id, l := range b.view.Leases[harness] {
		if !l.Ended.IsZero() && now.Sub(l.Ended) > endedKept {
			b.view.put(harness, id, nil)
		}
	}
}

// adopting returns the living incarnations of a harness that are not ready and may adopt, and since when the log was
// not read for their claims, by the broker's clock.
func (b *leaseBook) adopting(harness string, now moment) (ids []string, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var unread time.Time
	for id, l := range b.view.Leases[harness] {
		if !l.Exclusive || !l.Ended.IsZero() || !l.adopting(b.margins, now.here) {
			continue
		}
		ids = append(ids, id)
		if from := later(l.Since, l.Checked); unread.IsZero() || from.Before(unread) {
			unread = from
		}
	}
	return ids, now.Now.Add(unread.Sub(now.here) - clockSlack)
}

// claims records the result of reading the log for the claims of incarnations, with the last claim of each, by this
// process's clock. After a failed attempt it records that the log can be read again: until now no incarnation could
// claim.
func (b *leaseBook) claims(harness string, ids []string, last map[string]time.Time, checked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		l := b.view.Leases[harness][id]
		if l == nil {
			continue
		}
		l.Checked, l.Claimed = later(l.Checked, checked), later(l.Claimed, last[id])
		if l.Unread {
			l.Unread, l.Readable = false, checked
		}
	}
}

// unread records that the log could not be read for the claims of incarnations.
func (b *leaseBook) unread(harness string, ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if l := b.view.Leases[harness][id]; l != nil {
			l.Unread = true
		}
	}
}

// learnClaims reads from the log which sessions the starting incarnations of a harness have claimed recently: those
// that claim get more time, and so do those that could not, because the log could not be read.
func (r *Reconciler) learnClaims(ctx context.Context, harness string) error {
	now, err := r.now(ctx)
	if err != nil {
		return err
	}
	return r.learnClaimsAt(ctx, harness, now)
}

// learnClaimsAt is [Reconciler.learnClaims] at a moment.
func (r *Reconciler) learnClaimsAt(ctx context.Context, harness string, now moment) error {
	ids, since := r.leases.adopting(harness, now)
	if len(ids) == 0 {
		return nil
	}
	last := map[string]time.Time{}
	err := r.bus.Log.Since(ctx, harness, since, func(c events.Commit) error {
		for i := range c.Events {
			if f, ok := c.Events[i].Fact.(events.SessionClaimed); ok && c.Writer == events.WriterHarness {
				last[f.Incarnation] = now.ago(now.Steps.Since(c.At, c.Seq))
			}
		}
		return nil
	})
	if err != nil {
		r.leases.unread(harness, ids)
		return err
	}
	r.leases.claims(harness, ids, last, now.here)
	return nil
}

// checkOwner returns the verdict on a session's owner. It asks the leader for the lease of an owner that was never seen
// before it returns dead: the watch may lag.
func (r *Reconciler) checkOwner(ctx context.Context, s *session.State, now moment) (Owner, error) {
	if !s.Owned {
		return Owner{}, nil
	}
	o, known := r.leases.checkOwner(s, now)
	if known || o.Liveness != Dead || o.SupersededBy != "" {
		return o, nil
	}
	_, err := r.bus.KV.Load(ctx, kv.Leases, events.HarnessLeaseKey(s.Harness, s.Incarnation))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		r.leases.absent(s)
		return o, nil
	case err != nil:
		return Owner{CheckAt: now.Now.Add(tooEarly)}, err
	}
	return Owner{Liveness: Alive, CheckAt: now.Now.Add(tooEarly)}, nil
}

// findOverdue ends leases that the broker keeps for too long, because its clock was set back: it would keep the lease
// of a dead process until its clock has caught up. The clock is that of the broker that leads the leases, which may
// differ from the log's: only the lease itself shows that it was set.
func (r *Reconciler) findOverdue(ctx context.Context) error {
	tick, forget := time.NewTicker(overdueEvery), time.NewTicker(forgetEvery)
	defer tick.Stop()
	defer forget.Stop()
	for {
		select {
		case <-tick.C:
		case <-forget.C:
			r.leases.forgetEnded(time.Now())
			continue
		case <-ctx.Done():
			return nil
		}
		if !r.bus.Connected() {
			continue
		}
		for _, x := range r.leases.overdue(time.Now()) {
			e, err := r.bus.KV.Load(ctx, kv.Leases, events.HarnessLeaseKey(x.harness, x.incarnation))
			if err == nil && r.leases.end(x, e.Rev) {
				r.log.Warn().Str("id", x.harness).Str("entity", "lease").Str("incarnation",
					x.incarnation).Msg("not renewed for its TTL, and still kept by the broker: ended; was the " +
					"broker's clock set back?")
				r.plan.add(x.harness, time.Now().Add(r.leases.margins.Grace))
			}
		}
	}
}

// removeSurplus removes the oldest keys of each harness that has stored more than leasesMax. Other leases stay: a
// harness that floods the bucket harms itself only.
func (r *Reconciler) removeSurplus(ctx context.Context) error {
	tick := time.NewTicker(overdueEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		for filter, since := range r.leases.surplus() {
			removed, err := r.bus.Leases.Purge(ctx, filter, leasesMax)
			if err != nil {
				r.log.Warn().AnErr("err", err).Str("entity", filter).
					Msg("its oldest leases are not removed: trying again")
				continue
			}
			r.leases.checked(filter, since, removed)
			if removed > 0 {
				r.log.Warn().Str("entity", filter).Msg(fmt.Sprintf(
					"a harness stored more than %d leases: the %d oldest are removed", leasesMax, removed))
			}
		}
	}
}

// surplus returns the filters of the harnesses that may have stored more keys than they may, with the number of changes
// since the last check.
func (b *leaseBook) surplus() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string]int{}
	for filter, w := range b.written {
		if w.since >= checkEvery || w.removed && w.since > 0 {
			found[filter] = w.since
		}
	}
	for harness, leases := range b.view.Leases {
		if filter := events.HarnessLeaseKeys(harness); len(leases) > leasesMax && found[filter] == 0 {
			found[filter] = 0
		}
	}
	early := min(len(b.written)-writtenMax, writtenAtOnce)
	for filter, w := range b.written {
		if early <= 0 {
			break
		}
		if _, due := found[filter]; !due {
			found[filter] = w.since
			early--
		}
	}
	return found
}

// checked records that the broker removed so many keys of a harness when this many changes had been seen.
func (b *leaseBook) checked(filter string, since int, removed uint64) {
	b.mu.Lock()
	w := writes{since: -since, removed: removed > 0}
	if old := b.written[filter]; old != nil {
		w.since += old.since
	}
	delete(b.written, filter)
	if w != (writes{}) {
		b.written[filter] = &w
	}
	b.mu.Unlock()
	_, harness, _, err := events.ParseLeaseKey(strings.TrimSuffix(filter, "*") + "1")
	if err == nil {
		b.keepNewest(harness, leasesMax)
	}
}

// keepNewest forgets all leases of a harness but the newest ones, and returns how many it forgot. A session whose lease
// is forgotten is judged by what the broker has.
func (b *leaseBook) keepNewest(harness string, keep int) (forgotten int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	leases := b.view.Leases[harness]
	newer := func(a, b string) int { return cmp.Compare(leases[b].Rev, leases[a].Rev) }
	ids := slices.SortedFunc(maps.Keys(leases), newer)
	for _, id := range ids[min(keep, len(ids)):] {
		b.view.put(harness, id, nil)
		forgotten++
	}
	return forgotten
}

// overdueLease is a lease that was not renewed within its TTL.
type overdueLease struct {
	harness, incarnation string
	rev                  uint64
}

// overdue returns the leases that the broker should have ended by this process's clock.
func (b *leaseBook) overdue(now time.Time) []overdueLease {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []overdueLease
	for harness, leases := range b.view.Leases {
		for incarnation, l := range leases {
			if l.Ended.IsZero() && l.Kept > 0 && now.Sub(l.Received) > l.Kept+overdueMin {
				all = append(all, overdueLease{harness, incarnation, l.Rev})
			}
		}
	}
	return all
}

// end ends an overdue lease, unless it was renewed after all.
func (b *leaseBook) end(x overdueLease, rev uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.view.Leases[x.harness][x.incarnation]
	if l == nil || !l.Ended.IsZero() || l.Rev != x.rev || rev != x.rev {
		return false
	}
	ended := *l
	ended.Ended = l.Received.Add(l.Kept)
	b.view.put(x.harness, x.incarnation, &ended)
	return true
}
