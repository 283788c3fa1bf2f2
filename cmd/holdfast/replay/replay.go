// Package replay plays recordings of an OpenCode server's events and reports how recovery ends what they left open.
// The events are played as they happened, through a real harness lease.
//
// Where the recorded process died this one dies without a word: its lease has to run out, as that of the real one would
// have. Each recording is played as a harness of its own, so that one that is played twice is two harnesses.
package replay

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

	"github.com/holdfast-dev/holdfast/bridges/opencode"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/screen"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	recoveryMaxS = 15 // beside the TTL, in seconds: the grace of another's reconciler is not known
	stemBytesMax = 60 // of a file's name in the name of a harness
)

// Config says where and how recordings are played. All fields but Login and Told are required.
type Config struct {
	// URL, Login and Prefix of the cell, whose services run.
	URL, Prefix string
	Login       drill.Login
	// Version is what the harness says of itself.
	Version string
	// TTL of the harness's lease, 1 s or more. Longer: its death is noticed later.
	TTL time.Duration
	// Fast leaves out the pauses of the recording.
	Fast bool
	// Told is called with a line for each thing that is played. Its error ends the recording.
	Told func(line string) error
}

// Recording is what one server sent. Its Name is part of the name of the harness that plays it.
type Recording struct {
	Name  string
	Trace opencode.Trace
}

// Read reads a recording: a JSON object {"at", "event"} a line. Lines that are none stop nothing.
func Read(file string) (rec Recording, err error) {
	f, err := os.Open(file)
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	trace, err := opencode.ReadTrace(f)
	return Recording{filepath.Base(file), trace}, err
}

// Leftover is one thing that a recording left open, and what became of it.
type Leftover struct {
	Session string `json:"session"`
	Entity  string `json:"entity"`
	ID      string `json:"id"`
	drill.Became
	AfterMS int64 `json:"after_ms,omitempty"` // from the death
}

// Played is what one recording came to.
type Played struct {
	File     string         `json:"file"`
	Harness  string         `json:"harness,omitempty"`
	Records  int            `json:"records"`
	Facts    int            `json:"facts"`
	Dead     bool           `json:"dead"`     // it ends with its process dead
	Restarts int            `json:"restarts"` // of the recorded process
	Left     []Leftover     `json:"left_open"`
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

// Play plays one recording, waits for what recovery makes of it, and says what became of what was left open. b is a
// connection to the same cell. The error is for what kept it from being played.
func Play(ctx context.Context, b *bus.Bus, cfg Config, rec Recording) (*Played, error) {
	steps, report := opencode.Steps(rec.Trace.Records)
	p := &Played{File: rec.Name, Records: report.Records, Facts: report.Facts, Dead: report.Dead,
		Restarts: report.Restarts, Skipped: rec.Trace.Skipped,
		Strange: report.Unreadable, Repeated: report.Duplicates, Late: report.Late, Unknown: report.Unknown,
		Phases:   map[string]any{},
		Problems: slices.Concat(rec.Trace.Problems, report.Problems), Left: []Leftover{}, OK: true}
	if len(steps) == 0 {
		return p, nil
	}
	var err error
	// what is recorded is over, and not gone on with
	if p.Harness, err = drill.FreeName(ctx, b, harnessOf(rec.Name)); err != nil {
		return nil, err
	}
	s := &stage{Config: cfg, bus: b, sessions: map[string]bool{}}
	if err := s.tell("%s: %s played as harness %s", p.File, screen.Plural(report.Facts, "fact"),
		p.Harness); err != nil {
		return nil, err
	}
	player := opencode.Player{Fast: cfg.Fast, Told: func(step opencode.Step) { s.told(ctx, &step) },
		Connect: func(ctx context.Context) (*harness.Harness, error) {
			return harness.Connect(ctx, cfg.Login.On(harness.Config{ID: p.Harness, URL: cfg.URL, Prefix: cfg.Prefix,
				TTL: cfg.TTL, Version: cfg.Version}))
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

// stage is one recording while it is played.
type stage struct {
	Config
	bus      *bus.Bus
	from     time.Time
	sessions map[string]bool
	deaths   []time.Time // by the broker's clock
	err      error
}

// tell is a line for a person who watches.
func (s *stage) tell(format string, args ...any) error {
	if s.Told == nil {
		return nil
	}
	return s.Told(screen.CleanLines(fmt.Sprintf(format, args...)))
}

// told is called after each step.
func (s *stage) told(ctx context.Context, step *opencode.Step) {
	at := step.At.Sub(s.from).Seconds()
	if step.Restart {
		now, err := s.bus.Now(ctx)
		s.deaths = append(s.deaths, now)
		s.err = errors.Join(s.err, err, s.tell("  +%.3fs  the process dies, without a word; its lease of %s runs out",
			at, s.TTL))
		return
	}
	s.sessions[step.Session] = true
	line := func(kind events.Kind, note string) {
		s.err = errors.Join(s.err, s.tell("  +%.3fs  %-18s %s", at, kind, screen.Cut(note, noteShownMax)))
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

// aftermath waits until nothing is open that nobody runs, or it has taken too long, and says what became of what was
// left.
func (s *stage) aftermath(ctx context.Context, p *Played, left []string) error {
	if err := s.tell("  waiting for recovery …"); err != nil {
		return err
	}
	docs, err := drill.Settled(ctx, s.bus, p.Harness, slices.Collect(maps.Keys(s.sessions)),
		s.TTL+recoveryMaxS*time.Second)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(docs)) {
		p.Phases[id] = docs[id].Phase
		for _, what := range drill.Stranded(docs[id], docs) {
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
			l.Became = drill.Whereabouts(d, docs, l.Entity, l.ID)
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
func parseLeftover(name string) Leftover {
	for _, entity := range []string{session.EntityTurn, session.EntityTool, session.EntityPrompt,
		session.EntityCompaction} {
		if s, id, ok := strings.Cut(name, "/"+entity+"/"); ok {
			return Leftover{Session: s, Entity: entity, ID: id}
		}
	}
	return Leftover{ID: name}
}
