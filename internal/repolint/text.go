package repolint

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The words are put together here so that this file does not say them itself.
var (
	leftToDo  = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	workplace = regexp.MustCompile(`(^|[^A-Za-z0-9_.-])/wo` + `rk/|(^|[^A-Za-z0-9_])\.lib` + `rary\b`)
)

// foreignWords are files that record what others wrote.
func foreignWords(name string) bool {
	return inTestdata(name) || path.Base(name) == "go.sum"
}

// nothingLeft finds promises to do something later.
func nothingLeft(t *Tree) {
	t.search(leftToDo, "do it now or write an issue: what is half done is not done", foreignWords)
}

// noWorkplace finds names of the machine that the files were written on.
func noWorkplace(t *Tree) {
	t.search(workplace, "this names a place on one machine", nowhere)
}

func nowhere(string) bool { return false }

func (t *Tree) search(words *regexp.Regexp, why string, except func(name string) bool) {
	for _, f := range t.Files {
		if except(f.Path) || !utf8.ValidString(f.Text) {
			continue
		}
		for _, at := range words.FindAllStringIndex(f.Text, -1) {
			t.find(f.Path, 1+strings.Count(f.Text[:at[0]], "\n"), "%s", why)
		}
	}
}
