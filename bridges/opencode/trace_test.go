package opencode

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

const line = `{"at":"2026-11-20T10:00:00.5Z","event":{"id":"evt_1","type":"session.idle",` +
	`"properties":{"sessionID":"ses_1"}}}`

func TestReadTrace(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 500_000_000, time.UTC)
	for _, tt := range []struct {
		name    string
		in      string
		at      []time.Time
		skipped int
	}{
		{"nothing", "", nil, 0},
		{"empty lines", "\n\n \n", nil, 0},
		{"one", line + "\n", []time.Time{at}, 0},
		{"one, without a line feed", line, []time.Time{at}, 0},
		{"a cut last line", line + "\n" + line[:60], []time.Time{at}, 1},
		{"a line that is no JSON", "hello\n" + line, []time.Time{at}, 1},
		{"lines that are no records", "17\n[]\nnull\n{}\n{\"at\":1}\n", nil, 5},
		{"an instant in milliseconds", `{"at":1795168800500,"event":{"type":"x"}}`, []time.Time{at}, 0},
		{"an instant beyond reading happened when the one before did",
			line + "\n" + `{"at":"noon","event":{"type":"x"}}` + "\n" + `{"event":{"type":"x"}}`,
			[]time.Time{at, at, at}, 0},
		{"a bare event, and a bare global one", `{"type":"x"}` + "\n" + `{"payload":{"type":"x"},"directory":"/"}`,
			[]time.Time{{}, {}}, 0},
		{"a line beyond every buffer", `{"event":{"type":"x","properties":{"x":"` + strings.Repeat("y", 3<<20) + `"}}}`,
			[]time.Time{{}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace, err := ReadTrace(strings.NewReader(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if trace.Skipped != tt.skipped || len(trace.Problems) != tt.skipped {
				t.Errorf("skipped %d, problems %v, want %d", trace.Skipped, trace.Problems, tt.skipped)
			}
			var got []time.Time
			for _, r := range trace.Records {
				got = append(got, r.At)
				if _, err := unwrap(r.Event); err != nil {
					t.Errorf("%.80s: %v", r.Event, err)
				}
			}
			if !slices.EqualFunc(got, tt.at, time.Time.Equal) {
				t.Errorf("got %v, want %v", got, tt.at)
			}
		})
	}
}

func TestReadTraceReportsItsReader(t *testing.T) {
	broken := errors.New("broken")
	trace, err := ReadTrace(io.MultiReader(strings.NewReader(line+"\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(trace.Records) != 1 {
		t.Errorf("got %d records, %v", len(trace.Records), err)
	}
}

func TestReadLineDropsWhatIsTooLong(t *testing.T) {
	br := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 100)+"\nshort\n"), 16)
	if got, tooLong, err := readLine(br, 50); len(got) > 0 || !tooLong || err != nil {
		t.Errorf("got %q, %v, %v", got, tooLong, err)
	}
	if got, tooLong, err := readLine(br, 50); string(got) != "short\n" || tooLong || err != nil {
		t.Errorf("got %q, %v, %v", got, tooLong, err)
	}
}

// TestOrder shows P6: by time; at equal times, if both have a sequence, by sequence; otherwise by id.
func TestOrder(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	rec := func(at time.Time, id, seq string) Record {
		if seq != "" {
			seq = `,"seq":` + seq
		}
		return Record{At: at, Event: json.RawMessage(fmt.Sprintf(`{"id":%q,"type":"x","properties":{}%s}`, id, seq))}
	}
	for _, tt := range []struct {
		name string
		in   []Record
		want string
	}{
		{"by time", []Record{rec(late, "a", ""), rec(early, "b", "")}, "b a"},
		{"by time, whatever the sequence", []Record{rec(late, "a", "1"), rec(early, "b", "2")}, "b a"},
		{"equal times, by id", []Record{rec(early, "b", ""), rec(early, "a", "")}, "a b"},
		{"equal times, both sequenced, by sequence", []Record{rec(early, "a", "2"), rec(early, "b", "1")}, "b a"},
		{"equal times, one sequenced, by id", []Record{rec(early, "b", "1"), rec(early, "a", "")}, "a b"},
		{"equal sequences, by id", []Record{rec(early, "b", "1"), rec(early, "a", "1")}, "a b"},
		{"three that no comparison of two orders",
			[]Record{rec(early, "z", "1"), rec(early, "m", ""), rec(early, "a", "2")}, "z m a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range len(tt.in) {
				tt.in = append(tt.in[1:], tt.in[0])
				var got []string
				for _, r := range Order(tt.in) {
					got = append(got, keyOf(r).id)
				}
				if s := strings.Join(got, " "); s != tt.want {
					t.Errorf("got %s, want %s", s, tt.want)
				}
			}
		})
	}
}

// TestOrderOfUnnamed: events without ids keep the order of the file. Unreadable ones do not disturb the others.
func TestOrderOfUnnamed(t *testing.T) {
	in := []Record{{Event: json.RawMessage(`{"type":"b"}`)}, {Event: json.RawMessage(`nonsense`)},
		{Event: json.RawMessage(`{"type":"a"}`)}}
	for i, r := range Order(in) {
		if string(r.Event) != string(in[i].Event) {
			t.Errorf("place %d: %s", i, r.Event)
		}
	}
}

// TestAnyOrderOfTheFile: a recording with shuffled lines translates to the same steps.
func TestAnyOrderOfTheFile(t *testing.T) {
	want, _ := translateFile(t, "testdata/h-kill9-parallel.jsonl")
	raw, err := os.ReadFile("testdata/h-kill9-parallel.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	slices.Reverse(lines)
	trace, err := ReadTrace(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := Steps(trace.Records)
	if text(got) != text(want) {
		t.Error("the order of the lines changed the translation")
	}
}

// TestWrappings: the forms of `/event`, `/global/event` and the durable log, and all of them together, translate to the
// same steps.
func TestWrappings(t *testing.T) {
	plain := script(append(slices.Clone(begun), tool("p2", "c1", running), finished("a1", "m1", "stop"), idle)...)
	want, _ := Steps(plain)
	wrap := func(format string) []Record {
		out := make([]Record, len(plain))
		for i, r := range plain {
			out[i] = Record{At: r.At, Event: json.RawMessage(fmt.Sprintf(format, r.Event))}
		}
		return out
	}
	durable := make([]Record, len(plain))
	for i, r := range plain {
		ev, err := unwrap(r.Event)
		if err != nil {
			t.Fatal(err)
		}
		durable[i] = Record{At: r.At,
			Event: json.RawMessage(fmt.Sprintf(`{"payload":{"type":"sync","id":%q,"syncEvent":{"id":%q,"seq":%d,`+
				`"type":"%s.1","aggregateID":"ses_1","data":%s}}}`, ev.ID, ev.ID, i, ev.Type, ev.Properties))}
	}
	for _, tt := range []struct {
		name       string
		in         []Record
		duplicates int
	}{
		{"payload", wrap(`{"directory":"/x","payload":%s}`), 0},
		{"event and payload", wrap(`{"event":{"directory":"/x","payload":%s}}`), 0},
		{"durable", durable, 0},
		{"all at once", slices.Concat(plain, wrap(`{"payload":%s}`), durable), 2 * len(plain)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, report := Steps(tt.in)
			if text(got) != text(want) {
				t.Errorf("got %s\nwant %s", text(got), text(want))
			}
			if report.Duplicates != tt.duplicates || report.Unreadable > 0 || len(report.Unknown) > 0 {
				t.Errorf("report: %+v", report)
			}
		})
	}
}

// TestStrangeInput: unknown and unreadable data is counted by name, and does not affect the other data.
func TestStrangeInput(t *testing.T) {
	ordinary := append(slices.Clone(begun), finished("a1", "m1", "stop"), idle)
	strange := []string{
		`session.dreamt {"sessionID":"ses_1"}`, `question.asked`, `session.idle []`, `session.idle 17`,
		`session.status {"sessionID":"ses_1","status":{"type":"hibernating"}}`,
		`session.status {"sessionID":"ses_1","status":"busy"}`,
		`message.updated {"sessionID":"ses_1","info":{"id":"x1","role":"oracle"}}`,
		`message.updated {"sessionID":"ses_1","info":{"role":"user"}}`,
		`message.updated {"sessionID":"ses_1","info":17}`,
		`message.part.updated {"sessionID":"ses_1","part":{"id":"p","messageID":"a1","type":"hologram"}}`,
		`message.part.updated {"sessionID":"ses_1","part":{"type":"text"}}`,
		tool("p8", "c8", `{"status":"levitating"}`), `session.error {"error":{"name":"X"}}`,
		`session.error {"sessionID":"ses_1"}`, replied("r", ""),
		`session.idle {"sessionID":"ses_2","mood":"fine"}`, `plugin.added {"id":"x"}`,
		`session.next.text.delta {"sessionID":"ses_1"}`, `question.rejected {"sessionID":"ses_1","requestID":"none"}`,
	}
	want, _ := Steps(script(ordinary...))
	steps, report := Steps(script(slices.Concat(ordinary[:5], strange, ordinary[5:])...))
	checkSteps(t, steps)
	if !slices.Equal(stepTexts(steps), stepTexts(want)) {
		t.Errorf("got %v, want %v", stepTexts(steps), stepTexts(want))
	}
	wantUnknown := map[string]int{
		"session.dreamt": 1, "session.status: status hibernating": 1, "session.status: status ": 1,
		"message.updated: message oracle": 1,
		"message.updated: message ":       1, "message.part.updated part: part hologram": 1,
		"message.part.updated state: state levitating": 1, "session.idle: field mood": 1,
	}
	if !maps.Equal(report.Unknown, wantUnknown) {
		t.Errorf("unknown: %v", report.Unknown)
	}
	if report.Unreadable != 10 || len(report.Problems) != 10 || report.Late != 1 {
		t.Errorf("unreadable %d, late %d: %s", report.Unreadable, report.Late, strings.Join(report.Problems, "\n"))
	}
}

// TestUnknownIsBounded: an unlimited number of unknown names does not fill the report.
func TestUnknownIsBounded(t *testing.T) {
	var lines []string
	for i := range 2 * unknownKindsMax {
		lines = append(lines, fmt.Sprintf(`invented.%d {}`, i))
	}
	_, report := Steps(script(lines...))
	if len(report.Unknown) > unknownKindsMax+1 || report.Unknown["more"] != unknownKindsMax {
		t.Errorf("%d names, %d more", len(report.Unknown), report.Unknown["more"])
	}
}

func TestWindow(t *testing.T) {
	w := newWindow(2)
	var got []bool
	for _, id := range []string{"a", "b", "a", "c", "a", "c"} {
		got = append(got, w.add(id))
	}
	if want := []bool{true, true, false, true, true, false}; !slices.Equal(got, want) || len(w.ids) != 2 {
		t.Errorf("got %v, want %v; %d kept", got, want, len(w.ids))
	}
}

// TestLimits: ids and contents of any size become facts that fit, and truncated content has a mark.
func TestLimits(t *testing.T) {
	long, huge := strings.Repeat("ä", 300), strings.Repeat("<é>\\u0001", 200_000)
	stream := strings.Join([]string{created, asks, asksIt, busy, answers1,
		tool("p2", "c1", `{"status":"running","title":"`+long+`","input":{"command":"`+huge+`"}}`),
		`permission.asked {"sessionID":"ses_1","id":"r1","permission":"edit","patterns":["` + huge +
			`"],"metadata":{"diff":"` + huge + `"},"always":["` + huge + `"],"tool":{"messageID":"a1","callID":"c1"}}`,
		`question.asked {"sessionID":"ses_1","id":"q1","questions":[{"question":"?","options":[]}]}`,
		`question.replied {"sessionID":"ses_1","requestID":"q1","answers":[["` + huge + `"]]}`,
		tool("p2", "c1", `{"status":"completed","output":"`+huge+`","metadata":{"exit":1}}`),
		tool("p3", "c2", `{"status":"error","error":"`+huge+`"}`),
		`message.part.updated {"sessionID":"ses_1","part":{"id":"p8","messageID":"a1","type":"step-finish",` +
			`"tokens":{"input":-1,"output":1e300,"cache":{"read":0.5}}}}`,
		finished("a1", "m1", huge), idle}, "\n")
	for _, id := range []string{"ses_1", "m1", "c1", "r1", "q1"} {
		stream = strings.ReplaceAll(stream, `"`+id+`"`, `"`+id+long+`"`)
	}
	stream = strings.ReplaceAll(stream, `"do it"`, `"`+huge+`"`)
	steps, report := Steps(script(strings.Split(stream, "\n")...))
	checkSteps(t, steps)
	if report.Unreadable > 0 || report.Facts != 11 {
		t.Errorf("report %+v", report)
	}
	for _, s := range steps {
		for _, f := range s.Facts {
			raw := text(f)
			if len(raw) > events.DataBytesMax/2 {
				t.Errorf("%s: %d bytes", f.Kind(), len(raw))
			}
			if k := f.Kind(); (k == "message.accepted" || k == "tool.completed") &&
				!strings.Contains(raw, "… cut: the first") {
				t.Errorf("%s has no mark of the truncation", k)
			}
		}
	}
}

// TestManyWaitingMessages: with any number of pending messages, each commit stays within its limit.
func TestManyWaitingMessages(t *testing.T) {
	const waiting = 20
	lines := []string{created}
	for i := range waiting {
		lines = append(lines, fmt.Sprintf(`message.updated {"sessionID":"ses_1","info":{"id":"m%d","role":"user"}}`, i),
			fmt.Sprintf(`message.part.updated {"sessionID":"ses_1","part":{"id":"p%d","messageID":"m%d",`+
				`"type":"text","text":%q}}`, i, i, strings.Repeat("x", contentBytesMax)))
	}
	steps, report := Steps(script(append(lines, busy)...))
	checkSteps(t, steps)
	if report.Facts != 2*waiting {
		t.Errorf("%d facts, want %d", report.Facts, 2*waiting)
	}
}

func TestFailureKinds(t *testing.T) {
	reported := time.Date(2026, 11, 20, 10, 19, 56, 0, time.UTC)
	for _, tt := range []struct {
		in   string
		want events.Failure
	}{
		{`{"name":"APIError","data":{"message":"x","statusCode":401}}`,
			events.Failure{Kind: "authentication", Text: "x", Status: 401}},
		{`{"name":"APIError","data":{"message":"x","statusCode":402}}`,
			events.Failure{Kind: "quota", Text: "x", Status: 402}},
		{`{"name":"APIError","data":{"message":"x","statusCode":429,"responseHeaders":{"Retry-After":"3"}}}`,
			events.Failure{Kind: "rate_limit", Text: "x", Status: 429, RetryAfterMS: 3000}},
		{`{"name":"APIError","data":{"message":"x","statusCode":429,"responseHeaders":{"retry-after":"3",` +
			`"retry-after-ms":"250"}}}`, events.Failure{Kind: "rate_limit", Text: "x", Status: 429, RetryAfterMS: 250}},
		{`{"name":"APIError","data":{"message":"x","statusCode":429,"responseHeaders":{"retry-after":"Fri, 20 Nov ` +
			`2026 10:19:58 GMT"}}}`, events.Failure{Kind: "rate_limit", Text: "x", Status: 429, RetryAfterMS: 2000}},
		{`{"name":"APIError","data":{"message":"x","statusCode":429,"responseHeaders":{"date":"Sat, 01 Jan 2000 ` +
			`00:00:00 GMT","retry-after":"Sat, 01 Jan 2000 00:00:09 GMT"}}}`,
			events.Failure{Kind: "rate_limit", Text: "x", Status: 429, RetryAfterMS: 9000}},
		{`{"name":"APIError","data":{"message":"Too many tokens: token limit a minute","statusCode":429}}`,
			events.Failure{Kind: "rate_limit", Text: "Too many tokens: token limit a minute", Status: 429}},
		{`{"name":"APIError","data":{"message":"add credits","statusCode":429}}`,
			events.Failure{Kind: "quota", Text: "add credits", Status: 429}},
		{`{"name":"APIError","data":{"message":"x","statusCode":529}}`,
			events.Failure{Kind: "server_error", Text: "x", Status: 529}},
		{`{"name":"APIError","data":{"message":"x","statusCode":502,"responseBody":"prompt is too long"}}`,
			events.Failure{Kind: "context_exceeded", Text: "x", Status: 502}},
		{`{"name":"APIError","data":{"message":"x","statusCode":404}}`,
			events.Failure{Kind: "model_not_found", Text: "x", Status: 404}},
		{`{"name":"UnknownError","data":{"message":"Model not found: a/b"}}`,
			events.Failure{Kind: "model_not_found", Text: "Model not found: a/b"}},
		{`{"name":"APIError","data":{"message":"x","statusCode":400}}`,
			events.Failure{Kind: "invalid_request", Text: "x", Status: 400}},
		{`{"name":"ContextOverflowError","data":{"message":"x"}}`, events.Failure{Kind: "context_exceeded", Text: "x"}},
		{`{"name":"ProviderAuthError","data":{"message":"x"}}`, events.Failure{Kind: "authentication", Text: "x"}},
		{`{"name":"ContentFilterError","data":{"message":"x"}}`, events.Failure{Kind: "model_refusal", Text: "x"}},
		{`{"name":"MessageOutputLengthError","data":{}}`,
			events.Failure{Kind: "output_length", Text: "MessageOutputLengthError"}},
		{`{"name":"MessageAbortedError","data":{"message":"Aborted"}}`,
			events.Failure{Kind: "aborted", Text: "Aborted"}},
		{`{}`, events.Failure{Kind: "unknown"}},
	} {
		var e errorInfo
		if err := json.Unmarshal([]byte(tt.in), &e); err != nil {
			t.Fatal(err)
		}
		if got := e.failure(reported); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.in, got, tt.want)
		}
	}
}

// FuzzTranslate: any recording is translated without a panic to valid steps that fold as reported.
func FuzzTranslate(f *testing.F) {
	add := func(records []Record) {
		var b strings.Builder
		for _, r := range records {
			fmt.Fprintf(&b, "{\"at\":%d,\"event\":%s}\n", r.At.UnixMilli(), r.Event)
		}
		f.Add([]byte(b.String()))
	}
	pending := tool("p2", "c1", `{"status":"pending"}`)
	add(script(append(slices.Clone(begun), pending, permission("r1", "c1", "rm"), replied("r1", "reject"),
		tool("p2", "c1", `{"status":"error"}`), finished("a1", "m1", "stop"), idle)...))
	add(script(append(slices.Clone(begun), pending, question(`[{"question":"?"}]`), `server.connected {}`, idle,
		busy)...))
	add(script(append(slices.Clone(begun),
		`message.updated {"sessionID":"ses_1","info":{"id":"s1","role":"assistant","summary":true}}`,
		"session.compacted", idle)...))
	f.Add([]byte(`{"event":{"payload":{"syncEvent":{"type":"session.created.1","data":{"info":{"id":"\u0000",` +
		`"parentID":"x"}}}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		trace, err := ReadTrace(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		steps, report := Steps(trace.Records)
		checkSteps(t, steps)
		foldsAsReported(t, steps, report)
	})
}
