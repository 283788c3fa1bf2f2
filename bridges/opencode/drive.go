package opencode

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Drive is what Holdfast decides in place of OpenCode. The zero value is nothing.
type Drive struct {
	// Retry: a run that waits for OpenCode's own retry is ended as a failed turn and aborted, and the turn is tried
	// again by the rules of the retry service. Sessions whose auto_retry is off are left to OpenCode, and so are those
	// of sub-agents: a run of the parent waits for them.
	Retry bool
	// Queue: a message that is sent to OpenCode waits in the queue of its session, and is its own turn. It needs the
	// plugin.
	Queue bool
	// Compaction: a conversation is compacted when the compaction service says so. OpenCode's own compactions are to be
	// switched off in its configuration or by AutoCompactVar.
	Compaction bool
}

// driveNames are the names of what can be driven.
var driveNames = []string{"compaction", "queue", "retry"}

// ParseDrive returns what a list of names says. An error names one that is unknown.
func ParseDrive(names []string) (d Drive, err error) {
	for _, name := range names {
		switch name {
		case "retry":
			d.Retry = true
		case "compaction":
			d.Compaction = true
		case "queue":
			d.Queue = true
		default:
			return Drive{}, fmt.Errorf("%.40q: want some of %q", name, driveNames)
		}
	}
	return d, nil
}

// backOff is a run that waits for OpenCode's own retry.
type backOff struct {
	session string
	message string // the model call that failed
	failure events.Failure
}

// backsOff notes that a run waits for OpenCode's own retry. A compaction is left to OpenCode, and so is a failure after
// which Holdfast tries nothing again.
func (t *Translator) backsOff(s *session, b *body) {
	u := s.turn
	if !t.live || u.newest == nil || s.compaction != nil {
		return
	}
	f := failure.Classify(failure.Raw{Text: b.Status.Message})
	f.RetryAfterMS = max(f.RetryAfterMS, b.Status.Next-t.at.UnixMilli())
	if failure.Retryable(f.Kind) {
		t.backOffs = append(t.backOffs, backOff{s.id, u.newest.id, f})
	}
}

// takeBackOffs returns the runs that wait for OpenCode's own retry since the last call.
func (t *Translator) takeBackOffs() []backOff {
	all := t.backOffs
	t.backOffs = nil
	return all
}

// fail ends the turn of a run that waits for OpenCode's own retry. Later events of the run are no facts.
func (t *Translator) fail(w backOff) []Step {
	s := t.sessions[w.session]
	if s == nil || s.turn == nil || s.turn.newest == nil || s.turn.newest.id != w.message {
		return nil
	}
	t.release(s)
	t.end(s, events.TurnFailed{Turn: s.turn.id, Error: w.failure, HadOutput: s.turn.hadOutput})
	return t.take()
}

// policy is that of a session that the bridge opens. OpenCode runs its turns by itself, so Holdfast ends no silent one,
// and asks for another one only if it drives the retries.
func (b *Bridge) policy(parent string) *events.PolicyPatch {
	return &events.PolicyPatch{AutoRetry: events.Set(b.Drive.Retry && parent == ""),
		Resume: events.Set(events.ResumeHold), StallAfterS: events.Set[int64](0)}
}

// driveRetries ends the turns whose runs wait for OpenCode's own retry, and has the runs aborted. The end of the turn
// is stored first: a bridge that is killed in between finds a run that waits, and ends it. The caller has the lock.
func (r *follower) driveRetries(ctx context.Context) error {
	for _, w := range r.translator.takeBackOffs() {
		s := r.process.handle(w.session)
		if !r.Drive.Retry || s == nil {
			continue
		}
		if st := s.State(); st.Parent != "" || !st.Policy.AutoRetry {
			continue
		}
		turn := r.translator.session(w.session).turn
		aborted := r.process.aborts(w.session)
		if err := r.store(ctx, r.translator.fail(w)); err != nil {
			aborted()
			return err
		}
		last := s.State().LastTurn
		if turn == nil || last == nil || last.ID != turn.id || last.Outcome != fold.OutcomeFailed {
			// recovery took the session: it is compared, and found to wait
			aborted()
			continue
		}
		l, dir := r.process, r.translator.directory(w.session)
		l.waits.Go(func() {
			defer aborted()
			if err := r.abortRetry(l, dir, w); err != nil && l.ctx.Err() == nil {
				r.log.Warn("OpenCode refused to abort its retry, or to remove what is left of it", "session", w.session,
					"err", err)
			}
		})
	}
	return nil
}

// aborts notes that a run of a session is being aborted. Handlers of its turns wait until the result is called.
func (l *process) aborts(id string) (aborted func()) {
	done := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.aborting[id]
	l.aborting[id] = done
	return func() {
		if before != nil {
			<-before
		}
		close(done)
	}
}

// awaitAbort waits until no run of a session is being aborted: a late abort would end the run that comes next.
func (l *process) awaitAbort(ctx context.Context, id string) error {
	l.mu.Lock()
	done := l.aborting[id]
	l.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abortRetry aborts a run that waits for OpenCode's own retry, and removes the model call that failed, if it has said
// nothing: it would have no end on OpenCode's screens. A server that does not let it be removed keeps it.
func (r *follower) abortRetry(l *process, dir string, w backOff) error {
	err := r.insist(l.ctx, "the abort of a retry", func() error {
		return r.api.post(l.ctx, struct{}{}, dir, "session", w.session, "abort")
	})
	if err != nil {
		return err
	}
	r.log.Info("a retry of OpenCode is left to Holdfast", "session", w.session, "kind", w.failure.Kind)
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for range idleChecksMax {
		n, err := r.read(l.ctx, dir, w.session)
		if err == nil && n.Idle {
			return r.removeEmpty(l.ctx, dir, w, decodeMessages(n))
		}
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			return nil
		}
	}
	return nil
}

// removeEmpty removes a model call without content.
func (r *follower) removeEmpty(ctx context.Context, dir string, w backOff, messages []openMessage) error {
	i := slices.IndexFunc(messages, func(m openMessage) bool { return m.info.ID == w.message })
	if i < 0 || slices.ContainsFunc(messages[i].parts, hasContent) {
		return nil
	}
	return r.insist(ctx, "the removal of a model call", func() error {
		return r.api.call(ctx, http.MethodDelete, r.api.at(dir, "session", w.session, "message", w.message), nil, nil)
	})
}

// hasContent reports whether a part is something that a model said or did.
func hasContent(p part) bool {
	return p.Type != "step-start" && p.Type != "step-finish" && p.Type != "snapshot"
}
