package consumer

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// pinOf returns the pin that the broker gave with a delivery, "" if it cannot be read. It follows everything that the
// author wrote.
func pinOf(h nats.Header) string {
	if pins := h[pull.HeaderPin]; len(pins) > 0 {
		return pins[len(pins)-1]
	}
	return ""
}

// Limits of the active process. Fail-over after a kill takes at most pinTTL and one reset; ackWait is shorter, so that
// the unacknowledged deliveries of the dead process are due by then: a delivery pins the next process.
const (
	pinTTLMS        = 2_000
	ackWaitMS       = 1_500
	keepAliveMS     = 500             // interval at which the active process renews its pin, and extends its deliveries
	extendAfterMS   = 400             // a delivery is extended after this time
	handOverMS      = 2_000           // limit of a hand-over; after it the pin expires
	keepAliveExpiry = time.Nanosecond // a pull that renews the pin and ends before it can be filled
	consumeGroup    = "active"
	settleMaxMS     = 200 // limit of waiting for acknowledgements to be processed
	bodyInProgress  = "+WPI"
	bodyNotDone     = "-NAK"
)

// reset puts the consumer back to its ack floor, or behind what this process has done since it became active: a foreign
// request may have moved the floor. Unacknowledged deliveries come again, in order, before newer ones.
// It fails with errPinLost if another process has the pin. before is the last message that was delivered until now,
// after the one behind which delivery begins.
func (c *consumption) reset(ctx context.Context, pin string) (before, after uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	c.settled(ctx)
	info, err := c.info(ctx)
	if err != nil {
		return 0, 0, err
	}
	if pinned(info) != pin {
		return 0, 0, pull.ErrPinLost
	}
	c.confirm(time.Now())
	to, before := c.resetTo(info.Delivered.Stream)
	after = info.AckFloor.Stream
	if place, ok := to.(resetRequest); ok {
		after = place.Seq - 1
	}
	return before, after, c.call(ctx, "reset consumer", c.subject("RESET"), to, new(core.Nothing))
}

// settled waits until the broker has processed the sent acknowledgements: it processes them in order, and replies to
// the last one in its turn. Without it a reset might repeat finished work, which costs only time.
func (c *consumption) settled(ctx context.Context) {
	if c.acked == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleMaxMS*time.Millisecond)
	defer cancel()
	if _, err := c.conn.NC.RequestWithContext(ctx, c.acked, []byte(bodyInProgress)); err != nil {
		c.conn.Log.Debug().Str("service", c.durable).AnErr("err", err).Msg("acknowledgements may be worked in late")
	}
	c.acked = ""
}

func (c *consumption) info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	var info jetstream.ConsumerInfo
	err := c.call(ctx, "look at consumer", c.subject("INFO"), nil, &info)
	return &info, err
}

// pinned returns the id that the broker gave the active process, "" without one.
func pinned(info *jetstream.ConsumerInfo) string {
	for _, g := range info.PriorityGroups {
		if g.Group == consumeGroup {
			return g.PinnedClientID
		}
	}
	return ""
}

// sure asks the broker whether this process still has the pin, if the last confirmation is older than a pin's TTL: then
// this process was paused, or cut off.
func (c *consumption) sure(ctx context.Context, pin string) error {
	c.mu.Lock()
	doubt := time.Since(c.confirmed) > pinTTLMS*time.Millisecond
	c.mu.Unlock()
	if !doubt {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	now := time.Now()
	info, err := c.info(ctx)
	if err != nil {
		return err
	}
	if pinned(info) != pin {
		return pull.ErrPinLost
	}
	c.confirm(now)
	return nil
}

func (c *consumption) confirm(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmed = at
}

// keepAlive renews the pin and extends the deliveries in progress. It ends the handler's context when the pin is lost.
func (c *consumption) keepAlive(life context.Context, pin string, end context.CancelCauseFunc) {
	body, err := json.Marshal(pull.Request{Expires: keepAliveExpiry, Batch: 1, Group: consumeGroup, Pin: pin})
	// a pull always encodes
	if err != nil {
		end(err)
		return
	}
	tick := time.NewTicker(keepAliveMS * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-life.Done():
			return
		}
		c.extend()
		ctx, cancel := context.WithTimeout(life, keepAliveMS*time.Millisecond)
		now := time.Now()
		m, err := c.conn.NC.RequestWithContext(ctx, core.APIPrefix+c.subject("MSG.NEXT"), body)
		cancel()
		switch {
		case err != nil:
			// the broker is away; after its return the pin is checked
		case m.Header.Get(pull.HeaderStatus) == pull.StatusPinLost:
			end(pull.ErrPinLost)
			c.mu.Lock()
			if c.flow != nil {
				c.flow.Fail(pull.ErrPinLost)
			}
			c.mu.Unlock()
			return
		case m.Header.Get(pull.HeaderStatus) == pull.StatusExpired:
			c.confirm(now)
		}
	}
}

// extend keeps the broker from redelivering unfinished deliveries behind newer messages.
func (c *consumption) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flow == nil {
		return
	}
	for _, d := range slices.Concat(c.held, c.flow.Waiting()) {
		if time.Since(d.Got) < extendAfterMS*time.Millisecond {
			continue
		}
		if err := c.conn.NC.Publish(d.Msg.Reply, []byte(bodyInProgress)); err != nil {
			// disconnected: the flow ends
			return
		}
	}
}

// handOver releases the pin, so that another process is active at once, and returns the unfinished deliveries. If it
// fails the pin expires.
func (c *consumption) handOver(ctx context.Context, pin string) {
	if !c.conn.NC.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverMS*time.Millisecond)
	defer cancel()
	c.settled(ctx)
	info, err := c.info(ctx)
	if err == nil && pinned(info) != pin {
		return
	}
	switch {
	case err != nil || info.NumAckPending == 0:
	case len(c.held) > 0:
		// one is enough to pin the next process, which resets the consumer
		err = c.conn.NC.Publish(c.held[0].Msg.Reply, []byte(bodyNotDone))
	default:
		// in flight when this process stopped reading
		err = c.call(ctx, "reset consumer", c.subject("RESET"), nil, new(core.Nothing))
	}
	if err == nil {
		req := map[string]string{"group": consumeGroup}
		err = c.call(ctx, "unpin consumer", c.subject("UNPIN"), req, new(core.Nothing))
	}
	if err != nil {
		c.conn.Log.Info().Str("service", c.durable).AnErr("err",
			err).Msg("consumer not handed over: the next process waits for the pin to expire")
	}
}
