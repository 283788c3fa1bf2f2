package retry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// steps are events that other writers may append at any time. The fold ignores the invalid ones. # stands for a number,
// @ for the open turn, & for the requested turn.
var steps = []string{
	`harness turn.started {"turn":"t#","cause":"message"}`,
	`harness turn.started {"turn":"t#","cause":"message","synthetic":true}`,
	`harness turn.started {"turn":"&"}`,
	`harness turn.started {"turn":"&"}`,
	`harness turn.started {"turn":"&"}`,
	`harness turn.started {"turn":"x#","cause":"retry"}`,
	`harness turn.failed {"turn":"@","error":{"kind":"server_error","text":"x"},"had_output":false}`,
	`harness turn.failed {"turn":"@","error":{"kind":"server_error","text":"x"},"had_output":false}`,
	`harness turn.failed {"turn":"@","error":{"kind":"rate_limit","text":"x","retry_after_ms":30000},` +
		`"had_output":false}`,
	`harness turn.failed {"turn":"@","error":{"kind":"quota","text":"x"},"had_output":false}`,
	`harness turn.failed {"turn":"@","error":{"kind":"context_exceeded","text":"x"},"had_output":false}`,
	`harness turn.completed {"turn":"@"}`,
	`harness turn.stopped {"turn":"@","actor":"person"}`,
	`harness tool.started {"call":"c#","turn":"@","name":"bash"}`,
	`harness tool.completed {"call":"c#"}`,
	`harness prompt.requested {"prompt":"p#","kind":"question","delivery":"message"}`,
	`harness prompt.requested {"prompt":"q#","turn":"@","kind":"question","delivery":"callback","blocking":false}`,
	`ledger prompt.answered {"prompt":"p#","answers":[],"by":"u"}`,
	`ledger turn.requested {"turn":"a#","cause":"answer","of_turn":"@"}`,
	`ledger turn.stop_requested {"turn":"@","actor":"person","by":"u"}`,
	`ledger session.configured {"policy":{"auto_retry":false},"by":"u"}`,
	`ledger session.configured {"policy":{"auto_retry":true},"by":"u"}`,
	`ledger session.configured {"policy":{"resume":"hold"},"by":"u"}`,
	`ledger session.configured {"policy":{"resume":"auto","resume_max":2},"by":"u"}`,
	`ledger session.configured {"policy":{"retry_max":3,"stall_after_s":20},"provider_changed":true,"by":"u"}`,
	`reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}`,
	`reconciler turn.interrupted {"turn":"@","reason":"owner-lost"}`,
	`reconciler turn.interrupted {"turn":"@","reason":"owner-lost"}`,
	`harness session.claimed {"incarnation":"17"}`,
	`compaction message.accepted {"message":"m#","content":"x","synthetic":false,"by":"u"}`,
	`compaction turn.requested {"turn":"h#","cause":"message","message":"m#"}`,
	`compaction message.withdrawn {"message":"m#","by":"u"}`,
	`compaction compaction.requested {"compaction":"k#","reason":"manual","used":1,"limit":2,"follow_up":"continue"}`,
	`harness compaction.started {"compaction":"k#"}`,
	`harness compaction.completed {"compaction":"k#"}`,
	`harness compaction.failed {"compaction":"k#","error":{"kind":"quota","text":"x"}}`,
}

// world is a session with two replicas. Each replica decides on the documents that it has read.
type world struct {
	*script
	t       *rapid.T
	seen    [2]*session.State
	n       int
	written []events.Fact // facts of the replicas that counted
}

func newWorld(t *rapid.T) *world {
	w := &world{script: newScript(t), t: t}
	w.facts(`1 session.opened {"incarnation":"17","policy":{"resume_max":1}}`)
	w.facts(`2 turn.started {"turn":"t0","cause":"message"}`)
	w.seen = [2]*session.State{w.s.Clone(), w.s.Clone()}
	return w
}

// step does one thing: it advances the time, appends an event of another writer, or lets a replica read or decide.
func (w *world) step() {
	w.Now = w.Now.Add(time.Duration(rapid.IntRange(0, 9000).Draw(w.t, "pass")) * time.Millisecond)
	i := rapid.IntRange(0, 1).Draw(w.t, "replica")
	switch n := rapid.IntRange(0, 11).Draw(w.t, "who"); {
	case n < 5:
		w.others()
	case n < 8:
		w.seen[i] = w.s.Clone()
	case n < 11:
		w.check(i)
	default:
		w.person()
	}
}

func (w *world) others() {
	step := rapid.SampledFrom(steps).Draw(w.t, "step")
	w.n++
	n := fmt.Sprint(rapid.IntRange(0, 2).Draw(w.t, "n"))
	// Most of the time an id is used once.
	if strings.Contains(step, `started {"turn":"`) || strings.Contains(step, "requested {") {
		n = fmt.Sprint(n, rapid.SampledFrom([]string{"", fmt.Sprint("-", w.n)}).Draw(w.t, "again"))
	}
	open, asked := "none", "none"
	if w.s.Turn != nil {
		open = w.s.Turn.ID
	} else if w.s.LastTurn != nil {
		open = w.s.LastTurn.ID
	}
	if w.s.Pending.Turn != nil {
		asked = w.s.Pending.Turn.ID
	}
	writer, rest, _ := strings.Cut(strings.NewReplacer("#", n, "@", open, "&", asked).Replace(step), " ")
	kind, data, _ := strings.Cut(rest, " ")
	w.append(events.Writer(writer), kind, data)
}

// check lets one replica decide. The append is refused if the replica has not read the last commit.
func (w *world) check(i int) {
	before := w.seen[i]
	d := Decide(before, Input{Now: w.Now})
	w.checkHead(before, d)
	if len(d.Facts) == 0 || before.Seq != w.s.Seq {
		return
	}
	for _, f := range d.Facts {
		w.checkFact(before, f)
	}
	w.written = append(w.written, d.Facts...)
	w.commit(events.ServiceSource(Name, "x"), d.Facts...)
}

// checkHead compares a decision with the head of the state: the head names no later instant.
func (w *world) checkHead(s *session.State, d Decision) {
	h := s.Head()
	if len(d.Facts) > 0 && !h.DueWithin(0, events.Clock{Now: w.Now}) ||
		!d.CheckAt.IsZero() && !h.DueWithin(0, events.Clock{Now: d.CheckAt}) {
		w.t.Fatalf("decided %+v, and the head says %+v: %s", d, h, story.Summary(s))
	}
}

// person sends a request of a person.
func (w *world) person() {
	request := requests[rapid.SampledFrom([]string{"now", "cancel", "resume"}).Draw(w.t, "wish")]
	if d, err := request(w.s); err == nil {
		w.commit(events.PersonSource("u"), d.Facts...)
	}
}

// checkFact checks one fact of the service against the state before it.
func (w *world) checkFact(s *session.State, f events.Fact) {
	asked, fires := f.(events.TurnRequested)
	scheduled, schedules := f.(events.RetryScheduled)
	if !fires && !schedules {
		return
	}
	l, p := s.LastTurn, s.Policy
	switch {
	case s.Closed != nil || s.Turn != nil || s.Pending.Turn != nil || s.BlockedBy() != "" || s.CompactionFirst():
		w.t.Fatalf("appended %+v while another step has priority: %s", f, story.Summary(w.s))
	case l.Outcome != session.OutcomeFailed && l.Outcome != session.OutcomeInterrupted:
		w.t.Fatalf("appended %+v although no turn failed: %s", f, story.Summary(w.s))
	case l.Actor == events.ActorPerson || !p.AutoRetry ||
		l.Outcome == session.OutcomeInterrupted && p.Resume == events.ResumeHold:
		// V9
		w.t.Fatalf("appended %+v against a person's decision: %s", f, story.Summary(w.s))
	case l.Outcome == session.OutcomeInterrupted && s.Retry.Resumes >= p.ResumeMax:
		// V8
		w.t.Fatalf("resumed too often: %s", story.Summary(w.s))
	case l.Error != nil && (l.Error.Kind == failure.Quota || l.Error.Kind == failure.ContextExceeded):
		w.t.Fatalf("retried a final failure: %s", story.Summary(w.s))
	case schedules && scheduled.Attempt != s.Retry.Attempt+1:
		// V7
		w.t.Fatalf("attempt %d after %d", scheduled.Attempt, s.Retry.Attempt)
	case fires && (asked.Attempt != s.Retry.Attempt || w.Now.Before(s.Retry.DueAt) || asked.OfTurn != l.ID):
		w.t.Fatalf("requested %+v: %s", asked, story.Summary(w.s))
	}
}

// TestOneFailureOneAttempt: two replicas decide on old documents, each at its own time. Each failure is scheduled at
// most once and requested at most once. Each fact is valid at its place in the log (V7, V8, V9).
func TestOneFailureOneAttempt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for range rapid.IntRange(10, 80).Draw(rt, "steps") {
			w.step()
		}
		scheduled, asked := map[string]int{}, map[string]int{}
		for _, f := range w.written {
			switch f := f.(type) {
			case events.RetryScheduled:
				scheduled[f.Turn]++
			case events.TurnRequested:
				asked[f.OfTurn]++
			}
		}
		for turn, n := range scheduled {
			if n > 1 {
				rt.Fatalf("the failure of %s was scheduled %d times", turn, n)
			}
		}
		for turn, n := range asked {
			if n > 1 {
				rt.Fatalf("the failure of %s was tried again %d times", turn, n)
			}
		}
	})
}

// TestNoRetryStaysPlanned: if all other writers are silent, the service has nothing to do after a few passes. Then a
// retry is planned only if it waits for a person or for a compaction (V14).
func TestNoRetryStaysPlanned(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			w.step()
		}
		// stalled, scheduled, fired
		const checksMax = 6
		var d Decision
		for range checksMax {
			w.seen[0] = w.s.Clone()
			d = Decide(w.s, Input{Now: w.Now})
			if d.CheckAt.After(w.Now) {
				w.Now = d.CheckAt
				continue
			}
			if len(d.Facts) == 0 {
				break
			}
			w.check(0)
		}
		s := w.s
		person := s.BlockedBy() != "" || s.NewerMessage(s.HeldSeq)
		switch {
		case len(d.Facts) > 0 || !d.CheckAt.IsZero():
			rt.Fatalf("not at rest: %+v: %s", d, story.Summary(w.s))
		case s.RetryPlanned() && s.Pending.Turn == nil && s.Turn == nil && !person && !s.CompactionFirst():
			rt.Fatalf("the retry stays planned: %s", story.Summary(w.s))
		case s.FailureUndecided() && !person && !s.CompactionFirst() &&
			!(s.LastTurn.Outcome == session.OutcomeInterrupted && s.Policy.Resume == events.ResumeHold):
			rt.Fatalf("the failure stays undecided: %s", story.Summary(w.s))
		}
	})
}
