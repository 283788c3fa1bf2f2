package reference

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// plain is the printed document as its readers see it.
func plain(t *testing.T) object {
	t.Helper()
	var doc object
	if err := json.Unmarshal(printed(t)["asyncapi.json"], &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// lookup follows a path of keys; nil if there is nothing.
func lookup(v any, keys ...string) any {
	for _, key := range keys {
		m, ok := v.(object)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// refs calls f with each $ref and where it stands.
func refs(v any, at string, f func(at, ref string)) {
	switch v := v.(type) {
	case object:
		if r, ok := v["$ref"].(string); ok {
			f(at, r)
		}
		for key, inner := range v {
			refs(inner, at+"/"+key, f)
		}
	case []any:
		for i, inner := range v {
			refs(inner, fmt.Sprintf("%s/%d", at, i), f)
		}
	}
}

// Every reference leads somewhere, within the document or to a schema beside it.
func TestReferencesResolve(t *testing.T) {
	doc, pages, count := plain(t), printed(t), 0
	refs(doc, "#", func(at, ref string) {
		count++
		if within, ok := strings.CutPrefix(ref, "#/"); ok {
			if lookup(doc, strings.Split(within, "/")...) == nil {
				t.Errorf("%s: %s leads nowhere", at, ref)
			}
		} else if pages[ref] == nil {
			t.Errorf("%s: there is no file %s", at, ref)
		}
	})
	if count < len(events.Table()) {
		t.Errorf("only %d references", count)
	}
}

// The rules of AsyncAPI 3.0 that readers trip over.
func TestAsyncAPIStructure(t *testing.T) {
	doc := plain(t)
	if doc["asyncapi"] != "3.0.0" || lookup(doc, "info", "title") == nil || lookup(doc, "info", "version") == nil {
		t.Error("the head of the document is not that of AsyncAPI 3.0")
	}
	names := regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	parameter := regexp.MustCompile(`\{([a-z]+)\}`)
	for name, c := range doc["channels"].(object) {
		address, _ := lookup(c, "address").(string)
		if !names.MatchString(name) || address == "" {
			t.Errorf("channel %s: address %q", name, address)
		}
		declared, _ := lookup(c, "parameters").(object)
		used := parameter.FindAllStringSubmatch(address, -1)
		for _, p := range used {
			if lookup(declared, p[1], "description") == nil {
				t.Errorf("channel %s: parameter %s is not described", name, p[1])
			}
		}
		if len(used) != len(declared) {
			t.Errorf("channel %s: %d parameters in %s, %d described", name, len(used), address, len(declared))
		}
		if strings.ToLower(address) != address && !strings.HasPrefix(address, "$KV.") {
			t.Errorf("channel %s: a placeholder is left in %s", name, address)
		}
	}
	for name, o := range doc["operations"].(object) {
		on, _ := lookup(o, "channel", "$ref").(string)
		if action := lookup(o, "action"); action != "send" && action != "receive" ||
			!strings.HasPrefix(on, "#/channels/") {
			t.Errorf("operation %s: %v on %q", name, action, on)
		}
		list, _ := lookup(o, "messages").([]any)
		for _, m := range list {
			if r, _ := lookup(m, "$ref").(string); !strings.HasPrefix(r, on+"/messages/") {
				t.Errorf("operation %s: message %s is not of its channel", name, r)
			}
		}
	}
}

func TestAddresses(t *testing.T) {
	for channel, want := range map[string]string{
		"log":           "hf.log.{harness}.{session}.{writer}",
		"feed":          "hf.feed.{kind}",
		"nudge":         "hf.nudge.{harness}",
		"progress":      "hf.progress.{harness}.{session}",
		"parked":        "hf.parked.{why}.{harness}.{session}",
		"timer":         "hf.timer.{what}.{harness}.{session}",
		"due":           "hf.due.{what}.{harness}.{session}",
		"document":      "$KV.hf_state.session.{harness}.{session}",
		"blocker":       "$KV.hf_state.blocker.{harness}.{root}.{session}.{prompt}",
		"work":          "$KV.hf_state.work.{harness}.{session}",
		"ledger-answer": "hf.svc.ledger.answer",
	} {
		if got := lookup(plain(t), "channels", channel, "address"); got != want {
			t.Errorf("%s: %v, want %s", channel, got, want)
		}
	}
}

// A writer's commits hold what the table lets it say, no more and no less.
func TestCommitsAreTheTables(t *testing.T) {
	doc := plain(t)
	for _, w := range events.Writers() {
		list, _ := lookup(doc, "components", "messages", commitOf(w), "payload", "items", "anyOf").([]any)
		var listed []string
		for _, schema := range list {
			r, _ := lookup(schema, "$ref").(string)
			listed = append(listed, strings.TrimPrefix(r, "#/components/schemas/"))
		}
		for _, s := range events.Table() {
			if slices.Contains(listed, string(s.Kind)) != s.May(w) {
				t.Errorf("%s by %s: %v in the document, %v in the table", s.Kind, w, !s.May(w), s.May(w))
			}
		}
	}
}
