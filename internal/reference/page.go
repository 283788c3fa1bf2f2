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
	b.WriteString("# Events\n\n" +
		"This page is printed from `pkg/events` by `go test ./internal/reference -update`; do not edit it.\n\n" +
		"An event is a CloudEvents 1.0 event whose `type` is `holdfast.<kind>` (in the code: a fact). Fields with\n" +
		"`?` are optional, `[]` is a list. [schemas](schemas) has the JSON Schema of each kind's data,\n" +
		"[asyncapi.json](asyncapi.json) all channels. The [contract](../contract.md#s2) has the rules.\n\n" +
		"| kind | writers | data | meaning |\n|---|---|---|---|\n")
	for _, s := range events.Table() {
		writers := make([]string, len(s.By))
		for i, w := range s.By {
			writers[i] = string(w)
		}
		fmt.Fprintf(&b, "| [`%s`](schemas/%s.json) | %s | `%s` | %s |\n",
			s.Kind, s.Kind, strings.Join(writers, ", "), join(parseFields(dataOf[s.Kind])), s.Doc)
	}
	fmt.Fprintf(&b, "\nLimits: %d events and %d KiB per commit, %d KiB of data per event,\n"+
		"%d KiB of questions or answers, encoded ids of 1 to %d bytes.\n",
		events.CommitFactsMax, events.CommitBytesMax>>10, events.DataBytesMax>>10,
		events.QuestionsBytesMax>>10, events.TokenBytesMax)
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
	b.WriteString("# Permissions of a secured cell\n\n" +
		"This page is printed from `internal/permission` by `go test ./internal/reference -update`; do not edit " +
		"it.\n\n" +
		"`holdfast permissions --harness agent-1 --person ann --operator root` prints these accounts for the\n" +
		"configuration of nats-server. Every service, named harness, person and operator is a user. The\n" +
		"[table of events](events.md) decides which user may append which event. Passwords are variables of\n" +
		"nats-server: from its environment, or from a file that `--passwords` includes. A password has to begin " +
		"with a\n" +
		"letter.\n\n" +
		"The broker cannot separate readers: a user that reads single messages of a stream can read all of them, so\n" +
		"users of one cell can read each other's events. Users that must not know of each other need a cell in an\n" +
		"account of its own. [Security](../guide/security.md) lists the threats.\n\n```conf\n")
	b.WriteString(permission.Conf(users))
	b.WriteString("```\n")
	return []byte(b.String()), nil
}
