package reference

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// eventsPage is the table of kinds for people.
func eventsPage() []byte {
	var b strings.Builder
	b.WriteString("# Facts\n\nPrinted from `pkg/events` by `go test ./internal/reference -update`; do not edit.\n\n" +
		"A fact is a CloudEvents 1.0 event whose `type` is `holdfast.<kind>`. Fields with `?` are optional, `[]` is a list.\n" +
		"The schema of each kind's data is in `schemas/`, everything on the wire in `asyncapi.json`.\n\n" +
		"| kind | said by | data | what it says |\n|---|---|---|---|\n")
	for _, s := range events.Table() {
		writers := make([]string, len(s.By))
		for i, w := range s.By {
			writers[i] = string(w)
		}
		fmt.Fprintf(&b, "| [`%s`](schemas/%s.json) | %s | `%s` | %s |\n", s.Kind, s.Kind, strings.Join(writers, ", "), join(parseFields(dataOf[s.Kind])), s.Doc)
	}
	fmt.Fprintf(&b, "\nLimits: %d facts and %d KiB a commit, %d KiB of data a fact, %d KiB of questions or answers, ids of 1 to %d bytes once encoded.\n",
		events.CommitFactsMax, events.CommitBytesMax>>10, events.DataBytesMax>>10, events.QuestionsBytesMax>>10, events.TokenBytesMax)
	return []byte(b.String())
}
