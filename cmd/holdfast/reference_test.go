package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file, or writes the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the code says; `go test ./cmd/holdfast -update` writes it, then read the diff\n%s",
			path, firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines in the file, %d from the code", len(a), len(b))
}

// all returns every command of the program.
func all(a *app) []*cobra.Command {
	return below(a.root())
}

// below returns a command and its subcommands.
func below(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		list = append(list, below(c)...)
	}
	return list
}

// The golden file has every help text: a change of the command line is a diff.
func TestHelp(t *testing.T) {
	var text strings.Builder
	for _, cmd := range all(newApp(&Program{})) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		var out, errs bytes.Buffer
		p := &Program{Args: args, Stdout: &out, Stderr: &errs}
		if code := p.Run(context.Background()); code != exitDone || errs.Len() > 0 {
			t.Errorf("%v: exit code %d, %s", args, code, &errs)
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimRight(line, "\n"); terminal.Width(line) > helpColumns {
				t.Errorf("%v: a line of more than %d columns: %s", args, helpColumns, line)
			}
		}
		fmt.Fprintf(&text, "$ holdfast %s\n%s\n", strings.Join(args, " "), &out)
	}
	golden(t, "testdata/help.txt", text.String())
}

// Every command has a description and an example, and every flag has a description.
func TestCommandsAreDescribed(t *testing.T) {
	for _, cmd := range all(newApp(&Program{})) {
		if cmd.Name() == "help" || cmd.Name() == "completion" || !cmd.HasParent() {
			continue
		}
		if cmd.Short == "" || cmd.Long == "" || cmd.GroupID == "" || cmd.Example == "" || cmd.Args == nil {
			t.Errorf("%s: want Short, Long, GroupID, Example and Args", cmd.Name())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: no usage", cmd.Name(), f.Name)
			}
		})
	}
}

// Every shared option is used by a command, and names the effect of a wrong value.
func TestOptionsAreUsedAndExplained(t *testing.T) {
	takers := takersOfFlags()
	for _, o := range options {
		if len(takers[o.name]) == 0 {
			t.Errorf("--%s: no command takes it", o.name)
		}
		if o.usage == "" || o.wrong == "" && o.name != "json" {
			t.Errorf("--%s: want what it is and what gets worse when it is wrong", o.name)
		}
	}
	s := settings{}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	for i := range options {
		options[i].bind(fs, &s, &options[i])
	}
	if d := reconciler.Default(); s.grace != d.Grace || s.adoptionGrace != d.AdoptionGrace {
		t.Errorf("the reconciler's defaults are %s and %s, the flags say %s and %s", d.Grace, d.AdoptionGrace, s.grace,
			s.adoptionGrace)
	}
	if d := ledger.Default(); s.settledKeptFor != d.SettledKeptFor || s.closedKeptFor != d.ClosedKeptFor {
		t.Errorf("the ledger's defaults are %s and %s, the flags say %s and %s", d.SettledKeptFor, d.ClosedKeptFor,
			s.settledKeptFor, s.closedKeptFor)
	}
}

// commandName returns a command as typed, without the program's name.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "holdfast ")
}

func takersOfFlags() map[string][]string {
	takers := map[string][]string{}
	for _, cmd := range all(newApp(&Program{})) {
		if cmd.Name() == "help" || cmd.Name() == "completion" || cmd.Hidden {
			continue
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { takers[f.Name] = append(takers[f.Name], commandName(cmd)) })
	}
	return takers
}

// The reference page of the configuration is printed from the table of options and from the commands.
func TestConfigReference(t *testing.T) {
	golden(t, "../../docs/reference/config.md", configReference())
}

func configReference() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\nPrinted from the code (`go test ./cmd/holdfast -update`); do not edit.\n\n" +
		wrap("Everything is a flag. Each flag can also be given in the environment; the command line wins. There is "+
			"no configuration file.", "") + "\n" +
		"Durations are written `90s`, `10m`, `720h`.\n\n## Shared options\n")
	takers := takersOfFlags()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	for i := range options {
		o := &options[i]
		o.bind(fs, &settings{}, o)
		def := fs.Lookup(o.name).DefValue
		if def == "" {
			def = "none"
		}
		fmt.Fprintf(&b, "\n### `--%s`\n\n%s\n\n- environment: `%s`\n- default: `%s`\n- commands: %s\n", o.name,
			wrap(sentence(o.usage)+".", ""), envName(o.name), def, wrap(takersOf(takers[o.name]), "  "))
		if o.wrong != "" {
			fmt.Fprintf(&b, "- when it is wrong: %s\n", wrap(o.wrong, "  "))
		}
	}
	b.WriteString("\n## Options of single commands\n\n| command | flag | environment | default | meaning " +
		"|\n|---|---|---|---|---|\n")
	for _, cmd := range all(newApp(&Program{})) {
		if cmd.Name() == "help" || cmd.Name() == "completion" || !cmd.HasParent() || cmd.Hidden {
			continue
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden && !slices.ContainsFunc(options, func(o option) bool {
				return o.name == f.Name
			}) {
				fmt.Fprintf(&b, "| `%s` | `--%s` | `%s` | `%s` | %s |\n", commandName(cmd), f.Name,
					envNameOf(cmd, f.Name),
					f.DefValue, strings.ReplaceAll(strings.ReplaceAll(f.Usage, "`", ""), "|", `\|`))
			}
		})
	}
	return b.String()
}

// takersOf lists the commands that take an option; most of them take the ordinary ones.
func takersOf(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "`" + n + "`"
	}
	return strings.Join(quoted, " ")
}

// pageColumns is the width of a printed page. It leaves room for the beginning of an item.
const pageColumns = 100

// wrap breaks a text at spaces outside of code, and indents all lines but the first.
func wrap(text, indent string) string {
	var b strings.Builder
	columns, inCode := 0, false
	for _, word := range strings.Split(text, " ") {
		switch n := utf8.RuneCountInString(word); {
		case columns == 0:
			columns = n
		case columns+1+n > pageColumns && !inCode:
			b.WriteString("\n" + indent)
			columns = len(indent) + n
		default:
			b.WriteString(" ")
			columns += 1 + n
		}
		b.WriteString(word)
		inCode = inCode != (strings.Count(word, "`")%2 == 1)
	}
	return b.String()
}

func sentence(s string) string {
	s = strings.ReplaceAll(s, "`", "")
	return strings.ToUpper(s[:1]) + s[1:]
}

// Old names of flags work, hidden, as flags and as environment variables. The command line wins over the environment,
// under either name.
func TestOldFlagNames(t *testing.T) {
	for old, now := range oldNames {
		o := slices.IndexFunc(options, func(o option) bool { return o.name == now })
		if o < 0 {
			t.Errorf("--%s stands for --%s, which is no option", old, now)
			continue
		}
		value, other := "7", "8"
		if _, err := strconv.Atoi(newFlags(now).Lookup(now).DefValue); err != nil && now != "person" {
			value, other = "7s", "8s"
		}
		for name, c := range map[string]struct {
			args, env []string
		}{
			"flag":                 {[]string{"--" + old, value}, nil},
			"environment":          {nil, []string{envName(old) + "=" + value}},
			"new environment":      {nil, []string{envName(old) + "=" + other, envName(now) + "=" + value}},
			"flag first":           {[]string{"--" + now, value}, []string{envName(old) + "=" + other}},
			"old flag first":       {[]string{"--" + old, value}, []string{envName(now) + "=" + other}},
			"the last flag counts": {[]string{"--" + old, other, "--" + now, value}, nil},
		} {
			a := newApp(&Program{Env: c.env})
			cmd := &cobra.Command{}
			a.addFlags(cmd, []string{now})
			if f := cmd.Flags().Lookup(old); f == nil || !f.Hidden || cmd.Flags().Lookup(now).Hidden {
				t.Fatalf("--%s: want a hidden flag beside --%s", old, now)
			}
			err := cmd.ParseFlags(c.args)
			if err == nil {
				err = a.fromEnvironment(cmd)
			}
			if got := cmd.Flags().Lookup(now).Value.String(); err != nil || got != value {
				t.Errorf("--%s, %s: %q, %v; want %q", old, name, got, err, value)
			}
		}
	}
}

// newFlags returns a set of flags with one option.
func newFlags(name string) *pflag.FlagSet {
	a, cmd := newApp(&Program{}), &cobra.Command{}
	a.addFlags(cmd, []string{name})
	return cmd.Flags()
}
