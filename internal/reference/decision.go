package reference

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// decisionsFolder has one page for each decision record.
const decisionsFolder = "docs/adr"

var (
	decisionFile  = regexp.MustCompile(`^([0-9]{4})-[a-z0-9-]+\.md$`)
	decisionTitle = regexp.MustCompile(`(?m)^# ([0-9]+)\. (.+)$`)
	decisionField = regexp.MustCompile(`(?m)^\| (date|status|touches) \| (.*) \|$`)
)

// decisionIndex returns the index of the decision records. It fails when a page has no title, another number
// than its name, or no status.
func decisionIndex(root fs.FS) ([]byte, error) {
	files, err := fs.Glob(root, decisionsFolder+"/*-*.md")
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(
		"# Decision records\n\nEach record is one decision: its context, what was decided, what was considered " +
			"instead, and its consequences.\n" +
			"[Record 1](0001-decision-records.md) says what gets a record. This page is printed by\n" +
			"`go test ./internal/reference -update`; do not edit it.\n\n| record | decision | status | date " +
			"|\n|---|---|---|---|\n",
	)
	for _, file := range files {
		name := path.Base(file)
		number := decisionFile.FindStringSubmatch(name)
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, err
		}
		title := decisionTitle.FindStringSubmatch(string(text))
		fields := map[string]string{}
		for _, m := range decisionField.FindAllStringSubmatch(string(text), -1) {
			fields[m[1]] = m[2]
		}
		switch {
		case number == nil:
			return nil, fmt.Errorf("%s: want NNNN-title-in-small-letters.md", file)
		case title == nil || strings.TrimLeft(number[1], "0") != title[1]:
			return nil, fmt.Errorf(
				"%s: want the first line to be # %s. and the title",
				file,
				strings.TrimLeft(number[1], "0"),
			)
		case fields["status"] == "" || fields["date"] == "":
			return nil, fmt.Errorf("%s: want a table with date, status and touches, as in record 1", file)
		}
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s | %s |\n", number[1], name, title[2], fields["status"], fields["date"])
	}
	return []byte(b.String()), nil
}
