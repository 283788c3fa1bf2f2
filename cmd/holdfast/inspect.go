package main

import (
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
	"github.com/holdfast-dev/holdfast/internal/bus/clock"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
)

// sessionFilter selects sessions.
type sessionFilter struct {
	harness, root, phase string
	session              string // "": all
	waiting, all         bool
}

func (f *sessionFilter) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.harness, "harness", "", "only sessions of this `harness`")
	cmd.Flags().StringVar(&f.root, "root", "", "only this root `session` and those below it")
	cmd.Flags().StringVar(&f.phase, "phase", "", "only sessions in this `phase`: "+phaseNames())
	cmd.Flags().BoolVar(&f.waiting, "waiting", false, "only sessions that wait for a person")
	cmd.Flags().BoolVar(&f.all, "all", false, "closed ones too")
}

func phaseNames() string {
	var names []string
	for _, p := range session.Phases() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

func (f *sessionFilter) check(cmd *cobra.Command) error {
	if f.phase != "" && !slices.Contains(session.Phases(), session.Phase(f.phase)) {
		return usage(cmd, "--phase %q: want one of %s", f.phase, phaseNames())
	}
	return nil
}

func (f *sessionFilter) wants(s *session.State) bool {
	return (f.harness == "" || s.Harness == f.harness) && (f.session == "" || s.Session == f.session) &&
		(f.root == "" || s.Root == f.root) &&
		(f.phase == "" || s.Phase == session.Phase(f.phase)) && (!f.waiting || len(s.PendingPrompts()) > 0) &&
		(f.all || f.phase != "" || s.Phase != session.Closed)
}

func sessionsCommand(a *app) *cobra.Command {
	var f sessionFilter
	var limit int
	long, example := describe("List sessions, the one that changed last first: the documents as they are stored.\n\n"+
		"Documents that cannot be read are named on stderr, with exit code 1; all others are listed.",
		"holdfast sessions", "holdfast sessions --limit 20", "holdfast sessions --waiting",
		"holdfast sessions --phase running --json | jq .session")
	cmd := &cobra.Command{Use: "sessions", Short: "List sessions", Long: long, Example: example, GroupID: groupInspect,
		Args: arguments(0, 0)}
	a.addFlags(cmd, optionsCommand)
	f.bind(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many `sessions`, and no others are read; 0: all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		if limit < 0 {
			return usage(cmd, "--limit %d: want 0 (all) or more", limit)
		}
		return a.with(cmd.Context(), func(ctx context.Context, b *bus.Bus) error {
			docs, more, err := a.newest(ctx, b.KV, &f, limit)
			bad, some := errors.AsType[*unreadable](err)
			if err != nil && !some {
				return err
			}
			if err := a.printSessions(ctx, b.Clock, docs); err != nil {
				return err
			}
			if more {
				a.printError("only the %d that changed last: without --limit all are listed", limit)
			}
			if some {
				return bad
			}
			return nil
		})
	}
	return cmd
}

// unreadable is the error of a list: entries of it cannot be read.
type unreadable struct {
	what   string           // of what they are
	causes map[string]error // by name
}

// Error names the entries.
func (e *unreadable) Error() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e.causes)) {
		if len(all) == namesMax {
			all = append(all, fmt.Sprintf("and %d more", len(e.causes)-namesMax))
			break
		}
		all = append(all, fmt.Sprintf("%s: %v", name, e.causes[name]))
	}
	return fmt.Sprintf("holdfast: %s cannot be read: %s", terminal.Plural(len(e.causes), e.what),
		strings.Join(all, "; "))
}

// newest returns the selected documents, the one that changed last first, and reports whether there may be more than
// limit. Without a limit it returns all. With an error it returns those that were read; an [unreadable] error is about
// the others alone.
func (a *app) newest(ctx context.Context, buckets *kv.Buckets, f *sessionFilter, limit int) ([]*session.State, bool,
	error) {
	var docs []*session.State
	var more bool
	var err error
	if limit == 0 {
		docs, err = a.documents(ctx, buckets, f)
	} else {
		docs, more, err = a.readNewest(ctx, buckets, f, limit)
	}
	slices.SortStableFunc(docs, func(x, y *session.State) int { return y.UpdatedAt.Compare(x.UpdatedAt) })
	if limit > 0 && len(docs) > limit {
		docs, more = docs[:limit], true
	}
	return docs, more, err
}

// readNewest returns at least the number of selected documents that is wanted, and reports whether it left out older
// ones: those that were stored last are read first.
func (a *app) readNewest(ctx context.Context, buckets *kv.Buckets, f *sessionFilter, want int) (docs []*session.State,
	older bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	r := newDocumentReader(f)
	err = a.progress("reading sessions", func() error {
		older, err = buckets.ListNewest(ctx, kv.State, events.SessionKeys(f.harness),
			func() bool { return len(r.found) >= want }, r.read)
		return err
	})
	docs, err = r.result(err)
	return docs, older, err
}

// documents returns the selected documents, in the order of their names. With an error it returns those that were
// read; an [unreadable] error is about the others alone.
func (a *app) documents(ctx context.Context, buckets *kv.Buckets, f *sessionFilter) ([]*session.State, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	r := newDocumentReader(f)
	return r.result(a.progress("reading sessions", func() error {
		return buckets.List(ctx, kv.State, events.SessionKeys(f.harness), r.read)
	}))
}

// documentReader decodes documents, and keeps those that are selected.
type documentReader struct {
	filter *sessionFilter
	found  map[string]*session.State // by name
	bad    *unreadable
}

func newDocumentReader(f *sessionFilter) *documentReader {
	return &documentReader{filter: f, found: map[string]*session.State{},
		bad: &unreadable{what: "session", causes: map[string]error{}}}
}

// read adds the document of an entry, in place of an older one.
func (r *documentReader) read(e kv.Entry) error {
	name := e.Key
	if ref, err := events.ParseSessionKey(e.Key); err == nil {
		name = ref.String()
	}
	// a key that changes meanwhile is listed again
	delete(r.found, name)
	delete(r.bad.causes, name)
	s, err := session.Decode(e.Value)
	if err == nil && events.SessionKey(s.Ref()) != e.Key {
		err = errOtherKey
	}
	switch {
	case err != nil:
		r.bad.causes[name] = err
	case r.filter.wants(s):
		r.found[name] = s
	}
	return nil
}

// result returns what was read, and the error of the reading or else that of the documents.
func (r *documentReader) result(err error) ([]*session.State, error) {
	if err == nil && len(r.bad.causes) > 0 {
		err = r.bad
	}
	return sortedValues(r.found), err
}

func (a *app) printSessions(ctx context.Context, broker *clock.Clock, docs []*session.State) error {
	if done, err := printLines(a, docs); done {
		return err
	}
	if len(docs) == 0 {
		a.printError("no sessions")
		return nil
	}
	return a.print(terminal.Sessions(docs, a.now(ctx, broker), a.style(a.Stdout)))
}

func promptsCommand(a *app) *cobra.Command {
	var harness, root string
	var all bool
	long, example := describe("List what waits for a person: the people's view as it is stored. With S only what "+
		"waits in this session.\n\n"+
		"Entries that cannot be read are named on stderr, with exit code 1; all others are listed.",
		"holdfast prompts", "holdfast prompts build-42", "holdfast prompts --all --json")
	cmd := &cobra.Command{Use: "prompts [S]", Short: "List what waits for a person", Long: long, Example: example,
		GroupID: groupInspect, Args: arguments(0, 1)}
	a.addFlags(cmd, optionsCommand)
	cmd.Flags().StringVar(&harness, "harness", "", "only prompts of this `harness`")
	cmd.Flags().StringVar(&root, "root", "", "only prompts of this root `session` and those below it")
	cmd.Flags().BoolVar(&all, "all", false, "settled ones too, as long as they are kept")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, b *bus.Bus) error {
			var only events.Ref
			if len(args) > 0 {
				var err error
				if only, err = a.resolve(ctx, b, args[0]); err != nil {
					return err
				}
			}
			bs, err := a.blockers(ctx, b.KV, harness, only, func(x *session.Blocker) bool {
				return (root == "" || x.Root == root) && (all || x.Awaits())
			})
			bad, some := errors.AsType[*unreadable](err)
			if err != nil && !some {
				return err
			}
			if err := a.printPrompts(ctx, b.Clock, bs); err != nil {
				return err
			}
			if some {
				return bad
			}
			return nil
		})
	}
	return cmd
}

// blockers returns the selected entries of the people's view, oldest first: those of one session, or of all sessions of
// the harness. With an error it returns those that were read; an [unreadable] error is about the others alone.
func (a *app) blockers(ctx context.Context, buckets *kv.Buckets, harness string, only events.Ref,
	wants func(*session.Blocker) bool) ([]*session.Blocker, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	byKey, bad := map[string]*session.Blocker{}, &unreadable{what: "prompt", causes: map[string]error{}}
	err := buckets.List(ctx, kv.State, events.BlockerKeys(harness, ""), func(e kv.Entry) error {
		if r, err := events.ParseViewKey(e.Key); only.Session != "" && (err != nil || r != only) {
			return nil
		}
		name := blockerName(e.Key)
		// a key that changes meanwhile is listed again
		delete(byKey, e.Key)
		delete(bad.causes, name)
		x, err := readBlocker(e)
		switch {
		case err != nil:
			bad.causes[name] = err
		case wants(x):
			byKey[e.Key] = x
		}
		return nil
	})
	if err == nil && len(bad.causes) > 0 {
		err = bad
	}
	all := sortedValues(byKey)
	slices.SortStableFunc(all, func(x, y *session.Blocker) int { return x.ArmedAt.Compare(y.ArmedAt) })
	return all, err
}

// readBlocker reads an entry of the people's view. An entry of another prompt than its key names is an error: a person
// would answer that one.
func readBlocker(e kv.Entry) (*session.Blocker, error) {
	var x session.Blocker
	if err := json.Unmarshal(e.Value, &x); err != nil {
		return nil, fmt.Errorf("its body: %w", err)
	}
	if events.BlockerKey(x.Harness, x.Root, x.Session, x.Prompt) != e.Key {
		return nil, errOtherKey
	}
	return &x, nil
}

// errOtherKey means that an entry is not the one that its key names.
var errOtherKey = errors.New("it is not what its key names")

// blockerName returns the name of an entry for people: its session and its prompt, or its key if that names none.
func blockerName(key string) string {
	r, err := events.ParseViewKey(key)
	prompt, promptErr := events.ID(key[strings.LastIndex(key, ".")+1:])
	if err != nil || promptErr != nil {
		return key
	}
	return r.String() + " " + prompt
}

func (a *app) printPrompts(ctx context.Context, broker *clock.Clock, bs []*session.Blocker) error {
	if done, err := printLines(a, bs); done {
		return err
	}
	if len(bs) == 0 {
		a.printError("nothing waits for a person")
		return nil
	}
	return a.print(terminal.Prompts(bs, a.now(ctx, broker), a.style(a.Stdout)))
}

func showCommand(a *app) *cobra.Command {
	var waits []string
	var at uint64
	long, example := describe(
		`Show one session: its owner, its open items, its pending requests, and how earlier items ended. With --at it
is shown as it was after a commit; `+"`holdfast events`"+` lists them.

The command folds the log itself, so it works without a running service. With --wait it first waits until the
stored document fulfils all conditions, at most --timeout, and fails otherwise: phase=waiting · seq=4711 (or
later) · owned=true · prompts=0 (awaiting) · tools=0 (open calls).`,
		"holdfast show my-agent/build-42", "holdfast show build-42 --wait phase=idle --timeout 60s --json",
		"holdfast show build-42 --at 4711")
	cmd := &cobra.Command{Use: "show S", Short: "Show one session", Long: long, Example: example, GroupID: groupInspect,
		Args: arguments(1, 1, "the session S")}
	a.addFlags(cmd, optionsCommand)
	cmd.Flags().StringArrayVar(&waits, "wait", nil, "wait for `KEY=VALUE` first; may be repeated")
	cmd.Flags().Uint64Var(&at, "at", 0, "the session as it was at this `sequence` of the log; 0: as it is")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		conds, err := parseConditions(cmd, waits)
		if err != nil {
			return err
		}
		if at > 0 && len(conds) > 0 {
			return usage(cmd, "--at shows the past, and --wait waits for the future: give one of them")
		}
		return a.with(cmd.Context(), func(ctx context.Context, b *bus.Bus) error {
			if len(conds) > 0 {
				if err := a.await(ctx, b.KV, args[0], conds); err != nil {
					return err
				}
			}
			r, err := a.resolve(ctx, b, args[0])
			if err != nil {
				return err
			}
			if at > 0 {
				return a.printPast(ctx, b, r, at)
			}
			return a.printSession(ctx, b, r)
		})
	}
	return cmd
}

func (a *app) printSession(ctx context.Context, b *bus.Bus, r events.Ref) error {
	st, behind, err := a.current(ctx, b, r)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(a.shown(st, a.source(ctx, b.Log)))
	}
	now := a.now(ctx, b.Clock)
	text, err := a.sessionText(ctx, b.Log, st, now)
	if err != nil {
		return err
	}
	if st.Closed == nil && (st.Usage != nil || st.Policy.IdleCompactionAfterS > 0) {
		v, err := compaction.Check(st, request.Check{Ref: r}, now)
		if err != nil {
			return fmt.Errorf("session %s: %w", r, err)
		}
		text += "\n" + terminal.Check("It", request.Verdict{Would: v.Would, Reason: v.Reason, At: v.At}, now,
			a.style(a.Stdout))
	}
	if behind > 0 {
		a.printError("the stored document is %s behind the log: is a ledger running? (`holdfast doctor`)",
			terminal.Plural(behind, "commit"))
	}
	return a.print(text)
}

// sessionText returns the page of a session, with ages at an instant.
func (a *app) sessionText(ctx context.Context, commits *log.Log, st *session.State, now time.Time) (string, error) {
	open, err := a.openPrompts(ctx, commits, st)
	if err != nil {
		return "", err
	}
	return terminal.Session(a.shown(st, a.source(ctx, commits)), open, now, a.style(a.Stdout)), nil
}

// openPrompts returns the prompts of a session that wait, with their questions. With an error it returns those that
// were read before it.
func (a *app) openPrompts(ctx context.Context, commits *log.Log, st *session.State) ([]*session.Blocker, error) {
	var open []*session.Blocker
	for _, id := range st.PendingPrompts() {
		x, err := st.Blocker(id, a.source(ctx, commits))
		if err != nil {
			return open, fmt.Errorf("session %s: prompt %s: %w", st.Ref(), id, err)
		}
		open = append(open, x)
	}
	return open, nil
}

// shown returns a session as people see it: with an unknown outcome for the calls of which nothing says whether they
// had their effect. Where the log cannot be read for one of them, it says so on the side: all else of the session is
// worth showing.
func (a *app) shown(st *session.State, log session.Source) *session.State {
	unknown, err := st.UnknownOutcomes(log)
	if err != nil {
		a.printError("holdfast: a call that is shown as failed may have an unknown outcome: %s",
			terminal.Clean(plain(err.Error())))
	}
	return st.WithUnknown(unknown)
}

func eventsCommand(a *app) *cobra.Command {
	var follow bool
	var from uint64
	long, example := describe(`Print a session's log: every event in order, its writer, and whether it counted.

A line is: sequence, instant, writer, kind, what it is about, the rest of its data, and a note when the event
was ignored or could not be read. With --json each line is {"seq", "at", "writer", "note", "event"}.`,
		"holdfast events my-agent/build-42", "holdfast events build-42 --follow",
		"holdfast events build-42 --json | jq -r .event.type")
	cmd := &cobra.Command{Use: "events S", Short: "Print a session's log", Long: long, Example: example,
		GroupID: groupInspect, Args: arguments(1, 1, "the session S")}
	a.addFlags(cmd, optionsCommand)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new events")
	cmd.Flags().Uint64Var(&from, "from", 0, "begin at this `sequence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			h := &history{app: a, from: from, state: session.New(r)}
			if err := h.more(ctx, b.Log); err != nil || !follow {
				return err
			}
			return h.follow(ctx, b)
		})
	}
	return cmd
}

// history prints a session's log. It folds the commits that it prints, to know which facts counted.
type history struct {
	app   *app
	from  uint64
	state *session.State
}

// more prints the commits after the last printed one.
func (h *history) more(ctx context.Context, from *log.Log) error {
	ctx, cancel := context.WithTimeout(ctx, h.app.timeout)
	defer cancel()
	commits, err := from.Read(ctx, h.state.Ref(), h.state.Seq+1)
	if err != nil {
		return fmt.Errorf("log of %s: %w", h.state.Ref(), err)
	}
	for i := range commits {
		if err := h.commit(&commits[i]); err != nil {
			return err
		}
	}
	return nil
}

// followEveryMS is the greatest delay of an append while no ledger updates the document.
const followEveryMS = 1_000

// follow prints new commits: after each change of the session's document, and periodically for a cell without a ledger.
func (h *history) follow(ctx context.Context, b *bus.Bus) error {
	check := make(chan struct{}, 1)
	return control.Together(ctx, func(ctx context.Context) error {
		return b.KV.Watch(ctx, kv.State, []string{events.SessionKey(h.state.Ref())}, func(kv.Update) error {
			select {
			case check <- struct{}{}:
			default:
			}
			return nil
		})
	}, func(ctx context.Context) error {
		tick := time.NewTicker(followEveryMS * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-check:
			case <-tick.C:
			}
			if err := h.more(ctx, b.Log); err != nil && ctx.Err() == nil && !errors.Is(err, bus.ErrUnreachable) {
				return err
			}
		}
	})
}

// line is one line of JSON.
type line struct {
	Seq    uint64        `json:"seq"`
	At     time.Time     `json:"at"`
	Writer events.Writer `json:"writer"`
	Note   string        `json:"note,omitempty"`
	Event  *events.Event `json:"event,omitempty"`
}

func (h *history) commit(c *events.Commit) error {
	notes := h.fold(c)
	if c.Seq < h.from {
		return nil
	}
	st := h.app.style(h.app.Stdout)
	if c.Err != nil {
		if h.app.json {
			return h.app.printJSON(line{Seq: c.Seq, At: c.At, Writer: c.Writer, Note: "parked: " + c.Err.Error()})
		}
		return h.app.print(terminal.Whole(c, st) + "\n")
	}
	var text strings.Builder
	for i := range c.Events {
		e := &c.Events[i]
		if !h.app.json {
			text.WriteString(terminal.Fact(c, e, notes[i], st) + "\n")
			continue
		}
		l := line{Seq: c.Seq, At: c.At, Writer: c.Writer, Note: notes[i], Event: e}
		// an event that cannot be read may not encode
		if _, err := events.EncodeEvent(e); err != nil {
			l.Note, l.Event = strings.TrimSpace(l.Note+" unreadable: "+err.Error()), nil
		}
		if err := h.app.printJSON(l); err != nil {
			return err
		}
	}
	return h.app.print(text.String())
}

// fold folds a commit and returns for each of its facts why it did not count, "" if it did. A commit is folded as a
// whole, so the effect of a fact is found on a copy of the state, one fact at a time.
func (h *history) fold(c *events.Commit) []string {
	notes := make([]string, len(c.Events))
	probe := h.state.Clone()
	for i := range c.Events {
		one := *c
		one.Events = c.Events[i : i+1]
		ignored, unknown := probe.Ignored.Count, probe.UnknownFacts
		// the same commit again
		probe.Seq = c.Seq - 1
		res := probe.Fold(&one)
		switch {
		case len(res.Parked) > 0:
			notes[i] = "parked: " + res.Parked[0].Why
			if c.Events[i].Err == nil {
				notes[i] += ": " + res.Parked[0].Err.Error()
			}
		case probe.Ignored.Count > ignored && probe.Ignored.Last != nil:
			notes[i] = "ignored: " + probe.Ignored.Last.Why
		case probe.UnknownFacts > unknown:
			notes[i] = "unknown kind"
		}
	}
	h.state.Fold(c)
	return notes
}
