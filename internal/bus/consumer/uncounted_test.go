package consumer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// readAnswer reads one answer of a broker.
func readAnswer(cell events.Cell, body string, leaders bool) (node string, found []Uncounted, err error) {
	q := question{Conn: &core.Conn{Cell: cell}, leaders: leaders, seen: map[string]bool{}, room: configBytesMax}
	node, err = q.read(&nats.Msg{Data: []byte(body)})
	return node, q.found, err
}

// TestAnswersAboutUncountedConsumers: an answer of a broker that cannot be read, or that has a consumer without its
// configuration, is an error, and streams of others do not matter.
func TestAnswersAboutUncountedConsumers(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
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
		`[`: {0, "instead of {"},
		`{`: {0, "EOF"},
		`{"server":{"name":"n1"},"error":{"code":500,"description":"no such account"}}`: {0, "no such account"},
		`{"data":{"stream_detail":[{"consumer_detail":[{"name":"c"}]}]}}`:               {0, "before the name"},
	} {
		node, found, err := readAnswer(cell, body, false)
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
		_, found, err := readAnswer(cell, strings.ReplaceAll(body, "LEADER", x.leader), x.leaders)
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

// TestAFloodOfUncountedConsumersIsKeptInParts: a search keeps a limited number of consumers, and configurations as far
// as there is room: the next search finds what was not ended.
func TestAFloodOfUncountedConsumersIsKeptInParts(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	const one = `{"name":"c1","config":{"inactive_threshold":60000000000}}`
	body := `{"data":{"stream_detail":[{"name":"HF_LOG","direct_consumer_detail":[` +
		strings.Repeat(one+",", foundMax) + one + `]}]}}`
	const kept = 3
	q := question{Conn: &core.Conn{Cell: cell}, seen: map[string]bool{},
		room: kept * len(`inactive_threshold60000000000`)}
	if _, err := q.read(&nats.Msg{Data: []byte(body)}); err != nil {
		t.Fatal(err)
	}
	configs := 0
	for _, u := range q.found {
		if u.config != nil {
			configs++
		}
	}
	if len(q.found) != foundMax || configs != kept {
		t.Errorf("%d of %d are kept, %d with their configurations", len(q.found), foundMax+1, configs)
	}
	n, err := New(q.Conn).EndUncounted(t.Context(), q.found[kept:])
	if n != 0 || err != nil {
		t.Errorf("%d without a configuration are ended: %v", n, err)
	}
}
