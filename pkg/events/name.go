package events

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TokenBytesMax is the maximum length of an encoded id, in bytes. An id is a token of a subject or of a key.
const TokenBytesMax = 128

// DefaultPrefix is the prefix of a cell by default.
const DefaultPrefix = "hf"

const hexDigits = "0123456789ABCDEF"

// Token encodes an id as one subject token: bytes outside A–Z a–z 0–9 _ - become =XX. It fails with [ErrMalformed]
// when the id is empty or longer than [TokenBytesMax] once encoded.
func Token(id string) (string, error) {
	extra := 0
	for i := range len(id) {
		if !plain(id[i]) {
			extra += 2
		}
	}
	switch n := len(id) + extra; {
	case n == 0:
		return "", fmt.Errorf("%w: an id is empty", ErrMalformed)
	case n > TokenBytesMax:
		return "", fmt.Errorf(
			"%w: an id is %d bytes long when encoded, at most %d are allowed: %.40q…",
			ErrMalformed,
			n,
			TokenBytesMax,
			id,
		)
	case extra == 0:
		return id, nil
	}
	var b strings.Builder
	b.Grow(len(id) + extra)
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('=')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String(), nil
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// ID decodes a token of [Token]. It fails with [ErrMalformed] on any other text.
func ID(token string) (string, error) {
	if !strings.Contains(token, "=") {
		if _, err := Token(token); err != nil {
			return "", err
		}
		if strings.IndexFunc(token, func(r rune) bool { return r > 127 || !plain(byte(r)) }) >= 0 {
			return "", fmt.Errorf("%w: not a token: %.60q", ErrMalformed, token)
		}
		return token, nil
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if token[i] != '=' {
			b.WriteByte(token[i])
			continue
		}
		if i+2 >= len(token) {
			return "", fmt.Errorf("%w: a token ends within =XX: %.60q", ErrMalformed, token)
		}
		v, err := strconv.ParseUint(token[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%w: not =XX: %.60q", ErrMalformed, token)
		}
		b.WriteByte(byte(v))
		i += 2
	}
	id := b.String()
	if again, err := Token(id); err != nil || again != token {
		return "", fmt.Errorf("%w: not a token: %.60q", ErrMalformed, token)
	}
	return id, nil
}

// Ref names a session: the harness to which it always belongs, and its own id. Both are unencoded.
type Ref struct {
	Harness string `json:"harness"`
	Session string `json:"session"`
}

// String returns harness/session, for people.
func (r Ref) String() string { return r.Harness + "/" + r.Session }

// Validate checks that both ids can be tokens. The error wraps [ErrMalformed] and names the field.
func (r Ref) Validate() error {
	return first(isID("harness", r.Harness), isID("session", r.Session))
}

// isID checks that an id can be a token, and a JSON string.
func isID(field, id string) error {
	if _, err := Token(id); err != nil {
		return &FieldError{Field: field, Err: err}
	}
	if !utf8.ValidString(id) {
		return bad(field, "%.60q is no text in UTF-8", id)
	}
	return nil
}

// tok encodes a validated id. For an invalid id it returns a token that no valid id has, so that a missing check cannot
// name another session's subject.
func tok(id string) string {
	t, err := Token(id)
	if err != nil {
		return "=invalid"
	}
	return t
}

func (r Ref) tokens() string { return tok(r.Harness) + "." + tok(r.Session) }

// Writer is the last token of a log subject: the program that appended. Permissions depend on it.
type Writer string

// The writers of a log.
const (
	WriterHarness    Writer = "harness"
	WriterLedger     Writer = "ledger"
	WriterRetry      Writer = "retry"
	WriterCompaction Writer = "compaction"
	WriterReconciler Writer = "reconciler"
)

// Writers returns all writers in the order of the contract.
func Writers() []Writer {
	return []Writer{WriterHarness, WriterLedger, WriterRetry, WriterCompaction, WriterReconciler}
}

// Cell builds the names of a cell on the wire. The zero Cell is not usable; see [NewCell].
type Cell struct{ lower, upper string }

// NewCell returns the cell with this prefix: 1 to 32 bytes of a–z, 0–9, _ and -, beginning with a letter.
func NewCell(prefix string) (Cell, error) {
	ok := len(prefix) >= 1 && len(prefix) <= 32 && prefix[0] >= 'a' && prefix[0] <= 'z'
	for i := range len(prefix) {
		c := prefix[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return Cell{}, &FieldError{
			Field: "prefix",
			Err: fmt.Errorf(
				"%w: %q: want 1 to 32 of a–z, 0–9, _ and -, beginning with a letter",
				ErrMalformed,
				prefix,
			),
		}
	}
	return Cell{lower: prefix, upper: strings.ToUpper(prefix)}, nil
}

// Prefix returns the cell's prefix, hf by default.
func (c Cell) Prefix() string { return c.lower }

// LogStream returns the name of the stream of all commits, the source of truth.
func (c Cell) LogStream() string { return c.upper + "_LOG" }

// FeedStream returns the name of the stream of all valid facts by kind.
func (c Cell) FeedStream() string { return c.upper + "_FEED" }

// TimerStream returns the name of the stream of alarms.
func (c Cell) TimerStream() string { return c.upper + "_TIMERS" }

// ParkedStream returns the name of the stream of unreadable input.
func (c Cell) ParkedStream() string { return c.upper + "_PARKED" }

// StateBucket returns the name of the bucket of documents and views.
func (c Cell) StateBucket() string { return c.lower + "_state" }

// LeaseBucket returns the name of the bucket of tickets and leases.
func (c Cell) LeaseBucket() string { return c.lower + "_leases" }

// ObjectBucket returns the name of the object store for content that is too large for a fact.
func (c Cell) ObjectBucket() string { return c.lower + "_objects" }

// LogSubjects returns the subjects of the log stream.
func (c Cell) LogSubjects() string { return c.lower + ".log.*.*.*" }

// LogOf returns the filter for the commits of all sessions of a harness.
func (c Cell) LogOf(harness string) string { return c.lower + ".log." + tok(harness) + ".*.*" }

// LogSubject returns the subject to which this writer appends commits of this session.
func (c Cell) LogSubject(r Ref, w Writer) string {
	return c.lower + ".log." + r.tokens() + "." + string(w)
}

// LogGuard returns the filter for all writers of a session. Every compare-and-set names it.
func (c Cell) LogGuard(r Ref) string { return c.lower + ".log." + r.tokens() + ".*" }

// ParseLog parses a log subject.
func (c Cell) ParseLog(subject string) (Ref, Writer, error) {
	rest, ok := strings.CutPrefix(subject, c.lower+".log.")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return Ref{}, "", fmt.Errorf("%w: not a log subject: %.100q", ErrMalformed, subject)
	}
	r, err := parseRef(parts[0], parts[1])
	return r, Writer(parts[2]), err
}

func parseRef(harness, session string) (Ref, error) {
	h, err := ID(harness)
	if err != nil {
		return Ref{}, err
	}
	s, err := ID(session)
	return Ref{Harness: h, Session: s}, err
}

// FeedSubjects returns the subjects of the feed stream.
func (c Cell) FeedSubjects() string { return c.lower + ".feed.>" }

// FeedSubject returns the subject of the facts of a kind in the feed.
func (c Cell) FeedSubject(k Kind) string { return c.lower + ".feed." + string(k) }

// TimerSubjects returns the subjects of the timer stream: pending and due alarms.
func (c Cell) TimerSubjects() []string { return []string{c.lower + ".timer.>", c.lower + ".due.>"} }

// TimerSubject returns the subject of a pending alarm of this sort. Publishing again replaces the alarm.
func (c Cell) TimerSubject(what string, r Ref) string {
	return c.lower + ".timer." + what + "." + r.tokens()
}

// DueSubject returns the subject on which that alarm fires.
func (c Cell) DueSubject(what string, r Ref) string {
	return c.lower + ".due." + what + "." + r.tokens()
}

// DueFilter returns the filter for the fired alarms of one sort.
func (c Cell) DueFilter(what string) string { return c.lower + ".due." + what + ".>" }

// ParseDue parses the subject of a fired alarm.
func (c Cell) ParseDue(subject string) (what string, r Ref, err error) {
	rest, ok := strings.CutPrefix(subject, c.lower+".due.")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return "", Ref{}, fmt.Errorf("%w: not a subject of a fired timer: %.100q", ErrMalformed, subject)
	}
	r, err = parseRef(parts[1], parts[2])
	return parts[0], r, err
}

// ParkedSubjects returns the subjects of the stream of parked input.
func (c Cell) ParkedSubjects() string { return c.lower + ".parked.>" }

// ParkedSubject returns the subject of this session's unreadable input, by reason (one token).
func (c Cell) ParkedSubject(why string, r Ref) string {
	return c.lower + ".parked." + why + "." + r.tokens()
}

// NudgeSubject returns the subject on which a harness is notified of a changed session.
func (c Cell) NudgeSubject(harness string) string { return c.lower + ".nudge." + tok(harness) }

// NudgeFilter returns the subject by which a harness subscribes to its nudges. It has a wildcard, because the broker
// delivers for another user's push consumer to a subscription whose subject is exactly the delivery subject. Of the
// subjects of a cell only nudges match it.
func (c Cell) NudgeFilter(harness string) string { return c.lower + ".*." + tok(harness) }

// ProgressSubject returns the subject of a session's pings.
func (c Cell) ProgressSubject(r Ref) string { return c.lower + ".progress." + r.tokens() }

// ServiceSubject returns the subject of requests of this verb to a service, in a cell without users.
func (c Cell) ServiceSubject(service, verb string) string {
	return c.lower + ".svc." + service + "." + verb
}

// Asker is the sender of a request to a service, as named by the request's subject. The zero Asker is unnamed.
type Asker struct {
	Class string // [ClassPerson] or [ClassHarness]; "" for a request on the bare verb
	ID    string // the person's name or the harness id
}

// Tokens returns class and id as two tokens, "" for an unnamed asker.
func (a Asker) Tokens() string {
	if a.Class == "" {
		return ""
	}
	return a.Class + "." + tok(a.ID)
}

// AskSubject returns the subject of this asker's requests of this verb: a person below the verb, a harness below the
// verb's harness token, an asker without a class on the bare verb.
func (c Cell) AskSubject(service, verb string, who Asker) string {
	bare := c.ServiceSubject(service, verb)
	switch who.Class {
	case ClassPerson:
		return bare + "." + tok(who.ID)
	case ClassHarness:
		return bare + "." + ClassHarness + "." + tok(who.ID)
	default:
		return bare
	}
}

// ParseAsk returns the asker from the subject of a request of this verb. It fails with [ErrMalformed] on a subject that
// [Cell.AskSubject] does not return.
func (c Cell) ParseAsk(service, verb, subject string) (Asker, error) {
	rest, ok := strings.CutPrefix(subject, c.ServiceSubject(service, verb))
	parts := strings.Split(rest, ".")
	switch {
	case ok && rest == "":
		return Asker{}, nil
	case ok && len(parts) == 2 && parts[0] == "":
		id, err := ID(parts[1])
		return Asker{Class: ClassPerson, ID: id}, err
	case ok && len(parts) == 3 && parts[0] == "" && parts[1] == ClassHarness:
		id, err := ID(parts[2])
		return Asker{Class: ClassHarness, ID: id}, err
	default:
		return Asker{}, fmt.Errorf(
			"%w: not a subject of requests to %s %s: %.100q",
			ErrMalformed,
			service,
			verb,
			subject,
		)
	}
}

// Classes of users in inboxes and permissions.
const (
	ClassService = "service"
	ClassHarness = "harness"
	ClassPerson  = "person"
)

// Prefixes of reply subjects.
const (
	InboxPrefix        = "_INBOX" // chosen by the client that sends the request
	serviceReplyPrefix = "_R_."   // chosen by the broker, for a request from another account
)

// Inbox returns the prefix of one user's reply subjects, by class and name. prefix names the cell. An empty id is a
// client without a user.
func Inbox(prefix, class, id string) string {
	if id == "" {
		return InboxPrefix + "." + prefix + "." + class
	}
	return InboxPrefix + "." + prefix + "." + class + "." + tok(id)
}

// RepliesAcrossAccounts returns the filter for the reply subjects that the broker makes for requests from other
// accounts. A client cannot choose them.
func RepliesAcrossAccounts() string { return serviceReplyPrefix + ">" }

// IsInbox reports whether a service may send a reply to this subject. Any other subject may belong to a stream, a
// bucket, a service or the broker.
func IsInbox(subject string) bool {
	return strings.HasPrefix(subject, InboxPrefix+".") || strings.HasPrefix(subject, serviceReplyPrefix)
}

// ServiceName returns the micro service's name.
func ServiceName(service string) string { return "holdfast-" + service }

// SessionKey returns the key of a session's document.
func SessionKey(r Ref) string { return "session." + r.tokens() }

// SessionKeys returns the filter for the documents of one harness, or of all ("").
func SessionKeys(harness string) string {
	if harness == "" {
		return "session.>"
	}
	return "session." + tok(harness) + ".*"
}

// SessionKeysNamed returns the filter for the documents of the sessions of this name, of all harnesses.
func SessionKeysNamed(session string) string { return "session.*." + tok(session) }

// ParseSessionKey parses the key of a document.
func ParseSessionKey(key string) (Ref, error) {
	rest, ok := strings.CutPrefix(key, "session.")
	h, s, two := strings.Cut(rest, ".")
	if !ok || !two {
		return Ref{}, fmt.Errorf("%w: not the key of a document: %.100q", ErrMalformed, key)
	}
	return parseRef(h, s)
}

// BlockerKey returns the key of one prompt's entry in the people's view.
func BlockerKey(harness, root, session, prompt string) string {
	return "blocker." + tok(harness) + "." + tok(root) + "." + tok(session) + "." + tok(prompt)
}

// BlockerKeys returns the filter for the entries of one root session ("" for all of the harness; both "" for all).
func BlockerKeys(harness, root string) string {
	switch {
	case harness == "":
		return "blocker.>"
	case root == "":
		return "blocker." + tok(harness) + ".>"
	default:
		return "blocker." + tok(harness) + "." + tok(root) + ".>"
	}
}

// BlockerSessionKeys returns the filter for the entries of one session.
func BlockerSessionKeys(harness, root, session string) string {
	return "blocker." + tok(harness) + "." + tok(root) + "." + tok(session) + ".*"
}

// WorkKey returns the key of a session's entry in the harness's view.
func WorkKey(r Ref) string { return "work." + r.tokens() }

// WorkKeys returns the filter for the entries of a harness ("" for all harnesses).
func WorkKeys(harness string) string {
	if harness == "" {
		return "work.>"
	}
	return "work." + tok(harness) + ".*"
}

// TicketKey returns the key of a harness's tickets: its entry is the newest incarnation that was drawn.
func TicketKey(harness string) string { return "ticket." + tok(harness) }

// HarnessLeaseKey returns the key of a harness process's lease.
func HarnessLeaseKey(harness, incarnation string) string {
	return "harness." + tok(harness) + "." + tok(incarnation)
}

// HarnessLeaseKeys returns the filter for the leases of a harness ("" for all harnesses).
func HarnessLeaseKeys(harness string) string {
	if harness == "" {
		return "harness.>"
	}
	return "harness." + tok(harness) + ".*"
}

// ServiceLeaseKey returns the key of a service process's lease.
func ServiceLeaseKey(name, instance string) string {
	return ServiceLeasePrefix(name) + tok(instance)
}

// ClaimKey returns the key, in the lease bucket, of work that one process of a cell does at a time.
func ClaimKey(what string) string { return "claim." + what }

// ClockKey returns the key, in the lease bucket, of the steps of the broker's clock: [Steps] as JSON.
func ClockKey() string { return ClaimKey("clock") }

// ServiceLeasePrefix returns the prefix of the keys of a service's leases.
func ServiceLeasePrefix(name string) string { return "service." + tok(name) + "." }

// ParseLeaseKey parses the key of a lease. class is harness or service, id the harness or the service's name, member
// the incarnation or the instance. The key of a ticket is an error.
func ParseLeaseKey(key string) (class, id, member string, err error) {
	parts := strings.Split(key, ".")
	if len(parts) != 3 || parts[0] != "harness" && parts[0] != "service" {
		return "", "", "", fmt.Errorf("%w: not the key of a lease: %.100q", ErrMalformed, key)
	}
	r, err := parseRef(parts[1], parts[2])
	return parts[0], r.Harness, r.Session, err
}
