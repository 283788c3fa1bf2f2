package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/bridges/acp"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Defaults of holdfast acp.
const (
	acpWait   = 2 * time.Second
	acpLinger = 10 * time.Minute

	acpRestarts = 5
)

// acpOptions are the options of acp, which acp setup writes into the settings of an editor.
type acpOptions struct {
	harness, content string
	require          bool
	restarts         int
	wait, linger     time.Duration
	askTool          func() ([]string, error)
}

func addACPOptions(a *app, cmd *cobra.Command) *acpOptions {
	o := &acpOptions{}
	a.addFlags(cmd, []string{"nats", "context"}, optionsBroker, []string{"timeout"})
	f := cmd.Flags()
	f.StringVar(&o.harness, "harness", "",
		"the `name` of the harness in Holdfast; by default acp- and the name of the agent's program, or of its package")
	f.StringVar(&o.content, "content", string(agent.ContentTitles),
		"how much of the user's content is stored, a `level`: none, titles or full")
	f.BoolVar(&o.require, "require", false,
		"do not start the agent before the broker is reachable, for at most --timeout")
	f.DurationVar(&o.wait, "wait", acpWait, "how long a message waits until it is stored")
	f.DurationVar(&o.linger, "linger", acpLinger, "how long the agent may end its turns after the editor has left")
	f.IntVar(&o.restarts, "restart", acpRestarts,
		"how often the agent is started again before it has ended a turn; 0: never")
	o.askTool = addAskTool(cmd)
	return o
}

// check returns the level of content, or what is wrong with the options. The agent's command is behind so many
// arguments.
func (o *acpOptions) check(cmd *cobra.Command, before int) (agent.Content, error) {
	level, err := agent.ParseContent(o.content)
	switch {
	case err != nil:
		return "", usage(cmd, "--content: %v", err)
	case o.restarts < 0:
		return "", usage(cmd, "--restart: %d is negative", o.restarts)
	case cmd.ArgsLenAtDash() != before:
		return "", usage(cmd, "write -- before the agent's command")
	}
	if _, err := events.Token(o.harness); o.harness != "" && err != nil {
		return "", usage(cmd, "--harness %q: %v", o.harness, err)
	}
	return level, nil
}

func acpCommand(a *app) *cobra.Command {
	long, example := describe(`Run an agent that speaks the Agent Client Protocol (ACP) for an editor, and record what
it does. The editor starts this command in place of the agent. Messages pass unchanged, except for the ids of requests.

Sessions, turns, calls and permissions are stored before they take effect. A permission can be answered in the editor,
on the board and by holdfast answer: the first answer counts. When the agent's process ends by itself, it is started
again: its sessions are loaded, their modes and options are set, and open turns continue. If that is not possible, open
requests get an error that says why, and the sessions are orphaned at once.

Without a broker the agent works all the same: this command says so on standard error, and connects as soon as it can.`,
		"holdfast acp -- opencode acp", "holdfast acp --content none --require -- claude-agent-acp",
		"holdfast acp setup zed -- opencode acp")
	cmd := &cobra.Command{Use: "acp -- AGENT [ARG...]", Short: "Record what an agent in an editor does (ACP)",
		Long: long, Example: example, GroupID: groupRun, Args: arguments(1, -1, "the AGENT's command")}
	o := addACPOptions(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		level, err := o.check(cmd, 0)
		if err != nil {
			return err
		}
		// a bridge to the same agent has another name
		harnessID := cmp.Or(o.harness, "acp-"+agentOf(args))
		tool, err := o.askTool()
		if err != nil {
			return err
		}
		printLine := func(s string) { _, _ = fmt.Fprintln(a.beside, "holdfast: "+s) }
		// an editor that has left is an error of the output
		signal.Ignore(syscall.SIGPIPE)
		r := &acp.Runner{Command: agent.Command{Path: args[0], Args: args[1:], Stderr: a.Stderr}, Content: level,
			Require: o.require, Connect: a.timeout, Wait: o.wait, Linger: o.linger, Restarts: o.restarts, In: a.Stdin,
			Out: a.Stdout, Warn: printLine, AskTool: tool,
			Harness: harness.Config{ID: harnessID, URL: a.nats, Creds: a.creds, PasswordFile: a.passwordFile,
				NKey: a.nkey, TLSCA: a.tlsCA, TLSCert: a.tlsCert, TLSKey: a.tlsKey, Prefix: a.prefix, Version: version,
				Log: slog.New(&sentences{print: printLine, last: &lastSentence{}})}}
		return r.Run(cmd.Context())
	}
	cmd.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"})
	cmd.AddCommand(acpRunCommand(a), acpSetupCommand(a), acpAskCommand(a))
	return cmd
}

// addAskTool adds the flag of the question tool. The function that it returns is the command of the tool.
func addAskTool(cmd *cobra.Command) func() ([]string, error) {
	on := cmd.Flags().Bool("ask-tool", false,
		"give the agent a tool that asks a person a question, ask_user: an MCP server in each of its sessions")
	return func() ([]string, error) {
		if !*on {
			return nil, nil
		}
		self, err := os.Executable()
		return []string{self, "acp", "ask-tool"}, err
	}
}

// acpAskCommand is the question tool as the agent starts it.
func acpAskCommand(a *app) *cobra.Command {
	long, example := describe("Serve the tool ask_user over the standard input and output, as the Model Context "+
		"Protocol has it. `holdfast acp --ask-tool` has the agent start it; nothing else does.",
		"holdfast acp --ask-tool -- opencode acp")
	cmd := &cobra.Command{Use: "ask-tool", Short: "Ask a person for an agent (MCP)", Long: long, Example: example,
		GroupID: groupRun, Hidden: true, Args: arguments(0, 0)}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		address := ""
		for _, v := range a.Env {
			if value, ok := strings.CutPrefix(v, acp.AskVariable+"="); ok {
				address = value
			}
		}
		t := &acp.AskTool{In: a.Stdin, Out: a.Stdout, Address: address, Version: version}
		return t.Run(cmd.Context())
	}
	return cmd
}

// programOf returns the name of an agent's program as a part of the id of a harness.
func programOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if _, err := events.Token(name); err != nil {
		return "agent"
	}
	return name
}

// runners are programs that fetch a package and run it, with the words in front of the package. Of the options in front
// of it those in optionsWithValue have a value.
var (
	runners = map[string][][]string{"npx": {nil}, "bunx": {nil}, "uvx": {nil}, "pnpx": {nil},
		"pnpm": {{"dlx"}, {"exec"}}, "yarn": {{"dlx"}}, "npm": {{"exec"}, {"x"}}, "bun": {{"x"}}, "pipx": {{"run"}},
		"uv": {{"tool", "run"}}}
	optionsWithValue = []string{"-p", "--package", "-w", "--workspace", "--from", "--with", "--python", "--index",
		"--index-url", "--spec", "--registry", "--prefix", "--cache"}
)

// agentOf returns the name of the agent that a command runs: of its package if the program fetches one.
func agentOf(args []string) string {
	program := programOf(args[0])
	for _, words := range runners[strings.TrimSuffix(program, ".cmd")] {
		if rest := args[1:]; len(rest) > len(words) && slices.Equal(rest[:len(words)], words) {
			if name := packageOf(rest[len(words):]); name != "" {
				return name
			}
		}
	}
	return program
}

// packageOf returns the name of the first package in the arguments, without its scope, its version and its extras; ""
// without one.
func packageOf(args []string) string {
	for i := 0; i < len(args); i++ {
		if slices.Contains(optionsWithValue, args[i]) {
			i++
			continue
		}
		if strings.HasPrefix(args[i], "-") {
			continue
		}
		name, _, _ := strings.Cut(args[i], "#")
		if at := strings.LastIndexByte(name, '@'); at > strings.LastIndexByte(name, '/') {
			name = name[:at]
		}
		name = path.Base(strings.ReplaceAll(name, `\`, "/"))
		if end := strings.IndexAny(name, "[=<>!~; "); end >= 0 {
			name = name[:end]
		}
		if name = strings.TrimSuffix(name, ".git"); strings.Trim(name, "./") == "" {
			return ""
		}
		return programOf(name)
	}
	return ""
}

// sentences is a log that says each warning as a sentence. One that is the same as the last one is not said again.
type sentences struct {
	print func(string)
	attrs []slog.Attr
	last  *lastSentence
}

type lastSentence struct {
	mu   sync.Mutex
	text string
}

// Enabled implements [slog.Handler].
func (h *sentences) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements [slog.Handler].
func (h *sentences) Handle(_ context.Context, r slog.Record) error {
	message := r.Message
	add := func(a slog.Attr) bool {
		message += fmt.Sprintf(", %s %s", a.Key, a.Value)
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.last.mu.Lock()
	defer h.last.mu.Unlock()
	if message != h.last.text {
		h.last.text = message
		h.print(message)
	}
	return nil
}

// WithAttrs implements [slog.Handler].
func (h *sentences) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sentences{h.print, slices.Concat(h.attrs, attrs), h.last}
}

// WithGroup implements [slog.Handler]. Names of groups are not said.
func (h *sentences) WithGroup(string) slog.Handler { return h }
