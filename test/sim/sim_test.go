// The tests of this package run the simulation with the real brains of the reconciler, retry and compaction.
package sim_test

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/test/sim"
)

var (
	steps = flag.Int("steps", quickOrLong(120_000, 10_000_000), "steps over all worlds")
	from  = flag.Uint64("from", 1, "the first world")
	seed  = flag.Uint64("seed", 0, "the one world to run; 0: many")
)

const stepsPerWorld = 6_000

var margins = reconciler.Margins{Grace: sim.Grace, Adoption: sim.Grace, AdoptionMax: sim.AdoptionMax,
	Unknown: sim.TTL}

// starting counts the verdicts about owners that still adopt.
var starting atomic.Int64

// decide is the reconciler's brain on what the simulated one knows.
func decide(s *session.State, v sim.View) ([][]events.Fact, error) {
	leases := reconciler.LeaseView{Start: v.Start, Renewed: v.Renewed,
		Leases: map[string]map[string]*reconciler.Seen{s.Harness: {}}}
	for _, g := range v.Gaps {
		leases.Gaps = append(leases.Gaps, reconciler.Gap{Began: g.Began, End: g.End})
	}
	for _, l := range v.Leases {
		state := "starting"
		if l.Ready {
			state = "ready"
		}
		leases.Leases[s.Harness][l.Incarnation] = &reconciler.Seen{Exclusive: true, State: state, TTL: sim.TTL,
			Since: l.Since, Renewed: l.Renewed, Ended: l.Ended, Claimed: l.Claimed, Checked: v.Now}
	}
	in := reconciler.Input{Now: v.Now, Children: v.Children}
	if s.Owned {
		in.Owner = reconciler.CheckOwner(&leases, margins, s, v.Now)
		if in.Owner.Liveness == reconciler.Starting {
			starting.Add(1)
		}
	}
	d, err := reconciler.Decide(s, in, v.Source)
	if err != nil || len(d.Facts) == 0 {
		return nil, err
	}
	return [][]events.Fact{d.Facts}, nil
}

func run(t *testing.T, seed uint64, steps int, bug sim.Bug) sim.Report {
	t.Helper()
	noWalk := bug == sim.AlarmsForgotten || bug == sim.NoBug && seed%5 == 0
	return sim.Run(sim.Config{Seed: seed, Steps: steps, Bug: bug, NoWalk: noWalk, Decide: decide, Deciders: deciders(),
		Requests: requests()})
}

func TestWorldsWithoutBugsKeepEveryPromise(t *testing.T) {
	if *seed != 0 {
		r := run(t, *seed, stepsPerWorld, sim.NoBug)
		t.Logf("%+v", r)
		for _, v := range r.Violations {
			t.Error(v)
		}
		return
	}
	start := time.Now()
	sum := sim.Report{Counted: map[events.Kind]int{}}
	for s := *from; sum.Steps < *steps; s++ {
		r := run(t, s, stepsPerWorld, sim.NoBug)
		sum.Steps, sum.Commits, sum.Facts, sum.Kills = sum.Steps+r.Steps, sum.Commits+r.Commits, sum.Facts+r.Facts,
			sum.Kills+r.Kills
		sum.Pauses, sum.Outages, sum.LostRaces, sum.Orphaned = sum.Pauses+r.Pauses, sum.Outages+r.Outages,
			sum.LostRaces+r.LostRaces, sum.Orphaned+r.Orphaned
		sum.Alarms, sum.Blackouts, sum.Doubts = sum.Alarms+r.Alarms, sum.Blackouts+r.Blackouts, sum.Doubts+r.Doubts
		sum.Decisions, sum.Delivered, sum.Itself = sum.Decisions+r.Decisions, sum.Delivered+r.Delivered,
			sum.Itself+r.Itself
		sum.Outside, sum.GaveUp, sum.Again = sum.Outside+r.Outside, sum.GaveUp+r.GaveUp, sum.Again+r.Again
		sum.Unasked, sum.Refused, sum.InOneCall = sum.Unasked+r.Unasked, sum.Refused+r.Refused,
			sum.InOneCall+r.InOneCall
		sum.Old, sum.Bounded = sum.Old+r.Old, sum.Bounded+r.Bounded
		sum.Late, sum.Twice, sum.Stale = sum.Late+r.Late, sum.Twice+r.Twice, sum.Stale+r.Stale
		sum.TakenBack += r.TakenBack
		sum.WoundDown, sum.Reopened = sum.WoundDown+r.WoundDown, sum.Reopened+r.Reopened
		sum.StopsEarly, sum.StopsAgain, sum.StopsAsked = sum.StopsEarly+r.StopsEarly, sum.StopsAgain+r.StopsAgain,
			sum.StopsAsked+r.StopsAsked
		for kind, n := range r.Counted {
			sum.Counted[kind] += n
		}
		if len(r.Violations) > 0 {
			t.Fatalf("seed %d (run it again with -seed %d): %s", s, s, r.Violations[0])
		}
	}
	t.Logf("from seed %d: %+v in %v", *from, sum, time.Since(start).Round(time.Millisecond))
	for name, n := range map[string]int{"kills": sum.Kills, "pauses": sum.Pauses, "outages": sum.Outages,
		"lost races": sum.LostRaces, "orphaned sessions": sum.Orphaned, "timers": sum.Alarms,
		"blackouts": sum.Blackouts, "stored commits whose writer gave up": sum.Doubts,
		"decisions of people": sum.Decisions, "decisions that reached a model": sum.Delivered,
		"turns that an agent began by itself": sum.Itself, "questions outside of turns": sum.Outside,
		"Asks that gave up": sum.GaveUp,
		"thousandth of the steps that adopts without an Ask": sum.Unasked * 1000 / sum.Steps,
		"Asks again under the same id":                       sum.Again, "decisions of an old ledger": sum.Old,
		"sessions at the bound on turns for decisions": sum.Bounded,
		"receipts after the turn that asked":           sum.Late, "repeated receipts": sum.Twice,
		"receipts of an epoch that had ended": sum.Stale, "messages taken back after a stop": sum.TakenBack,
		"retries": sum.Counted["retry.scheduled"], "retries given up": sum.Counted["retry.abandoned"],
		"refused decisions": sum.Refused, "second questions of a call": sum.InOneCall,
		"failed compactions":  sum.Counted["compaction.failed"],
		"compactions":         sum.Counted["compaction.completed"],
		"messages taken back": sum.Counted["message.withdrawn"],
		"dismissals":          sum.Counted["prompt.dismissed"],
		"answers taken back":  sum.Reopened,
		"turns that wound down for a compaction and were stopped": sum.WoundDown,
		"stops before the first turn":                             sum.StopsEarly,
		"stops before an earlier one was confirmed":               sum.StopsAgain,
		"stops of requested turns":                                sum.StopsAsked,
		"decisions attended by a claim":                           sum.Counted["prompt.attended"],
		"owners that adopt":                                       int(starting.Load()),
		"stops":                                                   sum.Counted["turn.stop_requested"]} {
		if n == 0 {
			t.Errorf("no %s: the world is too tame", name)
		}
	}
}

// worldsPerBug is how many worlds a planted bug may take to be found.
const worldsPerBug = 240

func TestEachPlantedBugIsFound(t *testing.T) {
	for bug, want := range map[sim.Bug]string{
		sim.SkipGuard: "", sim.AckBeforeStore: "", sim.ViewUnguarded: "V5", sim.ForgetGrace: "was declared dead",
		sim.EdgeTriggered: "", sim.ParkedKeepsSeq: "V5",
		sim.RetryUnguarded: "", sim.RetryRestarts: "V7", sim.FollowUpTwice: "V11", sim.QueueAfterFailure: "V10",
		sim.FailureEmptyQueue: "V10",
		sim.ResumeUncounted:   "V8", sim.AlarmsForgotten: "V7",
		sim.AnswerNotCarried: "V15", sim.AnswerAlone: "V15", sim.AdoptedTurnTaken: "V15", sim.ClaimForgotten: "",
		sim.FencedNotify: "R6",
		sim.OwedDropped:  "V15", sim.OwedNotRequested: "V15",
		sim.UnattendedForgotten: "V15", sim.ContinuationsForgotten: "V14", sim.ReceiptForgotten: "V15",
		sim.UnaskedNotRecorded: "V15",
		sim.RefusedStays:       "V15: turn",
		sim.StopReleased:       "V1", // V10 for the queue, V15 for decisions
	} {
		t.Run(fmt.Sprint(bug), func(t *testing.T) {
			t.Parallel()
			for s := uint64(1); s <= worldsPerBug; s++ {
				if r := run(t, s, stepsPerWorld, bug); len(r.Violations) > 0 {
					t.Logf("found in world %d: %.300s", s, r.Violations[0])
					if !strings.Contains(r.Violations[0], want) {
						t.Errorf("found as something else than %s", want)
					}
					return
				}
			}
			t.Errorf("not found in %d worlds", worldsPerBug)
		})
	}
}
