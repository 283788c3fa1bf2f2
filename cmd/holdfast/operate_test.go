package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// TestRebuildAsksForParts: the command asks for one part after the other, each behind the one before, says how far it
// is, and adds up what they did.
func TestRebuildAsksForParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beside bytes.Buffer
		a := newApp(&Program{Stderr: &beside})
		replies := []request.Rebuilt{
			{Sessions: 3, Changed: 1, Views: 2, Next: "log.10", Percent: 40, TookMS: 5},
			{Sessions: 2, Lost: 1, Failed: []string{"h/s: x"}, Next: "documents.0"},
			{Removed: 1, TookMS: 6, Percent: 100},
		}
		var after []string
		ask := func(_ string, q request.Rebuild) (request.Rebuilt, error) {
			if q.Limit != 7 {
				t.Errorf("it asks for %+v", q)
			}
			<-time.After(1500 * time.Millisecond)
			after = append(after, q.After)
			return replies[len(after)-1], nil
		}
		sum, err := a.rebuildParts(request.Rebuild{Limit: 7}, ask)
		if err != nil || sum.Sessions != 5 || sum.Changed != 1 || sum.Views != 2 || sum.Lost != 1 || sum.Removed != 1 ||
			sum.TookMS != 11 || len(sum.Failed) != 1 || sum.Next != "" {
			t.Errorf("%+v, %v", sum, err)
		}
		if !slices.Equal(after, []string{"", "log.10", "documents.0"}) {
			t.Errorf("it asked behind %q", after)
		}
		if got := beside.String(); got != "rebuilding: 0 % of the documents, 5 sessions\n" {
			t.Errorf("it says %q", got)
		}
	})
}

// TestAnInterruptedRebuildNamesWhatContinues: after an error the command prints the place that continues, unless
// nothing was done or the place was refused.
func TestAnInterruptedRebuildNamesWhatContinues(t *testing.T) {
	stopping := &events.Refusal{Code: http.StatusServiceUnavailable, Message: "the ledger stops"}
	for name, c := range map[string]struct {
		after string
		parts int
		err   error
		want  string
	}{
		"nothing was done":          {"", 0, errUnwell, ""},
		"one part":                  {"", 1, errUnwell, "run the same command with `--after log.1`\n"},
		"two parts":                 {"", 2, errUnwell, "run the same command with `--after log.2`\n"},
		"of a continuation":         {"log.7", 0, errUnwell, "run the same command with `--after log.7`\n"},
		"by a ledger that stops":    {"log.7", 0, stopping, "run the same command with `--after log.7`\n"},
		"the place was not a place": {"x", 0, events.BadRequest(errUnwell), ""},
	} {
		var beside bytes.Buffer
		a := newApp(&Program{Stderr: &beside})
		done := 0
		ask := func(string, request.Rebuild) (request.Rebuilt, error) {
			if done == c.parts {
				return request.Rebuilt{}, c.err
			}
			done++
			return request.Rebuilt{Sessions: 1, Next: fmt.Sprint("log.", done)}, nil
		}
		sum, err := a.rebuildParts(request.Rebuild{After: c.after}, ask)
		if !errors.Is(err, c.err) || sum.Sessions != c.parts {
			t.Errorf("%s: %+v, %v", name, sum, err)
		}
		if got := beside.String(); c.want == "" && got != "" || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: it says %q", name, got)
		}
	}
}

// TestWhatWasNotRebuilt: the command fails if sessions were not rebuilt, and if documents stand, also after an
// interruption. It names 20 sessions.
func TestWhatWasNotRebuilt(t *testing.T) {
	if err := notRebuilt(request.Rebuilt{Changed: 1}); err != nil {
		t.Error(err)
	}
	var r request.Rebuilt
	for i := range failedNamesMax + 1 {
		err := notRebuilt(r)
		if i > 0 && (err == nil || strings.Contains(err.Error(), "more") || errors.Is(err, errKept)) {
			t.Errorf("%d failed: %v", i, err)
		}
		r.Failed = append(r.Failed, fmt.Sprintf("h/s%d: x", i))
	}
	err := notRebuilt(r)
	if err == nil || !strings.Contains(err.Error(), "21 sessions could not be rebuilt: h/s0: x; h/s1: x;") ||
		!strings.HasSuffix(err.Error(), "h/s19: x; and 1 more, in the ledger's log") {
		t.Errorf("21 failed: %v", err)
	}
	r.Lost = 3
	if err := notRebuilt(r); !errors.Is(err, errKept) || !strings.Contains(err.Error(), "21 sessions") {
		t.Errorf("and 3 documents stand: %v", err)
	}
}
