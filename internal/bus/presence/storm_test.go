package presence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const (
	every = 100 * time.Millisecond
	stall = 5 * every // half of the time after which a question counts as lost
)

// brokers answer like nodes of a cluster: each has its own connections, and some of them end with each interval.
type brokers struct {
	mu        sync.Mutex
	ended     map[string][]uint64 // by the name of the broker, the newest last
	churn     map[string]int      // how many connections end with each interval
	mute      map[string]int      // how many further questions the broker does not answer
	intervals int                 // for which connections end
	asked     int                 // intervals so far
	further   int                 // questions to one broker
	names     int                 // connections in all answers
	most      int                 // further questions within one interval to one broker
	within    map[string]int
}

// asked is a question as nats-server reads it.
type asked struct {
	State int    `json:"state"`
	Sort  string `json:"sort"`
	Limit int    `json:"limit"`
	Name  string `json:"server_name"`
	Exact bool   `json:"exact_match"`
}

func (b *brokers) answer(t *testing.T, m *nats.Msg) {
	var q asked
	if err := json.Unmarshal(m.Data, &q); err != nil || q.State != 1 || q.Sort != "stop" || q.Limit <= 0 ||
		q.Limit > 1024 || (q.Name != "") != q.Exact || (q.Name == "") != (q.Limit == 16) {
		t.Errorf("asked for %s (%v)", m.Data, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.Name == "" {
		b.asked++
		b.within = map[string]int{}
	} else {
		b.further++
		b.within[q.Name]++
		b.most = max(b.most, b.within[q.Name])
		if b.mute[q.Name] > 0 {
			b.mute[q.Name]--
			return
		}
	}
	for name, all := range b.ended {
		if q.Name != "" && q.Name != name {
			continue
		}
		if q.Name == "" && b.asked <= b.intervals {
			for range b.churn[name] {
				all = append(all, uint64(len(all)+1))
			}
			b.ended[name] = all
		}
		type conn struct {
			CID    uint64 `json:"cid"`
			Reason string `json:"reason"`
		}
		conns := []conn{}
		for i := len(all) - 1; i >= max(0, len(all)-q.Limit); i-- {
			conns = append(conns, conn{all[i], "Client Closed"})
		}
		b.names += len(conns)
		body, err := json.Marshal(map[string]any{"server": map[string]any{"name": name, "id": "ID-" + name},
			"data": map[string]any{"server_id": "ID-" + name, "limit": q.Limit, "connections": conns}})
		if err == nil {
			err = m.Respond(body)
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			// the test has ended: nothing waits for this answer
			return
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// total returns how many connections have ended, and whether all of them will have.
func (b *brokers) total() (n int, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ended := range b.ended {
		n += len(ended)
	}
	return n, b.asked > b.intervals
}

// watch runs Ended against the brokers until every connection that ended was named, and for some intervals more.
func (b *brokers) watch(t *testing.T) {
	t.Helper()
	s := natstest.Start(t)
	_, err := connect(t, s).Subscribe("hf.broker.connections.PING", func(m *nats.Msg) { b.answer(t, m) })
	if err != nil {
		t.Fatal(err)
	}
	bus := natstest.Bus(t, s)
	var mu sync.Mutex
	named := map[presence.Connection]bool{}
	natstest.Background(t, func(ctx context.Context) error {
		return bus.Presence.Watch(ctx, every, watcher(func(all []presence.Connection) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range all {
				named[c] = true
			}
		}))
	})
	var done int
	natstest.Until(t, "every ended connection to be named", func() bool {
		mu.Lock()
		defer mu.Unlock()
		n, all := b.total()
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case !all || len(named) < n:
			return false
		case done == 0:
			done = b.asked
		}
		return b.asked > done+5
	})
}

// TestQuestionsAreBounded: with 64 brokers on which connections end all the time, a broker is asked alone and names at
// most the usual 16 with each interval, and six connections for each that ended.
func TestQuestionsAreBounded(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const usual, before, nodes = 16, 2_000, 64
	for _, churn := range []int{0, 15, 16, 70, 300} {
		t.Run(fmt.Sprintf("%d ended in each interval", churn), func(t *testing.T) {
			natstest.RetryStalled(t, stall, func() error {
				// fewer than 1,024 connections of each broker: a slow machine misses none
				b := &brokers{ended: map[string][]uint64{}, churn: map[string]int{},
					intervals: 3}
				for i := range nodes {
					name := fmt.Sprintf("n%d", i)
					b.churn[name] = churn
					for id := range before / nodes {
						b.ended[name] = append(b.ended[name], uint64(id+1))
					}
				}
				b.watch(t)
				n, _ := b.total()
				// at the start no connection is known
				most := nodes + 3*nodes*b.intervals
				if churn < usual {
					most = nodes
				}
				if b.names > b.asked*nodes*usual+6*n || b.most > 3 || b.further > most {
					return fmt.Errorf("%d intervals, %d ended: %d further questions, at most %d to one broker within "+
						"an interval, %d connections in the answers", b.asked, n, b.further, b.most, b.names)
				}
				return nil
			})
		})
	}
}

// TestOnlyTheBusyBrokerIsAskedForMore: the other brokers are not asked, and what they ended is named.
func TestOnlyTheBusyBrokerIsAskedForMore(t *testing.T) {
	t.Parallel()
	natstest.RetryStalled(t, stall, func() error {
		b := &brokers{ended: map[string][]uint64{"idle": nil, "busy": nil}, intervals: 8,
			churn: map[string]int{"idle": 1, "busy": 20}}
		b.watch(t)
		if b.names > b.asked*2*16+b.intervals*64 {
			return fmt.Errorf("%d connections in the answers of %d intervals", b.names, b.asked)
		}
		return nil
	})
}

// TestAFurtherQuestionIsLost: the broker is asked again after a while, and not with each interval before.
func TestAFurtherQuestionIsLost(t *testing.T) {
	t.Parallel()
	natstest.RetryStalled(t, stall, func() error {
		b := &brokers{ended: map[string][]uint64{"n": nil}, intervals: 1, churn: map[string]int{"n": 200},
			mute: map[string]int{"n": 2}}
		b.watch(t)
		if b.further > 5 || b.most > 3 || b.asked < 20 {
			return fmt.Errorf("%d further questions in %d intervals, %d within one; two were lost", b.further, b.asked,
				b.most)
		}
		return nil
	})
}

// TestARealBrokerAnswersAlone: nats-server answers a question with its name, and none with another one.
func TestARealBrokerAnswersAlone(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, settings))
	nc := connect(t, s, nats.UserInfo("u", "pw"))
	for _, x := range []struct {
		name  string
		exact bool
		want  bool
	}{{"", false, true}, {nc.ConnectedServerName(), true, true}, {"other", true, false}} {
		for _, subject := range []string{"hf.broker.connections.PING", "$SYS.REQ.SERVER.PING.CONNZ"} {
			inbox := nc.NewInbox()
			sub, err := nc.SubscribeSync(inbox + ".*")
			if err != nil {
				t.Fatal(err)
			}
			// the second one is answered, after the first
			for _, q := range []asked{{State: 1, Sort: "stop", Limit: 16, Name: x.name, Exact: x.exact},
				{State: 1, Sort: "stop", Limit: 17}} {
				body, err := json.Marshal(q)
				if err != nil {
					t.Fatal(err)
				}
				if err := nc.PublishRequest(subject, inbox+".1", body); err != nil {
					t.Fatal(err)
				}
			}
			var limits []int
			for len(limits) == 0 || limits[len(limits)-1] != 17 {
				m, err := sub.NextMsg(bustest.Patience)
				if err != nil {
					t.Fatal(err)
				}
				var a struct {
					Server struct {
						Name string `json:"name"`
					} `json:"server"`
					Data struct {
						Limit int `json:"limit"`
					} `json:"data"`
				}
				if err := json.Unmarshal(m.Data, &a); err != nil || a.Server.Name != nc.ConnectedServerName() {
					t.Fatalf("%s: %v", m.Data, err)
				}
				limits = append(limits, a.Data.Limit)
			}
			if got := len(limits) == 2; got != x.want {
				t.Errorf("%s, for %q: answered %t, want %t", subject, x.name, got, x.want)
			}
		}
	}
}
