package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/form"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/clock"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
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

// sendRequest finds the session, sends the request in a person's name, and prints the result. past says what was done.
func sendRequest[Q request.Checked](a *app, cmd *cobra.Command, name string, v request.Verb[Q, request.Changed],
	past string, build func(ctx context.Context, b *bus.Bus, r events.Ref, by string) (Q, error)) error {
	return sendWithReceipt(a, cmd, name, v, func(Q) string { return past }, build)
}

// sendWithReceipt is [sendRequest] for a request whose receipt depends on what was sent.
func sendWithReceipt[Q request.Checked](a *app, cmd *cobra.Command, name string, v request.Verb[Q, request.Changed],
	past func(Q) string, build func(ctx context.Context, b *bus.Bus, r events.Ref, by string) (Q, error)) error {
	by := a.person()
	return a.withSession(cmd.Context(), name, func(ctx context.Context, b *bus.Bus, r events.Ref) error {
		q, err := build(ctx, b, r, by)
		if err != nil {
			return err
		}
		reply, err := call(ctx, a, b.Services, v, v.Name+" "+r.String(), q)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(reply)
		}
		return a.print(fmt.Sprintf("%s (%s, seq %d)\n", past(q), terminal.Clean(r.String()), reply.Seq))
	})
}

// askedFlag adds the flag of what the person saw.
func askedFlag(cmd *cobra.Command) *uint64 {
	return cmd.Flags().Uint64("asked", 0, "the `SEQ` of the prompt as it was shown (`holdfast prompts --json`): a "+
		"decision is refused if the prompt asks for something else since")
}

func answerCommand(a *app) *cobra.Command {
	var raw string
	cmd := a.requestCommand("answer S [P] [ANSWER…]", "Answer a prompt",
		`Answer a prompt. Each ANSWER answers one question, in the order of the questions: an option's label, its
number, or a text of your own where the question allows it; an empty one skips the question. QUESTION=ANSWER
answers the question of that id, and may be repeated where several options may be chosen.

Without answers each question is asked, and read from the terminal or from standard input; on a terminal again
after an answer that is not offered. P may be left out when only one prompt of the session waits and it is a
question: each ANSWER is then QUESTION=ANSWER, or the only ANSWER is an option of the first question. A permission
and a plan need P, and so does a text of your own without its QUESTION; on a terminal, without answers, they are
shown and asked as questions are. reject says no.`,
		arguments(1, -1, "the session S"),
		"holdfast answer my-agent/build-42 q1 yes", "holdfast answer build-42 yes",
		"holdfast answer build-42 q1 color=red color=blue size=L",
		"holdfast answer build-42",
		`holdfast answer build-42 q1 --answers '[{"question":"size","selected":["L"]}]'`)
	cmd.Flags().StringVar(&raw, "answers", "",
		"the answers as a `JSON` list of {question, selected, text}; - reads it from standard input")
	shown := askedFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if raw != "" && len(args) != 2 {
			return usage(cmd, "--answers goes with S and P and nothing else")
		}
		var asked *session.Blocker
		err := sendWithReceipt(a, cmd, args[0], request.LedgerAnswer, func(w request.Answer) string {
			return answered(w.Prompt, asked)
		},
			func(ctx context.Context, b *bus.Bus, r events.Ref, by string) (request.Answer, error) {
				w := request.Answer{Ref: r, By: by, Asked: *shown}
				st, _, err := a.current(ctx, b, r)
				if err != nil {
					return w, err
				}
				answers := args[1:]
				if w.Prompt, answers, err = a.promptMeant(ctx, b.Log, st, answers); err != nil {
					return w, err
				}
				asked, err = st.Blocker(w.Prompt, a.source(ctx, b.Log))
				if err != nil {
					return w, err
				}
				if w.Asked == 0 && asked != nil {
					w.Asked = asked.Seq
				}
				w.Answers, err = a.answersMeant(ctx, cmd, b.Clock, asked, answers, raw)
				return w, err
			})
		if refusal, ok := errors.AsType[*events.Refusal](err); ok && len(refusal.Questions) > 0 && asked != nil {
			return &notOffered{refusal, form.Offered(asked.Questions, refusal.Questions)}
		}
		return err
	}
	return cmd
}

// answered returns the receipt of an answer: the prompt and its title, so that a person sees what the answer is to.
func answered(prompt string, asked *session.Blocker) string {
	if asked == nil || asked.Title == "" {
		return "answered " + terminal.Clean(prompt)
	}
	return fmt.Sprintf("answered %s, %s", terminal.Clean(prompt), terminal.Clean(asked.Title))
}

// notOffered is a refused answer, with what the questions offer.
type notOffered struct {
	*events.Refusal
	offered string
}

// Unwrap returns the refusal.
func (e *notOffered) Unwrap() error { return e.Refusal }

// promptMeant returns the named prompt, or the only waiting one, and the answers behind it. An argument that may be a
// mistyped prompt is never the answer to another prompt: without P, a question has answers that are offered or that
// name it, and a permission or a plan has none.
func (a *app) promptMeant(ctx context.Context, commits *log.Log, st *session.State, args []string) (string, []string,
	error) {
	open := st.PendingPrompts()
	if len(args) > 0 {
		_, ended := st.Ended(session.EntityPrompt, args[0])
		if ended || st.Prompts[args[0]] != nil || len(open) > 1 {
			return args[0], args[1:], nil
		}
	}
	switch len(open) {
	case 0:
		return "", nil, nothingWaits(st.Ref(), args)
	case 1:
	default:
		return "", nil, fmt.Errorf("answer: %d prompts wait in %s: say which: %s", len(open), st.Ref(),
			strings.Join(open, ", "))
	}
	prompt, err := st.Blocker(open[0], a.source(ctx, commits))
	if err != nil {
		return "", nil, err
	}
	// On a terminal the person sees the prompt before the answer is typed.
	_, sees := terminalFD(a.Stdin)
	if isQuestion := !isRequest(prompt); len(args) == 0 && (isQuestion || sees) ||
		isQuestion && form.Unmistakable(prompt.Questions, args) {
		return open[0], args, nil
	}
	text, how := waitsOnly(st, prompt)
	if len(args) == 0 {
		return "", nil, &fault{errors.New("the prompt is not named"), text, how}
	}
	// An argument that names a question is no prompt.
	if at := form.Unnamed(prompt.Questions, args); at > 0 {
		return "", nil, &fault{errors.New("an answer names no question"),
			fmt.Sprintf("%q is no QUESTION=ANSWER, as the answer before it is", terminal.Clean(args[at])), how}
	}
	refusal := events.NotFound("prompt", args[0])
	if len(args) == 1 && !isRequest(prompt) && len(prompt.Questions) == 1 {
		text = terminal.Clean(fmt.Sprintf("%q is neither an answer that is offered nor a prompt of %s", args[0],
			st.Ref()))
		return "", nil, &fault{refusal, text, how}
	}
	return "", nil, &notOffered{refusal, text + "\n  " + how}
}

// nothingWaits is the error of an answer to a session without a prompt that waits, and without the named one.
func nothingWaits(r events.Ref, args []string) error {
	text := "nothing waits for a person in " + r.String()
	if len(args) == 0 {
		return &fault{events.NotFound("prompt", text), terminal.Clean(text), ""}
	}
	return &fault{events.NotFound("prompt", args[0]), terminal.Clean(text + ", and it has no prompt " + args[0]), ""}
}

// isRequest reports whether a prompt asks for a yes: a permission or a plan, and no question.
func isRequest(prompt *session.Blocker) bool {
	return prompt.Kind == events.PromptPermission || prompt.Kind == events.PromptPlan
}

// waitsOnly says which prompt waits, and how it is answered.
func waitsOnly(st *session.State, prompt *session.Blocker) (text, how string) {
	text = terminal.Clean(fmt.Sprintf("only the %s %s waits in %s: name it: holdfast answer %s ANSWER", prompt.Kind,
		prompt.Prompt, st.Ref(), operands(st.Ref().String(), prompt.Prompt)))
	refused := map[string]string{}
	for i := range prompt.Questions {
		refused[prompt.Questions[i].ID] = "not answered"
	}
	if len(prompt.Questions) == 1 && len(prompt.Questions[0].Options) == 0 && !isRequest(prompt) {
		return text, terminal.Clean(fmt.Sprintf("or its question: holdfast answer %s=TEXT",
			operands(st.Ref().String(), prompt.Questions[0].ID)))
	}
	lines := slices.DeleteFunc([]string{form.Offered(prompt.Questions, refused), rejectHint(st.Ref(), prompt)},
		func(line string) bool { return line == "" })
	return text, strings.Join(lines, "\n  ")
}

// rejectHint says how a permission or a plan is refused: its options have no such answer.
func rejectHint(r events.Ref, prompt *session.Blocker) string {
	if !isRequest(prompt) {
		return ""
	}
	return terminal.Clean(fmt.Sprintf("no: holdfast reject %s [REASON]", operands(r.String(), prompt.Prompt)))
}

// operands joins words of a command line, after -- if one of them would be taken for a flag: the id of a step whose
// name has no ASCII letters begins with -.
func operands(words ...string) string {
	if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }) {
		words = append([]string{"--"}, words...)
	}
	return strings.Join(words, " ")
}

// answersMeant returns the answers: from JSON, from arguments, or from input lines.
func (a *app) answersMeant(ctx context.Context, cmd *cobra.Command, broker *clock.Clock, prompt *session.Blocker,
	args []string, raw string) ([]events.Answer, error) {
	if raw != "" {
		return a.answersFromJSON(cmd, raw)
	}
	switch {
	case prompt == nil:
		// the ledger's refusal is more precise
		return nil, nil
	case len(args) > 0:
		answers, err := form.Answers(prompt.Questions, args)
		if err != nil {
			return nil, usage(cmd, "%v", err)
		}
		return answers, nil
	case !prompt.Awaits():
		// do not ask about a settled prompt: the ledger replies with its state
		return nil, nil
	}
	_, _ = io.WriteString(a.beside, terminal.Prompt(prompt, a.now(ctx, broker), a.style(a.Stderr)))
	if no := rejectHint(events.Ref{Harness: prompt.Harness, Session: prompt.Session}, prompt); no != "" {
		a.printError("  %s", no)
	}
	return a.ask(cmd, prompt.Questions)
}

func (a *app) answersFromJSON(cmd *cobra.Command, raw string) ([]events.Answer, error) {
	body := []byte(raw)
	if raw == "-" {
		text, err := input(cmd.Context(), func() (string, error) {
			all, err := io.ReadAll(io.LimitReader(a.Stdin, events.QuestionsBytesMax+1))
			return string(all), err
		})
		if err != nil {
			return nil, fmt.Errorf("read the answers: %w", err)
		}
		body = []byte(text)
	}
	var answers []events.Answer
	if err := json.Unmarshal(body, &answers); err != nil {
		return nil, usage(cmd, "--answers: want a JSON list of {question, selected, text}: %v", err)
	}
	return answers, nil
}

// ask reads an answer to each question: for several options, numbers or labels separated by commas. A person on a
// terminal is asked again after an answer that is not offered.
func (a *app) ask(cmd *cobra.Command, questions []events.Question) ([]events.Answer, error) {
	if len(questions) == 0 {
		questions = []events.Question{{Question: "your answer"}}
	}
	var answers []events.Answer
	_, again := terminalFD(a.Stdin)
	// the person has been asked whether to skip the question
	skipping := false
	for i := 0; i < len(questions); i++ {
		q := &questions[i]
		_, _ = fmt.Fprintf(a.beside, "%s> ", terminal.Clean(q.ID))
		text, err := a.input.next(cmd.Context())
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
		wrong := form.Wrong(q, values)
		if again && wrong == "" && strings.TrimSpace(text) == "" && !skipping {
			wrong, skipping = "an empty line skips this question: press enter again to skip it, or answer it", true
		} else {
			skipping = false
		}
		if wrong != "" && again {
			a.printError("%s", terminal.Clean(wrong))
			i--
			continue
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
		arguments(1, -1, "the session S"), "holdfast reject build-42 p1",
		"holdfast reject build-42 p1 use the staging database")
	shown := askedFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return a.nameIt(cmd, args[0])
		}
		return sendRequest(a, cmd, args[0], request.LedgerReject, "rejected",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Reject, error) {
				return request.Reject{Ref: r, Prompt: args[1], Text: strings.Join(args[2:], " "), By: by,
					Asked: *shown}, nil
			})
	}
	return cmd
}

// nameIt is the error of a command without the prompt P: it says which prompts wait in the session.
func (a *app) nameIt(cmd *cobra.Command, name string) error {
	return a.withSession(cmd.Context(), name, func(ctx context.Context, b *bus.Bus, r events.Ref) error {
		st, _, err := a.current(ctx, b, r)
		if err != nil {
			return err
		}
		open := st.PendingPrompts()
		if len(open) == 0 {
			return events.NotFound("prompt", "nothing waits in "+r.String())
		}
		return usage(cmd, "the prompt P is missing: in %s waits %s", r, strings.Join(open, ", "))
	})
}

func dismissCommand(a *app) *cobra.Command {
	cmd := a.requestCommand("dismiss S P", "Dismiss a prompt without an answer",
		"Dismiss a prompt without an answer. The agent receives the dismissal.",
		arguments(1, 2, "the session S"), "holdfast dismiss build-42 p1")
	shown := askedFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return a.nameIt(cmd, args[0])
		}
		return sendRequest(a, cmd, args[0], request.LedgerDismiss, "dismissed",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Dismiss, error) {
				return request.Dismiss{Ref: r, Prompt: args[1], By: by, Asked: *shown}, nil
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
		by := a.person()
		err := a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			before, _, err := a.current(ctx, b, r)
			if err != nil {
				return err
			}
			reply, err := call(ctx, a, b.Services, request.LedgerStop, "stop "+r.String(),
				request.Stop{Ref: r, By: by, Reason: reason, Force: force})
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(reply)
			}
			ctx, cancel := context.WithTimeout(ctx, a.timeout)
			defer cancel()
			commits, err := b.Log.Read(ctx, r, reply.Seq)
			// the request itself was answered
			if err != nil {
				return fmt.Errorf("the stop of %s was accepted (seq %d), and what it did cannot be read: %w",
					r, reply.Seq, err)
			}
			return a.print(stopReceipt(r, before.Seq, reply.Seq, commits))
		})
		return withForce(err, "holdfast stop "+args[0])
	}
	return cmd
}

// stopReceipt returns the receipt of a stop. commits are those of the session from the one that the reply names: it
// asks for the stop, perhaps before this request, or it is the last one of a session that needs no stop.
func stopReceipt(r events.Ref, before, seq uint64, commits []events.Commit) string {
	text := "nothing runs and nothing would begin, so no stop is needed"
	if len(commits) > 0 && commits[0].Seq == seq && slices.ContainsFunc(commits[0].Events, func(e events.Event) bool {
		_, stop := e.Fact.(events.TurnStopRequested)
		return stop
	}) {
		text = "stop asked for"
		if seq <= before {
			text = "stop was asked for already"
		}
	}
	return fmt.Sprintf("%s (%s, seq %d)\n", text, terminal.Clean(r.String()), seq)
}

// withForce adds the flag to the refusal of a request because a prompt waits.
func withForce(err error, command string) error {
	refusal, ok := errors.AsType[*events.Refusal](err)
	if !ok || refusal.Stands == nil || refusal.Stands.Status != string(session.Waiting) || refusal.Stands.Prompt == "" {
		return err
	}
	return &notOffered{refusal, terminal.Clean("with force, which ends what waits: " + command + " --force")}
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
	cmd := a.requestCommand(v.Name+" S", short, long, arguments(1, 1, "the session S"),
		"holdfast retry "+v.Name+" build-42")
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
	cmd := a.requestCommand(request.RetryResume.Name+" S", "Go on with an interrupted session",
		"Go on with a session whose turn was interrupted, where its policy holds it (resume=hold) or automatic "+
			"continuation was given up. It says so when the session needs none.",
		arguments(1, 1, "the session S"), "holdfast resume build-42")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		by := a.person()
		return a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			before, _, err := a.current(ctx, b, r)
			if err != nil {
				return err
			}
			reply, err := call(ctx, a, b.Services, request.RetryResume, "resume "+r.String(),
				request.Retry{Ref: r, By: by})
			switch {
			case err != nil:
				return needless(r, err)
			case a.json:
				return a.printJSON(reply)
			}
			return a.print(resumed(r, before, reply))
		})
	}
	return cmd
}

// resumed returns the receipt of a resume. The reply of a request that was there before is that of the first one.
func resumed(r events.Ref, before *session.State, reply request.Changed) string {
	text := "asked to go on"
	if reply.Seq <= before.Seq {
		text = "it needs no resume: it was asked before to go on"
	}
	return fmt.Sprintf("%s (%s, seq %d)\n", text, terminal.Clean(r.String()), reply.Seq)
}

// needless returns the refusal of a resume in the words of a person: the session needs none, and why.
func needless(r events.Ref, err error) error {
	refusal, ok := errors.AsType[*events.Refusal](err)
	if !ok || refusal.Code != http.StatusConflict {
		return err
	}
	return &fault{err, fmt.Sprintf("%s needs no resume: %s", r, strings.TrimPrefix(refusal.Message,
		"nothing to resume: ")), ""}
}
