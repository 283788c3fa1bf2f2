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
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// What trying again later may help is 3; a no, whoever says it, is 1.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{&usageError{}, exitUsage},
		{fmt.Errorf("wrapped: %w", &usageError{}), exitUsage},
		{bus.ErrUnreachable, exitUnreachable},
		{events.Unavailable("nobody is there"), exitUnreachable},
		{events.NotFound("session", "s"), exitFailed},
		{events.Gone("", events.Standing{}), exitFailed},
		{bus.ErrForbidden, exitFailed},
		{bus.ErrNoJetStream, exitFailed},
		{bus.ErrTooOld, exitFailed},
		{bus.ErrNewerLayout, exitFailed},
		{embed.ErrDirInUse, exitFailed},
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

// A process that does not end is left behind after ten seconds, and says so; one that does is waited for.
func TestCleanEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{}
		ctx, cancel := context.WithCancel(t.Context())
		hang := make(chan struct{})
		go func() {
			<-time.After(time.Hour) // of the test's own clock
			cancel()
		}()
		began := time.Now()
		err := a.bounded(ctx, func(context.Context) error { <-hang; return nil })
		if took := time.Since(began) - time.Hour; err == nil || !strings.Contains(err.Error(), "not done within 10 s") || took != stopMaxS*time.Second {
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

// What takes longer than two seconds says so beside the result, and goes on saying so.
func TestProgressOfSlowWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beside bytes.Buffer
		a := newApp(&Program{Stderr: &beside})
		if err := a.progress("rebuilding", func() error { <-time.After(1900 * time.Millisecond); return nil }); err != nil || beside.Len() > 0 {
			t.Errorf("quick work: %v, %q", err, &beside)
		}
		if err := a.progress("rebuilding", func() error { <-time.After(5 * time.Second); return errUnwell }); !errors.Is(err, errUnwell) {
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
		{ID: "colours", Question: "Colours?", Options: []events.Option{{Label: "red"}, {Label: "blue, or so"}}, Multi: true},
		{ID: "note", Question: "Note?", Options: []events.Option{{Label: "none"}}, Custom: true},
	}
}

func selected(q string, labels ...string) events.Answer {
	return events.Answer{Question: q, Selected: labels}
}

// How arguments become answers: by place or by id, by label in any case or by number, a text where one is allowed.
func TestAnswersFromArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []events.Answer
	}{
		"by place":                           {[]string{"small", "red", "none"}, []events.Answer{selected("size", "small"), selected("colours", "red"), selected("note", "none")}},
		"in any case":                        {[]string{" LARGE "}, []events.Answer{selected("size", "large")}},
		"by number":                          {[]string{"2", "2"}, []events.Answer{selected("size", "large"), selected("colours", "blue, or so")}},
		"a label that looks like a number":   {[]string{"1"}, []events.Answer{selected("size", "1")}},
		"by id, in any order, several":       {[]string{"colours=red", "colours=2", "size=small"}, []events.Answer{selected("colours", "red", "blue, or so"), selected("size", "small")}},
		"an equals sign that names nothing":  {[]string{"a=b"}, []events.Answer{selected("size", "a=b")}},
		"skipped":                            {[]string{"", "red"}, []events.Answer{{Question: "size"}, selected("colours", "red")}},
		"a text of one's own":                {[]string{"note=as you like"}, []events.Answer{{Question: "note", Text: "as you like"}}},
		"not offered: the ledger will say":   {[]string{"huge"}, []events.Answer{selected("size", "huge")}},
		"a number beyond the options is not": {[]string{"4"}, []events.Answer{selected("size", "4")}},
	} {
		got, err := answersFromArgs(&cobra.Command{}, questions(), c.args)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q: %+v, %v; want %+v", name, c.args, got, err, c.want)
		}
	}
	if _, err := answersFromArgs(&cobra.Command{}, questions(), []string{"a", "b", "c", "d"}); exitCode(err) != exitUsage {
		t.Errorf("four answers to three questions: %v", err)
	}
	if got, err := answersFromArgs(&cobra.Command{}, questions()[1:2], []string{"red", "2"}); err != nil || len(got) != 1 || len(got[0].Selected) != 2 {
		t.Errorf("several options of the only question: %+v, %v", got, err)
	}
	if got, err := answersFromArgs(&cobra.Command{}, nil, []string{"just", "do", "it"}); err != nil || len(got) != 1 || got[0].Text != "just do it" {
		t.Errorf("a prompt without questions: %+v, %v", got, err)
	}
}

// Asked for, each question takes a line; a line that ends nothing skips, and no line is no answer.
func TestAnswersThatAreAskedFor(t *testing.T) {
	ask := func(input string) ([]events.Answer, string, error) {
		var beside bytes.Buffer
		p := &Program{Stdin: strings.NewReader(input), Stderr: &beside}
		a := newApp(p)
		got, err := a.ask(&cobra.Command{}, questions())
		return got, beside.String(), err
	}
	got, beside, err := ask("2\nred, 2\nas, you, like\n")
	want := []events.Answer{selected("size", "large"), selected("colours", "red", "blue, or so"), {Question: "note", Text: "as, you, like"}}
	if err != nil || !reflect.DeepEqual(got, want) || beside != "size> colours> note> " {
		t.Errorf("%+v, %v, %q", got, err, beside)
	}
	got, _, err = ask("\nblue, or so\nnone")
	want = []events.Answer{{Question: "size"}, selected("colours", "blue, or so"), selected("note", "none")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := ask("1\n"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), `no answer to question "colours"`) {
		t.Errorf("input that ended: %v", err)
	}
}

func TestPolicyFromArguments(t *testing.T) {
	got, err := parsePolicy(&cobra.Command{}, []string{"auto_retry=false", "resume=hold", "retry_max=", "compaction_threshold=0.5"})
	want := &events.PolicyPatch{AutoRetry: events.Set(false), Resume: events.Set("hold"), RetryMax: events.Unset[int](), CompactionThreshold: events.Set(0.5)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []string{"resume", "colour=red", "retry_max=-1", "retry_max=many", "resume=maybe", "auto_retry=1", "compaction_threshold=2"} {
		if _, err := parsePolicy(&cobra.Command{}, []string{wrong}); exitCode(err) != exitUsage {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
