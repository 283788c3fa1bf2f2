package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
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
	to  *slog.Logger
	few bool // only warnings, and lines about the connection

	mu      sync.Mutex
	waiting []line
	dropped int
	done    chan struct{} // closed when all that waited is written; nil while nothing is being written
}

type line struct {
	at    time.Time
	level slog.Level
	text  []byte // one JSON object
}

// entityBroker marks lines about the connection to the broker.
const entityBroker = "broker"

// detach returns a logger that never blocks and writes to this one, or a few lines to the default one.
func detach(to *slog.Logger) (zerolog.Logger, *lines) {
	l := &lines{to: to}
	if to == nil {
		l.to, l.few = slog.Default(), true
	}
	return zerolog.New(l), l
}

// levelOf returns the level of slog for one of zerolog. A line without a level counts as information.
func levelOf(level zerolog.Level) slog.Level {
	switch level {
	case zerolog.TraceLevel, zerolog.DebugLevel:
		return slog.LevelDebug
	case zerolog.WarnLevel:
		return slog.LevelWarn
	case zerolog.ErrorLevel, zerolog.FatalLevel, zerolog.PanicLevel:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) { return l.WriteLevel(zerolog.NoLevel, p) }

// WriteLevel implements [zerolog.LevelWriter].
func (l *lines) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	if l.few && levelOf(level) < slog.LevelWarn && !bytes.Contains(p, []byte(`"entity":"`+entityBroker+`"`)) {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= linesMax {
		l.dropped++
		return len(p), nil
	}
	l.waiting = append(l.waiting, line{time.Now(), levelOf(level), bytes.Clone(p)})
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
			l.to.Warn(fmt.Sprintf("the logger was too slow: log lines dropped: %d", dropped), "entity", "log")
		}
	}
}

// forward writes one line with its fields, in their order.
func (l *lines) forward(next line) {
	ctx := context.Background()
	if !l.to.Enabled(ctx, next.level) {
		return
	}
	d := json.NewDecoder(bytes.NewReader(next.text))
	message := ""
	var fields []slog.Attr
	for token, err := d.Token(); err == nil; token, err = d.Token() {
		key, isKey := token.(string)
		if !isKey {
			// a bracket of the line
			continue
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			break
		}
		switch key {
		case zerolog.LevelFieldName:
		case zerolog.MessageFieldName:
			message = valueOf(value).String()
		default:
			fields = append(fields, slog.Attr{Key: key, Value: valueOf(value)})
		}
	}
	r := slog.NewRecord(next.at, next.level, message, 0)
	r.AddAttrs(fields...)
	if err := l.to.Handler().Handle(ctx, r); err != nil {
		// as in slog: a handler that fails has nowhere to report it
		return
	}
}

// valueOf returns the value of a field: a text, a number, a bool, or else its JSON.
func valueOf(body json.RawMessage) slog.Value {
	var text string
	if json.Unmarshal(body, &text) == nil {
		return slog.StringValue(text)
	}
	number := string(body)
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return slog.Int64Value(n)
	}
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		return slog.Uint64Value(n)
	}
	if n, err := strconv.ParseFloat(number, 64); err == nil {
		return slog.Float64Value(n)
	}
	if is, err := strconv.ParseBool(number); err == nil {
		return slog.BoolValue(is)
	}
	return slog.AnyValue(body)
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
