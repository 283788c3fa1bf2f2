package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// TestAPageKeepsNoMoreThanAReply: however many and large the documents of a list are, one reply is kept and a bounded
// number of bytes is read, and the pages together have each document that is wanted once, in order.
func TestAPageKeepsNoMoreThanAReply(t *testing.T) {
	body := make([]byte, 700<<10)
	for name, sizes := range map[string][]int{"all large": {600 << 10}, "all small": {100},
		"of all sizes": {1, 100, 10_000, 200_000, 600_000, 700 << 10}} {
		for _, oneIn := range []int{1, 3, 400} {
			t.Run(fmt.Sprintf("%s, one in %d", name, oneIn), func(t *testing.T) {
				for seed := range uint64(20) {
					rnd := rand.New(rand.NewPCG(seed, 1))
					var all []kv.Entry
					var want []string
					for i := range 500 {
						e := kv.Entry{Key: fmt.Sprintf("session.h.%04d", i), Rev: uint64(i + 1),
							Value: body[:sizes[rnd.IntN(len(sizes))]]}
						if all = append(all, e); i%oneIn == 0 {
							want = append(want, e.Key)
						}
					}
					if got := readPages(t, all, oneIn, []int{1, 7, 1_000}[rnd.IntN(3)]); !slices.Equal(got, want) {
						t.Fatalf("seed %d: %v listed, want %v", seed, got, want)
					}
				}
			})
		}
	}
}

// readPages reads all pages of a list of which one document in so many is wanted, and returns the keys.
func readPages(t *testing.T, all []kv.Entry, oneIn, limit int) (keys []string) {
	t.Helper()
	for after := uint64(0); ; {
		p, more := page{limit: limit}, false
		for i := int(after); i < len(all) && !more; i++ {
			more = p.add(all[i], i%oneIn == 0) != nil
			kept := 0
			for _, e := range p.found {
				kept += len(e.Value)
			}
			if kept != p.bytes || len(p.found) > limit || len(p.found) > 1 && kept > listBytesMax ||
				p.read > listReadMax {
				t.Fatalf("%d documents of %d bytes are kept, %d counted, %d read", len(p.found), kept, p.bytes, p.read)
			}
		}
		for _, e := range p.found {
			keys = append(keys, e.Key)
		}
		next, err := parseNext(p.reply(more).Next)
		if err != nil || more && next <= after {
			t.Fatalf("after %d comes %d: %v", after, next, err)
		}
		if after = next; !more {
			return keys
		}
	}
}

// TestAListedDocumentChanges: of a document that changes within a page the newest revision is kept, and none if it is
// no longer wanted.
func TestAListedDocumentChanges(t *testing.T) {
	p := page{limit: 10}
	for i, e := range []struct {
		key    string
		wanted bool
	}{{"a", true}, {"b", true}, {"c", true}, {"a", true}, {"b", false}} {
		if err := p.add(kv.Entry{Key: e.key, Rev: uint64(i + 1), Value: []byte(fmt.Sprint(i))}, e.wanted); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprintf("%s", p.reply(true)); got != "{[2 3] 5}" || p.bytes != 2 {
		t.Errorf("%s, %d bytes", got, p.bytes)
	}
}

// TestListWhileDocumentsChange: a document that changes between two pages is listed again, and none is left out. The
// next of a page is a revision, and anything else is refused.
func TestListWhileDocumentsChange(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	revs, seen := map[string]uint64{}, map[string]int{}
	change := func(key string) {
		t.Helper()
		if revs[key], err = w.bus.KV.Store(t.Context(), kv.State, key, []byte(`"`+key+`"`), revs[key]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		change(fmt.Sprintf("session.h.%d", i))
	}
	q := request.List{Harness: "h", Limit: 3}
	for pages := 1; ; pages++ {
		reply, err := l.list(t.Context(), q)
		if err != nil || len(reply.Documents) > 3 || pages > 10 {
			t.Fatalf("page %d: %d documents: %v", pages, len(reply.Documents), err)
		}
		for _, d := range reply.Documents {
			seen[string(d)]++
		}
		if q.After = reply.Next; q.After == "" {
			break
		}
		if pages == 1 {
			// it was listed
			change("session.h.0")
			// it is still to come
			change("session.h.9")
		}
	}
	if len(seen) != 10 || seen[`"session.h.0"`] != 2 || seen[`"session.h.9"`] != 1 {
		t.Errorf("listed: %v", seen)
	}
	for _, next := range []string{"session.h.3", "-1", "1.5", strings.Repeat("9", 30)} {
		_, err := l.list(t.Context(), request.List{After: next})
		if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != http.StatusBadRequest {
			t.Errorf("after %s: %v", next, err)
		}
	}
}

// TestManyListsAreRefused: few lists are read at the same time, and few wait for that.
func TestManyListsAreRefused(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	leave := occupy(t, l.lists, listsMax)
	answers := make(chan error, listWaitMax)
	for range listWaitMax {
		go func() {
			_, err := l.list(t.Context(), request.List{})
			answers <- err
		}()
	}
	natstest.Until(t, "the others to wait", func() bool { return l.lists.waiters() == listWaitMax })
	_, err = l.list(t.Context(), request.List{})
	if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != http.StatusServiceUnavailable ||
		!strings.Contains(r.Message, "list") {
		t.Errorf("while many wait: %v", err)
	}
	leave()
	for range listWaitMax {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// TestARequestReadsFewBytesOfALog: a request does not read a session whose document is many bytes behind its log, and
// keeps the newest of the commits that it reads.
func TestARequestReadsFewBytesOfALog(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	const size = 250_000
	data := []byte(`"` + strings.Repeat("x", size) + `"`)
	w.append(ref, events.SessionOpened{Incarnation: "1"})
	fill := func(commits int) {
		t.Helper()
		for range commits {
			w.appendOdd(ref, events.Event{ID: w.bus.NewID(), Source: events.HarnessSource(ref.Harness, "1"),
				Kind: "other.thing", Session: ref.Session, Epoch: 1, Time: at0, Data: data})
		}
	}
	fill(currentBytesMax / size / 2)
	st, tail, err := l.current(t.Context(), ref, true)
	seq := w.seq[ref]
	if err != nil || st.Seq != seq || len(tail) > currentKeptMax/size || tail[len(tail)-1].Seq != seq {
		t.Errorf("%d of %d, %d commits kept: %v", st.Seq, seq, len(tail), err)
	}
	if !slices.IsSortedFunc(tail, func(a, b events.Commit) int { return int(a.Seq) - int(b.Seq) }) {
		t.Error("not in order")
	}
	fill(currentBytesMax/size/2 + 10)
	_, _, err = l.current(t.Context(), ref, true)
	if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != http.StatusServiceUnavailable {
		t.Errorf("more than %d bytes were read: %v", currentBytesMax, err)
	}
}
