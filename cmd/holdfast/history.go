package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/screen"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

func eventsCommand(a *app) *cobra.Command {
	var follow bool
	var from uint64
	long, example := describe(`Print a session's log: every fact in order, who said it, and whether it counted.

A line is: sequence, instant, writer, kind, what it is about, the rest of its data, and a note when the fact was ignored or
could not be read. With --json each line is {"seq", "at", "writer", "note", "event"}.`,
		"holdfast events my-agent/build-42", "holdfast events build-42 --follow", "holdfast events build-42 --json | jq -r .event.type")
	cmd := &cobra.Command{Use: "events S", Short: "Print a session's log", Long: long, Example: example, GroupID: groupLook, Args: arguments(1, 1, "the session S")}
	a.take(cmd, optionsCommand)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	cmd.Flags().Uint64Var(&from, "from", 0, "begin at this `sequence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			h := &history{app: a, from: from, state: session.New(r)}
			if err := h.more(ctx, b); err != nil || !follow {
				return err
			}
			return h.follow(ctx, b)
		})
	}
	return cmd
}

// history prints a session's log. It folds what it prints: that is how it knows what counted.
type history struct {
	app   *app
	from  uint64
	state *session.State
}

// more prints what the log has beyond what was printed.
func (h *history) more(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(ctx, h.app.timeout)
	defer cancel()
	commits, err := b.Read(ctx, h.state.Ref(), h.state.Seq+1)
	if err != nil {
		return fmt.Errorf("holdfast: log of %s: %w", h.state.Ref(), err)
	}
	for i := range commits {
		if err := h.commit(&commits[i]); err != nil {
			return err
		}
	}
	return nil
}

// follow prints what is appended, as the session's document moves.
func (h *history) follow(ctx context.Context, b *bus.Bus) error {
	key := events.SessionKey(h.state.Ref())
	return b.Watch(ctx, bus.State, []string{key}, func(u bus.Update) error {
		if u.Ready || u.Deleted {
			return nil
		}
		err := h.more(ctx, b)
		if errors.Is(err, bus.ErrUnreachable) { // the watch comes again when the broker is back
			return nil
		}
		return err
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
			return h.app.sayJSON(line{Seq: c.Seq, At: c.At, Writer: c.Writer, Note: "parked: " + c.Err.Error()})
		}
		return h.app.say(screen.Whole(c, st) + "\n")
	}
	var text strings.Builder
	for i := range c.Events {
		e := &c.Events[i]
		if !h.app.json {
			text.WriteString(screen.Fact(c, e, notes[i], st) + "\n")
			continue
		}
		l := line{Seq: c.Seq, At: c.At, Writer: c.Writer, Note: notes[i], Event: e}
		if _, err := events.EncodeEvent(e); err != nil { // what cannot be read cannot always be written
			l.Note, l.Event = strings.TrimSpace(l.Note+" unreadable: "+err.Error()), nil
		}
		if err := h.app.sayJSON(l); err != nil {
			return err
		}
	}
	return h.app.say(text.String())
}

// fold takes a commit in and says of each of its facts why it did not count, "" if it did. A commit is folded as a whole,
// so what a fact did is seen on a copy of the state, one fact at a time.
func (h *history) fold(c *events.Commit) []string {
	notes := make([]string, len(c.Events))
	probe := h.state.Clone()
	for i := range c.Events {
		one := *c
		one.Events = c.Events[i : i+1]
		ignored, unknown := probe.Ignored.Count, probe.UnknownFacts
		probe.Seq = c.Seq - 1 // the same commit again
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
