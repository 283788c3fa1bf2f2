package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// parted is a cell of sessions whose commits are mixed in the log, with a document of each, and two documents without a
// log. Nothing folds it.
func parted(t *testing.T, sessions int) (w *world, refs []events.Ref, docs map[string][]byte) {
	t.Helper()
	w = newWorld(t)
	for i := range sessions {
		refs = append(refs, events.Ref{Harness: "h1", Session: fmt.Sprintf("s%d", i)})
		w.append(refs[i], events.SessionOpened{Incarnation: "1", Title: refs[i].Session})
	}
	for i := range sessions {
		w.append(refs[sessions-1-i], events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	}
	if reply := w.rebuild(w.ledger(), request.Rebuild{}); reply.Changed != sessions {
		t.Fatalf("%+v", reply)
	}
	docs = map[string][]byte{}
	for _, r := range refs {
		docs[events.SessionKey(r)] = w.load(events.SessionKey(r))
	}
	return w, refs, docs
}

// replace stores other bytes in place of a key; nil: none were there.
func (w *world) replace(key string, value []byte) {
	w.t.Helper()
	rev := uint64(0)
	if e, err := w.bus.KV.Load(w.t.Context(), kv.State, key); err == nil {
		rev = e.Rev
	}
	if _, err := w.bus.KV.Store(w.t.Context(), kv.State, key, value, rev); err != nil {
		w.t.Fatal(err)
	}
}

// parts rebuilds in parts, each by another ledger and each twice, and returns the sum. between runs after each part.
func (w *world) parts(q request.Rebuild, between func(part int)) (sum request.Rebuilt, parts int) {
	w.t.Helper()
	for {
		reply := w.rebuild(w.ledger(), q)
		again := w.rebuild(w.ledger(), q)
		// behind a document that was removed there is another one
		removing := strings.HasPrefix(q.After, placeInDocuments)
		if again.Changed+again.Views != 0 || !removing && again.Removed != 0 || !removing && again.Next != reply.Next {
			w.t.Fatalf("part %d after %q: %+v, and again: %+v", parts, q.After, reply, again)
		}
		if reply.Sessions > q.Limit {
			w.t.Errorf("a part has %d sessions, want at most %d", reply.Sessions, q.Limit)
		}
		parts++
		sum.Sessions, sum.Changed = sum.Sessions+reply.Sessions, sum.Changed+reply.Changed
		sum.Removed, sum.Lost = sum.Removed+reply.Removed+again.Removed, sum.Lost+reply.Lost
		if q.After = reply.Next; q.After == "" {
			return sum, parts
		}
		if parts > 100 {
			w.t.Fatalf("no end: %+v", reply)
		}
		between(parts)
	}
}

// TestWhereAPartEnds: a part ends before a session too many, after many entries or bytes, and before an entry that is
// newer than the part. Only after the last one there is no other part.
func TestWhereAPartEnds(t *testing.T) {
	ref := func(i int) events.Ref { return events.Ref{Harness: "h", Session: fmt.Sprint("s", i)} }
	for name, x := range map[string]struct {
		limit, sessions, size int
		unwanted              bool
		end, last             uint64
		more                  bool
	}{
		"sessions":          {limit: 3, sessions: 10, end: 100, last: 3, more: true},
		"of other sessions": {limit: 3, sessions: 10, unwanted: true, end: 100, last: 100},
		"one session":       {limit: 1, sessions: 1, end: 100, last: 100},
		"many entries":      {limit: 1, sessions: 1, end: 60_000, last: 50_000, more: true},
		"bytes":             {limit: 1, sessions: 1, size: 32 << 20, end: 100, last: 3, more: true},
		"large entries":     {limit: 1, sessions: 1, size: 65 << 20, end: 100, last: 1, more: true},
		"newer ones":        {limit: 10, sessions: 10, end: 5, last: 5},
		"all":               {limit: 10, sessions: 10, end: 100_000, last: 40_000},
	} {
		p := part{limit: x.limit, end: x.end, met: map[events.Ref]bool{}}
		var err error
		entries := int(x.end) + 10
		if name == "all" {
			entries = 40_000
		}
		for i := 0; i < entries && err == nil; i++ {
			err = p.add(ref(i%x.sessions), !x.unwanted, uint64(i+1), x.size)
		}
		more, err := p.more(err)
		if err != nil || more != x.more || p.last != x.last || len(p.met) > x.limit {
			t.Errorf("%s: it ends with %d of %d sessions, more: %v, %v", name, p.last, len(p.met), more, err)
		}
	}
	mixed := part{limit: 1, end: 9, met: map[events.Ref]bool{}}
	for i, wanted := range []bool{true, false, true} {
		if err := mixed.add(ref(i%2), wanted, uint64(i+1), 0); err != nil {
			t.Errorf("entry %d of a mixed part: %v", i, err)
		}
	}
	if more, err := (&part{}).more(bus.ErrUnreachable); more || !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("a reading that failed: %v, %v", more, err)
	}
}

// TestRebuildInParts: parts together do what one request does, wherever a part ends: each session is rebuilt once, with
// its last commit, and each document without a log is removed. A part that is done again changes nothing.
func TestRebuildInParts(t *testing.T) {
	const sessions = 7
	w, refs, docs := parted(t, sessions)
	for _, limit := range []int{1, 2, 3, sessions, 100} {
		for _, r := range refs {
			w.replace(events.SessionKey(r), bytes.Replace(docs[events.SessionKey(r)], []byte("s"), []byte("S"), 1))
		}
		for _, stray := range []string{"a", "b"} {
			w.replace(events.SessionKey(events.Ref{Harness: "h1", Session: stray}), []byte(`{}`))
		}
		sum, parts := w.parts(request.Rebuild{Limit: limit}, func(int) {})
		if sum.Sessions != sessions || sum.Changed != sessions || sum.Removed != 2 || sum.Lost != 0 {
			t.Errorf("limit %d: %+v", limit, sum)
		}
		if limit < sessions && parts < 4 {
			t.Errorf("limit %d: %d parts", limit, parts)
		}
		for key, doc := range docs {
			if got := w.load(key); !bytes.Equal(got, doc) {
				t.Errorf("limit %d: %s is %s", limit, key, got)
			}
		}
	}
	if sum, _ := w.parts(request.Rebuild{Limit: 2, Harness: "other"}, func(int) {}); sum.Sessions+sum.Removed != 0 {
		t.Errorf("of another harness: %+v", sum)
	}
}

// TestRebuildInPartsWhileTheLogGrows: a session that is written between two parts is rebuilt by a later part, a
// document that is damaged behind the present part too, and the rebuild ends although the log grows with each part.
func TestRebuildInPartsWhileTheLogGrows(t *testing.T) {
	w, refs, docs := parted(t, 5)
	damaged := events.SessionKey(refs[0])
	sum, _ := w.parts(request.Rebuild{Limit: 1}, func(part int) {
		if part == 1 {
			w.replace(damaged, bytes.Replace(docs[damaged], []byte("s"), []byte("S"), 1))
		}
		if part <= 20 {
			w.append(refs[1], events.ToolStarted{Call: fmt.Sprint("c", part), Turn: "t1", Name: "bash"})
		}
	})
	if sum.Changed < 2 {
		t.Errorf("%+v", sum)
	}
	if got := w.load(damaged); !bytes.Equal(got, docs[damaged]) {
		t.Errorf("the damaged document is %s", got)
	}
	if reply := w.rebuild(w.ledger(), request.Rebuild{}); reply.Changed > 1 {
		t.Errorf("left out: %+v", reply)
	}
}

// TestOfOneSessionAndWithoutALimit: one session is no part, and a part without a limit has all that one may have.
func TestOfOneSessionAndWithoutALimit(t *testing.T) {
	w, refs, _ := parted(t, 3)
	one := request.Rebuild{Harness: refs[0].Harness, Session: refs[0].Session, Limit: 1}
	if reply := w.rebuild(w.ledger(), one); reply.Sessions != 1 || reply.Next != "" {
		t.Errorf("one session: %+v", reply)
	}
	if reply := w.rebuild(w.ledger(), request.Rebuild{After: "log.0"}); reply.Sessions != len(refs) {
		t.Errorf("no limit: %+v", reply)
	}
}

// TestAPartThatIsInterrupted: a part whose time ends says so, and the same place continues.
func TestAPartThatIsInterrupted(t *testing.T) {
	w, refs, docs := parted(t, 3)
	for _, r := range refs {
		w.replace(events.SessionKey(r), []byte(`{}`))
	}
	first := w.rebuild(w.ledger(), request.Rebuild{Limit: 1})
	ctx, end := context.WithCancel(t.Context())
	end()
	q := request.Rebuild{Limit: 1, After: first.Next}
	if reply, err := w.ledger().rebuild(ctx, q); err == nil {
		t.Errorf("interrupted, and it says %+v", reply)
	}
	w.parts(q, func(int) {})
	for key, doc := range docs {
		if got := w.load(key); !bytes.Equal(got, doc) {
			t.Errorf("%s is %s", key, got)
		}
	}
	for _, after := range []string{"log", "log.x", "log.-1", "documents.", "5", "other.5"} {
		_, err := w.ledger().rebuild(t.Context(), request.Rebuild{After: after})
		r, refused := errors.AsType[*events.Refusal](err)
		if !refused || r.Code != http.StatusBadRequest || !strings.Contains(r.Message, "after") {
			t.Errorf("after %q: %v", after, err)
		}
	}
}

// TestAPlaceBeyondTheEnd: a place of another cell, or of a log that has lost its end since, is refused. The end itself
// is a place.
func TestAPlaceBeyondTheEnd(t *testing.T) {
	w, _, _ := parted(t, 1)
	end, err := w.bus.Log.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mark, err := w.bus.KV.Mark(t.Context(), kv.State)
	if err != nil {
		t.Fatal(err)
	}
	for phase, end := range map[string]uint64{placeInLog: end, placeInDocuments: mark.Rev} {
		for at, refused := range map[uint64]bool{end: false, end + 1: true, math.MaxUint64: true} {
			_, err := w.ledger().rebuild(t.Context(), request.Rebuild{After: place(phase, at)})
			r, isRefusal := errors.AsType[*events.Refusal](err)
			if isRefusal != refused || refused && (r.Code != http.StatusBadRequest || r.Field != "after") ||
				!refused && err != nil {
				t.Errorf("%s, the end is %d: %v", place(phase, at), end, err)
			}
		}
	}
}

// TestANoteOutlivesARebuild: a rebuild removes a damaged document without a log. The note of the loss, which may be the
// last copy, stays until the loss is accepted.
func TestANoteOutlivesARebuild(t *testing.T) {
	w, _, _ := parted(t, 1)
	lost := events.Ref{Harness: "h1", Session: "lost"}
	l := w.ledger()
	for _, q := range []request.Rebuild{{}, {Limit: 1}} {
		w.replace(events.SessionKey(lost), []byte("damaged"))
		note := Lost{Ref: lost, Known: 7, Document: []byte(`{"v":1}`)}
		if err := l.recordLoss(t.Context(), note); err != nil {
			t.Fatal(err)
		}
		rebuild := func() (removed int) {
			for {
				reply := w.rebuild(l, q)
				removed += reply.Removed
				if q.After = reply.Next; q.After == "" {
					return removed
				}
			}
		}
		if n := rebuild(); n != 1 || w.note(lost) == nil {
			t.Errorf("%d removed, noted %+v", n, w.note(lost))
		}
		w.replace(events.SessionKey(lost), []byte("damaged"))
		q.AcceptLoss = true
		if n := rebuild(); n != 1 || w.note(lost) != nil {
			t.Errorf("accepted: %d removed, noted %+v", n, w.note(lost))
		}
	}
}

// TestADocumentOfANewerLayoutStands: this build cannot read which commits it knows, so it does not replace it, with a
// log or without one, unless the loss is accepted. Other sessions are rebuilt.
func TestADocumentOfANewerLayoutStands(t *testing.T) {
	w, refs, docs := parted(t, 2)
	newer := fmt.Appendf(nil, `{"v":%d}`, session.Version+1)
	unlogged := events.Ref{Harness: "h1", Session: "unlogged"}
	w.replace(events.SessionKey(refs[0]), newer)
	w.replace(events.SessionKey(unlogged), newer)
	w.replace(events.SessionKey(refs[1]), []byte(`{}`))
	reply := w.rebuild(w.ledger(), request.Rebuild{})
	if len(reply.Failed) != 2 || reply.Changed != 1 || reply.Removed != 0 ||
		!strings.Contains(reply.Failed[0], "newer layout") {
		t.Errorf("%+v", reply)
	}
	for _, r := range []events.Ref{refs[0], unlogged} {
		if got := w.load(events.SessionKey(r)); !bytes.Equal(got, newer) {
			t.Errorf("%s: %s", r, got)
		}
	}
	if reply := w.rebuild(w.ledger(), request.Rebuild{AcceptLoss: true}); reply.Changed != 1 || reply.Removed != 1 ||
		!bytes.Equal(w.load(events.SessionKey(refs[0])), docs[events.SessionKey(refs[0])]) {
		t.Errorf("accepted: %+v", reply)
	}
}

// strays stores messages whose subjects name no session: of tokens that are no ids, and of an id that is no text.
func (w *world) strays() {
	w.t.Helper()
	for _, subject := range []string{"hf.log.h1.=ZZ.harness", "hf.log.h1.a!.harness", "hf.log.h1.=FF.harness"} {
		if _, err := w.operator().Publish(subject, []byte("[]")); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestARebuildPassesOverStrays: messages of no session stop no rebuild, in one request or in parts, and are no sessions
// of it.
func TestARebuildPassesOverStrays(t *testing.T) {
	w, refs, docs := parted(t, 2)
	w.strays()
	for _, q := range []request.Rebuild{{}, {Limit: 1}, {Harness: "h1"}, {Harness: "h1", Limit: 1}} {
		for _, r := range refs {
			w.replace(events.SessionKey(r), []byte(`{}`))
		}
		sum, failed := request.Rebuilt{}, 0
		for more := true; more; more = q.After != "" {
			reply := w.rebuild(w.ledger(), q)
			sum.Sessions, sum.Changed = sum.Sessions+reply.Sessions, sum.Changed+reply.Changed
			failed, q.After = failed+len(reply.Failed), reply.Next
		}
		if sum.Sessions != len(refs) || sum.Changed != len(refs) || failed != 0 {
			t.Errorf("%+v: %d sessions, %d changed, %d failed", q, sum.Sessions, sum.Changed, failed)
		}
		for key, doc := range docs {
			if got := w.load(key); !bytes.Equal(got, doc) {
				t.Errorf("%+v: %s is %s", q, key, got)
			}
		}
	}
}
