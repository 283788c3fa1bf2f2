package events_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func TestDefaultPolicy(t *testing.T) {
	want := events.Policy{AutoRetry: true, Resume: "auto", ResumeMax: 10, CompactionThreshold: 0.7, StallAfterS: 600}
	if got := events.DefaultPolicy(); got != want || got.Validate() != nil {
		t.Errorf("%+v (%v), want %+v", got, got.Validate(), want)
	}
}

// A field is absent (unchanged), null (back to the default) or a value.
func TestPolicyPatch(t *testing.T) {
	before := events.Policy{
		RetryMax:             5,
		Resume:               "hold",
		ResumeMax:            1,
		CompactionThreshold:  0.5,
		ContextLimit:         9,
		IdleCompactionAfterS: 8,
		StallAfterS:          7,
	}
	change := func(f func(*events.Policy)) events.Policy { p := before; f(&p); return p }
	for _, c := range []struct {
		patch string
		want  events.Policy
	}{
		{`{}`, before},
		{`{"nobody_knows":1}`, before},
		{`{"auto_retry":true}`, change(func(p *events.Policy) { p.AutoRetry = true })},
		{`{"auto_retry":null}`, change(func(p *events.Policy) { p.AutoRetry = true })},
		{`{"auto_retry":false}`, before},
		{`{"retry_max":3}`, change(func(p *events.Policy) { p.RetryMax = 3 })},
		{`{"retry_max":0}`, change(func(p *events.Policy) { p.RetryMax = 0 })},
		{`{"retry_max":null}`, change(func(p *events.Policy) { p.RetryMax = 0 })},
		{`{"resume":null}`, change(func(p *events.Policy) { p.Resume = "auto" })},
		{`{"resume_max":null}`, change(func(p *events.Policy) { p.ResumeMax = 10 })},
		{`{"compaction_threshold":1.0}`, change(func(p *events.Policy) { p.CompactionThreshold = 1 })},
		{`{"compaction_threshold":null}`, change(func(p *events.Policy) { p.CompactionThreshold = 0.7 })},
		{`{"context_limit":null,"idle_compaction_after_s":1}`,
			change(func(p *events.Policy) { p.ContextLimit, p.IdleCompactionAfterS = 0, 1 })},
		{`{"stall_after_s":null}`, change(func(p *events.Policy) { p.StallAfterS = 600 })},
	} {
		t.Run(c.patch, func(t *testing.T) {
			var p *events.PolicyPatch
			if err := json.Unmarshal([]byte(c.patch), &p); err != nil {
				t.Fatal(err)
			}
			if got := p.Apply(before); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	var none *events.PolicyPatch
	if got := none.Apply(before); got != before || none.Validate() != nil {
		t.Errorf("no patch: %+v (%v)", got, none.Validate())
	}
}

func TestPolicyRanges(t *testing.T) {
	for _, c := range []struct{ patch, field string }{
		{`{"retry_max":0}`, ""},
		{`{"retry_max":1000000}`, ""},
		{`{"retry_max":1000001}`, "policy.retry_max"},
		{`{"retry_max":-1}`, "policy.retry_max"},
		{`{"resume":"auto"}`, ""},
		{`{"resume":"hold"}`, ""},
		{`{"resume":"maybe"}`, "policy.resume"},
		{`{"resume":""}`, "policy.resume"},
		{`{"resume_max":-1}`, "policy.resume_max"},
		{`{"resume_max":1000001}`, "policy.resume_max"},
		{`{"compaction_threshold":0.1}`, ""},
		{`{"compaction_threshold":1}`, ""},
		{`{"compaction_threshold":0.09}`, "policy.compaction_threshold"},
		{`{"compaction_threshold":1.01}`, "policy.compaction_threshold"},
		{`{"compaction_threshold":0}`, "policy.compaction_threshold"},
		{`{"context_limit":-1}`, "policy.context_limit"},
		{`{"context_limit":1000000001}`, "policy.context_limit"},
		{`{"idle_compaction_after_s":-1}`, "policy.idle_compaction_after_s"},
		{`{"idle_compaction_after_s":2592001}`, "policy.idle_compaction_after_s"},
		{`{"stall_after_s":-1}`, "policy.stall_after_s"},
		{`{"stall_after_s":2592000}`, ""},
		{`{"stall_after_s":2592001}`, "policy.stall_after_s"},
		{`{"stall_after_s":null}`, ""},
	} {
		t.Run(c.patch, func(t *testing.T) {
			var p *events.PolicyPatch
			if err := json.Unmarshal([]byte(c.patch), &p); err != nil {
				t.Fatal(err)
			}
			wantField(t, p.Validate(), c.field)
		})
	}
	p := events.DefaultPolicy()
	p.CompactionThreshold = math.NaN()
	wantField(t, p.Validate(), "policy.compaction_threshold")
}

func setting[T any](value *rapid.Generator[T]) *rapid.Generator[events.Setting[T]] {
	return rapid.Custom(func(t *rapid.T) events.Setting[T] {
		switch rapid.IntRange(0, 2).Draw(t, "state") {
		case 0:
			return events.Setting[T]{}
		case 1:
			return events.Unset[T]()
		default:
			return events.Set(value.Draw(t, "value"))
		}
	})
}

// A patch is unchanged after encode and decode, and applying it twice has the effect of applying it once.
func TestPolicyPatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &events.PolicyPatch{
			AutoRetry:            setting(rapid.Bool()).Draw(t, "auto_retry"),
			RetryMax:             setting(rapid.Int()).Draw(t, "retry_max"),
			Resume:               setting(rapid.String()).Draw(t, "resume"),
			ResumeMax:            setting(rapid.Int()).Draw(t, "resume_max"),
			CompactionThreshold:  setting(rapid.Float64Range(0, 2)).Draw(t, "threshold"),
			ContextLimit:         setting(rapid.Int64()).Draw(t, "limit"),
			IdleCompactionAfterS: setting(rapid.Int64()).Draw(t, "idle"),
			StallAfterS:          setting(rapid.Int64()).Draw(t, "stall"),
		}
		body, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var got *events.PolicyPatch
		if err := json.Unmarshal(body, &got); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%s came back as %+v, %v", body, got, err)
		}
		if once := p.Apply(events.DefaultPolicy()); p.Apply(once) != once {
			t.Fatalf("%s twice is not once", body)
		}
	})
}
