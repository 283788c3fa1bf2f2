package reference

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// object is a JSON object; its keys are printed in order of the alphabet.
type object = map[string]any

// asyncAPI is everything on the wire of the cell with the default prefix, as AsyncAPI 3.0. Addresses come from
// [events.Cell], who says what from [events.Table]; data is described by the schema files beside it.
func asyncAPI() (object, error) {
	cell, err := events.NewCell(events.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	channels, operations := wireChannels(cell), operations()
	addServices(cell, channels, operations)
	return object{
		"asyncapi": "3.0.0",
		"info": object{
			"title":   "Holdfast",
			"version": "1",
			"description": "Facts about AI-agent sessions on NATS JetStream. A commit is one append to the log: a " +
				"CloudEvents JSON batch that stands or falls as a whole. Printed from the code; the prefix hf is " +
				"the cell's (flag --prefix).",
		},
		"defaultContentType": "application/json",
		"channels":           channels,
		"operations":         operations,
		"components":         object{"messages": messages(), "schemas": schemas()},
	}, nil
}

func ref(parts ...string) object { return object{"$ref": "#/" + strings.Join(parts, "/")} }

// commitOf is the name of the message that is a commit of this writer.
func commitOf(w events.Writer) string { return "commit-" + string(w) }

// address makes a template of a subject in which the placeholders stand for ids.
func address(subject string) (string, object) {
	parameters := object{}
	for _, name := range []string{"harness", "session", "writer", "kind", "what", "why", "root", "prompt"} {
		placeholder := strings.ToUpper(name)
		if strings.Contains(subject, placeholder) {
			subject = strings.Replace(subject, placeholder, "{"+name+"}", 1)
			parameters[name] = object{"description": parameterDocs[name]}
		}
	}
	return subject, parameters
}

// parameterDocs says what stands in a subject.
var parameterDocs = map[string]string{
	"harness": "The harness id, one token: bytes outside A–Z a–z 0–9 _ - are written =XX.",
	"session": "The session id, one token, encoded alike.",
	"writer":  "The writer: harness, ledger, retry, compaction or reconciler.",
	"kind":    "The kind of the facts, entity.verb.",
	"what":    "The sort of alarm.",
	"why":     "The class of the reason, one token.",
	"root":    "The outermost session, one token.",
	"prompt":  "The prompt id, one token.",
}

// placeholders in the names that a Cell builds; see address.
const (
	anyWriter = events.Writer("WRITER")
	anyKind   = events.Kind("KIND")
	anyHow    = "WHAT"
	anyWhy    = "WHY"
)

func wireChannels(c events.Cell) object {
	r := events.Ref{Harness: "HARNESS", Session: "SESSION"}
	state := "$KV." + c.StateBucket() + "."
	feed, commits := []string{}, []string{}
	for _, s := range events.Table() {
		feed = append(feed, string(s.Kind))
	}
	for _, w := range events.Writers() {
		commits = append(commits, commitOf(w))
	}
	return object{
		"log": channel(
			c.LogSubject(r, anyWriter),
			"Stream "+c.LogStream()+": the truth. Every commit carries Nats-Expected-Last-Subject-Sequence for "+
				""+c.LogGuard(
				events.Ref{Harness: "harness", Session: "session"},
			)+" and no Nats-Msg-Id.",
			commits...),
		"feed": channel(
			c.FeedSubject(anyKind),
			"Stream "+c.FeedStream()+": every fact that counted, once more, at least once, in log order within a "+
				"session.",
			feed...),
		"nudge": channel(
			c.NudgeSubject(r.Harness),
			"Core subject: a session of this harness changed, read now. A hint.",
			"nudge",
		),
		"progress": channel(
			c.ProgressSubject(r),
			"Core subject: the session is alive. At most one a second.",
			"progress",
		),
		"parked": channel(
			c.ParkedSubject(anyWhy, r),
			"Stream "+c.ParkedStream()+": input that could not be read, once for each commit and sort of trouble, "+
				"with its headers, Hf-Parked-Reason and Hf-Parked-Facts, for 30 days.",
			"parked",
		),
		"timer": channel(
			c.TimerSubject(anyHow, r),
			"Stream "+c.TimerStream()+": alarms that wait. Services only.",
			"timer",
		),
		"due": channel(
			c.DueSubject(anyHow, r),
			"Stream "+c.TimerStream()+": alarms that fired. They mean: look.",
			"timer",
		),
		"document": channel(
			state+events.SessionKey(r),
			"Bucket "+c.StateBucket()+": the whole state of a session.",
			"document",
		),
		"blocker": channel(
			state+events.BlockerKey(r.Harness, "ROOT", r.Session, "PROMPT"),
			"Bucket "+c.StateBucket()+": what waits for a person, with what was decided and whether the harness "+
				"has it.",
			"blocker",
		),
		"work": channel(
			state+events.WorkKey(r),
			"Bucket "+c.StateBucket()+": all that a harness was asked for in a session and has not yet taken.",
			"work",
		),
	}
}

func channel(subject, doc string, names ...string) object {
	template, parameters := address(subject)
	list := object{}
	for _, name := range names {
		list[name] = ref("components", "messages", name)
	}
	c := object{"address": template, "description": doc, "messages": list}
	if len(parameters) > 0 {
		c["parameters"] = parameters
	}
	return c
}

// operation returns one operation on a channel, with the messages of that channel that it is about (all by default).
func operation(action, channel, summary string, names ...string) object {
	o := object{"action": action, "channel": ref("channels", channel), "summary": summary}
	if len(names) > 0 {
		list := make([]any, len(names))
		for i, name := range names {
			list[i] = ref("channels", channel, "messages", name)
		}
		o["messages"] = list
	}
	return o
}

func operations() object {
	o := object{
		"ledger-folds":       operation("receive", "log", "The ledger folds the log into documents, views and feed."),
		"ledger-feeds":       operation("send", "feed", "The ledger repeats each fact that counted."),
		"ledger-stores":      operation("send", "document", "The ledger stores a session's document."),
		"people-watch":       operation("receive", "blocker", "A screen watches what waits for a person."),
		"harness-watches":    operation("receive", "work", "A harness watches what it is asked for."),
		"harness-is-nudged":  operation("receive", "nudge", "A harness hears that a session changed."),
		"harness-progresses": operation("send", "progress", "A harness says that a session is alive."),
		"service-parks":      operation("send", "parked", "A service puts unreadable input aside."),
		"service-arms":       operation("send", "timer", "A service asks to be woken."),
		"service-is-woken":   operation("receive", "due", "A service looks at a session again."),
	}
	for _, w := range events.Writers() {
		o[string(w)+"-appends"] = operation(
			"send",
			"log",
			"Commits of the "+string(w)+". A kind of event that it may not write is parked.",
			commitOf(w),
		)
	}
	return o
}

func addServices(c events.Cell, channels, operations object) {
	for _, v := range request.Table() {
		name := v.Service + "-" + v.Verb
		channels[name] = channel(
			c.ServiceSubject(v.Service, v.Verb),
			"Micro service "+events.ServiceName(v.Service)+".",
			name,
		)
		o := operation("receive", name, v.Doc, name)
		o["reply"] = object{"address": object{"location": "$message.header#/reply"}}
		operations[name] = o
	}
}

func messages() object {
	m := object{
		"nudge": message(
			"A session changed.",
			object{
				"type":       "object",
				"required":   []string{"session", "seq"},
				"properties": object{"session": object{"type": "string"}, "seq": object{"type": "integer"}},
			},
		),
		"progress": message("Nothing but its arrival.", object{"maxLength": 0}),
		"parked":   message("The original message, whatever it was.", object{}),
		"timer":    message("Nothing to rely on: what is due is in the document.", object{}),
		"document": message(
			"A session's state.",
			object{"type": "object", "required": []string{"v", "harness", "session", "phase", "epoch", "owned", "seq"}},
		),
		"blocker": message(
			"One prompt, for people.",
			object{"type": "object", "required": []string{"harness", "session", "root", "prompt", "kind", "status"}},
		),
		"work": message(
			"One session's work, for its harness.",
			object{"type": "object", "required": []string{"harness", "session", "epoch", "owned", "seq"}},
		),
	}
	for _, s := range events.Table() {
		fact := message(s.Doc, ref("components", "schemas", string(s.Kind)))
		fact["title"] = events.TypePrefix + string(s.Kind)
		fact["contentType"] = events.EventContentType
		m[string(s.Kind)] = fact
	}
	for _, w := range events.Writers() {
		m[commitOf(w)] = commit(w)
	}
	for _, v := range request.Table() {
		m[v.Service+"-"+v.Verb] = message(v.Doc, shape(reflect.TypeOf(v.Request)))
	}
	return m
}

func message(summary string, payload object) object {
	return object{"summary": summary, "payload": payload}
}

func commit(w events.Writer) object {
	var facts []any
	for _, s := range events.Table() {
		if s.May(w) {
			facts = append(facts, ref("components", "schemas", string(s.Kind)))
		}
	}
	m := message(
		"A commit of the "+string(w)+".",
		object{"type": "array", "minItems": 1, "maxItems": events.CommitFactsMax, "items": object{"anyOf": facts}},
	)
	m["contentType"] = events.BatchContentType
	return m
}

// shape returns the schema of a request: the names of its fields, and which of them are required.
func shape(typ reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" || !f.IsExported() {
			continue
		}
		properties[name] = property(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	o := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// property returns the schema of a field. Only lists of objects are described further.
func property(typ reflect.Type) object {
	if typ.Kind() == reflect.Slice && typ != reflect.TypeFor[json.RawMessage]() {
		items := object{}
		if typ.Elem().Kind() == reflect.Struct {
			items = shape(typ.Elem())
		}
		return object{"type": "array", "items": items}
	}
	return object{}
}

// schemas are the envelope and, on top of it, each kind.
func schemas() object {
	text := object{"type": "string", "minLength": 1}
	all := object{"envelope": object{
		"type":     "object",
		"required": []string{"specversion", "id", "source", "type", "session", "epoch"},
		"properties": object{
			"specversion": object{"const": "1.0"},
			"id": object{
				"type":        "string",
				"minLength":   1,
				"description": "Unique; the writer's choice, the same when it sends again.",
			},
			"source": object{
				"type":        "string",
				"minLength":   1,
				"description": "/harness/<id>/<incarnation>, /service/<name>/<instance> or /person/<name>.",
			},
			"type":            text,
			"subject":         object{"type": "string", "description": "The entity's id; for session.* the session's."},
			"time":            object{"type": "string", "format": "date-time"},
			"datacontenttype": object{"type": "string"},
			"session":         object{"type": "string", "minLength": 1, "description": "The session's id, unencoded."},
			"epoch": object{
				"type":        "integer",
				"minimum":     1,
				"description": "The ownership that the writer acts under.",
			},
			"traceparent": object{"type": "string", "description": "W3C trace context."},
			"derived": object{
				"type":        "boolean",
				"description": "In the feed only: closed by containment, without an event of a writer.",
			},
		},
	}}
	for _, s := range events.Table() {
		fact := object{"properties": object{
			"type": object{"const": events.TypePrefix + string(s.Kind)},
			"data": object{"$ref": "schemas/" + string(s.Kind) + ".json"},
		}}
		if slices.ContainsFunc(parseFields(dataOf[s.Kind]), func(f field) bool { return !f.optional }) {
			fact["required"] = []string{"data"}
		}
		all[string(s.Kind)] = object{"allOf": []any{ref("components", "schemas", "envelope"), fact}}
	}
	return all
}
