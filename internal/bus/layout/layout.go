// Package layout sets up the streams and buckets of a cell, and reads their state.
//
// It widens what it finds and narrows nothing. A cell with a later layout stays unchanged.
package layout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The layout of a cell: streams, buckets and their limits.
const (
	layoutVersion = 1
	layoutKey     = "hf.layout" // metadata key: the version of the layout that the stream has
	// consumers, and so watchers, of the log or a bucket; the broker's own default is 1,000
	consumersMax = 100_000
	parkedAge    = 30 * 24 * time.Hour
	parkedWindow = 24 * time.Hour // how long parking the same input again is recognised
	// of parked input; the oldest is removed first, and the log has the parked input as well
	parkedBytesMax = 64 << 20
	parkedMsgsMax  = 128             // the limit in its place if the broker has less space
	publishWindow  = 2 * time.Minute // the broker's default for recognising message ids
	// The window of a stream in which nothing has a message id: the least that the broker accepts. It keeps the ids of
	// every user in memory, and drops a message whose id another user has sent.
	noIDsWindow       = 100 * time.Millisecond
	ensureAttemptsMax = 5               // two services that start at once may update the same stream
	feedPart          = 4               // the feed has at most one part in so many of the log's limit
	headersBytesMax   = int32(64) << 10 // headers count against the log's message size only within the body's limit
	logMessageMax     = int32(events.CommitBytesMax)
	leaseMessageMax   = int32(16) << 10  // a lease names its holder and the place
	alarmMessageMax   = int32(64) << 10  // an alarm names the session
	objectMessageMax  = int32(256) << 10 // a chunk has 128 KiB, and headers
)

// Layout sets up and inspects the streams of a cell. Its methods may be called concurrently.
type Layout struct {
	conn *core.Conn
}

// New returns the layout of the cell of a connection.
func New(conn *core.Conn) *Layout { return &Layout{conn: conn} }

// Ensure creates the missing streams and buckets of the cell, and updates the existing ones to this layout. It never
// narrows an existing limit. Before any change it fails with [core.ErrNewerLayout] if a later version set up the cell,
// and with [core.ErrHalfRestored] if a restore of the log did not end. The broker has no compare-and-set on
// configurations: after a change Ensure reads again, in case another service has written a different one.
func (l *Layout) Ensure(ctx context.Context) error {
	for range ensureAttemptsMax {
		changed, err := l.ensureOnce(ctx)
		if err != nil || !changed {
			return err
		}
	}
	return nil
}

// ensureOnce reads all streams, then creates or widens those that need it.
func (l *Layout) ensureOnce(ctx context.Context) (changed bool, err error) {
	want := l.layout()
	found := make([]*jetstream.StreamInfo, len(want))
	for i := range want {
		info, err := l.conn.StreamInfo(ctx, want[i].Name)
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return false, err
		}
		if info != nil && layoutOf(info.Config) > layoutVersion {
			return false, fmt.Errorf("%w: %s has layout %d, this program knows %d: upgrade this program",
				core.ErrNewerLayout, want[i].Name, layoutOf(info.Config), layoutVersion)
		}
		if info != nil {
			if from, ok := core.RestoredFrom(info.Config); ok && info.State.LastSeq < from.Last {
				return false, fmt.Errorf("%w: %s ends at %d, its backup at %d", core.ErrHalfRestored, want[i].Name,
					info.State.LastSeq, from.Last)
			}
		}
		found[i] = info
	}
	for i := range want {
		touched, err := l.ensureStream(ctx, want[i], found[i])
		if err != nil {
			return false, err
		}
		changed = changed || touched
	}
	return changed, nil
}

// ensureStream creates or widens one stream. Another service may do the same concurrently: then it reads again.
func (l *Layout) ensureStream(ctx context.Context, want jetstream.StreamConfig,
	found *jetstream.StreamInfo) (changed bool,
	err error) {
	for range ensureAttemptsMax {
		verb, cfg := "CREATE", want
		if found != nil {
			verb, cfg = "UPDATE", l.widened(found.Config, want)
			if reflect.DeepEqual(cfg, found.Config) {
				return false, nil
			}
		}
		var made jetstream.StreamInfo
		if err = l.conn.Call(ctx, "set up stream "+want.Name, "STREAM."+verb+"."+want.Name, cfg, &made); err == nil {
			return true, nil
		}
		if errors.Is(err, core.ErrForbidden) || ctx.Err() != nil {
			return false, err
		}
		if errors.Is(err, core.ErrFull) && found == nil && want.Name == l.conn.Cell.ParkedStream() &&
			want.MaxBytes > 0 {
			// the broker reserves the bytes of a limit, and has too little space
			want.MaxBytes, want.MaxMsgs = core.NeverMax, parkedMsgsMax
			continue
		}
		again, readErr := l.conn.StreamInfo(ctx, want.Name)
		if readErr != nil && !errors.Is(readErr, core.ErrNotFound) {
			return false, readErr
		}
		if (again == nil) == (found == nil) && (again == nil || reflect.DeepEqual(again.Config, found.Config)) {
			// nothing changed: this configuration is refused
			return false, err
		}
		found = again
	}
	return false, err
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
func (l *Layout) layout() []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{l.logConfig(), l.stateConfig(), l.leaseConfig(), l.objectConfig(),
		l.timerConfig(), l.parkedConfig()}
	if l.conn.Config.FeedKeptFor > 0 {
		all = append(all, l.feedConfig())
	}
	return all
}

// Configs returns the configurations of the streams of a new cell.
func (l *Layout) Configs() []jetstream.StreamConfig { return l.layout() }

// Inspection is the state of the broker and of the cell's streams.
type Inspection struct {
	Version string        // of nats-server
	RTT     time.Duration // to it and back
	Streams []StreamState // all streams of [Layout.Ensure], in its order
	// of the account's streams, copies included, and its limit; 0: no limit but the broker's, which no client can read
	Bytes, BytesMax uint64
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
	// the backup from which it was restored, and the end of the stream in it; 0: it was not
	RestoredFrom time.Time
	RestoredLast uint64
}

// Inspect reads the state of the broker and of the cell's streams, and changes nothing.
func (l *Layout) Inspect(ctx context.Context) (Inspection, error) {
	rtt, err := l.conn.NC.RTT()
	if err != nil {
		return Inspection{}, core.Translate("inspect", err)
	}
	found := Inspection{Version: l.conn.NC.ConnectedServerVersion(), RTT: rtt}
	var account jetstream.AccountInfo
	err = l.conn.Call(ctx, "look at the account", "INFO", nil, &account)
	if err != nil && !errors.Is(err, core.ErrForbidden) {
		return found, err
	}
	found.Bytes, found.BytesMax = account.Store, uint64(max(account.Limits.MaxStore, 0))
	for _, want := range l.layout() {
		s := StreamState{Name: want.Name, LayoutWanted: layoutVersion}
		info, err := l.conn.StreamInfo(ctx, want.Name)
		switch {
		case errors.Is(err, core.ErrNotFound):
			s.Missing = true
		case err != nil:
			return found, err
		default:
			s.Layout = layoutOf(info.Config)
			s.Msgs, s.Bytes, s.BytesMax, s.LastSeq = info.State.Msgs, info.State.Bytes,
				uint64(max(info.Config.MaxBytes, 0)), info.State.LastSeq
			s.Replicas, s.Consumers = info.Config.Replicas, info.State.Consumers
			if from, ok := core.RestoredFrom(info.Config); ok {
				s.RestoredFrom, s.RestoredLast = from.Backup, from.Last
			}
			s.nodes(info)
		}
		found.Streams = append(found.Streams, s)
	}
	return found, nil
}

// base returns the settings that all streams share.
func (l *Layout) base(name, description string, subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:         name,
		Description:  description,
		Subjects:     subjects,
		Retention:    jetstream.LimitsPolicy,
		Storage:      jetstream.FileStorage,
		Replicas:     l.conn.Config.Replicas,
		MaxConsumers: core.NeverMax, MaxMsgs: core.NeverMax, MaxBytes: core.NeverMax, MaxMsgsPerSubject: core.NeverMax,
		MaxMsgSize: core.NeverMax,
		Duplicates: noIDsWindow,
		Metadata:   map[string]string{layoutKey: strconv.Itoa(layoutVersion)},
	}
}

// logConfig returns the log's configuration: schedules, roll-up, per-message TTL and direct get are off, see the
// contract.
func (l *Layout) logConfig() jetstream.StreamConfig {
	c := l.base(l.conn.Cell.LogStream(), "Holdfast: the log of all sessions", l.conn.Cell.LogSubjects())
	c.Discard = jetstream.DiscardNew
	c.MaxMsgSize = logMessageMax
	// each process of a harness follows the commits of its sessions
	c.MaxConsumers = consumersMax
	if l.conn.Together.Load() {
		c.AllowAtomicPublish = true
		c.Metadata[core.TogetherKey] = "1"
	}
	if l.conn.Config.LogBytesMax > 0 {
		c.MaxBytes = l.conn.Config.LogBytesMax
	}
	return c
}

// bucketConfig returns what the configurations of both buckets share.
func (l *Layout) bucketConfig(bucket, description string) jetstream.StreamConfig {
	c := l.base(core.KVStream(bucket), description, core.KVSubject(bucket, ">"))
	c.Discard = jetstream.DiscardNew
	c.MaxMsgsPerSubject = 1
	c.MaxConsumers = consumersMax
	c.DenyDelete, c.AllowDirect, c.AllowMsgTTL = true, true, true
	return c
}

func (l *Layout) stateConfig() jetstream.StreamConfig {
	c := l.bucketConfig(l.conn.Cell.StateBucket(), "Holdfast: documents and views")
	c.MaxMsgSize = logMessageMax * 2
	c.AllowRollup, c.SubjectDeleteMarkerTTL = true, core.MarkerTTL
	// documents with their views
	c.AllowAtomicPublish = true
	return c
}

func (l *Layout) leaseConfig() jetstream.StreamConfig {
	c := l.bucketConfig(l.conn.Cell.LeaseBucket(), "Holdfast: tickets and leases")
	c.MaxMsgSize = leaseMessageMax
	// many users have leases: a watch of them needs no markers
	if !l.conn.NC.AuthRequired() {
		c.AllowRollup, c.SubjectDeleteMarkerTTL = true, core.MarkerTTL
	}
	return c
}

// objectConfig returns the configuration that every client of object stores expects. A cell with users has subjects for
// each of them, and allows no roll-ups: the header of one message would remove all content.
func (l *Layout) objectConfig() jetstream.StreamConfig {
	bucket := l.conn.Cell.ObjectBucket()
	c := l.base(object.Stream(bucket), "Holdfast: content too large for a fact",
		object.Chunks(bucket, "*"), object.Metas(bucket), object.OwnChunks(bucket), object.OwnMetas(bucket))
	c.Discard = jetstream.DiscardNew
	c.MaxMsgSize = objectMessageMax
	if l.conn.Config.ObjectBytesMax > 0 {
		c.MaxBytes = l.conn.Config.ObjectBytesMax
	}
	c.AllowRollup, c.AllowDirect = !l.conn.NC.AuthRequired(), true
	return c
}

func (l *Layout) timerConfig() jetstream.StreamConfig {
	c := l.base(l.conn.Cell.TimerStream(), "Holdfast: alarms, pending and fired", l.conn.Cell.TimerSubjects()...)
	// schedules need it
	c.Discard = jetstream.DiscardOld
	c.AllowMsgSchedules, c.AllowRollup, c.AllowMsgTTL = true, true, true
	c.AllowDirect = true
	c.MaxMsgSize = alarmMessageMax
	return c
}

func (l *Layout) feedConfig() jetstream.StreamConfig {
	c := l.base(l.conn.Cell.FeedStream(), "Holdfast: each fact that counted, by kind", l.conn.Cell.FeedSubjects())
	c.Discard = jetstream.DiscardOld
	c.MaxAge = l.conn.Config.FeedKeptFor
	// a log that is purged and written again would fill the store with copies
	if l.conn.Config.LogBytesMax > 0 {
		c.MaxBytes = l.conn.Config.LogBytesMax / feedPart
	}
	c.Duplicates = min(publishWindow, c.MaxAge)
	c.AllowDirect, c.AllowAtomicPublish = true, true
	return c
}

func (l *Layout) parkedConfig() jetstream.StreamConfig {
	c := l.base(l.conn.Cell.ParkedStream(), "Holdfast: input that could not be read", l.conn.Cell.ParkedSubjects())
	c.Discard = jetstream.DiscardOld
	c.MaxAge, c.MaxBytes = parkedAge, parkedBytesMax
	c.Duplicates = parkedWindow
	c.AllowDirect = true
	return c
}

// widened is [widen] for a stream of this cell. The log accepts batches only if the broker syncs each write: otherwise
// nothing here sends them, and one batch can hold two commits of a session under one guard.
func (l *Layout) widened(found, want jetstream.StreamConfig) jetstream.StreamConfig {
	c := widen(found, want)
	if want.Name == l.conn.Cell.LogStream() && l.conn.Syncs.InGroups() {
		// of an earlier start of the same store
		delete(c.Metadata, core.TogetherKey)
	}
	if synced := c.Metadata[core.TogetherKey] != "" && c.Replicas == 1; want.Name == l.conn.Cell.LogStream() &&
		!synced {
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
	// no limit means the broker's, which is lower
	c.MaxConsumers = max(found.MaxConsumers, want.MaxConsumers)
	// otherwise a limit that an operator set is kept
	if want.MaxBytes > 0 {
		c.MaxBytes = wider(found.MaxBytes, want.MaxBytes)
	}
	c.MaxMsgsPerSubject = wider(found.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	c.MaxMsgSize = wider(found.MaxMsgSize, want.MaxMsgSize)
	c.MaxAge = wider(found.MaxAge, want.MaxAge)
	if c.Duplicates = max(found.Duplicates, want.Duplicates); want.Duplicates == noIDsWindow {
		// a longer one serves no writer, and takes the memory of the broker
		c.Duplicates = noIDsWindow
	}
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
