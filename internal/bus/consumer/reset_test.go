package consumer

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestWhereDeliveryContinues: a reset continues behind what the process has done, and never beyond the end of the
// stream. A process that has done nothing resets to the ack floor, or to the last commit of the log if the consumer was
// beyond it.
func TestWhereDeliveryContinues(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	beyond := func(end uint64) *Place { return &Place{Delivered: 1_000_000, End: end} }
	for _, c := range []struct {
		name, stream, bucket string
		done, delivered      uint64
		beyond               *Place
		to                   any
		before               uint64
	}{
		{"nothing done", cell.LogStream(), "", 0, 4, nil, nil, 4},
		{"done", cell.LogStream(), "", 5, 8, nil, resetRequest{6}, 8},
		{"beyond, nothing done", cell.LogStream(), "", 0, 1_000_000, beyond(7), resetRequest{7}, 7},
		{"beyond an empty log", cell.LogStream(), "", 0, 1_000_000, beyond(0), resetRequest{1}, 0},
		{"beyond, done", cell.LogStream(), "", 5, 1_000_000, beyond(7), resetRequest{6}, 7},
		{"beyond, done, reset again", cell.LogStream(), "", 5, 6, beyond(7), resetRequest{6}, 6},
		{"the stream has lost its end", cell.LogStream(), "", 9, 1_000_000, beyond(7), resetRequest{7}, 7},
		{"timers beyond, nothing done", cell.TimerStream(), "", 0, 1_000_000, beyond(7), resetRequest{1}, 7},
		{"documents", "KV_hf_state", "hf_state", 5, 8, nil, nil, 8},
	} {
		x := &consumption{conn: &core.Conn{Cell: cell}, stream: c.stream, bucket: c.bucket, done: c.done,
			beyond: c.beyond}
		if to, before := x.resetTo(c.delivered); to != c.to || before != c.before || x.beyond != nil {
			t.Errorf("%s: to %+v, before %d, want %+v, %d", c.name, to, before, c.to, c.before)
		}
	}
}
