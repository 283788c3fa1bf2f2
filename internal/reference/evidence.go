package reference

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/repolint"
)

// Marks around the part of a section that is printed.
const (
	shownBegin = "<!-- shown by: printed by go test ./internal/reference -update -->"
	shownEnd   = "<!-- end of what is printed -->"
)

// columnsMax is the length of a printed line.
const columnsMax = 116

// elsewhereFile lists behaviours that a test without a citation shows: id, folder, name of the test.
const elsewhereFile = "pkg/session/testdata/elsewhere.txt"

// evidence is what shows each id: names by folder. Stories and tests are kept apart.
type evidence map[string]*shows

type shows struct {
	stories, tests map[string][]string // names by folder
}

func (e evidence) of(id string) *shows {
	if e[id] == nil {
		e[id] = &shows{stories: map[string][]string{}, tests: map[string][]string{}}
	}
	return e[id]
}

func add(to map[string][]string, folder, name string) {
	if !slices.Contains(to[folder], name) {
		to[folder] = append(to[folder], name)
	}
}

// collect reads the repository for stories and tests that cite an id.
func collect(root fs.FS) (evidence, error) {
	tree, err := repolint.Load(root)
	if err != nil {
		return nil, err
	}
	e := evidence{}
	for _, f := range tree.Files {
		switch {
		case strings.HasSuffix(f.Path, ".story"):
			e.story(f)
		case f.Path == elsewhereFile:
			e.elsewhere(f.Text)
		case f.Syntax != nil && isEvidence(f):
			e.tests(f)
		}
	}
	return e, nil
}

// isEvidence reports whether a Go file is there to check others: a test, the simulator, the
// invariants, the runner of stories.
func isEvidence(f *repolint.File) bool {
	for _, folder := range []string{"internal/story", "test"} {
		if f.Folder() == folder || strings.HasPrefix(f.Folder(), folder+"/") {
			return true
		}
	}
	return f.Test()
}

var storyName = regexp.MustCompile(`^([prtcs])([0-9])([0-9])-`)

// story adds the ids of a story: the one in its name, and those in its opening.
func (e evidence) story(f *repolint.File) {
	name := strings.TrimSuffix(path.Base(f.Path), ".story")
	opening, _, _ := strings.Cut(f.Text, "\n\n")
	ids := repolint.Cited(opening)
	if m := storyName.FindStringSubmatch(name); m != nil {
		ids = append(ids, idOf(m[1], m[2], m[3]))
	}
	for _, id := range ids {
		add(e.of(id).stories, path.Dir(f.Folder()), name)
	}
}

// idOf returns the id that the name of a story begins with: p14 is P14, s21 is §2.1, s30 is §3.
func idOf(letter, tens, ones string) string {
	switch {
	case letter == "s" && ones == "0":
		return "§" + tens
	case letter == "s":
		return "§" + tens + "." + ones
	default:
		return strings.ToUpper(letter) + strings.TrimPrefix(tens, "0") + ones
	}
}

func (e evidence) elsewhere(text string) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && !strings.HasPrefix(line, "#") {
			add(e.of(f[0]).tests, f[1], f[2])
		}
	}
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)`)

// tests adds the ids that the comments of a Go file cite, under the test that the comment belongs to. A
// comment outside a test counts for its file.
func (e evidence) tests(f *repolint.File) {
	for _, group := range f.Syntax.Comments {
		ids := repolint.Cited(group.Text())
		if len(ids) == 0 {
			continue
		}
		name := path.Base(f.Path)
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !testName.MatchString(fn.Name.Name) {
				continue
			}
			if fn.Doc == group || fn.Pos() <= group.Pos() && group.End() <= fn.End() {
				name = fn.Name.Name
			}
		}
		for _, id := range ids {
			add(e.of(id).tests, f.Folder(), name)
		}
	}
}

var (
	idHeading = regexp.MustCompile(`^#+ <a id="([a-z0-9.]+)"></a>`)
	heading   = regexp.MustCompile(`^#+ `)
)

// idOfAnchor returns the id of an anchor: p14 is P14, s2.1 is §2.1.
func idOfAnchor(anchor string) string {
	if section, ok := strings.CutPrefix(anchor, "s"); ok {
		return "§" + section
	}
	return strings.ToUpper(anchor)
}

// withShown returns a page with the list of stories and tests below each heading that has an id, and the ids
// that nothing shows. Lists that were printed before are replaced.
func withShown(page []byte, e evidence) (printed []byte, without []string) {
	var out bytes.Buffer
	id, skip, code := "", false, false
	end := func() {
		if id == "" {
			return
		}
		list := e.list(id)
		if list == "" {
			without = append(without, id)
			return
		}
		trimmed := bytes.TrimRight(out.Bytes(), "\n")
		out.Truncate(len(trimmed))
		fmt.Fprintf(&out, "\n\n%s\n%s%s\n\n", shownBegin, list, shownEnd)
	}
	for line := range strings.Lines(string(page)) {
		text := strings.TrimRight(line, "\n")
		code = code != strings.HasPrefix(text, "```")
		switch {
		case text == shownBegin:
			skip = true
		case text == shownEnd:
			skip = false
		case skip:
		case !code && heading.MatchString(text):
			end()
			id = ""
			if m := idHeading.FindStringSubmatch(text); m != nil {
				id = idOfAnchor(m[1])
			}
			fallthrough
		default:
			if text != "" || !bytes.HasSuffix(out.Bytes(), []byte("\n\n")) {
				out.WriteString(line)
			}
		}
	}
	end()
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), without
}

// list returns what shows an id, a line for each folder.
func (e evidence) list(id string) string {
	s := e[id]
	if s == nil {
		return ""
	}
	var b strings.Builder
	write := func(sort string, names map[string][]string) {
		for _, folder := range sortedKeys(names) {
			slices.Sort(names[folder])
			b.WriteString(
				wrap(
					fmt.Sprintf("- %s of [%s](../%s): `%s`", sort, folder, folder, strings.Join(names[folder], "`, `")),
				),
			)
		}
	}
	write("stories", s.stories)
	write("tests", s.tests)
	return b.String()
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// wrap breaks one item of a list into lines.
func wrap(item string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(item) {
		switch {
		case i == 0:
		case column+1+len(word) > columnsMax:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
	return b.String()
}
