package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// editors are the editors whose settings acp setup knows.
var editors = []string{"zed", "jetbrains", "nvim"}

// agentServer is an agent in the settings of an editor.
type agentServer struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func acpSetupCommand(a *app) *cobra.Command {
	var write bool
	var file string
	long, example := describe(`Print the settings that make an editor start the agent through holdfast acp.

zed: for settings.json. jetbrains: for ~/.jetbrains/acp.json. nvim: for avante.nvim.

The options of holdfast acp that are given here become a part of the settings, and so do variables of the broker, such
as HOLDFAST_NATS: an editor that is started from a desktop does not have them. Names of files become absolute.

With --write the settings are written into that file. Comments and all other settings stay. The old file is kept beside
it, with .before-holdfast behind its name. A file that has the settings already is not written, and neither is one that
cannot be read as the editor reads it. For nvim the file is a Lua module of its own, and the line that uses it is
printed.`,
		"holdfast acp setup zed -- opencode acp", "holdfast acp setup zed --write -- opencode acp",
		"holdfast acp setup zed --context work --content full -- opencode acp")
	cmd := &cobra.Command{Use: "setup EDITOR -- AGENT [ARG...]", Short: "Print or write the settings of an editor",
		Long: long, Example: example, GroupID: groupRun, ValidArgs: editors,
		Args: arguments(2, -1, "an EDITOR: "+strings.Join(editors, ", "), "the AGENT's command")}
	o := addACPOptions(a, cmd)
	cmd.Flags().BoolVar(&write, "write", false, "write the settings into the editor's file, and keep the old file")
	cmd.Flags().StringVar(&file, "file", "", "the `file` of --write; by default that of the editor")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := o.check(cmd, 1); err != nil {
			return err
		}
		if !slices.Contains(editors, args[0]) {
			return usage(cmd, "no settings for %q: %s", args[0], strings.Join(editors, ", "))
		}
		if file != "" && !write {
			return usage(cmd, "--file needs --write")
		}
		name := agentOf(args[1:]) + ", kept"
		server := agentServer{Command: a.self(), Args: []string{"acp"}}
		if strings.Contains(server.Command, "/") {
			var err error
			if server.Command, err = filepath.Abs(server.Command); err != nil {
				return err
			}
		}
		given, err := a.optionsGiven(cmd, "write", "file")
		if err != nil {
			return err
		}
		server.Args = slices.Concat(server.Args, given, []string{"--"}, args[1:])
		if args[0] == "zed" {
			server.Type = "custom"
		}
		switch {
		case write:
			return writeSettings(a.Stdout, args[0], file, name, server)
		case args[0] == "nvim":
			_, err := fmt.Fprintf(a.Stdout, "require(\"avante\").setup(%s)\n", luaTable(name, []string{
				luaServer(name, server)}))
			return err
		}
		return printServers(a.Stdout, name, server)
	}
	return cmd
}

// optionsGiven returns the options of a command that the line or the environment has, except for these. Options that a
// context has set are left out: a context is read when the agent starts.
func (a *app) optionsGiven(cmd *cobra.Command, except ...string) (words []string, err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		name, value := presentName(f.Name), f.Value.String()
		if slices.Contains(except, name) || slices.Contains(a.ofContext, name) {
			return
		}
		if slices.Contains([]string{"creds", "password-file", "nkey", "tls-ca", "tls-cert", "tls-key"}, name) {
			path, wrong := filepath.Abs(value)
			value, err = path, errors.Join(err, wrong)
		}
		if f.Value.Type() == "bool" && value == "true" {
			words = append(words, "--"+name)
			return
		}
		words = append(words, "--"+name+"="+value)
	})
	return words, err
}

func printServers(w io.Writer, name string, s agentServer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(map[string]map[string]agentServer{"agent_servers": {name: s}})
}

// writeSettings writes the settings into the file of an editor, and says what it did.
func writeSettings(w io.Writer, editor, file, name string, s agentServer) error {
	if file == "" {
		var err error
		if file, err = settingsFile(editor); err != nil {
			return err
		}
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		// a link to a file elsewhere stays one
		file = target
	}
	old, err := os.ReadFile(file)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var text []byte
	lines, crlf := unixLines(old)
	if editor == "nvim" {
		text, err = luaModule(lines, name, s)
	} else {
		text, err = withServer(lines, name, s)
	}
	if crlf {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s is not changed: %w", file, err)
	case exists && string(text) == string(old):
		_, err = fmt.Fprintf(w, "%s has these settings already.\n", file)
	default:
		err = replaceSettings(w, file, old, text, exists)
	}
	if err == nil && editor == "nvim" {
		_, err = fmt.Fprintf(w, "The line for the configuration of avante.nvim, with your own options in {}:\n"+
			"require(\"avante\").setup(vim.tbl_deep_extend(\"force\", {}, dofile(%s)))\n", luaString(file))
	}
	return err
}

// unixLines returns a text with lines that end with LF, if all of its lines end with CRLF. Any other text stays.
func unixLines(text []byte) (lines []byte, crlf bool) {
	n := bytes.Count(text, []byte("\n"))
	if n == 0 || bytes.Count(text, []byte("\r\n")) != n {
		return text, false
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), true
}

// settingsFile returns the file in which an editor looks for its agents.
func settingsFile(editor string) (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if editor == "jetbrains" {
		return filepath.Join(home, ".jetbrains", "acp.json"), nil
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" || !filepath.IsAbs(config) || runtime.GOOS == "darwin" && editor == "zed" {
		config = filepath.Join(home, ".config")
	}
	switch {
	case editor == "zed" && runtime.GOOS == "windows":
		return filepath.Join(os.Getenv("APPDATA"), "Zed", "settings.json"), nil
	case editor == "zed":
		return filepath.Join(config, "zed", "settings.json"), nil
	case runtime.GOOS == "windows":
		return filepath.Join(os.Getenv("LOCALAPPDATA"), "nvim", "lua", "holdfast_acp.lua"), nil
	}
	return filepath.Join(config, "nvim", "lua", "holdfast_acp.lua"), nil
}

// replaceSettings writes a file as a whole, and keeps the old one under a name that no file has.
func replaceSettings(w io.Writer, file string, old, text []byte, exists bool) error {
	mode := fs.FileMode(0o644)
	if !exists {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
	} else if info, err := os.Stat(file); err != nil {
		return err
	} else {
		mode = info.Mode().Perm()
	}
	kept := ""
	for n := 1; exists && kept == ""; n++ {
		name := file + ".before-holdfast"
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		switch err := writeNew(name, old, mode); {
		case err == nil:
			kept = name
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	aside, err := os.CreateTemp(filepath.Dir(file), ".holdfast-*")
	if err != nil {
		return err
	}
	_, err = aside.Write(text)
	err = errors.Join(err, aside.Chmod(mode), aside.Sync(), aside.Close())
	if err == nil {
		err = os.Rename(aside.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside.Name()))
	}
	result := file + " is written."
	if exists {
		result = fmt.Sprintf("%s is written, and the old file is %s.", file, kept)
	}
	_, err = fmt.Fprintln(w, result)
	return err
}

// writeNew writes a file that does not exist.
func writeNew(name string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// The lines of a Lua module that holds agents.
const (
	luaFirst    = "-- Written by holdfast acp setup nvim --write. It is for avante.nvim.\n"
	luaProvider = "  provider = "
	luaAgent    = "    ["
)

// luaLine is a line of an agent in the module.
var luaLine = regexp.MustCompile(`^    \["(?:[^"\\]|\\[0-9]{3})*"\] = \{ command = .* \},$`)

// luaModule returns the module with an agent, which is chosen. The other agents of the old module stay.
func luaModule(old []byte, name string, s agentServer) ([]byte, error) {
	line := luaServer(name, s)
	lines := []string{line}
	if len(old) > 0 {
		body, ok := strings.CutPrefix(string(old), luaFirst+"return {\n")
		body, whole := strings.CutSuffix(body, "  },\n}\n")
		rest := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
		if !ok || !whole || len(rest) < 2 || !strings.HasPrefix(rest[0], luaProvider) ||
			rest[1] != "  acp_providers = {" {
			return nil, errors.New("holdfast acp setup did not write it")
		}
		for _, l := range rest[2:] {
			if !luaLine.MatchString(l) {
				return nil, fmt.Errorf("the line %.80q is not one of holdfast acp setup", l)
			}
			if !strings.HasPrefix(l, luaAgent+luaString(name)+"]") {
				lines = append(lines, l)
			}
		}
		slices.Sort(lines)
	}
	return []byte(luaFirst + "return " + luaTable(name, lines) + "\n"), nil
}

// luaTable returns the options of avante.nvim with these lines of agents.
func luaTable(name string, lines []string) string {
	return "{\n" + luaProvider + luaString(name) + ",\n  acp_providers = {\n" + strings.Join(lines, "\n") + "\n  },\n}"
}

// luaServer returns the line of an agent.
func luaServer(name string, s agentServer) string {
	words := make([]string, len(s.Args))
	for i, w := range s.Args {
		words[i] = luaString(w)
	}
	return fmt.Sprintf("%s%s] = { command = %s, args = { %s } },", luaAgent, luaString(name), luaString(s.Command),
		strings.Join(words, ", "))
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
