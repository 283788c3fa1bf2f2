// Package core is one connection to a cell: calls to the JetStream API, guarded writes, and the errors of both.
//
// It is the only package that the parts of [internal/bus] share. The parts import it, it imports none of them, and
// packages outside of internal/bus cannot import it. Rules for the whole package:
//
//  1. A write that was acknowledged is stored. A write whose acknowledgement was lost is looked up, and its true result
//     returned; only if the context ends first is the outcome unknown, and the error then says so ([ErrUnreachable]).
//
//  2. A guarded write is sent again only with the same guard, so sending again cannot store it twice.
//
//  3. While the broker is away nothing is buffered: calls wait for its return until their context ends.
//
//     conn.go       the connection and its callbacks
//     config.go     its configuration
//     address.go    addresses of brokers, and what is wrong with them
//     dial.go       attempts to reach a node
//     silence.go    connections on which nothing arrives
//     login.go      logins and trust; tls.go explains failed handshakes
//     call.go       calls to the JetStream API, reads from a stream's leader
//     publish.go    guarded writes; batch.go sends concurrent ones together
//     bucket.go     how the broker names and marks the keys of a bucket
//     synced.go     waits for a broker that syncs in groups
//     header.go     headers that the client library cannot read
//     isolation.go  the search for another node
//     error.go      the errors
package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	pingIntervalMS      = 1_000 // a broker that reads them sends a byte at least so often; see silence.go
	pingsUnansweredMax  = 60    // then the connection is closed although bytes arrive: the pings do not
	// for one write to the socket: the connection to a broker that reads nothing for so long is closed as well
	writeTimeoutMS       = 9_000
	drainTimeoutMS       = 5_000 // for pending work at a close
	ackTimeoutMS         = 2_000 // an acknowledgement later than this is looked up: its leader may be gone
	RequestTimeoutMS     = 2_000 // for one request to the JetStream API, which is then made again
	publishWindowMax     = 4_096 // publishes without an acknowledgement yet
	defaultFeedAge       = 72 * time.Hour
	defaultConnectionTag = "holdfast"
)

// Conn is one connection to one cell. All methods may be called concurrently.
type Conn struct {
	// NC is the connection of the client library, for what has no call here.
	NC *nats.Conn
	js jetstream.JetStream
	// Cell has the names of the cell on the wire.
	Cell events.Cell
	// Config is the configuration, with its defaults.
	Config Config
	// Log takes the lines about this connection.
	Log zerolog.Logger
	// Instance is the unique id of this connection.
	Instance string
	// ConsumerKey is the secret of the durable consumers' names; empty without one.
	ConsumerKey []byte
	// Together says that concurrent writes to a stream are sent as one batch.
	Together atomic.Bool
	// Denied has the subjects that the broker refused to this user.
	Denied *denials
	// Active has the consumers that this connection takes the messages of.
	Active  Actives
	appends batcher.Batcher[*batchedWrite]
	// Priority is the gate by which batch work yields to time-critical work; all connections of the broker's process
	// share it.
	Priority  *priority.Gate
	attempts  attempts
	isolation isolation
	answered  bool // JetStream has answered once; set before the connection is used
	// Syncs waits for a broker that syncs in groups.
	Syncs *Syncs

	authErr atomic.Pointer[error] // the last refusal of the login; nil while connected

	mu          sync.Mutex
	onReconnect []func()
	awayText    string // the last reason for a failed reconnection
}

// Open connects to the broker and checks its version and JetStream. It tries until ctx ends, then fails with
// [ErrUnreachable], or [ErrNoAnswer]; an [AddressError], [ErrForbidden], [ErrNoJetStream] and [ErrTooOld] end it at
// once. Later the connection is restored without a limit.
func Open(ctx context.Context, cfg Config) (*Conn, error) {
	cfg.Prefix = orDefault(cfg.Prefix, events.DefaultPrefix)
	cfg.Name = orDefault(cfg.Name, defaultConnectionTag)
	cfg.Replicas = max(cfg.Replicas, 1)
	if cfg.FeedKeptFor == 0 {
		cfg.FeedKeptFor = defaultFeedAge
	}
	cell, err := events.NewCell(cfg.Prefix)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	// the client library has a default for none
	if cfg.Server == nil && cfg.URL != "" {
		if err := CheckAddresses(cfg.URL); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	if err := errors.Join(checkCreds(cfg.Creds), checkFiles(cfg)); err != nil {
		return nil, err
	}
	key, err := consumerKey(cfg)
	if err != nil {
		return nil, err
	}
	server, known := cfg.Server.(syncing)
	c := &Conn{ConsumerKey: key, Cell: cell, Config: cfg, Log: cfg.Log, Instance: NewSecret(), Priority: gateOf(cfg),
		Denied: newDenials()}
	c.Syncs = &Syncs{conn: c, streams: map[string]*streamSync{}}
	c.Together.Store(cfg.Synced || known && server.SyncsEach())
	c.appends = batcher.Batcher[*batchedWrite]{CountMax: BatchMessagesMax, SizeMax: BatchBytesMax, Flush: c.sendBatched,
		Key:  func(x *batchedWrite) string { return x.key },
		Size: func(x *batchedWrite) int { return len(x.w.Msg.Data) }}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	if err := c.check(ctx); err != nil {
		c.NC.Close()
		return nil, err
	}
	c.answered = true
	return c, nil
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}

// connect tries until it is connected, ctx ends or the broker refuses the login.
func (c *Conn) connect(ctx context.Context) error {
	var last error
	nkey := newNKeyLogin(c.Config.NKey)
	try := func() error {
		nc, err := nats.Connect(dialed(c.Config), c.options(nkey)...)
		if err == nil {
			nkey.connected(nc)
			c.NC = nc
			return nil
		}
		err = ofTLS(&c.Config, err)
		last = err
		if isAuth(err) {
			return backoff.Permanent(err)
		}
		return err
	}
	logged := ""
	err := backoff.RetryNotify(try, backoff.WithContext(NewBackoff(), ctx), func(err error, _ time.Duration) {
		switch {
		case c.Config.Trying != nil:
			c.Config.Trying(unreachable("connect to "+c.target(), err))
		case err.Error() != logged:
			// each reason is logged once
			logged = err.Error()
			c.Log.Warn().AnErr("err", err).Str("service",
				c.Config.Name).Msg("no broker at " + c.target() + " yet: trying on")
		}
	})
	if err != nil {
		if isAuth(last) {
			return Translate("connect to "+c.target(), last)
		}
		return unreachable("connect to "+c.target(), last)
	}
	c.js, err = jetstream.New(c.NC,
		jetstream.WithPublishAsyncMaxPending(publishWindowMax),
		jetstream.WithPublishAsyncTimeout(ackTimeoutMS*time.Millisecond),
		jetstream.WithDefaultTimeout(RequestTimeoutMS*time.Millisecond))
	if err != nil {
		c.NC.Close()
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// NewBackoff returns the pauses of every endless loop here: from 20 ms to half a second, without an end.
func NewBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(reconnectDelayMinMS*time.Millisecond),
		backoff.WithMaxInterval(reconnectDelayMaxMS*time.Millisecond),
		backoff.WithMaxElapsedTime(0))
}

// target returns the broker's URL for people, who may show it to others: without passwords.
func (c *Conn) target() string {
	if c.Config.Server != nil {
		return "the embedded broker"
	}
	return Redacted(orDefault(c.Config.URL, nats.DefaultURL))
}

func (c *Conn) options(nkey *nkeyLogin) []nats.Option {
	opts := []nats.Option{
		nats.Name(c.Name()),
		nats.Timeout(connectTimeoutMS * time.Millisecond),
		nats.PingInterval(pingIntervalMS * time.Millisecond),
		nats.MaxPingsOutstanding(pingsUnansweredMax),
		nats.SkipHostLookup(),                                  // the dialer does it
		nats.FlusherTimeout(writeTimeoutMS * time.Millisecond), // the client library sends no ping while it writes
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), // nothing is sent after the caller's call has returned
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.DrainTimeout(drainTimeoutMS * time.Millisecond),
		nats.DisconnectErrHandler(c.disconnected),
		nats.ReconnectHandler(c.reconnected),
		nats.ReconnectErrHandler(c.stillAway),
		nats.ErrorHandler(c.asyncError),
	}
	if c.Config.Server != nil {
		opts = append(opts, nats.InProcessServer(audibly{c.Config.Server}))
	}
	if len(c.Config.Headers) > 0 {
		opts = append(opts, nats.WebSocketConnectionHeaders(c.Config.Headers))
	}
	opts = append(opts, loginOptions(c.Config, nkey)...)
	// the library numbers inboxes below it, and a client that knew one could let the broker deliver to it
	return append(opts, nats.CustomInboxPrefix(orDefault(c.Config.Inbox, events.InboxPrefix)+"."+NewSecret()))
}

// reconnectDelay returns the pause before the given attempt, counted from 1.
func reconnectDelay(attempt int) time.Duration {
	p := NewBackoff()
	var d time.Duration
	// by then it has reached its maximum
	for range min(attempt, 12) {
		d = p.NextBackOff()
	}
	return min(d, reconnectDelayMaxMS*time.Millisecond)
}

func (c *Conn) disconnected(nc *nats.Conn, err error) {
	c.attempts.cut()
	if nc.IsClosed() || nc.IsDraining() {
		return
	}
	c.Log.Warn().AnErr("err", err).Str("service", c.Config.Name).Msg("broker lost")
}

// stillAway logs why the connection is not restored, each reason once: a refused certificate would look like a broker
// that is down.
func (c *Conn) stillAway(_ *nats.Conn, err error) {
	why := ofTLS(&c.Config, err)
	text := why.Error()
	c.mu.Lock()
	known := c.awayText == text
	c.awayText = text
	c.mu.Unlock()
	if !known {
		c.Log.Warn().AnErr("err", why).Str("service", c.Config.Name).Msg("broker not reached: trying on")
	}
}

func (c *Conn) reconnected(*nats.Conn) {
	c.authErr.Store(nil)
	c.Log.Info().Str("service", c.Config.Name).Str("entity", "broker").Msg("broker back")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awayText = ""
	for _, fn := range c.onReconnect {
		go fn()
	}
}

// asyncError records what the broker refuses without a reply, so that the waiting call gets the reason.
func (c *Conn) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		c.Denied.add(err)
		c.attempts.cut()
	case isAuth(err):
		err = Translate("connect to "+c.target(), err)
		c.authErr.Store(&err)
	default:
		c.Log.Warn().AnErr("err", err).Str("service", c.Config.Name).Msg("broker reports")
	}
}

// Close drains pending work and closes the connection. It returns when that is done.
func (c *Conn) Close() {
	// not the handler: a service that stops restores the earlier one
	closed := c.NC.StatusChanged(nats.CLOSED)
	// already closed, or not connected: nothing to drain
	if err := c.NC.Drain(); err != nil {
		c.NC.Close()
		return
	}
	<-closed
}

// Name returns the name that the broker knows of this connection, the same after it was restored: no other connection
// of an honest client has it.
func (c *Conn) Name() string { return c.Config.Name + "/" + c.Instance }

// Connected reports whether the connection to the broker is up.
func (c *Conn) Connected() bool { return c.NC.IsConnected() }

// Reconnects returns how often the connection was restored. The count grows before the first message on the new
// connection, so a caller that reads it before acting on a message knows of each interruption; [Conn.OnReconnect] may
// be later.
func (c *Conn) Reconnects() uint64 { return c.NC.Stats().Reconnects }

// OnReconnect calls fn, in a new goroutine, each time the connection was restored.
func (c *Conn) OnReconnect(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onReconnect = append(c.onReconnect, fn)
}

// check checks the broker's version and JetStream.
func (c *Conn) check(ctx context.Context) error {
	if v := c.NC.ConnectedServerVersion(); !newEnough(v) {
		return fmt.Errorf("%w: %s runs nats-server %s: %s or later is needed", ErrTooOld, c.target(), v,
			ServerVersionMin)
	}
	op, pace := "look for JetStream on "+c.target(), NewBackoff()
	for {
		var info struct{}
		err := c.CallOnce(ctx, op, APIPrefix+"INFO", nil, &info)
		has, _ := c.NC.ConnectedServerJetStream()
		switch {
		case errors.Is(err, ErrForbidden):
			// a user without this permission may still append
			return nil
		case errors.Is(err, nats.ErrNoResponders) && c.NC.IsConnected() && !has:
			return Translate(op, jetstream.ErrJetStreamNotEnabled)
		case !errors.Is(err, ErrUnreachable):
			return err
		}
		if c.Config.Trying != nil {
			c.Config.Trying(c.noAnswer(op, err))
		}
		if !Pause(ctx, pace.NextBackOff()) {
			return c.noAnswer(op, err)
		}
	}
}

// noAnswer returns the error of a JetStream that does not answer.
func (c *Conn) noAnswer(op string, err error) error {
	if c.NC.IsConnected() {
		return fmt.Errorf("%w: %w", ErrNoAnswer, c.Late(op, err))
	}
	return c.Late(op, err)
}

// IgnoreClosed drops the error of an unsubscribe without a connection.
func IgnoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

// AwaitConnected waits until the connection is up. It fails when ctx ends or the connection was closed.
func (c *Conn) AwaitConnected(ctx context.Context) error {
	status := c.NC.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.NC.RemoveStatusListener(status)
	for {
		switch {
		case c.NC.IsConnected():
			return nil
		case c.NC.IsClosed(), c.NC.IsDraining():
			return Translate("wait for the broker", nats.ErrConnectionClosed)
		}
		select {
		case <-status:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Asker returns the asker of this connection. A broker without logins has no users.
func (c *Conn) Asker() events.Asker {
	if !c.NC.AuthRequired() {
		return events.Asker{}
	}
	return c.Config.Asker
}
