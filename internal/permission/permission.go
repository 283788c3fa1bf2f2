// Package permission says what each user of a secured cell may do, as accounts and permissions of a NATS server.
//
// Who may append under which writer's name is taken from the table of kinds: a service that no kind of fact lists gets no
// place in the log. The rest follows from who owns what (the contract's table of names): documents and views are the
// ledger's, a lease is its holder's, alarms are their service's.
//
//	service    appends under its own writer to every session; sets the cell up; works on its own durable consumers
//	harness    appends as the harness to its own sessions; holds its own leases; reads its sessions and its work
//	person     asks the services; reads documents, views, leases, log and feed; writes nothing itself
//	operator   a person who may also rebuild, sweep, and look at what was parked
//
// Permissions bind the subject that a client publishes to. They do not bind the reply subject that it names, and the
// broker sends acknowledgements and answers of its API there, as itself. So the cell's account, which has the streams, is
// for services only. Each harness, person and operator has an account of its own and imports what it may publish to: a
// reply then goes to the account of the client that asked, where there is nothing but that client.
//
// Not promised: a user who may read single messages of a stream may read all of them, so users of one cell can read each
// other's facts. Users who must not know of each other need cells in different accounts.
package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Grant is what one user may do. Subjects are patterns of NATS; what is denied wins.
type Grant struct {
	Publish, PublishDeny []string
	Subscribe            []string
	Hear                 []string // the part of Subscribe that is published in the cell's account; the rest are replies
}

// Services are the names of the services, in the order of the contract: all writers but the harness.
func Services() []string {
	var names []string
	for _, w := range events.Writers() {
		if w != events.WriterHarness {
			names = append(names, string(w))
		}
	}
	return names
}

// names are a cell's streams, and the durable consumers that only their service may touch.
type names struct {
	events.Cell
	state, leases, objects string
}

func namesOf(c events.Cell) names {
	return names{
		Cell:    c,
		state:   "KV_" + c.StateBucket(),
		leases:  "KV_" + c.LeaseBucket(),
		objects: object.Stream(c.ObjectBucket()),
	}
}

// streams are all streams of the cell.
func (n names) streams() []string {
	return []string{n.LogStream(), n.state, n.leases, n.objects, n.TimerStream(), n.FeedStream(), n.ParkedStream()}
}

// Durable is a consumer that one service works on.
type Durable struct{ Service, Stream, Name string }

// Durables are the consumers of a cell's services.
func Durables(c events.Cell) []Durable {
	n := namesOf(c)
	var all []Durable
	for _, s := range Services() {
		if s == string(events.WriterLedger) {
			all = append(all, Durable{s, n.LogStream(), s})
			continue
		}
		all = append(all, Durable{s, n.state, s}, Durable{s, n.TimerStream(), s + "-due"})
	}
	return all
}

const api = "$JS.API."

// others are the API's subjects about durables of other services, for whoever may otherwise name consumers as it likes.
func (n names) others(service string) []string {
	var deny []string
	for _, d := range Durables(n.Cell) {
		if d.Service != service {
			at := d.Stream + "." + d.Name
			deny = append(
				deny,
				api+"CONSUMER.CREATE."+at,
				api+"CONSUMER.CREATE."+at+".>",
				api+"CONSUMER.MSG.NEXT."+at,
				api+"CONSUMER.DELETE."+at,
			)
		}
	}
	return deny
}

// reads are single messages of a stream, from its leader.
func reads(streams ...string) []string {
	var all []string
	for _, s := range streams {
		all = append(all, api+"STREAM.MSG.GET."+s)
	}
	return all
}

// follows are consumers on a stream that deliver what these filters match; none: everything.
func follows(stream string, filters ...string) []string {
	all := []string{api + "CONSUMER.MSG.NEXT." + stream + ".*", api + "CONSUMER.DELETE." + stream + ".*"}
	if len(filters) == 0 {
		return append(all, api+"CONSUMER.CREATE."+stream+".*", api+"CONSUMER.CREATE."+stream+".*.>")
	}
	for _, f := range filters {
		all = append(all, api+"CONSUMER.CREATE."+stream+".*."+f)
	}
	return all
}

// may is whether some kind of fact may be said by this writer.
func may(w events.Writer) bool {
	return slices.ContainsFunc(events.Table(), func(s events.Spec) bool { return s.May(w) })
}

// Service is what a process of this service may do. A name that is no service's may do nothing.
func Service(c events.Cell, name string) Grant {
	n := namesOf(c)
	if !slices.Contains(Services(), name) {
		return Grant{}
	}
	inbox := events.Inbox(c.Prefix(), events.ClassService, name) + ".>"
	g := Grant{
		PublishDeny: n.others(name),
		Publish: []string{
			api + "INFO",
			c.Prefix() + ".nudge.*",
			c.ServiceSubject(name, "*"),
			inbox,
			events.RepliesAcrossAccounts(), // replies: to itself, and to users of other accounts
			"$KV." + c.LeaseBucket() + "." + events.ServiceLeasePrefix(name) + "*",
			"$KV." + c.LeaseBucket() + "." + events.ClaimKey("*"),
		},
	}
	if may(events.Writer(name)) {
		g.Publish = append(g.Publish, c.Prefix()+".log.*.*."+name)
	}
	for _, s := range n.streams() {
		g.Publish = append(g.Publish, api+"STREAM.INFO."+s, api+"STREAM.CREATE."+s, api+"STREAM.UPDATE."+s)
	}
	for _, s := range []string{n.LogStream(), n.state, n.leases} {
		g.Publish = append(g.Publish, slices.Concat(reads(s), follows(s))...)
	}
	for _, d := range Durables(c) {
		if d.Service != name {
			continue
		}
		at := d.Stream + "." + d.Name
		for _, verb := range []string{"CREATE." + at, "CREATE." + at + ".>", "INFO." + at, "MSG.NEXT." + at,
			"RESET." + at, "UNPIN." + at} {
			g.Publish = append(g.Publish, api+"CONSUMER."+verb)
		}
		g.Publish = append(g.Publish, "$JS.ACK."+at+".>", "$JS.ACK.*.*."+at+".>")
	}
	g.Publish = append(g.Publish, reads(n.objects)...)
	if name == string(events.WriterLedger) {
		g.Publish = append(g.Publish, follows(n.objects)...)
		g.Publish = append(
			g.Publish,
			api+"STREAM.PURGE."+n.objects,
			"$KV."+c.StateBucket()+".>",
			c.FeedSubjects(),
			c.ParkedSubjects(),
			api+"STREAM.PURGE."+n.LogStream(),
		)
	} else {
		g.Publish = append(g.Publish, c.Prefix()+".timer."+name+".>", api+"STREAM.PURGE."+n.TimerStream())
		g.Publish = append(g.Publish, reads(n.TimerStream())...) // an alarm that is there already
	}
	micro := events.ServiceName(name)
	g.Subscribe = []string{inbox, c.ServiceSubject(name, ">"), c.Prefix() + ".progress.*.*",
		"$SRV.*", "$SRV.*." + micro, "$SRV.*." + micro + ".*"}
	return g
}

// stores is what it takes to store objects, and to read those of all users. An object's name follows from its content, and
// what this user stores under a name can replace nothing that another has stored under it.
func (n names) stores(who events.Asker) []string {
	b := n.ObjectBucket()
	return append(reads(n.objects), api+"STREAM.INFO."+n.objects, object.Chunks(b, object.OwnID(who.Tokens(), "*")),
		"$O."+b+".M."+object.OwnID(who.Tokens(), "*"))
}

// Harness is what processes of this harness may do; they ask one service only, to send messages.
func Harness(c events.Cell, id string) (Grant, error) {
	t, err := events.Token(id)
	if err != nil {
		return Grant{}, fmt.Errorf("permission: harness %q: %w", id, err)
	}
	n, who := namesOf(c), events.Asker{Class: events.ClassHarness, ID: id}
	kv := "$KV." + c.StateBucket() + "."
	lease := "$KV." + c.LeaseBucket() + "."
	g := Grant{PublishDeny: n.others(""), Publish: []string{
		api + "INFO",
		api + "STREAM.INFO." + n.LogStream(),
		c.Prefix() + ".log." + t + ".*." + string(events.WriterHarness),
		lease + events.TicketKey(id),
		lease + events.HarnessLeaseKeys(id),
		c.NudgeSubject(id),
		c.Prefix() + ".progress." + t + ".*",
		c.AskSubject(string(events.WriterCompaction), "send", who),
	}}
	g.Publish = append(g.Publish, reads(n.LogStream(), n.state, n.leases)...)
	g.Publish = append(g.Publish, n.stores(who)...)
	g.Publish = append(g.Publish, follows(n.LogStream(), c.Prefix()+".log."+t+".>")...)
	g.Publish = append(g.Publish, follows(n.state, kv+events.SessionKeys(id), kv+events.WorkKeys(id))...)
	g.Hear = []string{c.NudgeSubject(id)}
	g.Subscribe = append([]string{events.Inbox(c.Prefix(), events.ClassHarness, id) + ".>"}, g.Hear...)
	return g, nil
}

// verbsOfOperators are not for everybody: they make much work.
var verbsOfOperators = []string{"ledger.rebuild", "reconciler.sweep"}

// Person is what a person's programs may do. It fails on a name that cannot be a token.
func Person(c events.Cell, name string) (Grant, error) {
	if _, err := events.Token(name); err != nil {
		return Grant{}, fmt.Errorf("permission: person %q: %w", name, err)
	}
	n, who := namesOf(c), events.Asker{Class: events.ClassPerson, ID: name}
	g := Grant{PublishDeny: n.others(""), Publish: []string{api + "INFO", "$SRV.>", c.AskSubject("*", "*", who)}}
	for _, v := range verbsOfOperators {
		service, verb, _ := strings.Cut(v, ".")
		g.PublishDeny = append(g.PublishDeny, c.AskSubject(service, verb, who))
	}
	for _, s := range n.streams() {
		g.Publish = append(g.Publish, api+"STREAM.INFO."+s)
	}
	for _, s := range []string{n.LogStream(), n.state, n.leases, n.FeedStream()} {
		g.Publish = append(g.Publish, slices.Concat(reads(s), follows(s))...)
	}
	g.Publish = append(g.Publish, n.stores(who)...)
	for _, d := range Durables(c) {
		g.Publish = append(g.Publish, api+"CONSUMER.INFO."+d.Stream+"."+d.Name)
	}
	g.Publish = append(g.Publish, "$JS.ACK."+n.FeedStream()+".*.>", "$JS.ACK.*.*."+n.FeedStream()+".*.>")
	// Watchers of the NATS clients are pushed to, and have to confirm that they keep up.
	g.Publish = append(g.Publish, "$JS.FC."+n.state+".>", "$JS.FC."+n.leases+".>")
	g.Hear = []string{events.Inbox(c.Prefix(), events.ClassPerson, name) + ".>"}
	g.Subscribe = slices.Clone(g.Hear)
	return g, nil
}

// Operator is a person who may also rebuild and sweep, and read what was parked.
func Operator(c events.Cell, name string) (Grant, error) {
	g, err := Person(c, name)
	n := namesOf(c)
	g.PublishDeny = n.others("")
	g.Publish = append(g.Publish, slices.Concat(reads(n.ParkedStream()), follows(n.ParkedStream()))...)
	for _, s := range []string{n.LogStream(), n.state, n.leases, n.TimerStream()} { // whose consumers are they?
		g.Publish = append(g.Publish, api+"CONSUMER.LIST."+s)
	}
	return g, err
}
