// Command holdfast keeps the state of AI-agent sessions true across restarts. It runs the services, shows sessions, and
// sends the decisions of people.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// version is the version that the program and its services report.
const version = "0.1.0"

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1 // a promise or a check failed, or a service refused
	exitUsage       = 2
	exitUnreachable = 3 // broker or service not reachable: a later attempt may succeed
)

func main() {
	// The first signal asks for a clean end; after it, a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	p := &Program{Name: os.Args[0], Args: os.Args[1:], Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr}
	os.Exit(p.Run(ctx))
}

// Program is one run of holdfast as a value: tests start the same program as the operator.
type Program struct {
	Name   string   // how it was called; "": holdfast
	Args   []string // without the program's name
	Env    []string // KEY=value
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// self returns the name of this program for a command that a person types: a path if it was called with one.
func (p *Program) self() string {
	if strings.Contains(p.Name, "/") {
		return p.Name
	}
	return "holdfast"
}

// app is what the commands of one run share.
type app struct {
	*Program
	settings
	input    *lines
	beside   io.Writer     // Stderr, for several goroutines
	patience time.Duration // for one request, when longer than --timeout
	nodes    []string      // the brokers of this cell, from --nodes; none: unknown
	parent   int           // the process that started this one, read before anything else is done
	boardURL string        // where this process serves the board; "": nowhere
}

func newApp(p *Program) *app {
	return &app{parent: os.Getppid(), Program: p, input: newLines(p.Stdin), beside: zerolog.SyncWriter(p.Stderr)}
}

// Run executes the command line until it is done or ctx ends, and returns the exit code. The end of ctx asks for a
// clean end.
func (p *Program) Run(ctx context.Context) int {
	a := newApp(p)
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, bus.ErrUnreachable) {
		// the broker was not the cause
		err = errInterrupted
	}
	if err != nil {
		a.complain(err)
	}
	return exitCode(err)
}

// commands are all commands but the services, which are in the table of targets. To add a command, write its file and
// add its name.
var commands = []func(*app) *cobra.Command{
	upCommand, tryCommand, boardCommand, sidecarCommand, bridgeCommand, acpCommand,
	watchCommand, sessionsCommand, promptsCommand, showCommand, diffCommand, eventsCommand,
	answerCommand, rejectCommand, dismissCommand, stopCommand, closeCommand, configureCommand, resumeCommand,
	sendCommand, queueCommand, withdrawCommand, compactCommand, checkCommand,
	doctorCommand, rescueCommand, backupCommand, restoreCommand,
	sweepCommand, rebuildCommand, replayCommand, drillCommand, agentCommand, cellCommand,
	permissionsCommand, secretsCommand, userCommand, versionCommand,
}

// Groups of commands in the help.
const (
	groupRun     = "run"
	groupInspect = "look"
	groupDecide  = "decide"
	groupRepair  = "repair"
)

// suggestionsDistanceMax is how many letters of an unknown command may differ from a suggested one.
const suggestionsDistanceMax = 2

const about = `Holdfast keeps the state of AI-agent sessions true across restarts.

holdfast up starts everything in one process: an embedded broker with its data on disk, and all services.

S names a session: harness/session, or the session alone when only one harness has it. P names a prompt in it.

Each flag can also be given in the environment: --ready-file as HOLDFAST_READY_FILE, or, where
one command alone has it, with its name: stop --force as HOLDFAST_STOP_FORCE. The command line wins.

Exit codes: 0 done · 1 a promise or a check failed, or a service refused · 2 usage · 3 broker or service not
reachable.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "Keeps the state of AI-agent sessions true across restarts",
		Long:          about,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          a.noCommand,
	}
	root.SetVersionTemplate("holdfast {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			f := wrong.GetFlag()
			return usage(cmd, "--%s %q: %s", f.Name, wrong.GetValue(), wanted(f, wrong.Unwrap()))
		}
		_, unknown := errors.AsType[*pflag.NotExistError](err)
		_, malformed := errors.AsType[*pflag.InvalidSyntaxError](err)
		if takesWords := strings.Contains(cmd.Use, " "); takesWords && (unknown || malformed) {
			return usage(cmd, "%v; a name or a text that begins with - comes after --", err)
		}
		return usage(cmd, "%v", err)
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.fromEnvironment(cmd) }
	root.SetHelpFunc(a.printHelp)
	root.SetCompletionCommandGroupID(groupRun)
	root.SetHelpCommandGroupID(groupInspect)
	root.SuggestionsMinimumDistance = suggestionsDistanceMax
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"}, &cobra.Group{ID: groupInspect, Title: "Look:"},
		&cobra.Group{ID: groupDecide, Title: "Decide:"}, &cobra.Group{ID: groupRepair, Title: "Check and repair:"})
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	for i := range targets {
		service := a.serviceCommand(&targets[i])
		a.addVerbs(service)
		root.AddCommand(service)
	}
	a.addCompletion(root)
	return root
}

// verbs are subcommands of a service's command.
var verbs = map[string][]func(*app) *cobra.Command{retry.Name: {retryNowCommand, retryCancelCommand}}

// addVerbs adds the subcommands.
func (a *app) addVerbs(service *cobra.Command) {
	if len(verbs[service.Name()]) == 0 {
		return
	}
	service.AddGroup(&cobra.Group{ID: groupDecide, Title: "Decide:"})
	for _, command := range verbs[service.Name()] {
		service.AddCommand(command(a))
	}
}

// noCommand handles a line without a command, or with an unknown one.
func (a *app) noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(cmd, "there is no command %q%s", args[0], hint)
}

// errInterrupted says that a signal came before the work was done.
var errInterrupted = errors.New("interrupted before it was done")

// usageError is a wrong command line.
type usageError struct {
	text string
	cmd  string
}

// Error returns what was wrong, and where to read the correct form.
func (e *usageError) Error() string {
	return fmt.Sprintf("%s (see `%s --help`)", e.text, e.cmd)
}

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...), cmd: cmd.CommandPath()}
}

// arguments checks the number of arguments, and names the missing ones.
func arguments(least, most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, "%s is missing", strings.Join(names[len(args):least], " and "))
		case most >= 0 && len(args) > most:
			return usage(cmd, "%q is one argument too many", args[most])
		}
		return nil
	}
}

// exitCode sorts errors: exitUnreachable if a later attempt may succeed.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if refusal, ok := errors.AsType[*events.Refusal](err); ok {
		if refusal.Code == http.StatusServiceUnavailable {
			return exitUnreachable
		}
		return exitFailed
	}
	if errors.Is(err, bus.ErrUnreachable) {
		return exitUnreachable
	}
	return exitFailed
}

// complain prints an error with its advice; as one JSON object with --json.
func (a *app) complain(err error) {
	// a name in it may have a line break
	text := plain(strings.ReplaceAll(err.Error(), "\n", "; "))
	refusal, refused := errors.AsType[*events.Refusal](err)
	if advice := a.advice(err); advice != "" {
		text += "\n  " + advice
	}
	if a.json {
		v := map[string]any{"error": text, "exit": exitCode(err)}
		if refused {
			v["code"], v["body"] = refusal.Code, json.RawMessage(refusal.Body())
		}
		body, encodeErr := json.Marshal(v)
		if encodeErr == nil {
			// a line of JSON is not broken
			_, _ = io.WriteString(a.beside, escaped(string(body))+"\n")
			return
		}
	}
	a.printError("holdfast: %s", terminal.CleanLines(text))
	if refused && len(refusal.Questions) > 0 {
		for id, reason := range refusal.Questions {
			if strings.Contains(text, reason) {
				continue
			}
			a.printError("  %s: %s", terminal.Clean(id), terminal.Clean(reason))
		}
	}
}

// advice returns the flag that helps.
func (a *app) advice(err error) string {
	if wrong, ok := errors.AsType[*notOffered](err); ok {
		return wrong.offered
	}
	if f, ok := errors.AsType[*fault](err); ok {
		return f.advice
	}
	if _, ok := errors.AsType[*unreadable](err); ok {
		return "upgrade this program, or `holdfast rebuild`"
	}
	switch {
	case errors.Is(err, bus.ErrTLS):
		return tlsAdvice
	case errors.Is(err, bus.ErrUnreachable):
		return "start one with `holdfast up`, or say where it is with --nats"
	case errors.Is(err, embed.ErrPortInUse):
		return "the broker's address is --listen; is another `holdfast up` running?"
	case errors.Is(err, health.ErrPortInUse):
		return "the address of health and metrics is --http; is another `holdfast up` running?"
	case errors.Is(err, embed.ErrDirInUse), errors.Is(err, embed.ErrNotOurs), errors.Is(err, embed.ErrForeignFile):
		return "the data directory is --data"
	}
	return ""
}

// printError writes lines to stderr, as wide as its terminal, and ignores a write error.
func (a *app) printError(format string, args ...any) {
	_, _ = io.WriteString(a.beside, wrapped(fmt.Sprintf(format, args...), a.style(a.Stderr))+"\n")
}

// wrapped returns lines of plain text as wide as a terminal. The rest of a long line is indented below it.
func wrapped(text string, st terminal.Style) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		indent := len(l) - len(strings.TrimLeft(l, " "))
		lines[i] = st.Wrap(l, indent+2)
	}
	return strings.Join(lines, "\n")
}

// print writes to stdout.
func (a *app) print(text string) error {
	if _, err := io.WriteString(a.Stdout, text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// printLines prints each value as one line of JSON, if that is asked for, and says so.
func printLines[T any](a *app, values []T) (done bool, err error) {
	if !a.json {
		return false, nil
	}
	for _, v := range values {
		if err := a.printJSON(v); err != nil {
			return true, err
		}
	}
	return true, nil
}

// printJSON writes a value as one line to stdout.
func (a *app) printJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return a.print(escaped(string(body)) + "\n")
}

// escaped returns JSON in which characters that can control a terminal are escapes. They are in texts only, so the
// value is the same. JSON itself asks for escapes of those below 0x20 alone.
func escaped(body string) string {
	var b strings.Builder
	for _, r := range body {
		switch high, low := utf16.EncodeRune(r); {
		case terminal.Printable(r):
			b.WriteRune(r)
		case high != utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// style returns the style of text for a writer: in colour on a terminal that allows it.
func (a *app) style(w io.Writer) terminal.Style {
	fd, ok := terminalFD(w)
	if !ok {
		return terminal.Style{}
	}
	width, height, err := term.GetSize(fd)
	if err != nil {
		// not bounded
		width, height = 0, 0
	}
	return terminal.Style{Color: a.wantsColor(), Width: width, Height: height}
}

// wantsColor reports whether the environment allows colours.
func (a *app) wantsColor() bool { return a.env("NO_COLOR") == "" && a.env("TERM") != "dumb" }

// terminal returns the descriptor of a terminal, if the stream is one.
func terminalFD(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// env returns a variable of the environment; the last of several.
func (a *app) env(name string) string {
	value := ""
	for _, kv := range a.Env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// logger writes JSON, or lines for a person on a terminal.
func (a *app) logger() (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(a.logLevel)
	if err != nil {
		return zerolog.Nop(), err
	}
	w := a.beside
	if _, ok := terminalFD(a.Stderr); ok {
		w = zerolog.ConsoleWriter{Out: a.beside, NoColor: !a.style(a.Stderr).Color, TimeFormat: "15:04:05.000"}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}
