package opencode

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// world appends steps as a harness does, and folds the logs with the real fold.
type world struct {
	states      map[string]*fold.State
	seq         uint64
	incarnation int
}

func newWorld() *world { return &world{states: map[string]*fold.State{}, incarnation: 1} }

// do appends one step. A restart begins the next incarnation.
func (w *world) do(t *testing.T, s Step) {
	t.Helper()
	if s.Restart {
		w.incarnation++
		return
	}
	ref := events.Ref{Harness: "h", Session: s.Session}
	if w.states[s.Session] == nil {
		w.states[s.Session] = fold.New(ref)
	}
	state, me := w.states[s.Session], strconv.Itoa(w.incarnation)
	epoch, facts := state.Epoch, slices.Clone(s.Facts)
	if s.Claim {
		epoch++
		facts = slices.Insert(facts, 0, events.Fact(events.SessionClaimed{Incarnation: me}))
	}
	if s.Open != nil {
		open := *s.Open
		open.Incarnation, epoch = me, 1
		facts = slices.Insert(facts, 0, events.Fact(open))
	}
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(fmt.Sprintf("%d-%d", w.seq, i), events.HarnessSource("h", me), ref, epoch, s.At, f)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		t.Fatal(err)
	}
	if evs, err = events.DecodeBatch(ref, body); err != nil {
		t.Fatal(err)
	}
	guard := state.Seq
	w.seq++
	res := state.Fold(&events.Commit{Ref: ref, Writer: events.WriterHarness, Seq: w.seq, Guard: guard, Guarded: true,
		At: s.At, Events: evs})
	if len(res.Parked) > 0 || res.Gap {
		t.Errorf("%s: parked %v, gap %v", s.Session, res.Parked, res.Gap)
	}
}

// open returns the entities that are open in the documents, under each session's present epoch or an older one.
func (w *world) open(lost bool) []string {
	var ids []string
	for id, s := range w.states {
		add := func(entity, name string, epoch uint64) {
			if lost == (epoch < s.Epoch || s.Incarnation != strconv.Itoa(w.incarnation)) {
				ids = append(ids, fmt.Sprintf("%s/%s/%s", id, entity, name))
			}
		}
		if s.Turn != nil {
			add("turn", s.Turn.ID, s.Turn.Epoch)
		}
		for name, c := range s.Tools {
			add("tool", name, c.Epoch)
		}
		for name, p := range s.Prompts {
			add("prompt", name, p.Epoch)
		}
		for _, m := range s.Queue {
			add("message", m.ID, s.Epoch)
		}
	}
	slices.Sort(ids)
	return ids
}

// uncompacted removes compactions: OpenCode's own have no request, so the fold does not know them.
func uncompacted(ids []string) []string {
	out := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.Contains(id, "/compaction/") })
	slices.Sort(out)
	return out
}

// foldsAsReported checks steps with the real fold: every fact except compactions counts, the documents have the same
// open entities as the report, and no message is left in a queue.
func foldsAsReported(t *testing.T, steps []Step, report Report) *world {
	t.Helper()
	w := newWorld()
	ignored := uint64(0)
	for _, s := range steps {
		for _, f := range s.Facts {
			if strings.HasPrefix(string(f.Kind()), "compaction.") {
				ignored++
			}
		}
		w.do(t, s)
	}
	for _, s := range w.states {
		ignored -= s.Ignored.Count
		if last := s.Ignored.Last; last != nil && !strings.HasPrefix(last.Type, "holdfast.compaction.") {
			t.Errorf("%s: %s was ignored: %s", s.Session, last.Type, last.Why)
		}
	}
	if ignored != 0 {
		t.Errorf("%d more compaction facts were appended than ignored", int64(ignored))
	}
	if got, want := w.open(false), uncompacted(report.Open); !slices.Equal(got, want) {
		t.Errorf("the documents show %v open, the report %v", got, want)
	}
	return w
}

// TestRecordingsFold: the fold accepts the translation of each recording, and each session ends as the recording ended.
func TestRecordingsFold(t *testing.T) {
	want := map[string]string{
		"f-401": "idle failed authentication", "f-500-exhausted": "idle failed server_error",
		"g-abort-question": "idle stopped " + reasonAborted,
		"g-abort-tool":     "idle stopped " + reasonAborted, "h-kill9-parallel": "waiting", "h-kill9-tool": "running",
		"i-kill9-permission": "waiting",
		"i-kill9-question":   "waiting", "j-kill9-compact": "idle failed empty_output",
		"d-permission-reject": "idle completed tool-calls", "e-question-rejected": "idle completed tool-calls",
		"k-kill9-permissions": "waiting", "k-kill9-subagent": "running running",
		"k-shell-delete": "closed stopped session-closed",
	}
	traces, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(traces) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, path := range traces {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			steps, report := translateFile(t, path)
			w := foldsAsReported(t, steps, report)
			if got, want := w.open(true), uncompacted(report.Lost); !slices.Equal(got, want) {
				t.Errorf("the documents show %v open under a dead process, the report %v lost", got, want)
			}
			var ends []string
			for _, s := range w.states {
				end := string(s.Phase)
				if s.Turn == nil {
					end += " " + s.LastTurn.Outcome + " " + s.LastTurn.Reason
				}
				ends = append(ends, end)
			}
			got := strings.Join(ends, " ")
			end := want[name]
			if end == "" {
				end = "idle completed stop"
			}
			if got != end {
				t.Errorf("%d sessions, the end is %q, want %q", len(w.states), got, end)
			}
		})
	}
}
