package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// racesMax is how often a document is made again after another process wrote first.
const racesMax = 10

// Limits of what one request may read of a log.
const (
	currentReadMax = 10_000 // commits beyond the document; a document that is further behind is being updated
	longAgoMax     = 2      // requests that read a whole session, at the same time
)

// changedReply is the reply to a request: its place in the log. A document with this seq or a greater one includes it.
type changedReply struct {
	Seq uint64 `json:"seq,omitempty"`
}

func (l *Ledger) endpoints() []bus.Endpoint {
	return []bus.Endpoint{
		{Verb: "get", Handle: l.get},
		{Verb: "list", Handle: l.list},
		{Verb: "rebuild", Handle: l.rebuild, TimeMax: rebuildMax},
		{Verb: "answer", Handle: wish(l, func(w session.AnswerWish) (whom, error) {
			return whom{w.Ref, w.By, w.Prompt}, need("prompt", w.Prompt)
		}, func(st *session.State, w session.AnswerWish, src session.Source) (session.Decision, error) {
			return st.Answer(w, src)
		})},
		{Verb: "reject", Handle: wish(l, func(w session.RejectWish) (whom, error) {
			return whom{w.Ref, w.By, w.Prompt}, need("prompt", w.Prompt)
		}, func(st *session.State, w session.RejectWish, src session.Source) (session.Decision, error) {
			return st.Reject(w, src)
		})},
		{Verb: "dismiss", Handle: wish(l, func(w session.DismissWish) (whom, error) {
			return whom{w.Ref, w.By, w.Prompt}, need("prompt", w.Prompt)
		}, func(st *session.State, w session.DismissWish, src session.Source) (session.Decision, error) {
			return st.Dismiss(w, src)
		})},
		{Verb: "stop", Handle: wish(l, func(w session.StopWish) (whom, error) { return whom{w.Ref, w.By, ""}, nil },
			func(st *session.State, w session.StopWish, _ session.Source) (session.Decision, error) {
				return st.Stop(w)
			})},
		{Verb: "close", Handle: wish(l, func(w session.CloseWish) (whom, error) { return whom{w.Ref, w.By, ""}, nil },
			func(st *session.State, w session.CloseWish, _ session.Source) (session.Decision, error) {
				return st.Close(w)
			})},
		{Verb: "configure", Handle: wish(l, func(w session.ConfigureWish) (whom, error) { return whom{w.Ref, w.By, ""}, nil },
			func(st *session.State, w session.ConfigureWish, _ session.Source) (session.Decision, error) {
				return st.Configure(w)
			})},
	}
}

func need(field, id string) error {
	if _, err := events.Token(id); err != nil {
		return &events.FieldError{Field: field, Err: err}
	}
	return nil
}

// wish returns the handler of one kind of request: decode it, decide it on the present session, append the result, and
// decide again if another writer was first.
func wish[W any](l *Ledger, about func(W) (whom, error), decide func(*session.State, W, session.Source) (session.Decision, error)) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		var w W
		if err := events.ReadRequest(body, &w); err != nil {
			return nil, err
		}
		who, err := about(w)
		if err == nil {
			err = need("by", who.by)
		}
		if err := errors.Join(who.ref.Validate(), err); err != nil {
			return nil, events.BadRequest(err)
		}
		seq, err := l.carryOut(ctx, who, func(st *session.State, src session.Source) (session.Decision, error) { return decide(st, w, src) })
		if err != nil {
			return nil, err
		}
		return json.Marshal(changedReply{seq})
	}
}

// whom is the session and the asker of a request.
type whom struct {
	ref    events.Ref
	by     string
	prompt string // "" where it is about none
}

// decision decides a request on a session.
type decision func(*session.State, session.Source) (session.Decision, error)

// carryOut decides and appends until no other writer was first. It decides on cached data, because a successful append
// proves that nothing was missing; but it replies that there is nothing to append only after the log's leader has
// confirmed the data.
func (l *Ledger) carryOut(ctx context.Context, who whom, decide decision) (uint64, error) {
	r, sure := who.ref, false
	for races := 0; races < control.RequestRacesMax; {
		st, tail, err := l.current(ctx, r, sure)
		if err != nil {
			return 0, err
		}
		d, err := decide(st, l.fold.commitSource(ctx, tail))
		if err != nil || len(d.Facts) == 0 {
			switch {
			case sure && who.prompt != "" && st.Opened() && notFound(err):
				return l.longAgo(ctx, who, err, decide)
			case sure:
				return d.Seq, err
			}
			sure = true
			continue
		}
		evs := make([]events.Event, len(d.Facts))
		now := time.Now() // when it is said; nothing is decided by it
		for i, f := range d.Facts {
			evs[i] = events.New(l.bus.NewID(), source(who.by), r, st.Epoch, now, f)
		}
		seq, err := l.bus.Append(ctx, r, events.WriterLedger, st.Seq, evs)
		switch {
		case err == nil:
			l.bus.Nudge(r, seq)
			l.log.Info().Str("session", r.String()).Str("entity", string(d.Facts[0].Kind())).Str("id", d.Facts[0].Subject()).Uint64("seq", seq).Msg("request")
			return seq, nil
		case errors.Is(err, bus.ErrLostRace):
			sure, races = true, races+1
			continue
		case events.IsMalformed(err):
			return 0, events.BadRequest(err)
		}
		return 0, err
	}
	return 0, events.Unavailable(fmt.Sprintf("%s: another writer was first %d times in a row: try again", r, control.RequestRacesMax))
}

func notFound(err error) bool {
	r, ok := errors.AsType[*events.Refusal](err)
	return ok && r.Code == http.StatusNotFound
}

// longAgo decides on the session as it was when it still listed a prompt that has since been displaced by later
// endings: so a late asker gets the prompt's state, too (P11). Nothing is appended: an ended prompt stays ended. For a
// prompt that never existed it returns the same refusal.
func (l *Ledger) longAgo(ctx context.Context, who whom, unknown error, decide decision) (uint64, error) {
	select {
	case l.longAgos <- struct{}{}:
		defer func() { <-l.longAgos }()
	case <-ctx.Done():
		return 0, events.Unavailable("others ask about prompts of long ago: ask again")
	}
	st, known := session.New(who.ref), false
	var then *session.State // just after its end
	err := l.bus.Each(ctx, who.ref, 0, func(c events.Commit) error {
		st.Fold(&c)
		_, ended := st.Ended(session.EntityPrompt, who.prompt)
		if ended && !known {
			then = st.Clone()
		}
		known = ended
		return nil
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("ledger: read %s: %w", who.ref, err)
	case then == nil:
		return 0, unknown
	}
	d, err := decide(then, l.fold.commitSource(ctx, nil))
	return d.Seq, err
}

// current returns the present session: its last folded state, from the cache or the document, and the later commits of
// the log. sure: from the log's leader, with all acknowledged commits; otherwise as far as they have arrived here.
func (l *Ledger) current(ctx context.Context, r events.Ref, sure bool) (*session.State, []events.Commit, error) {
	st := l.fold.cache.copy(r)
	if st == nil {
		var err error
		if st, _, err = loadDoc(ctx, l.bus, r); errors.Is(err, session.ErrNewerLayout) {
			return nil, nil, events.Unavailable(err.Error() + ": upgrade this service")
		} else if err != nil {
			return nil, nil, err
		}
		if st.Outdated() { // a decision on it may lack what the log has
			if _, err := l.mend(ctx, r); err != nil {
				return nil, nil, err
			}
			if st, _, err = loadDoc(ctx, l.bus, r); err != nil {
				return nil, nil, err
			}
		}
	}
	tail, gap := l.fold.tail.after(r, st.Seq)
	if gap {
		tail = nil
	}
	for i := range tail {
		st.Fold(&tail[i])
	}
	if !sure && !gap {
		return st, tail, nil
	}
	err := l.bus.Each(ctx, r, st.Seq+1, func(c events.Commit) error {
		if len(tail) >= currentReadMax {
			return events.Unavailable(fmt.Sprintf("%s: its document is more than %d commits behind its log: ask again", r, currentReadMax))
		}
		tail = append(tail, c)
		st.Fold(&c)
		return nil
	})
	if _, refused := errors.AsType[*events.Refusal](err); refused {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ledger: read %s: %w", r, err)
	}
	return st, tail, nil
}

// get answers with the session's document, folded up to now.
func (l *Ledger) get(ctx context.Context, body []byte) ([]byte, error) {
	var r events.Ref
	if err := events.ReadRequest(body, &r); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, events.BadRequest(err)
	}
	st, _, err := l.current(ctx, r, true)
	if err != nil {
		return nil, err
	}
	if st.Seq == 0 {
		return nil, events.NotFound("session", r.String())
	}
	doc, err := st.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Document json.RawMessage `json:"document"`
	}{doc})
}

// Limits of a page of documents.
const (
	listDefault    = 100
	listMax        = 1000
	listBytesMax   = 768 << 10 // a reply must fit into one message
	listSlackTimes = 4         // how many pages are kept while searching
)

type listRequest struct {
	Harness string        `json:"harness"`
	Phase   session.Phase `json:"phase"`
	Root    string        `json:"root"`
	Waiting bool          `json:"waiting"`
	After   string        `json:"after"`
	Limit   int           `json:"limit"`
}

type listReply struct {
	Documents []json.RawMessage `json:"documents"`
	Next      string            `json:"next,omitempty"`
}

func (q *listRequest) validate() error {
	switch {
	case q.Harness != "" && need("harness", q.Harness) != nil:
		return need("harness", q.Harness)
	case q.Phase != "" && !slices.Contains(session.Phases(), q.Phase):
		return &events.FieldError{Field: "phase", Err: fmt.Errorf("%w: %q: want one of %v", events.ErrMalformed, q.Phase, session.Phases())}
	case q.Limit < 0:
		return &events.FieldError{Field: "limit", Err: fmt.Errorf("%w: %d: want 1 or more; a page holds at most %d", events.ErrMalformed, q.Limit, listMax)}
	}
	return nil
}

// wants reports whether a document belongs to the list. Only the queried fields are decoded.
func (q *listRequest) wants(doc []byte) bool {
	if q.Phase == "" && q.Root == "" && !q.Waiting {
		return true
	}
	var d struct {
		Phase   session.Phase              `json:"phase"`
		Root    string                     `json:"root"`
		Prompts map[string]*session.Prompt `json:"prompts"`
	}
	if json.Unmarshal(doc, &d) != nil {
		return false
	}
	st := session.State{Prompts: d.Prompts}
	return (q.Phase == "" || d.Phase == q.Phase) && (q.Root == "" || d.Root == q.Root) && (!q.Waiting || len(st.PendingPrompts()) > 0)
}

// list answers with a page of documents in the order of their keys, as they are stored.
func (l *Ledger) list(ctx context.Context, body []byte) ([]byte, error) {
	var q listRequest
	if err := events.ReadRequest(body, &q); err != nil {
		return nil, err
	}
	if err := q.validate(); err != nil {
		return nil, events.BadRequest(err)
	}
	if q.Limit == 0 {
		q.Limit = listDefault
	}
	q.Limit = min(q.Limit, listMax)
	var page []bus.Entry
	cut := func(n int) {
		slices.SortFunc(page, func(a, b bus.Entry) int { return strings.Compare(a.Key, b.Key) })
		page = page[:min(n, len(page))]
	}
	err := l.bus.List(ctx, bus.State, events.SessionKeys(q.Harness), func(e bus.Entry) error {
		if e.Key > q.After && q.wants(e.Value) {
			page = append(page, e)
		}
		if len(page) > listSlackTimes*(q.Limit+1) {
			cut(q.Limit + 1)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ledger: list: %w", err)
	}
	cut(q.Limit + 1)
	return json.Marshal(pageOf(page, q.Limit))
}

// pageOf cuts a page at its limit, or where a reply would no longer fit into one message.
func pageOf(found []bus.Entry, limit int) listReply {
	reply := listReply{Documents: []json.RawMessage{}}
	size := 0
	for i, e := range found {
		size += len(e.Value)
		if i == limit || i > 0 && size > listBytesMax {
			reply.Next = found[i-1].Key
			break
		}
		reply.Documents = append(reply.Documents, e.Value)
	}
	return reply
}
