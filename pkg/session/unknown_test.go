package session_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	kinds "github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestUnknownOutcomes: a call has an unknown outcome if recovery or the end of its turn closed it, or if the harness
// said that its step was cut off. One that failed, or whose result came late, has not. Only the ends of failed calls
// are read.
func TestUnknownOutcomes(t *testing.T) {
	commits := map[uint64]*events.Commit{}
	st := &session.State{}
	ended := func(call, outcome string, late *session.Late, fact events.Fact) {
		seq := uint64(len(st.Recent) + 1)
		st.Recent = append(st.Recent, session.Ending{Entity: session.EntityTool, ID: call, Outcome: outcome, Seq: seq,
			Late: late})
		if fact != nil {
			commits[seq] = &events.Commit{Seq: seq, Events: []events.Event{{Fact: fact}}}
		}
	}
	failed := func(call, kind string) events.Fact {
		return events.ToolFailed{Call: call, Error: events.Failure{Kind: kind, Text: "a text"}}
	}
	ended("done", session.OutcomeCompleted, nil, nil)
	ended("cut", session.OutcomeFailed, nil, failed("cut", kinds.OutcomeUnknown))
	ended("failed", session.OutcomeFailed, nil, failed("failed", kinds.Unknown))
	ended("another", session.OutcomeFailed, nil, failed("cut", kinds.OutcomeUnknown))
	ended("lost", session.OutcomeInterrupted, nil, nil)
	ended("late", session.OutcomeInterrupted, &session.Late{Seq: 99}, nil)
	ended("left", session.OutcomeEndedWithTurn, nil, nil)
	st.Recent = append(st.Recent,
		session.Ending{Entity: session.EntityTurn, ID: "t", Outcome: session.OutcomeInterrupted})
	source := func(seq uint64) (*events.Commit, error) {
		if commits[seq] == nil {
			return nil, fmt.Errorf("commit %d: %w", seq, errGone)
		}
		return commits[seq], nil
	}
	got, err := st.UnknownOutcomes(source)
	if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, []string{"cut", "left", "lost"}) {
		t.Errorf("%q, %v", names, err)
	}
	delete(commits, 3)
	got, err = st.UnknownOutcomes(source)
	if names := slices.Sorted(maps.Keys(got)); !errors.Is(err, errGone) ||
		!slices.Equal(names, []string{"cut", "left", "lost"}) {
		t.Errorf("without a commit: %q, %v", names, err)
	}
}

var errGone = errors.New("gone")
