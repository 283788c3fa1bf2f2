package sim_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/test/sim"
	explorer "github.com/holdfast-dev/holdfast/test/sim/explore"
)

var (
	states = flag.Int("states", quickOrLong(statesQuick, 0),
		"different states that each exploration sees; 0: as many as there is time for")
	explore = flag.Duration("explore", 10*time.Minute, "how long all explorations may take together")
)

// statesQuick is how many states each exploration sees where a test may not take long.
const statesQuick = 5_000

// quickOrLong is the first for everybody, the second where a test may take long.
func quickOrLong(quick, long int) int {
	if os.Getenv("HOLDFAST_LONG") != "" {
		return long
	}
	return quick
}

// worlds are what the explorer explores: which questions agents ask, and whether processes are a pool.
func worlds() map[string]explorer.Config {
	plain := func(prompt string) explorer.Ask {
		return explorer.Ask{Prompt: prompt, Delivery: events.DeliverCallback, Loss: events.LossKeep}
	}
	call := explorer.Ask{Prompt: "p2", Call: "c1", Delivery: events.DeliverToolResult}
	other := call
	other.Prompt = "p1"
	message := func(prompt string) explorer.Ask { return explorer.Ask{Prompt: prompt, Delivery: events.DeliverMessage} }
	outside := plain("p1")
	outside.Outside = true
	apart := call
	apart.Background = true
	return map[string]explorer.Config{
		"a call in the background":    {Asks: [2]explorer.Ask{plain("p1"), apart}},
		"two questions without calls": {Asks: [2]explorer.Ask{plain("p1"), plain("p2")}},
		"one of them in a call":       {Asks: [2]explorer.Ask{plain("p1"), call}},
		"answers as messages":         {Asks: [2]explorer.Ask{message("p1"), message("p2")}},
		"a question outside of turns": {Asks: [2]explorer.Ask{outside, plain("p2")}},
		"outside of turns, in a pool": {Asks: [2]explorer.Ask{outside, call}, Pool: true},
		"two questions in a call":     {Asks: [2]explorer.Ask{other, call}},
		"a deaf agent":                {Asks: [2]explorer.Ask{plain("p1"), plain("p2")}, Deaf: true},
		"a pool":                      {Asks: [2]explorer.Ask{plain("p1"), call}, Pool: true},
		"a stop and a call":           {Asks: [2]explorer.Ask{plain("p1"), call}, Reacts: true},
		"a stop and a message":        {Asks: [2]explorer.Ask{plain("p1"), message("p2")}, Reacts: true},
	}
}

// troubles are what may happen, and how often: everything, or less of it for a longer look ahead.
func troubles() map[string]explorer.Bounds {
	return map[string]explorer.Bounds{
		"refusals": {GaveUp: 2, Careless: 1, Stops: 1, Requests: 1, Refusals: 1, Dismissals: 1},
		"everything": {Crashes: 2, Freezes: 1, Lapses: 2, Starts: 2, Failures: 2, GaveUp: 1, Messages: 1, Stops: 1,
			Requests: 1, Rejects: 1, Itself: 1, Careless: 1, Policies: 1, Doubts: 1, Splits: 1,
			Refusals: 1, Ends: 1, Appends: 1, Rewords: 1, Options: 1, Fulls: 1, Dismissals: 1},
		"deaths":   {Crashes: 2, Starts: 2, Failures: 2, Itself: 1},
		"absences": {Freezes: 1, Lapses: 1, Starts: 1, GaveUp: 1, Fulls: 1},
		"claims":   {Lapses: 3, Doubts: 2, Splits: 2, GaveUp: 1},
		"people": {Crashes: 1, Starts: 1, Failures: 1, Messages: 2, Stops: 1, Requests: 1, Rejects: 1, Itself: 1,
			Careless: 1, Policies: 1, Refusals: 1},
		"claims and people": {Lapses: 2, Doubts: 1, Splits: 1, Failures: 1, Messages: 1, Stops: 1, Requests: 1,
			Refusals: 1},
		"stops": {Crashes: 1, Starts: 1, Failures: 1, Messages: 1, Stops: 2, Requests: 1, Itself: 1, Careless: 1,
			Fills: 1},
		"calls":   {Crashes: 1, Starts: 1, GaveUp: 1, Ends: 1, Appends: 1, Failures: 1},
		"appends": {Crashes: 1, Lapses: 1, Starts: 1, Appends: 2, Rewords: 1},
		"options": {GaveUp: 1, Careless: 1, Refusals: 1, Failures: 1, Messages: 1, Stops: 1, Itself: 1,
			Options: 2},
		"refusals of what a turn brings": {Crashes: 1, Starts: 1, Failures: 1, Careless: 1, Refusals: 1},
	}
}

// only are the worlds of some troubles. Others are for all worlds but those of an agent that reacts to stops.
func only() map[string][]string {
	plain, call, both := "two questions without calls", "one of them in a call", "two questions in a call"
	background, outside, pool := "a call in the background", "a question outside of turns",
		"outside of turns, in a pool"
	return map[string][]string{
		"calls":                          {call, both, background, pool},
		"appends":                        {plain, call, both, background, outside, pool},
		"options":                        {plain, "answers as messages", background, outside},
		"refusals of what a turn brings": {plain, call, "answers as messages", "a pool"},
	}
}

// explorations returns the troubles of a world: an agent that reacts to stops is for those with stops.
func explorations(name string, c explorer.Config) map[string]explorer.Bounds {
	all := troubles()
	for trouble, worlds := range only() {
		if !slices.Contains(worlds, name) {
			delete(all, trouble)
		}
	}
	if c.Reacts {
		return map[string]explorer.Bounds{"stops": all["stops"]}
	}
	delete(all, "stops")
	// the other worlds with calls have these
	if c.Asks[0].Call != "" && *states == statesQuick {
		for _, trouble := range []string{"absences", "people", "refusals"} {
			delete(all, trouble)
		}
	}
	if c.Deaf {
		// with so little trouble, receipts are late after few steps
		all["carelessness"] = explorer.Bounds{Careless: 1}
	}
	return all
}

// settleIn is from how many states the world is let run to rest once.
const settleIn = 2

// compareIn is of how many steps one is looked at that leads to a known state.
const compareIn = 16

func exploring(c explorer.Config, bug sim.Bug) explorer.Config {
	c.Decide, c.Deciders, c.Requests, c.Bug, c.Clock, c.SettleIn = decide, deciders(), requests(), bug, time.Now,
		settleIn
	c.CompareIn = compareIn
	if c.Most == (explorer.Bounds{}) {
		c.Most = troubles()["everything"]
	}
	return c
}

func TestEveryInterleaving(t *testing.T) {
	worldsN, ran, played := 0, 0, map[string]int{}
	for name, c := range worlds() {
		worldsN += len(explorations(name, c))
	}
	share := *explore / time.Duration(worldsN)
	for name, c := range worlds() {
		for trouble, most := range explorations(name, c) {
			t.Run(name+"/"+trouble, func(t *testing.T) {
				c = exploring(c, sim.NoBug)
				c.Most, c.StatesMax, c.Time = most, *states, share
				began := time.Now()
				r := explorer.Run(c)
				t.Logf("%d states, %d steps, %d let run to rest, %d compared, all of depth %d, whole %v, %v", r.States,
					r.Steps, r.Settled, r.Compared, r.Depth, r.Whole, time.Since(began).Round(time.Millisecond))
				ran++
				for name, n := range r.Played {
					played[name] += n
				}
				if r.Violated != "" {
					t.Error(r.Violated)
				}
			})
		}
	}
	t.Logf("steps that were made: %v", played)
	for name, n := range played {
		if n == 0 && ran == worldsN {
			t.Errorf("the step %q was never made", name)
		}
	}
}

// TestTheExplorerFindsADeafAgent: without the bound on turns for decisions, a deaf agent is asked without end.
func TestTheExplorerFindsADeafAgent(t *testing.T) {
	c := exploring(worlds()["a deaf agent"], sim.ContinuationsForgotten)
	c.Depth, c.Most = 6, explorer.Bounds{Crashes: 1, Starts: 1, Careless: 1}
	r := explorer.Run(c)
	t.Logf("%d states: %s", r.States, r.Violated)
	if !strings.HasPrefix(r.Violated, "V15: turn") && !strings.HasPrefix(r.Violated, "V14") {
		t.Error("not found, or as something else than V14 or V15")
	}
}

// TestTheExplorerFindsAnAdoptionWithoutAnAsk: a process that adopts a question, does not ask, and does not say so,
// keeps the decision from its agent.
func TestTheExplorerFindsAnAdoptionWithoutAnAsk(t *testing.T) {
	c := exploring(worlds()["a question outside of turns"], sim.UnaskedNotRecorded)
	c.Depth, c.Most = 6, explorer.Bounds{Crashes: 1, Starts: 1}
	r := explorer.Run(c)
	t.Logf("%d states: %s", r.States, r.Violated)
	if !strings.HasPrefix(r.Violated, "V15: a person decided") {
		t.Error("not found, or as something else than V15")
	}
}

// TestTheExplorerFindsTurnsThatTheBackgroundHolds: a process adopts only what is in the background. If that counts as
// running the turn, the turn is neither recovered nor run.
func TestTheExplorerFindsTurnsThatTheBackgroundHolds(t *testing.T) {
	for _, bug := range []sim.Bug{sim.BackgroundRuns, sim.BackgroundAdopts} {
		c := exploring(worlds()["a call in the background"], bug)
		c.Depth, c.Most = 6, explorer.Bounds{Crashes: 1, Starts: 1}
		r := explorer.Run(c)
		t.Logf("%v: %d states: %s", bug, r.States, r.Violated)
		if !strings.HasPrefix(r.Violated, "V15: a person decided") && !strings.HasPrefix(r.Violated, "V14") {
			t.Errorf("%v: not found, or as something else than V14 or V15", bug)
		}
	}
}

// TestTheExplorerFindsBugsOfClaims: a process loses its lease again while it claims its session.
func TestTheExplorerFindsBugsOfClaims(t *testing.T) {
	claims, once := troubles()["claims"], explorer.Bounds{Lapses: 1, Splits: 1, GaveUp: 1}
	for bug, as := range map[sim.Bug]struct {
		world, want string
		most        explorer.Bounds
	}{
		sim.ClaimInDoubtForgotten: {"two questions without calls", "P12: ", claims},
		sim.ReadyBeforeTheRest:    {"two questions without calls", "P12: ", claims},
		sim.UnaskedByTheLog:       {"a question outside of turns", "V15: a person decided", claims},
		sim.AttendedKeepsRequest:  {"a question outside of turns", "V15: turn", once},
	} {
		t.Run(fmt.Sprint(bug), func(t *testing.T) {
			c := exploring(worlds()[as.world], bug)
			c.Depth, c.Most = 10, as.most
			r := explorer.Run(c)
			t.Logf("%d states: %s", r.States, r.Violated)
			if !strings.HasPrefix(r.Violated, as.want) {
				t.Errorf("not found, or as something else than %s", as.want)
			}
		})
	}
}

// TestTheExplorerFindsBugsOfAdoptedCalls: a process adopts one call of a turn. TestTheExplorerFindsBugsOfRefusals: the
// harness cannot use one of several decisions.
func TestTheExplorerFindsBugsOfAdoptedCalls(t *testing.T) {
	finds(t, "one of them in a call", sim.CallDoesNotRun, "P12: recovery ends call", 6,
		explorer.Bounds{Crashes: 1, Starts: 1})
}

func TestTheExplorerFindsBugsOfRefusals(t *testing.T) {
	finds(t, "two questions without calls", sim.RefusalDropsRequest, "V15: a person decided", 11,
		troubles()["refusals"])
}

// finds explores a world with a bug, and wants the violation that begins with want.
func finds(t *testing.T, world string, bug sim.Bug, want string, depth int, most explorer.Bounds) {
	t.Helper()
	c := exploring(worlds()[world], bug)
	c.Depth, c.Most = depth, most
	r := explorer.Run(c)
	t.Logf("%d states: %s", r.States, r.Violated)
	if !strings.HasPrefix(r.Violated, want) {
		t.Errorf("%v: not found, or as something else than %s", bug, want)
	}
}

func TestTheExplorerFindsEachPlantedBug(t *testing.T) {
	for bug, want := range map[sim.Bug]string{
		sim.AnswerNotCarried: "V15: a person decided", sim.AnswerAlone: "V15: a person decided",
		sim.AdoptedTurnTaken: "V15: turn", sim.FencedNotify: "R6",
		sim.OwedDropped: "V15: a person decided", sim.OwedNotRequested: "V15: a person decided",
	} {
		t.Run(fmt.Sprint(bug), func(t *testing.T) {
			c := exploring(worlds()["two questions without calls"], bug)
			c.Depth, c.Most = 9, explorer.Bounds{Crashes: 1, Starts: 1, Failures: 2, GaveUp: 1, Itself: 1, Careless: 1}
			r := explorer.Run(c)
			t.Logf("%d states: %s", r.States, r.Violated)
			if !strings.HasPrefix(r.Violated, want) {
				t.Errorf("not found, or as something else than %s", want)
			}
		})
	}
}

// TestTheExplorerFindsBugsOfWhatPeopleSend: a decision names the question that was shown, and a message its id.
// TestTheExplorerFindsBugsOfCalls, TestTheExplorerFindsBugsOfAppends, TestTheExplorerFindsBugsOfOptions and
// TestTheExplorerFindsBugsOfAFullLog have a program do without Asks, and a process be slow.
func TestTheExplorerFindsBugsOfWhatPeopleSend(t *testing.T) {
	finds(t, "two questions without calls", sim.ShownIgnored, "P3: ", 5, explorer.Bounds{Rewords: 1})
	finds(t, "two questions without calls", sim.MessagesForgotten, "V10: message m1 is sent again", 9,
		explorer.Bounds{Messages: 1, Itself: 1})
}

func TestTheExplorerFindsBugsOfCalls(t *testing.T) {
	finds(t, "one of them in a call", sim.CallEndsUnread, "V15: a person decided", 8, troubles()["calls"])
	finds(t, "two questions in a call", sim.CallEndsUnread, "V15: a person decided", 8, troubles()["calls"])
	finds(t, "a call in the background", sim.CallTakenNotRecorded, "V15: a person decided", 9, troubles()["calls"])
	finds(t, "one of them in a call", sim.CallTakenEndsUnread, "V15: a person decided", 10,
		explorer.Bounds{Crashes: 1, Starts: 1, Appends: 1, Ends: 1})
}

func TestTheExplorerFindsBugsOfAppends(t *testing.T) {
	finds(t, "a question outside of turns", sim.AppendedNotAttended, "V15: ", 10,
		explorer.Bounds{Lapses: 1, Appends: 1})
}

func TestTheExplorerFindsBugsOfOptions(t *testing.T) {
	finds(t, "two questions without calls", sim.OptionsOfBefore, "V15: turn", 9,
		explorer.Bounds{Careless: 1, Refusals: 1, Messages: 1, Options: 1})
	finds(t, "a question outside of turns", sim.OptionsWithout, "V15: a person decided", 10,
		explorer.Bounds{GaveUp: 1, Messages: 1, Options: 1})
	finds(t, "a question outside of turns", sim.FreeOptionsWithout, "V15: a person decided", 8,
		explorer.Bounds{Crashes: 1, Starts: 1, Options: 1})
}

// TestTheExplorerFindsADismissalThatIsDropped: an agent is to learn of a dismissal as of any decision.
func TestTheExplorerFindsADismissalThatIsDropped(t *testing.T) {
	finds(t, "two questions without calls", sim.DismissedDropped, "V15: a person decided", 6,
		explorer.Bounds{Crashes: 1, Starts: 1, Dismissals: 1})
}

func TestTheExplorerFindsBugsOfAFullLog(t *testing.T) {
	finds(t, "two questions without calls", sim.FullLogFences, "P12: living process", 6,
		explorer.Bounds{Lapses: 1, Fulls: 1})
}

func TestTheExplorerFindsARefusalThatIsForgotten(t *testing.T) {
	finds(t, "two questions without calls", sim.RefusedStays, "V15: turn", 11,
		troubles()["refusals of what a turn brings"])
}
