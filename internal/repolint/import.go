package repolint

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
)

// row is one row of the import table: which of our own folders, and which doors to NATS, its packages may use.
type row struct {
	folders []string // the row's folders; "" matches the whole repository
	own     []string // what may be imported of ours, by folder
	nats    bool     // nats.go
	server  bool     // nats-server
	foreign bool     // other people's modules at all
}

// table is the import table; the first row that matches a folder counts. pkg thinks, internal touches, services join
// the two, cmd starts them.
var table = []row{
	{folders: []string{"pkg"}, own: []string{"pkg"}},
	{folders: []string{"internal/bus"}, own: []string{"pkg", "internal"}, nats: true, foreign: true},
	{folders: []string{"harness"}, own: []string{"pkg", "internal", "harness"}, nats: true, foreign: true},
	{folders: []string{"internal/embed"}, own: []string{"pkg", "internal"}, server: true, foreign: true},
	{folders: []string{"internal/sidecar"}, own: []string{"pkg", "internal", "harness"}, foreign: true},
	{folders: []string{"internal/agent"}, own: []string{"pkg", "internal", "harness"}, foreign: true},
	{folders: []string{"internal"}, own: []string{"pkg", "internal"}, foreign: true},
	{folders: []string{"services"}, own: []string{"pkg", "internal"}, foreign: true},
	{folders: []string{"bridges"}, own: []string{"pkg", "harness", "internal/agent"}, foreign: true},
	{folders: []string{"examples"}, own: []string{"pkg", "harness", "examples"}},
	{folders: []string{"cmd"}, own: append(product(), "cmd"), foreign: true},
	{folders: []string{"test", "bench"}, own: append(product(), "cmd", "test", "bench"), foreign: true},
	{folders: []string{"web"}, own: []string{"pkg"}},
}

// product are the folders of the product, which tests and programs import.
func product() []string { return []string{"pkg", "internal", "services", "harness", "bridges", "web"} }

const (
	natsClient = "github.com/nats-io/nats.go"
	natsServer = "github.com/nats-io/nats-server"
)

func rowOf(folder string) *row {
	for i := range table {
		for _, f := range table[i].folders {
			if under(folder, f) {
				return &table[i]
			}
		}
	}
	return nil
}

// imports holds every package to the import table. Tests may use what they test with, but the server only where it is
// embedded.
func imports(t *Tree) {
	for _, f := range t.goFiles(true) {
		r := rowOf(f.Folder())
		if r == nil {
			t.find(f.Path, 1, "the folder %s has no row in the import table "+
				"(internal/repolint/import.go)", f.Folder())
			continue
		}
		for _, spec := range f.Syntax.Imports {
			imported := importOf(spec)
			if message := r.refuses(f, imported); message != "" {
				t.find(f.Path, f.Line(spec.Pos()), "%s imports %s: %s", f.Folder(), imported, message)
			}
		}
	}
}

func importOf(spec *ast.ImportSpec) string {
	imported, err := strconv.Unquote(spec.Path.Value)
	// the parser takes quoted strings only
	if err != nil {
		return spec.Path.Value
	}
	return imported
}

func (r *row) refuses(f *File, imported string) string {
	own, isOwn := strings.CutPrefix(imported, Module+"/")
	switch {
	case under(imported, natsServer):
		if !r.server {
			return "only internal/embed imports the server; tests start one with internal/natstest"
		}
	case f.Test():
		return ""
	case under(imported, natsClient):
		if !r.nats {
			return "only internal/bus and harness talk to NATS; use internal/bus"
		}
	case isOwn:
		return r.refusesOwn(f, own)
	case strings.Contains(strings.Split(imported, "/")[0], ".") && !r.foreign:
		return "this folder uses nothing but the standard library and our own packages"
	}
	return ""
}

func (r *row) refusesOwn(f *File, own string) string {
	switch {
	case path.Base(f.Path) == "decide.go" && !under(own, "pkg"):
		return "decide.go imports pkg only; what it needs beside that is an argument"
	case under(f.Folder(), "services") && under(own, "services") && !under(own, top2(f.Folder())):
		return "services never import one another: they meet in the log"
	case f.Folder() == "pkg/events":
		return "the vocabulary imports none of ours"
	case under(f.Folder(), "bridges") && under(own, top2(f.Folder())), under(f.Folder(), "services") &&
		under(own, top2(f.Folder())):
		return ""
	}
	for _, allowed := range r.own {
		if under(own, allowed) {
			return ""
		}
	}
	return "not in its row of the import table: it may use " + strings.Join(r.own, ", ")
}

// top2 is the first two folders of a path: services/ledger.
func top2(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// pureStd is what pure code may use of the standard library: nothing that reads a clock, draws a number, waits or
// touches the world. (time is for instants and durations, net/http for the names of codes; see pure.)
var pureStd = []string{
	"bytes", "cmp", "crypto/sha256", "encoding", "encoding/base32", "encoding/base64", "encoding/binary",
	"encoding/hex", "encoding/json",
	"errors", "fmt", "hash", "hash/fnv", "iter", "maps", "math", "math/bits", "net/http", "regexp", "slices", "sort",
	"strconv", "strings",
	"time", "unicode", "unicode/utf8",
}

// backoffUser is the one decider that may use a foreign delay curve.
const (
	backoffUser = "services/retry/decide.go"
	backoff     = "github.com/cenkalti/backoff"
)

// pureImports holds pkg and every decide.go to the list.
func pureImports(t *Tree) {
	for _, f := range t.goFiles(false) {
		if !isPure(f) {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			imported := importOf(spec)
			allowed := under(imported, Module) || f.Path == backoffUser && under(imported, backoff)
			for _, std := range pureStd {
				allowed = allowed || imported == std
			}
			if !allowed {
				t.find(f.Path, f.Line(spec.Pos()), "pure code imports %s: pkg and decide.go use pkg and an allow-list "+
					"of the standard library, so that every decision can be checked again", imported)
			}
		}
	}
}

func isPure(f *File) bool {
	return under(f.Folder(), "pkg") || under(f.Folder(), "services") && path.Base(f.Path) == "decide.go"
}

// assertionLibraries are what tests do without.
var assertionLibraries = []string{"github.com/stretchr/testify", "gotest.tools", "github.com/onsi",
	"github.com/google/go-cmp", "github.com/matryer/is"}

func assertions(t *Tree) {
	for _, f := range t.goFiles(true) {
		for _, spec := range f.Syntax.Imports {
			for _, library := range assertionLibraries {
				if under(importOf(spec), library) {
					t.find(f.Path, f.Line(spec.Pos()), "imports %s: tests say what they want with the standard "+
						"library, as a condition and a message", library)
				}
			}
		}
	}
}
