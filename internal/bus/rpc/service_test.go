package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// serve runs a service until the returned function is called.
func serve(t testing.TB, b *bus.Bus, eps ...rpc.Endpoint) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(bustest.Background(t))
	done := make(chan error, 1)
	go func() { done <- b.Services.Serve(ctx, "ledger", "1.2.3", "folds", eps) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(stop)
	natstest.Until(t, "the service to answer", func() bool {
		err := b.Services.Request(bustest.Background(t), "ledger", eps[len(eps)-1].Verb, nil, nil)
		var r *events.Refusal
		return !errors.As(err, &r) || !strings.Contains(r.Message, "no process answers")
	})
	return stop
}

func endpoint(verb string, handle func(ctx context.Context, body []byte) ([]byte, error)) rpc.Endpoint {
	return rpc.Endpoint{Verb: verb, Handle: handle}
}

// patient returns an endpoint whose requests may wait for a place as long as a test waits.
func patient(verb string, handle func(ctx context.Context, body []byte) ([]byte, error)) rpc.Endpoint {
	return rpc.Endpoint{Verb: verb, Handle: handle, TimeMax: bustest.Patience}
}

func echo(_ context.Context, body []byte) ([]byte, error) { return body, nil }

func TestRequestReturnsTheReply(t *testing.T) {
	_, a, b := bustest.Pair(t)
	stands := events.Standing{Status: "answered", By: "user-1", Seq: 12}
	refusals := map[string]*events.Refusal{
		"bad":      events.BadRequest(&events.FieldError{Field: "by", Err: errors.New("empty")}),
		"missing":  events.NotFound("session", "h/s"),
		"conflict": events.Conflict("answered otherwise", stands),
		"gone":     events.Gone("expired", events.Standing{Status: "expired", Reason: "owner-lost"}),
		"large":    events.TooLarge("too much", 65536),
		"unfit":    {Code: 422, Message: "does not fit", Questions: map[string]string{"q": "no such option"}},
		"later":    events.Unavailable("lost 10 races\nin a row"),
	}
	eps := []rpc.Endpoint{
		endpoint("fails", func(context.Context, []byte) ([]byte, error) { return nil, errors.New("the disk is gone") }),
		endpoint("panics", func(context.Context, []byte) ([]byte, error) { panic("a mistake") }),
		endpoint("get", echo),
	}
	for verb, r := range refusals {
		eps = append(eps, endpoint(verb, func(context.Context, []byte) ([]byte, error) {
			return nil, fmt.Errorf("wrapped: %w", r)
		}))
	}
	eps = append(eps, endpoint("last", echo))
	serve(t, a, eps...)

	var got map[string]int
	if err := b.Services.Request(bustest.Background(t), "ledger", "get", map[string]int{"n": 1}, &got); err != nil ||
		got["n"] != 1 {
		t.Errorf("get: %v, %v", got, err)
	}
	for verb, want := range refusals {
		var r *events.Refusal
		err := b.Services.Request(bustest.Background(t), "ledger", verb, nil, &got)
		if !errors.As(err, &r) || r.Code != want.Code ||
			string(r.Body()) != strings.ReplaceAll(string(want.Body()), `\n`, " ") {
			t.Errorf("%s: got %v, want %v", verb, err, want)
		}
	}
	for verb, why := range map[string]string{"fails": "the disk is gone", "panics": "see its log"} {
		var r *events.Refusal
		err := b.Services.Request(bustest.Background(t), "ledger", verb, nil, &got)
		if !errors.As(err, &r) || r.Code != 503 || !strings.Contains(r.Message, why) {
			t.Errorf("%s: got %v, want 503 with %q", verb, err, why)
		}
	}
	if err := b.Services.Request(bustest.Background(t), "ledger", "get", "no object", &got); err == nil {
		t.Error("a reply that cannot be decoded is no error")
	}
}

// TestLargeRequests: a request is sent with the counted size, and one that the broker does not accept is refused, not
// tried again without end.
func TestLargeRequests(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	serve(t, b, endpoint("get",
		func(_ context.Context, body []byte) ([]byte, error) { return json.Marshal(len(body)) }))
	var n int
	if err := b.Services.Request(bustest.Background(t), "ledger", "get", strings.Repeat("<", 200<<10),
		&n); err != nil ||
		n != 200<<10+2 {
		t.Errorf("%d bytes arrived: %v", n, err)
	}
	err := b.Services.Request(bustest.Background(t), "ledger", "get", strings.Repeat("x", 2<<20), &n)
	if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != 413 || r.LimitMax <= 0 {
		t.Errorf("too large: %v", err)
	}
}

func TestServiceRefusesOnTheWireAsMicroServicesDo(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	serve(t, b, endpoint("get", func(context.Context, []byte) ([]byte, error) {
		return nil, events.NotFound("session", "h/s")
	}))
	m, err := nc.Request("hf.svc.ledger.get", []byte(`{}`), bustest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	if code, text := m.Header.Get("Nats-Service-Error-Code"), m.Header.Get("Nats-Service-Error"); code != "404" ||
		text != "no such session: h/s" {
		t.Errorf("headers say %q %q", code, text)
	}
	if string(m.Data) != `{"what":"session"}` {
		t.Errorf("body is %s", m.Data)
	}
	m, err = nc.Request("$SRV.INFO.holdfast-ledger", nil, bustest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(m.Data, &info); err != nil || info.Name != "holdfast-ledger" || info.Version != "1.2.3" ||
		len(info.Endpoints) != 2 || info.Endpoints[0].Subject != "hf.svc.ledger.get" ||
		info.Endpoints[1].Subject != "hf.svc.ledger.get.>" {
		t.Errorf("discovered %+v, %v", info, err)
	}
}

// A process replies to the requests of `nats micro` about all services, about its service and about itself.
func TestServiceIsFound(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	serve(t, b, endpoint("fails", func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no disk") }),
		endpoint("get", echo))
	for _, subject := range []string{"hf.svc.ledger.fails.ann", "hf.svc.ledger.fails.ann", "hf.svc.ledger.get"} {
		if _, err := nc.Request(subject, []byte(`{}`), bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	id := ""
	for _, kind := range []string{"", ".holdfast-ledger", ".holdfast-ledger.ID"} {
		for _, verb := range []string{"PING", "INFO", "STATS"} {
			subject := "$SRV." + verb + strings.Replace(kind, "ID", id, 1)
			m, err := nc.Request(subject, nil, bustest.Patience)
			if err != nil {
				t.Fatalf("%s: %v", subject, err)
			}
			var got struct {
				micro.ServiceIdentity
				Type      string
				Endpoints []micro.EndpointStats
			}
			if err := json.Unmarshal(m.Data, &got); err != nil || got.Name != "holdfast-ledger" ||
				got.Version != "1.2.3" || got.ID == "" || id != "" && got.ID != id || got.Metadata == nil ||
				got.Type != "io.nats.micro.v1."+strings.ToLower(verb)+"_response" {
				t.Errorf("%s: %s, %v", subject, m.Data, err)
			}
			id = got.ID
			if verb != "STATS" {
				continue
			}
			for _, e := range got.Endpoints {
				if want := map[string]int{"fails": 0, "fails-as": 2}[e.Name]; e.NumErrors != want ||
					want > 0 && (e.NumRequests != want || e.LastError != "no disk" || e.AverageProcessingTime <= 0) {
					t.Errorf("%s: %+v", subject, e)
				}
			}
			if len(got.Endpoints) != 4 {
				t.Errorf("%s: %s", subject, m.Data)
			}
		}
	}
}

// A process does not reply to a request for another process, to one of an unknown kind, and to no inbox.
func TestServiceIsFoundByItsOwnRequestsOnly(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	serve(t, b, endpoint("get", echo))
	const found = "$SRV.PING.holdfast-ledger"
	for subject, reply := range map[string]string{found + ".another": nc.NewInbox(), "$SRV.STOP": nc.NewInbox(),
		found: "hf.svc.ledger.get", "$SRV.PING": "$JS.API.INFO"} {
		replies, err := nc.SubscribeSync(reply)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest(subject, reply, nil); err != nil {
			t.Fatal(err)
		}
		for _, after := range []string{"$SRV.PING", found, found + "." + identity(t, nc)} {
			// on the same subscription
			if _, err := nc.Request(after, nil, bustest.Patience); err != nil {
				t.Fatal(err)
			}
		}
		if n, _, err := replies.Pending(); err != nil || n > 0 {
			t.Errorf("%s with reply to %s: %d replies, %v", subject, reply, n, err)
		}
	}
}

// A service says which streams its process takes the messages of, while it does.
func TestServiceReportsWhereItIsActive(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	serve(t, b, endpoint("get", echo))
	active := func() string {
		t.Helper()
		m, err := nc.Request("$SRV.STATS.holdfast-ledger", nil, bustest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		var got micro.ServiceIdentity
		if err := json.Unmarshal(m.Data, &got); err != nil {
			t.Fatal(err)
		}
		return got.Metadata["active"]
	}
	ctx, stop := context.WithCancel(bustest.Within(t, bustest.Patience))
	defer stop()
	ended := make(chan error, 2)
	for _, durable := range []string{"ledger", "other"} {
		go func() {
			ended <- b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: durable},
				bustest.Discard{})
		}()
	}
	if got := active(); got != "" {
		t.Errorf("active at %q before a message", got)
	}
	mine := events.Ref{Harness: "h", Session: "s"}
	if _, err := b.Log.Append(ctx, mine, events.WriterHarness, 0, []events.Event{bustest.Fact("e", mine)}); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the service to be active", func() bool { return active() == "HF_LOG" })
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := active(); got != "" {
		t.Errorf("active at %q after the end", got)
	}
}

// identity returns the id of the one process of the ledger.
func identity(t *testing.T, nc *nats.Conn) string {
	t.Helper()
	m, err := nc.Request("$SRV.PING.holdfast-ledger", nil, bustest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	var ping micro.Ping
	if err := json.Unmarshal(m.Data, &ping); err != nil || ping.ID == "" {
		t.Fatalf("%s: %v", m.Data, err)
	}
	return ping.ID
}

// A request of a verb that this version of the service does not have is a 503: another process may have it.
func TestAVerbThatTheServiceDoesNotHave(t *testing.T) {
	_, a, b := bustest.Pair(t)
	serve(t, a, endpoint("get", echo))
	err := b.Services.Request(bustest.Background(t), "ledger", "later", nil, nil)
	if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != 503 || !strings.Contains(r.Message, "later") {
		t.Errorf("%v, want a 503 that names the verb", err)
	}
}

func TestServiceWorksOnManyRequestsAtOnce(t *testing.T) {
	const together = 100
	_, a, b := bustest.Pair(t)
	var meet sync.WaitGroup
	meet.Add(together)
	serve(t, a, endpoint("meet", func(ctx context.Context, _ []byte) ([]byte, error) {
		meet.Done()
		all := make(chan struct{})
		go func() {
			meet.Wait()
			close(all)
		}()
		select {
		case <-all:
			return []byte(`true`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}), endpoint("get", echo))
	var wg sync.WaitGroup
	for range together {
		wg.Go(func() {
			if err := b.Services.Request(bustest.Background(t), "ledger", "meet", nil, nil); err != nil {
				t.Errorf("a request that needs the others: %v", err)
			}
		})
	}
	wg.Wait()
}

func TestServiceBoundsWhatItWorksOn(t *testing.T) {
	const limit, asked = 256, 300
	_, a, b := bustest.Pair(t)
	var mu sync.Mutex
	running, most := 0, 0
	var reached sync.Once
	full, open := make(chan struct{}), make(chan struct{})
	serve(t, a, patient("hold", func(ctx context.Context, _ []byte) ([]byte, error) {
		mu.Lock()
		running++
		if most = max(most, running); running == limit {
			reached.Do(func() { close(full) })
		}
		mu.Unlock()
		<-open
		mu.Lock()
		running--
		mu.Unlock()
		return []byte(`1`), nil
	}), endpoint("get", echo))
	var wg sync.WaitGroup
	for range asked {
		wg.Go(func() {
			if err := b.Services.Request(bustest.Background(t), "ledger", "hold", nil, nil); err != nil {
				t.Errorf("request: %v", err)
			}
		})
	}
	bustest.Receive(t, bustest.Closing(full), "the limit to be reached")
	// in which no other may begin
	<-time.After(200 * time.Millisecond)
	close(open)
	wg.Wait()
	if most > limit {
		t.Errorf("%d at once, want at most %d", most, limit)
	}
}

func TestServiceFinishesWhatIsUnderWayWhenItStops(t *testing.T) {
	_, a, b := bustest.Pair(t)
	begun, proceed := make(chan struct{}), make(chan struct{})
	stop := serve(t, a, endpoint("slow", func(ctx context.Context, _ []byte) ([]byte, error) {
		close(begun)
		<-proceed
		return []byte(`1`), ctx.Err()
	}), endpoint("get", echo))
	answered := make(chan error, 1)
	go func() { answered <- b.Services.Request(bustest.Background(t), "ledger", "slow", nil, nil) }()
	<-begun
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	natstest.Until(t, "new requests to find no responder", func() bool {
		var r *events.Refusal
		return errors.As(b.Services.Request(bustest.Background(t), "ledger", "get", nil, nil), &r)
	})
	close(proceed)
	if err := bustest.Receive(t, answered, "the slow answer"); err != nil {
		t.Errorf("a request that was under way: %v", err)
	}
	bustest.Receive(t, bustest.Closing(stopped), "the service to stop")
}

func TestRequestNamesTheMissingService(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	var r *events.Refusal
	err := b.Services.Request(bustest.Background(t), "reconciler", "sweep", nil, nil)
	if !errors.As(err, &r) || r.Code != 503 {
		t.Fatalf("got %v, want a 503", err)
	}
	for _, part := range []string{"reconciler", "hf.svc.reconciler.sweep", "holdfast reconciler", "holdfast up"} {
		if !strings.Contains(r.Message, part) {
			t.Errorf("%q does not name %q", r.Message, part)
		}
	}
}

func TestServiceSurvivesABrokerRestart(t *testing.T) {
	s, a, b := bustest.Pair(t)
	serve(t, a, endpoint("get", echo))
	s.Shutdown()
	short, cancel := context.WithTimeout(bustest.Background(t), 100*time.Millisecond)
	defer cancel()
	if err := b.Services.Request(short, "ledger", "get", nil, nil); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("without a broker: %v, want ErrUnreachable", err)
	}
	answered := make(chan error, 1)
	// asked while the broker is away
	go func() {
		for {
			err := b.Services.Request(bustest.Background(t), "ledger", "get", nil, nil)
			var r *events.Refusal
			// the service may be back a moment after the asker
			if !errors.As(err, &r) {
				answered <- err
				return
			}
		}
	}()
	natstest.Restart(t, s)
	if err := bustest.Receive(t, answered, "an answer after the restart"); err != nil {
		t.Error(err)
	}
}

func TestRequestUnderWayEndsWithTheConnection(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	a := natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	begun := make(chan struct{})
	slow := func(ctx context.Context, _ []byte) ([]byte, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	serve(t, a, rpc.Endpoint{Verb: "slow", Handle: slow, TimeMax: bustest.Patience}, endpoint("get", echo))
	ended := make(chan error, 1)
	go func() { ended <- b.Services.Request(bustest.Background(t), "ledger", "slow", nil, nil) }()
	<-begun
	cut, pulse := time.Now(), natstest.Feel(t)
	p.Cut()
	if err := bustest.Receive(t, ended, "the request to end"); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
	if took := time.Since(cut); took > 2*time.Second+pulse.Lost() {
		t.Errorf("reported %s after the connection was lost", took)
	}
}
