package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// sent is the outcome of a message.
type sent struct {
	Message string `json:"message"`
	Seq     uint64 `json:"seq"`
}

// letter is the flags of a message.
type letter struct {
	id, file        string
	json, synthetic bool
}

func sendCommand(a *app) *cobra.Command {
	var l letter
	cmd := a.requestCommand("send S TEXT…|-", "Send a message",
		`Send a message to a session. It is stored first. While a turn or a compaction runs it waits in the queue. It is
handed out once, in order, across crashes of every process.

TEXT is one message, with its spaces; - reads it from standard input, --file from a file. A message of more than
256 KiB is stored beside the log, which refers to it. --id names the message: after an unknown
outcome, send it again under the same id; it is taken once.`,
		arguments(1, -1, "the session S"),
		"holdfast send build-42 now the tests, please", "holdfast send build-42 --file plan.md",
		"git diff | holdfast send build-42 - --id review-17")
	cmd.Flags().StringVar(&l.id, "id", "", "the message's `id` (default: a new one)")
	cmd.Flags().StringVar(&l.file, "file", "", "read the message from this `file`")
	cmd.Flags().BoolVar(&l.json, "as-json", false, "the message is JSON, for a harness that wants more than a text")
	cmd.Flags().BoolVar(&l.synthetic, "synthetic", false,
		"not from a person: it leaves questions open and changes nothing that a person chose")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		content, err := a.contentMeant(cmd, &l, args[1:])
		if err != nil {
			return err
		}
		by := a.person()
		return a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			req := request.Send{Ref: r, Message: l.id, Content: content, Synthetic: l.synthetic, By: by}
			if req.Message == "" {
				req.Message = "m-" + b.NewID()
			}
			return a.send(ctx, b, req)
		})
	}
	return cmd
}

// contentMeant returns the message as JSON: from arguments, standard input or a file.
func (a *app) contentMeant(cmd *cobra.Command, l *letter, args []string) (json.RawMessage, error) {
	text := strings.Join(args, " ")
	var err error
	switch {
	case l.file != "" && len(args) > 0:
		return nil, usage(cmd, "--file goes without TEXT")
	case l.file != "":
		text, err = readFile(l.file)
	case len(args) == 1 && args[0] == "-":
		if _, ok := terminalFD(a.Stdin); ok {
			a.printError("type the message; Ctrl-D ends it, Ctrl-C sends nothing")
		}
		text, err = input(cmd.Context(), func() (string, error) { return readText(a.Stdin) })
	}
	switch {
	case errors.Is(err, errInterrupted):
		return nil, err
	case err != nil:
		return nil, usage(cmd, "the message: %v", err)
	case !utf8.ValidString(text):
		return nil, usage(cmd, "the message is not UTF-8: it would not arrive as it is")
	case text == "":
		return nil, usage(cmd, "TEXT is missing: give it as arguments, with --file, or - for standard input")
	case l.json && !json.Valid([]byte(text)):
		return nil, usage(cmd, "--as-json: the message is not JSON")
	case l.json:
		return json.RawMessage(text), nil
	}
	content, err := json.Marshal(text)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	return content, nil
}

func readFile(name string) (text string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return readText(f)
}

// readText reads its input up to the limit.
func readText(r io.Reader) (string, error) {
	if r == nil {
		return "", io.EOF
	}
	body, err := io.ReadAll(io.LimitReader(r, events.ObjectBytesMax+1))
	if err == nil && len(body) > events.ObjectBytesMax {
		err = fmt.Errorf("more than %d MiB: send a file's name instead", events.ObjectBytesMax>>20)
	}
	return string(body), err
}

// send sends a message. After an unknown outcome it prints how to find out without sending it twice.
func (a *app) send(ctx context.Context, b *bus.Bus, req request.Send) error {
	if len(req.Content) > events.ContentBytesMax {
		err := a.progress("storing the message", func() (err error) {
			req.Object, err = b.Objects.Put(ctx, req.Ref, req.Content)
			return err
		})
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
		req.Content = nil
	}
	reply, err := call(ctx, a, b.Services, request.CompactionSend, "sending", req)
	if errors.Is(err, bus.ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w; it may have been stored: send it again with --id %s, it is taken once", err, req.Message)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(sent{req.Message, reply.Seq})
	}
	return a.print(fmt.Sprintf("sent as %s (%s, seq %d)\n", terminal.Clean(req.Message),
		terminal.Clean(req.Ref.String()),
		reply.Seq))
}

func queueCommand(a *app) *cobra.Command {
	long, example := describe("List the messages that a session has not yet handed to its harness, oldest first, "+
		"and what they wait for.", "holdfast queue build-42", "holdfast queue build-42 --json | jq -r .content")
	cmd := &cobra.Command{Use: "queue S", Short: "List what waits to be handed out", Long: long, Example: example,
		GroupID: groupInspect, Args: arguments(1, 1, "the session S")}
	a.addFlags(cmd, optionsCommand)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			st, _, err := a.current(ctx, b, r)
			if err != nil {
				return err
			}
			all := make([]terminal.Queued, len(st.Queue))
			find := a.source(ctx, b.Log)
			for i := range st.Queue {
				if all[i], err = terminal.QueuedMessage(st, i, find); err != nil {
					return fmt.Errorf("queue of %s: %w", r, err)
				}
				if a.json {
					if err := a.printJSON(all[i]); err != nil {
						return err
					}
				}
			}
			switch {
			case a.json:
				return nil
			case len(all) == 0:
				a.printError("no message waits in %s", terminal.Clean(r.String()))
				return nil
			}
			return a.print(terminal.Queue(st, all, a.now(ctx, b.Clock), a.style(a.Stdout)))
		})
	}
	return cmd
}

func withdrawCommand(a *app) *cobra.Command {
	cmd := a.requestCommand("withdraw S M", "Take a message back",
		"Take the message M back before it is handed out. One that the agent has cannot be taken back: stop the "+
			"turn instead.",
		arguments(2, 2, "the session S", "the message M"), "holdfast withdraw build-42 review-17")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return sendRequest(a, cmd, args[0], request.CompactionWithdraw, "withdrawn",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Withdraw, error) {
				return request.Withdraw{Ref: r, Message: args[1], By: by}, nil
			})
	}
	return cmd
}

func compactCommand(a *app) *cobra.Command {
	var force bool
	cmd := a.requestCommand("compact S", "Compact a conversation now",
		"Have the harness compact the conversation, however full it is. While a question waits for an answer this "+
			"is refused, unless --force, which supersedes the question first.",
		arguments(1, 1, "the session S"), "holdfast compact build-42")
	cmd.Flags().BoolVar(&force, "force", false, "also while a question waits for an answer")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := sendRequest(a, cmd, args[0], request.CompactionCompact, "compaction asked for",
			func(_ context.Context, _ *bus.Bus, r events.Ref, by string) (request.Compact, error) {
				return request.Compact{Ref: r, By: by, Force: force}, nil
			})
		return withForce(err, "holdfast compact "+args[0])
	}
	return cmd
}

func checkCommand(a *app) *cobra.Command {
	var used, limit int64
	long, example := describe("Report whether the conversation would be compacted automatically now, and why. It "+
		"changes nothing.",
		"holdfast check build-42", "holdfast check build-42 --used 150000 --limit 200000")
	cmd := &cobra.Command{Use: "check S", Short: "Report whether a session would be compacted, and why", Long: long,
		Example: example, GroupID: groupInspect, Args: arguments(1, 1, "the session S")}
	a.addFlags(cmd, optionsCommand)
	cmd.Flags().Int64Var(&used, "used", 0, "as if so many `tokens` were used")
	cmd.Flags().Int64Var(&limit, "limit", 0, "as if so many `tokens` fitted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withSession(cmd.Context(), args[0], func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			req := request.Check{Ref: r}
			if cmd.Flags().Changed("used") {
				req.Used = &used
			}
			if cmd.Flags().Changed("limit") {
				req.Limit = &limit
			}
			v, err := call(ctx, a, b.Services, request.CompactionCheck, "checking", req)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(v)
			}
			return a.print(terminal.Check("", v, a.now(ctx, b.Clock), a.style(a.Stdout)))
		})
	}
	return cmd
}
