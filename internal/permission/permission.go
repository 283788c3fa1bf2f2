// Package permission computes what each user of a secured cell may do, as accounts and permissions of a NATS server.
//
// The table of kinds decides who may append under which writer's name: a service without a kind of its own cannot write
// to the log. The rest follows from the owners in the contract's table of names: the ledger owns documents and views, a
// holder owns its lease, a service owns its alarms.
//
//	service    appends under its own writer to every session; creates the streams; uses its own durable consumers
//	harness    appends as the harness to its own sessions; holds its own leases; reads its sessions and its work
//	person     calls the services; reads documents, views, leases, log and feed; writes nothing itself
//	operator   a person who may also rebuild, sweep, and read parked input
//	backup     reads what a backup has, and writes nothing
//	restore    makes the streams of a cell that does not exist; it changes and removes none
//
// Permissions apply to the subject that a client publishes to. They do not apply to the reply subject that it names:
// the broker sends acknowledgements and API responses there under its own authority. So the cell's account, which has
// the streams, is for services only. Each harness, person and operator has an account of its own and imports the
// subjects that it may publish to. A reply then goes to the account of the client that sent the request, which has no
// other users.
//
// Not guaranteed: a user who may read single messages of a stream may read all of them, so users of one cell can read
// each other's facts. Users who must not see each other need cells in different accounts.
package permission

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// Grant lists what one user may publish and subscribe to. Subjects are NATS patterns; deny takes precedence.
type Grant struct {
	Publish, PublishDeny []string
	Subscribe            []string
	// the subjects of Subscribe that are published in the cell's account; the others are replies. A subscription to one
	// of Listen is interest in the cell's account with the same text; a subscription to one of Serve is not.
	Listen, Serve []string
	// the subjects of Publish whose requests may take as long as a rebuild
	Slow    []string
	Brokers []Question // what the brokers answer, imported for this user
}

// Question is a subject of the system account at which the brokers answer about themselves, and the subject to which it
// is imported. Both have a wildcard: an import without one makes a push consumer active, and the consumer of a harness
// would ask all brokers with each message.
type Question struct{ Exported, Imported string }

// connections asks about the connections of all accounts.
func connections(c events.Cell) Question { return Question{presence.Exported, presence.Imported(c)} }

// consumers asks about the cell's account, with the consumers that the broker does not list elsewhere.
func consumers(c events.Cell) Question {
	return Question{"$SYS.REQ.ACCOUNT." + Account + ".*", consumer.Imported(c)}
}

// Services returns the names of the services in the order of the contract: all writers but the harness.
func Services() []string {
	var names []string
	for _, w := range events.Writers() {
		if w != events.WriterHarness {
			names = append(names, string(w))
		}
	}
	return names
}

// names has a cell's streams and the durable consumers that only their service may use.
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

// streams returns all streams of the cell.
func (n names) streams() []string {
	return []string{n.LogStream(), n.state, n.leases, n.objects, n.TimerStream(), n.FeedStream(), n.ParkedStream()}
}

// Durable is a consumer that one service reads from.
type Durable struct{ Service, Stream, Name string }

// Durables returns the consumers of a cell's services.
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

// acks returns the subjects of acknowledgements of a consumer's messages, in both forms of nats-server: with the names
// of stream and consumer only, and with a domain and an account before them. A form has exactly so many tokens (the
// second may grow), because an acknowledgement also pulls messages: a pattern that matched the other form would reach
// the consumers of others. The numbers are deliveries, the place in the stream, that of the consumer, time, pending.
func acks(stream, consumer string) []string {
	at := stream + "." + consumer
	return []string{"$JS.ACK." + at + ".*.*.*.*.*", "$JS.ACK.*.*." + at + ".*.*.*.*.>"}
}

// consumes returns the subjects to make, use and delete consumers of a stream. Their names are not granted one by one,
// because they follow from a key that only the service has; a service's grant denies the names that others have without
// a key.
func consumes(stream string) []string {
	all := acks(stream, "*")
	for _, verb := range []string{"CREATE.%s.*", "CREATE.%s.*.>", "INFO.%s.*", "MSG.NEXT.%s.*", "RESET.%s.*",
		"UNPIN.%s.*", "DELETE.%s.*"} {
		all = append(all, api+"CONSUMER."+fmt.Sprintf(verb, stream))
	}
	return all
}

// others returns the API subjects about the durables of other services. They are denied to users that may create
// consumers of any name.
func (n names) others(service string) []string {
	deny := n.taken(service)
	for _, d := range Durables(n.Cell) {
		if d.Service != service {
			deny = append(deny, removes(d.Stream, d.Name))
		}
	}
	return deny
}

// taken returns the API subjects that make, or pull from, the durables of other services.
func (n names) taken(service string) []string {
	var deny []string
	for _, d := range Durables(n.Cell) {
		if d.Service != service {
			at := d.Stream + "." + d.Name
			deny = append(deny, api+"CONSUMER.CREATE."+at, api+"CONSUMER.CREATE."+at+".>", api+"CONSUMER.MSG.NEXT."+at)
		}
	}
	return deny
}

// removes returns the subject that removes a consumer of a stream.
func removes(stream, name string) string { return api + "CONSUMER.DELETE." + stream + "." + name }

// reads returns the subjects to get single messages of a stream from its leader.
func reads(streams ...string) []string {
	var all []string
	for _, s := range streams {
		all = append(all, api+"STREAM.MSG.GET."+s)
	}
	return all
}

// anyOne is the filter of a consumer that has one filter, whatever it is.
const anyOne = ">"

// follows returns the subjects to create consumers with these filters on a stream; without filters, any consumer, also
// one with a list of filters in the body. The broker compares each filter of a list with each other, without a limit,
// so users have the form with the filter in the subject, which takes no list.
func follows(stream string, filters ...string) []string {
	all := []string{api + "CONSUMER.MSG.NEXT." + stream + ".*", removes(stream, "*")}
	if len(filters) == 0 {
		return append(all, api+"CONSUMER.CREATE."+stream+".*", api+"CONSUMER.CREATE."+stream+".*.>")
	}
	for _, f := range filters {
		all = append(all, api+"CONSUMER.CREATE."+stream+".*."+f)
	}
	return all
}

// may reports whether the table of kinds has a fact for this writer.
func may(w events.Writer) bool {
	return slices.ContainsFunc(events.Table(), func(s events.Spec) bool { return s.May(w) })
}

// Service returns the grant of a service's processes. An unknown name gets an empty grant.
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
			events.RepliesAcrossAccounts(), // replies to itself, and to users of other accounts
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
		if d.Service == name {
			g.Publish = append(g.Publish, consumes(d.Stream)...)
			continue
		}
		at := d.Stream + "." + d.Name
		g.PublishDeny = append(g.PublishDeny, api+"CONSUMER.INFO."+at, api+"CONSUMER.RESET."+at,
			api+"CONSUMER.UNPIN."+at)
		g.PublishDeny = append(g.PublishDeny, acks(d.Stream, d.Name)...)
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
		// to read an alarm that is set
		g.Publish = append(g.Publish, reads(n.TimerStream())...)
	}
	if name == string(events.WriterReconciler) {
		n.reconciles(&g)
	}
	micro := events.ServiceName(name)
	g.Subscribe = []string{inbox, c.ServiceSubject(name, ">"), c.Prefix() + ".progress.*.*",
		"$SRV.*", "$SRV.*." + micro, "$SRV.*." + micro + ".*"}
	return g
}

// reconciles grants what only the reconciler does: it ends leases and consumers of users.
func (n names) reconciles(g *Grant) {
	g.Publish = append(g.Publish,
		api+"STREAM.PURGE."+n.leases,                           // to remove leases of a harness that has too many
		"$KV."+n.LeaseBucket()+"."+events.HarnessLeaseKeys(""), // to end the lease of a connection that has ended
		presence.Subject(n.Cell), consumer.Subject(n.Cell))
	// to delete consumers of users
	for _, s := range []string{n.objects, n.FeedStream(), n.ParkedStream()} {
		g.Publish = append(g.Publish, api+"CONSUMER.CREATE."+s+".*.>", removes(s, "*"))
	}
	// to look at them
	for _, s := range n.streams() {
		g.Publish = append(g.Publish, api+"CONSUMER.INFO."+s+".*")
	}
	g.Brokers = []Question{connections(n.Cell), consumers(n.Cell)}
}

// stores returns the subjects to store objects, and to read those of all users. An object's name follows from its
// content, so a user cannot replace another user's object.
func (n names) stores(who events.Asker) []string {
	b := n.ObjectBucket()
	return append(reads(n.objects), api+"STREAM.INFO."+n.objects, object.Chunks(b, object.OwnID(who.Tokens(), "*")),
		"$O."+b+".M."+object.OwnID(who.Tokens(), "*"))
}

// Harness returns the grant of a harness's processes. They call one service only, to send messages.
func Harness(c events.Cell, id string) (Grant, error) {
	t, err := events.Token(id)
	if err != nil {
		return Grant{}, fmt.Errorf("harness %q: %w", id, err)
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
	}}
	for _, v := range request.Table() {
		if v.Harness {
			g.Publish = append(g.Publish, c.AskSubject(v.Service, v.Verb, who))
		}
	}
	g.Publish = append(g.Publish, reads(n.LogStream(), n.state, n.leases)...)
	g.Publish = append(g.Publish, n.stores(who)...)
	g.Publish = append(g.Publish, follows(n.LogStream(), c.Prefix()+".log."+t+".>")...)
	g.Publish = append(g.Publish, follows(n.state, kv+events.SessionKeys(id), kv+events.WorkKeys(id))...)
	g.Serve = []string{c.NudgeFilter(id)}
	g.Subscribe = append([]string{events.Inbox(c.Prefix(), events.ClassHarness, id) + ".>"}, g.Serve...)
	return g, nil
}

// Person returns the grant of a person's programs. It fails on a name that cannot be a token.
func Person(c events.Cell, name string) (Grant, error) {
	if _, err := events.Token(name); err != nil {
		return Grant{}, fmt.Errorf("person %q: %w", name, err)
	}
	n, who := namesOf(c), events.Asker{Class: events.ClassPerson, ID: name}
	g := Grant{PublishDeny: n.others(""), Publish: []string{api + "INFO", "$SRV.>", c.AskSubject("*", "*", who)}}
	for _, v := range request.Table() {
		if v.Operator {
			g.PublishDeny = append(g.PublishDeny, c.AskSubject(v.Service, v.Verb, who))
		}
	}
	for _, s := range n.streams() {
		g.Publish = append(g.Publish, api+"STREAM.INFO."+s)
	}
	for _, s := range []string{n.LogStream(), n.state, n.leases, n.FeedStream()} {
		g.Publish = append(g.Publish, slices.Concat(reads(s), follows(s, anyOne))...)
	}
	g.Publish = append(g.Publish, n.stores(who)...)
	g.Publish = append(g.Publish, acks(n.FeedStream(), "*")...)
	// NATS clients watch a bucket with a push consumer, and have to answer its flow control.
	g.Publish = append(g.Publish, "$JS.FC."+n.state+".*.*", "$JS.FC."+n.leases+".*.*")
	g.Listen = []string{events.Inbox(c.Prefix(), events.ClassPerson, name) + ".>"}
	g.Subscribe = slices.Clone(g.Listen)
	return g, nil
}

// Operator returns the grant of a person who may also rebuild, sweep, read parked input, and remove consumers, also
// those of services: one that a service has left behind, or that belongs to no program.
func Operator(c events.Cell, name string) (Grant, error) {
	g, err := Person(c, name)
	n := namesOf(c)
	g.PublishDeny = n.taken("")
	g.Slow = []string{c.AskSubject("*", "*", events.Asker{Class: events.ClassPerson, ID: name})}
	g.Publish = append(g.Publish, slices.Concat(reads(n.ParkedStream()),
		follows(n.ParkedStream(), anyOne))...)
	// the streams whose consumers it may list and remove
	for _, s := range []string{n.LogStream(), n.state, n.leases, n.TimerStream()} {
		g.Publish = append(g.Publish, api+"CONSUMER.LIST."+s, removes(s, "*"))
	}
	// to see whether they keep up; it includes the pin of the active process
	for _, d := range Durables(c) {
		g.Publish = append(g.Publish, api+"CONSUMER.INFO."+d.Stream+"."+d.Name)
	}
	g.Publish, g.Brokers = append(g.Publish, consumer.Subject(c)), []Question{consumers(c)}
	return g, err
}

// kept returns the streams of a backup.
func (n names) kept() []string { return []string{n.LogStream(), n.objects, n.TimerStream(), n.leases} }

// Backup returns the grant of a program that backs the cell up. It reads through consumers: for a snapshot of the
// broker, the broker would publish each part of it to any subject that the request names.
func Backup(c events.Cell, name string) (Grant, error) {
	if _, err := events.Token(name); err != nil {
		return Grant{}, fmt.Errorf("backup %q: %w", name, err)
	}
	n := namesOf(c)
	g := Grant{PublishDeny: n.others(""), Publish: []string{api + "INFO"}}
	for _, s := range n.kept() {
		g.Publish = append(g.Publish, api+"STREAM.INFO."+s)
		g.Publish = append(g.Publish, slices.Concat(reads(s), follows(s, anyOne))...)
	}
	g.Subscribe = []string{events.Inbox(c.Prefix(), events.ClassPerson, name) + ".>"}
	return g, nil
}

// Restore returns the grant of a program that restores a cell. The broker refuses to restore a stream that exists. The
// truth of the cell is then what this user has restored, so the user is not there at other times. It is in the cell's
// account: nats-server 2.15.2 adds a header to each message that another account imports, and takes the header for a
// part of the restored stream.
func Restore(c events.Cell, name string) (Grant, error) {
	if _, err := events.Token(name); err != nil {
		return Grant{}, fmt.Errorf("restore %q: %w", name, err)
	}
	n := namesOf(c)
	g := Grant{Publish: []string{api + "INFO"}}
	for _, s := range n.streams() {
		g.Publish = append(g.Publish, api+"STREAM.INFO."+s)
	}
	for _, s := range n.kept() {
		g.Publish = append(g.Publish, api+"STREAM.RESTORE."+s, "$JS.SNAPSHOT.RESTORE."+s+".*")
	}
	g.Subscribe = []string{events.Inbox(c.Prefix(), events.ClassPerson, name) + ".>"}
	return g, nil
}
