// Package presence asks the brokers which connections of clients have ended, and which are open.
//
// The answer is a hint. It may be missing: a broker forgets what it knew when it restarts, an unreachable one does not
// answer, and a user may have no permission to ask. A connection that a broker names has ended for certain, but its
// program may live and have another one. All connections of one program have the same name.
package presence

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// ownSubject is where the brokers answer with the connections of the account that asks. It is not asked in the account
// global: nats-server 2.15.2 finds no ended connections there, and reads the numbers of new ones without its lock.
const ownSubject = "$SYS.REQ.SERVER.PING.CONNZ"

// userSubject is where the broker answers with the account of the user that asks.
const userSubject = "$SYS.REQ.USER.INFO"

// global is the account of all users of a broker without accounts.
const global = "$G"

// Exported is the subject in the system account that answers with the connections of all accounts. It has a wildcard:
// an import without one is a subscription that makes a push consumer active, and the consumer of a harness would ask
// all brokers for all connections with each message.
const Exported = "$SYS.REQ.SERVER.*.CONNZ"

// Imported is the subject in the cell's account to which a cell with users imports [Exported]. No harness serves a
// subject of this length.
func Imported(c events.Cell) string { return c.Prefix() + ".broker.connections.*" }

// Subject is where a reconciler asks in a cell with users.
func Subject(c events.Cell) string { return c.Prefix() + ".broker.connections.PING" }

// How many of the newest ended connections a question asks for. All brokers are asked for the usual number at each
// interval. A broker whose answer is full of unknown ones is asked alone for more, until the answer has one that is
// known, or the greatest number. So what an interval costs follows from the connections that ended within it.
const (
	usual = 16
	more  = 4     // times as many with each further question
	many  = 1_024 // at most, and from the embedded broker
	open  = 256   // open connections of one broker

	waitMax = 10  // intervals until a further question counts as lost: then the broker may be asked another one
	keepMax = 200 // intervals for which a broker that does not answer is known: it has a new id after each start

	noResponders = "503" // status of a request that nothing answers
)

// Connection names one connection of a client. No other connection to any broker has the same name.
type Connection struct {
	Server string `json:"server"` // id of the broker's process
	Client uint64 `json:"client"` // number of the connection there
}

// Named is a connection with the name that its client gave to it.
type Named struct {
	Connection
	Name string `json:"name,omitempty"`
}

// Watcher gets what the brokers answer. Its functions are called one at a time.
type Watcher struct {
	// Ended gets connections that clients have ended, or that broke. The same one may be named several times.
	Ended func([]Connection)
	// Asks reports at each interval whether the brokers are asked for open connections.
	Asks func() bool
	// Open gets the names of the newest open connections of a broker, at most 256.
	Open func(names []string)
}

// embedded is a broker in this process.
type embedded interface {
	EndedConnections(limit int) (server string, clients []uint64, err error)
	OpenConnections(limit int) (names []string, err error)
}

// Presence asks for the connections of a cell. Its methods may be called concurrently.
type Presence struct {
	conn *core.Conn
}

// New returns the presence of the cell of a connection.
func New(conn *core.Conn) *Presence { return &Presence{conn: conn} }

// Own returns the name of this connection, the zero value while it is lost.
func (p *Presence) Own() Connection {
	for {
		server := p.conn.NC.ConnectedServerId()
		client, err := p.conn.NC.GetClientID()
		switch {
		case p.conn.NC.ConnectedServerId() != server:
			// it was restored between the two
		case err != nil || server == "":
			return Connection{}
		default:
			return Connection{Server: server, Client: client}
		}
	}
}

// Name returns the name of this connection, which it keeps when it is restored.
func (p *Presence) Name() string { return p.conn.Name() }

// Watch asks the brokers at the interval every, until ctx ends. A connection that a broker closed itself does not count
// as ended: its client connects again. [core.ErrForbidden] if this user may not ask. In a cell without users it asks
// for the connections of its own account, and of an embedded broker for all. A broker without accounts names none.
func (p *Presence) Watch(ctx context.Context, every time.Duration, w Watcher) error {
	if b, ok := p.conn.Config.Server.(embedded); ok {
		p.local(ctx, b, every, w)
		return nil
	}
	inbox, answers := p.conn.NC.NewInbox(), make(chan *nats.Msg, many)
	// with a wildcard: a client that knew a literal inbox could let the broker deliver to it
	sub, err := p.conn.NC.ChanSubscribe(inbox+".*", answers)
	if err != nil {
		return core.Translate("subscribe to "+inbox, err)
	}
	toEnded, toOpen := inbox+".1", inbox+".2"
	defer func() {
		if err := core.IgnoreClosed(sub.Unsubscribe()); err != nil {
			p.conn.Log.Debug().Str("entity", inbox).AnErr("err", err).Msg("not unsubscribed")
		}
	}()
	began, known, subject := time.Now(), newAnswered(), Subject(p.conn.Cell)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var names []Connection
		select {
		case <-tick.C:
			if err := p.conn.Denied.Since(subject, began); err != nil {
				return err
			}
			known.tick()
			p.ask(subject, toEnded, ended(usual))
			if subject != userSubject && w.Asks() {
				// the newest first
				p.ask(subject, toOpen, question{Sort: "uptime", Limit: open})
			}
		case m := <-answers:
			if m.Header.Get("Status") == noResponders && subject != ownSubject {
				// a cell without users has no import
				subject = userSubject
				continue
			}
			answer := read(m.Data)
			if m.Subject == toOpen {
				w.open(answer)
				continue
			}
			switch answer.Account {
			case "":
			case global:
				<-ctx.Done()
				return nil
			default:
				subject = ownSubject
			}
			var next question
			if names, next = known.ended(answer); next.Limit > 0 {
				p.ask(subject, toEnded, next)
			}
		case <-ctx.Done():
			return nil
		}
		if len(names) > 0 {
			w.Ended(names)
		}
	}
}

// open passes on the names of an answer.
func (w Watcher) open(of answer) {
	var names []string
	for _, c := range of.Conns {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 {
		w.Open(names)
	}
}

// local asks the broker in this process.
func (p *Presence) local(ctx context.Context, b embedded, every time.Duration, w Watcher) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		server, clients, err := b.EndedConnections(many)
		if err != nil {
			p.conn.Log.Debug().AnErr("err", err).Msg("the embedded broker does not name its connections")
			continue
		}
		ended := make([]Connection, 0, len(clients))
		for _, c := range clients {
			ended = append(ended, Connection{Server: server, Client: c})
		}
		if len(ended) > 0 {
			w.Ended(ended)
		}
		if !w.Asks() {
			continue
		}
		names, err := b.OpenConnections(open)
		if err != nil {
			p.conn.Log.Debug().AnErr("err", err).Msg("the embedded broker does not name its open connections")
			continue
		}
		w.Open(names)
	}
}

// question asks brokers for their newest connections, open or ended.
type question struct {
	State int    `json:"state"`
	Sort  string `json:"sort"`
	Limit int    `json:"limit"`

	// the broker that answers, by its name, which is unique in a cluster; empty: each of them
	Name  string `json:"server_name,omitempty"`
	Exact bool   `json:"exact_match,omitempty"`
}

// ended is the question for the newest ended connections.
func ended(limit int) question { return question{State: 1, Sort: "stop", Limit: limit} }

// ask sends a question.
func (p *Presence) ask(subject, inbox string, q question) {
	body, err := json.Marshal(q)
	if err == nil {
		err = p.conn.NC.PublishRequest(subject, inbox, body)
	}
	if err != nil {
		p.conn.Log.Debug().Str("entity", subject).AnErr("err", err).Msg("not asked for connections")
	}
}

// answer is what a broker answers to a question.
type answer struct {
	Account string // of the user that asks
	Name    string // of the broker whose connections these are
	ID      string // of its process
	Limit   int    // of the question
	Total   int    // ended connections that the broker remembers
	Conns   []conn
}

// conn is a connection in an answer.
type conn struct {
	CID    uint64 `json:"cid"`
	Name   string `json:"name"`
	Reason string `json:"reason"` // why it ended
}

// read returns what a broker has answered. A message that is no answer has nothing: a broker without a system account
// does not know its connections.
func read(body []byte) answer {
	var m struct {
		Server struct {
			Name string `json:"name"`
		} `json:"server"`
		Data struct {
			Account string `json:"account"`
			ID      string `json:"server_id"`
			Limit   int    `json:"limit"`
			Total   int    `json:"total"`
			Conns   []conn `json:"connections"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return answer{}
	}
	return answer{m.Data.Account, m.Server.Name, m.Data.ID, m.Data.Limit, m.Data.Total, m.Data.Conns}
}

// answered has the brokers that have answered, by their id.
type answered struct {
	interval int // the present one
	brokers  map[string]*broker
}

func newAnswered() *answered { return &answered{brokers: map[string]*broker{}} }

// broker is what was learned from one broker.
type broker struct {
	known    map[uint64]bool // connections of the last answer behind which none is missing
	total    int             // how many the broker remembered then
	answered int             // interval of the last answer

	// limit of the further question that it has not answered, 0 for none, and the interval in which it was asked
	further, asked int
}

// tick begins an interval.
func (a *answered) tick() {
	a.interval++
	maps.DeleteFunc(a.brokers, func(_ string, b *broker) bool { return a.interval-b.answered > keepMax })
}

// ended returns the connections of an answer that ended at the side of the client, and the further question that its
// broker is asked, without a limit for none. A broker has at most one further question to answer, so one that is slow
// gets no more of them.
func (a *answered) ended(of answer) (names []Connection, next question) {
	if of.ID == "" {
		return nil, question{}
	}
	b := a.brokers[of.ID]
	if b == nil {
		b = &broker{}
		a.brokers[of.ID] = b
	}
	b.answered = a.interval
	if of.Limit == b.further || a.interval-b.asked > waitMax {
		b.further = 0
	}
	now, fresh := map[uint64]bool{}, 0
	for _, c := range of.Conns {
		now[c.CID] = true
		if !b.known[c.CID] {
			fresh++
		}
		switch c.Reason {
		case "Client Closed", "Read Error", "Write Error":
			names = append(names, Connection{Server: of.ID, Client: c.CID})
		}
	}
	// a busy broker remembers a connection late, and it may then be behind newer ones that were known before
	late := of.Total-b.total > fresh
	switch {
	case fresh < len(of.Conns) && !late, len(of.Conns) < of.Limit, of.Limit >= many:
		b.known, b.total = now, of.Total
	case b.further == 0:
		b.further, b.asked = min(more*of.Limit, many), a.interval
		next = ended(b.further)
		next.Name, next.Exact = of.Name, true
	}
	return names, next
}
