package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/form"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	completeMaxMS = 800 // to connect and read: a person waits for the shell
	completionMax = 200 // words that are offered
	suggestionMax = 60  // of a description, in terminal cells
)

// finder returns words for the place behind args.
type finder func(ctx context.Context, a *app, cmd *cobra.Command, args []string, begun string) ([]string, error)

// completers return the words for an argument, by its name in a command's Use. args are the arguments before it. A
// command without such an argument completes nothing.
var completers = map[string]finder{
	"S":         completeSessions,
	"P":         completePrompts,
	"M":         completeMessages,
	"KEY=VALUE": completePolicy,
}

// flagWords are the words for the values of flags.
var flagWords = map[string]func(a *app) []string{
	"phase":     func(*app) []string { return strings.Split(phaseNames(), ", ") },
	"log-level": func(*app) []string { return []string{"debug", "info", "warn", "error"} },
	"replicas":  func(*app) []string { return []string{"1", "3", "5"} },
	"context": func(a *app) []string {
		if a.contextDir() == "" {
			return nil
		}
		return contextsIn(a.contextDir())
	},
	"wait": func(*app) []string {
		words := []string{"seq=", "owned=true", "owned=false", "prompts=", "tools="}
		for _, p := range session.Phases() {
			words = append(words, "phase="+string(p))
		}
		return words
	},
}

// flagFinders search the cell for the values of the flags that select sessions. Other flags of these names, such as the
// id that a bridge gets, are no selections: only commands that look have them.
var flagFinders = map[string]func(s *session.State) string{
	"harness": func(s *session.State) string { return s.Harness },
	"root":    func(s *session.State) string { return s.Root },
}

// addCompletion lets a command complete its arguments and the values of its flags, and its subcommands theirs.
func (a *app) addCompletion(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.addCompletion(sub)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if words := flagWords[f.Name]; words != nil {
			// It fails for a flag that the command does not have, or that has words already.
			_ = cmd.RegisterFlagCompletionFunc(f.Name,
				func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return words(a), cobra.ShellCompDirectiveNoFileComp
				})
		}
		if of := flagFinders[f.Name]; of != nil && cmd.GroupID == groupInspect {
			_ = cmd.RegisterFlagCompletionFunc(f.Name,
				func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
					return a.offered(cmd, selections(of), args, begun), cobra.ShellCompDirectiveNoFileComp
				})
		}
	})
	names := strings.Fields(cmd.Use)[1:]
	if slices.ContainsFunc(names, func(n string) bool { return n == "FILE…" || n == "DIR" }) || cmd.HasSubCommands() {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		words := a.complete(cmd, names, args, begun)
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "=") }) {
			// a value follows
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return words, directive
	}
}

// complete returns the words for the next argument: all that were found before an error or the time limit. The error is
// not reported: it would be printed into the line that the person types.
func (a *app) complete(cmd *cobra.Command, names, args []string, begun string) []string {
	at := min(len(args), len(names)-1)
	if at < 0 || at < len(args) && !strings.HasSuffix(strings.Trim(names[at], "[]"), "…") {
		return nil
	}
	return a.offered(cmd, completers[strings.TrimSuffix(strings.Trim(names[at], "[]"), "…")], args, begun)
}

// offered returns the words of find that begin as the person has begun.
func (a *app) offered(cmd *cobra.Command, find finder, args []string, begun string) []string {
	if find == nil || a.fromEnvironment(cmd) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeMaxMS*time.Millisecond)
	defer cancel()
	words, _ := find(ctx, a, cmd, args, begun)
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, begun) })
	return words[:min(len(words), completionMax)]
}

// onCell runs a search on a connection of its own.
func (a *app) onCell(ctx context.Context, do func(b *bus.Bus) error) error {
	b, err := bus.Open(ctx, a.busConfig("cli"))
	if err != nil {
		return err
	}
	defer b.Close()
	return do(b)
}

// suggestion returns a word with its description.
func suggestion(word string, about ...string) string {
	text := strings.Join(strings.Fields(terminal.Clean(strings.Join(about, " "))), " ")
	return terminal.Clean(word) + "\t" + terminal.Cut(text, suggestionMax)
}

// offeredMax is how many sessions are offered.
const offeredMax = 1_000

// completeSessions offers the sessions that changed last, the newest first. Closed ones are for commands that only
// read.
func completeSessions(ctx context.Context, a *app, cmd *cobra.Command, _ []string, begun string) ([]string, error) {
	harness, _, whole := strings.Cut(begun, "/")
	f := sessionFilter{all: cmd.GroupID == groupInspect}
	if _, wrong := events.Token(harness); whole && wrong == nil {
		f.harness = harness
	}
	var words []string
	err := a.onCell(ctx, func(b *bus.Bus) error {
		docs, _, err := a.newest(ctx, b.KV, &f, offeredMax)
		for _, s := range docs {
			words = append(words, suggestion(s.Ref().String(), string(s.Phase), s.Title))
			// begun without its harness
			if !strings.HasPrefix(s.Ref().String(), begun) {
				words = append(words, suggestion(s.Session, s.Harness, string(s.Phase), s.Title))
			}
		}
		return err
	})
	return words, err
}

// selections offers the different values of the sessions that changed last.
func selections(of func(s *session.State) string) finder {
	return func(ctx context.Context, a *app, _ *cobra.Command, _ []string, _ string) ([]string, error) {
		var words []string
		err := a.onCell(ctx, func(b *bus.Bus) error {
			docs, _, err := a.newest(ctx, b.KV, &sessionFilter{all: true}, offeredMax)
			for _, s := range docs {
				if word := terminal.Clean(of(s)); word != "" && !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
			return err
		})
		return words, err
	}
}

// completePrompts offers the prompts of the session that wait.
func completePrompts(ctx context.Context, a *app, _ *cobra.Command, args []string, _ string) ([]string, error) {
	var words []string
	err := a.onState(ctx, args[0], func(b *bus.Bus, st *session.State) error {
		open, err := a.openPrompts(ctx, b.Log, st)
		for _, p := range open {
			words = append(words, suggestion(p.Prompt, string(p.Kind), terminal.Asked(p)))
		}
		return err
	})
	return words, err
}

// completeMessages offers the messages of the session that wait to be handed out.
func completeMessages(ctx context.Context, a *app, _ *cobra.Command, args []string, _ string) ([]string, error) {
	var words []string
	err := a.onState(ctx, args[0], func(_ *bus.Bus, st *session.State) error {
		for i := range st.Queue {
			words = append(words, suggestion(st.Queue[i].ID))
		}
		return nil
	})
	return words, err
}

// onState runs a search in the document of a session.
func (a *app) onState(ctx context.Context, name string, do func(b *bus.Bus, st *session.State) error) error {
	return a.onCell(ctx, func(b *bus.Bus) error {
		r, err := a.resolve(ctx, b, name)
		if err != nil {
			return err
		}
		st, _, err := a.current(ctx, b, r)
		if err != nil {
			return err
		}
		return do(b, st)
	})
}

// policyValues are the values of keys that have few.
var policyValues = map[string][]string{"auto_retry": {"true", "false"}, "resume": {"auto", "hold"}}

// completePolicy offers the keys of a policy that the line does not have, and the values of those that have few.
func completePolicy(_ context.Context, _ *app, _ *cobra.Command, args []string, begun string) ([]string, error) {
	var words []string
	for _, key := range form.PolicyKeys() {
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, key+"=") }) {
			continue
		}
		if values := policyValues[key]; values != nil && strings.HasPrefix(begun, key+"=") {
			for _, value := range values {
				words = append(words, key+"="+value)
			}
			continue
		}
		words = append(words, key+"=")
	}
	return words, nil
}
