package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

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
	currentReadMax    = 10_000   // commits beyond the document; a document that is further behind is being updated
	currentBytesMax   = 32 << 20 // of their data
	currentKeptMax    = 1 << 20  // of the newest of them, which are kept until the request ends
	wholeReadsMax     = 2        // requests that read a whole session, at the same time
	wholeReadsWaitMax = 16       // requests that wait for that, each in one of the places of all requests
)

func (l *Ledger) endpoints() []rpc.Endpoint {
	return []rpc.Endpoint{
		control.Endpoint(request.LedgerGet, l.get),
		control.Endpoint(request.LedgerList, l.list),
		control.Endpoint(request.LedgerRebuild, l.rebuild),
		control.Endpoint(request.LedgerAnswer, func(ctx context.Context, q request.Answer) (request.Changed, error) {
			return l.execute(ctx, whom{ref: q.Ref, by: q.By, prompt: q.Prompt},
				func(s *session.State, src session.Source, _ time.Time) (session.Decision, error) {
					return s.Answer(q, src)
				})
		}),
		control.Endpoint(request.LedgerReject, func(ctx context.Context, q request.Reject) (request.Changed, error) {
			return l.execute(ctx, whom{ref: q.Ref, by: q.By, prompt: q.Prompt},
				func(s *session.State, src session.Source, _ time.Time) (session.Decision, error) {
					return s.Reject(q, src)
				})
		}),
		control.Endpoint(request.LedgerDismiss, func(ctx context.Context, q request.Dismiss) (request.Changed, error) {
			return l.execute(ctx, whom{ref: q.Ref, by: q.By, prompt: q.Prompt},
				func(s *session.State, src session.Source, _ time.Time) (session.Decision, error) {
					return s.Dismiss(q, src)
				})
		}),
		control.Endpoint(request.LedgerStop, func(ctx context.Context, q request.Stop) (request.Changed, error) {
			return l.execute(ctx, whom{ref: q.Ref, by: q.By, author: l.stopAuthor(q.By)},
				func(s *session.State, _ session.Source, _ time.Time) (session.Decision, error) { return s.Stop(q) })
		}),
		control.Endpoint(request.LedgerClose, func(ctx context.Context, q request.Close) (request.Changed, error) {
			return l.execute(ctx, whom{ref: q.Ref, by: q.By},
				func(s *session.State, _ session.Source, _ time.Time) (session.Decision, error) { return s.Close(q) })
		}),
		control.Endpoint(request.LedgerConfigure,
			func(ctx context.Context, q request.Configure) (request.Changed, error) {
				return l.execute(ctx, whom{ref: q.Ref, by: q.By},
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
	// author returns the source attribute of a fact. Nil: the person.
	author func(events.Fact) string
}

// stopAuthor returns the authors of a stop. The person asks for the stop. The turn that would have begun is what this
// service requests, for the stop to name it.
func (l *Ledger) stopAuthor(by string) func(events.Fact) string {
	return func(f events.Fact) string {
		if _, requests := f.(events.TurnRequested); requests {
			return events.ServiceSource(Name, l.bus.Instance())
		}
		return events.PersonSource(by)
	}
}

type decide = func(*session.State, session.Source, time.Time) (session.Decision, error)

// execute carries out a request. A refusal of a prompt that the session no longer knows is looked up in its whole log.
func (l *Ledger) execute(ctx context.Context, who whom, decide decide) (request.Changed, error) {
	opened := false
	d, err := control.Execute(ctx, l.bus, control.Execution{
		Ref: who.ref, By: who.by, Author: who.author, Writer: events.WriterLedger, Cached: true, Log: l.log,
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
		d, err = l.decideForgotten(ctx, who, err, decide)
	}
	return request.Changed{Seq: d.Seq}, err
}

func notFound(err error) bool {
	r, ok := errors.AsType[*events.Refusal](err)
	return ok && r.Code == http.StatusNotFound
}

// current returns the present session: its last folded state, from the cache or the document, and the later commits of
// the log. sure: from the log's leader, with all acknowledged commits; otherwise as far as they have arrived here.
func (l *Ledger) current(ctx context.Context, r events.Ref, sure bool) (*session.State, []events.Commit, error) {
	st := l.fold.cache.copy(r)
	if st == nil {
		var err error
		if st, _, err = loadDoc(ctx, l.bus.KV, r); errors.Is(err, session.ErrNewerLayout) {
			return nil, nil, events.Unavailable(err.Error() + ": upgrade this service")
		} else if err != nil {
			return nil, nil, err
		}
		// a decision on it may lack what the log has
		if st.Outdated() {
			if _, err := l.mend(ctx, r); err != nil {
				return nil, nil, err
			}
			if st, _, err = loadDoc(ctx, l.bus.KV, r); err != nil {
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
	read := newest{commits: tail}
	err := l.bus.Log.Each(ctx, r, st.Seq+1, func(c events.Commit) error {
		if read.n >= currentReadMax || read.all+sizeOf(&c) > currentBytesMax {
			return events.Unavailable(fmt.Sprintf("%s: its document is more than %d commits, or %d bytes, behind its "+
				"log: ask again", r, currentReadMax, currentBytesMax))
		}
		read.add(c)
		st.Fold(&c)
		return nil
	})
	if _, refused := errors.AsType[*events.Refusal](err); refused {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", r, err)
	}
	return st, read.commits, nil
}

// newest keeps the newest of the commits that a request reads; an earlier one is read again if it is needed.
type newest struct {
	commits []events.Commit
	n       int // read
	all     int // bytes read
	kept    int // bytes of the commits that were read and are kept
	first   int // the oldest one of them in commits
}

func (x *newest) add(c events.Commit) {
	if x.n == 0 {
		x.first = len(x.commits)
	}
	x.commits, x.n = append(x.commits, c), x.n+1
	x.all, x.kept = x.all+sizeOf(&c), x.kept+sizeOf(&c)
	for x.kept > currentKeptMax && x.first < len(x.commits)-1 {
		x.kept -= sizeOf(&x.commits[x.first])
		x.commits = slices.Delete(x.commits, x.first, x.first+1)
	}
}

// eventBytes is about what an event takes beside its data.
const eventBytes = 512

// sizeOf returns about how many bytes a commit takes.
func sizeOf(c *events.Commit) int {
	n := eventBytes
	for i := range c.Events {
		n += len(c.Events[i].Data) + eventBytes
	}
	return n
}

// get answers with the session's document, folded up to now or up to a place of the log.
func (l *Ledger) get(ctx context.Context, q request.Get) (request.Document, error) {
	if q.At > 0 {
		return l.at(ctx, q)
	}
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
