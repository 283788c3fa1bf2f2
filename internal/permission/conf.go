package permission

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Accounts of the printed configuration.
const (
	Account  = "HOLDFAST"            // of the cell
	interest = Account + "_INTEREST" // without users, see writeInterest
)

// SystemAccount is the account in which the brokers answer about themselves, by its default name: a cluster that gets
// another one loses its streams, because nats-server keeps their state below this name.
const SystemAccount = "$SYS"

// ignored is the subject of the system account at which messages are dropped: it has no subscription.
const ignored = "holdfast.ignored"

// questions are the subjects of the system account that nats-server imports into every account that does not import
// them itself (registerSystemImports). They have no wildcards, so each of them makes a push consumer active, and the
// broker would answer each message of a stream without a bound on those that wait.
var questions = []string{"$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.ACCOUNT.PING.STATZ", "$SYS.REQ.SERVER.PING.CONNZ",
	"$SYS.REQ.USER.INFO"}

// User is one user of a cell.
type User struct {
	Name     string // the login
	Account  string // of NATS
	Password string // the environment variable that holds it
	NKey     string // the variable that holds the public nkey of a user that logs in with one; "": a password
	What     string // the user's role, for people
	Service  string // the service's name; "": no service
	Grant    Grant
}

// Copiers are the names of users that copy the cell.
type Copiers struct{ Backup, Restore []string }

// Users returns the users of a cell: every service, and these harnesses, people, operators and copiers. It fails on an
// invalid id, and when two users would have the same name.
func Users(c events.Cell, harnesses, people, operators []string, copiers ...Copiers) ([]User, error) {
	var all []User
	for _, s := range Services() {
		all = append(
			all,
			User{
				Name:     events.ServiceName(s),
				Account:  Account,
				Password: variableOf(s),
				What:     "the service " + s,
				Service:  s,
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
	for _, x := range copiers {
		for _, p := range x.Backup {
			g, err := Backup(c, p)
			add(p, "person_"+p, "backs the cell up", g, err)
		}
		for _, p := range x.Restore {
			g, err := Restore(c, p)
			add(p, "person_"+p, "restores the cell", g, err)
			// see Restore
			all[len(all)-1].Account = Account
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	for i := range all {
		for j := range all[:i] {
			if all[i].Name == all[j].Name || all[i].Password == all[j].Password {
				return nil, fmt.Errorf(
					"%s and %s: two users would share the name, or the variable %s",
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
			return fmt.Errorf("no user has the name %q", name)
		}
	}
	return nil
}

func variableOf(name string) string {
	return PasswordPrefix + unnameable.ReplaceAllString(strings.ToUpper(name), "_")
}

// Limits of one user.
const (
	connectionsMax   = 256       // processes of a harness, or programs of a person
	subscriptionsMax = 100_000   // of all connections together
	payloadBytesMax  = 576 << 10 // of one message: a commit has 512 KiB at most
)

// How long the broker routes replies back to a client. It keeps the reply subject of a request without a reply once or
// twice as long, and has no limit on their number.
const (
	answersWithin  = "30s" // of services: a request takes at most 10 s
	operatorWithin = "15m" // of services to operators: a rebuild reads the whole log
	foundWithin    = "10s" // of all services, from the last reply
)

// unansweredWithin is how long the broker remembers the reply subject of a message that has no reply. The broker has no
// limit on their number, and forgets them when it has waited once or twice as long.
const unansweredWithin = "1s"

// Conf returns the accounts of these users in the configuration format of nats-server.
func Conf(users []User) string {
	var b strings.Builder
	// exports that other accounts import
	var services, streams, slow []string
	for _, u := range users {
		slow = append(slow, u.Grant.Slow...)
		if u.Account != Account {
			services, streams = append(services, imported(u.Grant)...), append(streams, u.Grant.Listen...)
		}
	}
	b.WriteString("accounts {\n")
	writeQuestions(&b, users)
	fmt.Fprintf(&b, "  %s {\n    jetstream: enabled\n    users: [\n", Account)
	for _, u := range users {
		if u.Account == Account {
			writeUser(&b, u)
		}
	}
	b.WriteString("    ]\n    exports: [\n")
	for _, s := range sorted(services) {
		fmt.Fprintf(&b, "      { service: %q%s }\n", s, answersOf(s, slices.Contains(slow, s)))
	}
	for _, s := range sorted(streams) {
		fmt.Fprintf(&b, "      { stream: %q }\n", s)
	}
	b.WriteString("    ]\n")
	writeImports(&b, users)
	b.WriteString("  }\n")
	writeInterest(&b, streams)
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
		b.WriteString("    ]\n")
		if len(u.Grant.Serve) > 0 {
			b.WriteString("    exports: [\n")
			for _, s := range sorted(u.Grant.Serve) {
				fmt.Fprintf(&b, "      { service: %q, accounts: [%s] }\n", s, Account)
			}
			b.WriteString("    ]\n")
		}
		b.WriteString("    imports: [\n")
		for _, q := range u.Grant.Brokers {
			writeQuestion(&b, q)
		}
		for _, s := range imported(u.Grant) {
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

// writeQuestions writes the system account, with the subjects at which the brokers answer about themselves.
func writeQuestions(b *strings.Builder, users []User) {
	// that ask, by subject
	accounts := map[string][]string{}
	for _, u := range users {
		for _, q := range u.Grant.Brokers {
			accounts[q.Exported] = append(accounts[q.Exported], fmt.Sprintf("%q", u.Account))
		}
	}
	fmt.Fprintf(b, "  # which connections have ended, and which consumers are in no list\n  %q {\n    exports: [\n",
		SystemAccount)
	for _, s := range slices.Sorted(maps.Keys(accounts)) {
		fmt.Fprintf(b, "      { service: %q, response_type: stream, accounts: [%s] }\n", s,
			strings.Join(sorted(accounts[s]), ", "))
	}
	fmt.Fprintf(b, "      { service: %q, accounts: [%s], threshold: %q }\n    ]\n  }\n", ignored, Account,
		unansweredWithin)
}

// writeQuestion writes the import of a question.
func writeQuestion(b *strings.Builder, q Question) {
	fmt.Fprintf(b, "      { service: { account: %q, subject: %q }, to: %q }\n", SystemAccount, q.Exported, q.Imported)
}

// writeImports writes the imports of the cell's account: the subjects that users serve. An imported service is a
// subscription of the account itself, with the wildcard of the import, whatever its user subscribes to. An imported
// stream would be a subscription with the text of the user's own, and one without a wildcard makes a push consumer
// active. The imports of inboxes are those of writeInterest. Those of the broker's questions take the place of its own.
func writeImports(b *strings.Builder, users []User) {
	b.WriteString("    imports: [\n")
	for _, q := range questions {
		fmt.Fprintf(b, "      { service: { account: %q, subject: %q }, to: %q }\n", SystemAccount, ignored, q)
	}
	var inboxes []string
	for _, u := range users {
		for _, q := range u.Grant.Brokers {
			if u.Account == Account {
				writeQuestion(b, q)
			}
		}
		for _, s := range sorted(u.Grant.Serve) {
			fmt.Fprintf(b, "      { service: { account: %q, subject: %q } }\n", u.Account, s)
		}
		inboxes = append(inboxes, u.Grant.Listen...)
	}
	for _, s := range sorted(inboxes) {
		fmt.Fprintf(b, "      { service: { account: %q, subject: %q }, to: %q }\n", interest, dropped(s), s)
	}
	b.WriteString("    ]\n")
}

// writeInterest writes an account without users, from which the cell's account imports the inboxes of people. These
// imports are interest in each inbox at all times, so the broker refuses to move a push consumer from an inbox to
// another delivery subject. The messages go to the broker's API, where each node drops them, and count as delivered:
// after a delivery to no one, the broker would take the import for a subscriber, and keep the consumer for ever.
func writeInterest(b *strings.Builder, inboxes []string) {
	if len(inboxes) == 0 {
		return
	}
	fmt.Fprintf(b, "  %q {\n    jetstream: enabled\n    exports: [\n", interest)
	for _, s := range sorted(inboxes) {
		fmt.Fprintf(b, "      { service: %q, accounts: [%s], threshold: %q }\n", dropped(s), Account, unansweredWithin)
	}
	b.WriteString("    ]\n  }\n")
}

// dropped returns the subjects of the broker's API at which the messages to an inbox are dropped. The API has no verb
// that begins with INBOX.
func dropped(inbox string) string { return api + strings.TrimPrefix(inbox, "_") }

// imported returns the subjects of the cell's account that a user publishes to. A user publishes within its own account
// to the subjects that it serves, and to the questions to the brokers.
func imported(g Grant) []string {
	return slices.DeleteFunc(widest(g.Publish), func(s string) bool {
		return slices.ContainsFunc(g.Serve, func(own string) bool { return covers(own, s) }) ||
			slices.ContainsFunc(g.Brokers, func(q Question) bool { return covers(q.Imported, s) })
	})
}

// answersOf returns the response type of requests on this subject: a pull has many replies, and so has a call to all
// services. The token behind the cell's prefix is the subject's class; an id of the same text may follow it.
func answersOf(subject string, slow bool) string {
	_, class, _ := strings.Cut(subject, ".")
	var within string
	switch {
	case strings.HasPrefix(subject, api+"CONSUMER.MSG.NEXT."):
		// a pull may wait for two minutes
		return ", response_type: stream"
	case strings.HasPrefix(subject, "$SRV."):
		return fmt.Sprintf(", response_type: stream, threshold: %q", foundWithin)
	case strings.HasPrefix(class, "progress."):
		within = unansweredWithin
	case strings.HasPrefix(class, "svc.") && slow:
		within = operatorWithin
	case strings.HasPrefix(class, "svc."):
		within = answersWithin
	default:
		return ""
	}
	return fmt.Sprintf(", threshold: %q", within)
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
