package permission

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func cell(t *testing.T) events.Cell {
	t.Helper()
	c, err := events.NewCell("dev")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Who may append under whose name is what the table of kinds says, and nobody has two names.
func TestEveryWriterHasItsPlaceInTheLog(t *testing.T) {
	c := cell(t)
	h, err := Harness(c, "agent 1")
	if err != nil {
		t.Fatal(err)
	}
	grants := map[string]Grant{string(events.WriterHarness): h, "person": Person(c), "operator": Operator(c), "stranger": Service(c, "stranger")}
	for _, s := range Services() {
		grants[s] = Service(c, s)
	}
	said := map[string]bool{}
	for _, spec := range events.Table() {
		for _, w := range spec.By {
			said[string(w)] = true
		}
	}
	for name, g := range grants {
		var log []string
		for _, p := range g.Publish {
			if strings.HasPrefix(p, "dev.log.") || p == ">" || p == "dev.>" {
				log = append(log, p)
			}
		}
		var want []string
		switch {
		case name == string(events.WriterHarness):
			want = []string{"dev.log.agent=201.*.harness"}
		case said[name]:
			want = []string{"dev.log.*.*." + name}
		}
		if !slices.Equal(log, want) {
			t.Errorf("%s appends to %v, want %v", name, log, want)
		}
	}
	if g := Service(c, "stranger"); len(g.Publish)+len(g.Subscribe) > 0 || g.Respond {
		t.Errorf("a service that is none: %+v", g)
	}
	if _, err := Harness(c, ""); err == nil {
		t.Error("a harness without an id")
	}
}

// Everything is of this cell, or of the API about its streams: nothing reaches another cell in the account.
func TestNothingBeyondTheCell(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		for _, s := range slices.Concat(u.Grant.Publish, u.Grant.Subscribe) {
			ours := strings.HasPrefix(s, "dev.") || strings.HasPrefix(s, "_INBOX.dev.") || strings.HasPrefix(s, "$SRV.") || s == "$JS.API.INFO" ||
				strings.Contains(s, "DEV_") || strings.Contains(s, "_dev_") || strings.Contains(s, "dev_")
			if !ours {
				t.Errorf("%s: %s", u.Name, s)
			}
		}
	}
}

func TestUsersAreToldApart(t *testing.T) {
	c := cell(t)
	for _, names := range [][3][]string{{{"a", "a"}}, {{"a-b", "a_b"}}, {nil, {"ann"}, {"ann"}}, {nil, {"holdfast-ledger"}}} {
		if _, err := Users(c, names[0], names[1], names[2]); err == nil || !strings.Contains(err.Error(), "two users would share") {
			t.Errorf("%v: %v", names, err)
		}
	}
}
