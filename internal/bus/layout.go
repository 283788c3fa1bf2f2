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
	layoutVersion = 1
	layoutKey     = "hf.layout" // metadata key: the version of the layout that the stream has
	raisedKey     = "hf.raised" // metadata key: the log's limit was raised once
	// metadata key: the broker syncs each write, so concurrent writes are sent together; a hint
	togetherKey = "hf.together"
	// consumers, and so watchers, of the log or a bucket; the broker's own default is 1,000
	consumersMax = 100_000
	parkedAge    = 30 * 24 * time.Hour
	parkedWindow = 24 * time.Hour // how long parking the same input again is recognised
	// of parked input; the oldest is removed first, and the log has the parked input as well
	parkedBytesMax    = 64 << 20
	parkedMsgsMax     = 128             // the limit in its place if the broker has less space
	publishWindow     = 2 * time.Minute // the broker's default for recognising message ids
	markerTTL         = time.Hour       // how long the mark of a deleted key stays, for watchers that were away
	ensureAttemptsMax = 5               // two services that start at once may update the same stream
	feedPart          = 4               // the feed has at most one part in so many of the log's limit
	neverMax          = -1              // no limit
	logRaise          = 10              // the log's limit is raised by this fraction
	raiseFloorBytes   = int64(64) << 10 // and by no less than this
	headersBytesMax   = int32(64) << 10 // headers count against the log's message size only within the body's limit
	logMessageMax     = int32(events.CommitBytesMax)
	leaseMessageMax   = int32(16) << 10  // a lease names its holder and the place
	alarmMessageMax   = int32(64) << 10  // an alarm names the session
	objectMessageMax  = int32(256) << 10 // a chunk has 128 KiB, and headers
)

// kvStream is the stream behind a bucket, as every KV client knows it.
func kvStream(bucket string) string { return "KV_" + bucket }

// kvSubject returns the subject of a key, or of a filter over keys.
func kvSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// bucket returns a bucket's name.
func (b *Bus) bucket(bk Bucket) string {
	if bk == Leases {
		return b.cell.LeaseBucket()
	}
	return b.cell.StateBucket()
}

// Ensure creates the missing streams and buckets of the cell, and updates the existing ones to this layout. It never
// narrows an existing limit. If a later version set up the cell, it fails with [ErrNewerLayout] before any change. The
// broker has no compare-and-set on configurations: after a change Ensure reads again, in case another service has
// written a different one.
func (b *Bus) Ensure(ctx context.Context) error {
	for range ensureAttemptsMax {
		changed, err := b.ensureOnce(ctx)
		if err != nil || !changed {
			return err
		}
	}
	return nil
}

// ensureOnce reads all streams, then creates or widens those that need it.
func (b *Bus) ensureOnce(ctx context.Context) (changed bool, err error) {
	want := b.layout()
	found := make([]*jetstream.StreamInfo, len(want))
	for i := range want {
		info, err := b.streamInfo(ctx, want[i].Name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
		if info != nil && layoutOf(info.Config) > layoutVersion {
			return false, fmt.Errorf("%w: %s has layout %d, this program knows %d: upgrade this program",
				ErrNewerLayout, want[i].Name, layoutOf(info.Config), layoutVersion)
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

// ensureStream creates or widens one stream. Another service may do the same concurrently: then it reads again.
func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig, found *jetstream.StreamInfo) (changed bool,
	err error) {
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
			// the broker reserves the bytes of a limit, and has too little space
			want.MaxBytes, want.MaxMsgs = neverMax, parkedMsgsMax
			continue
		}
		again, lookErr := b.streamInfo(ctx, want.Name)
		if lookErr != nil && !errors.Is(lookErr, ErrNotFound) {
			return false, lookErr
		}
		if (again == nil) == (found == nil) && (again == nil || reflect.DeepEqual(again.Config, found.Config)) {
			return false, err // nothing changed: this configuration is refused
		}
		found = again
	}
	return false, err
}

// streamInfo returns a stream's present state; [ErrNotFound] without one.
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

// layoutOf returns the layout version of a stream, 0 for a foreign stream.
func layoutOf(cfg jetstream.StreamConfig) int {
	v, err := strconv.Atoi(cfg.Metadata[layoutKey])
	if err != nil {
		return 0
	}
	return v
}

// layout returns the configurations of all streams of the cell.
func (b *Bus) layout() []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{b.logConfig(), b.bucketConfig(State), b.bucketConfig(Leases), b.objectConfig(),
		b.timerConfig(), b.parkedConfig()}
	if b.cfg.FeedAge > 0 {
		all = append(all, b.feedConfig())
	}
	return all
}

// Inspection is the state of the broker and of the cell's streams.
type Inspection struct {
	Version string        // of nats-server
	RTT     time.Duration // to it and back
	Streams []StreamState // all streams of [Bus.Ensure], in its order
}

// StreamState is one stream of the cell. A missing one has only its name and the wanted layout.
type StreamState struct {
	Name         string
	Missing      bool
	Layout       int // of the stream; 0: a foreign stream
	LayoutWanted int // by this program
	Msgs, Bytes  uint64
	BytesMax     uint64 // 0: no limit but the disk's
	LastSeq      uint64
	Replicas     int
	Consumers    int
	Nodes        []string // that hold it, in order; none outside a cluster
	Offline      []string // of these; also nodes that the leader has not heard of for seconds
}

// Inspect reads the state of the broker and of the cell's streams, and changes nothing.
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
			s.Msgs, s.Bytes, s.BytesMax, s.LastSeq = info.State.Msgs, info.State.Bytes,
				uint64(max(info.Config.MaxBytes, 0)), info.State.LastSeq
			s.Replicas, s.Consumers = info.Config.Replicas, info.State.Consumers
			s.nodes(info)
		}
		found.Streams = append(found.Streams, s)
	}
	return found, nil
}

// base returns the settings that all streams share.
func (b *Bus) base(name, description string, subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:         name,
		Description:  description,
		Subjects:     subjects,
		Retention:    jetstream.LimitsPolicy,
		Storage:      jetstream.FileStorage,
		Replicas:     b.cfg.Replicas,
		MaxConsumers: neverMax, MaxMsgs: neverMax, MaxBytes: neverMax, MaxMsgsPerSubject: neverMax,
		MaxMsgSize: neverMax,
		Duplicates: publishWindow,
		Metadata:   map[string]string{layoutKey: strconv.Itoa(layoutVersion)},
	}
}

// logConfig returns the log's configuration: schedules, roll-up, per-message TTL and direct get are off, see the
// contract.
func (b *Bus) logConfig() jetstream.StreamConfig {
	c := b.base(b.cell.LogStream(), "Holdfast: the log of all sessions", b.cell.LogSubjects())
	c.Discard = jetstream.DiscardNew
	c.MaxMsgSize = logMessageMax
	c.MaxConsumers = consumersMax // each process of a harness follows the commits of its sessions
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
	c := b.base(kvStream(bucket),
		"Holdfast: "+map[Bucket]string{State: "documents and views", Leases: "tickets and leases"}[bk],
		kvSubject(bucket, ">"))
	c.Discard = jetstream.DiscardNew
	c.MaxMsgsPerSubject = 1
	c.MaxConsumers = consumersMax
	c.MaxMsgSize = map[Bucket]int32{State: logMessageMax * 2, Leases: leaseMessageMax}[bk]
	c.DenyDelete, c.AllowDirect, c.AllowMsgTTL = true, true, true
	if bk == State || !b.nc.AuthRequired() { // many users have leases: see expiry.go
		c.AllowRollup, c.SubjectDeleteMarkerTTL = true, markerTTL
	}
	c.AllowAtomicPublish = bk == State // documents with their views
	return c
}

// objectConfig returns the configuration that every client of object stores expects. A cell with users has subjects for
// each of them, and allows no roll-ups: the header of one message would remove all content.
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

// widened is [widen] for a stream of this cell. The log accepts batches only if the broker syncs each write: otherwise
// nothing here sends them, and one batch can hold two commits of a session under one guard.
func (b *Bus) widened(found, want jetstream.StreamConfig) jetstream.StreamConfig {
	c := widen(found, want)
	if synced := c.Metadata[togetherKey] != "" && c.Replicas == 1; want.Name == b.cell.LogStream() && !synced {
		c.AllowAtomicPublish = false
	}
	return c
}

// widen returns the found configuration, with every limit and every feature at least as wide as wanted, and nothing
// narrower.
func widen(found, want jetstream.StreamConfig) jetstream.StreamConfig {
	c := found
	c.Description = want.Description
	c.Discard = want.Discard
	c.Subjects = union(found.Subjects, want.Subjects)
	c.Replicas = max(found.Replicas, want.Replicas)
	c.MaxConsumers = max(found.MaxConsumers, want.MaxConsumers) // no limit means the broker's, which is lower
	if want.MaxBytes > 0 {                                      // otherwise a limit that an operator set is kept
		c.MaxBytes = wider(found.MaxBytes, want.MaxBytes)
	}
	c.MaxMsgsPerSubject = wider(found.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	c.MaxMsgSize = wider(found.MaxMsgSize, want.MaxMsgSize)
	c.MaxAge = wider(found.MaxAge, want.MaxAge)
	c.Duplicates = max(found.Duplicates, want.Duplicates)
	// This concerns permissions, not limits. Markers and schedules need roll-ups.
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

// wider returns the greater of two limits; 0 and less mean no limit.
func wider[T int | int32 | int64 | time.Duration](found, want T) T {
	if found <= 0 || want <= 0 {
		return min(found, want)
	}
	return max(found, want)
}

// union returns the first list with the additional elements of the second.
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

// LogUsage returns how many bytes the log holds and may hold; a maximum of 0 is no limit.
func (b *Bus) LogUsage(ctx context.Context) (usedBytes, maxBytes uint64, err error) {
	info, err := b.streamInfo(ctx, b.cell.LogStream())
	if err != nil {
		return 0, 0, err
	}
	return info.State.Bytes, uint64(max(info.Config.MaxBytes, 0)), nil
}

// When the log counts as nearly full, and how long the answer that it has no limit is used.
const (
	nearlyFullPercent = 90
	percent           = 100
	limitlessKnownFor = time.Second
	roomyBytes        = uint64(256) << 20 // bytes that are not written while an answer is used
)

// room is until when the log is known to have no limit.
type room struct {
	mu    sync.Mutex
	until time.Time
}

// NearlyFull reports whether the log holds nine tenths of its limit: then no new input is accepted, so that recovery
// and closing have space. For a log without a limit, or with much space, the broker is asked at most once a second.
func (b *Bus) NearlyFull(ctx context.Context) (bool, error) {
	now := time.Now()
	b.room.mu.Lock()
	known := now.Before(b.room.until)
	b.room.mu.Unlock()
	if known {
		return false, nil
	}
	used, most, err := b.LogUsage(ctx)
	if err == nil && (most == 0 ||
		used < most/percent*nearlyFullPercent-min(roomyBytes, most/percent*nearlyFullPercent)) {
		b.room.mu.Lock()
		b.room.until = now.Add(limitlessKnownFor)
		b.room.mu.Unlock()
	}
	return most > 0 && used >= most/percent*nearlyFullPercent, err
}

// RaiseLogLimit raises the log's limit by a tenth, once in its life, so that recovery has space in a log that others
// have filled. It reports whether it did; false means that there is no limit or it was raised before.
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
