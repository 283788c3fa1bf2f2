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

// TestAPageKeepsNoMoreThanAReply: however many and large the documents of a list are, and in whichever order they come,
// one reply is kept, and the pages together have each document once, in order.
func TestAPageKeepsNoMoreThanAReply(t *testing.T) {
	body := make([]byte, 700<<10)
	for name, sizes := range map[string][]int{"all large": {600 << 10}, "all small": {100},
		"of all sizes": {1, 100, 10_000, 200_000, 600_000, 700 << 10}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				var all []kv.Entry
				for i := range 500 {
					all = append(all, kv.Entry{Key: fmt.Sprintf("session.h.%04d", i),
						Value: body[:sizes[rnd.IntN(len(sizes))]]})
				}
				limit := []int{1, 7, 1_000}[rnd.IntN(3)]
				got, after := 0, ""
				for {
					p := page{limit: limit}
					for _, i := range rnd.Perm(len(all)) {
						if all[i].Key <= after {
							continue
						}
						p.add(all[i])
						p.add(all[i]) // changed meanwhile
						kept := 0
						for _, e := range p.found {
							kept += len(e.Value)
						}
						if kept != p.bytes || len(p.found) > limit || len(p.found) > 1 && kept > listBytesMax {
							t.Fatalf("seed %d: %d documents of %d bytes are kept, %d counted", seed, len(p.found),
								kept, p.bytes)
						}
					}
					for _, e := range p.found {
						if e.Key != all[got].Key {
							t.Fatalf("seed %d: %s where %s is due", seed, e.Key, all[got].Key)
						}
						got++
					}
					if after = p.reply().Next; after == "" {
						break
					}
				}
				if got != len(all) {
					t.Fatalf("seed %d: %d of %d listed", seed, got, len(all))
				}
			}
		})
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
