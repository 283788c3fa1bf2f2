package events_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The official CloudEvents SDK reads the encoded events, with equal attributes, extensions and data.
func TestOursInTheOfficialSDK(t *testing.T) {
	sent := sampleEvents()
	for i := range sent {
		sent[i].Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	}
	var got []event.Event
	if err := json.Unmarshal(encode(t, sent...), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(sent) {
		t.Fatalf("%d events, sent %d", len(got), len(sent))
	}
	for i, e := range got {
		want := sent[i]
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", want.Kind, err)
		}
		if e.SpecVersion() != event.CloudEventsVersionV1 || e.ID() != want.ID || e.Source() != want.Source ||
			e.Type() != want.Type() ||
			e.Subject() != want.Subject || !e.Time().Equal(want.Time) || e.DataContentType() != event.ApplicationJSON {
			t.Errorf("%s: attributes differ: %v", want.Kind, e)
		}
		extensions := map[string]any{"session": want.Session, "epoch": int32(want.Epoch), "traceparent": want.Trace}
		if !reflect.DeepEqual(e.Extensions(), extensions) {
			t.Errorf("%s: extensions %v, want %v", want.Kind, e.Extensions(), extensions)
		}
		data := reflect.New(reflect.TypeOf(want.Fact))
		if err := e.DataAs(data.Interface()); err != nil || !reflect.DeepEqual(data.Elem().Interface(), want.Fact) {
			t.Errorf("%s: data %s, %v", want.Kind, e.Data(), err)
		}
	}
}

// A batch of a writer that uses the SDK is decoded.
func TestTheOfficialSDKsHere(t *testing.T) {
	want := sampleEvents()
	var batch []event.Event
	for _, e := range want {
		theirs := event.New()
		theirs.SetID(e.ID)
		theirs.SetSource(e.Source)
		theirs.SetType(e.Type())
		theirs.SetSubject(e.Subject)
		theirs.SetTime(e.Time)
		theirs.SetExtension("session", e.Session)
		theirs.SetExtension("epoch", int(e.Epoch))
		theirs.SetExtension("derived", true)
		theirs.SetExtension("tracestate", "a=b")
		if err := theirs.SetData(event.ApplicationJSON, e.Fact); err != nil {
			t.Fatal(err)
		}
		batch = append(batch, theirs)
	}
	body, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range decode(t, body) {
		if got.Err != nil || !equalJSON(t, got.Fact, want[i].Fact) {
			t.Errorf("%s: %v, fact %+v", want[i].Kind, got.Err, got.Fact)
		}
		got.Data, got.Fact = nil, want[i].Fact
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%s: the envelope is %+v, want %+v", want[i].Kind, got, want[i])
		}
	}
}

// equalJSON compares facts by their JSON: json.Marshal may escape raw fields differently.
func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	var values [2]any
	for i, v := range []any{a, b} {
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &values[i]); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// A structured event, as in the feed, is one CloudEvent for the SDK.
func TestFeedEventInTheOfficialSDK(t *testing.T) {
	e := events.New(
		"e1",
		"/service/ledger/i1",
		ref,
		3,
		at,
		events.PromptWithdrawn{Prompt: "p1", Reason: events.ReasonTurnEnded},
	)
	e.Derived = true
	body, err := events.EncodeEvent(&e)
	if err != nil {
		t.Fatal(err)
	}
	var got event.Event
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil || got.Extensions()["derived"] != true ||
		got.Type() != "holdfast.prompt.withdrawn" {
		t.Errorf("%v: %v", err, got)
	}
}
