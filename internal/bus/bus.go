// Package bus is the only access to NATS. It appends with the session's compare-and-set, reads from the leader, and has
// documents and views, watches, leases, timers, ordered delivery and requests. It exports nothing of nats.go, and
// [translate] turns every foreign error into one of this package's errors, once.
//
// Rules for the whole package:
//
//  1. A write that was acknowledged is stored. A write whose acknowledgement was lost is looked up, and its true result
//     returned; only if the context ends first is the outcome unknown, and the error then says so ([ErrUnreachable]).
//  2. A guarded write is sent again only with the same guard, so sending again cannot store it twice.
//  3. The stream's leader answers the reads that decisions depend on ([Bus.Read], [Bus.Load]).
//  4. While the broker is away nothing is buffered: calls wait for its return until their context ends.
package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/batcher"
	"github.com/holdfast-dev/holdfast/internal/priority"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of a connection.
const (
	reconnectDelayMinMS = 20    // first pause between attempts to connect
	reconnectDelayMaxMS = 500   // longest pause: the delay until a process notices that the broker is back
	connectTimeoutMS    = 2_000 // for one attempt
	pingIntervalMS      = 3_000 // a silent connection is found dead after three of these
	// for one write to the socket: the connection to a broker that reads nothing for so long is closed as well
	writeTimeoutMS   = 9_000
	drainTimeoutMS   = 5_000 // for pending work at a close
	ackTimeoutMS     = 2_000 // an acknowledgement later than this is looked up: its leader may be gone
	requestTimeoutMS = 2_000 // for one request to the JetStream API, which is then made again
	publishWindowMax = 4_096 // publishes without an acknowledgement yet
	// how long a measured offset to the broker's clock is used before it is measured again meanwhile
	clockFreshMS    = 1_000
	clockOldMS      = 5_000 // how long it is used at all, while the broker answers
	clockPatienceMS = 500   // a later answer says too little about the time
	clockQuickMS    = 2     // an answer that says enough
	// how long a measurement that took longer is used: the first ones of a process are slow
	clockPoorMS          = 500
	clockPoorMax         = 20 // after this many they will not improve
	defaultFeedAge       = 72 * time.Hour
	defaultConnectionTag = "holdfast"
)

// InProcess is an embedded server, reached without a socket.
type InProcess interface {
	// InProcessConn is a new connection to the server.
	InProcessConn() (net.Conn, error)
}

// syncing is an embedded server that reports whether it syncs each write.
type syncing interface{ SyncsEach() bool }

// Config configures a connection. The zero value of each field means its default.
type Config struct {
	// URL of the broker, nats://host:port, several separated by commas. May be empty when Server is set.
	URL string
	// Server is an embedded broker; it takes the place of URL.
	Server InProcess
	// Synced: the broker is one node that syncs each write before it acknowledges it, so concurrent writes are sent
	// together. Default: Server decides. Wrongly set: concurrent writes take a few milliseconds longer.
	Synced bool
	// Creds is the path of a credentials file; none by default.
	Creds string
	// PasswordFile is the path of a file with the password of the user in URL. Default: the URL has it.
	PasswordFile string
	// NKey is the path of a file with the seed of an nkey to log in with; none by default.
	NKey string
	// TLSCA is the path of a file with the authorities whose certificates a broker may show, in PEM. Default: the
	// system's.
	TLSCA string
	// TLSCert and TLSKey are the paths of this client's certificate and its key, in PEM; none by default.
	TLSCert, TLSKey string
	// Name of the connection, seen in the broker's monitoring. Default: holdfast.
	Name string
	// Prefix of the cell. Default: hf.
	Prefix string
	// Inbox is the prefix of the subjects that replies arrive on, see [events.Inbox]: in a secured cell a user may
	// subscribe to no other. Default: _INBOX.
	Inbox string
	// Asker is the user on whose behalf requests are sent, if the broker has users. Default: none, as in a cell without
	// users.
	Asker events.Asker
	// Replicas of each stream and bucket, 1, 3 or 5. Default: 1. With too few a lost disk is lost data.
	Replicas int
	// FeedAge is how long the feed keeps facts. Default: 72 h; negative: no feed.
	FeedAge time.Duration
	// LogBytesMax is the size, in bytes, at which the log refuses new commits. Default: 0, no limit but the disk's.
	LogBytesMax int64
	// ObjectBytesMax is the size, in bytes, at which large contents are refused. Default: 0, no limit but the disk's.
	ObjectBytesMax int64
	// Log takes one line for each lost and regained connection. Default: nothing is logged.
	Log zerolog.Logger
}

// Bus is one connection to one cell. All methods may be called concurrently.
type Bus struct {
	nc        *nats.Conn
	js        jetstream.JetStream
	room      room // in the log
	cell      events.Cell
	cfg       Config
	log       zerolog.Logger
	instance  string
	together  atomic.Bool // concurrent writes to a stream are sent as one batch
	appends   batcher.Batcher[*batchedWrite]
	priority  *priority.Gate // shared by all connections of the broker's process, else of this connection
	denied    *denials
	attempts  attempts
	isolation isolation
	clock     clock

	authErr atomic.Pointer[error] // the last refusal of the login; nil while connected

	mu          sync.Mutex
	onReconnect []func()
	awayText    string // the last reason for a failed reconnection
}

// Pending is a write in flight. Wait once for it.
type Pending struct {
	wait func(ctx context.Context) (uint64, error)
}

// Wait blocks until the write's result is certain or ctx ends. It returns the sequence (log) or revision (buckets) and
// the same errors as the blocking form of the write. The zero Pending is done: (0, nil).
func (p Pending) Wait(ctx context.Context) (uint64, error) {
	if p.wait == nil {
		return 0, nil
	}
	return p.wait(ctx)
}

// batchedWrite is a guarded write that may be sent in a batch with others.
type batchedWrite struct {
	w    *write
	key  string        // the subject of its guard: the broker does not compare the subjects of a batch's writes
	done chan struct{} // closed when s is set
	s    sent          // the outcome
}

// beginBatched is [Bus.begin] for concurrent writes: those that are added while others are sent form the next batch. A
// write whose context ends before that is removed.
func (b *Bus) beginBatched(key string, w *write) Pending {
	x := &batchedWrite{w: w, key: key, done: make(chan struct{})}
	remove := b.appends.Add(x)
	return Pending{wait: func(ctx context.Context) (uint64, error) {
		select {
		case <-x.done:
			return b.settle(ctx, w, x.s)
		case <-ctx.Done():
			remove()
			return 0, fmt.Errorf("bus: %s: %w", w.op, b.late("publish to "+w.msg.Subject, ctx.Err()))
		}
	}}
}

// sendBatched sends writes as one batch, or one by one if they are few or the batch is refused, and waits for the
// acknowledgements.
func (b *Bus) sendBatched(writes []*batchedWrite) {
	ctx := context.Background() // a missing acknowledgement soon becomes an error
	if len(writes) >= batchMin {
		msgs := make([]*nats.Msg, len(writes))
		for i, x := range writes {
			msgs[i] = x.w.msg
		}
		if last, err := b.ack(ctx, b.sendBatch(ctx, msgs)); err == nil {
			for i, x := range writes {
				x.s = sent{done: true, seq: last - uint64(len(writes)-1-i)}
				close(x.done)
			}
			return
		}
	}
	for _, x := range writes {
		x.s = b.send(ctx, x.w.msg)
	}
	for _, x := range writes {
		s := sent{subject: x.s.subject, at: x.s.at, done: true}
		s.seq, s.failed = b.ack(ctx, x.s)
		x.s = s
		close(x.done)
	}
}

// Open connects to the broker and checks its version and JetStream. It tries until ctx ends, then fails with
// [ErrUnreachable], or [ErrNoAnswer]; [ErrForbidden], [ErrNoJetStream] and [ErrTooOld] end it at once. Later the
// connection is restored without a limit.
func Open(ctx context.Context, cfg Config) (*Bus, error) {
	cfg.Prefix = orDefault(cfg.Prefix, events.DefaultPrefix)
	cfg.Name = orDefault(cfg.Name, defaultConnectionTag)
	cfg.Replicas = max(cfg.Replicas, 1)
	if cfg.FeedAge == 0 {
		cfg.FeedAge = defaultFeedAge
	}
	cell, err := events.NewCell(cfg.Prefix)
	if err != nil {
		return nil, fmt.Errorf("bus: open: %w", err)
	}
	if err := errors.Join(checkCreds(cfg.Creds), checkFiles(cfg)); err != nil {
		return nil, err
	}
	server, known := cfg.Server.(syncing)
	b := &Bus{cell: cell, cfg: cfg, log: cfg.Log, instance: nuid.Next(), priority: gateOf(cfg), denied: newDenials()}
	b.together.Store(cfg.Synced || known && server.SyncsEach())
	b.appends = batcher.Batcher[*batchedWrite]{CountMax: batchMessagesMax, SizeMax: batchBytesMax, Flush: b.sendBatched,
		Key:  func(x *batchedWrite) string { return x.key },
		Size: func(x *batchedWrite) int { return len(x.w.msg.Data) }}
	if err := b.connect(ctx); err != nil {
		return nil, err
	}
	if err := b.check(ctx); err != nil {
		b.nc.Close()
		return nil, err
	}
	return b, nil
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}

// connect tries until it is connected, ctx ends or the broker refuses the login.
func (b *Bus) connect(ctx context.Context) error {
	var last error
	nkey := newNKeyLogin(b.cfg.NKey)
	try := func() error {
		nc, err := nats.Connect(dialed(b.cfg), b.options(nkey)...)
		if err == nil {
			nkey.connected(nc)
			b.nc = nc
			return nil
		}
		err = ofTLS(&b.cfg, err)
		last = err
		if isAuth(err) || errors.As(err, new(*url.Error)) {
			return backoff.Permanent(err)
		}
		return err
	}
	said := ""
	err := backoff.RetryNotify(try, backoff.WithContext(newBackoff(), ctx), func(err error, _ time.Duration) {
		if err.Error() != said { // each reason is logged once
			said = err.Error()
			b.log.Warn().AnErr("err", err).Str("service",
				b.cfg.Name).Msg("no broker at " + b.target() + " yet: trying on")
		}
	})
	if err != nil {
		if isAuth(last) {
			return translate("connect to "+b.target(), last)
		}
		return unreachable("connect to "+b.target(), last)
	}
	b.js, err = jetstream.New(b.nc,
		jetstream.WithPublishAsyncMaxPending(publishWindowMax),
		jetstream.WithPublishAsyncTimeout(ackTimeoutMS*time.Millisecond),
		jetstream.WithDefaultTimeout(requestTimeoutMS*time.Millisecond))
	if err != nil {
		b.nc.Close()
		return fmt.Errorf("bus: open: %w", err)
	}
	return nil
}

// newBackoff returns the pauses of every endless loop here: from 20 ms to half a second, without an end.
func newBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(reconnectDelayMinMS*time.Millisecond),
		backoff.WithMaxInterval(reconnectDelayMaxMS*time.Millisecond),
		backoff.WithMaxElapsedTime(0))
}

// target returns the broker's URL for people, who may show it to others: without passwords.
func (b *Bus) target() string {
	if b.cfg.Server != nil {
		return "the embedded broker"
	}
	return Redacted(orDefault(b.cfg.URL, nats.DefaultURL))
}

func (b *Bus) options(nkey *nkeyLogin) []nats.Option {
	opts := []nats.Option{
		nats.Name(b.cfg.Name),
		nats.Timeout(connectTimeoutMS * time.Millisecond),
		nats.PingInterval(pingIntervalMS * time.Millisecond),
		nats.FlusherTimeout(writeTimeoutMS * time.Millisecond), // the client library sends no ping while it writes
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), // nothing is sent after the caller's call has returned
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.DrainTimeout(drainTimeoutMS * time.Millisecond),
		nats.DisconnectErrHandler(b.disconnected),
		nats.ReconnectHandler(b.reconnected),
		nats.ReconnectErrHandler(b.stillAway),
		nats.ErrorHandler(b.asyncError),
	}
	if b.cfg.Server != nil {
		opts = append(opts, nats.InProcessServer(b.cfg.Server))
	}
	opts = append(opts, loginOptions(b.cfg, nkey)...)
	if b.cfg.Inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(b.cfg.Inbox))
	}
	return opts
}

// reconnectDelay returns the pause before the given attempt, counted from 1.
func reconnectDelay(attempt int) time.Duration {
	p := newBackoff()
	var d time.Duration
	for range min(attempt, 12) { // by then it has reached its maximum
		d = p.NextBackOff()
	}
	return min(d, reconnectDelayMaxMS*time.Millisecond)
}

func (b *Bus) disconnected(nc *nats.Conn, err error) {
	b.attempts.cut()
	if nc.IsClosed() || nc.IsDraining() {
		return
	}
	b.log.Warn().AnErr("err", err).Str("service", b.cfg.Name).Msg("broker lost")
}

// stillAway logs why the connection is not restored, each reason once: a refused certificate would look like a broker
// that is down.
func (b *Bus) stillAway(_ *nats.Conn, err error) {
	text := ofTLS(&b.cfg, err).Error()
	b.mu.Lock()
	known := b.awayText == text
	b.awayText = text
	b.mu.Unlock()
	if !known {
		b.log.Warn().Str("reason", text).Str("service", b.cfg.Name).Msg("broker not reached: trying on")
	}
}

func (b *Bus) reconnected(*nats.Conn) {
	b.authErr.Store(nil)
	b.log.Info().Str("service", b.cfg.Name).Msg("broker back")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awayText = ""
	for _, fn := range b.onReconnect {
		go fn()
	}
}

// asyncError records what the broker refuses without a reply, so that the waiting call gets the reason.
func (b *Bus) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		b.denied.add(err)
		b.attempts.cut()
	case isAuth(err):
		err = translate("connect to "+b.target(), err)
		b.authErr.Store(&err)
	default:
		b.log.Warn().AnErr("err", err).Str("service", b.cfg.Name).Msg("broker reports")
	}
}

// Close drains pending work and closes the connection. It returns when that is done.
func (b *Bus) Close() {
	closed := b.nc.StatusChanged(nats.CLOSED) // not the handler: a service that stops restores the earlier one
	if err := b.nc.Drain(); err != nil {      // already closed, or not connected: nothing to drain
		b.nc.Close()
		return
	}
	<-closed
}

// Cell returns the cell's names on the wire.
func (b *Bus) Cell() events.Cell { return b.cell }

// Connected reports whether the connection to the broker is up.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// Reconnects returns how often the connection was restored. The count grows before the first message on the new
// connection, so a caller that reads it before acting on a message knows of each interruption; [Bus.OnReconnect] may be
// later.
func (b *Bus) Reconnects() uint64 { return b.nc.Stats().Reconnects }

// OnReconnect calls fn, in a new goroutine, each time the connection was restored.
func (b *Bus) OnReconnect(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onReconnect = append(b.onReconnect, fn)
}

// Instance returns this connection's unique id, for sources of events and for leases.
func (b *Bus) Instance() string { return b.instance }

// NewID returns a new unique id for an event.
func (b *Bus) NewID() string { return nuid.Next() }

// check checks the broker's version and JetStream.
func (b *Bus) check(ctx context.Context) error {
	if v := b.nc.ConnectedServerVersion(); !newEnough(v) {
		return fmt.Errorf("%w: %s runs nats-server %s: %s or later is needed", ErrTooOld, b.target(), v,
			ServerVersionMin)
	}
	op, pace := "look for JetStream on "+b.target(), newBackoff()
	for {
		var info struct{}
		err := b.callOnce(ctx, op, apiPrefix+"INFO", nil, &info)
		has, _ := b.nc.ConnectedServerJetStream()
		switch {
		case errors.Is(err, ErrForbidden): // a user without this permission may still append
			return nil
		case errors.Is(err, nats.ErrNoResponders) && b.nc.IsConnected() && !has:
			return translate(op, jetstream.ErrJetStreamNotEnabled)
		case !errors.Is(err, ErrUnreachable):
			return err
		case !pause(ctx, pace.NextBackOff()):
			if b.nc.IsConnected() {
				return fmt.Errorf("%w: %w", ErrNoAnswer, b.late(op, err))
			}
			return b.late(op, err)
		}
	}
}
