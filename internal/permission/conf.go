package permission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Account is the name of the NATS account in the printed configuration.
const Account = "HOLDFAST"

// User is one user of a cell.
type User struct {
	Name     string // to log in with
	Password string // the variable of the environment that holds it
	What     string // for people: who that is
	Grant    Grant
}

// Users are those of a cell: every service, and these harnesses, people and operators. It fails on an id that cannot be
// one, and when two users would have the same name.
func Users(c events.Cell, harnesses, people, operators []string) ([]User, error) {
	var all []User
	add := func(name, variable, what string, g Grant) {
		all = append(all, User{Name: name, Password: variableOf(variable), What: what, Grant: g})
	}
	for _, s := range Services() {
		add(events.ServiceName(s), s, "the service "+s, Service(c, s))
	}
	for _, id := range harnesses {
		g, err := Harness(c, id)
		if err != nil {
			return nil, err
		}
		add("harness-"+id, "harness_"+id, "the harness "+id, g)
	}
	for _, p := range people {
		add(p, "person_"+p, "a person", Person(c))
	}
	for _, p := range operators {
		add(p, "person_"+p, "an operator", Operator(c))
	}
	for i := range all {
		for j := range all[:i] {
			if all[i].Name == all[j].Name || all[i].Password == all[j].Password {
				return nil, fmt.Errorf("permission: %s and %s: two users would share the name, or the variable %s", all[j].Name, all[i].Name, all[i].Password)
			}
		}
	}
	return all, nil
}

// unnameable is what a variable's name cannot have.
var unnameable = regexp.MustCompile(`[^A-Z0-9]+`)

func variableOf(name string) string {
	return "HOLDFAST_PASSWORD_" + unnameable.ReplaceAllString(strings.ToUpper(name), "_")
}

// Conf is these users as an account in a nats-server's configuration.
func Conf(users []User) string {
	var b strings.Builder
	fmt.Fprintf(&b, "accounts {\n  %s {\n    jetstream: enabled\n    users: [\n", Account)
	for _, u := range users {
		fmt.Fprintf(&b, "      # %s\n      { user: %q, password: $%s, permissions: {\n", u.What, u.Name, u.Password)
		b.WriteString("          publish: {\n")
		list(&b, "allow", u.Grant.Publish)
		list(&b, "deny", u.Grant.PublishDeny)
		b.WriteString("          }\n          subscribe: {\n")
		list(&b, "allow", u.Grant.Subscribe)
		b.WriteString("          }\n")
		if u.Grant.Respond {
			fmt.Fprintf(&b, "          allow_responses: { max: 1, expires: %q }\n", respondWithin)
		}
		b.WriteString("      } }\n")
	}
	b.WriteString("    ]\n  }\n}\n")
	return b.String()
}

func list(b *strings.Builder, name string, subjects []string) {
	if len(subjects) == 0 {
		return
	}
	sorted := slices.Clone(subjects)
	slices.Sort(sorted)
	fmt.Fprintf(b, "            %s: [\n", name)
	for _, s := range slices.Compact(sorted) {
		fmt.Fprintf(b, "              %q\n", s)
	}
	b.WriteString("            ]\n")
}
