package lease

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// States of a [Record].
const (
	Starting = "starting" // has not yet declared the sessions that it takes over
	Ready    = "ready"
	Draining = "draining"
)

// Record is the value of a process's lease, for harness processes and services.
type Record struct {
	ID          string    `json:"id"` // the harness id, or the service's name
	Incarnation string    `json:"incarnation"`
	Exclusive   bool      `json:"exclusive"`
	State       string    `json:"state"`
	TTLMS       int64     `json:"ttl_ms"`
	Host        string    `json:"host,omitempty"`
	PID         int       `json:"pid,omitempty"`
	Version     string    `json:"version,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	RenewedAt   time.Time `json:"renewed_at,omitzero"`
	// Connection is that of a harness to its broker, the zero value if it does not name one.
	Connection presence.Named `json:"connection,omitzero"`
	// Abandoned is how the process of a harness ended, if its supervisor saw that. Such a lease has ended.
	Abandoned string `json:"abandoned,omitempty"`
}

// UnmarshalJSON reads leases of programs in other languages: exclusive is true by default, an incarnation may be a
// number, and ttl_ms may be 2000.0. A malformed field that no decision needs is ignored.
func (l *Record) UnmarshalJSON(body []byte) error {
	*l = Record{Exclusive: true}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("value of a lease: %w: %w", events.ErrMalformed, err)
	}
	for name, to := range map[string]any{"exclusive": &l.Exclusive, "state": &l.State, "ttl_ms": &l.TTLMS} {
		if raw, ok := fields[name]; ok {
			if err := events.ReadJSON(raw, to); err != nil {
				return fmt.Errorf("value of a lease: %s: %w: %w", name, events.ErrMalformed, err)
			}
		}
	}
	for name, to := range map[string]any{"id": &l.ID, "incarnation": &l.Incarnation, "host": &l.Host, "pid": &l.PID,
		"version": &l.Version, "started_at": &l.StartedAt, "renewed_at": &l.RenewedAt, "connection": &l.Connection,
		"abandoned": &l.Abandoned} {
		if err := events.ReadJSON(fields[name], to); err != nil && name == "incarnation" {
			l.Incarnation = string(fields[name])
		}
	}
	return nil
}
