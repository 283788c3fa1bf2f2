package core

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// RestoredKey is the metadata key of a log that was restored from a backup: a [Restored] in JSON.
const RestoredKey = "hf.restored"

// Restored says from which backup a log was restored.
type Restored struct {
	Backup time.Time `json:"backup"` // when the backup began
	Last   uint64    `json:"last"`   // the log's end in the backup
}

// RestoredFrom returns from which backup a stream was restored; false if it was not.
func RestoredFrom(cfg jetstream.StreamConfig) (Restored, bool) {
	var r Restored
	err := json.Unmarshal([]byte(cfg.Metadata[RestoredKey]), &r)
	return r, err == nil
}

// Chunk sends one part of a restored stream. The broker answers with nothing, or with why it stopped.
func (c *Conn) Chunk(ctx context.Context, op, subject string, part []byte) error {
	started := time.Now()
	m, err := c.NC.RequestWithContext(ctx, subject, part)
	if denied := c.Denied.Since(subject, started); denied != nil {
		return denied
	}
	if err != nil {
		return Translate(op, err)
	}
	if len(m.Data) == 0 {
		return nil
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &failed); err == nil && failed.Error != nil {
		return Translate(op, failed.Error)
	}
	return nil
}
