package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a page of documents.
const (
	listDefault  = 100
	listBytesMax = 768 << 10 // a reply must fit into one message
	listsMax     = 2         // lists at the same time: each has some 80 MB under way from the broker
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

// list answers with a page of documents in the order of their keys, as they are stored.
func (l *Ledger) list(ctx context.Context, q request.List) (request.Documents, error) {
	if q.Phase != "" && !slices.Contains(session.Phases(), session.Phase(q.Phase)) {
		return request.Documents{}, events.BadRequest(&events.FieldError{Field: "phase",
			Err: fmt.Errorf("%w: %q: want one of %v", events.ErrMalformed, q.Phase, session.Phases())})
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
	err = l.bus.KV.List(ctx, kv.State, events.SessionKeys(q.Harness), func(e kv.Entry) error {
		if e.Key > q.After && wants(&q, e.Value) {
			p.add(e)
		}
		return nil
	})
	if err != nil {
		return request.Documents{}, fmt.Errorf("list: %w", err)
	}
	return p.reply(), nil
}

// page keeps the documents with the smallest keys, as many as a reply has room for, while documents are added in any
// order.
type page struct {
	limit int
	found []*kv.Entry // in the order of their keys
	bytes int         // of the documents in found
	next  string      // the smallest key that did not fit; empty: all did
}

// add adds a document, or a newer revision of one.
func (p *page) add(e kv.Entry) {
	if p.next != "" && e.Key >= p.next {
		return
	}
	at, known := slices.BinarySearchFunc(p.found, e.Key, func(x *kv.Entry, key string) int {
		return strings.Compare(x.Key, key)
	})
	if known {
		p.bytes -= len(p.found[at].Value)
		p.found[at] = &e
	} else {
		p.found = slices.Insert(p.found, at, &e)
	}
	p.bytes += len(e.Value)
	for last := len(p.found) - 1; last >= p.limit || last > 0 && p.bytes > listBytesMax; last-- {
		p.next, p.bytes = p.found[last].Key, p.bytes-len(p.found[last].Value)
		p.found[last] = nil
		p.found = p.found[:last]
	}
}

// reply returns the page. If there are more documents, it names the last key.
func (p *page) reply() request.Documents {
	reply := request.Documents{Documents: []json.RawMessage{}}
	for _, e := range p.found {
		reply.Documents = append(reply.Documents, e.Value)
	}
	if p.next != "" {
		reply.Next = p.found[len(p.found)-1].Key
	}
	return reply
}
