package permission

import (
	"errors"
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
	Name     string // the login
	Account  string // of NATS
	Password string // the environment variable that holds it
	NKey     string // the variable that holds the public nkey of a user that logs in with one; "": a password
	What     string // the user's role, for people
	Grant    Grant
}

// Users returns the users of a cell: every service, and these harnesses, people and operators. It fails on an invalid
// id, and when two users would have the same name.
func Users(c events.Cell, harnesses, people, operators []string) ([]User, error) {
	var all []User
	for _, s := range Services() {
		all = append(
			all,
			User{
				Name:     events.ServiceName(s),
				Account:  Account,
				Password: variableOf(s),
				What:     "the service " + s,
				Grant:    Service(c, s),
			},
		)
	}
	var wrong error
	add := func(name, variable, what string, g Grant, err error) {
		wrong = errors.Join(wrong, err)
		all = append(
			all,
			User{Name: name, Account: Account + "-" + name, Password: variableOf(variable), What: what, Grant: g},
		)
	}
	for _, id := range harnesses {
		g, err := Harness(c, id)
		add("harness-"+id, "harness_"+id, "the harness "+id, g, err)
	}
	for _, p := range people {
		g, err := Person(c, p)
		add(p, "person_"+p, "a person", g, err)
	}
	for _, p := range operators {
		g, err := Operator(c, p)
		add(p, "person_"+p, "an operator", g, err)
	}
	if wrong != nil {
		return nil, wrong
	}
	for i := range all {
		for j := range all[:i] {
			if all[i].Name == all[j].Name || all[i].Password == all[j].Password {
				return nil, fmt.Errorf(
					"permission: %s and %s: two users would share the name, or the variable %s",
					all[j].Name,
					all[i].Name,
					all[i].Password,
				)
			}
		}
	}
	return all, nil
}

// unnameable matches characters that a variable's name cannot contain.
var unnameable = regexp.MustCompile(`[^A-Z0-9]+`)

// Prefixes of the variables of passwords and of public nkeys.
const (
	PasswordPrefix = "HOLDFAST_PASSWORD_"
	nkeyPrefix     = "HOLDFAST_NKEY_"
)

// AllUsers stands for the names of all users.
const AllUsers = "*"

// WithNKeys changes the users of these names to log in with nkeys in place of passwords. It fails on a name that no
// user has.
func WithNKeys(users []User, names []string) error {
	for _, name := range names {
		found := false
		for i := range users {
			if name == AllUsers || name == users[i].Name {
				users[i].NKey = nkeyPrefix + strings.TrimPrefix(users[i].Password, PasswordPrefix)
				found = true
			}
		}
		if !found {
			return fmt.Errorf("permission: no user has the name %q", name)
		}
	}
	return nil
}

func variableOf(name string) string {
	return PasswordPrefix + unnameable.ReplaceAllString(strings.ToUpper(name), "_")
}

// Limits of one user.
const (
	connectionsMax   = 256     // processes of a harness, or programs of a person
	subscriptionsMax = 100_000 // of all connections together
	payloadBytesMax  = 1 << 20 // of one message: a commit has at most half of it
)

// answersWithin is how long the broker routes replies back to a client: a rebuild reads the whole log.
const answersWithin = "15m"

// Conf returns the accounts of these users in the configuration format of nats-server.
func Conf(users []User) string {
	var b strings.Builder
	var services, streams []string // exports that other accounts import
	for _, u := range users {
		if u.Account != Account {
			services, streams = append(services, widest(u.Grant.Publish)...), append(streams, u.Grant.Listen...)
		}
	}
	fmt.Fprintf(&b, "accounts {\n  %s {\n    jetstream: enabled\n    users: [\n", Account)
	for _, u := range users {
		if u.Account == Account {
			writeUser(&b, u)
		}
	}
	b.WriteString("    ]\n    exports: [\n")
	for _, s := range sorted(services) {
		fmt.Fprintf(&b, "      { service: %q%s }\n", s, answersOf(s))
	}
	for _, s := range sorted(streams) {
		fmt.Fprintf(&b, "      { stream: %q }\n", s)
	}
	b.WriteString("    ]\n  }\n")
	for _, u := range users {
		if u.Account == Account {
			continue
		}
		fmt.Fprintf(
			&b,
			"  %q {\n    limits: { max_connections: %d, max_subscriptions: %d, max_payload: %d, max_leafnodes: 0 "+
				"}\n    users: [\n",
			u.Account,
			connectionsMax,
			subscriptionsMax,
			payloadBytesMax,
		)
		writeUser(&b, u)
		b.WriteString("    ]\n    imports: [\n")
		for _, s := range widest(u.Grant.Publish) {
			fmt.Fprintf(&b, "      { service: { account: %s, subject: %q } }\n", Account, s)
		}
		for _, s := range sorted(u.Grant.Listen) {
			fmt.Fprintf(&b, "      { stream: { account: %s, subject: %q } }\n", Account, s)
		}
		b.WriteString("    ]\n  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// answersOf returns the response type of requests on this subject: a pull has many replies, and so has a call to all
// services.
func answersOf(subject string) string {
	switch {
	case strings.HasPrefix(subject, api+"CONSUMER.MSG.NEXT."), strings.HasPrefix(subject, "$SRV."):
		return ", response_type: stream"
	case strings.Contains(subject, ".svc."):
		return fmt.Sprintf(", threshold: %q", answersWithin)
	default:
		return ""
	}
}

func writeUser(b *strings.Builder, u User) {
	login := fmt.Sprintf("user: %q, password: $%s", u.Name, u.Password)
	if u.NKey != "" {
		login = "nkey: $" + u.NKey
	}
	fmt.Fprintf(b, "      # %s\n      { %s, permissions: {\n", u.What, login)
	b.WriteString("          publish: {\n")
	list(b, "allow", u.Grant.Publish)
	list(b, "deny", u.Grant.PublishDeny)
	b.WriteString("          }\n          subscribe: {\n")
	list(b, "allow", u.Grant.Subscribe)
	b.WriteString("          }\n      } }\n")
}

func list(b *strings.Builder, name string, subjects []string) {
	if len(subjects) == 0 {
		return
	}
	fmt.Fprintf(b, "            %s: [\n", name)
	for _, s := range sorted(subjects) {
		fmt.Fprintf(b, "              %q\n", s)
	}
	b.WriteString("            ]\n")
}

func sorted(subjects []string) []string {
	s := slices.Clone(subjects)
	slices.Sort(s)
	return slices.Compact(s)
}

// widest removes the patterns that another pattern covers. A message that matches two imports is imported twice.
func widest(patterns []string) []string {
	all := sorted(patterns)
	return slices.DeleteFunc(slices.Clone(all), func(p string) bool {
		return slices.ContainsFunc(all, func(q string) bool { return p != q && covers(q, p) })
	})
}

// covers reports whether pattern a matches every subject that pattern b matches.
func covers(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i, t := range as {
		switch {
		case t == ">":
			return len(bs) > i
		case i >= len(bs), bs[i] == ">", t != "*" && t != bs[i]:
			return false
		}
	}
	return len(as) == len(bs)
}
