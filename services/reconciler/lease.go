package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of what is remembered of leases.
const (
	gapsMax      = 64
	endedKept    = time.Hour // an ended lease; after that it is as one that was never seen: its owner is dead
	harnessClass = "harness"
)

// leaseBook is the shared view of leases.
type leaseBook struct {
	margins Margins
	ready   chan struct{} // closed when all leases that were there have been seen

	mu       sync.Mutex
	view     LeaseView
	isReady  bool
	services map[string]bool // keys of service leases
	offset   time.Duration   // from the local clock to the broker's
}

func newLeaseBook(m Margins) *leaseBook {
	return &leaseBook{margins: m, ready: make(chan struct{}), view: LeaseView{Leases: map[string]map[string]*Seen{}}, services: map[string]bool{}}
}

// judge is the verdict from what has been seen; known is false for an owner whose lease never was.
func (k *leaseBook) judge(s *session.State, now time.Time) (o Owner, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isReady {
		return Owner{Life: Alive, Look: now.Add(tooEarly)}, true
	}
	return Judge(&k.view, k.margins, s, now), k.view.Leases[s.Harness][s.Incarnation] != nil
}

// local is an instant of the broker's on this process's clock.
func (k *leaseBook) local(at time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().Add(at.Sub(time.Now().Add(k.offset)))
}

// renewed notes a renewal of the own lease at an instant of the broker's, and the gap before it.
func (k *leaseBook) renewed(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := &k.view
	if last := v.Renewed; !last.IsZero() && now.Sub(last) >= gapMin {
		if len(v.Gaps) >= gapsMax {
			v.Gaps = v.Gaps[1:]
		}
		v.Gaps = append(v.Gaps, Gap{Began: last, End: now})
	}
	v.Renewed, k.offset = now, time.Until(now)
}

// absent notes that the leader has no such lease: whoever had it could not have been seen, and is judged by the start.
func (k *leaseBook) absent(s *session.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	start := k.view.Start
	k.put(s.Harness, s.Incarnation, &Seen{Exclusive: s.Exclusive, State: control.LeaseReady, TTL: k.margins.Unknown, Since: start, Renewed: start, Ended: start})
}

func (k *leaseBook) put(harness, incarnation string, l *Seen) {
	if k.view.Leases[harness] == nil {
		k.view.Leases[harness] = map[string]*Seen{}
	}
	k.view.Leases[harness][incarnation] = l
}

// renewed is told of each renewal of the own lease.
func (r *Reconciler) renewed(ctx context.Context) func(sent, acked time.Time) {
	return func(time.Time, time.Time) {
		if now, err := r.bus.Now(ctx); err == nil {
			r.leases.renewed(now)
		}
	}
}

// watchLeases follows all leases, and plans the passes that their changes call for.
func (r *Reconciler) watchLeases(ctx context.Context) error {
	filters := []string{events.HarnessLeaseKeys(""), "service.>"}
	err := r.bus.Watch(ctx, bus.Leases, filters, func(u bus.Update) error {
		now, err := r.bus.Now(ctx)
		if err != nil {
			return err
		}
		if u.Ready {
			r.leases.start(now)
			return nil
		}
		class, id, member, err := events.ParseLeaseKey(u.Key)
		switch {
		case err != nil: // somebody else's key
		case class != harnessClass:
			if r.leases.service(u.Key, !u.Deleted) {
				r.loop.WalkSoon()
			}
		default:
			if at := r.leases.seen(id, member, u.Entry, now); !at.IsZero() {
				r.plan.add(id, r.leases.local(at))
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// start says that all leases that were there have been seen.
func (k *leaseBook) start(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isReady {
		k.view.Start, k.isReady = now, true
		close(k.ready)
	}
}

// service notes a service's lease and says whether it is new since the start.
func (k *leaseBook) service(key string, alive bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !alive {
		delete(k.services, key)
		return false
	}
	known := k.services[key]
	k.services[key] = true
	return !known && k.isReady
}

// seen notes a harness's lease and says when to pass over the harness because of it, zero for not.
func (k *leaseBook) seen(harness, incarnation string, e bus.Entry, now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.view.Leases[harness][incarnation]
	if e.Deleted {
		l := &Seen{TTL: k.margins.Unknown, Since: now, Renewed: now}
		if old != nil {
			*l = *old
		}
		l.Ended, l.Released = now, !e.Expired
		k.put(harness, incarnation, l)
		k.forget(harness, now)
		if l.Released {
			return now
		}
		return now.Add(k.margins.Grace)
	}
	l := readLease(e.Value, k.margins.Unknown)
	l.Since, l.Renewed = e.At, e.At
	if old != nil {
		l.Since = old.Since
	}
	k.put(harness, incarnation, l)
	switch {
	case old != nil && old.State == l.State:
		return time.Time{}
	case l.State == leaseStarting:
		return l.Since.Add(k.margins.Adoption)
	}
	return now
}

// readLease reads what a harness says of itself. What cannot be read is alive, and takes nobody's place.
func readLease(body []byte, unknown time.Duration) *Seen {
	var l control.Lease
	if err := json.Unmarshal(body, &l); err != nil {
		return &Seen{State: control.LeaseReady, TTL: unknown}
	}
	ttl := time.Duration(l.TTLMS) * time.Millisecond
	if ttl <= 0 {
		ttl = unknown
	}
	return &Seen{Exclusive: l.Exclusive, State: l.State, TTL: ttl}
}

// forget drops leases of a harness that ended long ago.
func (k *leaseBook) forget(harness string, now time.Time) {
	for id, l := range k.view.Leases[harness] {
		if !l.Ended.IsZero() && now.Sub(l.Ended) > endedKept {
			delete(k.view.Leases[harness], id)
		}
	}
}

// judge is the verdict about a session's owner. An owner that was never seen is looked up at the leader before it is
// called dead: the watch may lag.
func (r *Reconciler) judge(ctx context.Context, s *session.State, now time.Time) (Owner, error) {
	if !s.Owned {
		return Owner{}, nil
	}
	o, known := r.leases.judge(s, now)
	if known || o.Life != Dead || o.SupersededBy != "" {
		return o, nil
	}
	_, err := r.bus.Load(ctx, bus.Leases, events.HarnessLeaseKey(s.Harness, s.Incarnation))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		r.leases.absent(s)
		return o, nil
	case err != nil:
		return Owner{Look: now.Add(tooEarly)}, err
	}
	return Owner{Life: Alive, Look: now.Add(tooEarly)}, nil
}
