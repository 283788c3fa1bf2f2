package core

import (
	"slices"
	"testing"
)

// A process that took a pin of a stream again is active until the last of them ends.
func TestActives(t *testing.T) {
	var a Actives
	first, second := a.Begin("ledger", "HF_LOG"), a.Begin("ledger", "HF_LOG")
	other := a.Begin("retry", "KV_hf_state")
	due := a.Begin("retry-due", "HF_TIMERS")
	is := func(want []string, durables ...string) {
		t.Helper()
		if got := a.Streams(durables...); !slices.Equal(got, want) {
			t.Errorf("%v: active at %v, want %v", durables, got, want)
		}
	}
	is([]string{"HF_LOG"}, "ledger", "ledger-due")
	is([]string{"HF_TIMERS", "KV_hf_state"}, "retry", "retry-due")
	first()
	is([]string{"HF_LOG"}, "ledger")
	second()
	is(nil, "ledger")
	other()
	is([]string{"HF_TIMERS"}, "retry", "retry-due")
	due()
	is(nil, "retry", "retry-due")
}
