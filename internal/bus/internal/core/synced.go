package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// GroupPrefix begins the name of a broker that acknowledges a write before it is synced. A client learns it with the
// connection itself, so it cannot take the acknowledgement of such a broker for another.
const GroupPrefix = "holdfast-group-"

// SyncSubject is where the process of such a broker answers a [SyncRequest]. It is of the broker, not of one cell.
const SyncSubject = "holdfast.sync"

// syncAgainMS is how long an answer about a sync may take until the question is asked again.
const syncAgainMS = 2_000

// grouping is an embedded server that syncs in groups.
type grouping interface {
	SyncsInGroups() bool
	Synced(ctx context.Context, stream string, seq uint64) (mark uint64, err error)
}

// SyncRequest asks for a sync of a stream up to a sequence.
type SyncRequest struct {
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
}

// SyncReply says how far the stream is synced: at least up to the sequence, if it was stored.
type SyncReply struct {
	Seq   uint64 `json:"seq"`
	Error string `json:"error,omitempty"` // the disk has refused a sync
}

// Uptime is the time from one start of a connection to its loss. All messages of one life come from one broker.
type Uptime struct {
	restored uint64 // how often the connection had been restored
	known    bool   // it was connected, so it is known how the broker syncs
	groups   bool   // the broker syncs in groups
}

// eachSynced reports whether the broker acknowledges nothing that is not synced as far as it promises.
func (l Uptime) eachSynced() bool { return l.known && !l.groups }

// Syncs waits until what a broker that syncs in groups has acknowledged is synced.
type Syncs struct {
	conn *Conn
	last atomic.Pointer[Uptime] // the last known one

	mu      sync.Mutex
	streams map[string]*streamSync
}

// Uptime returns the connection's present life. How a broker syncs does not change within it, so it is looked up once.
func (s *Syncs) Uptime() Uptime {
	nc := s.conn.NC
	for {
		restored := s.conn.Reconnects()
		if l := s.last.Load(); l != nil && l.restored == restored {
			return *l
		}
		// the library shows no name while it is not connected, and a broker need not have one
		before, name := nc.Status(), nc.ConnectedServerName()
		if nc.Status() != before || s.conn.Reconnects() != restored {
			continue
		}
		l := Uptime{restored: restored, known: before == nats.CONNECTED}
		l.groups = l.known && strings.HasPrefix(name, GroupPrefix)
		if l.known {
			s.last.Store(&l)
		}
		return l
	}
}

// InGroups reports whether the present broker syncs in groups.
func (s *Syncs) InGroups() bool { return s.Uptime().groups }

// Await waits until a stream is synced up to a sequence that the broker has named in a life of the connection, or
// later. A broker that does not sync in groups has synced what it shows, so there it does not wait. [ErrUnreachable] if
// the connection was lost meanwhile: a mark is about the life of one broker, and after a cut of the power the next one
// may have another message there.
func (s *Syncs) Await(ctx context.Context, since Uptime, stream string, seq uint64) error {
	now := s.Uptime()
	if !since.known && now.restored <= since.restored+1 {
		// nothing was sent or received before
		since = now
	}
	switch {
	case seq == 0, since.eachSynced() && (now.restored == since.restored || now.eachSynced()):
		return nil
	case now != since || !since.groups:
		return errCutOff(stream, seq)
	}
	for pace := NewBackoff(); ; {
		mark, err := s.ask(ctx, since, stream, seq)
		if err == nil && s.conn.Reconnects() != since.restored {
			err = errCutOff(stream, seq)
		}
		if err != nil || mark >= seq {
			return err
		}
		if !Pause(ctx, pace.NextBackOff()) {
			return s.conn.Late("sync of "+stream, ctx.Err())
		}
	}
}

func errCutOff(stream string, seq uint64) error {
	return fmt.Errorf("%w: %s %d: the connection was lost before the sync", ErrUnreachable, stream, seq)
}

func (s *Syncs) ask(ctx context.Context, since Uptime, stream string, seq uint64) (uint64, error) {
	if g, ok := s.conn.Config.Server.(grouping); ok && g.SyncsInGroups() {
		mark, err := g.Synced(ctx, stream, seq)
		if err != nil {
			return 0, unreachable("sync of "+stream, err)
		}
		return mark, nil
	}
	return s.await(ctx, since, stream, seq)
}

// streamSync are the questions about one stream.
type streamSync struct {
	restored uint64 // of the connection that the mark is about
	mark     uint64
	want     uint64        // highest sequence that is waited for
	asking   bool          // a goroutine asks
	changed  chan struct{} // closed when mark or failed has changed
	failed   error         // of the last question
}

// await returns a mark that includes seq, or the mark of one answer.
func (s *Syncs) await(ctx context.Context, since Uptime, stream string, seq uint64) (uint64, error) {
	s.mu.Lock()
	if s.streams == nil {
		s.streams = map[string]*streamSync{}
	}
	q := s.streams[stream]
	if q == nil || q.restored != since.restored {
		q = &streamSync{restored: since.restored, changed: make(chan struct{})}
		s.streams[stream] = q
	}
	for {
		if q.mark >= seq {
			s.mu.Unlock()
			return q.mark, nil
		}
		if q.want = max(q.want, seq); !q.asking {
			q.asking = true
			go s.askOn(q, stream)
		}
		changed := q.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, s.conn.Late("sync of "+stream, ctx.Err())
		}
		s.mu.Lock()
		if q.failed != nil {
			err := q.failed
			s.mu.Unlock()
			return 0, err
		}
	}
}

// askOn asks until everything that is waited for is synced, or a question fails.
func (s *Syncs) askOn(q *streamSync, stream string) {
	for pace := NewBackoff(); ; {
		s.mu.Lock()
		want := q.want
		s.mu.Unlock()
		mark, err := s.request(stream, want)
		if errors.Is(err, context.DeadlineExceeded) && s.conn.Reconnects() == q.restored {
			continue
		}
		if err == nil && s.conn.Reconnects() != q.restored {
			err = fmt.Errorf("%w: sync of %s: the connection was restored", ErrUnreachable, stream)
		}
		s.mu.Lock()
		if err == nil {
			q.mark = max(q.mark, mark)
		} else {
			q.failed = err
		}
		close(q.changed)
		q.changed = make(chan struct{})
		done := err != nil || q.mark >= q.want
		if done {
			q.asking, q.want = false, q.mark
		}
		if err != nil && s.streams[stream] == q {
			delete(s.streams, stream)
		}
		s.mu.Unlock()
		if done {
			return
		}
		// it is not stored yet
		if mark < want {
			Pause(context.Background(), pace.NextBackOff())
		}
	}
}

// request asks the broker's process once.
func (s *Syncs) request(stream string, seq uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), syncAgainMS*time.Millisecond)
	defer cancel()
	body, err := json.Marshal(SyncRequest{Stream: stream, Seq: seq})
	if err != nil {
		return 0, err
	}
	m, err := s.conn.NC.RequestWithContext(ctx, SyncSubject, body)
	if err != nil {
		return 0, Translate("sync of "+stream, err)
	}
	var r SyncReply
	if err := json.Unmarshal(m.Data, &r); err != nil {
		return 0, fmt.Errorf("%w: sync of %s: reply: %w", ErrUnreachable, stream, err)
	}
	if r.Error != "" {
		return 0, fmt.Errorf("%w: sync of %s: %s", ErrUnreachable, stream, r.Error)
	}
	return r.Seq, nil
}

// Serve answers questions about syncs for the server in this process, until ctx ends.
func (s *Syncs) Serve(ctx context.Context) error {
	c := s.conn
	server, ok := c.Config.Server.(grouping)
	if !ok || !server.SyncsInGroups() {
		return nil
	}
	sub, err := c.NC.Subscribe(SyncSubject, func(m *nats.Msg) {
		var q SyncRequest
		if json.Unmarshal(m.Data, &q) != nil || m.Reply == "" {
			// no client of ours; it gets no answer
			return
		}
		go func() {
			var r SyncReply
			var err error
			if r.Seq, err = server.Synced(ctx, q.Stream, q.Seq); err != nil {
				r = SyncReply{Error: err.Error()}
			}
			body, err := json.Marshal(r)
			if err == nil {
				err = m.Respond(body)
			}
			if err != nil {
				c.Log.Info().AnErr("err", err).Str("entity", q.Stream).Msg("a question about a sync was not answered")
			}
		}()
	})
	if err != nil {
		return Translate("serve syncs", err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return Translate("serve syncs", err)
	}
	// the library sends the subscription, also after a reconnection; until then questions are asked again
	<-ctx.Done()
	return IgnoreClosed(sub.Unsubscribe())
}
