package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

// Levels of a [finding].
const (
	levelOK    = "ok"
	levelNote  = "note"
	levelWrong = "wrong"
)

// finding is the result of one check of the doctor.
type finding struct {
	Check string `json:"check"`
	Level string `json:"level"` // ok, note (worth knowing) or wrong
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

// errUnwell means that the doctor found something wrong, and has printed it.
var errUnwell = errors.New("doctor: something is wrong")

func doctorCommand(a *app) *cobra.Command {
	cmd := a.repairCommand("doctor", "Check the cell, and say what to do",
		"Check broker, layout, consumers, services, harnesses and sessions, and say for each what to do. It changes "+
			"nothing. It fails when something is wrong.",
		arguments(0, 0), "holdfast doctor", "holdfast doctor --json | jq 'select(.level == \"wrong\")'")
	a.addFlags(cmd, []string{"ready-lag-max"})
	cmd.Flags().StringArrayVar(&a.nodes, "node", nil,
		"the `name` of a broker of this cell; may be repeated; others that hold its streams are reported")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found, err := a.examine(cmd.Context())
		// findings since the interrupt say nothing about the cell
		if cmd.Context().Err() != nil {
			return errInterrupted
		}
		if printErr := a.printFindings(found); printErr != nil {
			return errors.Join(err, printErr)
		}
		last := len(found) - 1
		if err != nil && (last < 0 || found[last].Level != levelWrong) {
			// no finding says it
			return err
		}
		n := 0
		for _, f := range found {
			if f.Level == levelWrong {
				n++
			}
		}
		if n == 0 {
			return nil
		}
		unwell := fmt.Errorf("%w: %s failed", errUnwell, terminal.Plural(n, "check"))
		// the last finding says it, and it decides the exit code
		if err != nil {
			return &fault{err, plain(unwell.Error()), ""}
		}
		return unwell
	}
	return cmd
}

func (a *app) printFindings(found []finding) error {
	if done, err := printLines(a, found); done {
		return err
	}
	paints := map[string]terminal.Colour{levelOK: terminal.Good, levelNote: terminal.Wait, levelWrong: terminal.Alarm}
	lines := make([]terminal.Finding, len(found))
	for i, f := range found {
		lines[i] = terminal.Finding{Level: terminal.Cell{Text: f.Level, Colour: paints[f.Level]}, Check: f.Check,
			Found: f.Found, Do: f.Do}
	}
	return a.print(terminal.Findings(lines, a.style(a.Stdout)))
}

// patient is a run of the doctor.
type patient struct {
	app   *app
	bus   *bus.Bus
	found []finding
}

func (p *patient) add(check, level, do, format string, args ...any) {
	if level == levelOK {
		do = ""
	}
	p.found = append(p.found, finding{Check: check, Level: level, Found: plain(fmt.Sprintf(format, args...)), Do: do})
}

// examine runs all checks on a connection of its own. It returns the error that makes further checks impossible.
func (a *app) examine(ctx context.Context) ([]finding, error) {
	return a.examineOver(ctx, a.connect)
}

// examineOver is examine over a connection of connect.
func (a *app) examineOver(ctx context.Context, connect func(context.Context) (*bus.Bus, error)) ([]finding, error) {
	p := &patient{app: a}
	b, err := connect(ctx)
	if err != nil {
		err = a.noBroker(err)
		p.add("broker", levelWrong, brokerAdvice(err), "%v", err)
		return p.found, err
	}
	defer b.Close()
	p.bus = b
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	cell, err := b.Layout.Inspect(ctx)
	if err != nil {
		p.add("broker", levelWrong, "", "%v", err)
		return p.found, err
	}
	p.add("broker", levelOK, "", "nats-server %s at %s, %s away, JetStream on", cell.Version, bus.Redacted(a.nats),
		cell.RTT.Round(rttShown))
	if !p.layout(cell) {
		return p.found, nil
	}
	p.store(cell)
	p.clock(ctx)
	p.nodes(cell)
	p.consumers(ctx)
	p.strangers(ctx)
	p.unselectable(ctx)
	leases, err := p.leases(ctx)
	if err != nil {
		return p.found, err
	}
	all, err := p.documents(ctx, leases)
	if err != nil {
		return p.found, err
	}
	p.suspects(ctx)
	if err := p.aside(ctx); err != nil {
		return p.found, err
	}
	return p.found, p.sessions(ctx, all)
}

// fullDiskAdvice describes how to bring back a node that has switched JetStream off.
const fullDiskAdvice = "a node whose disk is full switches JetStream off (its log says \"out of resources\"): free " +
	"room, and restart it unless its probe does"

// tlsAdvice names the flags for certificates.
const tlsAdvice = "certificates are set with --tls-ca, --tls-cert and --tls-key"

// brokerAdvice returns what to do about a broker that refuses.
func brokerAdvice(err error) string {
	switch {
	case errors.Is(err, bus.ErrNoJetStream):
		return "start the broker with JetStream (nats-server -js), or enable it for this account; " + fullDiskAdvice
	case errors.Is(err, bus.ErrNoAnswer):
		return "look at the nodes: two of three must run and reach each other; " + fullDiskAdvice
	case errors.Is(err, bus.ErrTLS):
		return tlsAdvice
	case errors.Is(err, bus.ErrTooOld):
		return "upgrade the broker to nats-server " + bus.ServerVersionMin + " or later"
	case errors.Is(err, bus.ErrForbidden):
		return "give a login that is valid: --creds, --password-file or --nkey"
	default:
		return "start one with `holdfast up`, or say where it is with --nats; if its nodes end at their start, look " +
			"into their logs and at their disks"
	}
}

// logFullPercent is the fill level above which new sessions and messages are refused.
const logFullPercent = 90

// rttShown is the precision of the printed round-trip time.
const rttShown = 10 * time.Microsecond

// layout checks the cell's streams and buckets. It reports whether the log exists: without the log no other check makes
// sense.
func (p *patient) layout(cell layout.Inspection) bool {
	const setUp = "start `holdfast up` or any service: it sets the cell up; or say which cell with --prefix"
	log := cell.Streams[0]
	if log.Missing {
		p.add("layout", levelWrong, setUp, "there is no cell %q here", p.app.prefix)
		return false
	}
	var missing, newer, older []string
	replicas := log.Replicas
	for _, s := range cell.Streams {
		switch {
		case s.Missing && s.Name == p.bus.Cell().FeedStream():
			// the feed may be disabled
			p.add("feed", levelNote, "services started with --feed-kept-for 0 keep none", "there is no feed")
			continue
		case s.Missing:
			missing = append(missing, s.Name)
			continue
		case s.Layout > s.LayoutWanted:
			newer = append(newer, s.Name)
		case s.Layout < s.LayoutWanted:
			older = append(older, s.Name)
		}
		replicas = min(replicas, s.Replicas)
	}
	p.checkAll(missing, "layout", setUp, "missing")
	p.checkAll(newer, "layout", "upgrade this program", fmt.Sprintf("of a newer layout than %d", log.LayoutWanted))
	p.checkAll(older, "layout", "restart the services: they bring it up to date",
		fmt.Sprintf("of an older layout than %d, or not made by holdfast", log.LayoutWanted))
	if len(missing)+len(newer)+len(older) == 0 {
		p.add("layout", levelOK, "", "layout %d, %s with %s each", log.LayoutWanted,
			terminal.Plural(len(cell.Streams), "stream"), terminal.Count(replicas, "copy", "copies"))
	}
	if most := log.BytesMax; most > 0 && log.Bytes*100 >= most*logFullPercent {
		p.add("log", levelWrong, "raise the stream's limit, or close sessions and shorten --closed-sessions-kept-for",
			"%d of %d bytes are used: new sessions are refused", log.Bytes, most)
		return true
	}
	// retention leaves the last commit of each session
	if log.Msgs == 0 && log.LastSeq > 0 {
		p.add("log", levelWrong, "restore the stream from a backup, or see below what documents still know",
			"it is empty, and the last commit was %d: it was purged, or lost", log.LastSeq)
		return true
	}
	if !log.RestoredFrom.IsZero() {
		p.restored(log)
	}
	p.add("log", levelOK, "", "%s, %d bytes, the last is %d", terminal.Plural(int(log.Msgs), "commit"), log.Bytes,
		log.LastSeq)
	return true
}

// restored reports a log that was restored from a backup.
func (p *patient) restored(log layout.StreamState) {
	if log.LastSeq < log.RestoredLast {
		p.add("restored", levelWrong, "remove the streams of the cell, and run `holdfast restore` again",
			"the restore did not end: the log ends at %d, its backup at %d", log.LastSeq, log.RestoredLast)
		return
	}
	p.add("restored", levelNote, "end the harnesses that ran before; their logs name the sessions that are fenced",
		"from the backup of %s: what was stored between it and the restore is not known; commits after %d are new",
		log.RestoredFrom.UTC().Format(time.RFC3339), log.RestoredLast)
}

// checkAll adds a finding about these streams, if there are any.
func (p *patient) checkAll(streams []string, check, do, what string) {
	if len(streams) > 0 {
		p.add(check, levelWrong, do, "%s: %s", what, strings.Join(streams, ", "))
	}
}

// askOperator is the advice for a check that needs more rights.
const askOperator = "ask an operator to run `holdfast doctor`"

// consumers checks that each service keeps up.
func (p *patient) consumers(ctx context.Context) {
	for i := range targets {
		t := &targets[i]
		for _, src := range t.consumers(p.bus, &p.app.settings) {
			check := "consumer " + src.Durable
			start := "start `holdfast " + t.name + "`, or look into its log"
			pending, active, err := p.bus.Consumers.Lag(ctx, src)
			switch {
			case errors.Is(err, bus.ErrForbidden):
				// a person, who must not learn the pin
				p.add("consumers", levelNote, askOperator, "this user may not read the places of services")
				return
			case errors.Is(err, bus.ErrNotFound):
				p.add(check, levelWrong, start, "never ran on this cell")
			case err != nil:
				p.add(check, levelWrong, start, "%v", err)
			case p.beyond(ctx, check, src):
			case pending > p.app.readyLagMax:
				p.add(check, levelWrong, "wait; if it does not shrink look into its log", "%s", waiting(pending))
			case active == "" && pending > 0:
				// an idle consumer has no active member
				p.add(check, levelWrong, start, "no process works; %s", waiting(pending))
			default:
				p.add(check, levelOK, "", "%s", waiting(pending))
			}
		}
	}
}

// beyond reports a consumer that is beyond the end of its stream: nothing is delivered to its service.
func (p *patient) beyond(ctx context.Context, check string, src consumer.Source) bool {
	at, err := p.bus.Consumers.Place(ctx, src)
	if err != nil || !at.Beyond() {
		return false
	}
	p.add(check, levelWrong,
		"start its service, which moves it back within seconds, and run doctor again; if `truth` is wrong, the stream "+
			"has lost its end: docs/guide/operate.md says what to do; if it comes back, a foreign request moves it: "+
			"remove the strangers below",
		"it is at %d, beyond the end of its stream, %d: nothing is delivered", at.Delivered, at.End)
	return true
}

// leases returns the leases of living processes, by key.
func (p *patient) leases(ctx context.Context) (map[string]lease.Record, error) {
	all := map[string]lease.Record{}
	harnesses, services := map[string]int{}, map[string]int{}
	odd := map[string][]string{}
	err := p.bus.KV.List(ctx, kv.Leases, ">", func(e kv.Entry) error {
		class, id, _, err := events.ParseLeaseKey(e.Key)
		// a ticket
		if err != nil {
			return nil
		}
		var l lease.Record
		if err := json.Unmarshal(e.Value, &l); err != nil {
			odd[class+" "+id] = append(odd[class+" "+id], e.Key)
		}
		if _, known := all[e.Key]; !known && class == "service" {
			services[id]++
		} else if !known {
			harnesses[id]++
		}
		all[e.Key] = l
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("doctor: leases: %w", err)
	}
	p.oddLeases(odd)
	for i := range targets {
		name := targets[i].name
		if services[name] == 0 {
			p.add("service "+name, levelWrong, "start `holdfast "+name+"` (or `holdfast up`)", "no process is alive")
			continue
		}
		p.add("service "+name, levelOK, "", "%s alive", terminal.Count(services[name], "process", "processes"))
	}
	var names []string
	total := 0
	for id, n := range harnesses {
		names = append(names, id)
		total += n
	}
	slices.Sort(names)
	p.add("harnesses", levelOK, "", "%s alive: %s",
		terminal.Count(total, "process", "processes"), cmp.Or(few(names, harnessesMax), "none"))
	return all, nil
}

// Limits of what a finding names.
const (
	namesMax     = 5  // sessions, or leases
	perOwnerMax  = 2  // sessions of one harness among them
	harnessesMax = 20 // harnesses
)

// oddLeases reports leases that cannot be read: one finding for all, with a few of each harness, so that no harness can
// fill the report.
func (p *patient) oddLeases(odd map[string][]string) {
	total := 0
	var of []string
	for _, owner := range slices.Sorted(maps.Keys(odd)) {
		total += len(odd[owner])
		of = append(of, fmt.Sprintf("%d of %s (%s)", len(odd[owner]), owner, few(odd[owner], perOwnerMax)))
	}
	if total > 0 {
		p.add("leases", levelWrong, "these processes write leases of another form: look at their versions",
			"%d cannot be read: %s", total, few(of, namesMax))
	}
}

// suspects asks the reconciler which sessions it could not recover. Another check reports a reconciler that does not
// answer.
func (p *patient) suspects(ctx context.Context) {
	rep, err := rpc.Call(ctx, p.bus.Services, request.ReconcilerReport, request.Scope{})
	if err != nil {
		return
	}
	var names []string
	for _, s := range rep.Suspects {
		names = append(names, s.Ref.String()+" ("+s.Reason+")")
	}
	p.check(len(names), "suspects", levelWrong,
		"`holdfast show S` and `holdfast events S`; the reconciler tries again with each slow walk",
		"could not be recovered: ", "could not be recovered: ", shorten(names))
}

// aside reports the sessions that the ledger has set aside. An attempt that has failed is wrong; the first attempt is
// under way by design, for example while a long session is read.
func (p *patient) aside(ctx context.Context) error {
	var failed, unfed, reading []string
	err := p.bus.KV.List(ctx, kv.State, events.AsideKeys(), func(e kv.Entry) error {
		r, err := events.ParseAsideKey(e.Key)
		if err != nil {
			// not written by a ledger
			return nil
		}
		var note ledger.Aside
		if json.Unmarshal(e.Value, &note) != nil || note.Ref != r {
			note = ledger.Aside{Ref: r, Behind: true, Failures: 1, Reason: "its note cannot be read"}
		}
		name := r.String() + " (" + note.Reason + ")"
		switch {
		case note.Failures == 0:
			reading = append(reading, name)
		case note.Behind:
			failed = append(failed, name)
		default:
			unfed = append(unfed, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("doctor: sessions set aside: %w", err)
	}
	if len(reading) > 0 {
		p.add("folded apart", levelNote, "wait: each gets its turn; run doctor again",
			"%s read apart from the others: %s",
			terminal.Count(len(reading), "session is", "sessions are"), shorten(reading))
	}
	if len(unfed) > 0 {
		p.add("owed to the feed", levelWrong,
			"their documents are up to date, the feed lacks events of them; the ledger tries again by itself, at "+
				"least once a minute: remove the cause", "%d cannot be fed: %s", len(unfed), shorten(unfed))
	}
	p.check(len(failed), "set aside", levelWrong, "their documents are not up to date; the ledger tries again by "+
		"itself, at least once a minute: remove the cause, and the note goes with the next attempt",
		"cannot be folded: ", "cannot be folded: ", shorten(failed))
	return nil
}

// tally is the counts and lists of all sessions.
type tally struct {
	sessions, waiting, parked, ignored, unread int
	orphans, odd, untaken, stuck               []string
	// without an owner and with something open, perhaps by design
	left []*session.State
	now  time.Time
}

// untakenMinS is how long work waits for its harness before it is reported, in seconds.
const untakenMinS = 60

// documents reads every document once: it compares them with the log, and counts what they say.
func (p *patient) documents(ctx context.Context, leases map[string]lease.Record) (*tally, error) {
	t := &tally{now: p.app.now(ctx, p.bus.Clock)}
	seen := map[string]bool{}
	found, err := ledger.InspectEach(ctx, p.bus, func(e kv.Entry, s *session.State, err error) {
		switch {
		case seen[e.Key]:
			// it moved while it was listed
		case err != nil:
			t.unread++
		default:
			t.count(s, leases)
		}
		seen[e.Key] = true
	})
	p.truth(&found, err)
	if err != nil && found.Documents == 0 {
		return nil, fmt.Errorf("doctor: sessions: %w", err)
	}
	return t, nil
}

// sessions reports on every document: its owner is alive, and no input was left out.
func (p *patient) sessions(ctx context.Context, t *tally) error {
	if err := p.unrecovered(ctx, t); err != nil {
		return err
	}
	p.report(t)
	return nil
}

// report adds what was counted.
func (p *patient) report(t *tally) {
	p.add("sessions", levelOK, "", "%s, %d with an open question", terminal.Plural(t.sessions, "session"), t.waiting)
	p.check(len(t.orphans), "orphans", levelWrong,
		"the reconciler closes them within lease TTL and grace: is one running? else `holdfast sweep --dry-run` "+
			"tells why not",
		"open under a process that is gone: ", "open under a process that is gone: ", shorten(t.orphans))
	p.check(len(t.untaken), "untaken", levelNote, "is the harness running? `holdfast show S` says what it is asked",
		"waits for its harness for more than a minute: ", "wait for their harness for more than a minute: ",
		shorten(t.untaken))
	p.check(len(t.stuck), "given up", levelNote, "`holdfast show S` says why, and what a person can do",
		"waits for a person, after a failure: ", "wait for a person, after a failure: ", shorten(t.stuck))
	p.check(t.unread, "documents", levelWrong, "upgrade this program, or `holdfast rebuild`",
		"is written by a newer version, or unreadable", "are written by a newer version, or unreadable", "")
	p.check(t.parked, "parked", levelNote,
		"`holdfast events S` shows which; the input is kept for 30 days in the stream of parked input",
		"event could not be read: ", "events could not be read: ", shorten(t.odd))
	p.check(t.ignored, "ignored", levelNote, "`holdfast events S` shows which and why; a few are normal after a crash",
		"event changed nothing: ", "events changed nothing: ", shorten(t.odd))
}

// check adds the finding that there are none, or how many: what is said of one, or of several, and their names.
func (p *patient) check(n int, check, level, do, one, several, names string) {
	if n == 0 {
		p.add(check, levelOK, "", "none")
		return
	}
	p.add(check, level, do, "%s%s", terminal.Count(n, one, several), names)
}

// waiting says how many messages a consumer has to deliver.
func waiting(n uint64) string { return terminal.Count(int(n), "message waits", "messages wait") }

func (t *tally) count(s *session.State, leases map[string]lease.Record) {
	t.sessions++
	if len(s.PendingPrompts()) > 0 {
		t.waiting++
	}
	t.parked += int(s.Parked)
	t.ignored += int(s.Ignored.Count)
	if s.Parked > 0 || s.Ignored.Count > 0 {
		t.odd = append(t.odd, s.Ref().String())
	}
	if slices.ContainsFunc(asked(&s.Pending), func(at time.Time) bool {
		return t.now.Sub(at) > untakenMinS*time.Second
	}) {
		t.untaken = append(t.untaken, s.Ref().String())
	}
	if s.Closed == nil && (s.Retry.State == session.RetryAbandoned ||
		s.Continuations.State == session.ContinuationsHeld ||
		s.Compaction != nil && s.Compaction.State == session.CompactionHeld) {
		t.stuck = append(t.stuck, s.Ref().String())
	}
	_, alive := leases[events.HarnessLeaseKey(s.Harness, s.Incarnation)]
	switch {
	case s.Owned && !alive:
		t.orphans = append(t.orphans, s.Ref().String())
	case !s.Owned && leftOpen(s):
		t.left = append(t.left, s)
	}
}

// asked returns the instants of the requests that the harness has not taken.
func asked(p *session.Pending) []time.Time {
	var all []time.Time
	if p.Turn != nil {
		all = append(all, p.Turn.At)
	}
	if p.Stop != nil {
		all = append(all, p.Stop.At)
	}
	if p.Compaction != nil {
		all = append(all, p.Compaction.At)
	}
	return all
}

// leftOpen reports whether something without an owner is open that neither a person nor a child session keeps open.
func leftOpen(s *session.State) bool {
	return s.Closed == nil && (s.Turn != nil || len(s.Tools) > 0) && len(s.PendingPrompts()) == 0 &&
		len(s.WaitsFor) == 0
}

// shorten returns a few of the names, at most two of a harness while there are others.
func shorten(names []string) string {
	slices.Sort(names)
	var first, rest []string
	of := map[string]int{}
	for _, name := range names {
		harness, _, _ := strings.Cut(name, "/")
		if of[harness]++; of[harness] <= perOwnerMax {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	return few(append(first, rest...), namesMax)
}

// few names the first of them.
func few(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
