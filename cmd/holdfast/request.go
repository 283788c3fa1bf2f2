package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/form"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// requestCommand prepares a command that sends a request in a person's name.
func (a *app) requestCommand(use, short, long string, args cobra.PositionalArgs, examples ...string) *cobra.Command {
	long, example := describe(long, examples...)
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, GroupID: groupDecide, Args: args}
	a.addFlags(cmd, optionsCommand, []string{"person"})
	return cmd
}

// sendRequest finds the session, sends the request in a person's name, and prints the result.
func sendRequest[Q request.Checked](a *app, cmd *cobra.Command, name string, v request.Verb[Q, request.Changed],
	past string, build func(ctx context.Context, b *bus.Bus, r events.Ref, by string) (Q, error)) error {
	by := a.person()
	return a.withSession(cmd.Context(), name, func(ctx context.Context, b *bus.Bus, r events.Ref) error {
		q, err := build(ctx, b, r, by)
		if err != nil {
			return err
		}
		reply, err := call(ctx, a, b, v, v.Name+" "+r.String(), q)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(reply)
		}
		return a.print(fmt.Sprintf("%s (%s, seq %d)\n", past, terminal.Clean(r.String()), reply.Seq))
	})
}

func answerCommand(a *app) *cobra.Command {
	var raw string
	cmd := a.requestCommand("answer S [P] [ANSWER…]", "Answer a prompt",
		`Answer a prompt. Each ANSWER answers one question, in the order of the questions: an option's label, its
number, or a text of your own where the question allows it; an empty one skips the question. QUESTION=ANSWER
answers the question of that id, and may be repeated where several options may be chosen.

Without answers each question is asked, and read from the terminal or from standard input. P may be left out
when only one prompt of the session waits.`,
		arguments(1, -1, "the session S"),
		"holdfast answer my-agent/build-42 q1 yes", "holdfast answer build-42 q1 color=red color=blue size=L",
		"holdfast answer build-42",
		`holdfast answer build-42 q1 --answers '[{"question":"color","selected":["red"]}]'`)
	cmd.Flags().StringVar(&raw, "answers", "",
		"the answers as a `JSON` list of {question, selected, text}; - reads it from standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if raw != "" && len(args) != 2 {
			return usage(cmd, "--answers goes with S and P and nothing else")
		}
		return sendRequest(a, cmd, args[0], request.LedgerAnswer, "answered",
			func(ctx context.Context, b *bus.Bus, r events.Ref, by string) (request.Answer, error) {
				w := request.Answer{Ref: r, By: by}
				var err error
				if w.Prompt, err = a.promptMeant(ctx, b, r, args[1:]); err != nil {
					return w, err
				}
				if w.Answers, err = a.answersMeant(ctx, cmd, b, w, args[min(len(args), 2):], raw); err != nil {
					return w, err
				}
				return w, nil
			})
	}
	return cmd
}

// promptMeant returns the named prompt, or the only waiting one.
func (a *app) promptMeant(ctx context.Context, b *bus.Bus, r events.Ref, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	st, _, err := a.current(ctx, b, r)
	if err != nil {
		return "", err
	}
	open := st.PendingPrompts()
	switch len(open) {
	case 0:
		return "", events.NotFound("prompt", "nothing waits in "+r.String())
	case 1:
		return open[0], nil
	}
	return "", fmt.Errorf("holdfast: answer: %d prompts wait in %s: say which: %s", len(open), r,
		strings.Join(open, ", "))
}

// answersMeant returns the answers: from JSON, from arguments, or from input lines.
func (a *app) answersMeant(ctx context.Context, cmd *cobra.Command, b *bus.Bus, w request.Answer, args []string,
	raw string) ([]events.Answer, error) {
	if raw != "" {
		return a.answersFromJSON(cmd, raw)
	}
	st, _, err := a.current(ctx, b, w.Ref)
	if err != nil {
		return nil, err
	}
	prompt, err := st.Blocker(w.Prompt, a.source(ctx, b))
	if err != nil {
		return nil, err
	}
	switch {
	case prompt == nil: // the ledger's refusal is more precise
		return nil, nil
	case len(args) > 0:
		answers, err := form.Answers(prompt.Questions, args)
		if err != nil {
			return nil, usage(cmd, "%v", err)
		}
		return answers, nil
	case prompt.Status != session.Awaiting: // do not ask about a settled prompt: the ledger replies with its state
		return nil, nil
	}
	a.printError("%s", strings.TrimRight(terminal.Prompt(prompt, a.now(ctx, b), a.style(a.Stderr)), "\n"))
	return a.ask(cmd, prompt.Questions)
}

func (a *app) answersFromJSON(cmd *cobra.Command, raw string) ([]events.Answer, error) {
	body := []byte(raw)
	if raw == "-" {
		var err error
		if body, err = io.ReadAll(io.LimitReader(a.Stdin, events.QuestionsBytesMax+1)); err != nil {
			return nil, fmt.Errorf("holdfast: read the answers: %w", err)
		}
	}
	var answers []events.Answer
	if err := json.Unmarshal(body, &answers); err != nil {
		return nil, usage(cmd, "--answers: want a JSON list of {question, selected, text}: %v", err)
	}
	return answers, nil
}

// ask reads an answer to each question: for several options, numbers or labels separated by commas.
func (a *app) ask(cmd *cobra.Command, questions []events.Question) ([]events.Answer, error) {
	if len(questions) == 0 {
		questions = []events.Question{{Question: "your answer"}}
	}
	var answers []events.Answer
	for i := range questions {
		q := &questions[i]
		_, _ = fmt.Fprintf(a.beside, "%s> ", terminal.Clean(q.ID))
		text, err := a.input.next()
		if errors.Is(err, io.EOF) {
			return nil, usage(cmd, "no answer to question %q: give answers as arguments, or on standard input, a "+
				"line each (an empty line skips)", q.ID)
		}
		if err != nil {
			return nil, err
		}
		values := []string{text}
		if _, whole := form.Option(q, text); q.Multi && !whole && !q.Custom {
			values = strings.Split(text, ",")
		}
		for _, value := range values {
			answers = form.Add(answers, q, value)
		}
	}
	return answers, nil
}

func rejectCommand(a *app) *cobra.Command {
	cmd := a.requestCommand("reject S P [TEXT…]", "Reject a prompt",
		"Reject a prompt. With a TEXT it is a correction that the model reads; without, a plain no.",
		arguments(2, -1, "the session S", "the prompt P"), "holdfast reject build-42 p1",
		"holdfast reject build-42 p1 use the staging database")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return sendRequest(a, cmd, args[0], request.LedgerReject, "rejected",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Reject, error) {
				return request.Reject{Ref: r, Prompt: args[1], Text: strings.Join(args[2:], " "), By: by}, nil
			})
	}
	return cmd
}

func dismissCommand(a *app) *cobra.Command {
	cmd := a.requestCommand("dismiss S P", "Dismiss a prompt without an answer",
		"Dismiss a prompt without an answer. The agent receives the dismissal.",
		arguments(2, 2, "the session S", "the prompt P"), "holdfast dismiss build-42 p1")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return sendRequest(a, cmd, args[0], request.LedgerDismiss, "dismissed",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Dismiss, error) {
				return request.Dismiss{Ref: r, Prompt: args[1], By: by}, nil
			})
	}
	return cmd
}

func stopCommand(a *app) *cobra.Command {
	var force bool
	var reason string
	cmd := a.requestCommand("stop S", "Stop what a session runs",
		"Stop the turn that a session runs, or is about to run. While a question waits for an answer this is "+
			"refused, unless --force.",
		arguments(1, 1, "the session S"), "holdfast stop build-42 --reason 'wrong branch'")
	cmd.Flags().BoolVar(&force, "force", false, "also while a question waits for an answer")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who look later")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return sendRequest(a, cmd, args[0], request.LedgerStop, "stop asked for",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Stop, error) {
				return request.Stop{Ref: r, By: by, Reason: reason, Force: force}, nil
			})
	}
	return cmd
}

func closeCommand(a *app) *cobra.Command {
	var reason string
	cmd := a.requestCommand("close S", "End a session for good",
		"End a session for good, with everything that is open in it.", arguments(1, 1, "the session S"),
		"holdfast close build-42 --reason archived")
	cmd.Flags().StringVar(&reason, "reason", "finished", "finished, archived or deleted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return sendRequest(a, cmd, args[0], request.LedgerClose, "closed",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Close, error) {
				return request.Close{Ref: r, Reason: reason, By: by}, nil
			})
	}
	return cmd
}

func configureCommand(a *app) *cobra.Command {
	var providerChanged bool
	cmd := a.requestCommand("configure S KEY=VALUE…", "Change a session's policy",
		`Change what the services may do to a session. An empty VALUE sets a key back to its default.

  auto_retry=BOOL             retry failed turns
  retry_max=N                 attempts; 0: no limit while there is progress
  resume=auto|hold            continue after a crash, or wait for a person
  resume_max=N                continuations after crashes without progress
  compaction_threshold=X      part of the context limit, 0.1 to 1.0; 1.0 is off
  context_limit=N             tokens; 0: what the harness reports
  idle_compaction_after_s=N   seconds; 0: off
  stall_after_s=N             seconds; 0: off`,
		arguments(1, -1, "the session S"), "holdfast configure build-42 resume=hold auto_retry=false",
		"holdfast configure build-42 --provider-changed")
	cmd.Flags().BoolVar(&providerChanged, "provider-changed", false,
		"the provider's key or account was changed: retry what was given up because of it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		policy, err := form.Policy(args[1:])
		if err != nil {
			return usage(cmd, "%v", err)
		}
		if policy == nil && !providerChanged {
			return usage(cmd, "KEY=VALUE is missing")
		}
		return sendRequest(a, cmd, args[0], request.LedgerConfigure, "configured",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Configure, error) {
				return request.Configure{Ref: r, Policy: policy, ProviderChanged: providerChanged, By: by}, nil
			})
	}
	return cmd
}

// retryCommand makes the command of a request about the retry of a session.
func retryCommand(a *app, v request.Verb[request.Retry, request.Changed], past, short, long string) *cobra.Command {
	example := "holdfast " + v.Name + " build-42"
	if v.Name != request.RetryResume.Name {
		example = "holdfast retry " + v.Name + " build-42"
	}
	cmd := a.requestCommand(v.Name+" S", short, long, arguments(1, 1, "the session S"), example)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return sendRequest(a, cmd, args[0], v, past,
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Retry, error) {
				return request.Retry{Ref: r, By: by}, nil
			})
	}
	return cmd
}

func retryNowCommand(a *app) *cobra.Command {
	return retryCommand(a, request.RetryNow, "retry asked for", "Try a failed turn again now",
		"Try the turn that failed last again, now: also one whose failure is not tried again by itself, and while "+
			"automatic retry is off.")
}

func retryCancelCommand(a *app) *cobra.Command {
	return retryCommand(a, request.RetryCancel, "retry cancelled", "Do not try a failed turn again",
		"Give up a retry that is scheduled. One that has begun is taken back by `holdfast stop`; `holdfast retry "+
			"now` brings either back.")
}

func resumeCommand(a *app) *cobra.Command {
	return retryCommand(a, request.RetryResume, "asked to go on", "Go on with an interrupted session",
		"Go on with a session whose turn was interrupted, where its policy holds it (resume=hold) or automatic "+
			"continuation was given up.")
}
