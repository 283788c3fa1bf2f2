package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// The exit code is 3 if a later attempt may succeed; a refusal, by any service, is 1.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{&usageError{}, exitUsage},
		{fmt.Errorf("wrapped: %w", &usageError{}), exitUsage},
		{bus.ErrUnreachable, exitUnreachable},
		{events.Unavailable("no service answers"), exitUnreachable},
		{events.NotFound("session", "s"), exitFailed},
		{events.Gone("", events.Standing{}), exitFailed},
		{bus.ErrForbidden, exitFailed},
		{bus.ErrNoJetStream, exitFailed},
		{bus.ErrTooOld, exitFailed},
		{bus.ErrNewerLayout, exitFailed},
		{embed.ErrDirInUse, exitFailed},
		{embed.ErrForeignFile, exitFailed},
		{embed.ErrPortInUse, exitFailed},
		{health.ErrPortInUse, exitFailed},
		{errUnwell, exitFailed},
		{errors.New("anything else"), exitFailed},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// A process that does not end is abandoned after ten seconds, with a message; one that ends is waited for.
func TestCleanEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{}
		ctx, cancel := context.WithCancel(t.Context())
		hang := make(chan struct{})
		go func() {
			// of the test's own clock
			<-time.After(time.Hour)
			cancel()
		}()
		began := time.Now()
		err := a.bounded(ctx, func(context.Context) error { <-hang; return nil })
		if took := time.Since(began) - time.Hour; err == nil ||
			!strings.Contains(err.Error(), "not done within 10 s") || took != stopMaxS*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		close(hang)
		slow := func(ctx context.Context) error { <-time.After(9 * time.Second); return errUnwell }
		if err := a.bounded(ctx, slow); !errors.Is(err, errUnwell) {
			t.Errorf("one that ended in time: %v", err)
		}
		if err := a.bounded(t.Context(), func(context.Context) error { return errUnwell }); !errors.Is(err, errUnwell) {
			t.Errorf("one that ended by itself: %v", err)
		}
	})
}

// A command that takes longer than two seconds reports that on stderr, and repeats it.
func TestProgressOfSlowWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beside bytes.Buffer
		a := newApp(&Program{Stderr: &beside})
		if err := a.progress("rebuilding", func() error {
			<-time.After(1900 * time.Millisecond)
			return nil
		}); err != nil || beside.Len() > 0 {
			t.Errorf("quick work: %v, %q", err, &beside)
		}
		if err := a.progress("rebuilding", func() error {
			<-time.After(5 * time.Second)
			return errUnwell
		}); !errors.Is(err, errUnwell) {
			t.Error(err)
		}
		if got := beside.String(); got != "rebuilding … 2s\nrebuilding … 4s\n" {
			t.Errorf("%q", got)
		}
	})
}

func questions() []events.Question {
	return []events.Question{
		{ID: "size", Question: "Size?", Options: []events.Option{{Label: "small"}, {Label: "large"}, {Label: "1"}}},
		{ID: "colours", Question: "Colours?", Options: []events.Option{{Label: "red"}, {Label: "blue, or so"}},
			Multi: true},
		{ID: "note", Question: "Note?", Options: []events.Option{{Label: "none"}}, Custom: true},
	}
}

func selected(q string, labels ...string) events.Answer {
	return events.Answer{Question: q, Selected: labels}
}

// Each question reads a line; an empty line skips the question, and the end of the input is no answer.
func TestAnswersThatAreAskedFor(t *testing.T) {
	ask := func(input string) ([]events.Answer, string, error) {
		var beside bytes.Buffer
		p := &Program{Stdin: strings.NewReader(input), Stderr: &beside}
		a := newApp(p)
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		got, err := a.ask(cmd, questions())
		return got, beside.String(), err
	}
	got, beside, err := ask("2\nred, 2\nas, you, like\n")
	want := []events.Answer{selected("size", "large"), selected("colours", "red", "blue, or so"),
		{Question: "note", Text: "as, you, like"}}
	if err != nil || !reflect.DeepEqual(got, want) || beside != "size> colours> note> " {
		t.Errorf("%+v, %v, %q", got, err, beside)
	}
	got, _, err = ask("\nblue, or so\nnone")
	want = []events.Answer{{Question: "size"}, selected("colours", "blue, or so"), selected("note", "none")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := ask("1\n"); exitCode(err) != exitUsage ||
		!strings.Contains(err.Error(), `no answer to question "colours"`) {
		t.Errorf("input that ended: %v", err)
	}
}

// Each reason of the services has an explanation for a person.
func TestReasonsAreExplained(t *testing.T) {
	for _, reason := range []string{retry.ReasonCancelled, retry.ReasonDisabled, retry.ReasonHeld,
		retry.ReasonNoProgress, retry.ReasonAttempts,
		retry.ReasonOvertaken, retry.ReasonResumes, retry.ReasonStopped} {
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		before := strings.Count(terminal.Session(s, nil, time.Time{}, terminal.Style{}), "\n")
		s.Retry = session.Retry{State: session.RetryAbandoned, Reason: reason}
		if text := terminal.Session(s, nil, time.Time{}, terminal.Style{}); strings.Count(text, "\n") != before+2 {
			t.Errorf("a retry that was given up, %s, is not explained:\n%s", reason, text)
		}
	}
	for _, reason := range []string{compaction.WhyDisabled, compaction.WhyNoUsage, compaction.WhyTooSoon,
		compaction.WhyRunning, compaction.WhyQueued, compaction.WhyWaiting, compaction.WhyCompacted,
		compaction.WhySuppressed, compaction.WhyNoLimit, compaction.WhyBelow} {
		text := terminal.Check("", request.Verdict{Reason: reason}, time.Time{}, terminal.Style{})
		if !strings.Contains(text, reason+", ") {
			t.Errorf("a compaction that would not be, %s, is not explained: %s", reason, text)
		}
	}
}

// The doctor names work that waits for an absent harness, and prompts that wait for a person.
func TestTally(t *testing.T) {
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	count := tally{now: now}
	of := func(name string, change func(*session.State)) {
		s := session.New(events.Ref{Harness: "h", Session: name})
		change(s)
		count.count(s, nil)
	}
	long, soon := now.Add(-2*time.Minute), now.Add(-time.Second)
	of("turn", func(s *session.State) { s.Pending.Turn = &session.PendingTurn{At: long} })
	of("stop", func(s *session.State) { s.Pending.Stop = &session.PendingStop{At: long} })
	of("compaction", func(s *session.State) { s.Pending.Compaction = &session.PendingCompaction{At: long} })
	of("soon", func(s *session.State) { s.Pending.Turn = &session.PendingTurn{At: soon} })
	of("nothing", func(*session.State) {})
	of("abandoned", func(s *session.State) { s.Retry.State = session.RetryAbandoned })
	of("held", func(s *session.State) { s.Compaction = &session.Compaction{State: session.CompactionHeld} })
	of("in-vain", func(s *session.State) { s.Continuations.State = session.ContinuationsHeld })
	of("closed", func(s *session.State) { s.Retry.State, s.Closed = session.RetryAbandoned, &session.Closing{} })
	if got, want := fmt.Sprint(count.untaken, count.stuck, count.orphans),
		"[h/turn h/stop h/compaction] [h/abandoned h/held h/in-vain] []"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
