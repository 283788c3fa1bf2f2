package board

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/harness"
)

const (
	soakVariable = "HOLDFAST_BOARD_SOAK" // how long the page is open under the drill, such as 5m
	longVariable = "HOLDFAST_LONG"       // an hour
	heapGrowth   = 1 << 20               // bytes that the heap may grow by after warmUp, beside a quarter of it
	warmUp       = 10                    // rounds after which the browser has compiled the page's code
)

// soak is how long the page is open under the drill. At least one round is played.
func soak(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv(soakVariable); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
		return d
	}
	if os.Getenv(longVariable) != "" {
		return time.Hour
	}
	return 0
}

// A page that is open while agents, services and broker under it are killed again and again keeps its size, and shows
// at the end what is stored: no row is lost, and none is a ghost.
func TestPageUnderTheDrill(t *testing.T) {
	c := newCell(t)
	c.end(syscall.SIGTERM)
	start := func() { c.start("--settled-prompts-kept-for", "3s") }
	start()
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "colour", question("colour", "Which colour?", "red"))
	p := board(t, c, "")
	p.shows("Which colour?")
	var first, last float64
	rounds := 0
	for ends := time.Now().Add(soak(t)); rounds == 0 || time.Now().Before(ends); rounds++ {
		drill := exec.CommandContext(t.Context(), binary, "drill", "--nats", "nats://"+c.nats, "--within", "1m")
		drill.Env = append(os.Environ(), "USER=ann")
		if out, err := drill.CombinedOutput(); err != nil {
			t.Fatalf("round %d: the drill: %v\n%s", rounds, err, out)
		}
		c.end(syscall.SIGKILL)
		p.wait(`document.querySelector("#state.stale")`)
		start()
		p.wait(`document.querySelector("#state.live")`)
		last = p.heap()
		if rounds <= warmUp {
			first = last
		}
		// also when a later round fails
		t.Logf("round %d: heap %.0f KiB", rounds, last/1024)
	}
	t.Logf("%d rounds; heap %.0f KiB when warm, %.0f KiB after the last", rounds, first/1024, last/1024)
	if last > first*5/4+heapGrowth {
		t.Errorf("the heap grew from %.0f to %.0f bytes in %d rounds", first, last, rounds)
	}
	kv := c.state(c.connect())
	until(t, "the page shows what is stored", func() bool { return slices.Equal(shownKeys(p), c.waiting(kv)) })
	if got := len(c.waiting(kv)); got == 0 {
		t.Error("nothing waits: the question of a living agent was lost")
	}
}

// waiting are the keys of the prompts that wait, as the bucket has them, sorted.
func (c *cell) waiting(kv jetstream.KeyValue) []string {
	c.t.Helper()
	list, err := kv.ListKeysFiltered(c.t.Context(), "blocker.>")
	if err != nil {
		c.t.Fatal(err)
	}
	var keys []string
	for key := range list.Keys() {
		e, err := kv.Get(c.t.Context(), key)
		if err != nil {
			// it went meanwhile
			continue
		}
		var v struct{ Status string }
		if err := json.Unmarshal(e.Value(), &v); err == nil && v.Status == "awaiting" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// heap returns how many bytes the page's objects take after a collection of garbage.
func (p *page) heap() float64 {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	used, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (float64, error) {
		if _, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			return 0, err
		}
		r, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
		if err != nil {
			return 0, err
		}
		return r.UsedSize, nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return used
}
