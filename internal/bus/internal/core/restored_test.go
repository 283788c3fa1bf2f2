package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestAReadOnAnEarlierConnection: the stream was compared with a write's guard, and the connection is restored before
// the write is sent, first or again. It is compared once more: the broker may have been restored from another copy.
func TestAReadOnAnEarlierConnection(t *testing.T) {
	for name, proved := range map[string]bool{"before the first publish": false, "before another one": true} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t)
			_, js := bustest.Outsider(t, s)
			ctx := bustest.Within(t, bustest.Patience)
			if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
				t.Fatal(err)
			}
			p := bustest.NewProxy(t, s)
			c, err := core.Open(ctx, core.Config{URL: p.Addr})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.NC.Close)
			restored := func() {
				n := c.Reconnects()
				p.Cut()
				natstest.Until(t, "the connection to be restored", func() bool { return c.Reconnects() > n })
			}
			on, checks := c.Reconnects(), 0
			msg := &nats.Msg{Subject: "s", Header: nats.Header{}}
			if proved {
				// the first publish is refused
				msg.Header.Set(jetstream.ExpectedLastSeqHeader, "5")
			} else {
				restored()
			}
			_, err = c.Begin(ctx, &core.Write{Op: "write", Msg: msg, On: &on,
				Verify: func(context.Context) (core.Verdict, uint64, error) {
					if checks++; checks == 1 && proved {
						restored()
						msg.Header.Set(jetstream.ExpectedLastSeqHeader, "0")
						return core.Moved, 0, nil
					}
					return core.Lost, 0, nil
				}}).Wait(ctx)
			if !errors.Is(err, core.ErrLostRace) {
				t.Errorf("%v after %d looks", err, checks)
			}
			if st, err := js.Stream(ctx, "S"); err != nil || st.CachedInfo().State.Msgs != 0 {
				t.Errorf("%+v, %v: it was sent", st.CachedInfo().State, err)
			}
		})
	}
}
