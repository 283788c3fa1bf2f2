// Package rpc sends requests to the services of a cell, and serves them.
//
// A request is handled only if it was published to the subject of its endpoint and names an inbox for the reply. In a
// cell with users the subject names the asker. Requests may be repeated.
package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of services.
const (
	requestsAtOnceMax  = 256     // requests that one service process handles concurrently
	requestHandleMaxMS = 10_000  // for one request within its service, by default
	requestWaitMaxMS   = 10_000  // for one request, when the caller's context has no deadline
	headerBytesMax     = 8 << 10 // of one request, as they are encoded
	serviceStopGraceMS = 2_000   // for requests in progress when ctx ends
	serviceStopReplyMS = 500     // for their refusals after that
)

// headerWait is the header of a request with how long its asker waits for the reply, in whole milliseconds. Nothing is
// done for it after that. It can only shorten the time of a verb. Another value than a number of at least 1 is ignored.
const headerWait = "Hf-Wait-Ms"

// Endpoint answers the requests of one verb.
type Endpoint struct {
	// Verb is the last token of the subject.
	Verb string
	// Handle gets the request's body and returns the reply's. A *[events.Refusal] in its error's chain is the reply;
	// any other error is a 503 with its text. It is called concurrently.
	Handle func(ctx context.Context, body []byte) ([]byte, error)
	// TimeMax is when Handle's ctx ends, after the request arrived, or before if the caller waits for less time. A
	// request that waited so long for a place gets 503, and Handle is not called. Default: 10 s, as callers wait by
	// default.
	TimeMax time.Duration
}

func (ep Endpoint) timeMax() time.Duration {
	return cmp.Or(max(ep.TimeMax, 0), requestHandleMaxMS*time.Millisecond)
}

// Services sends requests to the services of a cell, and serves them. Its methods may be called concurrently.
type Services struct {
	conn *core.Conn
}

// New returns the services of the cell of a connection.
func New(conn *core.Conn) *Services { return &Services{conn: conn} }

// Serve answers the requests of the micro service holdfast-<service>, together with all other processes that do, until
// ctx ends. Requests in progress are then finished, for 2 s; those that take longer are ended and refused with 503. It
// survives the broker's restarts. It fails if the service cannot be registered. A verb is one token of a subject.
//
// A request is handled only if it was published to the service's own subjects and names an inbox for the reply. A
// message that a stream delivered is dropped, and so is a request with any other reply subject: the broker lets a
// client name every subject there, also those that only this process may publish to. All subscriptions have a wildcard:
// the broker begins to deliver a stream only to a subscription that has exactly the delivery subject, and a consumer's
// delivery subject has no wildcard.
func (rs *Services) Serve(ctx context.Context, service, version, description string, eps []Endpoint) error {
	s := &server{conn: rs.conn, service: service, places: newPlaces(),
		endpoints: make(map[string]Endpoint, len(eps)),
		found:     discover(rs.conn, service, version, description, eps)}
	for _, ep := range eps {
		if t, err := events.Token(ep.Verb); err != nil || t != ep.Verb {
			return fmt.Errorf("serve %s: %q is no verb", service, ep.Verb)
		}
		s.endpoints[ep.Verb] = ep
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	subs, err := s.subscribe(ctx, life)
	if err != nil {
		return errors.Join(core.Translate("serve "+service, err), drain(subs))
	}
	rs.conn.Log.Info().Str("service", service).Msg("serving")
	<-ctx.Done()
	err = drain(subs)
	if !s.finish(end) {
		return nil
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) && rs.conn.NC.IsConnected() {
		return core.Translate("stop serving "+service, err)
	}
	return nil
}

// finish waits for the requests in progress, and ends those that take too long: their callers would wait for a process
// that is gone. It reports whether all of them were finished in time.
func (s *server) finish(end func()) bool {
	idle := s.places.end()
	grace := time.NewTimer(serviceStopGraceMS * time.Millisecond)
	defer grace.Stop()
	select {
	case <-idle:
		return true
	case <-grace.C:
	}
	end()
	grace.Reset(serviceStopReplyMS * time.Millisecond)
	select {
	case <-idle:
	case <-grace.C:
	}
	return false
}

// server is one call of Serve.
type server struct {
	conn      *core.Conn
	service   string
	endpoints map[string]Endpoint // by verb
	found     *discovery
	places    *places
}

// subscribe subscribes to the requests of the service, and to those that look for services. It returns also with an
// error what is subscribed.
func (s *server) subscribe(ctx, life context.Context) ([]*nats.Subscription, error) {
	all := s.conn.Cell.ServiceSubject(s.service, ">")
	sub, err := s.conn.NC.QueueSubscribe(all, micro.DefaultQueueGroup, func(m *nats.Msg) { s.take(ctx, life, m) })
	if err != nil {
		return nil, err
	}
	subs := []*nats.Subscription{sub}
	for _, subject := range s.found.subjects() {
		sub, err := s.conn.NC.Subscribe(subject, s.discovered)
		if err != nil {
			return subs, err
		}
		subs = append(subs, sub)
	}
	return subs, nil
}

// drain ends subscriptions after the messages that have arrived.
func drain(subs []*nats.Subscription) error {
	var failed error
	for _, sub := range subs {
		failed = errors.Join(failed, sub.Drain())
	}
	return failed
}

// take runs a request in a goroutine, in a place of its asker: a request may take several round trips, and others must
// not wait for it. It does not wait for a place itself.
func (s *server) take(ctx, life context.Context, m *nats.Msg) {
	arrived := time.Now()
	verb, who, err := s.asked(m)
	switch {
	case errors.Is(err, errNoAsker):
		s.reply(m.Reply, nil, events.BadRequest(&events.FieldError{Field: "subject", Err: err}))
		return
	case err != nil:
		s.conn.Log.Debug().AnErr("err", err).Str("service", s.service).Str("entity",
			m.Subject).Msg("request dropped")
		return
	}
	ep, ok := s.endpoints[verb]
	// another version of the service may have it
	if !ok {
		s.reply(m.Reply, nil, events.Unavailable("the "+s.service+" service has no verb "+verb+" in this version"))
		return
	}
	if n := headerBytes(m); n > headerBytesMax {
		s.reply(m.Reply, nil, events.TooLarge(fmt.Sprintf("the headers of the request take %d bytes, more than %d",
			n, headerBytesMax), headerBytesMax))
		return
	}
	// decoded headers take many times their size, so a job does not keep the message
	to, body, until := m.Reply, m.Data, arrived.Add(allowed(ep, m.Header))
	stopping := func() { s.reply(to, nil, s.stopping()) }
	run := func() {
		started := time.Now()
		ctx, cancel := context.WithDeadline(life, until)
		defer cancel()
		out, err := s.handle(ctx, ep, who, body, arrived)
		s.found.count(verb, who.Class != "", time.Since(started), err)
		if _, refused := errors.AsType[*events.Refusal](err); err != nil && !refused && life.Err() != nil {
			err = s.stopping()
		}
		s.deliver(ctx, to, out, err)
	}
	switch {
	case s.places.enter(who, job{bytes: m.Size() + jobBytes, run: run, refuse: stopping}):
	case ctx.Err() != nil:
		stopping()
	default:
		s.reply(to, nil, events.Unavailable("too many requests of "+cmp.Or(who.ID, "this cell")+
			" wait: ask again"))
	}
}

// stopping is the refusal of a request that this process does not finish.
func (s *server) stopping() error {
	return events.Unavailable("the " + s.service + " service is stopping: ask again")
}

// headerBytes returns the size of the headers of a received message, as they are encoded.
func headerBytes(m *nats.Msg) int { return m.Size() - len(m.Data) - len(m.Subject) - len(m.Reply) }

// allowed returns how long a request may take: as long as its verb takes, and no longer than its asker waits.
func allowed(ep Endpoint, h nats.Header) time.Duration {
	wait, err := strconv.ParseInt(h.Get(headerWait), 10, 64)
	if most := ep.timeMax(); err != nil || wait < 1 || wait > most.Milliseconds() {
		return most
	}
	return time.Duration(wait) * time.Millisecond
}

// handle completes the body with the asker and calls the endpoint. The time of a request is that since it arrived here:
// nothing runs for a caller that no longer waits.
func (s *server) handle(ctx context.Context, ep Endpoint, who signer, body []byte, arrived time.Time) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, events.Unavailable(fmt.Sprintf("the request waited for %s in the %s service: ask again",
			time.Since(arrived).Round(time.Millisecond), s.service))
	}
	ctx = WithAsker(ctx, events.Asker(who))
	body, err := who.sign(body)
	if err != nil {
		return nil, err
	}
	return s.call(ctx, ep, body)
}

// call handles one request; a panic becomes an error, so that one bad request does not end the others.
func (s *server) call(ctx context.Context, ep Endpoint, body []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.conn.Log.Error().Str("service", s.service).Str("entity", ep.Verb).Str("err", fmt.Sprint(p)).
				Msgf("panic in a request\n%s", debug.Stack())
			out, err = nil, events.Unavailable(fmt.Sprintf("%s failed inside the %s service: see its log", ep.Verb,
				s.service))
		}
	}()
	return ep.Handle(ctx, body)
}

// refusalFor returns the refusal for a handler's error. Of foreign errors, only a log that lost commits cannot be
// helped by another attempt.
func refusalFor(err error) *events.Refusal {
	if r, ok := errors.AsType[*events.Refusal](err); ok {
		return r
	}
	if errors.Is(err, core.ErrLogBehind) {
		return events.Conflict(err.Error(),
			events.Standing{Status: statusLogBehind,
				Reason: "run `holdfast doctor`: it names what is missing and what to do"})
	}
	return events.Unavailable(err.Error())
}

// statusLogBehind is the status of a refusal about a session whose last commits the log has lost.
const statusLogBehind = "log-behind"

// deliver sends the reply to a request. Without a connection it waits for the broker as long as the caller waits: a
// reply that is dropped is one that the caller waits for until its time ends.
func (s *server) deliver(ctx context.Context, to string, body []byte, err error) {
	for s.reply(to, body, err) {
		if s.conn.AwaitConnected(ctx) != nil {
			return
		}
	}
}

// reply sends the reply. It reports whether the broker is away, so that it was not sent.
func (s *server) reply(to string, body []byte, err error) (away bool) {
	m := &nats.Msg{Subject: to, Data: body}
	if err != nil {
		r := refusalFor(err)
		m.Data = r.Body()
		m.Header = nats.Header{
			micro.ErrorHeader:     {r.Message},
			micro.ErrorCodeHeader: {strconv.Itoa(r.Code)},
		}
	}
	failed := s.conn.NC.PublishMsg(m)
	// the caller times out and asks again
	if failed != nil {
		s.conn.Log.Debug().Str("service", s.service).AnErr("err", failed).Msg("reply not sent")
	}
	return errors.Is(failed, nats.ErrReconnectBufExceeded)
}

// Request sends a request to a service: req is sent as JSON, the reply decoded into reply (nil: ignored). A refusal is
// returned as *[events.Refusal], and so is the absence of the service, as a 503. While the broker is away it waits for
// its return, until ctx ends or for 10 s if ctx has no deadline. [core.ErrUnreachable]: no reply came, and whether the
// request was handled is unknown; requests may be repeated.
func (rs *Services) Request(ctx context.Context, service, verb string, req, reply any) error {
	subject := rs.conn.Cell.AskSubject(service, verb, rs.conn.Asker())
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	// <, > and & would take six bytes each, and the message would be larger than its counted size
	enc.SetEscapeHTML(false)
	if err := enc.Encode(req); err != nil {
		return fmt.Errorf("request %s: %w", subject, err)
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestWaitMaxMS*time.Millisecond)
		defer cancel()
	}
	m, err := rs.ask(ctx, subject, bytes.TrimSuffix(body.Bytes(), []byte("\n")))
	if errors.Is(err, nats.ErrNoResponders) {
		return events.Unavailable(fmt.Sprintf("no process answers %s: the %s service is not running on this cell; "+
			"start it with `holdfast %s` (or `holdfast up`)", subject, service, service))
	}
	if err != nil {
		return err
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		n, err := strconv.Atoi(code)
		if err != nil {
			return fmt.Errorf("request %s: refused with code %q: %s", subject, code,
				m.Header.Get(micro.ErrorHeader))
		}
		return events.ParseRefusal(n, m.Header.Get(micro.ErrorHeader), m.Data)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, reply); err != nil {
		return fmt.Errorf("request %s: reply: %w", subject, err)
	}
	return nil
}

// withWait returns a request that says how long its caller waits. The context has a deadline.
func withWait(ctx context.Context, subject string, body []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: body}
	if until, has := ctx.Deadline(); has {
		// at least 1: a request whose time is over is not sent
		left := max(1, time.Until(until).Milliseconds())
		m.Header = nats.Header{headerWait: {strconv.FormatInt(left, 10)}}
	}
	return m
}

// ask sends one request when the broker is reachable.
func (rs *Services) ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	if err := rs.conn.AwaitConnected(ctx); err != nil {
		return nil, rs.conn.Late("request "+subject, err)
	}
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	status := rs.conn.NC.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	// RemoveStatusListener closes it
	defer rs.conn.NC.RemoveStatusListener(status)
	started := time.Now()
	go func() {
		for {
			denied := rs.conn.Denied.Next()
			if rs.conn.Denied.Since(subject, started) != nil {
				// it was not sent
				cut()
				return
			}
			select {
			case <-denied:
			case _, lost := <-status:
				if lost {
					// no reply can arrive any more
					cut()
				}
				return
			}
		}
	}()
	m, err := rs.conn.NC.RequestMsgWithContext(ctx, withWait(ctx, subject, body))
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, events.TooLarge(fmt.Sprintf("the request takes %d bytes: more than the broker lets through",
			len(body)), int(rs.conn.NC.MaxPayload()))
	}
	if denied := rs.conn.Denied.Since(subject, started); denied != nil {
		return nil, denied
	}
	return nil, rs.conn.Late("request "+subject, err)
}
