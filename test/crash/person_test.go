package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/child"
)

// Habits of people.
const (
	peopleMax      = 3   // that use the same screen at once
	readPauseMaxMS = 150 // between two acts of a person
	requestMax     = 8 * time.Second
)

// screen is what people see: the waiting prompts and the sessions, kept up to date by a watch for the whole run.
type screen struct {
	mu    sync.Mutex
	waits map[string]session.Blocker
	seen  []seen
	known map[string]int // index in seen of each session, by key
}

// playPerson has some people answer, reject, dismiss, stop and close what they see, and send, withdraw, compact and
// retry.
func playPerson(ctx context.Context, s settings, log zerolog.Logger, rest <-chan struct{}) error {
	j, err := openJournal(s.Journal, s.Name)
	if err != nil {
		return err
	}
	b, err := bus.Open(ctx, bus.Config{URL: s.URL, Name: s.Name, Log: log})
	if err != nil {
		return err
	}
	defer b.Close()
	sc := &screen{waits: map[string]session.Blocker{}, known: map[string]int{}}
	ended := make(chan error, 1)
	go func() {
		ended <- b.KV.Watch(ctx, kv.State, []string{events.BlockerKeys("", ""), events.SessionKeys("")}, sc.show)
	}()
	if err := child.Print(lineReady); err != nil {
		return err
	}
	var people sync.WaitGroup
	for i := range peopleMax {
		p := &person{bus: b, j: j, screen: sc, name: fmt.Sprintf("person-%d", i),
			rnd: rand.New(rand.NewPCG(s.Seed, uint64(i)))}
		people.Go(func() { p.live(ctx, rest) })
	}
	people.Wait()
	if err := child.Print(lineIdle); err != nil {
		return err
	}
	return <-ended
}

// show applies one change of the people's view.
func (s *screen) show(u kv.Update) error {
	if u.Ready {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := events.ParseSessionKey(u.Key); err == nil {
		return s.showSession(u)
	}
	delete(s.waits, u.Key)
	if u.Deleted {
		return nil
	}
	var b session.Blocker
	if err := json.Unmarshal(u.Value, &b); err != nil {
		return err
	}
	if b.Status == session.Awaiting {
		s.waits[u.Key] = b
	}
	return nil
}

// any returns one of the waiting prompts, if there is one.
func (s *screen) any(rnd *rand.Rand) (b session.Blocker, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waits) == 0 {
		return b, false
	}
	n := rnd.IntN(len(s.waits))
	for _, b = range s.waits {
		if n == 0 {
			break
		}
		n--
	}
	return b, true
}

type person struct {
	bus    *bus.Bus
	j      *journal
	screen *screen
	name   string
	rnd    *rand.Rand
	sent   int
}

func (p *person) live(ctx context.Context, rest <-chan struct{}) {
	for {
		t := time.NewTimer(time.Duration(p.rnd.IntN(readPauseMaxMS)) * time.Millisecond)
		select {
		case <-t.C:
		case <-rest:
			t.Stop()
			return
		case <-ctx.Done():
			t.Stop()
			return
		}
		b, waits := p.screen.any(p.rnd)
		x, ok := p.screen.session(p.rnd)
		switch {
		case waits && p.rnd.IntN(2) == 0:
			p.act(ctx, b)
		case ok:
			p.speak(ctx, x)
		}
	}
}

// act decides a prompt.
func (p *person) act(ctx context.Context, b session.Blocker) {
	r := events.Ref{Harness: b.Harness, Session: b.Session}
	p.sent++
	text := fmt.Sprintf("%s says %d", p.name, p.sent)
	switch n := p.rnd.IntN(100); {
	case n < 60:
		p.answer(ctx, r, b, text)
	case n < 75:
		p.ask(ctx, "reject", "prompt.rejected", note{Ref: r, Prompt: b.Prompt, Text: text},
			request.Reject{Ref: r, Prompt: b.Prompt, Text: text, By: p.name})
	case n < 85:
		p.ask(ctx, "dismiss", "prompt.dismissed", note{Ref: r, Prompt: b.Prompt},
			request.Dismiss{Ref: r, Prompt: b.Prompt, By: p.name})
	case n < 97:
		p.ask(ctx, "stop", "", note{Ref: r}, request.Stop{Ref: r, By: p.name, Force: p.rnd.IntN(2) == 0})
	default:
		p.ask(ctx, "close", "", note{Ref: r}, request.Close{Ref: r, Reason: "archived", By: p.name})
	}
}

func (p *person) answer(ctx context.Context, r events.Ref, b session.Blocker, text string) {
	w := request.Answer{Ref: r, Prompt: b.Prompt, By: p.name}
	for _, q := range b.Questions {
		x := events.Answer{Question: q.ID, Text: text}
		if len(q.Options) > 0 {
			text = q.Options[0].Label
			x = events.Answer{Question: q.ID, Selected: []string{text}}
		}
		w.Answers = append(w.Answers, x)
	}
	p.ask(ctx, "answer", "prompt.answered", note{Ref: r, Prompt: b.Prompt, Text: text}, w)
}

// ask sends a request to a service, and records the reply: the place of the act, or the present state.
func (p *person) ask(ctx context.Context, verb, kind string, n note, req any) {
	ctx, cancel := context.WithTimeout(ctx, requestMax)
	defer cancel()
	var reply struct {
		Seq uint64 `json:"seq"`
	}
	err := p.bus.Services.Request(ctx, service(verb), verb, req, &reply)
	refusal, refused := errors.AsType[*events.Refusal](err)
	switch {
	case err == nil:
		n.Kind, n.Seq = kind, reply.Seq
		p.j.write(n)
	case refused && refusal.Stands != nil && n.Prompt != "":
		n.Status, n.Text = refusal.Stands.Status, ""
		p.j.write(n)
	case refused && refusal.Stands != nil, refused && refusal.Code == 503, ctx.Err() != nil,
		errors.Is(err, bus.ErrUnreachable):
	case refused && refusal.Code == 404 && verb == "withdraw":
		// handed out long ago
	default:
		n.Wrong = fmt.Sprintf("%s: %v", verb, err)
		p.j.write(n)
	}
}
