package reference

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

const committed = "../../docs/reference"

// update writes the pages instead of comparing them.
var update = flag.Bool("update", false, "write docs/reference")

func printed(t *testing.T) map[string][]byte {
	t.Helper()
	pages, err := Print()
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// The committed pages are what the code prints, and there are no others.
func TestPagesAreUpToDate(t *testing.T) {
	pages := printed(t)
	for path, want := range pages {
		file := filepath.Join(committed, path)
		if *update {
			write(t, file, want)
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf(
				"docs/reference/%s is not what the code prints (%v): run make golden and look at the difference",
				path,
				err,
			)
		}
	}
	err := filepath.WalkDir(committed, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(committed, path)
		name = filepath.ToSlash(name)
		ours := strings.HasPrefix(name, "schemas/") || pages[name] != nil
		if ours && pages[name] == nil {
			t.Errorf("docs/reference/%s is printed by nothing: remove it", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string, body []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A struct and the contract cannot differ unseen.
func TestContractAndStructsAreHeldTogether(t *testing.T) {
	r, err := newReflector()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, fields, want string }{
		{"equal", "call, error{kind, text, status?, retry_after_ms?}, synthetic?", ""},
		{"a field that the struct lacks", "call, error{kind, text, status?, retry_after_ms?}, synthetic?, colour?",
			"field colour of the contract is not in the struct"},
		{"a field that the contract lacks", "call, error{kind, text, status?, retry_after_ms?}",
			"field synthetic of the struct is not in the contract"},
		{"the same one level down", "call, error{kind, text, status?}, synthetic?",
			"error: field retry_after_ms of the struct is not in the contract"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := require(r.Reflect(events.ToolFailed{}), parseFields(c.fields))
			if got := message0(err); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if len(dataOf) != len(events.Table()) {
		t.Errorf("contract.go has %d kinds, the table %d", len(dataOf), len(events.Table()))
	}
}

func message0(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFieldLists(t *testing.T) {
	for _, list := range []string{"a", "a, b?", "a[], b[]?{c, d?}, e{f[]{g}}", dataOf["prompt.requested"]} {
		if got := join(parseFields(list)); got != list {
			t.Errorf("%q came back as %q", list, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a brace too many is no field list")
		}
	}()
	parseFields("a}, b")
}
