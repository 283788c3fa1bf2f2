package sidecar

import (
	"encoding/json"
	"testing"
)

// TestGiven: the client gets no value where the agent leaves one out, and keeps what an open question has.
func TestGiven(t *testing.T) {
	if v := given(nil); v != nil {
		t.Errorf("%#v, want nil", v)
	}
	if v, ok := given(json.RawMessage("null")).(json.RawMessage); !ok || string(v) != "null" {
		t.Errorf("%#v, want null", v)
	}
}
