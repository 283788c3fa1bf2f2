package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/terminal"
)

// prefixes matches names of packages at the beginning of a text, and at that of a cause in it: of the harness and of
// packages that are not ours. Other errors have none (internal/repolint).
var prefixes = regexp.MustCompile(`(^|: |; |\n *)(?:(?:harness|json|nats|malformed): )+`)

// plain returns the text of an error for a person: without names of packages.
func plain(text string) string { return prefixes.ReplaceAllString(text, "$1") }

// fault is an error with a text for a person, and what to do about it. It keeps the chain.
type fault struct {
	error
	text, advice string
}

// Error returns the text.
func (f *fault) Error() string { return f.text }

// Unwrap returns the error itself.
func (f *fault) Unwrap() error { return f.error }

// answerMin is the shortest time limit after which a broker without an answer is suspected, and not the limit.
const answerMin = time.Second

// noBroker says that a connection was not made.
func (a *app) noBroker(err error) error {
	url := bus.Redacted(a.nats)
	switch {
	case errors.Is(err, bus.ErrNoAnswer) && a.timeout < answerMin:
		return &fault{err, fmt.Sprintf("no answer from %s within %s, the time limit of this command (--timeout)", url,
			a.timeout), ""}
	case errors.Is(err, bus.ErrNoAnswer):
		return &fault{err, fmt.Sprintf("the broker at %s accepts connections, but its JetStream does not answer: "+
			"tried for %s", url, a.timeout), brokerAdvice(err)}
	case errors.Is(err, bus.ErrNoJetStream):
		return &fault{err, fmt.Sprintf("the broker at %s has no JetStream, or none for this login", url),
			brokerAdvice(err)}
	case errors.Is(err, bus.ErrUnreachable) && !errors.Is(err, bus.ErrTLS):
		return &fault{err, fmt.Sprintf("no broker answers at %s: tried for %s", url, a.timeout),
			whyNoAnswer(a.nats) + "start one with `holdfast up`, or say where it is with --nats"}
	}
	return err
}

// dialMax is how long a failed connection is tried once more, to find out why.
const dialMax = time.Second

// whyNoAnswer says what is at the address at which no broker answered, if it is the only one and that is known.
func whyNoAnswer(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address = strings.TrimSuffix(address[strings.LastIndex(address, "@")+1:], "/")
	if strings.Contains(address, ",") {
		return ""
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "4222")
	}
	conn, err := net.DialTimeout("tcp", address, dialMax)
	if err == nil {
		_ = conn.Close()
		return "a program listens there, but does not answer as a broker: "
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return fmt.Sprintf("there is no host %q: ", terminal.Clean(name.Name))
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "nothing listens there: "
	}
	return ""
}

// explain returns an error of a command's work in the words of a person: a cell that is not there, and the time limit
// of this program, which is no fault of a broker that is connected.
func (a *app) explain(err error, connected bool) error {
	switch {
	case bus.NoCell(err):
		return &fault{err, fmt.Sprintf("there is no cell %q on the broker at %s", a.prefix, bus.Redacted(a.nats)),
			"`holdfast up`, or the first service that runs there, makes it; its name is --prefix"}
	case connected && errors.Is(err, bus.ErrUnreachable) && errors.Is(err, context.DeadlineExceeded):
		text := strings.NewReplacer("broker unreachable: ", "", context.DeadlineExceeded.Error(),
			fmt.Sprintf("no answer within %s, the time limit of this command (--timeout)", max(a.timeout, a.patience)),
		).Replace(plain(err.Error()))
		return &fault{err, text, ""}
	}
	return err
}

// tryingAfter is when a command says that it still tries to reach the broker.
const tryingAfter = time.Second

// whileTrying runs a function that connects, and says what is tried when that takes long.
func (a *app) whileTrying(connect func() error) error {
	printed := make(chan struct{})
	slow := time.AfterFunc(tryingAfter, func() {
		defer close(printed)
		a.printError("no broker at %s yet: trying for %s", bus.Redacted(a.nats), a.timeout)
	})
	err := connect()
	if !slow.Stop() {
		// the output of the command follows
		<-printed
	}
	return err
}

func versionCommand(a *app) *cobra.Command {
	long, example := describe("Print the version of this program.", "holdfast version")
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Long: long, Example: example, GroupID: groupRun,
		Args: arguments(0, 0)}
	a.addFlags(cmd, []string{"json"})
	cmd.RunE = func(*cobra.Command, []string) error {
		if a.json {
			return a.printJSON(map[string]string{"version": version})
		}
		return a.print("holdfast " + version + "\n")
	}
	return cmd
}
