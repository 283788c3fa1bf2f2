package harness

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
)

// Limits of Connect.
const (
	tryingAfter = time.Second     // after which Connect logs what it waits for
	cellWaitMax = 5 * time.Second // a broker that has just started has no cell for a moment
	cellPause   = 100 * time.Millisecond
)

// Advice about a broker that does not answer, about one without the cell, and about one without JetStream.
const (
	adviceBroker = "start one with `holdfast up`, or give the address of another one"
	adviceCell   = "`holdfast up`, or the first service that runs there, makes it; else correct the prefix"
	adviceNodes  = "start the nodes that are away; `holdfast doctor` says more"
)

// connectError is an error of Connect: one sentence with the address, the cause and what to do. It keeps the chain.
type connectError struct {
	text string
	err  error
}

// Error returns the sentence.
func (e *connectError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *connectError) Unwrap() error { return e.err }

// connectFault returns an error of Connect in the words of a person.
func (c Config) connectFault(err error) error {
	text, advice := c.awaits(err)
	if advice != "" {
		text += ": " + advice
	}
	return &connectError{"harness: connect " + c.ID + ": " + text, translate(err)}
}

// awaits returns what Connect misses, and what to do about it.
func (c Config) awaits(err error) (text, advice string) {
	where := bus.Redacted(c.URL)
	if c.InProcess != nil {
		where = "the address of the embedded broker"
	}
	var address *bus.AddressError
	switch {
	case errors.Is(err, ErrNoCell):
		return fmt.Sprintf("the broker at %s has no cell %q", where, c.Prefix), adviceCell
	case errors.Is(err, bus.ErrNoAnswer):
		return "the broker at " + where + " accepts connections, but its JetStream does not answer", adviceNodes
	case errors.As(err, &address):
		return address.Error(), "want nats://host:port"
	case errors.Is(err, bus.ErrTLS):
		_, why, _ := strings.Cut(err.Error(), bus.ErrTLS.Error()+": ")
		return "no trusted connection to " + where + ": " + prefixes.ReplaceAllString(why, "$1"), ""
	case !errors.Is(err, bus.ErrUnreachable):
		return plain(err), ""
	}
	text = "no broker answers at " + where
	if why := bus.WhyAway(c.URL, err); why != "" {
		text += ": " + why
	}
	return text, adviceBroker
}

// prefixes matches names of packages at the beginning of a text, and at that of a cause in it.
var prefixes = regexp.MustCompile(`(^|: )(?:(?:harness|nats): )+`)

// plain returns the text of an error without names of packages, and each part of it once.
func plain(err error) string {
	parts := strings.Split(prefixes.ReplaceAllString(err.Error(), "$1"), ": ")
	once := parts[:1]
	for _, part := range parts[1:] {
		if part != once[len(once)-1] {
			once = append(once, part)
		}
	}
	return strings.Join(once, ": ")
}

// wait logs what Connect waits for, after a second, and each reason once.
type wait struct {
	cfg   Config
	log   zerolog.Logger
	timer *time.Timer

	mu     sync.Mutex
	long   bool // a second is over
	why    string
	logged map[string]bool
}

// newWait begins to wait. The caller calls end.
func newWait(cfg Config, log zerolog.Logger) *wait {
	w := &wait{cfg: cfg, log: log, logged: map[string]bool{}}
	// until more is known
	w.note(bus.ErrUnreachable)
	w.timer = time.AfterFunc(tryingAfter, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.long = true
		w.logOnce()
	})
	return w
}

// note records why the last attempt has failed.
func (w *wait) note(err error) {
	text, advice := w.cfg.awaits(err)
	if advice != "" {
		advice = ": " + advice
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = "still trying: " + text + advice
	w.logOnce()
}

// logOnce logs the present reason. The lock is held.
func (w *wait) logOnce() {
	if w.long && !w.logged[w.why] {
		w.logged[w.why] = true
		w.log.Warn().Str("id", w.cfg.ID).Str("entity", entityBroker).Msg(w.why)
	}
}

// end ends the wait. If it was long, its success is logged, too.
func (w *wait) end(connected bool) {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.long = false
	if connected && len(w.logged) > 0 {
		w.log.Info().Str("id", w.cfg.ID).Str("entity", entityBroker).Msg("connected to " + w.broker())
	}
}

func (w *wait) broker() string {
	if w.cfg.InProcess != nil {
		return "the embedded broker"
	}
	return bus.Redacted(w.cfg.URL)
}

// beginInCell draws an incarnation and takes its lease. A broker that has just started makes its cell a moment later.
func (h *Harness) beginInCell(ctx context.Context, note func(error)) (*term, error) {
	limit, cancel := context.WithTimeout(ctx, cellWaitMax)
	defer cancel()
	for {
		_, err := h.bus.Log.LastSeq(ctx)
		var l *term
		// another error is that of a user who may not look
		if !errors.Is(err, bus.ErrNotFound) {
			if l, err = h.begin(ctx); !errors.Is(err, bus.ErrNotFound) {
				return l, err
			}
		}
		note(ErrNoCell)
		select {
		case <-limit.Done():
			return nil, ErrNoCell
		case <-time.After(cellPause):
		}
	}
}
