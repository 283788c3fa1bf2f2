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
	answersMax    = 10 * time.Second
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
	config map[string]json.RawMessage
}

// Uncounted returns such consumers of the cell's streams. leaders: of the direct ones only those at the leaders of the
// streams, which can be ended. Errors: [core.ErrUnreachable], with what was found, if a node has not answered;
// [core.ErrNotFound] where nothing answers, in a cell without users; [core.ErrForbidden] if this user may not ask, as
// with permissions of an earlier version.
func (cs *Consumers) Uncounted(ctx context.Context, leaders bool) ([]Uncounted, error) {
	body, err := json.Marshal(map[string]bool{"streams": true, "consumer": true, "direct_consumer": true,
		"config": true}) // a sourcing one with one replica may be at any node
	if err != nil {
		return nil, fmt.Errorf("consumers that no limit counts: %w", err)
	}
	missing, err := cs.nodes(ctx)
	if err != nil {
		return nil, err
	}
	began, subject := time.Now(), Subject(cs.conn.Cell)
	inbox, answers := cs.conn.NC.NewInbox(), make(chan *nats.Msg, answersAtOnce)
	sub, err := cs.conn.NC.ChanSubscribe(inbox+".*", answers)
	if err != nil {
		return nil, core.Translate("subscribe to "+inbox, err)
	}
	defer func() {
		if err := core.IgnoreClosed(sub.Unsubscribe()); err != nil {
			cs.conn.Log.Debug().Str("entity", inbox).AnErr("err", err).Msg("not unsubscribed")
		}
	}()
	if err := cs.conn.NC.PublishRequest(subject, inbox+".1", body); err != nil {
		return nil, core.Translate("ask for consumers", err)
	}
	var found []Uncounted
	wait := time.NewTimer(answersMax)
	defer wait.Stop()
	for seen := map[string]bool{}; ; {
		select {
		case m := <-answers:
			if len(m.Data) == 0 && m.Header.Get(pull.HeaderStatus) == noResponders {
				return nil, fmt.Errorf("%w: no broker answers on %s", core.ErrNotFound, subject)
			}
			node, of, err := cs.readUncounted(m.Data, leaders)
			if err != nil {
				return found, err
			}
			for _, u := range of { // each replica has a sourcing one
				if at := u.Stream + " " + u.Name; !u.Sourcing || !seen[at] {
					found, seen[at] = append(found, u), u.Sourcing
				}
			}
			if delete(missing, node); len(missing) == 0 {
				return found, nil
			}
		case <-wait.C:
			if err := cs.conn.Denied.Since(subject, began); err != nil {
				return nil, err
			}
			return found, fmt.Errorf("%w: no answer from %s", core.ErrUnreachable,
				strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
		case <-ctx.Done():
			return found, cs.conn.Late("ask for consumers", ctx.Err())
		}
	}
}

// nodes returns the names of the nodes that hold the cell's streams; none outside a cluster.
func (cs *Consumers) nodes(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for _, s := range cs.streams() {
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

// detail is a consumer in the answer of a broker.
type detail struct {
	Name   string                     `json:"name"`
	Active bool                       `json:"push_bound"`
	Config map[string]json.RawMessage `json:"config"`
}

// read returns what the consumer's configuration says.
func (d detail) read(stream string) (u Uncounted, err error) {
	if d.Config == nil {
		return u, fmt.Errorf("consumer %s of %s: its configuration is missing", d.Name, stream)
	}
	u = Uncounted{Stream: stream, Name: d.Name, Active: d.Active, config: d.Config}
	for field, to := range map[string]any{"deliver_subject": &u.To, "filter_subject": &u.filter,
		"inactive_threshold": &u.Idle, "sourcing": &u.Sourcing} {
		if err := json.Unmarshal(d.Config[field], to); len(d.Config[field]) > 0 && err != nil {
			return u, fmt.Errorf("consumer %s of %s: %s: %w", d.Name, stream, field, err)
		}
	}
	return u, nil
}

// readUncounted reads the answer of one broker, and its name. leaders: without direct consumers of streams that another
// broker leads.
func (cs *Consumers) readUncounted(body []byte, leaders bool) (node string, found []Uncounted, err error) {
	var answer struct {
		Server struct {
			Name string `json:"name"`
		} `json:"server"`
		Data struct {
			Streams []struct {
				Name    string `json:"name"`
				Cluster *struct {
					Leader string `json:"leader"`
				} `json:"cluster"`
				Listed []detail `json:"consumer_detail"`
				Direct []detail `json:"direct_consumer_detail"`
			} `json:"stream_detail"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", nil, fmt.Errorf("consumers that no limit counts: %w", err)
	}
	node = answer.Server.Name
	for _, s := range answer.Data.Streams {
		if !slices.Contains(cs.streams(), s.Name) {
			continue
		}
		if leaders && s.Cluster != nil && s.Cluster.Leader != node {
			s.Direct = nil
		}
		for i, d := range slices.Concat(s.Listed, s.Direct) {
			u, err := d.read(s.Name)
			if err != nil {
				return "", nil, err
			}
			direct := i >= len(s.Listed)
			if u.Sourcing = u.Sourcing && !direct; u.Sourcing || direct {
				found = append(found, u)
			}
		}
	}
	return node, found, nil
}

// streams returns all streams of the cell.
func (cs *Consumers) streams() []string {
	c := cs.conn.Cell
	return []string{c.LogStream(), core.KVStream(c.StateBucket()), core.KVStream(c.LeaseBucket()), c.TimerStream(),
		c.FeedStream(), c.ParkedStream(), "OBJ_" + c.ObjectBucket()}
}

// EndUncounted deletes such consumers that are sourcing. It makes the broker end the direct ones as soon as they are
// 10 s without a subscription: no request deletes one in a cluster. It returns how many it ended or changed; direct
// ones with a shorter time are left.
func (cs *Consumers) EndUncounted(ctx context.Context, all []Uncounted) (int, error) {
	var changes errgroup.Group
	changes.SetLimit(endAtOnceMax)
	n := 0
	for _, u := range all {
		if u.Sourcing {
			n++
			changes.Go(func() error { return cs.remove(ctx, u) })
		} else if u.Idle > UncountedIdleMax {
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
