package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// setup runs acp setup and returns its exit code and what it prints.
func setup(t *testing.T, home string, args ...string) (int, string) {
	t.Helper()
	return setupIn(t, []string{"HOME=" + home}, "/bin/holdfast", args...)
}

// setupIn runs acp setup in an environment, under a name of the program.
func setupIn(t *testing.T, env []string, name string, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	p := &Program{Args: append([]string{"acp", "setup"}, args...), Stdout: &out, Stderr: &out, Name: name, Env: env}
	return p.Run(t.Context()), out.String()
}

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSetupWritesSettings: the settings of an editor get the agent. All other bytes of the file stay, the old file is
// kept, and a second run writes nothing.
func TestSetupWritesSettings(t *testing.T) {
	const server = `{
      "type": "custom",
      "command": "/bin/holdfast",
      "args": [
        "acp",
        "--",
        "opencode",
        "acp"
      ]
    }`
	for name, c := range map[string]struct{ old, want string }{
		"an empty file": {"", "{\n  \"agent_servers\": {\n    \"opencode, kept\": " + server + "\n  }\n}\n"},
		"comments and a last comma": {"// mine, {\n{ // \"agent_servers\": 1\n  \"a\": [1, 2,], /* x */\n}\n",
			"// mine, {\n{\n  \"agent_servers\": {\n    \"opencode, kept\": " + server +
				"\n  }, // \"agent_servers\": 1\n  \"a\": [1, 2,], /* x */\n}\n"},
		"lines of Windows": {"{\r\n  // mine\r\n}\r\n", "{\r\n  \"agent_servers\": {\r\n    \"opencode, kept\": " +
			strings.ReplaceAll(server, "\n", "\r\n") + "\r\n  }\r\n  // mine\r\n}\r\n"},
		"lines of both kinds": {"{\r\n  // mine\n}\n", "{\n  \"agent_servers\": {\n    \"opencode, kept\": " + server +
			"\n  }\r\n  // mine\n}\n"},
		"another agent": {"{\"agent_servers\": {\"x\": {\"command\": \"a // b\\\"\"}}}",
			"{\"agent_servers\": {\n    \"opencode, kept\": " + server + ",\"x\": {\"command\": \"a // b\\\"\"}}}"},
		"an older command": {
			`{"agent_servers": {"opencode, kept": {"type": "custom", "command": "/old", "env": {"A": "1"}, ` +
				`"args": ["acp", "--", "opencode", "acp",],}}}`,
			`{"agent_servers": {"opencode, kept": {"type": "custom", "command": "/bin/holdfast", "env": {"A": "1"}, ` +
				`"args": ["acp", "--", "opencode", "acp",],}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			file := filepath.Join(home, "settings.json")
			if err := os.WriteFile(file, []byte(c.old), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"zed", "--write", "--file", file, "--", "opencode", "acp"}
			code, output := setup(t, home, args...)
			if got := read(t, file); code != 0 || got != c.want {
				t.Fatalf("exit code %d, %s\n%s\nwant\n%s", code, output, got, c.want)
			}
			if got := read(t, file+".before-holdfast"); got != c.old {
				t.Errorf("the old file is kept as %q", got)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			code, output = setup(t, home, args...)
			if code != 0 || !strings.Contains(output, "has these settings already") || read(t, file) != c.want {
				t.Errorf("again: exit code %d, %s", code, output)
			}
			if all, _ := filepath.Glob(filepath.Join(home, "*")); len(all) != 2 {
				t.Errorf("files: %q", all)
			}
		})
	}
}

// TestSetupRefuses: a file that no editor reads in one way stays as it is.
func TestSetupRefuses(t *testing.T) {
	for name, old := range map[string]string{
		"no JSON":           `{"agent_servers": }`,
		"a list":            `[1]`,
		"a second object":   `{} {}`,
		"an open comment":   `{} /* x`,
		"an empty element":  `{"a": [,]}`,
		"two commas":        `{"a": 1,,}`,
		"a name twice":      `{"agent_servers": {}, "agent_servers": {}}`,
		"agents in a list":  `{"agent_servers": []}`,
		"an agent as text":  `{"agent_servers": {"opencode, kept": "x"}}`,
		"an agent as null":  `{"agent_servers": {"opencode, kept": null}}`,
		"a string unclosed": `{"a": "`,
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			file := filepath.Join(home, "settings.json")
			if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			code, output := setup(t, home, "zed", "--write", "--file", file, "--", "opencode", "acp")
			want := file + " is not changed: it"
			if strings.HasPrefix(name, "an agent as") {
				want += `s agent "opencode, kept" is no object`
			}
			if code != exitFailed || !strings.Contains(output, want) || read(t, file) != old {
				t.Errorf("exit code %d, %s", code, output)
			}
			if all, _ := filepath.Glob(filepath.Join(home, "*")); len(all) != 1 {
				t.Errorf("files: %q", all)
			}
		})
	}
}

// TestSetupFindsTheFile: without --file the settings are written where the editor looks for them, also if no file is
// there, and through a link. Without --write nothing is written.
func TestSetupFindsTheFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	if code, output := setup(t, home, "jetbrains", "--", "opencode", "acp"); code != 0 ||
		!strings.Contains(output, `"agent_servers"`) {
		t.Errorf("exit code %d, %s", code, output)
	}
	if all, _ := filepath.Glob(filepath.Join(home, ".*")); len(all) != 0 {
		t.Errorf("files: %q", all)
	}
	if code, output := setup(t, home, "jetbrains", "--write", "--", "opencode", "acp"); code != 0 {
		t.Errorf("exit code %d, %s", code, output)
	}
	target := filepath.Join(home, ".jetbrains", "acp.json")
	if got := read(t, target); strings.Contains(got, "custom") || !strings.Contains(got, "opencode, kept") {
		t.Errorf("%s", got)
	}
	link := filepath.Join(home, "link.json")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if code, output := setup(t, home, "jetbrains", "--write", "--file", link, "--", "codex-acp"); code != 0 {
		t.Errorf("exit code %d, %s", code, output)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is replaced: %v, %v", info, err)
	}
	if got := read(t, target); !strings.Contains(got, "codex-acp, kept") || !strings.Contains(got, "opencode, kept") {
		t.Errorf("%s", got)
	}
	first, second := read(t, target+".before-holdfast"), read(t, target)
	if code, output := setup(t, home, "jetbrains", "--write", "--file", link, "--", "gemini"); code != 0 {
		t.Errorf("exit code %d, %s", code, output)
	}
	if read(t, target+".before-holdfast") != first || read(t, target+".before-holdfast-2") != second {
		t.Error("a file that was kept is lost")
	}
	if code, output := setup(t, home, "zed", "--file", "x", "--", "opencode"); code != exitUsage ||
		!strings.Contains(output, "--file needs --write") {
		t.Errorf("exit code %d, %s", code, output)
	}
}

// TestSetupWritesLua: the module for avante.nvim has every agent that was set up, and the last one is chosen. A module
// that a person has written stays.
func TestSetupWritesLua(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "lua", "holdfast_acp.lua")
	var output string
	for range 2 {
		for _, agent := range []string{"opencode", `a"b\`} {
			var code int
			if code, output = setup(t, home, "nvim", "--write", "--file", file, "--", agent); code != 0 {
				t.Fatalf("exit code %d, %s", code, output)
			}
		}
	}
	const want = luaFirst + `return {
  provider = "a\034b\092, kept",
  acp_providers = {
    ["a\034b\092, kept"] = { command = "/bin/holdfast", args = { "acp", "--", "a\034b\092" } },
    ["opencode, kept"] = { command = "/bin/holdfast", args = { "acp", "--", "opencode" } },
  },
}
`
	if got := read(t, file); got != want {
		t.Errorf("%s", got)
	}
	if !strings.Contains(output, "dofile(\""+file+"\")") {
		t.Errorf("%s", output)
	}
	// of an editor on Windows
	text := strings.ReplaceAll(strings.Replace(want, "/bin/holdfast", "/old", 1), "\n", "\r\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, output := setup(t, home, "nvim", "--write", "--file", file, "--", `a"b\`)
	if got := read(t, file); code != 0 || got != strings.ReplaceAll(want, "\n", "\r\n") {
		t.Errorf("exit code %d, %s\n%q", code, output, got)
	}
	for _, own := range []string{"return {}\n", strings.Replace(want, "args = {", "env = {}, args = {", 1) + "x",
		strings.Replace(want, "\n  },", "\n    -- mine\n  },", 1)} {
		if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, output := setup(t, home, "nvim", "--write", "--file", file, "--", "opencode"); code != exitFailed ||
			read(t, file) != own {
			t.Errorf("exit code %d, %s", code, output)
		}
	}
}

// wordsOf returns the command and its arguments in the settings of an editor.
func wordsOf(t *testing.T, editor, settings string) (words []string) {
	t.Helper()
	if editor != "nvim" {
		var all struct {
			Servers map[string]agentServer `json:"agent_servers"`
		}
		if err := json.Unmarshal([]byte(settings), &all); err != nil || len(all.Servers) != 1 {
			t.Fatalf("%v: %s", err, settings)
		}
		for _, s := range all.Servers {
			words = append([]string{s.Command}, s.Args...)
		}
		return words
	}
	_, line, _ := strings.Cut(settings, "] = { command = ")
	line, _, _ = strings.Cut(line, "\n")
	for _, quoted := range regexp.MustCompile(`"((?:[^"\\]|\\[0-9]{3})*)"`).FindAllStringSubmatch(line, -1) {
		words = append(words, regexp.MustCompile(`\\[0-9]{3}`).ReplaceAllStringFunc(quoted[1], func(c string) string {
			n, err := strconv.ParseUint(c[1:], 10, 8)
			if err != nil {
				t.Fatal(err)
			}
			return string([]byte{byte(n)})
		}))
	}
	return words
}

// TestSetupGivesOptions: the options of acp, and what the environment says about the broker, are in the settings of
// each editor, and each word arrives as it was typed. A context is named, and not copied. acp takes the words.
func TestSetupGivesOptions(t *testing.T) {
	home, here := t.TempDir(), t.TempDir()
	t.Chdir(here)
	contexts := filepath.Join(home, ".config", "nats", "context")
	if err := os.MkdirAll(contexts, 0o700); err != nil {
		t.Fatal(err)
	}
	creds := filepath.Join(home, "of work")
	for file, text := range map[string]string{creds: "x", filepath.Join(here, "my.creds"): "x",
		filepath.Join(contexts, "work.json"): fmt.Sprintf(`{"url":"nats://127.0.0.1:1","creds":%q}`, creds)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent := []string{"/a b/agent", "", `say "it"`, `C:\it`, "it's", "$HOME", "a\nb", "--x=ü", "<&>", "],{ command = }"}
	for _, c := range []struct {
		env, args, want []string
	}{
		{nil, nil, nil},
		{nil, []string{"--ask-tool", "--require", "--content", "full", "--wait", "3s", "--linger", "0s", "--restart=0",
			"--harness", "my agent", "--nats", "nats://127.0.0.1:1", "--timeout", "10ms"}, []string{"--ask-tool",
			"--content=full", "--harness=my agent", "--linger=0s", "--nats=nats://127.0.0.1:1", "--require",
			"--restart=0", "--timeout=10ms", "--wait=3s"}},
		{nil, []string{"--require=false", "--context", "work"}, []string{"--context=work", "--require=false"}},
		{[]string{"HOLDFAST_CONTEXT=work"}, []string{"--prefix", "p"}, []string{"--context=work", "--prefix=p"}},
		{[]string{"HOLDFAST_NATS=nats://127.0.0.1:4333"}, []string{"--creds", "my.creds", "--timeout", "1s"},
			[]string{"--creds=" + filepath.Join(here, "my.creds"), "--nats=nats://127.0.0.1:4333", "--timeout=1s"}},
	} {
		for _, editor := range editors {
			args := slices.Concat([]string{editor}, c.args, []string{"--"}, agent)
			code, output := setupIn(t, append(c.env, "HOME="+home), "./bin/holdfast", args...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, output)
			}
			want := slices.Concat([]string{filepath.Join(here, "bin/holdfast"), "acp"}, c.want, []string{"--"}, agent)
			got := wordsOf(t, editor, output)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", editor, got, want)
			}
			// written, and written again: the same
			file := filepath.Join(t.TempDir(), "settings")
			for range 2 {
				args := slices.Concat([]string{editor, "--write", "--file", file}, c.args, []string{"--"}, agent)
				if code, output := setupIn(t, append(c.env, "HOME="+home), "./bin/holdfast", args...); code != 0 {
					t.Fatalf("exit code %d: %s", code, output)
				}
			}
			if got := wordsOf(t, editor, read(t, file)); !slices.Equal(got, want) {
				t.Errorf("%s: written are %q, want %q", editor, got, want)
			}
			// All options are right: the agent cannot be started, or the broker is not reachable.
			var out bytes.Buffer
			p := &Program{Args: got[1:], Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Name: "holdfast",
				Env: []string{"HOME=" + home}}
			if code := p.Run(t.Context()); code == exitUsage || !strings.Contains(out.String(), "/a b/agent") &&
				!slices.Contains(c.args, "--require") {
				t.Errorf("acp %q: exit code %d: %s", got[1:], code, out.String())
			}
		}
	}
}

// TestSetupRefusesOptions: an option that acp refuses is not written into any settings.
func TestSetupRefusesOptions(t *testing.T) {
	for want, args := range map[string][]string{
		"--content":  {"--content", "some"},
		"negative":   {"--restart", "-1"},
		"--nats":     {"--nats", "x://y"},
		"no context": {"--context", "play"},
		"write --":   {"agent"},
	} {
		file := filepath.Join(t.TempDir(), "settings")
		code, output := setup(t, t.TempDir(), slices.Concat([]string{"zed", "--write", "--file", file}, args,
			[]string{"--", "opencode"})...)
		if code != exitUsage || !strings.Contains(output, strings.TrimPrefix(want, "no context")) {
			t.Errorf("%v: exit code %d: %s", args, code, output)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%v: a file is written", args)
		}
	}
}
