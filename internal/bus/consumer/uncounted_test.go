package consumer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAnswersAboutUncountedConsumers: an answer of a broker that cannot be read, or that has a consumer without its
// configuration, is an error, and streams of others do not matter.
func TestAnswersAboutUncountedConsumers(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	cs := &Consumers{conn: &core.Conn{Cell: cell}}
	of := func(stream, config string) string {
		return `{"server":{"name":"n1"},"data":{"stream_detail":[{"name":"` + stream + `","direct_consumer_detail":[` +
			`{"name":"c1","push_bound":true` + config + `}]}]}}`
	}
	for body, want := range map[string]struct {
		found int
		err   string
	}{
		of("HF_LOG", `,"config":{"deliver_subject":"x","inactive_threshold":60000000000}`): {1, ""},
		of("OTHER", ""):  {0, ""},
		of("HF_LOG", ""): {0, "configuration is missing"},
		of("HF_LOG", `,"config":{"inactive_threshold":"long"}`): {0, "inactive_threshold"},
		`[`: {0, "unexpected end"},
	} {
		node, found, err := cs.readUncounted([]byte(body), false)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if len(found) != want.found || (said == "") != (want.err == "") || !strings.Contains(said, want.err) {
			t.Errorf("%s: %d found, %v", body, len(found), err)
		}
		if err == nil && node != "n1" {
			t.Errorf("%s: of %q", body, node)
		}
		if len(found) == 1 && (found[0].To != "x" || !found[0].Active || found[0].Idle != 6*UncountedIdleMax) {
			t.Errorf("%+v", found[0])
		}
	}
}

// TestDirectAndSourcingConsumers: of the listed consumers only those that are sourcing are found, and direct ones of a
// stream that another node leads only for a reader who can end none.
func TestDirectAndSourcingConsumers(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	cs := &Consumers{conn: &core.Conn{Cell: cell}}
	const body = `{"server":{"name":"n1"},"data":{"stream_detail":[{"name":"HF_LOG","cluster":{"leader":"LEADER"},` +
		`"consumer_detail":[{"name":"usual","config":{}},{"name":"sourcing","config":{"sourcing":true}}],` +
		`"direct_consumer_detail":[{"name":"both","config":{"sourcing":true}}]}]}}`
	for _, x := range []struct {
		leader  string
		leaders bool
		want    string
	}{
		{"n1", true, "sourcing true, both false"}, {"n2", true, "sourcing true"},
		{"n2", false, "sourcing true, both false"},
	} {
		_, found, err := cs.readUncounted([]byte(strings.ReplaceAll(body, "LEADER", x.leader)), x.leaders)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range found {
			got = append(got, fmt.Sprint(u.Name, " ", u.Sourcing))
		}
		if all := strings.Join(got, ", "); all != x.want {
			t.Errorf("%+v: %s", x, all)
		}
	}
}
