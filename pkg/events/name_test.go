package events_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func TestToken(t *testing.T) {
	for _, c := range []struct{ name, id, want string }{
		{"plain bytes stay", "Az09_-", "Az09_-"},
		{"a dot is encoded", "a.b", "a=2Eb"},
		{"the escape itself is encoded", "a=b", "a=3Db"},
		{"wildcards are encoded", "*>", "=2A=3E"},
		{"a space is encoded", "a b", "a=20b"},
		{"bytes of UTF-8 one by one, upper case", "é", "=C3=A9"},
		{"zero bytes too", "\x00\xff", "=00=FF"},
		{"128 bytes fit", strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"128 bytes after encoding fit", strings.Repeat(".", 42) + "ab", strings.Repeat("=2E", 42) + "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := events.Token(c.id)
			if err != nil || got != c.want {
				t.Fatalf("Token(%q) = %q, %v: want %q", c.id, got, err, c.want)
			}
			if back, err := events.ID(got); err != nil || back != c.id {
				t.Fatalf("ID(%q) = %q, %v: want %q", got, back, err, c.id)
			}
		})
	}
}

func TestTokenRefuses(t *testing.T) {
	for name, id := range map[string]string{
		"nothing":                  "",
		"129 bytes":                strings.Repeat("x", 129),
		"129 bytes after encoding": strings.Repeat(".", 43),
	} {
		if got, err := events.Token(id); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: Token = %q, %v: want ErrMalformed", name, got, err)
		}
	}
}

func TestIDRefuses(t *testing.T) {
	for name, token := range map[string]string{
		"nothing":                    "",
		"a byte that needs encoding": "a.b",
		"the same beside an escape":  "=2E.",
		"not ASCII":                  "é",
		"lower-case hex":             "=2e",
		"no hex":                     "=ZZ",
		"a sign is no hex":           "=+1",
		"an escape cut short":        "a=2",
		"an escape without digits":   "a=",
		"a plain byte, escaped":      "=41",
		"129 bytes":                  strings.Repeat("x", 129),
		"129 bytes of escapes":       strings.Repeat("=2E", 43),
		"what an invalid id becomes": "=invalid",
	} {
		if got, err := events.ID(token); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: ID(%q) = %q, %v: want ErrMalformed", name, token, got, err)
		}
	}
}

// Any bytes survive Token and ID. ID accepts exactly the results of Token.
func TestTokenIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := string(rapid.SliceOfN(rapid.Byte(), 0, 140).Draw(t, "id"))
		token, err := events.Token(id)
		if err != nil {
			if id != "" && len(id)*3 <= events.TokenBytesMax {
				t.Fatalf("Token(%q): %v, though it fits", id, err)
			}
			return
		}
		if len(token) < 1 || len(token) > events.TokenBytesMax || strings.ContainsAny(token, ".*> \t\r\n") {
			t.Fatalf("Token(%q) = %q: no subject token of 1 to 128 bytes", id, token)
		}
		if back, err := events.ID(token); err != nil || back != id {
			t.Fatalf("ID(%q) = %q, %v: want %q", token, back, err, id)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.StringMatching(`(=[0-9A-Fa-f]{2}|[A-Za-z0-9_=.-]){1,20}`).Draw(t, "token")
		id, err := events.ID(token)
		if err != nil {
			return
		}
		if again, err := events.Token(id); err != nil || again != token {
			t.Fatalf("ID(%q) = %q, but Token of that is %q, %v", token, id, again, err)
		}
	})
}

func TestRefValidate(t *testing.T) {
	long := strings.Repeat("x", 129)
	for _, c := range []struct {
		name, harness, session, field string
	}{
		{"both sound", "h", "s", ""},
		{"strange characters are sound", "h 1.é", "s/*", ""},
		{"no harness", "", "s", "harness"},
		{"no session", "h", "", "session"},
		{"a harness too long", long, "s", "harness"},
		{"a session too long", "h", long, "session"},
		{"a session that JSON cannot carry", "h", "\xff", "session"},
		{"a harness that JSON cannot carry", "\xc3", "s", "harness"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := events.Ref{Harness: c.harness, Session: c.session}.Validate()
			wantField(t, err, c.field)
		})
	}
}

// wantField checks that the error wraps ErrMalformed and names field, or that it is nil for "".
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Fatalf("error %v: want none", err)
		}
		return
	}
	fe, ok := errors.AsType[*events.FieldError](err)
	if !ok || fe.Field != field || !events.IsMalformed(err) {
		t.Fatalf("error %v: want a malformed %s", err, field)
	}
}

func TestCellNames(t *testing.T) {
	c, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	r := events.Ref{Harness: "my laptop", Session: "a.b"}
	for name, pair := range map[string][2]string{
		"prefix":          {c.Prefix(), events.DefaultPrefix},
		"log stream":      {c.LogStream(), "HF_LOG"},
		"feed stream":     {c.FeedStream(), "HF_FEED"},
		"timer stream":    {c.TimerStream(), "HF_TIMERS"},
		"parked stream":   {c.ParkedStream(), "HF_PARKED"},
		"state bucket":    {c.StateBucket(), "hf_state"},
		"lease bucket":    {c.LeaseBucket(), "hf_leases"},
		"log subjects":    {c.LogSubjects(), "hf.log.*.*.*"},
		"log subject":     {c.LogSubject(r, events.WriterHarness), "hf.log.my=20laptop.a=2Eb.harness"},
		"log guard":       {c.LogGuard(r), "hf.log.my=20laptop.a=2Eb.*"},
		"feed subjects":   {c.FeedSubjects(), "hf.feed.>"},
		"feed subject":    {c.FeedSubject("prompt.requested"), "hf.feed.prompt.requested"},
		"timer subjects":  {strings.Join(c.TimerSubjects(), " "), "hf.timer.> hf.due.>"},
		"timer subject":   {c.TimerSubject("retry", r), "hf.timer.retry.my=20laptop.a=2Eb"},
		"due subject":     {c.DueSubject("retry", r), "hf.due.retry.my=20laptop.a=2Eb"},
		"due filter":      {c.DueFilter("retry"), "hf.due.retry.>"},
		"parked subjects": {c.ParkedSubjects(), "hf.parked.>"},
		"parked subject":  {c.ParkedSubject("role", r), "hf.parked.role.my=20laptop.a=2Eb"},
		"nudge":           {c.NudgeSubject(r.Harness), "hf.nudge.my=20laptop"},
		"nudge filter":    {c.NudgeFilter(r.Harness), "hf.*.my=20laptop"},
		"progress":        {c.ProgressSubject(r), "hf.progress.my=20laptop.a=2Eb"},
		"service subject": {c.ServiceSubject("ledger", "answer"), "hf.svc.ledger.answer"},
		"service name":    {events.ServiceName("ledger"), "holdfast-ledger"},
		"document":        {events.SessionKey(r), "session.my=20laptop.a=2Eb"},
		"its documents":   {events.SessionKeys(r.Harness), "session.my=20laptop.*"},
		"all documents":   {events.SessionKeys(""), "session.>"},
		"of one name":     {events.SessionKeysNamed("a b"), "session.*.a=20b"},
		"blocker": {events.BlockerKey(r.Harness, "root", r.Session, "p?"),
			"blocker.my=20laptop.root.a=2Eb.p=3F"},
		"a root's":         {events.BlockerKeys(r.Harness, "root"), "blocker.my=20laptop.root.>"},
		"its blockers":     {events.BlockerKeys(r.Harness, ""), "blocker.my=20laptop.>"},
		"all blockers":     {events.BlockerKeys("", ""), "blocker.>"},
		"work":             {events.WorkKey(r), "work.my=20laptop.a=2Eb"},
		"its work":         {events.WorkKeys(r.Harness), "work.my=20laptop.*"},
		"all work":         {events.WorkKeys(""), "work.>"},
		"ticket":           {events.TicketKey(r.Harness), "ticket.my=20laptop"},
		"harness lease":    {events.HarnessLeaseKey(r.Harness, "17"), "harness.my=20laptop.17"},
		"its leases":       {events.HarnessLeaseKeys(r.Harness), "harness.my=20laptop.*"},
		"all leases":       {events.HarnessLeaseKeys(""), "harness.>"},
		"service lease":    {events.ServiceLeaseKey("ledger", "i.1"), "service.ledger.i=2E1"},
		"for people":       {r.String(), "my laptop/a.b"},
		"a forgotten test": {events.SessionKey(events.Ref{Harness: "h"}), "session.h.=invalid"},
		"harness source":   {events.HarnessSource("my laptop", "17"), "/harness/my=20laptop/17"},
		"service source":   {events.ServiceSource("ledger", "i1"), "/service/ledger/i1"},
		"person source":    {events.PersonSource("ada@x"), "/person/ada=40x"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", name, pair[0], pair[1])
		}
	}
	other, err := events.NewCell("my-cell_2")
	if err != nil || other.LogStream() != "MY-CELL_2_LOG" || other.StateBucket() != "my-cell_2_state" ||
		other.LogSubjects() != "my-cell_2.log.*.*.*" {
		t.Errorf("names do not follow the prefix: %v %v %v", other.LogStream(), other.StateBucket(), err)
	}
}

func TestNewCellRefuses(t *testing.T) {
	for _, prefix := range []string{"", "Hf", "1a", "-a", "a.b", "a b", "é", "a*", strings.Repeat("a", 33)} {
		_, err := events.NewCell(prefix)
		wantField(t, err, "prefix")
	}
}

// Every parse function returns the arguments from which a name was built, for any ids.
func TestNamesParseBack(t *testing.T) {
	c, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	id := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.Byte(), 1, 42).Draw(t, "bytes"))
	})
	rapid.Check(t, func(t *rapid.T) {
		r := events.Ref{Harness: id.Draw(t, "harness"), Session: id.Draw(t, "session")}
		w := rapid.SampledFrom(events.Writers()).Draw(t, "writer")
		if got, writer, err := c.ParseLog(c.LogSubject(r, w)); err != nil || got != r || writer != w {
			t.Fatalf("ParseLog: %v %v %v: want %v %v", got, writer, err, r, w)
		}
		if what, got, err := c.ParseDue(c.DueSubject("stall", r)); err != nil || got != r || what != "stall" {
			t.Fatalf("ParseDue: %v %v %v: want %v", what, got, err, r)
		}
		if got, err := events.ParseSessionKey(events.SessionKey(r)); err != nil || got != r {
			t.Fatalf("ParseSessionKey: %v %v: want %v", got, err, r)
		}
		class, owner, member, err := events.ParseLeaseKey(events.HarnessLeaseKey(r.Harness, r.Session))
		if err != nil || class != "harness" || owner != r.Harness || member != r.Session {
			t.Fatalf("ParseLeaseKey: %v %v %v %v: want %v", class, owner, member, err, r)
		}
	})
}

func TestParsingRefuses(t *testing.T) {
	c, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	log := func(s string) error { _, _, err := c.ParseLog(s); return err }
	due := func(s string) error { _, _, err := c.ParseDue(s); return err }
	document := func(s string) error { _, err := events.ParseSessionKey(s); return err }
	lease := func(s string) error { _, _, _, err := events.ParseLeaseKey(s); return err }
	view := func(s string) error { _, err := events.ParseViewKey(s); return err }
	object := func(s string) error { _, err := events.ParseObjectName(s); return err }
	digest := strings.Repeat("0", 64)
	for _, q := range []struct {
		name  string
		parse func(string) error
		input []string
	}{
		{"log subjects", log, []string{"", "hf.log", "hf.log.h.s", "hf.log.h.s.harness.x", "xx.log.h.s.harness",
			"hf.log..s.harness", "hf.log.h.=2e.harness", "hf.log.*.s.harness"}},
		{"due subjects", due, []string{"", "hf.due.retry.h", "hf.timer.retry.h.s", "hf.due.retry.h.s.x",
			"hf.due.retry.h.=", "hf.due.retry.>.s"}},
		{"documents", document, []string{"", "session.h", "session.h.s.x", "work.h.s", "session.h.", "session..s"}},
		{"leases", lease, []string{"", "ticket.h", "ticket.h.1", "harness.h", "harness.h.1.x", "harness.h.é",
			"service..i"}},
		{"views", view, []string{"", "work", "work.h", "work.h.s.x", "blocker.h.r.s", "blocker.h.r.s.p.x",
			"session.h.s", "a.h.r.s.p", "work.h.=2e"}},
		{"objects", object, []string{"", "h", "h.s", "h.s." + digest[1:], "h.s." + digest + "0", "h.s.x." + digest,
			"h.." + digest}},
	} {
		for _, input := range q.input {
			if err := q.parse(input); !errors.Is(err, events.ErrMalformed) {
				t.Errorf("%s: %q: %v: want ErrMalformed", q.name, input, err)
			}
		}
	}
}

func TestDeriveID(t *testing.T) {
	a := events.DeriveID("turn", "h", "s", "1")
	if a != events.DeriveID("turn", "h", "s", "1") {
		t.Error("the same decision gave two ids")
	}
	for _, other := range []string{events.DeriveID("turn", "h", "s", "2"), events.DeriveID("turn", "h", "s1"),
		events.DeriveID("call", "h", "s", "1")} {
		if a == other {
			t.Errorf("two decisions gave one id %q", a)
		}
	}
	if token, err := events.Token(a); err != nil || token != a {
		t.Errorf("%q is no plain token", a)
	}
}

func TestIsHarnessSource(t *testing.T) {
	for source, want := range map[string]bool{
		"/harness/my=20laptop/17": true,
		"/harness/my laptop/17":   true,
		"/harness/my laptop/16":   false,
		"/harness/laptop/17":      false,
		"/service/my laptop/17":   false,
		"":                        false,
	} {
		if got := events.IsHarnessSource(source, "my laptop", "17"); got != want {
			t.Errorf("IsHarnessSource(%q) = %t, want %t", source, got, want)
		}
	}
}

// ParseAsk returns the asker of a subject, and rejects every other subject.
func TestAskers(t *testing.T) {
	c, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	for want, who := range map[string]events.Asker{
		"hf.svc.ledger.answer":                 {},
		"hf.svc.ledger.answer.ann":             {events.ClassPerson, "ann"},
		"hf.svc.ledger.answer.a=2Eb":           {events.ClassPerson, "a.b"},
		"hf.svc.ledger.answer.harness":         {events.ClassPerson, "harness"},
		"hf.svc.ledger.answer.harness.h=201":   {events.ClassHarness, "h 1"},
		"hf.svc.ledger.answer.harness.harness": {events.ClassHarness, "harness"},
	} {
		if got := c.AskSubject("ledger", "answer", who); got != want {
			t.Errorf("%+v asks on %s, want %s", who, got, want)
		}
		if got, err := c.ParseAsk("ledger", "answer", want); err != nil || got != who {
			t.Errorf("%s: asked by %+v, want %+v: %v", want, got, who, err)
		}
	}
	for _, subject := range []string{"", "hf.svc.ledger.answers", "hf.svc.ledger.answer.", "hf.svc.ledger.answer.a.b",
		"hf.svc.ledger.answer.harness.",
		"hf.svc.ledger.answer.harness.a.b", "hf.svc.ledger.answer.a b", "hf.svc.retry.now.ann", "hf.log.h.s.harness"} {
		if who, err := c.ParseAsk("ledger", "answer", subject); err == nil {
			t.Errorf("%q: asked by %+v", subject, who)
		}
	}
	for subject, want := range map[string]bool{"_INBOX.x.y": true, "_R_.x": true, "": false, "_INBOX": false,
		"_INBOXES.x": false, "_R_": false,
		"$JS.API.STREAM.PURGE.HF_LOG": false, "$KV.hf_state.x": false, "hf.svc.ledger.close": false,
		"x._INBOX.y": false} {
		if got := events.IsInbox(subject); got != want {
			t.Errorf("IsInbox(%q) = %v", subject, got)
		}
	}
}
