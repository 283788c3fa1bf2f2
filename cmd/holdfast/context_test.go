package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestContext: a command finds the broker and its login in a context of the nats CLI. The command line wins over the
// context, and a context of the command line over the environment.
func TestContext(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `authorization { users: [{user: ann, password: "p@ss/word"}] }`))
	config := t.TempDir()
	write := func(name, body string) {
		file := filepath.Join(config, "nats", "context", name+".json")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const elsewhere = "nats://127.0.0.1:1"
	host := strings.TrimPrefix(s.URL(), "nats://")
	write("cell", `{"description": "ours", "url": "`+host+`", "user": "ann", "password": "p@ss/word", "color_scheme":
		""}`)
	write("away", `{"url": "`+elsewhere+`"}`)
	write("keys", `{"url": "`+s.URL()+`", "creds": "~/none.creds"}`)
	write("proxy", `{"url": "`+s.URL()+`", "socks_proxy": "socks5://127.0.0.1:1080"}`)
	write("broken", `{"url": `)
	write("comma", `{"url": " `+host+` ,, ", "user": "ann", "password": "p@ss/word"}`)
	write("spaced", `{"url": "`+host+`, foo bar"}`)
	write("nowhere", `{"url": " ,", "user": "ann", "password": "p@ss/word"}`)
	write("vault", `{"url": "`+s.URL()+`", "user": "ann", "password": "op://p@ss/word"}`)
	write("inline", `{"url": "`+s.URL()+`", "creds": "data:;base64,cEBzcw=="}`)
	for _, c := range []struct {
		name string
		args []string
		env  []string
		code int
		want string
	}{
		{"the context has the login", []string{"--context", "cell"}, nil, exitFailed, `there is no cell "hf"`},
		{"without it the broker refuses", []string{"--nats", s.URL()}, nil, exitFailed, "Authorization Violation"},
		{"over the environment", []string{"--context", "cell"}, []string{"HOLDFAST_NATS=" + elsewhere}, exitFailed,
			`there is no cell "hf"`},
		{"in the environment", nil, []string{"HOLDFAST_CONTEXT=cell"}, exitFailed, `there is no cell "hf"`},
		{"below the environment's broker", nil, []string{"HOLDFAST_CONTEXT=cell", "HOLDFAST_NATS=" + elsewhere},
			exitUnreachable, "no broker answers at " + elsewhere},
		{"below the command line", []string{"--context", "cell", "--nats", elsewhere}, nil, exitUnreachable,
			"no broker answers at " + elsewhere},
		{"over the variable of the nats CLI", nil, []string{"NATS_CONTEXT=away", "HOLDFAST_CONTEXT=cell"},
			exitFailed, `there is no cell "hf"`},
		{"the variable of the nats CLI", nil, []string{"NATS_CONTEXT=away"}, exitUnreachable,
			"using " + elsewhere + ": NATS_CONTEXT is away (--nats names another)\n"},
		{"over it", nil, []string{"NATS_CONTEXT=broken", "HOLDFAST_NATS=" + elsewhere}, exitUnreachable,
			"no broker answers at " + elsewhere},
		{"of a context that is not there", nil, []string{"NATS_CONTEXT=cel"}, exitUsage,
			"NATS_CONTEXT cel: there is no "},
		{"home", []string{"--context", "keys"}, nil, exitUsage, "--creds: open " + config + "/none.creds"},
		{"unknown", []string{"--context", "cel"}, nil, exitUsage,
			"there are: away, broken, cell, comma, inline, keys, nowhere, proxy, spaced, vault"},
		{"not a name", []string{"--context", "../cell"}, nil, exitUsage, "want the name of a context"},
		{"not supported", []string{"--context", "proxy"}, nil, exitUsage, `has "socks_proxy", which holdfast does not`},
		{"a trailing comma", []string{"--context", "comma"}, nil, exitFailed, `there is no cell "hf"`},
		{"no address", []string{"--context", "spaced"}, nil, exitUsage,
			`--context spaced: its url "foo bar" is no address of a broker: it has a space: want nats://host:port`},
		{"no url", []string{"--context", "nowhere"}, nil, exitUsage, "it has no url; name the broker with --nats"},
		{"no url, and a broker", []string{"--context", "nowhere", "--nats", elsewhere}, nil, exitUnreachable,
			"no broker answers at " + elsewhere},
		{"a reference", []string{"--context", "vault"}, nil, exitUsage, `has "password" as a reference (op://), which`},
		{"data", []string{"--context", "inline"}, nil, exitUsage, `has "creds" as a reference (data:), which holdfast`},
		{"no home", []string{"--context", "keys"}, []string{"HOME="}, exitUsage, "creds is ~/none.creds, and HOME is"},
		{"no home at all", []string{"--context", "cell"}, []string{"HOME=", "XDG_CONFIG_HOME="}, exitUsage,
			"neither XDG_CONFIG_HOME nor HOME says where the contexts are"},
		{"not JSON", []string{"--context", "broken"}, nil, exitUsage, "unexpected end of JSON input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			timeout := "1m"
			// no port 1 answers
			if c.code == exitUnreachable {
				timeout = "300ms"
			}
			p := &Program{Args: append([]string{"sessions", "--timeout", timeout}, c.args...), Stdout: &out,
				Stderr: &out, Env: append([]string{"HOME=" + config, "XDG_CONFIG_HOME=" + config}, c.env...)}
			if code := p.Run(t.Context()); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, c.code, c.want, out.String())
			}
			if strings.Contains(out.String(), "p@ss") || strings.Contains(out.String(), "p%40ss") {
				t.Errorf("the password is printed: %s", out.String())
			}
		})
	}
}

// TestSelectedContext: without a flag and a variable a command uses the context that is selected in the nats CLI, as
// that does, and says which broker that is and why. `holdfast up` then names its own broker.
func TestSelectedContext(t *testing.T) {
	config := t.TempDir()
	file := func(name, body string) {
		t.Helper()
		path := filepath.Join(config, "nats", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(body), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		p := &Program{Args: append([]string{"sessions", "--timeout", "200ms"}, args...), Stdout: &out, Stderr: &out,
			Env: []string{"XDG_CONFIG_HOME=" + config}}
		p.Run(t.Context())
		return out.String()
	}
	const selected, other = "nats://127.0.0.1:1", "nats://127.0.0.1:2"
	file("context/prod.json", `{"url": "`+selected+`", "user": "ann", "password": "s3cr3t"}`)
	file("context/other.json", `{"url": "`+other+`"}`)
	a := newApp(&Program{Env: []string{"XDG_CONFIG_HOME=" + config}})
	if next := a.elsewhere(natsDefault); next != nil {
		t.Errorf("nothing is selected: %q", next)
	}
	file("context.txt", "prod\n")
	out := run()
	if !strings.Contains(out, "127.0.0.1:1: the nats context prod is selected (--nats names another)\n") ||
		!strings.Contains(out, "no broker answers at ") || strings.Contains(out, "s3cr3t") {
		t.Errorf("selected:\n%s", out)
	}
	if next := a.elsewhere(natsDefault); !slices.Equal(next, []string{"export HOLDFAST_NATS=" + natsDefault}) {
		t.Errorf("`holdfast up` says %q", next)
	}
	for _, args := range [][]string{{"--nats", other}, {"--context", "other"}} {
		if out := run(args...); strings.Contains(out, "selected") ||
			!strings.Contains(out, "no broker answers at "+other) {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	file("context/prod.json", `{"url": "`+selected+`", "nsc": "x"}`)
	if out := run(); !strings.Contains(out, "the selected nats context prod: ") ||
		!strings.Contains(out, "use --nats and --creds") {
		t.Errorf("not supported:\n%s", out)
	}
}

// TestSelectedContextIsNoTarget: what has a cell of its own, reads files, or is an agent does not go to the selected
// one.
func TestSelectedContextIsNoTarget(t *testing.T) {
	config := t.TempDir()
	dir := filepath.Join(config, "nats", "context")
	if err := errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "prod.json"), []byte(`{"url": "nats://127.0.0.1:1"}`), 0o600),
		os.WriteFile(dir+".txt", []byte("prod"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{"drill": false, "replay": false, "rescue --from x": false,
		"restore --check": false, "sidecar": false, "bridge opencode": false, "acp": false,
		"rescue": true, "restore": true, "show": true, "stop": true, "retry now": true, "events --from 1": true} {
		var out bytes.Buffer
		a := newApp(&Program{Stderr: &out, Env: []string{"XDG_CONFIG_HOME=" + config}})
		cmd, rest, err := a.root().Find(strings.Fields(line))
		if err == nil {
			err = errors.Join(cmd.ParseFlags(rest), a.fromEnvironment(cmd))
		}
		if got := a.nats == "nats://127.0.0.1:1"; err != nil || got != want || got != (out.Len() > 0) {
			t.Errorf("%s: %v; at %s: %v, want %v; said %q", line, err, a.nats, got, want, out.String())
		}
	}
}

// A token logs in, and is no name: it is in no request and in no inbox of the person.
func TestTokenIsNoName(t *testing.T) {
	const token = "s3cr3t"
	s := natstest.Start(t, natstest.Settings(t, `authorization { token: "`+token+`" }`))
	config, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	dir := filepath.Join(config, "nats", "context")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, nil, 0o600),
		os.WriteFile(filepath.Join(dir, "cell.json"), []byte(`{"url": "`+s.URL()+`", "token": "`+token+`"}`),
			0o600)); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + config, "XDG_CONFIG_HOME=" + config, "USER=ann"}
	var out bytes.Buffer
	p := &Program{Args: []string{"sessions", "--timeout", "1m", "--context", "cell"}, Stdout: &out, Stderr: &out,
		Env: env}
	if code := p.Run(t.Context()); code != exitFailed || !strings.Contains(out.String(), `there is no cell "hf"`) {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
	for _, c := range []struct{ args, env []string }{
		{[]string{"--context", "cell"}, nil},
		{[]string{"--nats", "nats://" + token + "@host"}, nil},
		{[]string{"--context", "cell", "--password-file", file}, nil},
		{[]string{"--context", "cell", "--creds", file}, nil},
		{[]string{"--context", "cell", "--nkey", file}, nil},
		{[]string{"--context", "cell"}, []string{"HOLDFAST_PASSWORD_FILE=" + file}},
		{[]string{}, []string{"HOLDFAST_CONTEXT=cell", "HOLDFAST_PASSWORD_FILE=" + file}},
	} {
		a := newApp(&Program{Env: append(slices.Clone(env), c.env...)})
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error { return a.fromEnvironment(cmd) }}
		a.addFlags(cmd, optionsCommand)
		cmd.SetArgs(c.args)
		err := cmd.Execute()
		cfg := a.busConfig("cli")
		if err != nil || cfg.Asker.ID != "ann" || strings.Contains(cfg.Inbox, token) {
			t.Errorf("%q: %v; the person is %q, the inbox %s", c, err, cfg.Asker.ID, cfg.Inbox)
		}
	}
}
