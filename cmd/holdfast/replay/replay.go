// Package replay plays recordings of an OpenCode server's events and reports how recovery ends what they left open.
// The events are played with their recorded timing, through a real harness lease.
//
// At a recorded death the process ends without a release: its lease must expire, as in the recorded incident. Each
// recording is played by a separate harness, so a recording that is played twice is two harnesses.
package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	recoveryMaxS = 15 // in addition to the TTL, in seconds: the grace of another reconciler is unknown
	stemBytesMax = 60 // of a file's name in the name of a harness
)

// Config configures a replay. All fields but Login and OnLine are required.
type Config struct {
	// URL, Login and Prefix of the cell, whose services run.
	URL, Prefix string
	Login       drill.Login
	// Version is the version that the harness reports.
	Version string
	// TTL of the harness's lease, 1 s or more. Longer: its death is detected later.
	TTL time.Duration
	// Fast leaves out the pauses of the recording.
	Fast bool
	// Close closes the sessions at the end.
	Close bool
	// OnLine is called with a line for each played step. Its error ends the recording.
	OnLine func(line string) error
}

// Recording is the recorded events of one server. Its Name is part of the name of the harness that plays it.
type Recording struct {
	Name  string
	Trace opencode.Trace
}

// Read reads a recording: a JSON object {"at", "event"} a line. Other lines are skipped and counted.
func Read(file string) (rec Recording, err error) {
	f, err := os.Open(file)
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	trace, err := opencode.ReadTrace(f)
	return Recording{filepath.Base(file), trace}, err
}

// Leftover is one entity that a recording left open, and its outcome.
type Leftover struct {
	Session string `json:"session"`
	Entity  string `json:"entity"`
	ID      string `json:"id"`
	drill.Became
	By      events.Writer `json:"by,omitempty"`       // the writer of its ending
	AfterMS int64         `json:"after_ms,omitempty"` // from the death
}

// Played is the result of one recording.
type Played struct {
	File     string         `json:"file"`
	Harness  string         `json:"harness,omitempty"`
	Records  int            `json:"records"`
	Facts    int            `json:"facts"`
	Dead     bool           `json:"dead"`     // the recording ends with a dead process
	Restarts int            `json:"restarts"` // of the recorded process
	Left     []Leftover     `json:"left_open"`
	Phases   map[string]any `json:"sessions"`           // phase, by session
	Stranded []string       `json:"stranded,omitempty"` // entities that should not be open any more
	Skipped  int            `json:"lines_skipped"`
	Strange  int            `json:"unreadable"`
	Repeated int            `json:"duplicates"`
	Late     int            `json:"late"`
	Unknown  map[string]int `json:"unknown,omitempty"`
	Problems []string       `json:"problems,omitempty"`
	OK       bool           `json:"ok"`
}

// Play plays one recording, waits for recovery, and returns the outcome of what was left open. b is a connection to the
// same cell. The error means that the recording could not be played.
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
	// an earlier replay's sessions are not continued
	if p.Harness, err = drill.FreeName(ctx, b.KV, harnessOf(rec.Name)); err != nil {
		return nil, err
	}
	s := &stage{Config: cfg, bus: b, sessions: map[string]bool{}}
	if err := s.print("%s: %s played as harness %s", p.File, terminal.Plural(report.Facts, "event"),
		p.Harness); err != nil {
		return nil, err
	}
	if cfg.Close {
		defer s.close(ctx, p.Harness)
	}
	player := opencode.Player{Fast: cfg.Fast, OnStep: func(step opencode.Step) { s.afterStep(ctx, &step) },
		Connect: func(ctx context.Context) (*harness.Harness, error) {
			return harness.Connect(ctx, cfg.Login.On(harness.Config{ID: p.Harness, URL: cfg.URL, Prefix: cfg.Prefix,
				TTL: cfg.TTL, Version: cfg.Version, Log: slog.New(slog.DiscardHandler)}))
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

// harnessOf returns the harness that plays a file.
func harnessOf(file string) string {
	stem := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, strings.TrimSuffix(file, filepath.Ext(file)))
	return "opencode-" + stem[:min(len(stem), stemBytesMax)]
}

// stage is one recording during its replay.
type stage struct {
	Config
	bus      *bus.Bus
	from     time.Time
	sessions map[string]bool
	deaths   []time.Time // by the broker's clock
	err      error
}

// close closes the sessions of the recording. One that is not closed stays visible, which has no other effect.
func (s *stage) close(ctx context.Context, name string) {
	var all []events.Ref
	for id := range s.sessions {
		all = append(all, events.Ref{Harness: name, Session: id})
	}
	for r, err := range drill.CloseAll(ctx, s.bus.Services, all) {
		_ = s.print("  session %s is not closed: %v", r.Session, err)
	}
}

// print prints a line.
func (s *stage) print(format string, args ...any) error {
	if s.OnLine == nil {
		return nil
	}
	return s.OnLine(terminal.CleanLines(fmt.Sprintf(format, args...)))
}

// afterStep records the state after each step.
func (s *stage) afterStep(ctx context.Context, step *opencode.Step) {
	at := step.At.Sub(s.from).Seconds()
	if step.Restart {
		now, err := s.bus.Clock.Now(ctx)
		s.deaths = append(s.deaths, now)
		s.err = errors.Join(s.err, err, s.print("  +%.3fs  the process dies, without a word; its lease of %s runs out",
			at, s.TTL))
		return
	}
	s.sessions[step.Session] = true
	line := func(kind events.Kind, note string) {
		s.err = errors.Join(s.err, s.print("  +%.3fs  %-18s %s", at, kind, terminal.Cut(note, noteShownMax)))
	}
	if step.Open != nil {
		line(step.Open.Kind(), step.Session)
	}
	if step.Claim {
		line(events.SessionClaimed{}.Kind(), step.Session+" by a new process")
	}
	for _, f := range step.Facts {
		line(f.Kind(), subjectOf(f))
	}
}

// subjectOf returns the subject of a fact.
func subjectOf(f events.Fact) string {
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

// aftermath waits until nothing is open without a running process, or until the time limit, and records the outcome of
// what was left.
func (s *stage) aftermath(ctx context.Context, p *Played, left []string) error {
	if err := s.print("  waiting for recovery …"); err != nil {
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
		if l.Ending.Seq > 0 {
			c, err := s.bus.Log.Commit(ctx, l.Ending.Seq)
			if err != nil {
				return err
			}
			l.By = c.Writer
		}
		p.Left = append(p.Left, l)
	}
	p.OK = len(p.Stranded) == 0
	return nil
}

// parseLeftover splits session/entity/id.
func parseLeftover(name string) Leftover {
	for _, entity := range []string{session.EntityTurn, session.EntityTool, session.EntityPrompt,
		session.EntityCompaction} {
		if s, id, ok := strings.Cut(name, "/"+entity+"/"); ok {
			return Leftover{Session: s, Entity: entity, ID: id}
		}
	}
	return Leftover{ID: name}
}
