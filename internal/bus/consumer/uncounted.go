package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of the search for consumers that the broker counts for no limit.
const (
	answersAtOnce = 64 // answers of brokers
	answersMax    = 20 * time.Second
	endAtOnceMax  = 16    // requests to the broker
	noResponders  = "503" // status of a request that nothing answers

	// UncountedIdleMax is how long a consumer that [Consumers.EndUncounted] has changed stays without a subscription.
	UncountedIdleMax = 10 * time.Second
)

// Imported is the subject in the accounts of those who may ask to which the questions about the cell's account are
// imported. It has a wildcard: an import without one makes a push consumer active.
func Imported(c events.Cell) string { return c.Prefix() + ".broker.account.*" }

// Subject is where the brokers answer with the streams of the cell's account, and their consumers.
func Subject(c events.Cell) string { return c.Prefix() + ".broker.account.JSZ" }

// Uncounted is a consumer that nats-server counts for no limit: its request called it direct or sourcing, as the broker
// calls the consumers of its own mirrors and sources. Nothing in Holdfast makes one. A direct one is in no list, and no
// request deletes it in a cluster.
type Uncounted struct {
	Stream, Name string
	Sourcing     bool          // not direct: it is in the broker's lists, and can be deleted
	To           string        // the subject that it delivers to
	Active       bool          // a subscription has exactly this subject
	Idle         time.Duration // how long it stays without one

	filter string
	config map[string]json.RawMessage // of a direct one that can be ended; nil beyond what one search keeps
}

// Uncounted returns such consumers of the cell's streams, at most 100,000 of them. leaders: of the direct ones only
// those at the leaders of the streams, which can be ended. The answers arrive on a connection of their own: a broker
// closes one that has more than `max_pending` waiting, 64 MiB, and users decide how long the answers are.
//
// Errors: [core.ErrUnreachable], with what was found, if a node has not answered, or its answer was that long;
// [core.ErrNotFound] where nothing answers, in a cell without users; [core.ErrForbidden] if this user may not ask, as
// with permissions of an earlier version.
func (cs *Consumers) Uncounted(ctx context.Context, leaders bool) ([]Uncounted, error) {
	missing, err := cs.nodes(ctx)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, answersMax)
	defer cancel()
	own, err := core.Open(asking, cs.conn.Config)
	if err != nil {
		return nil, err
	}
	defer own.NC.Close()
	q := question{Conn: own, leaders: leaders, missing: missing, seen: map[string]bool{}, room: configBytesMax,
		lost: own.NC.StatusChanged(nats.RECONNECTING, nats.CLOSED), answers: make(chan *nats.Msg, answersAtOnce)}
	if err := q.ask(); err != nil {
		return nil, err
	}
	err = q.collect(asking)
	if err != nil && ctx.Err() != nil {
		err = cs.conn.Late("ask for consumers", ctx.Err())
	}
	return q.found, err
}

// question is a question to the brokers about the consumers of the cell's account.
type question struct {
	*core.Conn
	leaders bool
	began   time.Time
	missing map[string]bool // nodes that have not answered
	answers chan *nats.Msg
	lost    chan nats.Status

	found []Uncounted
	seen  map[string]bool // sourcing ones: each replica has them
	room  int             // for bytes of configurations
}

// ask sends the question. Brokers compress the answers: a consumer takes 1 KB of one, and much of it is the same.
func (q *question) ask() error {
	body, err := json.Marshal(map[string]bool{"streams": true, "consumer": true, "direct_consumer": true,
		"config": true}) // a sourcing one with one replica may be at any node
	if err != nil {
		return fmt.Errorf("consumers that no limit counts: %w", err)
	}
	q.began = time.Now()
	inbox := q.NC.NewInbox()
	if _, err := q.NC.ChanSubscribe(inbox+".*", q.answers); err != nil {
		return core.Translate("subscribe to "+inbox, err)
	}
	m := &nats.Msg{Subject: Subject(q.Cell), Reply: inbox + ".1", Data: body,
		Header: nats.Header{acceptEncoding: []string{encodingGzip}}}
	return core.Translate("ask for consumers", q.NC.PublishMsg(m))
}

// collect reads the answers of all nodes.
func (q *question) collect(ctx context.Context) error {
	for {
		select {
		case m := <-q.answers:
			if len(m.Data) == 0 && m.Header.Get(pull.HeaderStatus) == noResponders {
				return fmt.Errorf("%w: no broker answers on %s", core.ErrNotFound, Subject(q.Cell))
			}
			node, err := q.read(m)
			if err != nil {
				return err
			}
			if delete(q.missing, node); len(q.missing) == 0 {
				return nil
			}
		case <-q.lost:
			return fmt.Errorf("%w: the connection ended before the answer of %s: it may be longer than a broker keeps "+
				"for one connection (`max_pending`)", core.ErrUnreachable, q.absent())
		case <-ctx.Done():
			if err := q.Denied.Since(Subject(q.Cell), q.began); err != nil {
				return err
			}
			return fmt.Errorf("%w: no answer from %s", core.ErrUnreachable, q.absent())
		}
	}
}

// absent names the nodes that have not answered.
func (q *question) absent() string {
	if len(q.missing) == 0 {
		return "the broker"
	}
	return strings.Join(slices.Sorted(maps.Keys(q.missing)), ", ")
}

// nodes returns the names of the nodes that hold the cell's streams; none outside a cluster.
func (cs *Consumers) nodes(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for _, s := range streams(cs.conn.Cell) {
		info, err := cs.conn.StreamInfo(ctx, s)
		switch {
		case errors.Is(err, core.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case info.Cluster == nil:
			continue
		}
		all[info.Cluster.Leader] = true
		for _, r := range info.Cluster.Replicas {
			all[r.Name] = true
		}
	}
	delete(all, "")
	return all, nil
}

// streams returns all streams of the cell.
func streams(c events.Cell) []string {
	return []string{c.LogStream(), core.KVStream(c.StateBucket()), core.KVStream(c.LeaseBucket()), c.TimerStream(),
		c.FeedStream(), c.ParkedStream(), "OBJ_" + c.ObjectBucket()}
}

// EndUncounted deletes such consumers that are sourcing. It makes the broker end the direct ones as soon as they are
// 10 s without a subscription: no request deletes one in a cluster. It returns how many it ended or changed; direct
// ones with a shorter time are left, and those for whose configuration the search had no room are left to the next one.
func (cs *Consumers) EndUncounted(ctx context.Context, all []Uncounted) (int, error) {
	var changes errgroup.Group
	changes.SetLimit(endAtOnceMax)
	n := 0
	for _, u := range all {
		if u.Sourcing {
			n++
			changes.Go(func() error { return cs.remove(ctx, u) })
		} else if u.config != nil {
			n++
			changes.Go(func() error { return cs.shorten(ctx, u) })
		}
	}
	return n, changes.Wait()
}

// remove deletes a consumer that is in the broker's lists. One that has ended meanwhile is no error.
func (cs *Consumers) remove(ctx context.Context, u Uncounted) error {
	err := cs.conn.CallOnce(ctx, "delete consumer "+u.Name+" of "+u.Stream,
		core.APIPrefix+"CONSUMER.DELETE."+u.Stream+"."+u.Name, nil, new(core.Nothing))
	if errors.Is(err, core.ErrNotFound) {
		return nil
	}
	return err
}

// shorten sets how long a consumer stays without a subscription. It makes none that has ended meanwhile.
func (cs *Consumers) shorten(ctx context.Context, u Uncounted) error {
	idle, err := json.Marshal(UncountedIdleMax)
	if err != nil {
		return fmt.Errorf("consumer %s of %s: %w", u.Name, u.Stream, err)
	}
	u.config["inactive_threshold"] = idle
	subject := core.APIPrefix + "CONSUMER.CREATE." + u.Stream + "." + u.Name
	if u.filter != "" {
		subject += "." + u.filter
	}
	body, err := json.Marshal(map[string]any{"stream_name": u.Stream, "action": "update", "config": u.config})
	if err != nil {
		return fmt.Errorf("consumer %s of %s: %w", u.Name, u.Stream, err)
	}
	return cs.conn.CallOnce(ctx, "end consumer "+u.Name+" of "+u.Stream, subject, body, new(core.Nothing))
}
