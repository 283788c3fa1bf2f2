// Package bus opens connections to a cell; together with the packages below it, it is the only access to NATS.
//
// A [Bus] is one connection with its parts, each of which has a package and a page of its own. A caller that needs one
// part declares the methods that it needs, or takes the part. Nothing here returns a type of nats.go, and every error
// has one of the errors of this package, or one of pkg/events, in its chain.
//
//	log        commits: append, read, follow; the feed
//	kv         documents, views and leases as keys of a bucket: read, write, watch
//	consumer   ordered delivery of a stream to one of several processes
//	lease      incarnations, and keys that live only while they are renewed
//	clock      the broker's clock and its steps
//	timer      alarms at the broker
//	objects    content that is too large for an event
//	rpc        requests and services
//	hint       nudges and signs of life
//	presence   connections that have ended
//	park       unreadable input
//	layout     the streams and buckets of a cell
//	backup     a cell in a file, and a cell from a file
//
// internal/core has the connection, the calls, the guarded writes and the errors of all of them, internal/pull has the
// delivery from consumers. A part imports no other part, except that a lease is a key of a bucket.
package bus

import (
	"context"

	"github.com/nats-io/nuid"

	"github.com/holdfast-dev/holdfast/internal/bus/backup"
	"github.com/holdfast-dev/holdfast/internal/bus/clock"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/hint"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/bus/objects"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/priority"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Bus is one connection to one cell, with its parts. All methods, and those of the parts, may be called concurrently.
type Bus struct {
	// Log appends to the log, reads and follows it.
	Log *log.Log
	// KV reads, writes and watches documents, views and leases.
	KV *kv.Buckets
	// Consumers delivers streams in order.
	Consumers *consumer.Consumers
	// Leases draws tickets and acquires leases.
	Leases *lease.Leases
	// Clock is the broker's clock.
	Clock *clock.Clock
	// Timers sets alarms.
	Timers *timer.Timers
	// Objects stores large content.
	Objects *objects.Objects
	// Services sends requests and serves them.
	Services *rpc.Services
	// Hints sends and receives what may be lost.
	Hints *hint.Hints
	// Presence names connections that have ended.
	Presence *presence.Presence
	// Parking stores unreadable input.
	Parking *park.Parking
	// Layout sets up the streams of the cell.
	Layout *layout.Layout
	// Backups writes the cell to a file, and restores it.
	Backups *backup.Backups

	conn *core.Conn
}

// Open connects to the broker and checks its version and JetStream. It tries until ctx ends, then fails with
// [ErrUnreachable], or [ErrNoAnswer]; [ErrForbidden], [ErrNoJetStream] and [ErrTooOld] end it at once. Later the
// connection is restored without a limit.
func Open(ctx context.Context, cfg Config) (*Bus, error) {
	conn, err := core.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b := &Bus{conn: conn, Log: log.New(conn), Consumers: consumer.New(conn), Clock: clock.New(conn),
		Timers: timer.New(conn), Objects: objects.New(conn), Services: rpc.New(conn), Hints: hint.New(conn),
		Presence: presence.New(conn), Parking: park.New(conn), Layout: layout.New(conn)}
	b.KV = kv.New(conn, b.Clock)
	b.Leases = lease.New(conn, b.KV)
	b.Backups = backup.New(conn, b.Layout.Configs)
	return b, nil
}

// ServeSyncs answers clients that ask when their writes are synced, for the embedded server of this connection, until
// ctx ends. A server that does not sync in groups is not asked.
func (b *Bus) ServeSyncs(ctx context.Context) error { return b.conn.Syncs.Serve(ctx) }

// Close drains pending work and closes the connection. It returns when that is done.
func (b *Bus) Close() { b.conn.Close() }

// Abort closes the connection as the death of the process would: nothing is flushed and nothing is handed over.
func (b *Bus) Abort() { b.conn.NC.Close() }

// Cell returns the cell's names on the wire.
func (b *Bus) Cell() events.Cell { return b.conn.Cell }

// Connected reports whether the connection to the broker is up.
func (b *Bus) Connected() bool { return b.conn.Connected() }

// Reconnects returns how often the connection was restored. The count grows before the first message on the new
// connection, so a caller that reads it before acting on a message knows of each interruption; [Bus.OnReconnect] may be
// later.
func (b *Bus) Reconnects() uint64 { return b.conn.Reconnects() }

// OnReconnect calls fn, in a new goroutine, each time the connection was restored.
func (b *Bus) OnReconnect(fn func()) { b.conn.OnReconnect(fn) }

// Instance returns this connection's unique id, for sources of events and for leases.
func (b *Bus) Instance() string { return b.conn.Instance }

// NewID returns a new unique id for an event.
func (b *Bus) NewID() string { return nuid.Next() }

// Priority returns the gate by which batch work yields to time-critical work in this process.
func (b *Bus) Priority() *priority.Gate { return b.conn.Priority }
