package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	redrawMinMS  = 100   // between two drawings of the table
	redrawAgesMS = 1_000 // at least so often, for the ages in it
	clearScreen  = "\x1b[H\x1b[2J"
)

func sortedValues[V any](m map[string]V) []V {
	var all []V
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[k])
	}
	return all
}

func watchCommand(a *app) *cobra.Command {
	var f sessionFilter
	var once bool
	var limit int
	long, example := describe(`Watch sessions and what waits for a person, redrawn from the views as they change.

It begins with the --limit sessions that changed last, and as many that wait for a person; no others are read.
With S only this session. On a terminal a table; elsewhere, or with --json, a line for each change. --once
prints the table and ends.`,
		"holdfast watch", "holdfast watch my-agent/build-42",
		"holdfast watch --once --limit 0", "holdfast watch --waiting --json")
	cmd := &cobra.Command{Use: "watch [S]", Short: "Watch sessions live", Long: long, Example: example,
		GroupID: groupInspect,
		Args:    arguments(0, 1, "the session S")}
	a.addFlags(cmd, optionsCommand)
	f.bind(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "print the table once")
	cmd.Flags().IntVar(&limit, "limit", watchBeginsWith, "begin with so many `sessions`; 0: all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		if limit < 0 {
			return usage(cmd, "--limit %d: want 0 (all) or more", limit)
		}
		return a.with(cmd.Context(), func(ctx context.Context, b *bus.Bus) error {
			// a watch would wait for the cell
			since, err := b.Log.LastSeq(ctx)
			if bus.NoCell(err) {
				return err
			}
			if len(args) > 0 {
				r, err := a.resolve(ctx, b, args[0])
				if err != nil {
					return err
				}
				f.harness, f.session, f.all = r.Harness, r.Session, true
			}
			x := newBoard(&f, limit)
			x.since = since
			if once {
				return a.watchOnce(ctx, b, x)
			}
			if _, onTerminal := terminalFD(a.Stdout); onTerminal && !a.json {
				return a.watchTable(ctx, b, x)
			}
			return a.watchLines(ctx, b, x)
		})
	}
	return cmd
}

// board is the state of a watch.
type board struct {
	filter *sessionFilter
	limit  int    // sessions that it begins with; 0: all
	since  uint64 // the last commit of the log before it began

	mu       sync.Mutex
	sessions map[string]*session.State
	blockers map[string]*session.Blocker
	unread   int  // entries of a form that this build cannot read
	older    bool // there are sessions or prompts that it did not begin with
}

func newBoard(f *sessionFilter, limit int) *board {
	return &board{filter: f, limit: limit, sessions: map[string]*session.State{},
		blockers: map[string]*session.Blocker{}}
}

// take stores one entry and returns the replaced document and the new one; both nil for another entry.
func (x *board) apply(u kv.Update) (before, after *session.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	isSession := strings.HasPrefix(u.Key, "session.")
	switch {
	case u.Ready:
	case u.Deleted:
		delete(x.sessions, u.Key)
		delete(x.blockers, u.Key)
	case isSession:
		s, err := session.Decode(u.Value)
		if err != nil {
			x.unread++
			return nil, nil
		}
		before, after = x.sessions[u.Key], s
		x.sessions[u.Key] = s
	default:
		var b session.Blocker
		if json.Unmarshal(u.Value, &b) != nil {
			x.unread++
			return nil, nil
		}
		x.blockers[u.Key] = &b
	}
	return before, after
}

// text returns the table: sessions first, then their prompts.
func (x *board) text(now time.Time, st terminal.Style) string {
	f := x.filter
	x.mu.Lock()
	defer x.mu.Unlock()
	var docs []*session.State
	for _, s := range sortedValues(x.sessions) {
		if f.wants(s) {
			docs = append(docs, s)
		}
	}
	hidden := 0
	text := "no sessions\n"
	if len(docs) > 0 {
		text = terminal.Sessions(docs, now, st)
	}
	// not all fit: first the sessions that need a person
	lines := strings.Count(text, "\n")
	if len(docs) > 0 && st.Height > 0 && lines+len(x.blockers) > st.Height-boardLinesOther {
		slices.SortStableFunc(docs, func(a, b *session.State) int { return urgency(a) - urgency(b) })
		// a session with a long name has a second line
		each := max(lines/(len(docs)+1), 1)
		hidden = max(len(docs)-max(st.Height/2/each, 1), 0)
		docs = docs[:len(docs)-hidden]
		text = terminal.Sessions(docs, now, st)
	}
	var open []*session.Blocker
	for _, b := range sortedValues(x.blockers) {
		if b.Awaits() && (f.harness == "" || b.Harness == f.harness) &&
			(f.session == "" || b.Session == f.session) && (f.root == "" || b.Root == f.root) {
			open = append(open, b)
		}
	}
	if more := x.left(hidden); more != "" {
		text += st.Wrap(more, 2) + "\n"
	}
	if len(open) > 0 {
		text += "\n" + terminal.Prompts(open, now, st)
	}
	if x.unread > 0 {
		text += "\n" + st.Wrap(fmt.Sprintf("of a newer form, not shown: %s; upgrade this program",
			terminal.Plural(x.unread, "view")), 0) + "\n"
	}
	return text
}

// begins records whether there is more than the board begins with.
func (x *board) begins(older bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.older = older
}

// left says what is not in the table.
func (x *board) left(hidden int) string {
	switch {
	case hidden > 0 && x.older:
		return fmt.Sprintf("… and %s more, and older ones (`holdfast sessions`)", terminal.Plural(hidden, "session"))
	case hidden > 0:
		return fmt.Sprintf("… and %s more (`holdfast sessions`)", terminal.Plural(hidden, "session"))
	case x.older:
		return "… and older ones (`holdfast sessions`, `holdfast prompts`)"
	}
	return ""
}

// boardLinesOther is how many lines of a board are neither in the table of sessions nor a prompt.
const boardLinesOther = 6

// urgency sorts phases by how much they need a person.
func urgency(s *session.State) int {
	order := []session.Phase{session.Waiting, session.Interrupted, session.Retrying, session.Compacting,
		session.Running, session.Queued, session.Idle, session.Closed}
	return slices.Index(order, s.Phase)
}

// fit cuts a drawing to the height of the terminal, with a note.
func fit(text string, height int) string {
	all := strings.SplitAfter(text, "\n")
	if height <= 1 || len(all) <= height {
		return text
	}
	return strings.Join(all[:height-1], "") +
		fmt.Sprintf("… %s more: `holdfast sessions`, `holdfast prompts`", terminal.Plural(len(all)-height, "line"))
}

// watchBeginsWith is how many sessions a watch begins with.
const watchBeginsWith = 100

// watched returns the keys of a board.
func watched(f *sessionFilter) []string {
	return []string{events.SessionKeys(f.harness), events.BlockerKeys(f.harness, "")}
}

// errEnough ends a watch that has shown what was asked for.
var errEnough = errors.New("watch: enough")

func (a *app) watchOnce(ctx context.Context, b *bus.Bus, x *board) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	err := a.watch(ctx, b.KV, x, func(u kv.Update) error {
		x.apply(u)
		if u.Ready {
			return errEnough
		}
		return nil
	})
	switch {
	case err == nil:
		return fmt.Errorf("%w: the views were not there within %s", bus.ErrUnreachable, a.timeout)
	case !errors.Is(err, errEnough):
		return err
	}
	return a.print(x.text(a.now(ctx, b.Clock), a.style(a.Stdout)))
}

// watchTable draws the table after each change, and periodically for the ages in it.
func (a *app) watchTable(ctx context.Context, b *bus.Bus, x *board) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- a.watch(ctx, b.KV, x, func(u kv.Update) error {
			x.apply(u)
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	ages := time.NewTicker(redrawAgesMS * time.Millisecond)
	defer ages.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-changed:
		case <-ages.C:
		}
		st := a.style(a.Stdout)
		if err := a.print(clearScreen + fit(a.headline(b)+x.text(a.now(ctx, b.Clock), st), st.Height)); err != nil {
			return err
		}
		pause := time.NewTimer(redrawMinMS * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// headline returns what is watched and whether the connection is alive.
func (a *app) headline(b *bus.Bus) string {
	st := a.style(a.Stdout)
	if !b.Connected() {
		return st.WrapColoured("holdfast watch · "+bus.Redacted(a.nats)+" · broker lost, trying again",
			terminal.Alarm, 2) + "\n\n"
	}
	return st.WrapColoured("holdfast watch · "+bus.Redacted(a.nats)+" · Ctrl-C ends it", terminal.Faint, 2) + "\n\n"
}

// watchLines prints a line for each change: first the entries that the watch begins with, then each change.
func (a *app) watchLines(ctx context.Context, b *bus.Bus, x *board) error {
	f, log := x.filter, remembered(a.source(ctx, b.Log))
	ready := false
	return a.watch(ctx, b.KV, x, func(u kv.Update) error {
		ready = ready || u.Ready
		if u.Ready && x.older && !a.json {
			a.printError("it began with what changed last; with --limit 0 it begins with all")
		}
		before, after := x.apply(u)
		if after == nil || !f.wants(after) && (before == nil || !f.wants(before)) {
			return nil
		}
		if before == nil && ready {
			// new, or not among the first ones: earlier endings are no change
			before = &session.State{Seq: x.since}
		}
		after = a.shown(after, log)
		if a.json {
			return a.printJSON(after)
		}
		var text strings.Builder
		for _, l := range terminal.Changes(before, after, u.At) {
			fmt.Fprintf(&text, "%s  %s  %s\n", terminal.Clock(u.At), terminal.Clean(after.Ref().String()), l)
		}
		return a.print(text.String())
	})
}

// condition is a condition of --wait.
type condition struct {
	text  string
	holds func(*session.State) bool
}

func parseConditions(cmd *cobra.Command, texts []string) ([]condition, error) {
	var all []condition
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		n, numberErr := strconv.ParseUint(value, 10, 64)
		yes, boolErr := strconv.ParseBool(value)
		c := condition{text: text}
		switch {
		case key == "phase" && slices.Contains(session.Phases(), session.Phase(value)):
			c.holds = func(s *session.State) bool { return string(s.Phase) == value }
		case key == "seq" && numberErr == nil:
			c.holds = func(s *session.State) bool { return s.Seq >= n }
		case key == "prompts" && numberErr == nil:
			c.holds = func(s *session.State) bool { return uint64(len(s.PendingPrompts())) == n }
		case key == "tools" && numberErr == nil:
			c.holds = func(s *session.State) bool { return uint64(len(s.Tools)) == n }
		case key == "owned" && boolErr == nil:
			c.holds = func(s *session.State) bool { return s.Owned == yes }
		default:
			return nil, usage(cmd, "--wait %q: want phase=%s, seq=N, owned=BOOL, prompts=N or tools=N", text,
				strings.ReplaceAll(phaseNames(), ", ", "|"))
		}
		all = append(all, c)
	}
	return all, nil
}

// await waits until a session's stored document fulfils all conditions. The session may not exist yet.
func (a *app) await(ctx context.Context, buckets *kv.Buckets, name string, conds []condition) error {
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	missing := "there is no such session"
	err := buckets.Watch(limited, kv.State, []string{events.SessionKeys("")}, func(u kv.Update) error {
		r, err := events.ParseSessionKey(u.Key)
		if u.Ready || u.Deleted || err != nil || r.String() != name && r.Session != name {
			return nil
		}
		s, err := session.Decode(u.Value)
		if err != nil {
			return fmt.Errorf("session %s: %w", r, err)
		}
		missing = ""
		for _, c := range conds {
			if !c.holds(s) {
				missing = fmt.Sprintf("%s does not hold: phase %s, seq %d, owned %t, %s awaiting, %s open", c.text,
					s.Phase, s.Seq, s.Owned,
					terminal.Plural(len(s.PendingPrompts()), "prompt"), terminal.Plural(len(s.Tools), "call"))
				return nil
			}
		}
		return errEnough
	})
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err != nil:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("wait for session %s: interrupted", name)
	}
	return fmt.Errorf("wait for session %s: not within %s: %s", name, a.timeout, missing)
}
