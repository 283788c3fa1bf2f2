package core_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestASlowLinkIsKept: a connection on which the answers to pings wait for seconds behind other data is kept. When no
// byte arrives it is left, also while its bytes wait at a proxy.
func TestASlowLinkIsKept(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const (
		bytesPerSecond = 1 << 20
		// for all messages, longer than the answers to three pings may take
		seconds = 4
		size    = 64 << 10
		count   = seconds * bytesPerSecond / size
		// far less than unanswered pings take
		leftMax = 20 * time.Second
	)
	s := natstest.Start(t)
	outside, _ := bustest.Outsider(t, s)
	p := bustest.NewProxy(t, s)
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: p.Addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	got := make(chan *nats.Msg, count)
	if _, err := c.NC.ChanSubscribe("large", got); err != nil {
		t.Fatal(err)
	}
	if err := c.NC.Flush(); err != nil {
		t.Fatal(err)
	}
	p.Slow(bytesPerSecond)
	for range count {
		if err := outside.Publish("large", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	for range count {
		bustest.Receive(t, got, "a message over the slow link")
	}
	if n := c.Reconnects(); n != 0 {
		t.Errorf("connected again %d times", n)
	}
	p.Slow(0)
	p.Hold(true, true)
	began, pulse := time.Now(), natstest.Feel(t)
	natstest.Until(t, "the silent connection to be left", func() bool { return !c.Connected() })
	if took := time.Since(began); took > leftMax+pulse.Lost() {
		t.Errorf("left after %s", took)
	}
	p.Hold(false, false)
	natstest.Until(t, "it to be restored", c.Connected)
}
