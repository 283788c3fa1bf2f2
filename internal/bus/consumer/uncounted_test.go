package consumer

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// readAnswer reads one answer of a broker.
func readAnswer(cell events.Cell, body string, configs bool) (node string, q question, err error) {
	q = question{Conn: &core.Conn{Cell: cell}, configs: configs, seen: map[string]bool{}}
	node, err = q.read(&nats.Msg{Data: []byte(body)})
	return node, q, err
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
		of("HF_LOG", `,"config":{"deliver_subject":"x"}`): {1, ""},
		of("OTHER", ""):  {0, ""},
		of("HF_LOG", ""): {0, "configuration is missing"},
		of("HF_LOG", `,"config":{"deliver_subject":1}`): {0, "deliver_subject"},
		`[`: {0, "instead of {"},
		`{`: {0, "EOF"},
		`{"server":{"name":"n1"},"error":{"code":500,"description":"no such account"}}`: {0, "no such account"},
		`{"data":{"stream_detail":[{"consumer_detail":[{"name":"c"}]}]}}`:               {0, "before the name"},
	} {
		node, q, err := readAnswer(cell, body, true)
		found := q.found
		logged := ""
		if err != nil {
			logged = err.Error()
		}
		if len(found) != want.found || (logged == "") != (want.err == "") || !strings.Contains(logged, want.err) {
			t.Errorf("%s: %d found, %v", body, len(found), err)
		}
		if err == nil && node != "n1" {
			t.Errorf("%s: of %q", body, node)
		}
		if len(found) == 1 && (found[0].To != "x" || !found[0].Active) {
			t.Errorf("%+v", found[0])
		}
	}
}

// TestDirectAndSourcingConsumers: of the listed consumers only those that are sourcing are found. Without the
// configurations all listed ones are to be asked about, once, and the direct ones are known.
func TestDirectAndSourcingConsumers(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	const node = `{"server":{"name":"n1"},"data":{"stream_detail":[{"name":"HF_LOG","consumer_detail":[` +
		`{"name":"usual","config":{}},{"name":"sourcing","config":{"sourcing":true}},{"name":"usual","config":{}}],` +
		`"direct_consumer_detail":[{"name":"both","config":{"sourcing":true}}]}]}}`
	for configs, want := range map[bool]string{true: "sourcing true, both false",
		false: "both false, listed usual, listed sourcing"} {
		body := node
		if !configs {
			body = regexp.MustCompile(`,"config":{[^}]*}`).ReplaceAllString(node, "")
		}
		_, q, err := readAnswer(cell, body, configs)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range q.found {
			got = append(got, fmt.Sprint(u.Name, " ", u.Sourcing))
		}
		for _, x := range q.listed {
			got = append(got, "listed "+x.name)
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("with configurations %v: %s", configs, all)
		}
	}
}

// TestAFloodOfUncountedConsumersIsKeptInParts: a search keeps a limited number of consumers: the next search finds what
// was not deleted.
func TestAFloodOfUncountedConsumersIsKeptInParts(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"consumer_detail", "direct_consumer_detail"} {
		var body strings.Builder
		body.WriteString(`{"data":{"stream_detail":[{"name":"HF_LOG","` + list + `":[{"name":"first"}`)
		for n := range foundMax {
			fmt.Fprintf(&body, `,{"name":"c%d"}`, n)
		}
		body.WriteString(`]}]}}`)
		_, q, err := readAnswer(cell, body.String(), false)
		if err != nil || len(q.found)+len(q.listed) != foundMax {
			t.Errorf("%s: %d and %d of %d are kept: %v", list, len(q.found), len(q.listed), foundMax+1, err)
		}
	}
}
