package permission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// copiers are the users that copy a cell.
var copiers = Copiers{Backup: []string{"b"}, Restore: []string{"r"}}

func cell(t *testing.T) events.Cell {
	t.Helper()
	c, err := events.NewCell("dev")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The table of kinds decides who may append under whose name, and no user has two writers.
func TestEveryWriterHasItsPlaceInTheLog(t *testing.T) {
	c := cell(t)
	h, err := Harness(c, "agent 1")
	if err != nil {
		t.Fatal(err)
	}
	person, err := Person(c, "ann")
	operator, err2 := Operator(c, "root")
	copying, err3 := Backup(c, "b")
	restoring, err4 := Restore(c, "r")
	if err = errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	grants := map[string]Grant{
		string(events.WriterHarness): h,
		"person":                     person,
		"operator":                   operator,
		"backup":                     copying,
		"restore":                    restoring,
		"stranger":                   Service(c, "stranger"),
	}
	for _, s := range Services() {
		grants[s] = Service(c, s)
	}
	listed := map[string]bool{}
	for _, spec := range events.Table() {
		for _, w := range spec.By {
			listed[string(w)] = true
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
		case listed[name]:
			want = []string{"dev.log.*.*." + name}
		}
		if !slices.Equal(log, want) {
			t.Errorf("%s appends to %v, want %v", name, log, want)
		}
	}
	if g := Service(c, "stranger"); len(g.Publish)+len(g.Subscribe) > 0 {
		t.Errorf("an unknown service: %+v", g)
	}
	if _, err := Harness(c, ""); err == nil {
		t.Error("a harness without an id")
	}
	if _, err := Person(c, ""); err == nil {
		t.Error("a person without a name")
	}
	if _, err := Users(c, nil, nil, nil, Copiers{Backup: []string{""}, Restore: []string{""}}); err == nil {
		t.Error("copiers without names")
	}
}

// TestNoUserPublishesForAnother: a user publishes below its own name only. Of the verbs a harness has those of the
// table, a person all but those of operators, and one that copies the cell none.
func TestNoUserPublishesForAnother(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	askers := map[string]events.Asker{"harness-h": {Class: events.ClassHarness, ID: "h"},
		"p": {Class: events.ClassPerson, ID: "p"}, "o": {Class: events.ClassPerson, ID: "o"}, "b": {}, "r": {}}
	others := []string{"dev.log.x.s.harness", "dev.log.h.s.ledger", "$KV.dev_state.session.h.s",
		"$KV.dev_state.work.h.s", "$KV.dev_leases.harness.x.1", "$KV.dev_leases.ticket.x",
		"$KV.dev_leases.service.retry.1", "$KV.dev_leases.claim.1", "$O.dev_objects.C.1", "$O.dev_objects.M.1",
		"dev.timer.retry.h.s", "dev.due.retry.h.s", "dev.feed.session.opened", "dev.parked.malformed.h.s",
		"dev.nudge.x", "dev.progress.x.s"}
	for _, who := range []string{"harness.x", "person.x", "service.ledger"} {
		others = append(others, "$O.dev_objects.C."+who+".1", "$O.dev_objects.M."+who+".1")
	}
	for _, s := range namesOf(c).streams() {
		for _, verb := range []string{"PURGE", "DELETE", "UPDATE", "CREATE", "MSG.DELETE", "SNAPSHOT"} {
			others = append(others, "$JS.API.STREAM."+verb+"."+s)
		}
	}
	for _, u := range users {
		if u.Service != "" {
			continue
		}
		may := func(subject string) bool {
			by := func(p string) bool { return covers(p, subject) }
			return slices.ContainsFunc(u.Grant.Publish, by) && !slices.ContainsFunc(u.Grant.PublishDeny, by)
		}
		for _, s := range others {
			if may(s) {
				t.Errorf("%s may publish to %s", u.Name, s)
			}
		}
		own := askers[u.Name]
		for _, v := range request.Table() {
			want := own.Class == events.ClassHarness && v.Harness || u.Name == "o" || u.Name == "p" && !v.Operator
			if got := own.ID != "" && may(c.AskSubject(v.Service, v.Verb, own)); got != want {
				t.Errorf("%s may ask for %s %s: %v", u.Name, v.Service, v.Verb, got)
			}
			for _, who := range []events.Asker{{}, {Class: events.ClassHarness, ID: "x"},
				{Class: events.ClassPerson, ID: "x"}} {
				if s := c.AskSubject(v.Service, v.Verb, who); may(s) {
					t.Errorf("%s may publish to %s", u.Name, s)
				}
			}
		}
	}
}

// TestRouteDeny: no report of a traced message is stored at a subject that another user or a service writes, and a
// route carries each subscription of the cell. The broker compares its text, wildcards included, with what is denied.
func TestRouteDeny(t *testing.T) {
	c := cell(t)
	denied := func(text string) bool {
		return slices.ContainsFunc(RouteDeny(c), func(p string) bool {
			at := strings.Split(text, ".")
			for i, token := range strings.Split(p, ".") {
				if token == ">" {
					return len(at) > i
				}
				if i >= len(at) || token != "*" && token != at[i] {
					return false
				}
			}
			return len(at) == strings.Count(p, ".")+1
		})
	}
	for _, subject := range []string{"dev.log.x.s.harness", "dev.log.x.s.ledger", "dev.log.x.s.reconciler",
		"$KV.dev_state.session.x.s", "$KV.dev_state.work.x.s", "$KV.dev_state.blocker.x.s.p",
		"$KV.dev_leases.harness.x.1", "$KV.dev_leases.ticket.x", "$KV.dev_leases.service.retry.1",
		"$O.dev_objects.C.harness.x.1", "$O.dev_objects.M.harness.x.1", "$O.dev_objects.M.person.x.1",
		"dev.timer.retry.x.s", "dev.due.retry.x.s", "dev.feed.session.opened", "dev.parked.malformed.x.s"} {
		if !denied(subject) {
			t.Errorf("a report is stored at %s", subject)
		}
	}
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{c.LogSubjects(), "$KV.dev_state.>", "$KV.dev_leases.>", "$O.dev_objects.C.*",
		"$O.dev_objects.M.*", "$O.dev_objects.C.*.*.*", "$O.dev_objects.M.*.*.*", c.FeedSubjects(), c.ParkedSubjects()}
	texts = append(texts, c.TimerSubjects()...)
	for _, u := range users {
		texts = append(texts, u.Grant.Subscribe...)
	}
	for _, text := range texts {
		if denied(text) {
			t.Errorf("no route carries the subscription to %s", text)
		}
	}
}

// TestLimitsOfAnAccount: each user that is not a service has limits of its own, so that no connection of one takes what
// those of others need.
func TestLimitsOfAnAccount(t *testing.T) {
	users, err := Users(cell(t), []string{"h"}, []string{"p"}, []string{"o"}, Copiers{Backup: []string{"b"}})
	if err != nil {
		t.Fatal(err)
	}
	const limits = "limits: { max_connections: 256, max_subscriptions: 100000, max_payload: 589824, max_leafnodes: 0 }"
	if n := strings.Count(Conf(users), limits); n != 4 {
		t.Errorf("%d of 4 accounts have %s:\n%s", n, limits, Conf(users))
	}
}

// Every subject is of this cell, or of the API about its streams: no user reaches another cell in the account.
func TestNothingBeyondTheCell(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		for _, s := range slices.Concat(u.Grant.Publish, u.Grant.Subscribe) {
			ours := strings.HasPrefix(s, "dev.") || strings.HasPrefix(s, "_INBOX.dev.") ||
				strings.HasPrefix(s, "$SRV.") || s == "$JS.API.INFO" || s == "_R_.>" ||
				strings.Contains(s, "DEV_") || strings.Contains(s, "_dev_") ||
				strings.Contains(s, "dev_")
			if !ours {
				t.Errorf("%s: %s", u.Name, s)
			}
		}
	}
}

func TestUsersAreDistinguished(t *testing.T) {
	c := cell(t)
	for _, names := range [][3][]string{{{"a", "a"}}, {{"a-b", "a_b"}}, {nil, {"ann"}, {"ann"}},
		{nil, {"holdfast-ledger"}}} {
		if _, err := Users(c, names[0], names[1], names[2]); err == nil ||
			!strings.Contains(err.Error(), "two users would share") {
			t.Errorf("%v: %v", names, err)
		}
	}
}

// Only the user of a durable acknowledges its messages: an acknowledgement can also pull the next ones. The broker
// accepts both forms of the subject.
func TestAcknowledgementsReachOwnConsumersOnly(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, u := range users {
		for _, d := range Durables(c) {
			at := d.Stream + "." + d.Name
			for _, subject := range []string{"$JS.ACK." + at + ".*.*.*.*.*", "$JS.ACK.*.*." + at + ".*.*.*.*.>"} {
				owner := u.Name == events.ServiceName(d.Service)
				granted := slices.ContainsFunc(u.Grant.Publish, func(p string) bool {
					return strings.HasPrefix(p, "$JS.ACK.") &&
						meet(strings.Split(p, "."), strings.Split(subject, "."))
				}) && !slices.Contains(u.Grant.PublishDeny, subject)
				if granted != owner {
					t.Errorf("%s: it may publish to %s: %v, want %v", u.Name, subject, granted, owner)
				}
				if owner {
					own++
				}
			}
		}
	}
	if want := 2 * len(Durables(c)); own != want {
		t.Errorf("%d forms have an owner, want %d", own, want)
	}
}

// The information about a durable includes the pin with which its messages can be pulled: only its service reads it,
// and operators.
func TestPinsAreForOwnersAndOperators(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		for _, d := range Durables(c) {
			want := u.Name == "o" || u.Name == events.ServiceName(d.Service)
			got := slices.ContainsFunc(u.Grant.Publish, func(p string) bool {
				return covers(p, api+"CONSUMER.INFO."+d.Stream+"."+d.Name)
			}) && !slices.Contains(u.Grant.PublishDeny, api+"CONSUMER.INFO."+d.Stream+"."+d.Name)
			if got != want {
				t.Errorf("%s: it may read the pin of %s: %v, want %v", u.Name, d.Name, got, want)
			}
		}
	}
}

// Consumers whose names follow from a key are used by services of their stream only: no user has a subject that pulls
// from them by a pin, acknowledges, moves or unpins, whatever the name is.
func TestKeyedConsumersAreForServices(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, u := range users {
		for _, d := range Durables(c) {
			at := d.Stream + "." + d.Name + "-0123456789abcdef01234567"
			for _, subject := range []string{api + "CONSUMER.INFO." + at, api + "CONSUMER.RESET." + at,
				api + "CONSUMER.UNPIN." + at, "$JS.ACK." + at + ".1.2.3.4.5",
				"$JS.ACK.domain.account." + at + ".1.2.3.4.5.6"} {
				got := slices.ContainsFunc(u.Grant.Publish, func(p string) bool { return covers(p, subject) })
				switch owner := u.Name == events.ServiceName(d.Service); {
				case owner && !got:
					t.Errorf("%s may not use its consumer: %s", u.Name, subject)
				case got && u.Account != Account:
					t.Errorf("%s: %s", u.Name, subject)
				case owner:
					uses++
				}
			}
		}
	}
	if want := 5 * len(Durables(c)); uses != want {
		t.Errorf("%d subjects of owners, want %d", uses, want)
	}
}

// Operators remove consumers that no program uses, with each name that a service's consumer has or had. Other users
// do not remove a consumer whose name they can guess.
func TestOperatorsRemoveConsumers(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if u.Account == Account {
			// a service, which removes its own
			continue
		}
		for _, d := range Durables(c) {
			may := func(name string) bool {
				subject := api + "CONSUMER.DELETE." + d.Stream + "." + name
				return slices.ContainsFunc(u.Grant.Publish, func(p string) bool { return covers(p, subject) }) &&
					!slices.Contains(u.Grant.PublishDeny, subject)
			}
			operator := u.Name == "o"
			if may(d.Name) != operator || operator && !may(d.Name+"-0123456789abcdef01234567") {
				t.Errorf("%s: it may remove %s: %v", u.Name, d.Name, may(d.Name))
			}
		}
	}
}

// A service removes its own consumer if it has the state of a deleted one, on each stream that the service consumes.
func TestServicesRemoveTheirConsumers(t *testing.T) {
	c := cell(t)
	for _, d := range Durables(c) {
		g := Service(c, d.Service)
		for _, name := range []string{d.Name, d.Name + "-0123456789abcdef01234567"} {
			subject := api + "CONSUMER.DELETE." + d.Stream + "." + name
			if !slices.ContainsFunc(g.Publish, func(p string) bool { return covers(p, subject) }) ||
				slices.Contains(g.PublishDeny, subject) {
				t.Errorf("%s may not remove %s of %s", d.Service, name, d.Stream)
			}
		}
	}
}

// TestTheReconcilerDeletesConsumersOfUsers: the reconciler looks at each consumer of a user, claims its name and
// deletes it, on every stream. It has no right over the consumers of other services, and no other service may do this.
func TestTheReconcilerDeletesConsumersOfUsers(t *testing.T) {
	c := cell(t)
	for _, service := range Services() {
		g := Service(c, service)
		may := func(subject string) bool {
			by := func(p string) bool { return covers(p, api+"CONSUMER."+subject) }
			return slices.ContainsFunc(g.Publish, by) && !slices.ContainsFunc(g.PublishDeny, by)
		}
		all := 0
		for _, s := range namesOf(c).streams() {
			verbs := []string{"INFO." + s + ".any", "CREATE." + s + ".any.>", "DELETE." + s + ".any"}
			missing := slices.DeleteFunc(verbs, may)
			if len(missing) == 0 {
				all++
			} else if service == string(events.WriterReconciler) {
				t.Errorf("the reconciler may not ask for %q", missing)
			}
		}
		if service != string(events.WriterReconciler) && all == len(namesOf(c).streams()) {
			t.Errorf("%s may delete consumers of every stream", service)
		}
		for _, d := range Durables(c) {
			at := d.Stream + "." + d.Name
			for _, verb := range []string{"INFO.", "CREATE.", "DELETE."} {
				if may(verb+at) && d.Service != service {
					t.Errorf("%s may send %s%s, the consumer of %s", service, verb, at, d.Service)
				}
			}
			if may("CREATE."+at+".>") && d.Service != service {
				t.Errorf("%s may make the consumer %s of %s", service, d.Name, d.Service)
			}
		}
	}
}

// The broker compares each filter of a list with each other, without a limit. Only services may send a list: a request
// with the filter in its subject takes none.
func TestListsOfFiltersAreForServices(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		for _, s := range namesOf(c).streams() {
			for _, request := range []string{"CREATE." + s, "CREATE." + s + ".any", "DURABLE.CREATE." + s + ".any"} {
				granted := slices.ContainsFunc(u.Grant.Publish, func(p string) bool {
					return covers(p, api+"CONSUMER."+request)
				})
				if granted && u.Account != Account {
					t.Errorf("%s may create a consumer with many filters: %s", u.Name, request)
				}
			}
		}
	}
}

// A subscription of a harness is no interest in the cell's account, where interest with exactly the delivery subject
// makes a push consumer active: no harness imports a stream. The account itself subscribes for it, with a wildcard.
func TestNoSubscriptionOfAHarnessIsInterest(t *testing.T) {
	users, err := Users(cell(t), []string{"h"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf := Conf(users)
	if strings.Contains(conf, "{ stream: ") {
		t.Errorf("a harness imports a stream:\n%s", conf)
	}
	for _, want := range []string{`{ service: { account: "HOLDFAST-harness-h", subject: "dev.*.h" } }`,
		`{ service: "dev.*.h", accounts: [HOLDFAST] }`, `{ service: "dev.progress.h.*", threshold: "1s" }`} {
		if !strings.Contains(conf, want) {
			t.Errorf("no %s:\n%s", want, conf)
		}
	}
	if strings.Contains(conf, `{ service: "dev.nudge.h" }`) {
		t.Error("a harness publishes its nudges beyond its own account: that is a cycle of imports")
	}
}

// The inbox of a person always has interest in the cell's account, beside the person's own subscription: an import with
// a wildcard. The broker's API drops the messages of the import, in an account without users; they count as delivered.
func TestInboxesOfPeopleAlwaysHaveInterest(t *testing.T) {
	users, err := Users(cell(t), []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	conf := Conf(users)
	for _, id := range []string{"p", "o"} {
		inbox := "INBOX.dev.person." + id + ".>"
		for _, want := range []string{
			`{ service: { account: "HOLDFAST_INTEREST", subject: "$JS.API.` + inbox + `" }, to: "_` + inbox + `" }`,
			`{ service: "$JS.API.` + inbox + `", accounts: [HOLDFAST], threshold: "1s" }`,
		} {
			if strings.Count(conf, want) != 1 {
				t.Errorf("not once %s:\n%s", want, conf)
			}
		}
	}
	if !strings.Contains(conf, "\"HOLDFAST_INTEREST\" {\n    jetstream: enabled\n    exports: [") {
		t.Errorf("the account has no API that drops messages:\n%s", conf)
	}
	users, err = Users(cell(t), []string{"h"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if conf := Conf(users); strings.Contains(conf, interest) {
		t.Errorf("an account for no inbox:\n%s", conf)
	}
}

// TestQuestionsOfTheBrokerAreIgnored: the cell's account imports each of them from a subject that nothing answers.
func TestQuestionsOfTheBrokerAreIgnored(t *testing.T) {
	users, err := Users(cell(t), []string{"h"}, []string{"p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf := Conf(users)
	for _, want := range []string{`{ service: "holdfast.ignored", accounts: [HOLDFAST], threshold: "1s" }`,
		`{ service: { account: "$SYS", subject: "holdfast.ignored" }, to: "$SYS.REQ.ACCOUNT.PING.CONNZ" }`,
		`{ service: { account: "$SYS", subject: "holdfast.ignored" }, to: "$SYS.REQ.ACCOUNT.PING.STATZ" }`,
		`{ service: { account: "$SYS", subject: "holdfast.ignored" }, to: "$SYS.REQ.SERVER.PING.CONNZ" }`,
		`{ service: { account: "$SYS", subject: "holdfast.ignored" }, to: "$SYS.REQ.USER.INFO" }`} {
		if strings.Count(conf, want) != 1 {
			t.Errorf("not once %s:\n%s", want, conf)
		}
	}
}

// TestQuestionsToTheBrokers: the reconciler asks about connections, and it and operators about the consumers of the
// cell's account. An import has a wildcard, so it makes no push consumer active, and no other user imports one or may
// publish there.
func TestQuestionsToTheBrokers(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	subjects := []string{"dev.broker.connections.PING", "dev.broker.account.JSZ"}
	for _, u := range users {
		want := map[string][]string{"o": subjects[1:], "holdfast-reconciler": subjects}[u.Name]
		var got []string
		for _, s := range subjects {
			if slices.ContainsFunc(u.Grant.Publish, func(p string) bool { return covers(p, s) }) {
				got = append(got, s)
			}
		}
		if !slices.Equal(got, want) || len(u.Grant.Brokers) != len(want) {
			t.Errorf("%s asks %q by %v, want %q", u.Name, got, u.Grant.Brokers, want)
		}
		for _, q := range u.Grant.Brokers {
			if !strings.Contains(q.Exported, "*") || !strings.HasSuffix(q.Imported, ".*") {
				t.Errorf("%s: %+v has no wildcard", u.Name, q)
			}
		}
	}
	conf := Conf(users)
	const exported, imported = `{ service: "$SYS.REQ.ACCOUNT.HOLDFAST.*", response_type: stream, ` +
		`accounts: ["HOLDFAST", "HOLDFAST-o"] }`,
		`{ service: { account: "$SYS", subject: "$SYS.REQ.ACCOUNT.HOLDFAST.*" }, to: "dev.broker.account.*" }`
	if strings.Count(conf, exported) != 1 || strings.Count(conf, imported) != 2 {
		t.Errorf("not once %s, or not twice %s:\n%s", exported, imported, conf)
	}
}

// A message that matches two imports is imported twice.
func TestImportsDoNotOverlap(t *testing.T) {
	users, err := Users(cell(t), []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if u.Account == Account {
			// no imports
			continue
		}
		imports := append(imported(u.Grant), u.Grant.Serve...)
		for _, q := range u.Grant.Brokers {
			imports = append(imports, q.Imported)
		}
		for i, a := range imports {
			for _, b := range imports[:i] {
				if meet(strings.Split(a, "."), strings.Split(b, ".")) {
					t.Errorf("%s: %s and %s match the same subjects", u.Name, a, b)
				}
			}
		}
		for _, p := range u.Grant.Publish {
			if !slices.ContainsFunc(imports, func(w string) bool { return w == p || covers(w, p) }) {
				t.Errorf("%s: no import covers %s", u.Name, p)
			}
		}
	}
}

// meet reports whether some subject matches both patterns.
func meet(a, b []string) bool {
	switch {
	case len(a) == 0 || len(b) == 0:
		return len(a) == len(b)
	case a[0] == ">" || b[0] == ">":
		return true
	case a[0] != b[0] && a[0] != "*" && b[0] != "*":
		return false
	}
	return meet(a[1:], b[1:])
}

// The cell's account has services only: its users can name any reply subject in it.
func TestTheCellsAccountIsForServices(t *testing.T) {
	users, err := Users(cell(t), []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	accounts := map[string]string{}
	for _, u := range users {
		// it is there for a restore
		inside := strings.HasPrefix(u.Name, "holdfast-") || u.Name == copiers.Restore[0]
		if inside != (u.Account == Account) || (u.Service != "") != strings.HasPrefix(u.Name, "holdfast-") {
			t.Errorf("%s has the account %s", u.Name, u.Account)
		}
		if other, taken := accounts[u.Account]; taken && u.Account != Account {
			t.Errorf("%s and %s share the account %s", other, u.Name, u.Account)
		}
		accounts[u.Account] = u.Name
	}
	if conf := Conf(users); strings.Contains(conf, "allow_responses") {
		t.Error("a service may answer on every subject that a request names")
	}
}

// Users that are named, or all of them, log in with nkeys. The permissions stay the same.
func TestWithNKeys(t *testing.T) {
	users := func() []User {
		all, err := Users(cell(t), []string{"my agent"}, []string{"ann"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	plain, some, all := users(), users(), users()
	err1, err2 := WithNKeys(some, []string{"ann", "harness-my agent"}), WithNKeys(all, []string{AllUsers})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := WithNKeys(users(), []string{"bob"}); err == nil {
		t.Error("a user that does not exist has an nkey")
	}
	for conf, passwords := range map[string]int{Conf(plain): len(plain), Conf(some): len(plain) - 2, Conf(all): 0} {
		if strings.Count(conf, "password: $") != passwords || strings.Count(conf, "nkey: $") != len(plain)-passwords {
			t.Errorf("want %d of %d users with passwords:\n%s", passwords, len(plain), conf)
		}
	}
	if want := `{ nkey: $HOLDFAST_NKEY_PERSON_ANN, permissions: {`; !strings.Contains(Conf(some), want) {
		t.Errorf("no %s", want)
	}
	rest := strings.NewReplacer(
		`user: "ann", password: $HOLDFAST_PASSWORD_PERSON_ANN`, "nkey: $HOLDFAST_NKEY_PERSON_ANN",
		`user: "harness-my agent", password: $HOLDFAST_PASSWORD_HARNESS_MY_AGENT`,
		"nkey: $HOLDFAST_NKEY_HARNESS_MY_AGENT")
	if rest.Replace(Conf(plain)) != Conf(some) {
		t.Error("more than the login differs")
	}
}

// TestAHarnessNamedAsASubject: the time limits of replies depend on the class of a subject, not on an id in it.
func TestAHarnessNamedAsASubject(t *testing.T) {
	users, err := Users(cell(t), []string{"progress", "svc"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	limited := 0
	for line := range strings.Lines(Conf(users)) {
		if !strings.Contains(line, "threshold:") || strings.Contains(line, "$SRV.>") ||
			strings.Contains(line, ignored) {
			continue
		}
		limited++
		if !strings.Contains(line, `"dev.progress.`) && !strings.Contains(line, `"dev.svc.`) {
			t.Errorf("a limit for another subject: %s", line)
		}
	}
	if limited == 0 {
		t.Error("no subject has a limit")
	}
}

// TestReplySubjectsAreForgottenSoon: the broker keeps the reply subject of a request without a reply for a time that
// fits the longest request of the user: only operators may rebuild.
func TestReplySubjectsAreForgottenSoon(t *testing.T) {
	users, err := Users(cell(t), []string{"h"}, []string{"ann"}, []string{"root"})
	if err != nil {
		t.Fatal(err)
	}
	conf := Conf(users)
	for _, want := range []string{`{ service: "dev.svc.*.*.ann", threshold: "30s" }`,
		`{ service: "dev.svc.compaction.send.harness.h", threshold: "30s" }`,
		`{ service: "dev.svc.*.*.root", threshold: "15m" }`,
		`{ service: "$SRV.>", response_type: stream, threshold: "10s" }`} {
		if !strings.Contains(conf, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestTheSystemAccountKeepsItsName: nats-server stores the state of a cluster below the name of its system account. A
// cluster that restarts with another name deletes its streams.
func TestTheSystemAccountKeepsItsName(t *testing.T) {
	users, err := Users(cell(t), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf := Conf(users)
	if !strings.Contains(conf, "\n  \"$SYS\" {\n") || strings.Contains(conf, "system_account") {
		t.Errorf("the configuration changes the system account:\n%s", conf)
	}
}

// The users that copy a cell have least rights: a backup stores nothing and has the broker store nothing, a restore
// makes streams and neither changes nor removes one. Only they restore, and only what a backup has.
func TestCopiersHaveLeastRights(t *testing.T) {
	c := cell(t)
	users, err := Users(c, []string{"h"}, []string{"p"}, []string{"o"}, copiers)
	if err != nil {
		t.Fatal(err)
	}
	reads := []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.", "$JS.API.STREAM.MSG.GET.", "$JS.API.CONSUMER.CREATE.",
		"$JS.API.CONSUMER.DELETE.", "$JS.API.CONSUMER.MSG.NEXT."}
	restores := []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.", "$JS.API.STREAM.RESTORE.", "$JS.SNAPSHOT.RESTORE."}
	for _, u := range users {
		for _, s := range u.Grant.Publish {
			begins := func(with string) bool { return strings.HasPrefix(s, with) }
			switch {
			case u.Name == "b" && !slices.ContainsFunc(reads, begins),
				u.Name == "r" && !slices.ContainsFunc(restores, begins),
				u.Name != "r" && (begins("$JS.API.STREAM.RESTORE.") || begins("$JS.SNAPSHOT.")),
				begins("$JS.API.STREAM.SNAPSHOT"), begins("$JS.API.STREAM.DELETE"),
				begins("$JS.API.STREAM.RESTORE.KV_dev_state"), begins("$JS.API.STREAM.RESTORE.DEV_FEED"):
				t.Errorf("%s: it may publish to %s", u.Name, s)
			}
		}
		if copies := u.Name == "b" || u.Name == "r"; copies && (len(u.Grant.Listen)+len(u.Grant.Serve) > 0 ||
			!slices.Equal(u.Grant.Subscribe, []string{"_INBOX.dev.person." + u.Name + ".>"})) {
			t.Errorf("%s: it may subscribe to %q", u.Name, u.Grant.Subscribe)
		}
	}
}
