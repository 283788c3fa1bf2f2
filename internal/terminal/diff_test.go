package terminal

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestDiff: what a person sees of two places of a history, and that each change is named by its path: an ending by its
// id, and not by its place in a list that others push it down.
func TestDiff(t *testing.T) {
	all := later()
	at := func(seq int) *session.State {
		s := session.New(all[0].Ref)
		for i := range all[:seq] {
			s.Fold(&all[i])
		}
		return s
	}
	changes, err := Difference(at(5), at(9))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diff", Diff(changes, Style{}))
	if same, err := Difference(at(9), at(9)); err != nil || len(same) != 0 {
		t.Errorf("a document and itself differ: %+v, %v", same, err)
	}
	changes, err = Difference(at(9), at(12))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.MarshalIndent(changes, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diff-json", string(body)+"\n")
}
