// Package lease draws the incarnations of harnesses, and keeps keys that live only while their process renews them.
//
// A process counts its lease as lost before any other process can see it expire, by its own monotonic clock.
package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of a lease.
const (
	leaseTTLMin     = time.Second     // the broker's minimum
	leaseMarginMax  = 2 * time.Second // a renewal this close to the end may be acknowledged and lost all the same
	leaseMarginPart = 5               // of a short lease the margin is this fraction
	leaseRenewPart  = 3               // a lease is renewed after this fraction of its TTL
	leaseBusyMax    = time.Second     // a renewal that waits longer for writes in flight counts from a later instant
	headerLease     = "Hf-Lease"      // distinguishes own writes from others'
	headerWrite     = "Hf-Write"      // distinguishes the writes of one lease
)

// Leases draws tickets and acquires leases. Its methods may be called concurrently.
type Leases struct {
	conn *core.Conn
	keys deleter
}

// deleter deletes a key in place of a revision.
type deleter interface {
	Delete(ctx context.Context, bk kv.Bucket, key string, rev uint64) error
}

// New returns the leases of the cell of a connection; keys deletes those that are released.
func New(conn *core.Conn, keys deleter) *Leases { return &Leases{conn: conn, keys: keys} }

// ticket is the value of the key of a harness's tickets.
type ticket struct {
	Incarnation string `json:"incarnation"`
	Instance    string `json:"instance"` // the connection that has drawn it
}

// last is what the key of a harness's tickets has; the zero value for a key that does not exist.
type last struct {
	n        uint64 // no earlier incarnation is greater
	rev      uint64 // which the next ticket replaces
	instance string
}

// readTicket decodes an entry. One that names no incarnation counts as its revision: in the older form the value was
// the instance alone, and the revision the incarnation. No entry counts as less than its revision.
func readTicket(m *core.Raw) last {
	l := last{n: m.Seq, rev: m.Seq, instance: string(m.Data)}
	var t struct {
		ticket
		Incarnation json.RawMessage `json:"incarnation"` // text, or a number that a person has written
	}
	if json.Unmarshal(m.Data, &t) != nil {
		return l
	}
	l.instance = t.Instance
	if n, err := strconv.ParseUint(strings.Trim(string(t.Incarnation), `"`), 10, 64); err == nil {
		l.n = max(l.n, n)
	}
	return l
}

// last reads the newest ticket of a harness; the zero value without one.
func (ls *Leases) last(ctx context.Context, key string) (last, error) {
	bucket := ls.conn.Cell.LeaseBucket()
	m, err := ls.conn.Get(ctx, core.KVStream(bucket), core.GetRequest{Last: core.KVSubject(bucket, key)})
	switch {
	case errors.Is(err, core.ErrNotFound) && !core.NoStream(err):
		return last{}, nil
	case err != nil:
		return last{}, err
	}
	return readTicket(m), nil
}

// Drawn returns the newest incarnation of a harness that was drawn, and whether this connection has drawn it; 0 if no
// ticket is stored.
func (ls *Leases) Drawn(ctx context.Context, harness string) (incarnation uint64, own bool, err error) {
	l, err := ls.last(ctx, events.TicketKey(harness))
	return l.n, l.instance == ls.conn.Instance, err
}

// Each calls fn with the incarnation and the value of each lease that a harness has, until fn returns false. A lease
// that is renewed meanwhile may come twice, and none is left out.
func (ls *Leases) Each(ctx context.Context, harness string, fn func(incarnation string, value []byte) bool) error {
	bucket := ls.conn.Cell.LeaseBucket()
	prefix := core.KVSubject(bucket, "")
	for seq := uint64(1); ; {
		m, err := ls.conn.Get(ctx, core.KVStream(bucket), core.GetRequest{Seq: seq,
			Next: core.KVSubject(bucket, events.HarnessLeaseKeys(harness))})
		switch {
		case errors.Is(err, core.ErrNotFound) && !core.NoStream(err):
			return nil
		case err != nil:
			return err
		}
		_, _, incarnation, err := events.ParseLeaseKey(strings.TrimPrefix(m.Subject, prefix))
		if deleted, _ := core.Deletion(m.Header); err == nil && !deleted && !fn(incarnation, m.Data) {
			return nil
		}
		seq = m.Seq + 1
	}
}

// Ticket returns the next incarnation of a harness: later ones are greater, numbers may be skipped. It is greater than
// above, too.
//
// It is the broker's present time in microseconds, or one more than the ticket before it if that is greater. So
// incarnations rise after tickets were lost or restored from an older copy as long as the broker's clock was not set
// back, and rise after its clock was set back as long as no ticket was lost.
func (ls *Leases) Ticket(ctx context.Context, harness string, above uint64) (incarnation uint64, err error) {
	if _, err := events.Token(harness); err != nil {
		return 0, fmt.Errorf("ticket: %w", err)
	}
	key := events.TicketKey(harness)
	for pace := core.NewBackoff(); ; {
		n, err := ls.draw(ctx, key, above)
		switch {
		// another process was first, or is about to be
		case errors.Is(err, core.ErrLostRace), errors.Is(err, core.ErrInFlight):
		default:
			return n, err
		}
		if !core.Pause(ctx, pace.NextBackOff()) {
			return 0, ls.conn.Late("draw "+key, ctx.Err())
		}
	}
}

// draw is one attempt at a ticket; [core.ErrLostRace] if another process has drawn one meanwhile.
func (ls *Leases) draw(ctx context.Context, key string, above uint64) (uint64, error) {
	// a harness may not look at the bucket's stream
	info, err := ls.conn.StreamInfo(ctx, ls.conn.Cell.LogStream())
	if err != nil {
		return 0, err
	}
	was, err := ls.last(ctx, key)
	if err != nil {
		return 0, err
	}
	least := max(was.n, above)
	if least == math.MaxUint64 {
		return 0, fmt.Errorf("draw %s: %w: the incarnation before it is %d, the greatest one", key,
			events.ErrMalformed, least)
	}
	n := max(least+1, uint64(max(info.TimeStamp.UnixMicro(), 0)))
	value, err := json.Marshal(ticket{Incarnation: strconv.FormatUint(n, 10), Instance: ls.conn.Instance})
	if err != nil {
		return 0, fmt.Errorf("draw %s: %w", key, err)
	}
	// of two draws of one connection, too, only one has stored it
	token := core.NewSecret()
	msg := &nats.Msg{Subject: core.KVSubject(ls.conn.Cell.LeaseBucket(), key), Data: value, Header: nats.Header{
		headerLease:                         {token},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(was.rev, 10)},
	}}
	verify := func(ctx context.Context) (core.Verdict, uint64, error) {
		m, err := ls.conn.Get(ctx, core.KVStream(ls.conn.Cell.LeaseBucket()), core.GetRequest{Last: msg.Subject})
		switch {
		case core.NoStream(err):
			return core.Undecided, 0, err
		case errors.Is(err, core.ErrNotFound) && was.rev == 0:
			return core.Undecided, 0, nil
		case errors.Is(err, core.ErrNotFound):
			return core.Lost, 0, nil
		case err != nil:
			return core.Undecided, 0, err
		case m.Seq == was.rev:
			return core.Undecided, 0, nil
		case m.Header.Get(headerLease) == token:
			return core.Stored, m.Seq, nil
		}
		return core.Lost, 0, nil
	}
	_, err = ls.conn.Begin(ctx, &core.Write{Op: "draw " + key, Msg: msg, Verify: verify,
		Synced: core.KVStream(ls.conn.Cell.LeaseBucket()), BusyMax: leaseBusyMax}).Wait(ctx)
	return n, err
}

// Lease is a key that lives only while it is renewed. Its methods may be called concurrently.
//
// It is lost when the broker refuses a renewal, or when none was acknowledged for its life: its TTL less a margin, by
// this process's monotonic clock, counted from before the last renewal was sent. So this process counts it as lost
// before any other process can see it expire.
type Lease struct {
	leases *Leases
	key    string
	token  string // distinguishes own writes from others'
	ttl    time.Duration
	// restored is how often the connection had been restored when the first value was made
	restored uint64

	writing sync.Mutex // one write at a time; it may wait for the broker
	rev     uint64
	value   []byte
	lost    error

	mu      sync.Mutex
	renewed time.Time // monotonic; before the last acknowledged renewal was sent
	gap     time.Time // monotonic; the last renewal that came later than half a TTL after its predecessor
}

// Acquire creates the key with a TTL of at least a second. [core.ErrExists] if another process has it.
func (ls *Leases) Acquire(ctx context.Context, key string, value []byte, ttl time.Duration) (*Lease, error) {
	return ls.AcquireWith(ctx, key, func() []byte { return value }, ttl)
}

// AcquireWith is Acquire for a value that names the connection: [Lease.Keep] renews a lease at once whose connection
// was restored since the value was made.
func (ls *Leases) AcquireWith(ctx context.Context, key string, value func() []byte, ttl time.Duration) (*Lease, error) {
	if ttl < leaseTTLMin {
		return nil, fmt.Errorf("acquire %s: %w: a TTL of %s, the least is %s", key, events.ErrMalformed, ttl,
			leaseTTLMin)
	}
	l := &Lease{leases: ls, key: key, token: core.NewSecret(), ttl: ttl, restored: ls.conn.Reconnects()}
	now := time.Now()
	err := l.write(ctx, "acquire", value())
	if errors.Is(err, core.ErrLostRace) {
		return nil, fmt.Errorf("%w: lease %s", core.ErrExists, key)
	}
	if err != nil {
		return nil, err
	}
	l.record(now)
	return l, nil
}

// write stores the value in place of the lease's revision, 0 for a key that must not exist.
func (l *Lease) write(ctx context.Context, op string, value []byte) error {
	guard, token := l.rev, core.NewSecret()
	msg := &nats.Msg{Subject: core.KVSubject(l.leases.conn.Cell.LeaseBucket(), l.key), Data: value, Header: nats.Header{
		headerLease:                         {l.token},
		headerWrite:                         {token},
		jetstream.MsgTTLHeader:              {core.TTLSeconds(l.ttl)},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(guard, 10)},
	}}
	verify := func(ctx context.Context) (core.Verdict, uint64, error) {
		m, err := l.leases.conn.Get(ctx, core.KVStream(l.leases.conn.Cell.LeaseBucket()),
			core.GetRequest{Last: msg.Subject})
		switch {
		case core.NoStream(err):
			return core.Undecided, 0, err
		case errors.Is(err, core.ErrNotFound) && guard == 0:
			return core.Undecided, 0, nil
		case errors.Is(err, core.ErrNotFound):
			return core.Lost, 0, nil
		case err != nil:
			return core.Undecided, 0, err
		case m.Seq == guard:
			return core.Undecided, 0, nil
		case m.Header.Get(headerWrite) == token:
			return core.Stored, m.Seq, nil
		case m.Header.Get(headerLease) == l.token && m.Seq > guard:
			// an earlier write that was not awaited
			guard = m.Seq
			msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(guard, 10)}
			return core.Moved, 0, nil
		}
		if deleted, _ := core.Deletion(m.Header); l.rev == 0 && deleted {
			guard = m.Seq
			msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(guard, 10)}
			return core.Moved, 0, nil
		}
		return core.Lost, 0, nil
	}
	rev, err := l.leases.conn.Begin(ctx, &core.Write{Op: op + " lease " + l.key, Msg: msg, Verify: verify,
		BusyMax: leaseBusyMax}).Wait(ctx)
	if err == nil {
		l.rev, l.value = rev, value
	}
	return err
}

// validFor returns how long a renewal is valid.
func (l *Lease) validFor() time.Duration { return l.ttl - min(leaseMarginMax, l.ttl/leaseMarginPart) }

// Renew stores value (nil: the same again) and renews the TTL. It tries until ctx or the lease's life ends.
// [core.ErrLeaseLost], from then on always: another process may have it. Any other error leaves it unchanged.
func (l *Lease) Renew(ctx context.Context, value []byte) error {
	return l.RenewWith(ctx, func() []byte { return value })
}

// RenewWith is Renew for a value that names the connection: it is made when no other renewal is in flight, so an older
// value does not replace a newer one.
func (l *Lease) RenewWith(ctx context.Context, value func() []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.lost != nil {
		return l.lost
	}
	made := func() []byte {
		if v := value(); v != nil {
			return v
		}
		return l.value
	}
	end := l.LastRenewed().Add(l.validFor())
	attempt, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	now := time.Now()
	err := l.write(attempt, "renew", made())
	// nothing of it was stored
	for errors.Is(err, core.ErrBusy) && attempt.Err() == nil {
		now = time.Now()
		err = l.write(attempt, "renew", made())
	}
	switch {
	case errors.Is(err, core.ErrLostRace):
		l.lost = fmt.Errorf("%w: %s: another process wrote it, or it expired", core.ErrLeaseLost, l.key)
	case !time.Now().Before(end):
		l.lost = fmt.Errorf("%w: %s: not renewed within %s", core.ErrLeaseLost, l.key, l.validFor())
	case err != nil:
		return err
	default:
		l.record(now)
	}
	return l.lost
}

// record keeps when an acknowledged write was sent.
func (l *Lease) record(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() || sent.Sub(l.renewed) > l.ttl/2 {
		l.gap = sent
	}
	l.renewed = sent
}

// Purge removes all but the newest keys that match the filter, deleted ones included, and returns how many it removed.
func (ls *Leases) Purge(ctx context.Context, filter string, keep int) (removed uint64, err error) {
	bucket := ls.conn.Cell.LeaseBucket()
	req := map[string]any{"filter": core.KVSubject(bucket, filter), "keep": keep}
	var resp struct{ Purged uint64 }
	err = ls.conn.Call(ctx, "purge leases "+filter, "STREAM.PURGE."+core.KVStream(bucket), req, &resp)
	return resp.Purged, err
}

// Release deletes the key, also behind a renewal that was stored and whose acknowledgement was not awaited.
// [core.ErrLeaseLost] if another process has it; a deleted one is a success.
func (l *Lease) Release(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	err := l.leases.keys.Delete(ctx, kv.Leases, l.key, l.rev)
	for errors.Is(err, core.ErrLostRace) {
		rev, readErr := l.ownAfter(ctx, l.rev)
		if readErr != nil {
			return readErr
		}
		if rev == 0 {
			err = fmt.Errorf("%w: %s: another process has it", core.ErrLeaseLost, l.key)
			break
		}
		l.rev = rev
		err = l.leases.keys.Delete(ctx, kv.Leases, l.key, rev)
	}
	if err == nil && l.lost == nil {
		l.lost = fmt.Errorf("%w: %s: released", core.ErrLeaseLost, l.key)
	}
	return err
}

// ownAfter returns the revision of the key if this lease wrote it after rev, else 0.
func (l *Lease) ownAfter(ctx context.Context, rev uint64) (uint64, error) {
	bucket := l.leases.conn.Cell.LeaseBucket()
	m, err := l.leases.conn.Get(ctx, core.KVStream(bucket), core.GetRequest{Last: core.KVSubject(bucket, l.key)})
	switch {
	case errors.Is(err, core.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case m.Seq > rev && m.Header.Get(headerLease) == l.token:
		return m.Seq, nil
	}
	return 0, nil
}

// Keep renews at the interval (0: a third of the TTL), and when the connection was restored, with the result of value
// (nil func: the same again) until ctx ends. The channel receives [core.ErrLeaseLost] once, when the lease is lost; it
// is closed when Keep ends.
func (l *Lease) Keep(ctx context.Context, every time.Duration, value func() []byte) <-chan error {
	if every <= 0 {
		every = l.ttl / leaseRenewPart
	}
	out := make(chan error, 1)
	nc := l.leases.conn.NC
	restored := nc.StatusChanged(nats.CONNECTED)
	go func() {
		defer close(out)
		defer nc.RemoveStatusListener(restored)
		if value == nil {
			value = func() []byte { return nil }
		}
		pause := every
		if nc.Stats().Reconnects != l.restored {
			pause = 0
		}
		for ; pauseUnless(ctx, pause, restored); pause = every {
			err := l.RenewWith(ctx, value)
			switch {
			case errors.Is(err, core.ErrLeaseLost):
				out <- err
				return
			case err != nil && ctx.Err() == nil:
				l.leases.conn.Log.Warn().Str("id", l.key).AnErr("err", err).Msg("lease not renewed: tried again")
			}
		}
	}()
	return out
}

// pauseUnless waits for d, or until the connection was restored. It reports whether ctx still lives.
func pauseUnless(ctx context.Context, d time.Duration, restored <-chan nats.Status) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-restored:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// LastRenewed returns when the last acknowledged renewal, or the acquisition, was sent. It has a monotonic clock
// reading.
func (l *Lease) LastRenewed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}

// Overdue reports whether no renewal was acknowledged for the lease's life, by this process's monotonic clock. An
// overdue lease is about to be lost: another process may have taken over already.
func (l *Lease) Overdue() bool { return time.Since(l.LastRenewed()) >= l.validFor() }

// Gap returns the last renewal that came more than half a TTL after the one before, or the acquisition: since then this
// process and the broker have worked without an interruption, and other processes could renew. It has a monotonic clock
// reading. [Lease.LastRenewed] shows whether an interruption is present.
func (l *Lease) Gap() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gap
}
