package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestAnInterruptedRebuildNamesWhatContinues: after an error the command prints the command that continues, unless
// nothing was done.
func TestAnInterruptedRebuildNamesWhatContinues(t *testing.T) {
	for parts, want := range []string{"", "`holdfast rebuild --accept-loss --after log.1`",
		"`holdfast rebuild --accept-loss --after log.2`"} {
		var beside bytes.Buffer
		a := newApp(&Program{Stderr: &beside})
		done := 0
		sum, err := a.rebuildParts(request.Rebuild{AcceptLoss: true},
			func(string, request.Rebuild) (request.Rebuilt, error) {
				if done == parts {
					return request.Rebuilt{}, errUnwell
				}
				done++
				return request.Rebuilt{Sessions: 1, Next: []string{"log.1", "log.2"}[done-1]}, nil
			})
		if !errors.Is(err, errUnwell) || sum.Sessions != parts {
			t.Errorf("%d parts: %+v, %v", parts, sum, err)
		}
		if got := beside.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%d parts: it says %q", parts, got)
		}
	}
}
