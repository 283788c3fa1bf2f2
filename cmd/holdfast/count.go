package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// Limits of a cell of which the doctor reads all documents, and the ends of all sessions in the log.
const (
	readAllSubjects = 5_000
	readAllBytes    = 8 << 20
)

// tallyStale is how old a tally may be that is taken for the present: the ledger counts once a minute or more often.
const tallyStale = 5 * time.Minute

// readAllAdvice is the advice where the ledger has counted nothing.
const readAllAdvice = "`holdfast doctor --read-all` reads every document itself"

// Places of streams in an inspection.
const (
	logPlace   = 0
	statePlace = 1
)

// readsAll reports whether the cell is so small that the doctor reads all of it.
func readsAll(cell layout.Inspection) bool {
	log, state := &cell.Streams[logPlace], &cell.Streams[statePlace]
	return log.Subjects+state.Subjects <= readAllSubjects && state.Bytes <= readAllBytes
}

// lossAdvice is the advice for a log that has lost commits.
const lossAdvice = "keep what is left: `holdfast rescue DIR`; restore the broker's files from a backup if there is " +
	"one; " +
	"else accept the loss with `holdfast rebuild --accept-loss`"

// truth reports the comparison of the documents with the log, or its error: a document that is ahead of the log shows a
// loss.
func (p *patient) truth(found *ledger.Survey, err error) {
	if err != nil {
		p.add("truth", levelWrong, "try again; with a larger --timeout in a large cell",
			"documents were not compared with the log: %v", err)
		return
	}
	p.compared(found)
}

// compared adds what the comparison found.
func (p *patient) compared(found *ledger.Survey) {
	if len(found.Lost) == 0 && len(found.Wrong) == 0 {
		p.add("truth", levelOK, "", "the log has all that %s",
			terminal.Count(found.Documents, "document knows", "documents know"))
		return
	}
	p.losses(found.Lost)
	names := make([]string, len(found.Wrong))
	for i := range found.Wrong {
		names[i] = found.Wrong[i].String()
	}
	p.wrongDocuments(ledger.SomeOf(names), "")
}

// losses reports sessions of which the log has lost commits.
func (p *patient) losses(lost []ledger.Lost) {
	names := make([]string, len(lost))
	for i := range lost {
		names[i] = lost[i].String()
	}
	if len(names) > 0 {
		p.add("truth", levelWrong, lossAdvice, "the log has lost commits of %s: %s",
			terminal.Plural(len(names), "session"), shorten(names))
	}
}

// wrongDocuments reports documents that differ from the log. seen says when that was, "" for now.
func (p *patient) wrongDocuments(wrong ledger.Some, seen string) {
	if wrong.Count > 0 {
		p.add("truth", levelWrong,
			"`holdfast rebuild` makes them from the log; so does the ledger when it starts, and by and by",
			"%s missing, damaged or older than what was folded: %s%s", terminal.Plural(wrong.Count, "document"),
			someOf(wrong), seen)
	}
}

// unselectable reads from the log which messages no retention can remove.
func (p *patient) unselectable(ctx context.Context) {
	found, err := p.bus.Log.Unselectable(ctx)
	if err != nil {
		p.add("strays", levelWrong, "try again; with a larger --timeout in a large cell", "%v", err)
		return
	}
	p.strays(found, len(found), "")
}

// strays reports messages of the log that belong to no session and that retention cannot remove: their subjects, as
// filters, select commits of sessions. seen says when that was, "" for now.
func (p *patient) strays(found map[string]uint64, n int, seen string) {
	names := make([]string, 0, len(found))
	for _, subject := range slices.Sorted(maps.Keys(found)) {
		names = append(names, fmt.Sprintf("%q (last at %d)", subject, found[subject]))
	}
	p.check(n, "strays", levelNote,
		"`nats stream rmm -f "+p.bus.Cell().LogStream()+" SEQUENCE` deletes one message; then doctor names the one "+
			"before it; never purge by such a subject: as a filter it selects commits of sessions",
		"subject of the log names no session, and retention cannot remove its messages: ",
		"subjects of the log name no session, and retention cannot remove their messages: ",
		someOf(ledger.Some{Count: n, Names: names})+seen)
}

// census is what the doctor has read of all documents.
type census struct {
	now   time.Time
	rolls *ledger.Rolls
	// without an owner and with something open, perhaps by design, by key
	left    map[string]*session.State
	orphans []string // of these, those that the reconciler would change
}

func newCensus(now time.Time) *census {
	return &census{now: now, rolls: ledger.NewRolls(), left: map[string]*session.State{}}
}

// count counts a document, in place of an earlier one at this key. err: it cannot be read.
func (c *census) count(key string, s *session.State, err error) {
	c.rolls.Put(key, s, err)
	delete(c.left, key)
	if err == nil && !s.Owned && leftOpen(s) {
		c.left[key] = s
	}
}

// leftOpen reports whether something without an owner is open that neither a person nor a child session keeps open.
func leftOpen(s *session.State) bool {
	return s.Closed == nil && (s.Turn != nil || len(s.Tools) > 0) && len(s.PendingPrompts()) == 0 &&
		len(s.WaitsFor) == 0
}

// documents reads every document once: it compares them with the log, and counts what they say.
func (p *patient) documents(ctx context.Context) (*census, error) {
	c := newCensus(p.app.now(ctx, p.bus.Clock))
	found, err := ledger.InspectEach(ctx, p.bus, func(e kv.Entry, s *session.State, err error) {
		c.count(e.Key, s, err)
	})
	p.truth(&found, err)
	if err != nil && found.Documents == 0 {
		return nil, fmt.Errorf("doctor: sessions: %w", err)
	}
	return c, nil
}

// readEach reads every document, and the end of each session in the log, and reports what it finds.
func (p *patient) readEach(ctx context.Context, leases map[string]lease.Record) error {
	all, err := p.documents(ctx)
	if err != nil {
		return err
	}
	if err := p.noted(ctx); err != nil {
		return err
	}
	if err := p.unrecovered(ctx, all); err != nil {
		return err
	}
	// the ends of sessions were compared
	t := all.rolls.Tally(all.now, math.MaxUint64, func(key string) bool { _, alive := leases[key]; return !alive })
	t.Orphans = t.Orphans.And(all.orphans)
	p.report(&t, "")
	return nil
}

// noted reports the sessions that services have noted.
func (p *patient) noted(ctx context.Context) error {
	p.suspects(ctx)
	return p.aside(ctx)
}

// tallied reports what the ledger has counted. It reads no document.
func (p *patient) tallied(ctx context.Context) error {
	t, err := ledger.LoadTally(ctx, p.bus.KV)
	if err != nil && !errors.Is(err, bus.ErrNotFound) && !errors.Is(err, events.ErrMalformed) {
		return fmt.Errorf("doctor: %w", err)
	}
	lost, err := ledger.Losses(ctx, p.bus.KV)
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	return p.reportTally(ctx, &t, lost, p.app.now(ctx, p.bus.Clock))
}

// reportTally reports a tally, and the losses that are noted now.
func (p *patient) reportTally(ctx context.Context, t *ledger.Tally, lost []ledger.Lost, now time.Time) error {
	age := now.Sub(t.At)
	counted := !t.At.IsZero()
	switch {
	case !counted:
		p.add("counted", levelNote, readAllAdvice, "no ledger has counted the sessions of this cell yet")
	case age > tallyStale:
		p.add("counted", levelNote, "is a ledger running? look into its log; "+readAllAdvice,
			"the sessions were last counted %s ago: what follows may have changed", terminal.Age(age))
		p.stale = true
	}
	p.talliedTruth(t, lost, now)
	if err := p.noted(ctx); err != nil || !counted {
		return err
	}
	p.report(t, seenAgo(age))
	return nil
}

// seenAgo says how long ago something was seen.
func seenAgo(age time.Duration) string { return ", seen " + terminal.Age(max(age, 0)) + " ago" }

// talliedTruth reports the last comparison of the documents with the log, and the losses that are noted now.
func (p *patient) talliedTruth(t *ledger.Tally, lost []ledger.Lost, now time.Time) {
	p.losses(lost)
	if t.Ahead.Count > 0 {
		p.add("truth", levelWrong, lossAdvice, "documents of %s know commits beyond the end of the log: %s%s",
			terminal.Plural(t.Ahead.Count, "session"), someOf(t.Ahead), seenAgo(now.Sub(t.At)))
	}
	c := t.Compared
	if c == nil {
		p.add("truth", levelNote, readAllAdvice, "no ledger has compared the documents with the log yet")
		return
	}
	seen := seenAgo(now.Sub(c.At))
	p.wrongDocuments(c.Wrong, seen)
	p.strays(c.Strays, len(c.Strays)+c.StraysLeft, seen)
	if len(lost)+t.Ahead.Count+c.Wrong.Count == 0 {
		p.add("truth", p.fine(), readAllAdvice, "the log has all that %s%s",
			terminal.Count(c.Documents, "document knows", "documents know"), seen)
	}
}

// fine is the level of a finding that nothing is wrong.
func (p *patient) fine() string {
	if p.stale {
		return levelNote
	}
	return levelOK
}

// report adds what was counted. seen says when that was, "" for now.
func (p *patient) report(t *ledger.Tally, seen string) {
	p.add("sessions", p.fine(), readAllAdvice, "%s, %d with an open question%s", terminal.Plural(t.Sessions, "session"),
		t.Waiting, seen)
	p.check(t.Orphans.Count, "orphans", levelWrong,
		"the reconciler closes them within lease TTL and grace: is one running? else `holdfast sweep --dry-run` "+
			"tells why not",
		"open under a process that is gone: ", "open under a process that is gone: ", someOf(t.Orphans)+seen)
	p.check(t.Untaken.Count, "untaken", levelNote, "is the harness running? `holdfast show S` says what it is asked",
		"waits for its harness for more than a minute: ", "wait for their harness for more than a minute: ",
		someOf(t.Untaken)+seen)
	p.check(t.Stuck.Count, "given up", levelNote, "`holdfast show S` says why, and what a person can do",
		"waits for a person, after a failure: ", "wait for a person, after a failure: ", someOf(t.Stuck)+seen)
	p.check(t.Unread, "documents", levelWrong, "upgrade this program, or `holdfast rebuild`",
		"is written by a newer version, or unreadable", "are written by a newer version, or unreadable", seen)
	p.check(t.Parked, "parked", levelNote,
		"`holdfast events S` shows which; the input is kept for 30 days in the stream of parked input",
		"event could not be read: ", "events could not be read: ", someOf(t.Odd)+seen)
	p.check(t.Ignored, "ignored", levelNote, "`holdfast events S` shows which and why; a few are normal after a crash",
		"event changed nothing: ", "events changed nothing: ", someOf(t.Odd)+seen)
}

// unrecovered runs the reconciler's decision on sessions without an owner in which something is open. It does
// not report what recovery leaves open by design: a turn, for example, that continues with the answer once its harness
// takes it.
func (p *patient) unrecovered(ctx context.Context, t *census) error {
	if len(t.left) == 0 {
		return nil
	}
	children := map[events.Ref][]*session.State{}
	for _, s := range t.left {
		children[s.Ref()] = nil
	}
	err := p.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		s, err := session.Decode(e.Value)
		if err != nil || s.Parent == "" {
			return nil
		}
		parent := events.Ref{Harness: s.Harness, Session: s.Parent}
		if _, left := children[parent]; left {
			children[parent] = append(children[parent], s)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("doctor: sessions: %w", err)
	}
	for _, s := range t.left {
		d, err := reconciler.Decide(s, reconciler.Input{Now: t.now, Children: children[s.Ref()]},
			p.app.source(ctx, p.bus.Log))
		if err != nil || len(d.Facts) > 0 {
			t.orphans = append(t.orphans, s.Ref().String())
		}
	}
	return nil
}
