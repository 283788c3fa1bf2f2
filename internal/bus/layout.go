package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The layout of a cell: streams, buckets and their limits.
const (
	layoutVersion     = 1
	layoutKey         = "hf.layout"   // metadata key: the version of the layout that a stream was last brought up to
	raisedKey         = "hf.raised"   // metadata key: the log's limit was raised once
	togetherKey       = "hf.together" // metadata key: the broker syncs each write by itself, so what is written together is sent together; a hint
	consumersMax      = 100_000       // consumers, and so watchers, of the log or a bucket; the broker's own default is 1,000
	parkedAge         = 30 * 24 * time.Hour
	parkedWindow      = 24 * time.Hour  // how long parking the same input again is recognised
	parkedBytesMax    = 64 << 20        // of parked input; the oldest goes first, and what was parked is in the log as well
	parkedMsgsMax     = 128             // the limit in place of that where the broker has not so much room
	publishWindow     = 2 * time.Minute // the broker's default for recognising message ids
	markerTTL         = time.Hour       // how long the mark of a deleted key stays, for watchers that were away
	ensureAttemptsMax = 5               // two services that start at once may meet on the same stream
	feedPart          = 4               // the feed has at most one part in so many of the log's limit
	neverMax          = -1              // no limit
	logRaise          = 10              // the log's limit is raised by one part in so many
	raiseFloorBytes   = int64(64) << 10 // and by no less than this
	headersBytesMax   = int32(64) << 10 // headers count against the log's message size only within the body's limit
	logMessageMax     = int32(events.CommitBytesMax)
	leaseMessageMax   = int32(16) << 10  // a lease says who holds it and where
	alarmMessageMax   = int32(64) << 10  // an alarm says at which session to look
	objectMessageMax  = int32(256) << 10 // a chunk has 128 KiB, and headers
)

// kvStream is the stream behind a bucket, as every KV client knows it.
func kvStream(bucket string) string { return "KV_" + bucket }

// kvSubject is the subject of a key, or of a filter over keys.
func kvSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// bucket is a bucket's name.
func (b *Bus) bucket(bk Bucket) string {
	if bk == Leases {
		return b.cell.LeaseBucket()
	}
	return b.cell.StateBucket()
}

// Ensure creates what is missing of the cell's streams and buckets, and brings what is there up to this layout. It never
// narrows a limit that it finds. It fails with [ErrNewerLayout] when a later version set the cell up, before it has
// changed anything. The broker has no compare-and-set on configurations: after a change it looks again, in case another
// service with another idea has written over it.
func (b *Bus) Ensure(ctx context.Context) error {
	for range ensureAttemptsMax {
		changed, err := b.ensureOnce(ctx)
		if err != nil || !changed {
			return err
		}
	}
	return nil
}

// ensureOnce looks at all streams, then makes or widens those that need it.
func (b *Bus) ensureOnce(ctx context.Context) (changed bool, err error) {
	want := b.layout()
	found := make([]*jetstream.StreamInfo, len(want))
	for i := range want {
		info, err := b.streamInfo(ctx, want[i].Name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
		if info != nil && layoutOf(info.Config) > layoutVersion {
			return false, fmt.Errorf("%w: %s has layout %d, this program knows %d: upgrade this program", ErrNewerLayout, want[i].Name, layoutOf(info.Config), layoutVersion)
		}
		found[i] = info
	}
	for i := range want {
		touched, err := b.ensureStream(ctx, want[i], found[i])
		if err != nil {
			return false, err
		}
		changed = changed || touched
	}
	return changed, nil
}

// ensureStream creates or widens one stream. Somebody else may do the same at the same time: then look again.
func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig, found *jetstream.StreamInfo) (changed bool, err error) {
	for range ensureAttemptsMax {
		verb, cfg := "CREATE", want
		if found != nil {
			verb, cfg = "UPDATE", b.widened(found.Config, want)
			if reflect.DeepEqual(cfg, found.Config) {
				return false, nil
			}
		}
		var made jetstream.StreamInfo
		if err = b.call(ctx, "set up stream "+want.Name, "STREAM."+verb+"."+want.Name, cfg, &made); err == nil {
			return true, nil
		}
		if errors.Is(err, ErrForbidden) || ctx.Err() != nil {
			return false, err
		}
		if errors.Is(err, ErrFull) && found == nil && want.Name == b.cell.ParkedStream() && want.MaxBytes > 0 {
			want.MaxBytes, want.MaxMsgs = neverMax, parkedMsgsMax // the broker sets the bytes of a limit aside, and has not so many
			continue
		}
		again, lookErr := b.streamInfo(ctx, want.Name)
		if lookErr != nil && !errors.Is(lookErr, ErrNotFound) {
			return false, lookErr
		}
		if (again == nil) == (found == nil) && (again == nil || reflect.DeepEqual(again.Config, found.Config)) {
			return false, err // nothing moved: it is our configuration that is refused
		}
		found = again
	}
	return false, err
}

// streamInfo is a stream as it stands; [ErrNotFound] when there is none.
func (b *Bus) streamInfo(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	if err := b.call(ctx, "look at stream "+stream, "STREAM.INFO."+stream, nil, &info); err != nil {
		return nil, err
	}
	if stream == b.cell.LogStream() && info.Config.Metadata[togetherKey] != "" && info.Config.Replicas == 1 {
		b.together.Store(true)
	}
	return &info, nil
}

// layoutOf is the layout that a stream was last brought up to, 0 for one that was not made by us.
func layoutOf(cfg jetstream.StreamConfig) int {
	v, err := strconv.Atoi(cfg.Metadata[layoutKey])
	if err != nil {
		return 0
	}
	return v
}

// layout is all of the cell's streams, as they are made.
func (b *Bus) layout() []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{b.logConfig(), b.bucketConfig(State), b.bucketConfig(Leases), b.objectConfig(), b.timerConfig(), b.parkedConfig()}
	if b.cfg.FeedAge > 0 {
		all = append(all, b.feedConfig())
	}
	return all
}

// Inspection is what the broker and the cell on it look like.
type Inspection struct {
	Version string        // of nats-server
	RTT     time.Duration // to it and back
	Streams []StreamState // all that [Bus.Ensure] would set up, in its order
}

// StreamState is one stream of the cell. Of a missing one only the name and the wanted layout are known.
type StreamState struct {
	Name         string
	Missing      bool
	Layout       int // that it was last brought up to; 0: not made by us
	LayoutWanted int // by this program
	Msgs, Bytes  uint64
	BytesMax     uint64 // 0: no limit but the disk's
	LastSeq      uint64
	Replicas     int
	Consumers    int
	Nodes        []string // that hold it, in order; none outside a cluster
	Offline      []string // of these; also those that the leader has not heard of for seconds
}

// Inspect looks at the broker and at the cell's streams, and changes nothing.
func (b *Bus) Inspect(ctx context.Context) (Inspection, error) {
	rtt, err := b.nc.RTT()
	if err != nil {
		return Inspection{}, translate("inspect", err)
	}
	found := Inspection{Version: b.nc.ConnectedServerVersion(), RTT: rtt}
	for _, want := range b.layout() {
		s := StreamState{Name: want.Name, LayoutWanted: layoutVersion}
		info, err := b.streamInfo(ctx, want.Name)
		switch {
		case errors.Is(err, ErrNotFound):
			s.Missing = true
		case err != nil:
			return found, err
		default:
			s.Layout = layoutOf(info.Config)
			s.Msgs, s.Bytes, s.BytesMax, s.LastSeq = info.State.Msgs, info.State.Bytes, uint64(max(info.Config.MaxBytes, 0)), info.State.LastSeq
			s.Replicas, s.Consumers = info.Config.Replicas, info.State.Consumers
			s.nodes(info)
		}
		found.Streams = append(found.Streams, s)
	}
	return found, nil
}

// base is what all streams have in common.
func (b *Bus) base(name, description string, subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:         name,
		Description:  description,
		Subjects:     subjects,
		Retention:    jetstream.LimitsPolicy,
		Storage:      jetstream.FileStorage,
		Replicas:     b.cfg.Replicas,
		MaxConsumers: neverMax, MaxMsgs: neverMax, MaxBytes: neverMax, MaxMsgsPerSubject: neverMax, MaxMsgSize: neverMax,
		Duplicates: publishWindow,
		Metadata:   map[string]string{layoutKey: strconv.Itoa(layoutVersion)},
	}
}

// logConfig: schedules, roll-up, per-message TTL and direct get are off, see the contract.
func (b *Bus) logConfig() jetstream.StreamConfig {
	c := b.base(b.cell.LogStream(), "Holdfast: the log of all sessions", b.cell.LogSubjects())
	c.Discard = jetstream.DiscardNew
	c.MaxMsgSize = logMessageMax
	c.MaxConsumers = consumersMax // each process of a harness follows what is written of its sessions
	if b.together.Load() {
		c.AllowAtomicPublish = true
		c.Metadata[togetherKey] = "1"
	}
	if b.cfg.LogBytesMax > 0 {
		c.MaxBytes = b.cfg.LogBytesMax
	}
	return c
}

func (b *Bus) bucketConfig(bk Bucket) jetstream.StreamConfig {
	bucket := b.bucket(bk)
	c := b.base(kvStream(bucket), "Holdfast: "+map[Bucket]string{State: "documents and views", Leases: "tickets and leases"}[bk], kvSubject(bucket, ">"))
	c.Discard = jetstream.DiscardNew
	c.MaxMsgsPerSubject = 1
	c.MaxConsumers = consumersMax
	c.MaxMsgSize = map[Bucket]int32{State: logMessageMax * 2, Leases: leaseMessageMax}[bk]
	c.DenyDelete, c.AllowDirect, c.AllowMsgTTL = true, true, true
	if bk == State || !b.nc.AuthRequired() { // leases are many users': see expiry.go
		c.AllowRollup, c.SubjectDeleteMarkerTTL = true, markerTTL
	}
	c.AllowAtomicPublish = bk == State // documents with their views
	return c
}

// objectConfig is what every client of object stores expects. A cell with users has subjects for each of them, and allows
// no roll-ups: the header of one message would remove the content of all.
func (b *Bus) objectConfig() jetstream.StreamConfig {
	bucket := b.cell.ObjectBucket()
	c := b.base(object.Stream(bucket), "Holdfast: content too large for a fact",
		object.Chunks(bucket, "*"), object.Metas(bucket), object.OwnChunks(bucket), object.OwnMetas(bucket))
	c.Discard = jetstream.DiscardNew
	c.MaxMsgSize = objectMessageMax
	if b.cfg.ObjectBytesMax > 0 {
		c.MaxBytes = b.cfg.ObjectBytesMax
	}
	c.AllowRollup, c.AllowDirect = !b.nc.AuthRequired(), true
	return c
}

func (b *Bus) timerConfig() jetstream.StreamConfig {
	c := b.base(b.cell.TimerStream(), "Holdfast: alarms, pending and fired", b.cell.TimerSubjects()...)
	c.Discard = jetstream.DiscardOld // schedules need it
	c.AllowMsgSchedules, c.AllowRollup, c.AllowMsgTTL = true, true, true
	c.AllowDirect = true
	c.MaxMsgSize = alarmMessageMax
	return c
}

func (b *Bus) feedConfig() jetstream.StreamConfig {
	c := b.base(b.cell.FeedStream(), "Holdfast: each fact that counted, by kind", b.cell.FeedSubjects())
	c.Discard = jetstream.DiscardOld
	c.MaxAge = b.cfg.FeedAge
	if b.cfg.LogBytesMax > 0 { // a log that is purged and written again would fill the store with copies
		c.MaxBytes = b.cfg.LogBytesMax / feedPart
	}
	c.Duplicates = min(publishWindow, c.MaxAge)
	c.AllowDirect, c.AllowAtomicPublish = true, true
	return c
}

func (b *Bus) parkedConfig() jetstream.StreamConfig {
	c := b.base(b.cell.ParkedStream(), "Holdfast: input that could not be read", b.cell.ParkedSubjects())
	c.Discard = jetstream.DiscardOld
	c.MaxAge, c.MaxBytes = parkedAge, parkedBytesMax
	c.Duplicates = parkedWindow
	c.AllowDirect = true
	return c
}

// widened is [widen] for a stream of this cell. The log takes batches only where the broker syncs each write: elsewhere
// nothing here sends them, and one batch can hold two commits of a session under one guard.
func (b *Bus) widened(found, want jetstream.StreamConfig) jetstream.StreamConfig {
	c := widen(found, want)
	if synced := c.Metadata[togetherKey] != "" && c.Replicas == 1; want.Name == b.cell.LogStream() && !synced {
		c.AllowAtomicPublish = false
	}
	return c
}

// widen is the configuration found, with every limit and every feature at least as wide as wanted, and nothing narrower.
func widen(found, want jetstream.StreamConfig) jetstream.StreamConfig {
	c := found
	c.Description = want.Description
	c.Discard = want.Discard
	c.Subjects = union(found.Subjects, want.Subjects)
	c.Replicas = max(found.Replicas, want.Replicas)
	c.MaxConsumers = max(found.MaxConsumers, want.MaxConsumers) // no limit means the broker's, which is lower
	if want.MaxBytes > 0 {                                      // else whoever set a limit keeps it
		c.MaxBytes = wider(found.MaxBytes, want.MaxBytes)
	}
	c.MaxMsgsPerSubject = wider(found.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	c.MaxMsgSize = wider(found.MaxMsgSize, want.MaxMsgSize)
	c.MaxAge = wider(found.MaxAge, want.MaxAge)
	c.Duplicates = max(found.Duplicates, want.Duplicates)
	// A matter of who may do what to whom, not of width. Markers and schedules need roll-ups.
	c.AllowDirect, c.AllowRollup = want.AllowDirect, want.AllowRollup || found.AllowMsgSchedules
	c.SubjectDeleteMarkerTTL = 0
	if c.AllowRollup {
		c.SubjectDeleteMarkerTTL = max(found.SubjectDeleteMarkerTTL, want.SubjectDeleteMarkerTTL)
	}
	c.AllowMsgTTL = found.AllowMsgTTL || want.AllowMsgTTL
	c.AllowAtomicPublish = found.AllowAtomicPublish || want.AllowAtomicPublish
	c.AllowMsgSchedules = found.AllowMsgSchedules || want.AllowMsgSchedules
	c.Metadata = maps.Clone(found.Metadata)
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	maps.Copy(c.Metadata, want.Metadata)
	return c
}

// wider is the greater of two limits, where 0 and less mean no limit.
func wider[T int | int32 | int64 | time.Duration](found, want T) T {
	if found <= 0 || want <= 0 {
		return min(found, want)
	}
	return max(found, want)
}

// union is all of the first list and what the second adds.
func union(found, want []string) []string {
	all := append([]string(nil), found...)
next:
	for _, w := range want {
		for _, f := range found {
			if f == w {
				continue next
			}
		}
		all = append(all, w)
	}
	return all
}

// LogUsage is how much the log holds and how much it may hold, in bytes; a maximum of 0 is none.
func (b *Bus) LogUsage(ctx context.Context) (usedBytes, maxBytes uint64, err error) {
	info, err := b.streamInfo(ctx, b.cell.LogStream())
	if err != nil {
		return 0, 0, err
	}
	return info.State.Bytes, uint64(max(info.Config.MaxBytes, 0)), nil
}

// When the log counts as nearly full, and how long it is believed that it has no limit.
const (
	nearlyFullPercent = 90
	percent           = 100
	limitlessKnownFor = time.Second
	roomyBytes        = uint64(256) << 20 // so much is not written while an answer is believed
)

// room is until when the log is known to have no limit.
type room struct {
	mu    sync.Mutex
	until time.Time
}

// NearlyFull says whether the log holds nine tenths of what it may: then nothing new is taken in, so that recovery and
// closing have room. Of a log without a limit, or with much room, the broker is asked once a second at most.
func (b *Bus) NearlyFull(ctx context.Context) (bool, error) {
	now := time.Now()
	b.room.mu.Lock()
	known := now.Before(b.room.until)
	b.room.mu.Unlock()
	if known {
		return false, nil
	}
	used, most, err := b.LogUsage(ctx)
	if err == nil && (most == 0 || used < most/percent*nearlyFullPercent-min(roomyBytes, most/percent*nearlyFullPercent)) {
		b.room.mu.Lock()
		b.room.until = now.Add(limitlessKnownFor)
		b.room.mu.Unlock()
	}
	return most > 0 && used >= most/percent*nearlyFullPercent, err
}

// RaiseLogLimit raises the log's limit by a tenth, once in its life, so that recovery has room in a log that others
// have filled. It says whether it did; false means there is no limit or it was raised before.
func (b *Bus) RaiseLogLimit(ctx context.Context) (bool, error) {
	info, err := b.streamInfo(ctx, b.cell.LogStream())
	if err != nil {
		return false, err
	}
	c := info.Config
	if c.MaxBytes <= 0 || c.Metadata[raisedKey] != "" {
		return false, nil
	}
	c.Metadata = maps.Clone(c.Metadata)
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	c.Metadata[raisedKey] = strconv.FormatInt(c.MaxBytes, 10)
	c.MaxBytes += max(c.MaxBytes/logRaise, raiseFloorBytes)
	var made jetstream.StreamInfo
	if err := b.call(ctx, "raise the log's limit", "STREAM.UPDATE."+c.Name, c, &made); err != nil {
		return false, err
	}
	return true, nil
}
