package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// setup runs acp setup and returns its exit code and what it prints.
func setup(t *testing.T, home string, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	p := &Program{Args: append([]string{"acp", "setup"}, args...), Stdout: &out, Stderr: &out, Name: "/bin/holdfast",
		Env: []string{"HOME=" + home}}
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
