package pull_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// TestHeadersThatCannotBeRead: a delivery stays without its header if its message is gone, and only then. The header of
// a delivery that has one is not read.
func TestHeadersThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		answer []bustest.Reply
		header nats.Header
		fails  bool
	}{
		"the message is gone": {bustest.NotFound, nil, false},
		"no stream":           {bustest.NoStream, nil, true},
		"an error":            {bustest.Trouble, nil, true},
		"it has a header":     {bustest.Trouble, nats.Header{}, false},
	} {
		conn, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{
			URL: bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return c.answer }).Url})
		if err != nil {
			t.Fatal(err)
		}
		ds := []pull.Delivery{{Seq: 1, Msg: &nats.Msg{Header: c.header}}}
		err = pull.WithHeaders(bustest.Within(t, bustest.Patience), conn, "HF_LOG", ds)
		conn.NC.Close()
		if (err != nil) != c.fails || len(ds[0].Msg.Header) > 0 {
			t.Errorf("%s: %v, header %v", name, err, ds[0].Msg.Header)
		}
	}
}
