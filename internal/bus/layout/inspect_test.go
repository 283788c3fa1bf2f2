package layout_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// An operator sees the broker and the cell as they are, and looking sets nothing up.
func TestInspect(t *testing.T) {
	s := natstest.Start(t)
	ctx := bustest.Within(t, bustest.Patience)
	b, err := bus.Open(ctx, bus.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	// it is still not there
	for range 2 {
		found, err := b.Layout.Inspect(ctx)
		if err != nil || !strings.HasPrefix(found.Version, "2.") || found.RTT <= 0 || len(found.Streams) < 6 {
			t.Fatalf("%+v, %v", found, err)
		}
		for _, st := range found.Streams {
			if !st.Missing || st.LayoutWanted != 1 {
				t.Errorf("%+v", st)
			}
		}
	}
	b = natstest.Bus(t, s)
	bustest.MustAppend(t, b, bustest.Session, 0, "e1")
	found, err := b.Layout.Inspect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if found.Bytes < found.Streams[0].Bytes || found.BytesMax != 0 {
		t.Errorf("the account has %d of %d bytes, the log %d", found.Bytes, found.BytesMax, found.Streams[0].Bytes)
	}
	for _, st := range found.Streams {
		wantMsgs := map[string]uint64{"HF_LOG": 1}[st.Name]
		if st.Missing || st.Layout != st.LayoutWanted || st.Replicas != 1 ||
			(st.BytesMax > 0) != (st.Name == "HF_PARKED") || st.Msgs != wantMsgs || st.LastSeq != wantMsgs ||
			(st.Bytes > 0) != (wantMsgs > 0) {
			t.Errorf("%+v", st)
		}
	}
}
