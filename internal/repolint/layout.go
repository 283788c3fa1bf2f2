package repolint

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// forbiddenNames say nothing about what is inside.
var forbiddenNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared", "lib",
	"tools"}

func packageNames(t *Tree) {
	folders, files := t.packages()
	for _, folder := range folders {
		name := files[folder][0].Syntax.Name
		if slices.Contains(forbiddenNames, name.Name) || slices.Contains(forbiddenNames, path.Base(folder)) {
			t.find(files[folder][0].Path, files[folder][0].Line(name.Pos()),
				"package %s: a package is a noun that says what is inside", name.Name)
		}
	}
}

const (
	manifests = "deploy/k8s/base"
	ledger    = "services/ledger" // it decides in pkg/session
	targets   = "cmd/holdfast/target.go"
)

// places returns the files beside its own that have to name a service, and what is missing without it.
func places(service string) [][3]string {
	return [][3]string{
		{manifests + "/kustomization.yaml", "- " + service + ".yaml", "no overlay has its manifest"},
		{"deploy/helm/holdfast/templates/services.yaml", `"` + service + `"`, "the chart does not run it"},
		{"deploy/helm/holdfast/values.yaml", service + ": holdfast-" + service, "the chart has no secret for it"},
		{"deploy/k8s/monitoring/rules.yaml", "holdfast-" + service + "-", "no alert says that it is missing"},
		{"test/cell/world_test.go", `"` + service + `"`, "no test attacks it in a cell as deployed"},
	}
}

// services wants the parts of each service: decide.go, the file with its design page, its line in the table of targets,
// its manifest, and its name in the other files that list the services.
func services(t *Tree) {
	folders, _ := t.packages()
	anyManifest := slices.ContainsFunc(t.Files, func(f *File) bool { return f.Folder() == manifests })
	for _, folder := range folders {
		if path.Dir(folder) != "services" {
			continue
		}
		name := path.Base(folder)
		if !t.has(folder+"/decide.go") && folder != ledger {
			t.find(folder, 0, "service %s has no decide.go: pure code, Decide(state, now, …) → facts and the "+
				"next check", name)
		}
		if !t.has(folder + "/" + name + ".go") {
			t.find(folder, 0, "service %s has no %s.go: the design page, Config, New, Run", name, name)
		}
		if t.has(targets) && !t.imports(targets, Module+"/"+folder) {
			t.find(folder, 0, "service %s is not in the table of targets (%s): holdfast up does not start it", name,
				targets)
		}
		if anyManifest && !t.has(manifests+"/"+name+".yaml") {
			t.find(folder, 0, "service %s has no %s/%s.yaml: without it no cell runs it", name, manifests, name)
		}
		for _, p := range places(name) {
			if i := slices.IndexFunc(t.Files, func(f *File) bool { return f.Path == p[0] }); i >= 0 &&
				!strings.Contains(t.Files[i].Text, p[1]) {
				t.find(p[0], 0, "service %s is not named here: add %s as for the others; without it %s", name, p[1],
					p[2])
			}
		}
	}
}

// imports says whether a file imports this.
func (t *Tree) imports(file, imported string) bool {
	return slices.ContainsFunc(t.goFiles(true), func(f *File) bool {
		return f.Path == file && slices.ContainsFunc(f.Syntax.Imports,
			func(s *ast.ImportSpec) bool { return importOf(s) == imported })
	})
}

const decisions = "docs/adr"

// dependencies wants the reason of every module that we import ourselves in a dated decision.
func dependencies(t *Tree) {
	var reasons strings.Builder
	for _, f := range t.Files {
		if f.Folder() == decisions {
			reasons.WriteString(f.Text)
		}
	}
	modules, seen := t.modules(), make(map[string]bool)
	for _, f := range t.goFiles(true) {
		for _, spec := range f.Syntax.Imports {
			module := moduleOf(modules, importOf(spec))
			if module == "" || seen[module] {
				continue
			}
			seen[module] = true
			if !strings.Contains(reasons.String(), module) {
				t.find(f.Path, f.Line(spec.Pos()), "%s is a dependency without a reason: write one page in %s that "+
					"names it", module, decisions)
			}
		}
	}
}

// decisionNumbers wants each dated decision to have a number of its own: that is what others call it by.
func decisionNumbers(t *Tree) {
	seen := make(map[string]string)
	for _, f := range t.Files {
		number, _, ok := strings.Cut(path.Base(f.Path), "-")
		if f.Folder() != decisions || !ok {
			continue
		}
		if other := seen[number]; other != "" {
			t.find(f.Path, 0, "%s has this number: take the next free one", other)
		}
		seen[number] = f.Path
	}
}

// modules are the required modules of go.mod, without their versions.
func (t *Tree) modules() []string {
	var list []string
	for _, f := range t.Files {
		if f.Path != "go.mod" {
			continue
		}
		for line := range strings.Lines(f.Text) {
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
			if len(words) >= 2 && strings.HasPrefix(words[1], "v") {
				list = append(list, words[0])
			}
		}
	}
	return list
}

// moduleOf is the module that a package is of, "" for the standard library and our own. A module that go.mod does not
// know is named by the import itself.
func moduleOf(modules []string, imported string) string {
	if !strings.Contains(strings.Split(imported, "/")[0], ".") || under(imported, Module) {
		return ""
	}
	longest := ""
	for _, m := range modules {
		if under(imported, m) && len(m) > len(longest) {
			longest = m
		}
	}
	if longest == "" {
		return imported
	}
	return longest
}
