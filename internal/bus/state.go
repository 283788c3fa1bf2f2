package bus

import "time"

// Bucket is one of the two buckets of a cell.
type Bucket int

// The buckets.
const (
	State  Bucket = iota // documents and views
	Leases               // tickets and leases
)

// Entry is one key of a bucket as it stands. Deleted entries are seen by watches only.
type Entry struct {
	Key     string
	Value   []byte
	Rev     uint64    // the revision that a write replacing it must name
	At      time.Time // the broker's, of this revision
	Deleted bool
	Expired bool // deleted by the broker, because its TTL was over
}
