package bus

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// The types of the parts, for callers that hold the whole connection.
type (
	// Bucket is one of the two buckets of a cell.
	Bucket = kv.Bucket
	// Entry is one key of a bucket.
	Entry = kv.Entry
	// View is one entry derived from a document.
	View = kv.View
	// Doc is a document with the entries derived from it.
	Doc = kv.Doc
	// Update is one entry of a bucket as a watch reports it.
	Update = kv.Update
	// StreamName is one of the streams that are delivered in order.
	StreamName = consumer.StreamName
	// Source describes what to consume.
	Source = consumer.Source
	// Handler handles the messages of a consumer.
	Handler = consumer.Handler
	// LeadershipObserver is a [Handler] that is notified when it is no longer the active one.
	LeadershipObserver = consumer.LeadershipObserver
	// Stranger is a consumer in the cell that no part of Holdfast made.
	Stranger = consumer.Stranger
	// Lease is a key that lives only while it is renewed.
	Lease = lease.Lease
	// Timer is an alarm at the broker.
	Timer = timer.Timer
	// Endpoint answers the requests of one verb.
	Endpoint = rpc.Endpoint
	// Parked is unreadable input, stored for an operator.
	Parked = park.Parked
	// Fed are the facts of one commit that counted, for the feed.
	Fed = log.Fed
	// Inspection is the state of the broker and of the cell's streams.
	Inspection = layout.Inspection
	// StreamState is one stream of the cell.
	StreamState = layout.StreamState
)

// The buckets, and the streams for [Source].
const (
	State     = kv.State
	Leases    = kv.Leases
	LogStream = consumer.LogStream
	StateDocs = consumer.StateDocs
	Due       = consumer.Due
)

// Call sends the request of a verb and returns its reply.
func Call[Q request.Checked, R any](ctx context.Context, b *Bus, v request.Verb[Q, R], q Q) (R, error) {
	return rpc.Call(ctx, b.Services, v, q)
}

// Acked calls [consumer.Consumers.Acked].
func (b *Bus) Acked(ctx context.Context, s Source) (uint64, error) {
	return b.Consumers.Acked(ctx, s)
}

// AcquireLease calls [lease.Leases.Acquire].
func (b *Bus) AcquireLease(ctx context.Context, key string, value []byte, ttl time.Duration) (*Lease, error) {
	return b.Leases.Acquire(ctx, key, value, ttl)
}

// Append calls [log.Log.Append].
func (b *Bus) Append(ctx context.Context, r events.Ref, w events.Writer, after uint64, evs []events.Event) (uint64,
	error) {
	return b.Log.Append(ctx, r, w, after, evs)
}

// AppendAsync calls [log.Log.AppendAsync].
func (b *Bus) AppendAsync(ctx context.Context, r events.Ref, w events.Writer, after uint64,
	evs []events.Event) Pending {
	return b.Log.AppendAsync(ctx, r, w, after, evs)
}

// CancelTimer calls [timer.Timers.Cancel].
func (b *Bus) CancelTimer(ctx context.Context, what string, r events.Ref) error {
	return b.Timers.Cancel(ctx, what, r)
}

// Commit calls [log.Log.Commit].
func (b *Bus) Commit(ctx context.Context, seq uint64) (events.Commit, error) {
	return b.Log.Commit(ctx, seq)
}

// Consume calls [consumer.Consumers.Consume].
func (b *Bus) Consume(ctx context.Context, s Source, h Handler) error {
	return b.Consumers.Consume(ctx, s, h)
}

// Decode calls [log.Log.Decode].
func (b *Bus) Decode(m Message) events.Commit {
	return b.Log.Decode(m)
}

// Delete calls [kv.Buckets.Delete].
func (b *Bus) Delete(ctx context.Context, bk Bucket, key string, rev uint64) error {
	return b.KV.Delete(ctx, bk, key, rev)
}

// DeleteObject calls [objects.Objects.Delete].
func (b *Bus) DeleteObject(ctx context.Context, name string) error {
	return b.Objects.Delete(ctx, name)
}

// Each calls [log.Log.Each].
func (b *Bus) Each(ctx context.Context, r events.Ref, from uint64, fn func(events.Commit) error) error {
	return b.Log.Each(ctx, r, from, fn)
}

// Ensure calls [layout.Layout.Ensure].
func (b *Bus) Ensure(ctx context.Context) error {
	return b.Layout.Ensure(ctx)
}

// Feed calls [log.Log.Feed].
func (b *Bus) Feed(ctx context.Context, fs ...Fed) Pending {
	return b.Log.Feed(ctx, fs...)
}

// Follow calls [log.Log.Follow].
func (b *Bus) Follow(ctx context.Context, harness string, live func(from uint64), fn func(Message)) error {
	return b.Log.Follow(ctx, harness, live, fn)
}

// HasObject calls [objects.Objects.Has].
func (b *Bus) HasObject(ctx context.Context, name string) error {
	return b.Objects.Has(ctx, name)
}

// Head calls [log.Log.Head].
func (b *Bus) Head(ctx context.Context, r events.Ref) (uint64, error) {
	return b.Log.Head(ctx, r)
}

// Heads calls [log.Log.Heads].
func (b *Bus) Heads(ctx context.Context, harness string) (map[events.Ref]uint64, error) {
	return b.Log.Heads(ctx, harness)
}

// Inspect calls [layout.Layout.Inspect].
func (b *Bus) Inspect(ctx context.Context) (Inspection, error) {
	return b.Layout.Inspect(ctx)
}

// Lag calls [consumer.Consumers.Lag].
func (b *Bus) Lag(ctx context.Context, s Source) (pending uint64, active string, err error) {
	return b.Consumers.Lag(ctx, s)
}

// LastSeq calls [log.Log.LastSeq].
func (b *Bus) LastSeq(ctx context.Context) (uint64, error) {
	return b.Log.LastSeq(ctx)
}

// LearnSteps calls [clock.Clock.LearnSteps].
func (b *Bus) LearnSteps(others events.Steps) {
	b.Clock.LearnSteps(others)
}

// List calls [kv.Buckets.List].
func (b *Bus) List(ctx context.Context, bk Bucket, filter string, fn func(Entry) error) error {
	return b.KV.List(ctx, bk, filter, fn)
}

// Load calls [kv.Buckets.Load].
func (b *Bus) Load(ctx context.Context, bk Bucket, key string) (Entry, error) {
	return b.KV.Load(ctx, bk, key)
}

// LogUsage calls [log.Log.Usage].
func (b *Bus) LogUsage(ctx context.Context) (usedBytes, maxBytes uint64, err error) {
	return b.Log.Usage(ctx)
}

// NearlyFull calls [log.Log.NearlyFull].
func (b *Bus) NearlyFull(ctx context.Context) (bool, error) {
	return b.Log.NearlyFull(ctx)
}

// Now calls [clock.Clock.Now].
func (b *Bus) Now(ctx context.Context) (time.Time, error) {
	return b.Clock.Now(ctx)
}

// Nudge calls [hint.Hints.Nudge].
func (b *Bus) Nudge(r events.Ref, seq uint64) {
	b.Hints.Nudge(r, seq)
}

// Object calls [objects.Objects.Get].
func (b *Bus) Object(ctx context.Context, name string) ([]byte, error) {
	return b.Objects.Get(ctx, name)
}

// OnNudge calls [hint.Hints.OnNudge].
func (b *Bus) OnNudge(ctx context.Context, harness string, fn func(session string, seq uint64)) error {
	return b.Hints.OnNudge(ctx, harness, fn)
}

// OnProgress calls [hint.Hints.OnProgress].
func (b *Bus) OnProgress(ctx context.Context, fn func(events.Ref)) error {
	return b.Hints.OnProgress(ctx, fn)
}

// Park calls [park.Parking.Park].
func (b *Bus) Park(ctx context.Context, p Parked) error {
	return b.Parking.Park(ctx, p)
}

// ParkAsync calls [park.Parking.ParkAsync].
func (b *Bus) ParkAsync(ctx context.Context, p Parked) Pending {
	return b.Parking.ParkAsync(ctx, p)
}

// Progress calls [hint.Hints.Progress].
func (b *Bus) Progress(r events.Ref) {
	b.Hints.Progress(r)
}

// PurgeLeases calls [lease.Leases.Purge].
func (b *Bus) PurgeLeases(ctx context.Context, harness string, keep int) error {
	return b.Leases.Purge(ctx, harness, keep)
}

// PurgeSession calls [log.Log.PurgeSession].
func (b *Bus) PurgeSession(ctx context.Context, r events.Ref, keepFrom uint64) error {
	return b.Log.PurgeSession(ctx, r, keepFrom)
}

// PutObject calls [objects.Objects.Put].
func (b *Bus) PutObject(ctx context.Context, r events.Ref, content []byte) (name string, err error) {
	return b.Objects.Put(ctx, r, content)
}

// RaiseLogLimit calls [log.Log.RaiseLimit].
func (b *Bus) RaiseLogLimit(ctx context.Context) (bool, error) {
	return b.Log.RaiseLimit(ctx)
}

// Read calls [log.Log.Read].
func (b *Bus) Read(ctx context.Context, r events.Ref, from uint64) ([]events.Commit, error) {
	return b.Log.Read(ctx, r, from)
}

// Request calls [rpc.Services.Request].
func (b *Bus) Request(ctx context.Context, service, verb string, req, reply any) error {
	return b.Services.Request(ctx, service, verb, req, reply)
}

// Scan calls [log.Log.Scan].
func (b *Bus) Scan(ctx context.Context, from uint64, fn func(events.Commit) error) error {
	return b.Log.Scan(ctx, from, fn)
}

// ScanMessages calls [log.Log.ScanMessages].
func (b *Bus) ScanMessages(ctx context.Context, from uint64, fn func(Message) error) error {
	return b.Log.ScanMessages(ctx, from, fn)
}

// Serve calls [rpc.Services.Serve].
func (b *Bus) Serve(ctx context.Context, service, version, description string, eps []Endpoint) error {
	return b.Services.Serve(ctx, service, version, description, eps)
}

// SetTimer calls [timer.Timers.Set].
func (b *Bus) SetTimer(ctx context.Context, t Timer) error {
	return b.Timers.Set(ctx, t)
}

// Since calls [log.Log.Since].
func (b *Bus) Since(ctx context.Context, harness string, since time.Time, fn func(events.Commit) error) error {
	return b.Log.Since(ctx, harness, since, fn)
}

// StepsNoticed calls [clock.Clock.StepsNoticed].
func (b *Bus) StepsNoticed() int {
	return b.Clock.StepsNoticed()
}

// Store calls [kv.Buckets.Store].
func (b *Bus) Store(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) (uint64, error) {
	return b.KV.Store(ctx, bk, key, value, rev)
}

// StoreAsync calls [kv.Buckets.StoreAsync].
func (b *Bus) StoreAsync(ctx context.Context, bk Bucket, key string, value []byte, rev uint64) Pending {
	return b.KV.StoreAsync(ctx, bk, key, value, rev)
}

// StoreDocs calls [kv.Buckets.StoreDocs].
func (b *Bus) StoreDocs(ctx context.Context, docs []Doc) ([]uint64, error) {
	return b.KV.StoreDocs(ctx, docs)
}

// StoreView calls [kv.Buckets.StoreView].
func (b *Bus) StoreView(ctx context.Context, v View) Pending {
	return b.KV.StoreView(ctx, v)
}

// Strangers calls [consumer.Consumers.Strangers].
func (b *Bus) Strangers(ctx context.Context, ours []Source) ([]Stranger, error) {
	return b.Consumers.Strangers(ctx, ours)
}

// Ticket calls [lease.Leases.Ticket].
func (b *Bus) Ticket(ctx context.Context, harness string) (incarnation uint64, err error) {
	return b.Leases.Ticket(ctx, harness)
}

// Watch calls [kv.Buckets.Watch].
func (b *Bus) Watch(ctx context.Context, bk Bucket, filters []string, fn func(Update) error) error {
	return b.KV.Watch(ctx, bk, filters, fn)
}
