// Package rpc sends requests to the services of a cell, and serves them.
//
// A request is handled only if it was published to the subject of its endpoint and names an inbox for the reply. In a
// cell with users the subject names the asker. Requests may be repeated.
package rpc

import (
	"bytes"
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
	// requests that one service process handles concurrently; the others wait in its subscription
	requestsAtOnceMax  = 256
	requestHandleMaxMS = 10_000 // for one request within its service, by default
	requestWaitMaxMS   = 10_000 // for one request, when the caller's context has no deadline
	serviceStopGraceMS = 2_000  // for requests in progress when ctx ends
)

// Endpoint answers the requests of one verb.
type Endpoint struct {
	// Verb is the last token of the subject.
	Verb string
	// Handle gets the request's body and returns the reply's. A *[events.Refusal] in its error's chain is the reply;
	// any other error is a 503 with its text. It is called concurrently.
	Handle func(ctx context.Context, body []byte) ([]byte, error)
	// TimeMax is when Handle's ctx ends. Default: 10 s.
	TimeMax time.Duration
}

// Services sends requests to the services of a cell, and serves them. Its methods may be called concurrently.
type Services struct {
	conn *core.Conn
}

// New returns the services of the cell of a connection.
func New(conn *core.Conn) *Services { return &Services{conn: conn} }

// Serve registers the micro service holdfast-<service> and answers its requests, together with all other processes that
// do, until ctx ends. Requests in progress are then finished. It survives the broker's restarts. It fails if the
// service cannot be registered. version is a semantic one.
//
// A request is handled only if it was published to the endpoint's own subject and names an inbox for the reply. A
// message that a stream delivered is dropped, and so is a request with any other reply subject: the broker lets a
// client name every subject there, also those that only this process may publish to.
func (rs *Services) Serve(ctx context.Context, service, version, description string, eps []Endpoint) error {
	svc, err := micro.AddService(rs.conn.NC,
		micro.Config{Name: events.ServiceName(service), Version: version, Description: description})
	if err != nil {
		return core.Translate("serve "+service, err)
	}
	s := &server{conn: rs.conn, service: service, slots: make(chan struct{}, requestsAtOnceMax)}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	for _, ep := range eps {
		bare := rs.conn.Cell.ServiceSubject(service, ep.Verb)
		handler := s.handler(ctx, life, ep)
		err := errors.Join(svc.AddEndpoint(ep.Verb, handler, micro.WithEndpointSubject(bare)),
			svc.AddEndpoint(ep.Verb+askedSuffix, handler, micro.WithEndpointSubject(bare+".>")))
		if err != nil {
			return errors.Join(core.Translate("serve "+bare, err), svc.Stop())
		}
	}
	rs.conn.Log.Info().Str("service", service).Msg("serving")
	<-ctx.Done()
	err = svc.Stop()
	grace, cancel := context.WithTimeout(life, serviceStopGraceMS*time.Millisecond)
	defer cancel()
	for range cap(s.slots) { // all slots taken: no request is in progress
		select {
		case s.slots <- struct{}{}:
		case <-grace.Done():
			return nil
		}
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) && rs.conn.NC.IsConnected() {
		return core.Translate("stop serving "+service, err)
	}
	return nil
}

// server is one call of Serve.
type server struct {
	conn    *core.Conn
	service string
	slots   chan struct{} // one for each request in progress
}

// handler runs each request in a goroutine, as long as there are slots: a request may take several round trips, and
// others must not wait for it.
func (s *server) handler(ctx, life context.Context, ep Endpoint) micro.Handler {
	most := ep.TimeMax
	if most <= 0 {
		most = requestHandleMaxMS * time.Millisecond
	}
	return micro.HandlerFunc(func(req micro.Request) {
		who, err := s.asker(ep.Verb, req)
		if err != nil {
			s.conn.Log.Debug().AnErr("err", err).Str("service", s.service).Str("entity",
				req.Subject()).Msg("request dropped")
			return
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			s.reply(req.Reply(), nil, events.Unavailable("the "+s.service+" service is stopping: ask again"))
			return
		}
		body, reply := req.Data(), req.Reply()
		go func() {
			defer func() { <-s.slots }()
			ctx, cancel := context.WithTimeout(life, most)
			defer cancel()
			body, err := who.sign(body)
			if err != nil {
				s.reply(reply, nil, err)
				return
			}
			out, err := s.call(ctx, ep, body)
			s.reply(reply, out, err)
		}()
	})
}

// call handles one request; a panic becomes an error, so that one bad request does not end the others.
func (s *server) call(ctx context.Context, ep Endpoint, body []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.conn.Log.Error().Str("service", s.service).Str("entity", ep.Verb).Str("reason",
				fmt.Sprint(p)).Bytes("err",
				debug.Stack()).Msg("panic in a request")
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

// reply sends the reply. It does not use the micro request, which does not support another goroutine.
func (s *server) reply(to string, body []byte, err error) {
	m := &nats.Msg{Subject: to, Data: body}
	if err != nil {
		r := refusalFor(err)
		m.Data = r.Body()
		m.Header = nats.Header{
			micro.ErrorHeader:     {r.Message},
			micro.ErrorCodeHeader: {strconv.Itoa(r.Code)},
		}
	}
	if err := s.conn.NC.PublishMsg(m); err != nil { // the caller times out and asks again
		s.conn.Log.Debug().Str("service", s.service).AnErr("err", err).Msg("reply not sent")
	}
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
		return fmt.Errorf("bus: request %s: %w", subject, err)
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
			return fmt.Errorf("bus: request %s: refused with code %q: %s", subject, code,
				m.Header.Get(micro.ErrorHeader))
		}
		return events.ParseRefusal(n, m.Header.Get(micro.ErrorHeader), m.Data)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, reply); err != nil {
		return fmt.Errorf("bus: request %s: reply: %w", subject, err)
	}
	return nil
}

// ask sends one request when the broker is reachable.
func (rs *Services) ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	if err := rs.conn.AwaitConnected(ctx); err != nil {
		return nil, rs.conn.Late("request "+subject, err)
	}
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	status := rs.conn.NC.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer rs.conn.NC.RemoveStatusListener(status) // which closes it
	started := time.Now()
	go func() {
		for {
			denied := rs.conn.Denied.Next()
			if rs.conn.Denied.Since(subject, started) != nil {
				cut() // it was not sent
				return
			}
			select {
			case <-denied:
			case _, lost := <-status:
				if lost {
					cut() // no reply can arrive any more
				}
				return
			}
		}
	}()
	m, err := rs.conn.NC.RequestWithContext(ctx, subject, body)
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
