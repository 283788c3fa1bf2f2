package lease_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestLeaseOfAnotherLanguage: an incarnation may be a number, exclusive is true by default, and fields that only people
// read may be malformed.
func TestLeaseOfAnotherLanguage(t *testing.T) {
	for body, want := range map[string]lease.Record{
		`{"id":"h","incarnation":17,"state":"ready"}`: {
			ID: "h", Incarnation: "17", Exclusive: true, State: "ready"},
		`{"id":"h","incarnation":"17","exclusive":false,"ttl_ms":15000}`: {ID: "h", Incarnation: "17", TTLMS: 15000},
		`{"incarnation":"17","exclusive":null,"ttl_ms":2000.0,"state":"starting","pid":"12","host":5,` +
			`"started_at":1700000000}`: {Incarnation: "17", Exclusive: true, State: "starting", TTLMS: 2000},
	} {
		var got lease.Record
		if err := json.Unmarshal([]byte(body), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"ttl_ms":"long"}`), new(lease.Record)); !events.IsMalformed(err) {
		t.Errorf("a lease beyond reading: %v", err)
	}
}
