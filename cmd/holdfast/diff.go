package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

// past returns a session as it was at a place of the log, with or without a running ledger.
func (a *app) past(ctx context.Context, b *bus.Bus, r events.Ref, at uint64) (*session.State, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	var st *session.State
	err := a.progress("reading "+r.String(), func() (err error) {
		st, err = ledger.At(ctx, b, r, at)
		return err
	})
	return st, err
}

// printPast prints a session as it was. Ages are those at the last commit that is shown.
func (a *app) printPast(ctx context.Context, b *bus.Bus, r events.Ref, at uint64) error {
	st, err := a.past(ctx, b, r, at)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(a.shown(st, a.source(ctx, b.Log)))
	}
	text, err := a.sessionText(ctx, b.Log, st, st.UpdatedAt)
	if err != nil {
		return err
	}
	return a.print(text)
}

func diffCommand(a *app) *cobra.Command {
	var all bool
	long, example := describe(`Print what differs between a session at two places of the log: its phase and owner,
turns, calls, prompts, messages, retries, compactions, usage and policy, each before and after. Without a second SEQ the
session is compared as it is now. --all prints each field of its document that differs, and so does --json, one
{"path", "before", "after"} a line.`,
		"holdfast diff my-agent/build-42 4711 4720", "holdfast diff build-42 4711 --all")
	cmd := &cobra.Command{Use: "diff S SEQ [SEQ]", Short: "Compare a session at two places of its log", Long: long,
		Example: example, GroupID: groupInspect, Args: arguments(2, 3, "the session S", "the sequence SEQ")}
	a.addFlags(cmd, optionsCommand)
	cmd.Flags().BoolVar(&all, "all", false, "print each field of the document that differs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var places []uint64
		for _, arg := range args[1:] {
			place, err := strconv.ParseUint(arg, 10, 64)
			if err != nil || place == 0 {
				return usage(cmd, "%q is no sequence of the log: want 1 or more", arg)
			}
			places = append(places, place)
		}
		return a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			return a.printDiff(ctx, b, r, places, all)
		})
	}
	return cmd
}

// printDiff prints the changes of a session from one place to the other one, or to now; all of its fields, or what a
// person sees.
func (a *app) printDiff(ctx context.Context, b *bus.Bus, r events.Ref, places []uint64, all bool) error {
	before, err := a.past(ctx, b, r, places[0])
	if err != nil {
		return err
	}
	var after *session.State
	if len(places) > 1 {
		after, err = a.past(ctx, b, r, places[1])
	} else {
		after, _, err = a.current(ctx, b, r)
	}
	if err != nil {
		return err
	}
	// most endings are in both
	log := remembered(a.source(ctx, b.Log))
	before, after = a.shown(before, log), a.shown(after, log)
	changes, err := terminal.Difference(before, after)
	if err != nil {
		return err
	}
	if done, err := printLines(a, changes); done {
		return err
	}
	if len(changes) == 0 {
		a.printError("nothing differs")
		return nil
	}
	if all {
		return a.print(terminal.Diff(changes, a.style(a.Stdout)))
	}
	text := terminal.Compare(before, after, a.style(a.Stdout))
	if text == "" {
		a.printError("nothing differs that a person sees: --all prints the %s that differ",
			terminal.Plural(len(changes), "field"))
	}
	return a.print(text)
}
