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

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// racesMax is how often a document is made again after another process wrote first.
const racesMax = 10

// Limits of what one request may read of a log.
const (
	currentReadMax = 10_000 // commits beyond the document; a document that is further behind is being updated
	longAgoMax     = 2      // requests that read a whole session, at the same time
)

func (l *Ledger) endpoints() []rpc.Endpoint {
	return []rpc.Endpoint{
		control.Endpoint(request.LedgerGet, l.get),
		control.Endpoint(request.LedgerList, l.list),
		control.Endpoint(request.LedgerRebuild, l.rebuild),
		control.Endpoint(request.LedgerAnswer, func(ctx context.Context, q request.Answer) (request.Changed, error) {
			return l.execute(ctx, whom{q.Ref, q.By, q.Prompt},
				func(s *session.State, src session.Source, _ time.Time) (session.Decision, error) {
					return s.Answer(q, src)
				})
		}),
		control.Endpoint(request.LedgerReject, func(ctx context.Context, q request.Reject) (request.Changed, error) {
			return l.execute(ctx, whom{q.Ref, q.By, q.Prompt},
				func(s *session.State, src session.Source, _ time.Time) (session.Decision, error) {
					return s.Reject(q, src)
				})
		}),
		control.Endpoint(request.LedgerDismiss, func(ctx context.Context, q request.Dismiss) (request.Changed, error) {
			return l.execute(ctx, whom{q.Ref, q.By, q.Prompt},
				func(s *session.State, src session.Source, _ time.Time) (session.Decision, error) {
					return s.Dismiss(q, src)
				})
		}),
		control.Endpoint(request.LedgerStop, func(ctx context.Context, q request.Stop) (request.Changed, error) {
			return l.execute(ctx, whom{q.Ref, q.By, ""},
				func(s *session.State, _ session.Source, _ time.Time) (session.Decision, error) { return s.Stop(q) })
		}),
		control.Endpoint(request.LedgerClose, func(ctx context.Context, q request.Close) (request.Changed, error) {
			return l.execute(ctx, whom{q.Ref, q.By, ""},
				func(s *session.State, _ session.Source, _ time.Time) (session.Decision, error) { return s.Close(q) })
		}),
		control.Endpoint(request.LedgerConfigure,
			func(ctx context.Context, q request.Configure) (request.Changed, error) {
				return l.execute(ctx, whom{q.Ref, q.By, ""},
					func(s *session.State, _ session.Source, _ time.Time) (session.Decision, error) {
						return s.Configure(q)
					})
			}),
	}
}

// whom is the session and the asker of a request.
type whom struct {
	ref    events.Ref
	by     string
	prompt string // "" where it is about none
}

type decide = func(*session.State, session.Source, time.Time) (session.Decision, error)

// execute carries out a request. A refusal of a prompt that the session no longer knows is looked up in its whole log.
func (l *Ledger) execute(ctx context.Context, who whom, decide decide) (request.Changed, error) {
	opened := false
	d, err := control.Execute(ctx, l.bus, control.Execution{
		Ref: who.ref, By: who.by, Writer: events.WriterLedger, Cached: true, Log: l.log,
		Read: func(ctx context.Context, _ *session.State, certain bool) (*session.State, session.Source, error) {
			s, tail, err := l.current(ctx, who.ref, certain)
			if err != nil {
				return nil, nil, err
			}
			opened = s.Opened()
			return s, l.fold.commitSource(ctx, tail), nil
		},
		Decide: decide,
	})
	if who.prompt != "" && opened && notFound(err) {
		d, err = l.longAgo(ctx, who, err, decide)
	}
	return request.Changed{Seq: d.Seq}, err
}

func notFound(err error) bool {
	r, ok := errors.AsType[*events.Refusal](err)
	return ok && r.Code == http.StatusNotFound
}

// longAgo decides on the session as it was when it still listed a prompt that has since been displaced by later
// endings: so a late asker gets the prompt's state, too (P11). Nothing is appended: an ended prompt stays ended. For a
// prompt that never existed it returns the same refusal.
func (l *Ledger) longAgo(ctx context.Context, who whom, unknown error, decide decide) (session.Decision, error) {
	select {
	case l.longAgos <- struct{}{}:
		defer func() { <-l.longAgos }()
	case <-ctx.Done():
		return session.Decision{}, events.Unavailable("others ask about prompts of long ago: ask again")
	}
	st, known := session.New(who.ref), false
	var then *session.State // just after its end
	err := l.bus.Log.Each(ctx, who.ref, 0, func(c events.Commit) error {
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
		return session.Decision{}, fmt.Errorf("ledger: read %s: %w", who.ref, err)
	case then == nil:
		return session.Decision{}, unknown
	}
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return session.Decision{}, err
	}
	return decide(then, l.fold.commitSource(ctx, nil), now)
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
	err := l.bus.Log.Each(ctx, r, st.Seq+1, func(c events.Commit) error {
		if len(tail) >= currentReadMax {
			return events.Unavailable(fmt.Sprintf("%s: its document is more than %d commits behind its log: ask again",
				r, currentReadMax))
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
func (l *Ledger) get(ctx context.Context, q request.Get) (request.Document, error) {
	st, _, err := l.current(ctx, q.Ref, true)
	if err != nil {
		return request.Document{}, err
	}
	if st.Seq == 0 {
		return request.Document{}, events.NotFound("session", q.Ref.String())
	}
	doc, err := st.Encode()
	return request.Document{Document: doc}, err
}

// Limits of a page of documents.
const (
	listDefault    = 100
	listBytesMax   = 768 << 10 // a reply must fit into one message
	listSlackTimes = 4         // how many pages are kept while searching
)

// wants reports whether a document belongs to the list. Only the queried fields are decoded.
func wants(q *request.List, doc []byte) bool {
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
	return (q.Phase == "" || string(d.Phase) == q.Phase) && (q.Root == "" || d.Root == q.Root) &&
		(!q.Waiting || len(st.PendingPrompts()) > 0)
}

// list answers with a page of documents in the order of their keys, as they are stored.
func (l *Ledger) list(ctx context.Context, q request.List) (request.Documents, error) {
	if q.Phase != "" && !slices.Contains(session.Phases(), session.Phase(q.Phase)) {
		return request.Documents{}, events.BadRequest(&events.FieldError{Field: "phase",
			Err: fmt.Errorf("%w: %q: want one of %v", events.ErrMalformed, q.Phase, session.Phases())})
	}
	if q.Limit == 0 {
		q.Limit = listDefault
	}
	q.Limit = min(q.Limit, request.ListMax)
	var page []kv.Entry
	cut := func(n int) {
		slices.SortFunc(page, func(a, b kv.Entry) int { return strings.Compare(a.Key, b.Key) })
		page = page[:min(n, len(page))]
	}
	err := l.bus.KV.List(ctx, kv.State, events.SessionKeys(q.Harness), func(e kv.Entry) error {
		if e.Key > q.After && wants(&q, e.Value) {
			page = append(page, e)
		}
		if len(page) > listSlackTimes*(q.Limit+1) {
			cut(q.Limit + 1)
		}
		return nil
	})
	if err != nil {
		return request.Documents{}, fmt.Errorf("ledger: list: %w", err)
	}
	cut(q.Limit + 1)
	return pageOf(page, q.Limit), nil
}

// pageOf cuts a page at its limit, or where a reply would no longer fit into one message.
func pageOf(found []kv.Entry, limit int) request.Documents {
	reply := request.Documents{Documents: []json.RawMessage{}}
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
