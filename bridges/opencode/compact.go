package opencode

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// AutoCompactVar is the variable in the environment of OpenCode that switches its own compactions off.
const AutoCompactVar = "OPENCODE_DISABLE_AUTOCOMPACT"

// summaryChecksMax is how often an idle session is looked at for the summary of a compaction that the server has ended.
const summaryChecksMax = 3

// textContinue is the message of a turn that continues after a compaction.
const textContinue = "The conversation was compacted in the middle of this work. Continue it."

// compact has OpenCode compact the conversation of a session, once the session runs nothing. A compaction that is taken
// away is aborted, and what it has written is removed: the next message would be answered with a summary.
func (r *follower) compact(ctx context.Context, l *process, s *harness.Session, _ fold.WorkCompaction) (int64, error) {
	if !r.Drive.Compaction {
		return 0, cannot("OpenCode compacts this conversation by itself: start the bridge with --drive compaction")
	}
	at, err := r.find(ctx, s.ID())
	if err != nil {
		return 0, err
	}
	messages, err := r.whenIdle(ctx, l, at)
	if err != nil {
		return 0, err
	}
	last := lastMessage(messages, roleUser, "")
	if last < 0 || messages[last].info.Model.ModelID == "" {
		return 0, cannot("OpenCode has no message with a model in this session")
	}
	before := newestSummary(messages)
	r.mu.Lock()
	r.translator.session(s.ID()).driven = true
	r.mu.Unlock()
	asked := make(chan error, 1)
	l.waits.Go(func() {
		model := messages[last].info.Model
		asked <- r.api.callFor(ctx, 0, http.MethodPost, r.api.at(at.Directory, "session", at.ID, "summarize"),
			map[string]any{"providerID": model.ProviderID, "modelID": model.ModelID, "auto": false}, nil)
	})
	err = r.summarized(ctx, l, s, at, idOfMessage(before), asked)
	if ctx.Err() == nil || l.ctx.Err() != nil {
		return 0, err
	}
	if undo := r.undoCompaction(l, at); undo != nil {
		r.log.Warn("half a compaction stays in OpenCode", "session", at.ID, "err", undo)
	}
	return 0, context.Cause(ctx)
}

// whenIdle returns the messages of a session when it runs nothing.
func (r *follower) whenIdle(ctx context.Context, l *process, s stored) ([]openMessage, error) {
	if err := l.awaitAbort(ctx, s.ID); err != nil {
		return nil, err
	}
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for {
		n, err := r.readOf(ctx, l, s.Directory, s.ID)
		switch {
		case err == nil && n.Idle:
			return decodeMessages(n), nil
		case err != nil && refused(err):
			return nil, cannot("OpenCode does not show this session: %v", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// summarized waits for the summary that follows another one, or returns why OpenCode made no summary.
func (r *follower) summarized(ctx context.Context, l *process, s *harness.Session, at stored, before string,
	asked <-chan error) error {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	over, checks := false, 0
	for {
		select {
		case err := <-asked:
			if refused(err) {
				return cannot("OpenCode refused the compaction: %v", err)
			}
			over, asked = true, nil
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.Progress()
		n, err := r.readOf(ctx, l, at.Directory, at.ID)
		if err != nil || !n.Idle {
			continue
		}
		m := newestSummary(decodeMessages(n))
		switch {
		case m != nil && m.info.ID != before && m.info.Error != nil:
			r.mu.Lock()
			f := r.translator.failure(m.info.Error)
			r.mu.Unlock()
			return &harness.FailureError{Failure: f}
		case m != nil && m.info.ID != before && m.info.completed():
			return harness.ValidateSummary(m.text())
		case over:
			if checks++; checks >= summaryChecksMax {
				return &harness.FailureError{Failure: events.Failure{Kind: failure.EmptyOutput,
					Text: "OpenCode ended the compaction without a summary"}}
			}
		}
	}
}

// undoCompaction aborts a compaction, and removes what it has written.
func (r *follower) undoCompaction(l *process, s stored) error {
	err := r.insist(l.ctx, "the abort of a compaction", func() error {
		return r.api.post(l.ctx, struct{}{}, s.Directory, "session", s.ID, "abort")
	})
	if err != nil {
		return err
	}
	messages, err := r.whenIdle(l.ctx, l, s)
	if err != nil {
		return err
	}
	_, err = r.removeHalf(l.ctx, s, messages)
	return err
}

// newestSummary returns the newest summary of a conversation; nil without one.
func newestSummary(messages []openMessage) *openMessage {
	for i, m := range slices.Backward(messages) {
		if m.info.Role == "assistant" && m.info.summary() {
			return &messages[i]
		}
	}
	return nil
}

func idOfMessage(m *openMessage) string {
	if m == nil {
		return ""
	}
	return m.info.ID
}

// text is what a model has said in a message.
func (m *openMessage) text() string {
	var all []string
	for _, p := range m.parts {
		if p.Type == partText {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// isCompacted reports whether a summary has taken the place of a message: OpenCode does not continue after it.
func isCompacted(messages []openMessage, mine int) bool {
	return mine >= 0 && slices.ContainsFunc(messages[mine:], func(m openMessage) bool {
		return m.info.Role == "assistant" && m.info.summary() && m.info.completed() && m.info.Error == nil
	})
}

// afterCompaction is the message that continues a turn behind a summary. OpenCode shows the model nothing from before
// the summary: the message says what was decided since, and is the person's own text if the model has not answered it.
func (r *follower) afterCompaction(ctx context.Context, l *process, s stored, messages []openMessage, mine int,
	t *harness.Turn, w fold.WorkTurn) (map[string]any, error) {
	st := t.Session().State()
	w.Content = encode(continuation(messages[mine:], w.Prompts, func(prompt string) (string, bool) {
		return r.callOf(s.ID, st, prompt)
	}, func(prompt string, m *openMessage, k int) bool { return l.unsent(st, prompt, m, k) }))
	if _, err := r.settleAll(ctx, l, s, messages[mine:], t, w.Prompts); err != nil {
		return nil, err
	}
	return newMessage(messages, lastMessage(messages, roleUser, ""), w), nil
}

// continuation is the text of the message that continues a turn behind a summary. messages are the turn's message and
// what follows; asked returns the call of a prompt, and whether the prompt is a permission; unsent is as that of
// [process]. A permission of a call that ended by itself is left out.
func continuation(messages []openMessage, prompts []fold.TurnPrompt, asked func(prompt string) (string, bool),
	unsent func(prompt string, m *openMessage, k int) bool) string {
	text := messages[0].text()
	if text == "" || slices.ContainsFunc(messages, isAnswer) {
		text = textContinue
	}
	used := map[string]bool{}
	for i := range prompts {
		p := &prompts[i]
		// it is only named
		if p.Status == "" {
			continue
		}
		call, permission := asked(p.Prompt)
		at, k := findCall(messages, p, call, permission, used)
		if permission && at < 0 {
			continue
		}
		var questions []events.Question
		none := false
		if at >= 0 {
			c := &messages[at].parts[k]
			none = permission && (isTold(c, p) || unsent(p.Prompt, &messages[at], k))
			used[c.ID], questions = true, askedBy(c.State.Input)
			text += "\n" + c.Tool + ":"
		}
		result := resultOf(p, questions, permission, none)
		for _, key := range []string{partError, "output"} {
			if part, ok := result[key].(string); ok {
				text += "\n" + part
			}
		}
	}
	return text
}

// isAnswer reports whether a message is what a model has said or done for a person.
func isAnswer(m openMessage) bool {
	return m.info.Role == "assistant" && !m.info.summary() && slices.ContainsFunc(m.parts, hasContent)
}

// limits returns how many tokens each model of the server may have in its context.
func (r *follower) limits(ctx context.Context) (map[string]int64, error) {
	var v struct {
		Providers []struct {
			ID     string `json:"id"`
			Models map[string]struct {
				Limit struct {
					Context float64 `json:"context"`
				} `json:"limit"`
			} `json:"models"`
		} `json:"providers"`
	}
	if err := r.api.get(ctx, &v, "", "config", "providers"); err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for _, p := range v.Providers {
		for id, m := range p.Models {
			all[modelRef{ModelID: id, ProviderID: p.ID}.name()] = tokens(m.Limit.Context)
		}
	}
	return all, nil
}

// driveCompactions prepares for a process whose conversations Holdfast compacts. Without the limits of its models the
// policy of a session says when.
func (r *follower) driveCompactions(ctx context.Context) {
	if !r.Drive.Compaction {
		return
	}
	all, err := r.limits(ctx)
	if err != nil {
		r.log.Warn("the limits of models are not known: conversations are compacted at the limit of their policy",
			"err", err)
	}
	r.mu.Lock()
	r.translator.limits = all
	r.mu.Unlock()
	var c struct {
		Compaction struct {
			Auto *bool `json:"auto"`
		} `json:"compaction"`
	}
	if err := r.api.get(ctx, &c, "", "config"); err != nil || c.Compaction.Auto == nil || *c.Compaction.Auto {
		r.log.Warn("OpenCode may compact by itself, too: set compaction.auto to false in its configuration, or " +
			AutoCompactVar + "=1 in its environment")
	}
}
