package compaction

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/retry"
	"github.com/holdfast-dev/holdfast/test/invariants"
)

// Rounds until a session has come to rest, a minute each: longer than any delay of a retry or a compaction.
const (
	restRoundsMax = 400
	settleRounds  = 4
)

// settle runs all processes but no person, until no process has anything to append at any later instant.
func (r *random) settle() {
	r.scene, r.back = scene{name: "rest"}, r.round
	for idle := 0; idle < settleRounds; r.round++ {
		before := r.s.Seq
		r.Now = r.Now.Add(time.Minute)
		// tools complete
		for _, id := range sortedKeys(r.s.Tools) {
			if c := r.s.Tools[id]; r.alive && r.s.Owned && c.Epoch == r.s.Epoch &&
				!slices.ContainsFunc(r.s.PendingPrompts(), func(p string) bool {
					return r.s.Prompts[p].Call == id
				}) {
				r.append("", "tool.completed", `{"call":`+strconv.Quote(id)+`}`)
			}
		}
		for _, p := range []func(){r.ledger, r.compaction, r.harness, r.ledger, r.reconciler, r.retry} {
			p()
		}
		if idle++; r.s.Seq != before {
			idle = 0
		}
		if r.round > restRoundsMax {
			r.rt.Fatalf("it does not come to rest: %s\n%s", story.Summary(r.s), r.history())
		}
	}
}

// person performs an act of a person as the services carry it out: an answer closes the call of a dead asker and
// continues the turn; now, cancel and resume are retry's.
func (r *random) person() {
	s, ref := r.s, r.s.Ref()
	var d session.Decision
	var err error
	by, w := events.PersonSource("ada"), events.WriterLedger
	prompt := ""
	if ids := s.PendingPrompts(); len(ids) > 0 {
		prompt = rapid.SampledFrom(ids).Draw(r.rt, "prompt")
	}
	switch rapid.IntRange(0, 7).Draw(r.rt, "wish") {
	case 0:
		d, err = s.Answer(request.Answer{Ref: ref, Prompt: prompt, By: "ada"}, r.Source)
	case 1:
		d, err = s.Reject(request.Reject{Ref: ref, Prompt: prompt, Text: "no", By: "ada"}, r.Source)
	case 2:
		d, err = s.Dismiss(request.Dismiss{Ref: ref, Prompt: prompt, By: "ada"}, r.Source)
	case 3:
		d, err = s.Stop(request.Stop{Ref: ref, By: "ada", Force: rapid.Bool().Draw(r.rt, "force")})
	case 4:
		d, err = s.Configure(request.Configure{Ref: ref, By: "ada",
			ProviderChanged: rapid.Bool().Draw(r.rt, "changed")})
	case 5:
		w = events.WriterRetry
		d, err = retry.Now(s)
	case 6:
		w = events.WriterRetry
		d, err = retry.Cancel(s)
	case 7:
		w = events.WriterRetry
		d, err = retry.Resume(s)
	}
	if err == nil && len(d.Facts) > 0 {
		r.put(w, by, s, d.Facts...)
	}
}

// TestNothingIsOwedAtRest is V11 and V14: after every history, when no process has more to append and no instant is
// waited for, nothing runs, is requested, retried or compacted, except what waits for a person because of a prompt.
// Pending follow-ups and queued messages wait for a person's act, and the document shows it.
func TestNothingIsOwedAtRest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := rapid.SampledFrom([]string{"", `,"policy":{"idle_compaction_after_s":20}`,
			`,"policy":{"resume":"hold"}`, `,"policy":{"retry_max":1}`, `,"policy":{"auto_retry":false}`}).Draw(rt,
			"policy")
		r := &random{stage: newStage(rt,
			scene{name: "random", policy: policy, used: int64(rapid.IntRange(0, 1200).Draw(rt, "used"))}, plan{}),
			rt: rt}
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "who") == 0 {
				r.person()
			} else {
				r.something()
			}
		}
		r.settle()
		r.mustRest()
	})
}

func (r *random) mustRest() {
	s := r.s
	fail := func(what string) { r.rt.Fatalf("%s: %s\n%s", what, story.Summary(r.s), r.history()) }
	x := invariants.New(0)
	st := session.New(s.Ref())
	for seq := uint64(1); seq <= s.Seq; seq++ {
		before := st.Clone()
		x.Commit(before, r.Log[seq], st.Fold(r.Log[seq]).Feed)
	}
	if why := x.Stuck(s, s.Owned && r.alive); why != "" {
		fail(why)
	}
	if s.BlockedBy() != "" || len(s.WaitsFor) > 0 {
		return
	}
	// R14: the phase shows it
	held := s.Policy.Resume == events.ResumeHold && s.LastTurn != nil &&
		s.LastTurn.Outcome == session.OutcomeInterrupted
	switch {
	case s.Turn != nil, s.Pending != session.Pending{}, s.CompactionOpen():
		fail("a service or a harness has something to do, and does not do it")
	case s.RetryFirst() && !held:
		fail("a retry is waited for that does not come")
	case s.FollowUp() != "" && !s.Held():
		fail("a follow-up is owed")
	case s.Held() != (s.Compaction != nil && s.Compaction.State == session.CompactionHeld):
		fail("what is held does not show")
	case len(s.Queue) > 0 && s.QueueMoves() && !s.Held():
		fail("the queue stands still")
	}
}
