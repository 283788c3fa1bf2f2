package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/bridges/acp"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

func acpRunCommand(a *app) *cobra.Command {
	var harnessID, content, dir string
	var restarts int
	var wait time.Duration
	long, example := describe(`Continue a session of holdfast acp without an editor. The agent is started and loads the
session. Then it gets what is requested in the session: messages of holdfast send, answers to questions that an earlier
agent asked, and what holdfast resume continues. The texts of the agent are printed. Its permissions and questions are
answered on the board and by holdfast answer.

It runs until it is interrupted. While an editor has the session, it ends with an error.`,
		"holdfast acp run acp-opencode/SESSION -- opencode acp",
		"holdfast acp run SESSION --dir ~/project -- claude-agent-acp")
	cmd := &cobra.Command{Use: "run SESSION -- AGENT [ARG...]", Short: "Continue a session without an editor",
		Long: long, Example: example, GroupID: groupRun,
		Args: arguments(2, -1, "a SESSION", "the AGENT's command")}
	a.addFlags(cmd, []string{"nats", "context"}, optionsBroker, []string{"timeout"})
	f := cmd.Flags()
	f.StringVar(&harnessID, "harness", "", "the `name` of the harness, if SESSION does not have it; by default acp- "+
		"and the name of the agent's program, or of its package")
	f.StringVar(&content, "content", string(agent.ContentTitles),
		"how much of the user's content is stored, a `level`: none, titles or full")
	f.StringVar(&dir, "dir", "", "the `directory` of the session; by default the present one")
	f.DurationVar(&wait, "wait", acpWait, "how long a message waits until it is stored")
	f.IntVar(&restarts, "restart", acpRestarts,
		"how often the agent is started again before it has ended a turn; 0: never")
	askTool := addAskTool(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		level, err := agent.ParseContent(content)
		switch {
		case err != nil:
			return usage(cmd, "--content: %v", err)
		case restarts < 0:
			return usage(cmd, "--restart: %d is negative", restarts)
		case cmd.ArgsLenAtDash() != 1:
			return usage(cmd, "write -- before the agent's command")
		}
		id := args[0]
		if name, rest, ok := strings.Cut(id, "/"); ok {
			if harnessID != "" && harnessID != name {
				return usage(cmd, "%s is not a session of --harness %s", id, harnessID)
			}
			harnessID, id = name, rest
		}
		if harnessID == "" {
			harnessID = "acp-" + agentOf(args[1:])
		}
		if dir == "" {
			if dir, err = os.Getwd(); err != nil {
				return err
			}
		}
		tool, err := askTool()
		if err != nil {
			return err
		}
		show := func(s string) { _, _ = fmt.Fprintln(a.beside, "holdfast: "+s) }
		c := &acp.Headless{Session: id, Dir: dir, Ready: func(st *session.State) { show(ready(st)) },
			Text:  func(s string) { _, _ = fmt.Fprint(a.Stdout, terminal.CleanLines(s)) },
			Asked: func(f events.PromptRequested) { show(awaits(harnessID+"/"+id, f.Prompt, f.PromptKind, f.Title)) },
			Runner: acp.Runner{Command: agent.Command{Path: args[1], Args: args[2:], Stderr: a.Stderr}, Content: level,
				Connect: a.timeout, Wait: wait, Restarts: restarts, Warn: show, AskTool: tool,
				Harness: harness.Config{ID: harnessID, URL: a.nats, Creds: a.creds, PasswordFile: a.passwordFile,
					NKey: a.nkey, TLSCA: a.tlsCA, TLSCert: a.tlsCert, TLSKey: a.tlsKey, Prefix: a.prefix,
					Version: version, Log: slog.New(&sentences{print: show, last: &lastSentence{}})}}}
		return unavailable(harnessID+"/"+id, c.Run(cmd.Context()))
	}
	return cmd
}

// ready says what the agent of a session without an editor waits for.
func ready(st *session.State) string {
	text := fmt.Sprintf("the agent has session %s", st.Ref())
	switch open := st.PendingPrompts(); {
	case len(open) > 0:
		p := st.Prompts[open[0]]
		return text + ", and " + awaits(st.Ref().String(), open[0], p.Kind, "")
	case st.Pending.Turn != nil:
		return text + ", and continues it"
	case st.Phase == session.Interrupted:
		return fmt.Sprintf("%s, which was interrupted: holdfast resume %s continues it", text, st.Ref())
	}
	return fmt.Sprintf("%s: holdfast send %s brings it a message", text, st.Ref())
}

// awaits says that a prompt waits for a person, and with which command it is answered.
func awaits(session, prompt string, kind events.PromptKind, title string) string {
	if title = terminal.Clean(title); title != "" {
		title = ": " + title
	}
	return fmt.Sprintf("a %s waits%s: holdfast answer %s %s", kind, title, session, prompt)
}

// unavailable returns the error of a session that this process cannot have in the words of a person.
func unavailable(session string, err error) error {
	switch {
	case errors.Is(err, harness.ErrOwned):
		return &fault{err, session + " is open in an editor, or in another holdfast acp run", "close it there first"}
	case errors.Is(err, harness.ErrNotFound):
		return &fault{err, "there is no session " + session, "holdfast sessions lists them"}
	case errors.Is(err, context.Canceled):
		return nil
	}
	return err
}
