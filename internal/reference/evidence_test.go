package reference

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const repository = "../.."

// pages are those with ids, below docs.
var pages = []string{"behaviours.md", "contract.md"}

// Each behaviour, invariant and rule of the contract names the stories and tests that show it, and each has at
// least one.
func TestEveryIDIsShown(t *testing.T) {
	e, err := collect(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		file := filepath.Join(repository, "docs", page)
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, without := withShown(body, e)
		if *update {
			write(t, file, want)
		} else if !bytes.Equal(body, want) {
			t.Errorf(
				"docs/%s does not list the stories and tests as they are: run go test ./internal/reference "+
					"-update and read the difference",
				page,
			)
		}
		for _, id := range without {
			if !slices.Contains(sections, id) {
				t.Errorf(
					"docs/%s: no story and no test shows %s: name it in the opening of a story, in the comment of "+
						"a test, or in %s",
					page,
					id,
					elsewhereFile,
				)
			}
		}
	}
}

// sections of the contract are shown by the tests of their parts.
var sections = []string{"§1", "§2", "§3", "§4", "§5", "§6", "§7"}

// A test that is named as evidence exists.
func TestEvidenceExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, elsewhereFile))
	if err != nil {
		t.Fatal(err)
	}
	e := evidence{}
	e.elsewhere(string(text))
	if len(e) == 0 {
		t.Fatalf("%s names no test", elsewhereFile)
	}
	for id, s := range e {
		for folder, names := range s.tests {
			for _, name := range names {
				if !hasTest(t, folder, name) {
					t.Errorf("%s: %s has no test %s to show %s", elsewhereFile, folder, name, id)
				}
			}
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte("func "+name+"("))
	})
}

// The lists are printed below their headings, again over what was printed before, and an id without evidence
// is reported.
func TestShown(t *testing.T) {
	e, err := collect(fstest.MapFS{
		"pkg/x/testdata/p14-chat.story": {Data: []byte("A message (R2).\n\n-- facts --\nP7 is data\n")},
		"pkg/x/testdata/s21-end.story":  {Data: []byte("An end.\n\n")},
		"pkg/x/x_test.go": {
			Data: []byte(
				"// Package x.\npackage x\n\n// P14 holds.\nfunc TestIt() {\n\t// so does V3\n}\n\n// help shows " +
					"P14 too.\nfunc help() {}\n",
			),
		},
		"pkg/x/x.go":  {Data: []byte("// Package x cites V3.\npackage x\n")},
		elsewhereFile: {Data: []byte("# id folder test\nV3 services/y TestAll\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	page := "# Page\n\n## <a id=\"p14\"></a>P14 · Chat\n\nText.\n\n### <a id=\"s2.1\"></a>Rule\n\n```\n# no " +
		"heading\n```\n\n## <a id=\"v3\"></a>V3\n\n## <a id=\"n1\"></a>N1\n\nEnd.\n"
	want := "# Page\n\n## <a id=\"p14\"></a>P14 · Chat\n\nText.\n\n" + shownBegin +
		"\n- stories of [pkg/x](../pkg/x): `p14-chat`\n- tests of [pkg/x](../pkg/x): `TestIt`, `x_test.go`\n" +
		shownEnd +
		"\n\n### <a id=\"s2.1\"></a>Rule\n\n```\n# no heading\n```\n\n" + shownBegin +
		"\n- stories of [pkg/x](../pkg/x): `s21-end`\n" + shownEnd +
		"\n\n## <a id=\"v3\"></a>V3\n\n" + shownBegin + "\n- tests of [pkg/x](../pkg/x): `TestIt`\n- tests of " +
		"[services/y](../services/y): `TestAll`\n" + shownEnd +
		"\n\n## <a id=\"n1\"></a>N1\n\nEnd.\n"
	got, without := withShown([]byte(page), e)
	if string(got) != want || !slices.Equal(without, []string{"N1"}) {
		t.Errorf("got\n%s\nwithout %v, want\n%s", got, without, want)
	}
	if again, _ := withShown(got, e); !bytes.Equal(again, got) {
		t.Errorf("printed again it is\n%s", again)
	}
}

// The index of decision records lists each record with its title.
func TestDecisionIndex(t *testing.T) {
	index, err := decisionIndex(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(repository, decisionsFolder, "README.md")
	if *update {
		write(t, file, index)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, index) {
		t.Errorf(
			"docs/adr/README.md does not list the records as they are (%v): run go test ./internal/reference -update",
			err,
		)
	}
}

func TestDecisionIndexFails(t *testing.T) {
	const table = "| date | 2026-11-20 |\n| status | accepted |\n"
	for _, c := range []struct{ name, file, text, want string }{
		{"another number", "0007-a.md", "# 8. A\n\n" + table, "want the first line to be # 7."},
		{"no status", "0007-a.md", "# 7. A\n", "want a table"},
		{"another name", "7-A.md", "# 7. A\n\n" + table, "want NNNN-title"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decisionIndex(fstest.MapFS{decisionsFolder + "/" + c.file: {Data: []byte(c.text)}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// The contract names every field of documents and views, every event, verb, header and code that the program
// has.
func TestContractNamesEverything(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(repository, "docs", "contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	names := map[string]bool{}
	for _, v := range []any{session.State{}, session.Head{}, session.Blocker{}, session.Work{}, events.Standing{}} {
		jsonNames(reflect.TypeOf(v), names)
	}
	for _, p := range session.Phases() {
		names[string(p)] = true
	}
	for _, w := range events.Writers() {
		names[string(w)] = true
	}
	for _, v := range request.Table() {
		names[v.Verb] = true
		jsonNames(reflect.TypeOf(v.Request), names)
		jsonNames(reflect.TypeOf(v.Reply), names)
	}
	for name := range names {
		if !regexp.MustCompile(`(^|[^a-z_])` + regexp.QuoteMeta(name) + `($|[^a-z_])`).MatchString(text) {
			t.Errorf("docs/contract.md does not name %s", name)
		}
	}
	rules := regexp.MustCompile(`"rules": ([0-9]+)`).FindAllStringSubmatch(text, -1)
	for _, found := range rules {
		if found[1] != strconv.Itoa(session.FoldRules) {
			t.Errorf("docs/contract.md shows a document of rules %s, and the fold has rules %d", found[1],
				session.FoldRules)
		}
	}
	if len(rules) == 0 {
		t.Error("docs/contract.md shows no document with its rules")
	}
	table, err := os.ReadFile(filepath.Join(committed, "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range events.Table() {
		if !strings.Contains(text+string(table), "`"+string(s.Kind)+"`") {
			t.Errorf("neither docs/contract.md nor docs/reference/events.md names %s", s.Kind)
		}
	}
}

// jsonNames collects the names of the fields of a struct, and of the structs in it, as they are on the wire.
func jsonNames(typ reflect.Type, to map[string]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if typ != reflect.TypeFor[json.RawMessage]() {
			jsonNames(typ.Elem(), to)
		}
	case reflect.Struct:
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" {
				to[name] = true
			}
			jsonNames(typ.Field(i).Type, to)
		}
	}
}
