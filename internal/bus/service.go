package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of services and hints.
const (
	// requests that one service process handles concurrently; the others wait in its subscription
	requestsAtOnceMax  = 256
	requestHandleMaxMS = 10_000    // for one request within its service, by default
	requestWaitMaxMS   = 10_000    // for one request, when the caller's context has no deadline
	serviceStopGraceMS = 2_000     // for requests in progress when ctx ends
	firedKept          = time.Hour // how long the broker keeps an alarm that has fired
	headerSchedule     = "Nats-Schedule"
	headerScheduleTo   = "Nats-Schedule-Target"
	headerScheduleTTL  = "Nats-Schedule-TTL"
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

// Serve registers the micro service holdfast-<service> and answers its requests, together with all other processes that
// do, until ctx ends. Requests in progress are then finished. It survives the broker's restarts. It fails if the
// service cannot be registered. version is a semantic one.
//
// A request is handled only if it was published to the endpoint's own subject and names an inbox for the reply. A
// message that a stream delivered is dropped, and so is a request with any other reply subject: the broker lets a
// client name every subject there, also those that only this process may publish to.
func (b *Bus) Serve(ctx context.Context, service, version, description string, eps []Endpoint) error {
	svc, err := micro.AddService(b.nc,
		micro.Config{Name: events.ServiceName(service), Version: version, Description: description})
	if err != nil {
		return translate("serve "+service, err)
	}
	s := &server{b: b, service: service, slots: make(chan struct{}, requestsAtOnceMax)}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	for _, ep := range eps {
		bare := b.cell.ServiceSubject(service, ep.Verb)
		handler := s.handler(ctx, life, ep)
		err := errors.Join(svc.AddEndpoint(ep.Verb, handler, micro.WithEndpointSubject(bare)),
			svc.AddEndpoint(ep.Verb+askedSuffix, handler, micro.WithEndpointSubject(bare+".>")))
		if err != nil {
			return errors.Join(translate("serve "+bare, err), svc.Stop())
		}
	}
	b.log.Info().Str("service", service).Msg("serving")
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
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) && b.nc.IsConnected() {
		return translate("stop serving "+service, err)
	}
	return nil
}

// server is one call of Serve.
type server struct {
	b       *Bus
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
			s.b.log.Debug().AnErr("err", err).Str("service", s.service).Str("entity",
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
			s.b.log.Error().Str("service", s.service).Str("entity", ep.Verb).Str("reason", fmt.Sprint(p)).Bytes("err",
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
	if errors.Is(err, ErrLogBehind) {
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
	if err := s.b.nc.PublishMsg(m); err != nil { // the caller times out and asks again
		s.b.log.Debug().Str("service", s.service).AnErr("err", err).Msg("reply not sent")
	}
}

// Request sends a request to a service: req is sent as JSON, the reply decoded into reply (nil: ignored). A refusal is
// returned as *[events.Refusal], and so is the absence of the service, as a 503. While the broker is away it waits for
// its return, until ctx ends or for 10 s if ctx has no deadline. [ErrUnreachable]: no reply came, and whether the
// request was handled is unknown; requests may be repeated.
func (b *Bus) Request(ctx context.Context, service, verb string, req, reply any) error {
	subject := b.cell.AskSubject(service, verb, b.asker())
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
	m, err := b.ask(ctx, subject, bytes.TrimSuffix(body.Bytes(), []byte("\n")))
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

// asker returns the asker of this connection. A broker without logins has no users.
func (b *Bus) asker() events.Asker {
	if !b.nc.AuthRequired() {
		return events.Asker{}
	}
	return b.cfg.Asker
}

// ask sends one request when the broker is reachable.
func (b *Bus) ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	if err := b.awaitConnected(ctx); err != nil {
		return nil, b.late("request "+subject, err)
	}
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	status := b.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer b.nc.RemoveStatusListener(status) // which closes it
	started := time.Now()
	go func() {
		for {
			denied := b.denied.next()
			if b.denied.since(subject, started) != nil {
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
	m, err := b.nc.RequestWithContext(ctx, subject, body)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, events.TooLarge(fmt.Sprintf("the request takes %d bytes: more than the broker lets through",
			len(body)), int(b.nc.MaxPayload()))
	}
	if denied := b.denied.since(subject, started); denied != nil {
		return nil, denied
	}
	return nil, b.late("request "+subject, err)
}

// Timer is an alarm at the broker. There is one for each What and session.
type Timer struct {
	What string     // one token: the service that decides
	Ref  events.Ref // at which session
	Due  time.Time  // the broker's time; an alarm for the past fires at once
	Body []byte     // comes back with the alarm
	Seq  uint64     // the session's last commit on which it was decided
}

// SetTimer sets an alarm, in place of the present one, under a guard: an alarm that was decided on more of the session
// than this one is kept, and the error is [ErrLostRace]. It fires never early, some 0.1 to 0.3 s late, at least once,
// also after an outage of the broker; [Due] delivers it. An alarm is kept for an hour after it fired: replacing it at
// once would cost the broker a purge, and a write of each consumer's state, for every alarm.
func (b *Bus) SetTimer(ctx context.Context, t Timer) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("bus: set timer: %w", err)
	}
	m := &nats.Msg{Subject: b.cell.TimerSubject(t.What, t.Ref), Data: t.Body, Header: nats.Header{
		// the library's own option drops the fraction: early
		headerSchedule:    {"@at " + t.Due.UTC().Format(time.RFC3339Nano)},
		headerScheduleTo:  {b.cell.DueSubject(t.What, t.Ref)},
		headerScheduleTTL: {ttlSeconds(firedKept)},
		headerSeq:         {strconv.FormatUint(t.Seq, 10)},
	}}
	_, err := b.begin(ctx, b.alarm(m, t.Seq)).Wait(ctx)
	return err
}

// alarm returns the write of an alarm in place of the present one, if any.
func (b *Bus) alarm(msg *nats.Msg, seq uint64) *write {
	guard := uint64(0)
	setGuard := func(place uint64) {
		guard = place
		msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(place, 10)}
	}
	setGuard(0)
	look := func(ctx context.Context) (verdict, uint64, error) {
		place := uint64(0)
		m, err := b.get(ctx, b.cell.TimerStream(), getRequest{Last: msg.Subject})
		switch {
		case errors.Is(err, ErrNotFound) && !noStream(err): // it fired, or was cancelled
		case err != nil:
			return undecided, 0, err
		case decidedOn(m.Header) > seq:
			return lost, 0, nil
		case decidedOn(m.Header) == seq && m.Header.Get(headerSchedule) == msg.Header.Get(headerSchedule) &&
			bytes.Equal(m.Data, msg.Data):
			return stored, m.Seq, nil
		default:
			place = m.Seq
		}
		if place == guard {
			return undecided, 0, nil
		}
		setGuard(place)
		return moved, 0, nil
	}
	return &write{op: "set timer " + msg.Subject, msg: msg, look: look}
}

// decidedOn returns how much of its session an alarm was decided on; 0 if it does not say.
func decidedOn(h nats.Header) uint64 {
	seq, err := strconv.ParseUint(h.Get(headerSeq), 10, 64)
	if err != nil {
		return 0
	}
	return seq
}

func (t Timer) validate() error {
	if err := t.Ref.Validate(); err != nil {
		return err
	}
	if what, err := events.Token(t.What); err != nil || what != t.What {
		return &events.FieldError{Field: "what", Err: fmt.Errorf("%w: %q: want one token", events.ErrMalformed, t.What)}
	}
	if t.Due.IsZero() {
		return &events.FieldError{Field: "due", Err: fmt.Errorf("%w: no instant", events.ErrMalformed)}
	}
	return nil
}

// CancelTimer removes an alarm. A missing alarm, or one that has fired, is a success.
func (b *Bus) CancelTimer(ctx context.Context, what string, r events.Ref) error {
	if err := (Timer{What: what, Ref: r, Due: time.Now()}).validate(); err != nil {
		return fmt.Errorf("bus: cancel timer: %w", err)
	}
	req := map[string]string{"filter": b.cell.TimerSubject(what, r)}
	return b.call(ctx, "cancel timer "+req["filter"], "STREAM.PURGE."+b.cell.TimerStream(), req, new(json0))
}

// nudge is the body of a nudge.
type nudge struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
}

// Nudge hints to the session's harness that seq was appended to it. It may be lost.
func (b *Bus) Nudge(r events.Ref, seq uint64) {
	body, err := json.Marshal(nudge{Session: r.Session, Seq: seq})
	if err == nil {
		err = b.nc.Publish(b.cell.NudgeSubject(r.Harness), body)
	}
	if err != nil {
		b.log.Debug().Str("session", r.String()).AnErr("err", err).Msg("not nudged")
	}
}

// OnNudge calls fn for each nudge to this harness, one at a time, until ctx ends. It returns when the broker has the
// subscription.
func (b *Bus) OnNudge(ctx context.Context, harness string, fn func(session string, seq uint64)) error {
	subject := b.cell.NudgeSubject(harness)
	return b.onHint(ctx, subject, func(m *nats.Msg) {
		var n nudge
		if m.Subject != subject || delivered(m.Header, m.Reply) {
			b.log.Debug().Str("entity", m.Subject).Msg("nudge that a stream delivered")
			return
		}
		if err := json.Unmarshal(m.Data, &n); err != nil || n.Session == "" {
			b.log.Debug().Str("entity", m.Subject).AnErr("err", err).Msg("unreadable nudge")
			return
		}
		fn(n.Session, n.Seq)
	})
}

// Progress hints that a session is alive. It may be lost. Send at most one a second.
func (b *Bus) Progress(r events.Ref) {
	if err := b.nc.Publish(b.cell.ProgressSubject(r), nil); err != nil {
		b.log.Debug().Str("session", r.String()).AnErr("err", err).Msg("progress not sent")
	}
}

// OnProgress calls fn for each progress ping of any session, one at a time, until ctx ends. It returns when the broker
// has the subscription.
func (b *Bus) OnProgress(ctx context.Context, fn func(events.Ref)) error {
	prefix := b.cell.Prefix() + ".progress."
	return b.onHint(ctx, prefix+"*.*", func(m *nats.Msg) {
		rest, ours := strings.CutPrefix(m.Subject, prefix)
		harness, session, _ := strings.Cut(rest, ".")
		if !ours || delivered(m.Header, m.Reply) {
			b.log.Debug().Str("entity", m.Subject).Msg("sign of life that a stream delivered")
			return
		}
		h, err := events.ID(harness)
		s, err2 := events.ID(session)
		if err != nil || err2 != nil {
			b.log.Debug().Str("entity", m.Subject).AnErr("err", errors.Join(err, err2)).Msg("unreadable sign of life")
			return
		}
		fn(events.Ref{Harness: h, Session: s})
	})
}

// onHint subscribes until ctx ends and returns when the broker has the subscription.
func (b *Bus) onHint(ctx context.Context, subject string, fn nats.MsgHandler) error {
	if err := b.awaitConnected(ctx); err != nil {
		return b.late("subscribe to "+subject, err)
	}
	sub, err := b.nc.Subscribe(subject, fn)
	if err != nil {
		return translate("subscribe to "+subject, err)
	}
	started := time.Now()
	context.AfterFunc(ctx, func() {
		if err := ignoreClosed(sub.Unsubscribe()); err != nil {
			b.log.Debug().Str("entity", subject).AnErr("err", err).Msg("not unsubscribed")
		}
	})
	if err := b.flush(ctx); err != nil {
		return b.late("subscribe to "+subject, err)
	}
	return b.denied.since(subject, started)
}

// flush returns when the broker has processed everything sent so far. After a lost connection it waits for the next
// one, on which the client subscribes again.
func (b *Bus) flush(ctx context.Context) error {
	for {
		once, cancel := context.WithTimeout(ctx, requestTimeoutMS*time.Millisecond)
		err := b.nc.FlushWithContext(once)
		cancel()
		// so a flush ends when its connection is lost
		lost := errors.Is(err, nats.ErrConnectionClosed) && !b.nc.IsClosed()
		if !lost {
			return err
		}
		if err := b.awaitConnected(ctx); err != nil {
			return err
		}
	}
}
