package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	linesMax      = 1_000       // log lines that wait for a slow logger; newer ones are dropped and counted
	linesFlushMax = time.Second // how long Close waits for a logger that blocks
)

// lines hands log lines to the logger of [Config] in order, on a goroutine that holds no lock and does nothing else. So
// that logger may block, and may call the client, at any time.
type lines struct {
	to zerolog.Logger

	mu      sync.Mutex
	waiting []line
	dropped int
	done    chan struct{} // closed when all that waited is written; nil while nothing is being written
}

type line struct {
	level zerolog.Level
	text  []byte // one JSON object
}

// detach returns a logger that never blocks and writes to this one.
func detach(to zerolog.Logger) (zerolog.Logger, *lines) {
	l := &lines{to: to}
	probe := to.WithLevel(zerolog.PanicLevel)
	written := probe.Enabled()
	probe.Discard().Send()
	if !written { // the zero Logger, or one that is switched off
		return zerolog.Nop(), l
	}
	return zerolog.New(l).Level(to.GetLevel()), l
}

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) { return l.WriteLevel(zerolog.NoLevel, p) }

// WriteLevel implements [zerolog.LevelWriter].
func (l *lines) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= linesMax {
		l.dropped++
		return len(p), nil
	}
	l.waiting = append(l.waiting, line{level, bytes.Clone(p)})
	if l.done == nil {
		l.done = make(chan struct{})
		go l.run()
	}
	return len(p), nil
}

// run writes until nothing waits.
func (l *lines) run() {
	for {
		l.mu.Lock()
		if len(l.waiting) == 0 {
			close(l.done)
			l.done = nil
			l.mu.Unlock()
			return
		}
		next, dropped := l.waiting[0], l.dropped
		l.waiting, l.dropped = l.waiting[1:], 0
		l.mu.Unlock()
		l.forward(next)
		if dropped > 0 {
			l.to.Warn().Str("entity", "log").Msgf("%d log lines dropped: the logger was too slow", dropped)
		}
	}
}

// forward writes one line with its fields, in their order.
func (l *lines) forward(next line) {
	e := l.to.WithLevel(next.level)
	d := json.NewDecoder(bytes.NewReader(next.text))
	message := ""
	for token, err := d.Token(); err == nil; token, err = d.Token() {
		key, isKey := token.(string)
		if !isKey {
			continue // a bracket of the line
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			break
		}
		switch key {
		case zerolog.LevelFieldName:
		case zerolog.MessageFieldName:
			if err := json.Unmarshal(value, &message); err != nil {
				message = string(value)
			}
		default:
			e.RawJSON(key, value)
		}
	}
	e.Msg(message)
}

// flush waits until the logger has what was written so far, or for a while if it blocks.
func (l *lines) flush(ctx context.Context) {
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done == nil {
		return
	}
	late := time.NewTimer(linesFlushMax)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-ctx.Done():
	}
}
