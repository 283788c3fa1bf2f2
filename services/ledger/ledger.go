// Package ledger folds the log into documents, views and the feed, and carries out requests of people.
//
//	HF_LOG ──▶ Batch: group by session ─▶ fold in memory ─▶ document (CAS on the key's revision)
//	                                                        ─▶ views     (guarded by the document's revision)
//	                                                        ─▶ feed      (each fact that counted)
//	                                                        ─▶ parked    (what could not be read)
//	                                                        ─▶ ack
//
// One ledger at a time is the active one (a pinned consumer); any number answer requests. Correctness does not depend
// on there being only one: a document is stored against the revision it was folded from, and a view against the
// document it was derived from, so a ledger that was paused loses races, not data.
//
// Under failure:
//
//	killed between any two stores   the messages are not acked; they are delivered to its successor. A document that
//	                                has folded them already shows it, and then the session's log is folded once more
//	                                for the feed and the views that may be missing.
//	lost race on a document         another ledger is active, or a rebuild: drop the cache, take the messages again.
//	one session cannot be folded    it is set aside, with a note in the state bucket, and the others continue. It is
//	                                folded apart from them, from the log, until its document is up to date again.
//	a long session is far behind    the same: no batch reads more of the log than inlineReadMax.
//	one harness has many large      the same for what is beyond its part of a batch: the documents of others do not
//	documents that change           wait for it.
//	a gap in a session's guards     delivery skipped something: the session's log is read from the leader.
//	the log lost commits            a document that has folded more than the log has is found at each start and
//	                                take-over. The loss is noted, and the document rebuilt if the log has the
//	                                session's beginning.
//	a document damaged at rest      the slow walk folds each session again and rebuilds what differs.
//	a rebuild killed half-way, or   views are compared with documents at each start and take-over; wrong ones are
//	a foreign write in a view       rebuilt.
//	an unreadable commit            it is parked with its reason, counted in the document, and the session continues.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/control"
)

// Name is the service's name on the wire.
const Name = "ledger"

// Config configures a ledger. [Default] returns the default values.
type Config struct {
	// SettledKeptFor is how long a settled prompt stays in the people's view. Default 10 m, at least 1 s. Too
	// short: a person who looks a moment later does not see the answer.
	SettledKeptFor time.Duration
	// ClosedKeptFor is how long after its end a session's log is kept. Default 720 h, at least 1 s. Too long:
	// the disk fills.
	ClosedKeptFor time.Duration
	// RetainEvery is the pause between two passes that purge sessions. Default 1 m.
	RetainEvery time.Duration
	// WalkEvery is the pause between two slow walks, which compare every document with the log; the first begins at
	// once. Default 10 m. Too long: a damaged document stays wrong as long.
	WalkEvery time.Duration
	// BatchMax is how many commits are folded at once. Default 512. Larger: fewer writes per commit, and a longer delay
	// of the first commit of a batch.
	BatchMax int
	// CachedMax is how many sessions' states are kept in memory. Default 10,000. Too few: documents are read again.
	CachedMax int
	// Version is the version that the service announces.
	Version string
}

// Default returns the configuration of a ledger that was started without options.
func Default() Config {
	return Config{SettledKeptFor: 10 * time.Minute, ClosedKeptFor: 720 * time.Hour, RetainEvery: time.Minute,
		WalkEvery: 10 * time.Minute,
		BatchMax:  512, CachedMax: 10_000, Version: "0.1.0"}
}

// Validate returns an error that lists each invalid field.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, name, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("config: %s: want %s", name, want))
		}
	}
	need(c.SettledKeptFor >= time.Second, "settled-prompts-kept-for", "1s or more")
	need(c.ClosedKeptFor >= time.Second, "closed-sessions-kept-for", "1s or more")
	need(c.RetainEvery > 0, "retain-every", "more than 0")
	need(c.WalkEvery > 0, "walk-every", "more than 0")
	need(c.BatchMax >= 1, "batch-max", "1 or more")
	need(c.CachedMax >= 1, "cached-max", "1 or more")
	return errors.Join(errs...)
}

// Ledger is the ledger of one process.
type Ledger struct {
	bus  *bus.Bus
	cfg  Config
	log  zerolog.Logger
	fold *folder

	wholeReads *gate            // of requests that read a whole session
	asked      *control.History // prompts
	lists      *gate            // of requests that read all documents
	prefixes   prefixes
}

// New returns a ledger. The cell must be set up before: see [layout.Layout.Ensure].
func New(b *bus.Bus, cfg Config, log zerolog.Logger) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log = log.With().Str("service", Name).Logger()
	l := &Ledger{bus: b, cfg: cfg, log: log, fold: newFolder(b, cfg, log),
		wholeReads: newGate(wholeReadsMax, wholeReadsWaitMax, "others ask about prompts of long ago: ask again"),
		asked:      control.NewHistory(b.Log.Each, promptOf, control.HistoryMax),
		lists:      newGate(listsMax, listWaitMax, "others list sessions: ask again")}
	l.fold.mend = l.mend
	return l, nil
}

// Source returns the consumer with which a ledger reads the log.
func Source(cfg Config) consumer.Source {
	return consumer.Source{Stream: consumer.LogStream, Durable: Name, BatchMax: cfg.BatchMax}
}

// Run serves until ctx ends. Then it hands over and returns nil. It returns an error only if a new attempt would fail
// too.
func (l *Ledger) Run(ctx context.Context) error {
	return control.Together(ctx,
		func(ctx context.Context) error { return l.bus.Consumers.Consume(ctx, Source(l.cfg), l.fold) },
		func(ctx context.Context) error {
			return l.bus.Services.Serve(ctx, Name, l.cfg.Version, "folds the log, appends what people ask for",
				l.endpoints())
		},
		l.follow,
		l.fold.workApart,
		l.fold.parkLate,
		func(ctx context.Context) error { return control.Register(ctx, l.bus, Name, l.cfg.Version) },
		l.retain,
		func(ctx context.Context) error { return control.FollowClock(ctx, l.bus, l.log) },
		l.compareViews,
		l.survey,
		l.walk,
	)
}

// follow keeps the end of the log in memory, for requests and for the views.
func (l *Ledger) follow(ctx context.Context) error {
	cell := l.bus.Cell()
	return l.bus.Log.Follow(ctx, "", func(uint64) { l.fold.tail.clear() }, func(m bus.Message) {
		if r, _, err := cell.ParseLog(m.Subject); err == nil {
			l.fold.tail.add(r, m)
		}
	})
}
