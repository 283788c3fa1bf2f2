package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of a lease.
const (
	leaseTTLMin     = time.Second     // the broker knows no shorter one
	leaseMarginMax  = 2 * time.Second // a renewal so near the end may be acknowledged and lost all the same
	leaseMarginPart = 5               // of a short lease the margin is only one part in so many
	leaseRenewPart  = 3               // a lease is renewed after one part in so many of its TTL
	headerLease     = "Hf-Lease"      // tells our own writes from others'
)

// Ticket draws the next incarnation of a harness: later ones are greater, numbers may be left out.
func (b *Bus) Ticket(ctx context.Context, harness string) (incarnation uint64, err error) {
	if _, err := events.Token(harness); err != nil {
		return 0, fmt.Errorf("bus: ticket: %w", err)
	}
	key := events.TicketKey(harness)
	return b.put(ctx, "draw "+key, &nats.Msg{Subject: kvSubject(b.bucket(Leases), key), Data: []byte(b.instance)})
}

// put publishes without a guard until it is acknowledged or ctx ends; it may be stored twice.
func (b *Bus) put(ctx context.Context, op string, m *nats.Msg) (uint64, error) {
	for pace := newBackoff(); ; {
		seq, err := b.ack(ctx, b.send(ctx, m))
		if err == nil {
			return seq, nil
		}
		if !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return 0, fmt.Errorf("bus: %s: %w", op, err)
		}
		pause(ctx, pace.NextBackOff())
	}
}

// Lease is a key that lives only while it is renewed. Its methods may be called at the same time.
//
// It is lost when the broker refuses a renewal, or when none was acknowledged for its life: its TTL less a margin, by
// this process's monotonic clock, counted from before the last renewal was sent. So this side counts it as lost before
// anybody else can see it expire.
type Lease struct {
	b     *Bus
	key   string
	token string // tells our writes from others'
	ttl   time.Duration

	writing sync.Mutex // one write at a time; it may wait for the broker
	rev     uint64
	value   []byte
	lost    error

	mu      sync.Mutex
	renewed time.Time // monotonic; before the last acknowledged renewal was sent
	gap     time.Time // monotonic; the last renewal that came later than half a TTL after its predecessor
}

// AcquireLease creates the key with a TTL of at least a second. [ErrExists] when somebody has it.
func (b *Bus) AcquireLease(ctx context.Context, key string, value []byte, ttl time.Duration) (*Lease, error) {
	if ttl < leaseTTLMin {
		return nil, fmt.Errorf("bus: acquire %s: %w: a TTL of %s, the least is %s", key, events.ErrMalformed, ttl, leaseTTLMin)
	}
	l := &Lease{b: b, key: key, token: nuid.Next(), ttl: ttl}
	now := time.Now()
	err := l.write(ctx, "acquire", value)
	if errors.Is(err, ErrLostRace) {
		return nil, fmt.Errorf("%w: lease %s", ErrExists, key)
	}
	if err != nil {
		return nil, err
	}
	l.note(now)
	return l, nil
}

// write stores the value in place of the lease's revision, 0 for a key that must not be alive.
func (l *Lease) write(ctx context.Context, op string, value []byte) error {
	guard := l.rev
	msg := &nats.Msg{Subject: kvSubject(l.b.bucket(Leases), l.key), Data: value, Header: nats.Header{
		headerLease:                         {l.token},
		jetstream.MsgTTLHeader:              {ttlSeconds(l.ttl)},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(guard, 10)},
	}}
	look := func(ctx context.Context) (verdict, uint64, error) {
		m, err := l.b.get(ctx, kvStream(l.b.bucket(Leases)), getRequest{Last: msg.Subject})
		switch {
		case noStream(err):
			return undecided, 0, err
		case errors.Is(err, ErrNotFound) && guard == 0:
			return undecided, 0, nil
		case errors.Is(err, ErrNotFound):
			return lost, 0, nil
		case err != nil:
			return undecided, 0, err
		case m.Seq == guard:
			return undecided, 0, nil
		case m.Header.Get(headerLease) == l.token && m.Seq > guard:
			return stored, m.Seq, nil
		}
		if deleted, _ := deletion(m.Header); l.rev == 0 && deleted {
			guard = m.Seq
			msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(guard, 10)}
			return moved, 0, nil
		}
		return lost, 0, nil
	}
	rev, err := l.b.begin(ctx, &write{op: op + " lease " + l.key, msg: msg, look: look}).Wait(ctx)
	if err == nil {
		l.rev, l.value = rev, value
	}
	return err
}

// life is how long a renewal is good for.
func (l *Lease) life() time.Duration { return l.ttl - min(leaseMarginMax, l.ttl/leaseMarginPart) }

// Renew stores value (nil: the same again) and gives the lease another TTL. It keeps trying until ctx or the lease's
// life ends. [ErrLeaseLost], from then on always: it is no longer ours. Any other error leaves it as it was.
func (l *Lease) Renew(ctx context.Context, value []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.lost != nil {
		return l.lost
	}
	if value == nil {
		value = l.value
	}
	end := l.LastRenewed().Add(l.life())
	attempt, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	now := time.Now()
	err := l.write(attempt, "renew", value)
	switch {
	case errors.Is(err, ErrLostRace):
		l.lost = fmt.Errorf("%w: %s: somebody else wrote it, or it expired", ErrLeaseLost, l.key)
	case !time.Now().Before(end):
		l.lost = fmt.Errorf("%w: %s: not renewed within %s", ErrLeaseLost, l.key, l.life())
	case err != nil:
		return err
	default:
		l.note(now)
	}
	return l.lost
}

// note keeps when a write was sent that has been acknowledged.
func (l *Lease) note(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() || sent.Sub(l.renewed) > l.ttl/2 {
		l.gap = sent
	}
	l.renewed = sent
}

// Release deletes the key. [ErrLeaseLost] when somebody else has it; one that is gone already is a success.
func (l *Lease) Release(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	err := l.b.Delete(ctx, Leases, l.key, l.rev)
	if errors.Is(err, ErrLostRace) {
		err = fmt.Errorf("%w: %s: somebody else has it", ErrLeaseLost, l.key)
	}
	if err == nil && l.lost == nil {
		l.lost = fmt.Errorf("%w: %s: released", ErrLeaseLost, l.key)
	}
	return err
}

// Keep renews every so often (0: a third of the TTL) with what value returns (nil func: the same again) until ctx ends.
// The channel gets [ErrLeaseLost] once, when the lease is lost; it is closed when Keep is over.
func (l *Lease) Keep(ctx context.Context, every time.Duration, value func() []byte) <-chan error {
	if every <= 0 {
		every = l.ttl / leaseRenewPart
	}
	out := make(chan error, 1)
	go func() {
		defer close(out)
		for next := every; pause(ctx, next); next = every {
			var v []byte
			if value != nil {
				v = value()
			}
			err := l.Renew(ctx, v)
			switch {
			case errors.Is(err, ErrLeaseLost):
				out <- err
				return
			case err != nil && ctx.Err() == nil:
				l.b.log.Warn().Str("id", l.key).AnErr("err", err).Msg("lease not renewed: tried again")
			}
		}
	}()
	return out
}

// LastRenewed is when the last acknowledged renewal, or the acquisition, was sent. It has a monotonic clock reading.
func (l *Lease) LastRenewed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}

// Overdue says whether no renewal was acknowledged for the lease's life, by this process's monotonic clock. An overdue
// lease is about to be lost: another process may have taken over already.
func (l *Lease) Overdue() bool { return time.Since(l.LastRenewed()) >= l.life() }

// Gap is the last renewal that came more than half a TTL after the one before, or the acquisition: since then, without
// an interruption, this process and the broker have been well, and who did not renew could have. It has a monotonic
// clock reading. A look at [Lease.LastRenewed] tells whether an interruption is under way.
func (l *Lease) Gap() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gap
}

// How an object's description takes the place of an older one.
const (
	headerRollup  = "Nats-Rollup"
	rollupSubject = "sub"
)

// PutObject stores content that belongs to a session and returns its name; what is there already is not stored again.
// Errors: a refusal (413) for what is larger than [events.ObjectBytesMax]; [ErrUnreachable]: put it again.
func (b *Bus) PutObject(ctx context.Context, r events.Ref, content []byte) (name string, err error) {
	if err := r.Validate(); err != nil {
		return "", fmt.Errorf("bus: object: %w", err)
	}
	if len(content) > events.ObjectBytesMax {
		return "", events.TooLarge(fmt.Sprintf("the content takes %d bytes: send less", len(content)), events.ObjectBytesMax)
	}
	info := object.New(b.cell.ObjectBucket(), events.ObjectName(r, content), nuid.Next(), content)
	if there, err := b.objectInfo(ctx, info.Name); err == nil && there.Digest == info.Digest || err != nil && !errors.Is(err, ErrNotFound) {
		return info.Name, err
	}
	op := "store object " + info.Name
	for n := range info.Chunks { // one after the other: who reads puts them together as they are stored
		part := content[n*object.ChunkBytes : min((n+1)*object.ChunkBytes, len(content))]
		msg := &nats.Msg{Subject: object.Chunks(info.Bucket, info.NUID), Data: part, Header: nats.Header{jetstream.MsgIDHeader: {info.NUID + "." + strconv.Itoa(n)}}}
		if err := b.repeat(ctx, op, msg, b.send(ctx, msg)); err != nil {
			return info.Name, err
		}
	}
	meta, err := json.Marshal(info)
	if err != nil {
		return info.Name, fmt.Errorf("bus: %s: %w", op, err)
	}
	_, err = b.put(ctx, op, &nats.Msg{Subject: object.Meta(info.Bucket, info.Name), Data: meta, Header: nats.Header{headerRollup: {rollupSubject}}})
	return info.Name, err
}

func (b *Bus) objectInfo(ctx context.Context, name string) (object.Info, error) {
	bucket := b.cell.ObjectBucket()
	m, err := b.get(ctx, object.Stream(bucket), getRequest{Last: object.Meta(bucket, name)})
	if err != nil {
		return object.Info{}, err
	}
	info, err := object.Parse(m.Data)
	if err == nil && info.Deleted {
		err = fmt.Errorf("%w: object %s: deleted", ErrNotFound, name)
	}
	return info, err
}

// HasObject is nil for an object that is there, [ErrNotFound] for one that is not.
func (b *Bus) HasObject(ctx context.Context, name string) error {
	_, err := b.objectInfo(ctx, name)
	return err
}

// Object is the content of an object; [ErrNotFound] when it is not there, or was removed with its session.
func (b *Bus) Object(ctx context.Context, name string) ([]byte, error) {
	info, err := b.objectInfo(ctx, name)
	if err != nil {
		return nil, err
	}
	content, next := make([]byte, 0, min(max(info.Size, 0), events.ObjectBytesMax)), uint64(1)
	for len(content) < info.Size {
		m, err := b.get(ctx, object.Stream(info.Bucket), getRequest{Seq: next, Next: object.Chunks(info.Bucket, info.NUID)})
		if err != nil {
			return nil, fmt.Errorf("bus: object %s: %w", name, err)
		}
		content, next = append(content, m.Data...), m.Seq+1
	}
	if r, err := events.ParseObjectName(name); err == nil && events.ObjectName(r, content) != name {
		return nil, fmt.Errorf("bus: %w: %s: its name is another content's", object.ErrDamaged, name)
	}
	return content, info.Check(content)
}

// Objects gives fn the name of every object.
func (b *Bus) Objects(ctx context.Context, fn func(name string) error) error {
	bucket := b.cell.ObjectBucket()
	stream, err := b.streamInfo(ctx, object.Stream(bucket))
	if err != nil {
		return err
	}
	s := span{stream: object.Stream(bucket), filter: object.Metas(bucket), from: 1, last: stream.State.LastSeq}
	return b.replay(ctx, s, func(m *message) error {
		if info, err := object.Parse(m.Data); err == nil && !info.Deleted {
			return fn(info.Name)
		}
		return nil
	})
}

// DeleteObject removes an object for good. One that is not there is a success.
func (b *Bus) DeleteObject(ctx context.Context, name string) error {
	info, err := b.objectInfo(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	for _, subject := range []string{object.Chunks(info.Bucket, info.NUID), object.Meta(info.Bucket, name)} { // what is left half-way is found again
		var resp struct{}
		if err == nil {
			err = b.call(ctx, "remove object "+name, "STREAM.PURGE."+object.Stream(info.Bucket), map[string]any{"filter": subject}, &resp)
		}
	}
	return err
}
