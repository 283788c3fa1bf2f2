package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/bridges/opencode"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/screen"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	shortTTL        = 2 * time.Second // of a lease in a replay or a drill, so that a death is noticed soon
	shortGrace      = time.Second     // of a suite of one's own
	recoveryMaxS    = 15              // beside the TTL, in seconds: the grace of another's reconciler is not known
	stemBytesMax    = 60              // of a file's name in the name of a harness
	idShownMax      = 34              // columns
	problemsShowMax = 5
)

func replayCommand(a *app) *cobra.Command {
	var r replay
	long, example := describe(`Play recordings of an OpenCode server's events as they happened, and show what recovery makes of what they left open.

Each FILE is what GET /event sent, one JSON object {"at", "event"} a line. It is translated into facts and appended
through a real harness lease; where the recorded process died, this one dies without leaving, so that its lease has to run
out. Lines, events and fields that this build does not know are counted and stop nothing.

With --nats it is played there; otherwise everything runs in this process for as long as it takes. It fails when something
stays open that nobody runs.`,
		"holdfast replay session.jsonl", "holdfast replay --fast --nats nats://broker:4222 traces/*.jsonl --json")
	cmd := &cobra.Command{Use: "replay FILE…", Short: "Play recorded crashes and watch the recovery", Long: long, Example: example, GroupID: groupRepair,
		Args: arguments(1, -1, "a recording FILE")}
	a.take(cmd, optionsCommand)
	cmd.Flags().BoolVar(&r.fast, "fast", false, "leave out the pauses of the recording")
	cmd.Flags().DurationVar(&r.ttl, "ttl", shortTTL, "how long a lease outlives its process, 1s or more")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.ttl < time.Second {
			return usage(cmd, "--ttl %s: want 1s or more", r.ttl)
		}
		var all []recording
		for _, file := range args {
			rec, err := readRecording(file)
			if err != nil {
				return usage(cmd, "%v", err)
			}
			all = append(all, rec)
		}
		r.app = a
		return a.bounded(cmd.Context(), func(ctx context.Context) error {
			return a.somewhere(ctx, cmd.Flags().Changed("nats"), func(ctx context.Context, url string) error { return r.playAll(ctx, url, all) })
		})
	}
	return cmd
}

// somewhere runs do against the broker that was named, or against everything in this process.
func (a *app) somewhere(ctx context.Context, named bool, do func(ctx context.Context, url string) error) error {
	var err error
	if named {
		err = do(ctx, a.nats)
	} else {
		err = a.suite(ctx, do)
	}
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// connectTo opens a connection to a broker within --timeout.
func (a *app) connectTo(ctx context.Context, url, name string) (*bus.Bus, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	cfg := a.busConfig(name)
	cfg.URL = url
	return bus.Open(ctx, cfg)
}

// recording is one file.
type recording struct {
	name  string
	trace opencode.Trace
}

func readRecording(file string) (rec recording, err error) {
	f, err := os.Open(file)
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	trace, err := opencode.ReadTrace(f)
	return recording{filepath.Base(file), trace}, err
}

// replay is a run of the command.
type replay struct {
	app  *app
	fast bool
	ttl  time.Duration
}

// leftover is one thing that a recording left open, and what became of it.
type leftover struct {
	Session string `json:"session"`
	Entity  string `json:"entity"`
	ID      string `json:"id"`
	drill.Became
	AfterMS int64 `json:"after_ms,omitempty"` // from the death
}

// played is what one recording came to.
type played struct {
	File     string         `json:"file"`
	Harness  string         `json:"harness,omitempty"`
	Records  int            `json:"records"`
	Facts    int            `json:"facts"`
	Dead     bool           `json:"dead"`     // it ends with its process dead
	Restarts int            `json:"restarts"` // of the recorded process
	Left     []leftover     `json:"left_open"`
	Phases   map[string]any `json:"sessions"`           // phase, by session
	Stranded []string       `json:"stranded,omitempty"` // what should not be open any more
	Skipped  int            `json:"lines_skipped"`
	Strange  int            `json:"unreadable"`
	Repeated int            `json:"duplicates"`
	Late     int            `json:"late"`
	Unknown  map[string]int `json:"unknown,omitempty"`
	Problems []string       `json:"problems,omitempty"`
	OK       bool           `json:"ok"`
}

// playAll plays one recording after the other, each as a harness of its own.
func (r *replay) playAll(ctx context.Context, url string, all []recording) error {
	var broken []string
	for i := range all {
		p, err := r.play(ctx, url, &all[i])
		if err != nil {
			return fmt.Errorf("holdfast: replay %s: %w", all[i].name, err)
		}
		if !p.OK {
			broken = append(broken, p.File)
		}
		if err := r.show(p); err != nil {
			return err
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("holdfast: replay: left open though nobody runs it, in %s", strings.Join(broken, ", "))
	}
	return nil
}

// play plays one recording and waits for what recovery makes of it.
func (r *replay) play(ctx context.Context, url string, rec *recording) (*played, error) {
	steps, report := opencode.Steps(rec.trace.Records)
	p := &played{File: rec.name, Records: report.Records, Facts: report.Facts, Dead: report.Dead, Restarts: report.Restarts, Skipped: rec.trace.Skipped,
		Strange: report.Unreadable, Repeated: report.Duplicates, Late: report.Late, Unknown: report.Unknown, Phases: map[string]any{},
		Problems: slices.Concat(rec.trace.Problems, report.Problems), Left: []leftover{}, OK: true}
	if len(steps) == 0 {
		return p, nil
	}
	b, err := r.app.connectTo(ctx, url, "replay")
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if p.Harness, err = drill.FreeName(ctx, b, harnessOf(rec.name)); err != nil { // what is recorded is over, and not gone on with
		return nil, err
	}
	if err := r.tell("%s: %s played as harness %s", p.File, screen.Plural(report.Facts, "fact"), p.Harness); err != nil {
		return nil, err
	}
	s := &stage{replay: r, bus: b, sessions: map[string]bool{}}
	player := opencode.Player{Fast: r.fast, Told: func(step opencode.Step) { s.told(ctx, &step) }, Connect: func(ctx context.Context) (*harness.Harness, error) {
		return harness.Connect(ctx, harness.Config{ID: p.Harness, URL: url, Creds: r.app.creds, Prefix: r.app.prefix, TTL: r.ttl, Version: version})
	}}
	s.from = steps[0].At
	if err := player.Play(ctx, steps, report.Dead); err != nil {
		return nil, err
	}
	if s.err != nil {
		return nil, s.err
	}
	return p, s.aftermath(ctx, p, append(report.Lost, report.Open...))
}

// harnessOf is the harness that plays a file.
func harnessOf(file string) string {
	stem := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, strings.TrimSuffix(file, filepath.Ext(file)))
	return "opencode-" + stem[:min(len(stem), stemBytesMax)]
}

// tell is a line for a person who watches.
func (r *replay) tell(format string, args ...any) error {
	if r.app.json {
		return nil
	}
	return r.app.say(screen.CleanLines(fmt.Sprintf(format, args...)) + "\n")
}

// stage is one recording while it is played.
type stage struct {
	*replay
	bus      *bus.Bus
	from     time.Time
	sessions map[string]bool
	deaths   []time.Time // by the broker's clock
	err      error
}

// told is called after each step.
func (s *stage) told(ctx context.Context, step *opencode.Step) {
	at := step.At.Sub(s.from).Seconds()
	if step.Restart {
		s.deaths = append(s.deaths, s.app.now(ctx, s.bus))
		s.err = errors.Join(s.err, s.tell("  +%.3fs  the process dies, without a word; its lease of %s runs out", at, s.ttl))
		return
	}
	s.sessions[step.Session] = true
	line := func(kind events.Kind, note string) {
		s.err = errors.Join(s.err, s.tell("  +%.3fs  %-18s %s", at, kind, screen.Cut(note, 2*idShownMax)))
	}
	if step.Open != nil {
		line(step.Open.Kind(), step.Session)
	}
	if step.Claim {
		line(events.SessionClaimed{}.Kind(), step.Session+" by a new process")
	}
	for _, f := range step.Facts {
		line(f.Kind(), note(f))
	}
}

// note is what a fact is about.
func note(f events.Fact) string {
	switch f := f.(type) {
	case events.ToolStarted:
		return strings.TrimSpace(f.Name + "  " + f.Title)
	case events.PromptRequested:
		return strings.TrimSpace(string(f.PromptKind) + "  " + f.Title)
	case events.TurnFailed:
		return f.Error.Kind + ": " + f.Error.Text
	}
	return f.Subject()
}

// aftermath waits until nothing is open that nobody runs, or it has taken too long, and says what became of what was left.
func (s *stage) aftermath(ctx context.Context, p *played, left []string) error {
	if err := s.tell("  waiting for recovery …"); err != nil {
		return err
	}
	docs, err := drill.Settled(ctx, s.bus, p.Harness, slices.Collect(maps.Keys(s.sessions)), s.ttl+recoveryMaxS*time.Second)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(docs)) {
		p.Phases[id] = docs[id].Phase
		for _, what := range drill.Stranded(docs[id]) {
			p.Stranded = append(p.Stranded, id+": "+what)
		}
	}
	for id := range s.sessions {
		if docs[id] == nil {
			p.Stranded = append(p.Stranded, id+": not folded: does a ledger run?")
		}
	}
	for _, name := range left {
		l := parseLeftover(name)
		if d := docs[l.Session]; d != nil {
			l.Became = drill.Whereabouts(d, l.Entity, l.ID)
		}
		for _, death := range s.deaths {
			if l.Ending.At.After(death) {
				l.AfterMS = l.Ending.At.Sub(death).Milliseconds()
			}
		}
		p.Left = append(p.Left, l)
	}
	p.OK = len(p.Stranded) == 0
	return nil
}

// parseLeftover takes session/entity/id apart.
func parseLeftover(name string) leftover {
	for _, entity := range []string{session.EntityTurn, session.EntityTool, session.EntityPrompt, session.EntityCompaction} {
		if s, id, ok := strings.Cut(name, "/"+entity+"/"); ok {
			return leftover{Session: s, Entity: entity, ID: id}
		}
	}
	return leftover{ID: name}
}

// show prints what a recording came to.
func (r *replay) show(p *played) error {
	if r.app.json {
		return r.app.sayJSON(p)
	}
	st := r.app.style(r.app.Stdout)
	var text strings.Builder
	switch {
	case p.Facts == 0 && len(p.Phases) == 0:
		fmt.Fprintf(&text, "%s: nothing to play: %s read, none of them begins a session\n", screen.Clean(p.File), screen.Plural(p.Records, "event"))
	case len(p.Left) == 0:
		text.WriteString("\nThe recording leaves nothing open.\n")
	default:
		text.WriteString("\nWhat the recording left open, and what became of it:\n\n")
		text.WriteString(leftovers(p.Left, st))
		text.WriteByte('\n')
	}
	for _, id := range slices.Sorted(maps.Keys(p.Phases)) {
		fmt.Fprintf(&text, "Session %s is now %s.\n", screen.Clean(id), st.Painted(fmt.Sprint(p.Phases[id]), screen.Strong))
	}
	for _, s := range p.Stranded {
		text.WriteString(st.Painted("Left open though nobody runs it: "+s, screen.Alarm) + "\n")
	}
	text.WriteString(passedOver(p))
	return r.app.say(text.String())
}

func leftovers(left []leftover, st screen.Style) string {
	rows := make([][]screen.Cell, len(left))
	for i, l := range left {
		paint, after := screen.Good, "–"
		switch l.Outcome {
		case drill.OutcomeOpen:
			paint = screen.Alarm
		case drill.OutcomeKept:
			paint = screen.Wait
		}
		if l.AfterMS > 0 {
			after = duration(l.AfterMS)
		}
		rows[i] = []screen.Cell{{Text: l.Entity}, {Text: l.Name}, {Text: screen.Cut(l.ID, idShownMax)}, {Text: l.Outcome, Paint: paint}, {Text: l.Reason}, {Text: after, Paint: screen.Faint}}
	}
	return screen.Table([]string{"LEFT OPEN", "NAME", "ID", "BECAME", "WHY", "AFTER THE DEATH"}, rows, st)
}

// passedOver says what of the recording was not used, and why.
func passedOver(p *played) string {
	unknown := 0
	for _, n := range p.Unknown {
		unknown += n
	}
	text := fmt.Sprintf("Passed over: %s, %d unreadable, %d of unknown kind, %d repeated, %d late.\n", screen.Plural(p.Skipped, "line"), p.Strange, unknown, p.Repeated, p.Late)
	for i, problem := range p.Problems {
		if i == problemsShowMax {
			text += fmt.Sprintf("  … and %d more\n", len(p.Problems)-i)
			break
		}
		text += "  " + screen.Clean(problem) + "\n"
	}
	for i, name := range slices.Sorted(maps.Keys(p.Unknown)) {
		if i == problemsShowMax {
			text += fmt.Sprintf("  … and %d kinds more\n", len(p.Unknown)-i)
			break
		}
		text += fmt.Sprintf("  unknown: %s (%d)\n", screen.Clean(name), p.Unknown[name])
	}
	return text
}
