package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a page of documents.
const (
	listDefault  = 100
	listBytesMax = 768 << 10 // a reply must fit into one message
	listReadMax  = 64 << 20  // documents that one request reads; a page may then be short, or empty
	listsMax     = 2         // lists at the same time: each has up to 16 MB under way from the broker
	listWaitMax  = 32        // lists that wait for that
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

// list answers with a page of documents as they are stored, in the order in which they changed. A page begins behind
// the revision of the last document that the page before has read, so it reads only what it returns, and what the
// query leaves out. A document that changes after it was returned is returned again by a later page; none is left out.
func (l *Ledger) list(ctx context.Context, q request.List) (request.Documents, error) {
	if q.Phase != "" && !slices.Contains(session.Phases(), session.Phase(q.Phase)) {
		return request.Documents{}, events.BadRequest(&events.FieldError{Field: "phase",
			Err: fmt.Errorf("%w: %q: want one of %v", events.ErrMalformed, q.Phase, session.Phases())})
	}
	after, err := parseNext(q.After)
	if err != nil {
		return request.Documents{}, err
	}
	if q.Limit == 0 {
		q.Limit = listDefault
	}
	leave, err := l.lists.enter(ctx)
	if err != nil {
		return request.Documents{}, err
	}
	defer leave()
	p := page{limit: max(1, min(q.Limit, request.ListMax))}
	err = l.bus.KV.ListAfter(ctx, kv.State, events.SessionKeys(q.Harness), after, func(e kv.Entry) error {
		return p.add(e, wants(&q, e.Value))
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return request.Documents{}, fmt.Errorf("list: %w", err)
	}
	return p.reply(err != nil), nil
}

// parseNext returns the revision that is the Next of a page; 0 for the first page.
func parseNext(next string) (uint64, error) {
	if next == "" {
		return 0, nil
	}
	rev, err := strconv.ParseUint(next, 10, 64)
	if err != nil {
		return 0, events.BadRequest(&events.FieldError{Field: "after",
			Err: fmt.Errorf("%w: %q: want the next of the page before", events.ErrMalformed, next)})
	}
	return rev, nil
}

// errPageFull ends the reading of a page.
var errPageFull = errors.New("the page is full")

// page keeps the documents of a reply, while documents are added in the order of their revisions.
type page struct {
	limit int
	found []*kv.Entry // in the order of their revisions
	bytes int         // of the documents in found
	read  int         // bytes of all documents that were read
	last  uint64      // the revision of the last one
}

// add adds a document that is wanted. errPageFull: there is no room for it, or enough has been read.
func (p *page) add(e kv.Entry, wanted bool) error {
	if wanted && len(p.found) > 0 && (len(p.found) == p.limit || p.bytes+len(e.Value) > listBytesMax) ||
		p.read > 0 && p.read+len(e.Value) > listReadMax {
		return errPageFull
	}
	p.last = e.Rev
	p.read += len(e.Value)
	// it changed meanwhile
	if i := slices.IndexFunc(p.found, func(x *kv.Entry) bool { return x.Key == e.Key }); i >= 0 {
		p.bytes -= len(p.found[i].Value)
		p.found = slices.Delete(p.found, i, i+1)
	}
	if wanted {
		p.found = append(p.found, &e)
		p.bytes += len(e.Value)
	}
	return nil
}

// reply returns the page. If there are more documents, it names the last revision.
func (p *page) reply(more bool) request.Documents {
	reply := request.Documents{Documents: []json.RawMessage{}}
	for _, e := range p.found {
		reply.Documents = append(reply.Documents, e.Value)
	}
	if more {
		reply.Next = strconv.FormatUint(p.last, 10)
	}
	return reply
}
