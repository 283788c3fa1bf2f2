package kv

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// TestShow: which deliveries a watch reports, and what it knows after them. It knows revision 7 of the key "known",
// which was stored at second 20.
func TestShow(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0).UTC() }
	const nothing, entry, deleted, unseen = "nothing", "an entry", "a deletion", "an unseen deletion"
	for _, c := range []struct {
		name   string
		key    string
		rev    uint64
		second int
		delete bool
		every  bool
		after  Mark
		want   string
		knows  bool // the delivered revision, at the end
	}{
		{name: "a new key", key: "new", rev: 8, second: 21, want: entry, knows: true},
		{name: "a new key, to a watch of all deletions", key: "new", rev: 8, second: 21, every: true, want: entry,
			knows: true},
		{name: "what was reported", key: "known", rev: 7, second: 20, want: nothing, knows: true},
		{name: "a change", key: "known", rev: 8, second: 21, want: entry, knows: true},
		{name: "a change in the same instant", key: "known", rev: 8, second: 20, want: entry, knows: true},
		{name: "the same revision of a new bucket", key: "known", rev: 7, second: 21, want: entry, knows: true},
		{name: "a deletion", key: "known", rev: 8, second: 21, delete: true, want: deleted},
		{name: "a deletion, to a watch of all", key: "known", rev: 8, second: 21, delete: true, every: true,
			want: deleted},
		{name: "a deletion of what was not reported", key: "new", rev: 8, second: 21, delete: true, want: nothing},
		{name: "such a one, to a watch of all", key: "new", rev: 8, second: 21, delete: true, every: true,
			want: unseen},
		{name: "behind the mark", key: "new", rev: 8, second: 19, after: Mark{Rev: 7, At: at(20)}, want: entry,
			knows: true},
		{name: "in a new bucket, older than the mark", key: "new", rev: 8, second: 20, after: Mark{At: at(20)},
			want: nothing},
		{name: "in a new bucket, younger than the mark", key: "new", rev: 8, second: 21, after: Mark{At: at(20)},
			want: entry, knows: true},
		{name: "in a new bucket, a change of what is known", key: "known", rev: 8, second: 19,
			after: Mark{At: at(20)}, want: entry, knows: true},
	} {
		got := nothing
		w := (&Buckets{conn: &core.Conn{}}).newWatch(State, nil, c.every, func(u Update) error {
			switch {
			case u.Unseen:
				got = unseen
			case u.Deleted:
				got = deleted
			default:
				got = entry
			}
			return nil
		})
		w.after, w.round = c.after, 2
		w.known["known"] = shown{rev: 7, at: at(20).UnixNano(), round: 1}
		m := &nats.Msg{Subject: core.KVSubject(w.buckets.bucket(State), c.key), Header: nats.Header{}}
		if c.delete {
			m.Header.Set(core.HeaderOperation, "DEL")
		}
		if err := w.show(pull.Delivery{Msg: m, Seq: c.rev, At: at(c.second), Got: at(c.second)}); err != nil {
			t.Fatal(err)
		}
		now, known := w.known[c.key]
		if got != c.want || known != c.knows ||
			known && (now.rev != c.rev || now.at != at(c.second).UnixNano() || now.round != w.round) {
			t.Errorf("%s: %s is reported, want %s; the watch knows %+v, %v", c.name, got, c.want, now, known)
		}
	}
}

// TestEntriesAreRead: an entry has its TTL, and a deletion of any kind has none.
func TestEntriesAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		header nats.Header
		want   Entry
	}{
		"an entry":    {nats.Header{"Nats-TTL": {"30s"}}, Entry{TTL: 30 * time.Second}},
		"a deletion":  {nats.Header{"Nats-TTL": {"30s"}, "KV-Operation": {"DEL"}}, Entry{Deleted: true}},
		"a purge":     {nats.Header{"Nats-TTL": {"30s"}, "KV-Operation": {"PURGE"}}, Entry{Deleted: true}},
		"its marker":  {nats.Header{"Nats-TTL": {"30s"}, "Nats-Marker-Reason": {"Purge"}}, Entry{Deleted: true}},
		"an end":      {nats.Header{"Nats-Marker-Reason": {"MaxAge"}}, Entry{Deleted: true, Expired: true}},
		"without TTL": {nil, Entry{}},
	} {
		e := entryOf(&nats.Msg{Subject: core.KVSubject("b", "k"), Header: c.header}, "b")
		if e.Key != "k" || e.TTL != c.want.TTL || e.Deleted != c.want.Deleted || e.Expired != c.want.Expired {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
