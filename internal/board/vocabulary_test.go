package board

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestPagesKnowTheVocabulary: the scripts of the board have the kinds of events with their writers, the letters of the
// writers, and the services that read documents, as pkg/events has them. No browser runs here: the texts are compared.
func TestPagesKnowTheVocabulary(t *testing.T) {
	history, operator := script(t, "history.js"), script(t, "operator.js")
	letters := map[events.Writer]string{}
	services := section(t, history, `const services = \{([^}]*)\}`)
	for _, found := range regexp.MustCompile(`([A-Z]): "([a-z]+)"`).FindAllStringSubmatch(services, -1) {
		letters[events.Writer(found[2])] = found[1]
	}
	writers := map[string]string{}
	kinds := section(t, history, `export const writers = Object\.fromEntries\(Object\.entries\(\{([^}]*)\}`)
	for _, found := range regexp.MustCompile(`"([a-z._]+)": "([A-Z]+)"`).FindAllStringSubmatch(kinds, -1) {
		writers[found[1]] = found[2]
	}
	table := events.Table()
	for i := range table {
		want := ""
		for _, w := range table[i].By {
			want += letters[w]
		}
		if got := writers[string(table[i].Kind)]; got != want || len(want) != len(table[i].By) {
			t.Errorf("web/history.js: the writers of %s are %q, and pkg/events/kinds.go has %v: complete services and "+
				"writers there", table[i].Kind, got, table[i].By)
		}
	}
	if len(writers) != len(table) {
		t.Errorf("web/history.js has %d kinds, and pkg/events/kinds.go has %d", len(writers), len(table))
	}
	var readers []string
	for _, w := range events.Writers() {
		if w != events.WriterHarness && w != events.WriterLedger {
			readers = append(readers, fmt.Sprintf("%q", w))
		}
	}
	want := strings.Join(readers, ", ")
	if got := section(t, operator, `for \(const service of \[([^\]]*)\]\)`); got != want {
		t.Errorf("web/operator.js: the services that read documents are %s, and pkg/events/name.go has %s", got, want)
	}
}

// script returns a script of the board.
func script(t *testing.T, name string) string {
	t.Helper()
	text, err := files.ReadFile("web/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the part of a script that the group of an expression matches.
func section(t *testing.T, text, expression string) string {
	t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no script has %s", expression)
	}
	return found[1]
}
