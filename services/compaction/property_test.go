package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// random is a stage on which every fact may be appended at any time, in any order; the fold ignores unlawful ones.
type random struct {
	*stage
	rt *rapid.T
	n  int // ids given
}

// harnessFacts are facts that a harness may append.
var harnessFacts = []string{
	`turn.completed {"turn":"$turn"}`,
	`turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}`,
	`turn.failed {"turn":"$turn","error":{"kind":"context_exceeded","text":"x"},"had_output":false}`,
	`turn.failed {"turn":"$turn","error":{"kind":"quota","text":"x"},"had_output":false}`,
	`usage.reported {"turn":"$turn","model":"m","tokens":{"input":#0}}`,
	`usage.reported {"turn":"$turn","model":"m","tokens":{"input":#0}}`,
	`tool.started {"call":"c#","turn":"$turn","name":"bash"}`,
	`tool.completed {"call":"c#"}`,
	`prompt.requested {"prompt":"p#","turn":"$turn","call":"c#","kind":"question","delivery":"tool-result"}`,
	`prompt.requested {"prompt":"q#","turn":"$turn","kind":"permission","delivery":"callback"}`,
	`prompt.withdrawn {"prompt":"q#","reason":"gone"}`,
	`turn.started {"turn":"h#","cause":"message"}`,
	`compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}`,
	`compaction.failed {"compaction":"$compaction","error":{"kind":"model_not_found","text":"x"}}`,
	`compaction.completed {"compaction":"$compaction","used_after":#0}`,
	`session.released {}`,
}

// requested are requests of people to the ledger.
var requested = []string{
	`turn.stop_requested {"turn":"$turn","actor":"person","by":"ada"}`,
	`turn.stop_requested {"turn":"$last","actor":"person","by":"ada"}`,
	`prompt.answered {"prompt":"p#","answers":[],"by":"ada"}`,
	`prompt.dismissed {"prompt":"q#","by":"ada"}`,
	`session.configured {"policy":{"context_limit":#00},"by":"ada"}`,
	`session.configured {"policy":{"auto_retry":false},"by":"ada"}`,
}

// try appends a fact that may or may not count.
func (r *random) try(w events.Writer, line string) {
	n := strconv.Itoa(rapid.IntRange(1, 120).Draw(r.rt, "n"))
	if r.s.Pending.Turn != nil {
		line = strings.ReplaceAll(line, "$turn", "$requested")
	}
	line, missing := story.Resolve(r.s, strings.ReplaceAll(line, "#", n))
	if missing == "" {
		kind, data, _ := strings.Cut(line, " ")
		r.append(w, kind, data)
	}
}

// something makes one random change.
func (r *random) something() {
	switch rapid.IntRange(0, 15).Draw(r.rt, "what") {
	case 0, 1:
		r.n++
		id := fmt.Sprint("m", r.n)
		r.asked = append(r.asked,
			request.Send{Ref: r.s.Ref(), Message: id, Content: text(id), By: "ada",
				Synthetic: rapid.IntRange(0, 3).Draw(r.rt, "synthetic") == 0})
	case 2:
		if len(r.s.Queue) > 0 {
			m := rapid.SampledFrom(r.s.Queue).Draw(r.rt, "message")
			r.asked = append(r.asked, request.Withdraw{Message: m.ID, By: "ada"})
		}
	case 3:
		force := rapid.Bool().Draw(r.rt, "force")
		if force || r.s.BlockedBy() == "" {
			r.asked = append(r.asked, request.Compact{By: "ada", Force: force})
		}
	case 4, 5:
		r.try("", rapid.SampledFrom(harnessFacts).Draw(r.rt, "saying"))
	case 6:
		r.try(events.WriterLedger, rapid.SampledFrom(requested).Draw(r.rt, "wished"))
	case 7:
		r.alive, r.back = false, r.round+rapid.IntRange(1, 5).Draw(r.rt, "away")
	case 8, 9:
		r.ledger()
	case 10, 11:
		r.compaction()
	case 12, 13:
		r.harness()
	case 14:
		r.reconciler()
		r.retry()
	case 15:
		r.Now = r.Now.Add(time.Duration(rapid.IntRange(1, 60).Draw(r.rt, "seconds")) * time.Second)
	}
	r.round++
}

// rest brings the session to rest: all processes work, and people answer prompts and continue what waits for them.
func (r *random) rest() {
	r.try(events.WriterLedger, `session.configured {"policy":{"context_limit":100000},"by":"ada"}`)
	r.scene = scene{name: "rest"}
	for idle := 0; idle < 8; r.round++ {
		before := r.s.Seq
		r.Now = r.Now.Add(time.Minute)
		for _, id := range r.s.PendingPrompts() {
			r.append(events.WriterLedger, "prompt.dismissed", fmt.Sprintf(`{"prompt":%q,"by":"ada"}`, id))
		}
		for _, id := range sortedKeys(r.s.Tools) {
			if r.s.Owned {
				r.append("", "tool.completed", fmt.Sprintf(`{"call":%q}`, id))
			}
		}
		for _, p := range []func(){r.ledger, r.compaction, r.harness, r.ledger, r.reconciler, r.retry} {
			p()
		}
		if idle++; r.s.Seq != before {
			idle = 0
		}
		// it waits for a person
		if idle == 4 && len(r.s.Queue) > 0 {
			r.n++
			r.asked = append(r.asked, message(r.s.Ref(), fmt.Sprint("go-on-", r.n)))
		}
		if r.round > roundsMax*10 {
			r.rt.Fatalf("it does not come to rest: %s", story.Summary(r.s))
		}
	}
}

// history makes a random history and brings it to rest.
func history(rt *rapid.T) *random {
	idle := rapid.SampledFrom([]string{"", `,"policy":{"idle_compaction_after_s":20}`, `,"policy":{"resume":"hold"}`,
		`,"policy":{"retry_max":1}`}).Draw(rt, "policy")
	r := &random{stage: newStage(rt,
		scene{name: "random", policy: idle, used: int64(rapid.IntRange(0, 1200).Draw(rt, "used"))}, plan{}), rt: rt}
	for range rapid.IntRange(0, 60).Draw(rt, "steps") {
		r.something()
	}
	r.rest()
	return r
}

// eachFact calls see for each fact that counted, with the session as it was before it.
func (r *random) eachFact(see func(before *session.State, w events.Writer, f events.Fact)) {
	s := session.New(r.s.Ref())
	for seq := uint64(1); seq <= r.s.Seq; seq++ {
		for _, e := range r.Log[seq].Events {
			one := *r.Log[seq]
			one.Events = []events.Event{e}
			before := s.Clone()
			res := s.Fold(&one)
			for _, e := range res.Feed {
				see(before, one.Writer, e.Fact)
			}
			s.Seq = seq - 1
		}
		s.Seq = seq
	}
}

// history prints the history of a failure.
func (r *random) history() string {
	var b strings.Builder
	for seq := uint64(1); seq <= r.s.Seq; seq++ {
		for _, e := range r.Log[seq].Events {
			data, err := json.Marshal(e.Fact)
			fmt.Fprintf(&b, "%d/%s %s %s %v\n", seq, r.Log[seq].Writer, e.Kind, data, err)
		}
	}
	return b.String()
}

// TestMessagesAreDeliveredOnceInOrder is V10: accepted messages are each delivered or withdrawn exactly once, the
// oldest first; only a message that carries an answer overtakes.
func TestMessagesAreDeliveredOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := history(rt)
		became := map[string]string{}
		end := func(id, as string) {
			if became[id] != "accepted" {
				rt.Fatalf("message %s was %s, and is %s now:\n%s", id, became[id], as, r.history())
			}
			became[id] = as
		}
		r.eachFact(func(before *session.State, _ events.Writer, f events.Fact) {
			switch f := f.(type) {
			case events.MessageAccepted:
				became[f.Message] = "accepted"
			case events.MessageWithdrawn:
				end(f.Message, "withdrawn")
			case events.TurnStarted:
				p := before.Pending.Turn
				if p == nil || p.ID != f.Turn || p.Message == "" || became[p.Message] == "delivered" && p.OfTurn != "" {
					// it has no message, or continues one
					return
				}
				if before.Queue[0].ID != p.Message && p.Prompt == "" {
					rt.Fatalf("message %s goes before %s:\n%s", p.Message, before.Queue[0].ID, r.history())
				}
				end(p.Message, "delivered")
			}
		})
		for id, as := range became {
			if as == "accepted" {
				rt.Fatalf("message %s was never delivered: %s\n%s", id, story.Summary(r.s), r.history())
			}
		}
	})
}

// TestOneCompactionATrigger is V11: a message has one compaction unless that failed, a turn one in mid-stream, an
// overflow none before there is progress; each compaction is followed up at most once, before anything else. While a
// prompt blocks, or a compaction is open, none is requested automatically (C12).
func TestOneCompactionATrigger(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := history(rt)
		followed, trigger := map[string]int{}, map[string]string{}
		r.eachFact(func(before *session.State, w events.Writer, f events.Fact) {
			switch f := f.(type) {
			case events.CompactionRequested:
				if f.Reason == events.CompactManual {
					return
				}
				if p := before.BlockedBy(); p != "" {
					rt.Fatalf("compaction %s while %s is open:\n%s", f.Reason, p, r.history())
				}
				of := f.Reason + f.Message
				if before.Turn != nil {
					of = "turn " + before.Turn.ID
				}
				if f.Reason != events.CompactIdle && (f.Reason == events.CompactOnSend || before.Turn != nil) &&
					trigger[of] != "" {
					rt.Fatalf("a second compaction for %s:\n%s", of, r.history())
				}
				if l := before.LastCompaction; before.Turn == nil && f.Reason == events.CompactMidStream && l != nil &&
					l.Outcome == session.OutcomeCompleted && !l.Progress && before.Usage == nil {
					rt.Fatalf("a second compaction without progress between them:\n%s", r.history())
				}
				trigger[of] = f.Compaction
			case events.CompactionFailed:
				for of, id := range trigger {
					if id == f.Compaction {
						delete(trigger, of)
					}
				}
			case events.TurnRequested:
				if f.Compaction != "" {
					if followed[f.Compaction]++; followed[f.Compaction] > 1 {
						rt.Fatalf("compaction %s is followed up twice:\n%s", f.Compaction, r.history())
					}
				}
				owed := before.FollowUp()
				if w == events.WriterCompaction && f.Cause == events.CauseMessage && f.Prompt == "" &&
					(before.CompactionOpen() || owed == events.FollowMessage || owed != "" && !before.Held()) {
					rt.Fatalf("message %s goes before what a compaction owes (%s):\n%s", f.Message, owed, r.history())
				}
			}
		})
		if s := r.s; s.CompactionOpen() || s.Turn != nil || s.Pending.Turn != nil {
			rt.Fatalf("it is not at rest: %s\n%s", story.Summary(r.s), r.history())
		}
	})
}

// TestDecidingTwice: each decided fact counts, and a second decision, also on the stored document, returns nothing;
// deciding does not change the session.
func TestDecidingTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &random{stage: newStage(rt, scene{name: "random", used: int64(rapid.IntRange(0, 1200).Draw(rt, "used"))},
			plan{}), rt: rt}
		for range rapid.IntRange(0, 40).Draw(rt, "steps") {
			r.something()
		}
		in := Input{Now: r.Now, Idle: rapid.Bool().Draw(rt, "idle")}
		doc, err := r.s.Encode()
		if err != nil {
			rt.Fatal(err)
		}
		d := Decide(r.s, in)
		checkHead(rt, r.s, d, in.Now)
		if after, err := r.s.Encode(); err != nil || !slices.Equal(doc, after) {
			rt.Fatalf("deciding changed the session: %v", err)
		}
		stored, err := session.Decode(doc)
		if err != nil {
			rt.Fatal(err)
		}
		if a, b := story.JSON(rt, d.Facts), story.JSON(rt, Decide(stored, in).Facts); a != b {
			rt.Fatalf("of the session %s is decided, of its document %s", a, b)
		}
		r.commit(d.Facts...)
		if again := Decide(r.s, in); len(again.Facts) > 0 {
			rt.Fatalf("after %v a second look finds %v:\n%s", story.JSON(rt, d.Facts), story.JSON(rt, again.Facts),
				r.history())
		}
	})
}
