package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// rebuildTimeout is the time limit of one part of a rebuild without --timeout: a ledger of an older version does all in
// one, and reads the whole log.
const rebuildTimeout = 10 * time.Minute

// repairCommand prepares a command for operators.
func (a *app) repairCommand(use, short, long string, args cobra.PositionalArgs, examples ...string) *cobra.Command {
	long, example := describe(long, examples...)
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, GroupID: groupRepair, Args: args}
	a.addFlags(cmd, optionsCommand)
	return cmd
}

// errKept means that a rebuild kept documents that are ahead of a log which has lost commits.
var errKept = errors.New("rebuild: the log has lost commits that documents have folded: these documents " +
	"stand as they are")

// rebuildLimit is how many sessions the command rebuilds with one request.
const rebuildLimit = 200

// failedNamesMax is how many of the sessions that could not be rebuilt the command names.
const failedNamesMax = 20

func rebuildCommand(a *app) *cobra.Command {
	var acceptLoss bool
	var after string
	cmd := a.repairCommand("rebuild [S]", "Rebuild documents and views from the log",
		"Rebuild all documents and views, or those of one session, from the log alone, while everything runs. On a "+
			"healthy cell nothing changes. "+
			"A document that is ahead of the log is kept, and the command fails: write the rest to files with "+
			"`holdfast rescue` first, "+
			"and then accept the loss with --accept-loss. "+
			"All documents are rebuilt in parts. A rebuild that was interrupted prints the --after that continues it.",
		arguments(0, 1, "the session S"), "holdfast rebuild", "holdfast rebuild build-42",
		"holdfast rebuild --accept-loss", "holdfast rebuild --after log.5120")
	cmd.Flags().BoolVar(&acceptLoss, "accept-loss", false,
		"also overwrite or remove documents that are ahead of the log")
	cmd.Flags().StringVar(&after, "after", "", "continue a rebuild of all at this `place`, which it has printed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("timeout") {
			a.patience = rebuildTimeout
		}
		if after != "" && len(args) > 0 {
			return usage(cmd, "--after continues a rebuild of all sessions, not of one")
		}
		return a.onOne(cmd.Context(), args, func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			q := request.Rebuild{Harness: r.Harness, Session: r.Session, AcceptLoss: acceptLoss, After: after}
			if q.Session == "" {
				q.Limit = rebuildLimit
			}
			reply, err := a.rebuildParts(q, func(doing string, q request.Rebuild) (request.Rebuilt, error) {
				return call(ctx, a, b.Services, request.LedgerRebuild, doing, q)
			})
			if err != nil && reply.Next == "" {
				return err
			}
			return errors.Join(err, a.printRebuilt(reply), notRebuilt(reply))
		})
	}
	return cmd
}

// notRebuilt says which sessions a rebuild could not do, and that it kept documents.
func notRebuilt(r request.Rebuilt) (err error) {
	if n := len(r.Failed); n > 0 {
		names := strings.Join(r.Failed[:min(n, failedNamesMax)], "; ")
		if n > failedNamesMax {
			names += fmt.Sprintf("; and %d more, in the ledger's log", n-failedNamesMax)
		}
		err = fmt.Errorf("rebuild: %s could not be rebuilt: %s", terminal.Plural(n, "session"), names)
	}
	if r.Lost > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d: `holdfast doctor` names them; keep them with `holdfast rescue`, "+
			"then accept the loss with --accept-loss", errKept, r.Lost))
	}
	return err
}

// rebuildParts asks for one part after the other, and returns their sum. It says on stderr how far it is, at most each
// two seconds, and after an error how to continue. With an error, Next of the sum is the place that continues; empty if
// no part was done.
func (a *app) rebuildParts(q request.Rebuild, ask func(doing string, q request.Rebuild) (request.Rebuilt, error)) (
	request.Rebuilt, error) {
	sum, reported, doing := request.Rebuilt{}, time.Now(), "rebuilding"
	for {
		part, err := ask(doing, q)
		refusal, refused := errors.AsType[*events.Refusal](err)
		if err != nil && q.After != "" && !(refused && refusal.Code == http.StatusBadRequest) {
			a.printError("rebuild: interrupted: to continue, run the same command with `--after %s`",
				terminal.Clean(q.After))
		}
		if err != nil {
			return sum, err
		}
		sum.Sessions, sum.Changed, sum.Removed = sum.Sessions+part.Sessions, sum.Changed+part.Changed,
			sum.Removed+part.Removed
		sum.Views, sum.Lost, sum.TookMS = sum.Views+part.Views, sum.Lost+part.Lost, sum.TookMS+part.TookMS
		sum.Failed, sum.Next = append(sum.Failed, part.Failed...), part.Next
		if part.Next == "" {
			return sum, nil
		}
		q.After = part.Next
		what, _, _ := strings.Cut(part.Next, ".")
		doing = fmt.Sprintf("rebuilding: %d %% of the %s, %s", part.Percent, what,
			terminal.Plural(sum.Sessions, "session"))
		if time.Since(reported) >= progressEveryMS*time.Millisecond {
			reported = time.Now()
			a.printError("%s", terminal.Clean(doing))
		}
	}
}

func (a *app) printRebuilt(r request.Rebuilt) error {
	if a.json {
		return a.printJSON(r)
	}
	return a.print(fmt.Sprintf("%s read in %s: %s changed, %d removed, %s written\n",
		terminal.Plural(r.Sessions, "session"),
		terminal.Age(time.Duration(r.TookMS)*time.Millisecond), terminal.Plural(r.Changed, "document"), r.Removed,
		terminal.Plural(r.Views, "view")))
}

func sweepCommand(a *app) *cobra.Command {
	var dryRun bool
	cmd := a.repairCommand("sweep [S]", "Have the reconciler check all sessions now",
		"Have the reconciler pass over all sessions, or one, now: it recovers sessions of dead owners, and expires "+
			"overdue prompts. With --dry-run it only reports what it would append.",
		arguments(0, 1, "the session S"), "holdfast sweep --dry-run", "holdfast sweep build-42")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, only report what would be done")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.patience = rebuildTimeout
		return a.onOne(cmd.Context(), args, func(ctx context.Context, b *bus.Bus, r events.Ref) error {
			reply, err := call(ctx, a, b.Services, request.ReconcilerSweep, "sweeping",
				request.Sweep{Harness: r.Harness, Session: r.Session, DryRun: dryRun})
			if err != nil {
				return err
			}
			if err := a.printSwept(reply, dryRun); err != nil || reply.Failed == 0 {
				return err
			}
			return fmt.Errorf("sweep: %s could not be recovered; see the reconciler's log",
				terminal.Plural(reply.Failed, "session"))
		})
	}
	return cmd
}

func (a *app) printSwept(r request.Swept, dryRun bool) error {
	if a.json {
		return a.printJSON(r)
	}
	var text strings.Builder
	for _, w := range r.Would {
		fmt.Fprintf(&text, "%s (owner %s)\n", terminal.Clean(w.Ref.String()), terminal.Clean(w.Owner))
		for _, f := range w.Facts {
			fmt.Fprintf(&text, "  %s %s\n", terminal.Clean(strings.TrimPrefix(f.Type, events.TypePrefix)),
				terminal.Clean(string(f.Data)))
		}
		if w.More > 0 {
			fmt.Fprintf(&text, "  and %d more\n", w.More)
		}
	}
	if r.More > 0 {
		fmt.Fprintf(&text, "and %s more\n", terminal.Plural(r.More, "session"))
	}
	total := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(r.Facts)) {
		total += r.Facts[kind]
		kinds = append(kinds, fmt.Sprintf("%d %s", r.Facts[kind], kind))
	}
	verb := "appended"
	if dryRun {
		verb = "would be appended"
	}
	fmt.Fprintf(&text, "%s looked at, %s %s", terminal.Plural(r.Sessions, "session"), terminal.Plural(total, "event"),
		verb)
	if total > 0 {
		text.WriteString(": " + terminal.Clean(strings.Join(kinds, ", ")))
	}
	return a.print(text.String() + "\n")
}

// onOne runs a command on the named session, or on all of them: then the ref is empty.
func (a *app) onOne(ctx context.Context, args []string,
	do func(ctx context.Context, b *bus.Bus, r events.Ref) error) error {
	if len(args) == 0 {
		return a.with(ctx, func(ctx context.Context, b *bus.Bus) error { return do(ctx, b, events.Ref{}) })
	}
	return a.withSession(ctx, args[0], do)
}

func permissionsCommand(a *app) *cobra.Command {
	var named cellUsers
	var passwords string
	long, example := describe(
		`Print the users of a secured cell, with what each may do, as accounts for the configuration of nats-server.

Every service is a user of its own, and every harness, person and operator that is named. A harness can write
only as itself, to its own sessions. A person writes nothing, but asks the services on
hf.svc.<service>.<verb>.<name>. Harnesses and people have an account each, with imports for what they may do,
so that no reply goes to another user. nats-server reads each password, or the public nkey of a user of
--nkey-user, from the variable that is printed: of the file that --passwords names, or of its environment. It
needs no broker.`,
		"holdfast permissions --harness my-agent --person ann --operator root \\\n"+
			"    --passwords users.conf > permissions.conf",
		"echo 'include ./permissions.conf' >> nats-server.conf")
	cmd := &cobra.Command{Use: "permissions", Short: "Print the permissions of a secured cell", Long: long,
		Example: example, GroupID: groupRepair, Args: arguments(0, 0)}
	a.addFlags(cmd, []string{"prefix"})
	named.bind(cmd)
	cmd.Flags().StringVar(&passwords, "passwords", "",
		"a `file` with the passwords and public nkeys as variables, which the printed configuration includes; "+
			"relative to its own folder")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		users, err := named.users(cmd, a.prefix)
		if err != nil {
			return err
		}
		if passwords != "" {
			passwords = "include " + strconv.Quote(passwords) + "\n"
		}
		return a.print(passwords + permission.Conf(users))
	}
	return cmd
}
