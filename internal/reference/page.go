package reference

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// eventsPage is the table of kinds for people.
func eventsPage() []byte {
	var b strings.Builder
	b.WriteString("# Facts\n\nPrinted from `pkg/events` by `go test ./internal/reference -update`; do not edit.\n\n" +
		"A fact is a CloudEvents 1.0 event whose `type` is `holdfast.<kind>`. Fields with `?` are optional, `[]` " +
		"is a list.\n" +
		"The schema of each kind's data is in `schemas/`, everything on the wire in `asyncapi.json`.\n\n" +
		"| kind | said by | data | what it says |\n|---|---|---|---|\n")
	for _, s := range events.Table() {
		writers := make([]string, len(s.By))
		for i, w := range s.By {
			writers[i] = string(w)
		}
		fmt.Fprintf(
			&b,
			"| [`%s`](schemas/%s.json) | %s | `%s` | %s |\n",
			s.Kind,
			s.Kind,
			strings.Join(writers, ", "),
			join(parseFields(dataOf[s.Kind])),
			s.Doc,
		)
	}
	fmt.Fprintf(
		&b,
		"\nLimits: %d facts and %d KiB a commit, %d KiB of data a fact, %d KiB of questions or answers, ids of 1 "+
			"to %d bytes once encoded.\n",
		events.CommitFactsMax,
		events.CommitBytesMax>>10,
		events.DataBytesMax>>10,
		events.QuestionsBytesMax>>10,
		events.TokenBytesMax,
	)
	return []byte(b.String())
}

// permissionsPage is what each user of a secured cell may do, as a broker reads it.
func permissionsPage() ([]byte, error) {
	cell, err := events.NewCell(events.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	users, err := permission.Users(cell, []string{"agent-1"}, []string{"ann"}, []string{"root"})
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(
		"# Permissions of a secured cell\n\nPrinted from `internal/permission` by `go test ./internal/reference " +
			"-update`; do not edit.\n\n" +
			"`holdfast permissions --harness agent-1 --person ann --operator root` prints this account for the " +
			"configuration of nats-server: every service is a user,\n" +
			"and so is every harness, person and operator that is named. Who may append to the log under which " +
			"writer's name is taken from the\n" +
			"[table of facts](events.md). A password is read from the environment of nats-server; let it begin " +
			"with a letter.\n\n" +
			"What a broker cannot keep apart: whoever may read single messages of a stream may read all of them, " +
			"so users of one cell can read\n" +
			"each other's facts; and whoever holds a lease can empty the bucket of leases, which costs everybody " +
			"a new claim and nobody a fact. Who must not\n" +
			"know of each other gets a cell in an account of its own. `by` in a request is what the asker says it " +
			"is.\n\n```conf\n",
	)
	b.WriteString(permission.Conf(users))
	b.WriteString("```\n")
	return []byte(b.String()), nil
}
