package repolint

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Pages that citations point to.
const (
	behaviourPage = "docs/behaviours.md"
	contractPage  = "docs/contract.md"
)

var (
	// cited matches the id of a behaviour or invariant, and a section of the contract.
	cited = regexp.MustCompile(`\b[PRTCNV][1-9][0-9]?\b|§[1-9](\.[1-9])?`)

	// anchor matches an explicit anchor of a page.
	anchor = regexp.MustCompile(`<a id="([^"]+)"></a>`)

	// elsewhere matches names of pages that are not in the repository. The words are put together from parts,
	// so that this file does not match.
	elsewhere = regexp.MustCompile(`\.\./sha` + `red\b|` +
		`\b(CONTR` + `ACT|BEHAVI` + `OURS|DES` + `IGN)\b(\.md|,? table|,? §)`)

	// decisionCited matches a decision record that is named by the number in its file name.
	decisionCited = regexp.MustCompile(`docs/adr/([0-9]{4})\b`)

	// link matches the target of a Markdown link.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

	// named matches a file or folder of this repository that a page names as code.
	named = regexp.MustCompile("`(pkg|internal|services|harness|bridges|cmd|test|deploy|docs|examples)" +
		"/[A-Za-z0-9_./-]+`")

	// marker matches what begins a line of a comment in scripts, configuration and styles.
	marker = regexp.MustCompile(`(?m)^[ \t]*(//|#|/?\*)[ \t]*`)

	fence = regexp.MustCompile("(?ms)^```.*?^```")
)

// AnchorOf returns the anchor of a cited id: "p14" for P14, "s2.1" for section 2.1 of the contract.
func AnchorOf(id string) string {
	if section, ok := strings.CutPrefix(id, "§"); ok {
		return "s" + section
	}
	return strings.ToLower(id)
}

// Cited returns the ids that a text cites, each once, in their order.
func Cited(text string) []string {
	var ids []string
	for _, id := range cited.FindAllString(text, -1) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// citations reports every citation that leads nowhere: the id of a behaviour or a section without an anchor, a
// decision without a page, a link or a name without a file, a page outside the repository.
func citations(t *Tree) {
	anchors := t.anchors()
	for _, f := range t.Files {
		if inTestdata(f.Path) && !strings.HasSuffix(f.Path, ".story") {
			continue
		}
		for _, p := range f.prose() {
			p.each(cited, func(id string, line int) {
				if page := pageOf(id); anchors[page] != nil && !anchors[page][AnchorOf(id)] {
					t.find(f.Path, line, "%s has no anchor in %s: cite an id that is there, or add it", id, page)
				}
			})
			p.each(decisionCited, func(name string, line int) {
				if !t.hasDecision(path.Base(name)) {
					t.find(f.Path, line, "there is no %s: cite the number of a decision that is there", name)
				}
			})
			// a record names what there was then
			if path.Ext(f.Path) == ".md" && f.Folder() != decisions {
				p.each(named, func(name string, line int) {
					name = strings.Trim(name, "`")
					if !t.has(name) && !t.hasFolder(path.Clean(name)) && !decisionCited.MatchString(name) {
						t.find(f.Path, line, "there is no %s: name what is there", name)
					}
				})
			}
			p.each(elsewhere, func(name string, line int) {
				t.find(f.Path, line, "%q is not in the repository: cite %s or %s", name, contractPage, behaviourPage)
			})
		}
		t.links(f, anchors)
	}
}

// pageOf returns the page that has the anchor of an id.
func pageOf(id string) string {
	if strings.HasPrefix(id, "§") {
		return contractPage
	}
	return behaviourPage
}

// lineFeeds returns the line feeds of a text alone, so that the lines behind it keep their numbers.
func lineFeeds(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }

// anchors returns the anchors of each page.
func (t *Tree) anchors() map[string]map[string]bool {
	all := make(map[string]map[string]bool)
	for _, f := range t.Files {
		if path.Ext(f.Path) != ".md" {
			continue
		}
		all[f.Path] = make(map[string]bool)
		for _, m := range anchor.FindAllStringSubmatch(f.Text, -1) {
			all[f.Path][m[1]] = true
		}
		for line := range strings.Lines(fence.ReplaceAllString(f.Text, "")) {
			if strings.HasPrefix(line, "#") {
				all[f.Path][slug(line)] = true
			}
		}
	}
	return all
}

var (
	tag     = regexp.MustCompile(`<[^>]*>`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	mdLinks = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// slug returns the anchor that GitHub gives a heading.
func slug(heading string) string {
	text := strings.TrimSpace(strings.TrimLeft(heading, "#"))
	text = mdLinks.ReplaceAllString(tag.ReplaceAllString(text, ""), "$1")
	return strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")
}

func (t *Tree) hasDecision(number string) bool {
	return slices.ContainsFunc(t.Files, func(f *File) bool {
		return strings.HasPrefix(f.Path, decisions+"/"+number+"-")
	})
}

// links reports links of a page to files and headings that are not there.
func (t *Tree) links(f *File, anchors map[string]map[string]bool) {
	if path.Ext(f.Path) != ".md" {
		return
	}
	text := fence.ReplaceAllStringFunc(f.Text, lineFeeds)
	passage{text: text, first: 1}.each(link, func(found string, line int) {
		to := found[len("](") : len(found)-len(")")]
		target, heading, _ := strings.Cut(to, "#")
		if strings.Contains(target, ":") {
			// another site
			return
		}
		file := f.Path
		if target != "" {
			file = path.Join(f.Folder(), target)
		}
		switch {
		case !t.has(file) && !t.hasFolder(file):
			t.find(f.Path, line, "the link %s leads nowhere", to)
		case heading != "" && anchors[file] != nil && !anchors[file][heading]:
			t.find(f.Path, line, "%s has no heading or anchor %s", file, heading)
		}
	})
}

func (t *Tree) hasFolder(name string) bool {
	return slices.ContainsFunc(t.Files, func(f *File) bool { return under(f.Folder(), name) })
}

// passage is a piece of text that people read, and the line that it starts on.
type passage struct {
	text  string
	first int
}

// each calls visit with every match in a passage and the line that the match is on.
func (p passage) each(words *regexp.Regexp, visit func(match string, line int)) {
	for _, at := range words.FindAllStringIndex(p.text, -1) {
		visit(p.text[at[0]:at[1]], p.first+strings.Count(p.text[:at[0]], "\n"))
	}
}

// prose returns what people read in a file: the comments of Go, the opening of a story, the text of a page.
func (f *File) prose() []passage {
	switch {
	case f.Syntax != nil:
		return f.comments()
	case strings.HasSuffix(f.Path, ".story"):
		opening, _, _ := strings.Cut(f.Text, "\n\n")
		return []passage{{opening, 1}}
	case path.Ext(f.Path) == ".md":
		return []passage{{f.Text, 1}}
	case writtenHere(f.Path):
		return []passage{{marker.ReplaceAllString(f.Text, ""), 1}}
	default:
		return nil
	}
}

// comments returns the groups of comments, without the marks of comments.
func (f *File) comments() []passage {
	var all []passage
	for _, group := range f.Syntax.Comments {
		lines := strings.Builder{}
		for _, c := range group.List {
			lines.WriteString(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ") + "\n")
		}
		all = append(all, passage{lines.String(), f.Line(group.Pos())})
	}
	return all
}
