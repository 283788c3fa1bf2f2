package permission

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// RouteDeny returns the subjects to which no node reports a message that its author asked to trace: those at which the
// report would be stored in place of what another user or a service wrote.
//
// A node checks the report's subject against the permissions of the connection from which it has the message. A route
// has none by default, and nats-server 2.15.2 keeps the author's request on messages between nodes. The permissions of
// a route also decide which subscriptions it carries. So each subject here is longer than the subscriptions of the
// streams, or has a literal token where they have a wildcard, and matches none of them. Not covered are keys of one
// token, which nothing here has, and commits under the name of a writer that does not exist.
func RouteDeny(c events.Cell) []string {
	var all []string
	for _, w := range events.Writers() {
		all = append(all, c.Prefix()+".log.*.*."+string(w))
	}
	for _, b := range []string{c.StateBucket(), c.LeaseBucket()} {
		all = append(all, "$KV."+b+".*.>")
	}
	for _, class := range []string{events.ClassHarness, events.ClassPerson, events.ClassService} {
		all = append(all, "$O."+c.ObjectBucket()+".C."+class+".*.*", "$O."+c.ObjectBucket()+".M."+class+".*.*")
	}
	for _, s := range slices.Concat(c.TimerSubjects(), []string{c.FeedSubjects(), c.ParkedSubjects()}) {
		all = append(all, s[:len(s)-1]+"*.>")
	}
	return all
}
