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
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of the search for consumers that the broker counts for no limit.
const (
	answersAtOnce = 64 // answers of brokers
	answersMax    = 20 * time.Second
	checksMax     = 20 * time.Second // of listed consumers, in one search
	checkAtOnce   = 4                // of them: each answer may take 800 KB
	endAtOnceMax  = 16               // requests to the broker
	deletionMax   = 10 * time.Second // of one consumer
	noResponders  = "503"            // status of a request that nothing answers

	// ActiveMax is how many direct consumers with a subscription are left: those of mirrors that an administrator makes
	// of a cell's streams.
	ActiveMax = 16

	claimIdleMax = 10 * time.Second // of a consumer that is made to delete a direct one
)

// Codes of the broker's refusals to make a consumer under a name that is in use.
const (
	codeNameInUse      = 10013
	codeConsumerExists = 10148
)

// errTooLong means that a broker has closed the connection before the end of its answer.
var errTooLong = errors.New("the answer may be longer than a broker keeps for one connection (`max_pending`)")

// Imported is the subject in the accounts of those who may ask to which the questions about the cell's account are
// imported. It has a wildcard: an import without one makes a push consumer active.
func Imported(c events.Cell) string { return c.Prefix() + ".broker.account.*" }

// Subject is where the brokers answer with the streams of the cell's account, and their consumers.
func Subject(c events.Cell) string { return c.Prefix() + ".broker.account.JSZ" }

// Uncounted is a consumer that nats-server counts for no limit: its request called it direct or sourcing, as the broker
// calls the consumers of its own mirrors and sources. Nothing in Holdfast makes one that stays. A direct one is in no
// list, and a cluster knows no request about it.
type Uncounted struct {
	Stream, Name string
	Sourcing     bool   // not direct: it is in the broker's lists
	To           string // the subject that it delivers to; "" if that is not known
	Active       bool   // a subscription has exactly this subject
	Node         string // that has a direct one
}

// Nameless reports whether no request can name the consumer. It is direct, and its name is not UTF-8: the broker takes
// any bytes, and lists them as U+FFFD. It ends when its node is restarted.
func (u *Uncounted) Nameless() bool {
	return !u.Sourcing && strings.ContainsRune(u.Name, utf8.RuneError)
}

// String names the consumer, and what ends one that no request can delete.
func (u *Uncounted) String() string {
	text := fmt.Sprintf("%s of %s delivers to %s", u.Name, u.Stream, u.To)
	if u.Nameless() {
		text += ", and ends when the node " + u.Node + " is restarted"
	}
	return text
}

// Uncounted returns such consumers of the cell's streams, at most 100,000 of them, for people to see. Users decide how
// long the configurations are. If they are too long for one answer it returns only the direct ones, without To, and an
// error.
//
// Errors: [core.ErrUnreachable], with what was found, if a node has not answered, or its answer was that long;
// [core.ErrNotFound] where nothing answers, in a cell without users; [core.ErrForbidden] if this user may not ask, as
// with permissions of an earlier version.
func (cs *Consumers) Uncounted(ctx context.Context) ([]Uncounted, error) {
	q, err := cs.ask(ctx, true)
	if !errors.Is(err, errTooLong) {
		return q.found, err
	}
	short, failed := cs.ask(ctx, false)
	return short.found, errors.Join(err, failed)
}

// ask asks the brokers about the consumers of the cell's account. The answers arrive on a connection of their own: a
// broker closes one that has more than `max_pending` waiting, 64 MiB. It returns what was found, also with an error.
func (cs *Consumers) ask(ctx context.Context, configs bool) (*question, error) {
	q := &question{configs: configs, seen: map[string]bool{}, answers: make(chan *nats.Msg, answersAtOnce)}
	var err error
	if q.missing, err = cs.nodes(ctx); err != nil {
		return q, err
	}
	q.clustered = len(q.missing) > 0
	asking, cancel := context.WithTimeout(ctx, answersMax)
	defer cancel()
	if q.Conn, err = core.Open(asking, cs.conn.Config); err != nil {
		return q, err
	}
	defer q.NC.Close()
	q.lost = q.NC.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	if err := q.send(); err != nil {
		return q, err
	}
	err = q.collect(asking)
	if err != nil && ctx.Err() != nil {
		err = cs.conn.Late("ask for consumers", ctx.Err())
	}
	return q, err
}

// question is a question to the brokers about the consumers of the cell's account.
type question struct {
	*core.Conn
	configs   bool // the answers have the configurations
	clustered bool
	began     time.Time
	missing   map[string]bool // nodes that have not answered
	answers   chan *nats.Msg
	lost      chan nats.Status

	found  []Uncounted
	listed []listed        // without configurations, those in the broker's lists: they may be sourcing
	seen   map[string]bool // each replica has a listed one
}

// listed is a consumer in the broker's lists.
type listed struct {
	stream, name string
	created      time.Time
}

// send sends the question. Brokers compress the answers: a consumer takes 1 KB of one, and much of it is the same. A
// configuration takes up to 800 KB of it, and a name 255 bytes.
func (q *question) send() error {
	// a sourcing one with one replica may be at any node
	body, err := json.Marshal(map[string]bool{"streams": true, "consumer": true, "direct_consumer": true,
		"config": q.configs})
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
			return fmt.Errorf("%w: the connection ended before the answer of %s: %w", core.ErrUnreachable, q.absent(),
				errTooLong)
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

// errNameless means that a consumer cannot be deleted.
var errNameless = errors.New("no request can name it, because its name is not UTF-8")

// EndUncounted deletes such consumers. Direct ones with a subscription are left if there are few of them. It returns
// those that it has deleted, and how many it has left. An error concerns a part of them: the next call finds the rest,
// but for those that no request can name. The errors are those of [Consumers.Uncounted].
//
// The question leaves out the configurations, whose length users decide. So each listed consumer is asked about by its
// name, once.
func (cs *Consumers) EndUncounted(ctx context.Context) (ended []Uncounted, left int, err error) {
	q, err := cs.ask(ctx, false)
	if len(q.found)+len(q.listed) == 0 {
		return nil, 0, err
	}
	all, nameless := q.found, error(nil)
	if i := slices.IndexFunc(all, func(u Uncounted) bool { return u.Nameless() }); i >= 0 {
		nameless = fmt.Errorf("consumer %s of %s: %w: restart the node %s", all[i].Name, all[i].Stream, errNameless,
			all[i].Node)
		all = slices.DeleteFunc(all, func(u Uncounted) bool { return u.Nameless() })
	}
	if active := active(all); active <= ActiveMax {
		left = active
		all = slices.DeleteFunc(all, func(u Uncounted) bool { return u.Active })
	}
	ended, failed := cs.remove(ctx, all, q.clustered)
	sourcing, unknown := cs.sourcing(ctx, q.listed)
	more, failedToo := cs.remove(ctx, sourcing, q.clustered)
	return append(ended, more...), left, errors.Join(nameless, err, failed, unknown, failedToo)
}

// active returns how many consumers have a subscription.
func active(all []Uncounted) (n int) {
	for _, u := range all {
		if u.Active {
			n++
		}
	}
	return n
}

// sourcing returns which of the listed consumers are sourcing. It remembers those that are not: a consumer never
// changes that. [core.ErrForbidden] if this user may ask about none of them, as with permissions of an earlier version.
func (cs *Consumers) sourcing(ctx context.Context, all []listed) (found []Uncounted, err error) {
	ctx, cancel := context.WithTimeout(ctx, checksMax)
	defer cancel()
	cs.mu.Lock()
	counted := cs.counted
	cs.mu.Unlock()
	still := make(map[listed]bool, len(all))
	var asked []listed
	for _, x := range all {
		if counted[x] {
			still[x] = true
		} else {
			asked = append(asked, x)
		}
	}
	answers, errs := make([]Uncounted, len(asked)), make([]error, len(asked))
	var checks errgroup.Group
	checks.SetLimit(checkAtOnce)
	for i, x := range asked {
		checks.Go(func() error {
			answers[i], errs[i] = cs.sourcingOne(ctx, x)
			return nil
		})
	}
	// no check returns an error
	_ = checks.Wait()
	var forbidden error
	for i, u := range answers {
		switch {
		case errors.Is(errs[i], core.ErrNotFound):
			// it has ended meanwhile
		case errors.Is(errs[i], core.ErrForbidden):
			// the consumer of a service, without a key
			forbidden = errs[i]
		case errs[i] != nil:
			err = errs[i]
		case u.Sourcing:
			found = append(found, u)
		default:
			still[asked[i]] = true
		}
	}
	cs.mu.Lock()
	cs.counted = still
	cs.mu.Unlock()
	if len(still)+len(found) == 0 {
		err = errors.Join(err, forbidden)
	}
	return found, err
}

// sourcingOne reads whether a consumer is sourcing.
func (cs *Consumers) sourcingOne(ctx context.Context, x listed) (u Uncounted, err error) {
	var info struct {
		Active bool `json:"push_bound"`
		Config struct {
			Sourcing bool   `json:"sourcing"`
			To       string `json:"deliver_subject"`
		} `json:"config"`
	}
	// its name may be a secret
	err = cs.conn.CallOnce(ctx, "look at a consumer of "+x.stream,
		core.APIPrefix+"CONSUMER.INFO."+x.stream+"."+x.name, nil, &info)
	return Uncounted{Stream: x.stream, Name: x.name, Sourcing: info.Config.Sourcing, To: info.Config.To,
		Active: info.Active}, err
}

// remove deletes consumers by their names, and returns those that are deleted. It ends when a deletion has no answer
// within its time.
func (cs *Consumers) remove(ctx context.Context, all []Uncounted, clustered bool) ([]Uncounted, error) {
	gone, errs := make([]bool, len(all)), make([]error, len(all))
	deletions, ctx := errgroup.WithContext(ctx)
	deletions.SetLimit(endAtOnceMax)
	for i, u := range all {
		deletions.Go(func() error {
			var err error
			if gone[i], err = cs.removeOne(ctx, u, clustered && !u.Sourcing); errors.Is(err, core.ErrUnreachable) {
				return err
			}
			errs[i] = err
			return nil
		})
	}
	err := deletions.Wait()
	var ended []Uncounted
	for i, u := range all {
		switch {
		case gone[i]:
			ended = append(ended, u)
		case err == nil:
			err = errs[i]
		}
	}
	return ended, err
}

// removeOne deletes a consumer, and reports whether it has done so. In a cluster it first claims the name of a direct
// one.
func (cs *Consumers) removeOne(ctx context.Context, u Uncounted, claim bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, deletionMax)
	defer cancel()
	if claim {
		if err := cs.claim(ctx, u); err != nil {
			return false, err
		}
	}
	err := cs.conn.Call(ctx, "delete consumer "+u.Name+" of "+u.Stream,
		"CONSUMER.DELETE."+u.Stream+"."+u.Name, nil, new(core.Nothing))
	// it has ended meanwhile, or an attempt without an answer deleted it
	if errors.Is(err, core.ErrNotFound) {
		return claim, nil
	}
	return err == nil, err
}

// claim makes a consumer under the name of a direct one. A cluster does not know the name of a direct one, and so
// refuses to delete it. Each node deletes what it has under a name that the cluster deletes. The new one is sourcing:
// no limit refuses it, and if this process ends before the deletion, the next search deletes it.
//
// The request is sent again after a time without an answer. If the node refuses before the leader of the cluster has
// applied its own proposal, the leader drops the refusal (processConsumerAssignmentResults of nats-server).
func (cs *Consumers) claim(ctx context.Context, u Uncounted) error {
	const all = ">"
	request := map[string]any{"stream_name": u.Stream, "action": actionCreate,
		"config": map[string]any{"name": u.Name, "sourcing": true, "filter_subject": all, "deliver_policy": "new",
			"ack_policy": "none", "num_replicas": 1, "mem_storage": true, "inactive_threshold": claimIdleMax}}
	err := cs.conn.Call(ctx, "delete consumer "+u.Name+" of "+u.Stream,
		"CONSUMER.CREATE."+u.Stream+"."+u.Name+"."+all, request, new(core.Nothing))
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == codeNameInUse || api.ErrorCode == codeConsumerExists) {
		// the node that has the direct one has refused to change it
		return nil
	}
	return err
}
