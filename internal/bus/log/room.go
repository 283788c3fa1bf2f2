package log

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How the limit of a full log is raised.
const (
	raisedKey       = "hf.raised"     // metadata key: the log's limit was raised once
	logRaise        = 10              // the log's limit is raised by this fraction
	raiseFloorBytes = int64(64) << 10 // and by no less than this
)

// Usage returns how many bytes the log holds and may hold; a maximum of 0 is no limit.
func (l *Log) Usage(ctx context.Context) (usedBytes, maxBytes uint64, err error) {
	info, err := l.conn.StreamInfo(ctx, l.conn.Cell.LogStream())
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
func (l *Log) NearlyFull(ctx context.Context) (bool, error) {
	now := time.Now()
	l.room.mu.Lock()
	known := now.Before(l.room.until)
	l.room.mu.Unlock()
	if known {
		return false, nil
	}
	used, most, err := l.Usage(ctx)
	if err == nil && (most == 0 ||
		used < most/percent*nearlyFullPercent-min(roomyBytes, most/percent*nearlyFullPercent)) {
		l.room.mu.Lock()
		l.room.until = now.Add(limitlessKnownFor)
		l.room.mu.Unlock()
	}
	return most > 0 && used >= most/percent*nearlyFullPercent, err
}

// RaiseLimit raises the log's limit by a tenth, once in its life, so that recovery has space in a log that others
// have filled. It reports whether it did; false means that there is no limit or it was raised before.
func (l *Log) RaiseLimit(ctx context.Context) (bool, error) {
	info, err := l.conn.StreamInfo(ctx, l.conn.Cell.LogStream())
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
	if err := l.conn.Call(ctx, "raise the log's limit", "STREAM.UPDATE."+c.Name, c, &made); err != nil {
		return false, err
	}
	return true, nil
}
