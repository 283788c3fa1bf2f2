package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"strings"
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
)

func acpCommand(a *app) *cobra.Command {
	var harnessID, content string
	var require bool
	var wait, linger time.Duration
	long, example := describe(`Run an agent that speaks the Agent Client Protocol (ACP) for an editor, and record what
it does. The editor starts this command in place of the agent. Messages pass unchanged, except for the ids of requests.

Sessions, turns, calls and permissions are stored before they take effect. A permission can be answered in the editor,
on the board and by holdfast answer: the first answer counts. When the agent's process ends, its open requests get an
error that says why, and its sessions are orphaned at once.

Without a broker the agent works all the same: this command says so on standard error, and connects as soon as it can.`,
		"holdfast acp -- opencode acp", "holdfast acp --content none --require -- claude-agent-acp",
		"holdfast acp setup zed -- opencode acp")
	cmd := &cobra.Command{Use: "acp -- AGENT [ARG...]", Short: "Record what an agent in an editor does (ACP)",
		Long: long, Example: example, GroupID: groupRun, Args: arguments(1, -1, "the AGENT's command")}
	a.addFlags(cmd, []string{"nats", "context"}, optionsBroker, []string{"timeout"})
	f := cmd.Flags()
	f.StringVar(&harnessID, "harness", "",
		"the `name` of the harness in Holdfast; by default acp- and the name of the agent's program")
	f.StringVar(&content, "content", string(agent.ContentTitles),
		"how much of the user's content is stored, a `level`: none, titles or full")
	f.BoolVar(&require, "require", false,
		"do not start the agent before the broker is reachable, for at most --timeout")
	f.DurationVar(&wait, "wait", acpWait, "how long a message waits until it is stored")
	f.DurationVar(&linger, "linger", acpLinger, "how long the agent may end its turns after the editor has left")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		level, err := agent.ParseContent(content)
		if err != nil {
			return usage(cmd, "--content: %v", err)
		}
		if cmd.ArgsLenAtDash() != 0 {
			return usage(cmd, "write -- before the agent's command")
		}
		if harnessID == "" {
			harnessID = "acp-" + programOf(args[0]) // a bridge to the same agent has another name
		}
		signal.Ignore(syscall.SIGPIPE) // an editor that has left is an error of the output
		r := &acp.Runner{Command: agent.Command{Path: args[0], Args: args[1:], Stderr: a.Stderr}, Content: level,
			Require: require, Connect: a.timeout, Wait: wait, Linger: linger, In: a.Stdin, Out: a.Stdout,
			Say: func(s string) { _, _ = fmt.Fprintln(a.beside, "holdfast: "+s) },
			Harness: harness.Config{ID: harnessID, URL: a.nats, Creds: a.creds, PasswordFile: a.passwordFile,
				NKey: a.nkey, TLSCA: a.tlsCA, TLSCert: a.tlsCert, TLSKey: a.tlsKey, Prefix: a.prefix, Version: version}}
		return r.Run(cmd.Context())
	}
	cmd.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"})
	cmd.AddCommand(acpSetupCommand(a))
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

// editors are the editors whose settings acp setup prints.
var editors = []string{"zed", "jetbrains", "nvim"}

func acpSetupCommand(a *app) *cobra.Command {
	long, example := describe(`Print the settings that make an editor start the agent through holdfast acp. Nothing is
written.

zed: for settings.json. jetbrains: for ~/.jetbrains/acp.json. nvim: for avante.nvim.`,
		"holdfast acp setup zed -- opencode acp")
	cmd := &cobra.Command{Use: "setup EDITOR -- AGENT [ARG...]", Short: "Print the settings of an editor", Long: long,
		Example: example, GroupID: groupRun, ValidArgs: editors,
		Args: arguments(2, -1, "an EDITOR: "+strings.Join(editors, ", "), "the AGENT's command")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() != 1 {
			return usage(cmd, "write -- before the agent's command")
		}
		name := programOf(args[1]) + ", kept"
		run := append([]string{"acp", "--"}, args[1:]...)
		switch args[0] {
		case "zed":
			return printServers(a.Stdout, name, agentServer{Type: "custom", Command: a.self(), Args: run})
		case "jetbrains":
			return printServers(a.Stdout, name, agentServer{Command: a.self(), Args: run})
		case "nvim":
			words := make([]string, len(run))
			for i, w := range run {
				words[i] = luaString(w)
			}
			_, err := fmt.Fprintf(a.Stdout, "require(\"avante\").setup({\n  provider = %s,\n  acp_providers = {\n"+
				"    [%s] = { command = %s, args = { %s } },\n  },\n})\n", luaString(name), luaString(name),
				luaString(a.self()), strings.Join(words, ", "))
			return err
		}
		return usage(cmd, "no settings for %q: %s", args[0], strings.Join(editors, ", "))
	}
	return cmd
}

// agentServer is an agent in the settings of an editor.
type agentServer struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func printServers(w io.Writer, name string, s agentServer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(map[string]map[string]agentServer{"agent_servers": {name: s}})
}

// luaString returns a text as a string of Lua.
func luaString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		if c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			_, _ = fmt.Fprintf(&b, "\\%03d", c)
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}
