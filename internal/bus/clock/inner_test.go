package clock

import (
	"context"
	"testing"
	"time"
)

// TestTheClockNeverGoesBack measures a broker whose clock was set back.
func TestTheClockNeverGoesBack(t *testing.T) {
	given := time.Unix(2_000, 0)
	c := &Clock{broker: time.Unix(1_000, 0), local: time.Now(), last: given}
	if now, err := c.Now(context.Background()); err != nil || !now.Equal(given) {
		t.Errorf("now = %s, %v; want %s again", now, err, given)
	}
	c.broker = time.Unix(3_000, 0)
	if now, err := c.Now(context.Background()); err != nil || now.Before(time.Unix(3_000, 0)) {
		t.Errorf("now = %s, %v; want it to go on", now, err)
	}
}

// TestTheClockIsNotAhead: a slow answer gives only a lower bound of the time, and does not replace a quicker one.
func TestTheClockIsNotAhead(t *testing.T) {
	here := time.Now()
	at := func(ms int) time.Time { return here.Add(time.Duration(ms) * time.Millisecond) }
	// the broker's clock is an hour ahead
	there := func(ms int) time.Time { return at(ms).Round(0).Add(time.Hour) }
	var c Clock
	for _, x := range []struct {
		what                   string
		sent, broker, received int
		behind                 int // milliseconds
	}{
		{"the first, and slow", 0, 10, 40, 30},
		{"quicker", 100, 103, 105, 2},
		{"slow again", 200, 201, 290, 2},
		{"slow on the way there", 300, 390, 400, 2},
	} {
		c.set(there(x.broker), at(x.sent), at(x.received))
		if behind := there(x.received).Sub(c.broker); behind != time.Duration(x.behind)*time.Millisecond ||
			!c.local.Equal(at(x.received)) {
			t.Errorf("%s: %s behind, want %d ms", x.what, behind, x.behind)
		}
	}
	// it was set back
	c.set(there(500).Add(-time.Minute), at(499), at(501))
	if !c.broker.Equal(there(500).Add(-time.Minute)) {
		t.Errorf("set back by a minute, it is taken to be %s", c.broker.Sub(there(501)))
	}
}
