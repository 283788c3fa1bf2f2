package events_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// FuzzDecodeBatch: decoding never panics, and a decoded batch is unchanged after encode and decode.
func FuzzDecodeBatch(f *testing.F) {
	f.Add(encode(f, sampleEvents()...))
	f.Add(raw(f, map[string]any{"type": "holdfast.tool.danced", "data": "any"}))
	f.Add(raw(f, map[string]any{"type": "com.example", "data": nil, "derived": true}))
	f.Add(raw(f, map[string]any{"time": "9999-12-31T23:59:59.999999999-23:59"}))
	f.Add(raw(f, map[string]any{"time": "0001-01-01T00:00:00Z", "subject": "\u2028<&>"}))
	f.Add(
		raw(
			f,
			map[string]any{
				"type":    "holdfast.prompt.requested",
				"subject": "p",
				"data":    map[string]any{"prompt": "p", "questions": []any{1}},
			},
		),
	)
	f.Add([]byte(`[null,1,"x",[],{},{"epoch":"x"},{"specversion":"1.0","id":"\ud800","Source":"s"}]`))
	f.Add([]byte(`[` + strings.Repeat(`{"data":`, 50) + `1` + strings.Repeat(`}`, 50) + `]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		evs, err := events.DecodeBatch(ref, body)
		if err != nil {
			if !events.IsMalformed(err) {
				t.Fatalf("%v: want ErrMalformed", err)
			}
			return
		}
		var readable []events.Event
		for _, e := range evs {
			if e.Err != nil && !events.IsMalformed(e.Err) {
				t.Fatalf("%v: want ErrMalformed", e.Err)
			}
			if e.Err == nil {
				readable = append(readable, e)
			}
		}
		if len(readable) == 0 || len(body) > events.CommitBytesMax/8 {
			return
		}
		first := decode(t, encode(t, readable...))
		second := decode(t, encode(t, first...))
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("decoded %+v\nthen    %+v", first, second)
		}
		// but for white space in raw fields, the first journey changes nothing either
		for i := range readable {
			readable[i].Data, first[i].Data = nil, nil
			readable[i].Time, first[i].Time = readable[i].Time.UTC(), first[i].Time.UTC()
			if !equalJSON(t, readable[i], first[i]) {
				t.Fatalf("decoded %+v\nthen    %+v", readable[i], first[i])
			}
		}
	})
}
