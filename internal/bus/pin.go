package bus

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Limits of being the active one. Fail-over after a kill takes at most pinTTL and one reset; ackWait is shorter, so that
// what the dead process left without an acknowledgement is due by then, for it is a delivery that pins the next one.
const (
	pinTTLMS        = 2_000
	ackWaitMS       = 1_500
	keepAliveMS     = 500             // the active process says so often that it lives, and extends what it works on
	extendAfterMS   = 400             // a message is extended that has been with us for so long
	handOverMS      = 2_000           // the hand-over may take so long; then the pin expires by itself
	keepAliveExpiry = time.Nanosecond // a pull that renews the pin and ends before it can be filled
	consumeGroup    = "active"
	settleMaxMS     = 200 // to wait for acknowledgements to be worked in
	bodyInProgress  = "+WPI"
	bodyNotDone     = "-NAK"
)

// reset puts the consumer back to its ack floor: what was delivered and not acknowledged comes again, in order, before
// anything newer. It fails with errPinLost when the pin is not ours any more. before is the last message that was
// delivered until now.
func (c *consumption) reset(ctx context.Context, pin string) (before uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	c.settled(ctx)
	info, err := c.info(ctx)
	if err != nil {
		return 0, err
	}
	if pinned(info) != pin {
		return 0, errPinLost
	}
	c.confirm(time.Now())
	return info.Delivered.Stream, c.b.call(ctx, "reset consumer "+c.name, "CONSUMER.RESET."+c.stream+"."+c.name, nil, new(json0))
}

// settled waits until the broker has worked in the acknowledgements that were sent: it takes them one after the other, and
// answers the last one's subject in its turn. Without it a reset might go behind what is done, to no harm but more work.
func (c *consumption) settled(ctx context.Context) {
	if c.acked == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleMaxMS*time.Millisecond)
	defer cancel()
	if _, err := c.b.nc.RequestWithContext(ctx, c.acked, []byte(bodyInProgress)); err != nil {
		c.b.log.Debug().Str("service", c.name).AnErr("err", err).Msg("acknowledgements may be worked in late")
	}
	c.acked = ""
}

func (c *consumption) info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	var info jetstream.ConsumerInfo
	err := c.b.call(ctx, "look at consumer "+c.name, "CONSUMER.INFO."+c.stream+"."+c.name, nil, &info)
	return &info, err
}

// pinned is the id that the broker gave the active process, "" when there is none.
func pinned(info *jetstream.ConsumerInfo) string {
	for _, g := range info.PriorityGroups {
		if g.Group == consumeGroup {
			return g.PinnedClientID
		}
	}
	return ""
}

// sure asks the broker whether the pin is still ours, if it has not said so for as long as a pin lasts: then this process
// was paused, or cut off.
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
		return errPinLost
	}
	c.confirm(now)
	return nil
}

func (c *consumption) confirm(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmed = at
}

// keepAlive renews the pin and tells the broker that what was delivered is being worked on. It ends the handler's life
// when the pin is lost.
func (c *consumption) keepAlive(life context.Context, pin string, end context.CancelCauseFunc) {
	body, err := json.Marshal(pull{Expires: keepAliveExpiry, Batch: 1, Group: consumeGroup, Pin: pin})
	if err != nil { // nothing in a pull can fail to encode
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
		m, err := c.b.nc.RequestWithContext(ctx, apiPrefix+"CONSUMER.MSG.NEXT."+c.stream+"."+c.name, body)
		cancel()
		switch {
		case err != nil: // the broker is away; whether the pin is still ours will be seen when it is back
		case m.Header.Get(headerStatus) == statusPinLost:
			end(errPinLost)
			c.mu.Lock()
			if c.flow != nil {
				c.flow.fail(errPinLost)
			}
			c.mu.Unlock()
			return
		case m.Header.Get(headerStatus) == statusExpired:
			c.confirm(now)
		}
	}
}

// extend keeps the broker from delivering again, behind newer messages, what is delivered and not yet done.
func (c *consumption) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flow == nil {
		return
	}
	for _, d := range slices.Concat(c.held, c.flow.waiting()) {
		if time.Since(d.got) < extendAfterMS*time.Millisecond {
			continue
		}
		if err := c.b.nc.Publish(d.msg.Reply, []byte(bodyInProgress)); err != nil {
			return // disconnected: the flow ends by itself
		}
	}
}

// handOver lets go of the pin, so that another process is active at once, and gives it what was delivered and not done.
// If it fails the pin expires by itself.
func (c *consumption) handOver(ctx context.Context, pin string) {
	if !c.b.nc.IsConnected() {
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
	case len(c.held) > 0: // one is enough to pin the next process, which takes back all
		err = c.b.nc.Publish(c.held[0].msg.Reply, []byte(bodyNotDone))
	default: // on its way to us when we stopped listening
		err = c.b.call(ctx, "reset consumer "+c.name, "CONSUMER.RESET."+c.stream+"."+c.name, nil, new(json0))
	}
	if err == nil {
		req := map[string]string{"group": consumeGroup}
		err = c.b.call(ctx, "unpin consumer "+c.name, "CONSUMER.UNPIN."+c.stream+"."+c.name, req, new(json0))
	}
	if err != nil {
		c.b.log.Info().Str("service", c.name).AnErr("err", err).Msg("consumer not handed over: the next process waits for the pin to expire")
	}
}
