package harness_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// marshaler is a value of a user whose encoding is user code.
type marshaler func()

func (m marshaler) MarshalJSON() ([]byte, error) {
	m()
	return []byte(`"x"`), nil
}

// callbacks are all ways in which the client runs user code. Each arranges that the callback runs once, given h and the
// session s of this process, and gives it the session that it was called for.
var callbacks = map[string]func(w *world, h *harness.Harness, s *harness.Session, callback func(*harness.Session)){
	"Worker.Options, own session": func(w *world, h *harness.Harness, s *harness.Session,
		callback func(*harness.Session)) {
		w.work(h, harness.Worker{Options: func(s *harness.Session, _ session.WorkTurn) any { callback(s); return "x" },
			Turn: func(context.Context, *harness.Turn) error { return nil }})
		w.request(s.ID(), "t1", "x")
	},
	"Worker.Options, session without an owner": func(w *world, h *harness.Harness, _ *harness.Session,
		callback func(*harness.Session)) {
		w.work(h, harness.Worker{Options: func(s *harness.Session, _ session.WorkTurn) any { callback(s); return "x" },
			Turn: func(context.Context, *harness.Turn) error { return nil }})
		w.released(h, "free")
		w.request("free", "t1", "x")
	},
	"Worker.Turn": func(w *world, h *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		w.work(h, harness.Worker{Turn: func(_ context.Context, t *harness.Turn) error {
			callback(t.Session())
			return nil
		}})
		w.request(s.ID(), "t1", "x")
	},
	"Worker.Compact": func(w *world, h *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		w.work(h, harness.Worker{Compact: func(_ context.Context, s *harness.Session, _ session.WorkCompaction) (int64,
			error) {
			callback(s)
			return 0, nil
		}})
		w.append(s.ID(), events.WriterCompaction,
			events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual})
	},
	"Config.Log": func(w *world, h *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		onLog.Store(h, func() { callback(s) })
		go func() { _, _ = h.Open(w.ctx, "logged", harness.OpenOptions{}) }()
	},
	"Opening.Native": func(w *world, h *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		go func() {
			_, _ = h.Open(w.ctx, "native", harness.OpenOptions{Native: marshaler(func() { callback(s) })})
		}()
	},
	"Adopt": func(w *world, h *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		w.released(h, "adopted")
		w.append("adopted", events.WriterLedger, events.SessionConfigured{ProviderChanged: true, By: "ada"})
		p := harness.Prompt{ID: "p", Title: "again", Native: marshaler(func() { callback(s) })}
		go func() { _, _ = h.Claim(w.ctx, "adopted", harness.Adopt{Prompts: []harness.Prompt{p}}) }()
	},
	"Start": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		go func() {
			_, _ = s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: marshaler(func() { callback(s) })})
		}()
	},
	"Prompt": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		go func() {
			_, _ = s.Ask(w.ctx, harness.Prompt{ID: "p", Native: marshaler(func() { callback(s) })})
		}()
	},
	"Prompt.Bring": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		go func() {
			_, _ = s.Ask(w.ctx, harness.Prompt{ID: "p", Questions: question(), Bring: func(context.Context,
				harness.Answer) error {
				callback(s)
				return nil
			}})
		}()
		w.awaiting(s.ID(), "p")
		w.answerSilently(s.ID(), "p")
	},
	"Step": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		inATurn(w, s, func(turn *harness.Turn) {
			_, _ = harness.Step(w.ctx, turn, "step", func(context.Context) (int, error) {
				callback(s)
				return 1, nil
			})
		})
	},
	"the result of a Step": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		inATurn(w, s, func(turn *harness.Turn) {
			_, _ = harness.Step(w.ctx, turn, "step", func(context.Context) (any, error) {
				return marshaler(func() { callback(s) }), nil
			})
		})
	},
	"StepInput": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		inATurn(w, s, func(turn *harness.Turn) {
			_, _ = harness.Step(w.ctx, turn, "step", func(context.Context) (int, error) { return 1, nil },
				harness.StepInput(marshaler(func() { callback(s) })))
		})
	},
	"WaitFor": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		inATurn(w, s, func(turn *harness.Turn) {
			_ = turn.WaitFor(func() error {
				callback(s)
				return nil
			})
		})
	},
	"Tool": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		inATurn(w, s, func(turn *harness.Turn) {
			_, _ = turn.Tool(w.ctx, harness.ToolOptions{Name: "bash", Input: marshaler(func() { callback(s) })})
		})
	},
	"Call.Complete": func(w *world, _ *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		inATurn(w, s, func(turn *harness.Turn) {
			call, err := turn.Tool(w.ctx, harness.ToolOptions{Name: "bash"})
			if err == nil {
				_ = call.Complete(w.ctx, marshaler(func() { callback(s) }))
			}
		})
	},
	"Message": func(w *world, h *harness.Harness, s *harness.Session, callback func(*harness.Session)) {
		go func() {
			_, _ = h.Send(w.ctx, harness.Message{Session: s.ID(), Content: marshaler(func() { callback(s) })})
		}()
	},
	"the error that a context ends with": func(w *world, _ *harness.Harness, s *harness.Session,
		callback func(*harness.Session)) {
		ctx, cancel := context.WithCancelCause(w.ctx)
		release := harness.Mute(s)
		go func() {
			_ = s.Append(ctx, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
		}()
		go func() {
			for harness.Waiting(s) == 0 {
				select {
				case <-w.ctx.Done():
				case <-time.After(time.Millisecond):
				}
			}
			var once sync.Once
			cancel(speaker(func() {
				once.Do(release) // before it could be stored
				callback(s)
			}))
		}()
	},
}

// inATurn begins a turn of s, and calls do with it in a goroutine.
func inATurn(w *world, s *harness.Session, do func(*harness.Turn)) {
	turn := must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	go do(turn)
}

// speaker is an error of a user whose text is user code.
type speaker func()

func (s speaker) Error() string { s(); return "x" }

// onLog is what a harness's log writer calls, by harness.
var onLog sync.Map

// logWriter calls what is in onLog for a harness, which is not known yet when its logger is made.
type logWriter struct {
	h atomic.Pointer[harness.Harness]
}

func (l *logWriter) Write(p []byte) (int, error) {
	if f, ok := onLog.Load(l.h.Load()); ok {
		f.(func())()
	}
	return len(p), nil
}

// methods are calls of all methods of the client. None may take longer than its context.
func methods(h *harness.Harness, s, other *harness.Session,
	turn *harness.Turn) map[any]map[string]func(context.Context) {
	call, stream := other.Call("c1"), turn.Stream()
	return map[any]map[string]func(context.Context){
		h: {
			"ID":          func(context.Context) { h.ID() },
			"Incarnation": func(context.Context) { h.Incarnation() },
			"Context":     func(context.Context) { h.Context() },
			"Sessions":    func(ctx context.Context) { _, _, _ = h.Sessions(ctx) },
			"Open":        func(ctx context.Context) { _, _ = h.Open(ctx, s.ID(), harness.OpenOptions{}) },
			"Claim":       func(ctx context.Context) { _, _ = h.Claim(ctx, s.ID()) },
			"Ready":       func(ctx context.Context) { _ = h.Ready(ctx) },
			"Send": func(ctx context.Context) {
				_, _ = h.Send(ctx, harness.Message{Session: s.ID(), Content: "x"})
			},
			"Work":    func(ctx context.Context) { _ = h.Work(ctx, harness.Worker{}) },
			"Close":   nil, // called at the end
			"Abandon": nil, "AbandonBecause": nil,
		},
		s: {
			"ID":        func(context.Context) { s.ID() },
			"Context":   func(context.Context) { s.Context() },
			"State":     func(context.Context) { s.State() },
			"OpenTurn":  func(context.Context) { s.OpenTurn() },
			"Call":      func(context.Context) { s.Call("c2") },
			"Progress":  func(context.Context) { s.Progress() },
			"Regain":    func(ctx context.Context) { _ = s.Regain(ctx) },
			"Append":    func(ctx context.Context) { _ = s.Append(ctx, events.MessageAccepted{Message: "m"}) },
			"Relay":     func(ctx context.Context) { _ = s.Relay(ctx, events.ToolStarted{Call: "c2"}) },
			"StartTurn": func(ctx context.Context) { _, _ = s.StartTurn(ctx, harness.StartOptions{ID: "t9"}) },
			"Ask":       func(ctx context.Context) { _, _ = s.Ask(ctx, harness.Prompt{ID: "p9"}) },
			"Answer":    func(ctx context.Context) { _, _ = s.Answer(ctx, "p9") },
			"Requested": func(ctx context.Context) { _, _ = s.Requested(ctx, "p9") },
			"Confirm":   func(ctx context.Context) { _ = s.Confirm(ctx) },
			"Result":    func(ctx context.Context) { _, _ = s.Result(ctx, "c2") },
			"Refuse":    func(ctx context.Context) { _ = s.Refuse(ctx, "p9", "no") },
			"Withdraw":  func(ctx context.Context) { _ = s.Withdraw(ctx, "p9", "no") },
			"Release":   nil,
			"Close":     nil,
		},
		turn: {
			"ID":        func(context.Context) { turn.ID() },
			"Session":   func(context.Context) { turn.Session() },
			"Request":   func(context.Context) { turn.Request() },
			"Decisions": func(ctx context.Context) { _, _ = turn.Decisions(ctx) },
			"Context":   func(context.Context) { turn.Context() },
			"Content":   func(ctx context.Context) { _, _ = turn.Content(ctx) },
			"Options":   func(context.Context) { _, _ = turn.Options(new(string)) },
			"Progress":  func(context.Context) { turn.Progress() },
			"Stream":    func(context.Context) { turn.Stream() },
			"Usage":     func(ctx context.Context) { _ = turn.Usage(ctx, input(5)) },
			"Tool": func(ctx context.Context) {
				_, _ = turn.Tool(ctx, harness.ToolOptions{ID: "c1", Name: "bash"})
			},
			"Ask":      func(ctx context.Context) { _, _ = turn.Ask(ctx, harness.Prompt{ID: "p8"}) },
			"AskOnce":  func(ctx context.Context) { _, _ = turn.AskOnce(ctx, "p7", harness.Prompt{}) },
			"WaitFor":  func(context.Context) { _ = turn.WaitFor(func() error { return nil }) },
			"Complete": nil,
			"Fail":     nil,
			"FailWith": nil,
			"Stop":     nil,
		},
		call: {
			"ID":       func(context.Context) { call.ID() },
			"Complete": func(ctx context.Context) { _ = call.Complete(ctx, "x") },
			"Fail":     func(ctx context.Context) { _ = call.Fail(ctx, events.Failure{Kind: "x"}) },
		},
		stream: {
			"Delta":     func(context.Context) { stream.Delta(true) },
			"Finish":    func(context.Context) { stream.Finish("stop") },
			"HadOutput": func(context.Context) { stream.HadOutput() },
			"Err":       func(context.Context) { _ = stream.Err(io.EOF) },
		},
	}
}

// TestCallbacks checks that user code never runs under a lock of the client: wherever the client runs it, it may call
// every method, and it may block while the lease is lost, without keeping the process from starting over.
func TestCallbacks(t *testing.T) {
	for name, arrange := range callbacks {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			writer := &logWriter{}
			h := w.connect(func(c *harness.Config) {
				c.TTL, c.Log = 2*time.Second,
					slog.New(slog.NewJSONHandler(writer, nil))
			})
			writer.h.Store(h)
			defer onLog.Delete(h)
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			other := must[*harness.Session](t)(h.Open(w.ctx, "other", harness.OpenOptions{}))
			turn := must[*harness.Turn](t)(other.StartTurn(w.ctx, harness.StartOptions{ID: "o1"}))
			check(t, h.Ready(w.ctx))
			at, done := newPlace(), make(chan struct{})
			var once sync.Once
			arrange(w, h, s, func(s *harness.Session) {
				once.Do(func() {
					defer close(done)
					everything(w, h, s, other, turn, at)
				})
			})
			select {
			case <-done:
			case <-time.After(patience):
				t.Fatalf("the callback hangs in: %s", at.get())
			}
			if err := at.err; err != nil {
				t.Error(err)
			}
		})
	}
}

// place is what a callback is doing.
type place struct {
	mu   sync.Mutex
	what string
	err  error // read it when the callback is done
}

func newPlace() *place { return &place{what: "nothing: it was not called"} }

func (p *place) set(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = what
}

func (p *place) get() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.what
}

// everything is the callback: it calls every method, blocks until the process has started over after a lost lease, and
// ends the sessions and the process.
func everything(w *world, h *harness.Harness, s, other *harness.Session, turn *harness.Turn, at *place) {
	each := func(what string, most time.Duration, call func(context.Context)) {
		at.set(what)
		ctx, cancel := context.WithTimeout(w.ctx, most)
		defer cancel()
		call(ctx)
	}
	for on, calls := range methods(h, s, other, turn) {
		typ := reflect.TypeOf(on)
		for i := range typ.NumMethod() {
			method := typ.Method(i).Name
			call, known := calls[method]
			if !known {
				at.err = errors.Join(at.err, fmt.Errorf("%s.%s is not called: add it to methods", typ, method))
			}
			if call != nil {
				each(fmt.Sprint(typ, ".", method), time.Second/10, call)
			}
		}
	}
	before := h.Incarnation()
	at.set("waiting for the process to start over")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for h.Incarnation() == before && w.ctx.Err() == nil {
		key := events.HarnessLeaseKey(me, before)
		if e, err := w.bus.KV.Load(w.ctx, kv.Leases, key); err == nil {
			// lost to a renewal: next time
			_ = w.bus.KV.Delete(w.ctx, kv.Leases, key, e.Rev)
		}
		<-tick.C
	}
	each("Regain", patience/2, func(ctx context.Context) { at.err = errors.Join(at.err, other.Regain(ctx)) })
	soon := time.Second
	each("Turn.FailWith", soon, func(ctx context.Context) { _ = turn.FailWith(ctx, errors.New("x")) })
	each("Turn.Fail", soon, func(ctx context.Context) { _ = turn.Fail(ctx, events.Failure{Kind: "x"}, false) })
	each("Turn.Stop", soon, func(ctx context.Context) { _ = turn.Stop(ctx, events.ActorPerson, "x") })
	each("Turn.Complete", soon, func(ctx context.Context) { _ = turn.Complete(ctx, "") })
	each("Session.Release", soon, func(ctx context.Context) { _ = s.Release(ctx, "x") })
	each("Session.Close", soon, func(ctx context.Context) { _ = s.Close(ctx, "finished") })
	each("Harness.Close", 3*soon, func(ctx context.Context) { _ = h.Close(ctx) })
	each("Harness.Abandon", soon, func(context.Context) { h.Abandon() })
	at.set("nothing: it has returned")
}

// TestWorkReturns checks that Work returns soon after its context has ended, when a handler returned while the broker
// was away and what it says last cannot be stored: before the context ended, and after. It is stored when the broker is
// back. In a pool the release of the session follows, within the same bound.
func TestWorkReturns(t *testing.T) {
	type when struct{ before, pool bool }
	for name, c := range map[string]when{"returned before": {before: true}, "returned after": {},
		"returned before, in a pool": {before: true, pool: true}, "returned after, in a pool": {pool: true}} {
		for kind, ask := range map[string]func(*world){
			"turn": func(w *world) { w.request("s", "t1", "x") },
			"compaction": func(w *world) {
				w.append("s", events.WriterCompaction,
					events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual})
			},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				// it mostly waits
				t.Parallel()
				w := newWorld(t)
				h := w.connect(func(cfg *harness.Config) { cfg.TTL, cfg.Pool = time.Minute, c.pool })
				check(t, h.Ready(w.ctx))
				w.released(h, "s")
				running, end := make(chan *harness.Session), make(chan struct{})
				handle := func(s *harness.Session) error {
					running <- s
					<-end
					return nil
				}
				ctx, cancel := context.WithCancel(w.ctx)
				done := make(chan error, 1)
				go func() {
					done <- h.Work(ctx, harness.Worker{Turn: func(_ context.Context, t *harness.Turn) error {
						return handle(t.Session())
					},
						Compact: func(_ context.Context, s *harness.Session, _ session.WorkCompaction) (int64, error) {
							return 0, handle(s)
						}})
				}()
				ask(w)
				w.show("s")
				s := <-running
				w.server.Shutdown()
				w.sendsFirst(s)
				if c.before {
					close(end)
					for harness.Waiting(s) < 2 {
						select {
						case <-w.ctx.Done():
							t.Fatal("the turn's end does not wait to be stored")
						case <-time.After(time.Millisecond):
						}
					}
				}
				cancel()
				if !c.before {
					close(end)
				}
				select {
				case err := <-done:
					check(t, err)
				case <-time.After(harness.LastWordMax + 5*time.Second):
					t.Fatal("Work does not return in time")
				}
				w.back()
				w.until("s", "the end to be stored", func(st *session.State) bool {
					turn, compacted := st.LastTurn, st.LastCompaction
					return turn != nil && turn.Outcome == session.OutcomeCompleted ||
						compacted != nil && compacted.Outcome == session.OutcomeCompleted
				})
				if c.pool {
					w.until("s", "the session to be released", func(st *session.State) bool { return !st.Owned })
				}
			})
		}
	}
}

// TestLogLines checks that what is logged reaches the logger of the configuration with its level and its fields, that a
// logger which blocks is waited for only for a while, and that lines beyond the limit are dropped and counted.
func TestLogLines(t *testing.T) {
	var mu sync.Mutex
	var got []map[string]any
	block := make(chan struct{})
	first := make(chan struct{})
	var once sync.Once
	log, lines := harness.Detach(slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) {
		once.Do(func() { close(first) })
		<-block
		var m map[string]any
		d := json.NewDecoder(bytes.NewReader(p))
		d.UseNumber()
		if err := d.Decode(&m); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m)
	}), nil)).With("app", "x"))
	log.Debug().Msg("below the level")
	log.Warn().Str("session", "s").Uint64("seq", 1<<60+1).Bool("waits", true).Float64("took", 1.5).
		AnErr("err", errors.New("no \"luck\"")).Msg("first")
	<-first
	for range harness.LinesMax + 5 {
		log.Info().Msg("more")
	}
	began := time.Now()
	ctx, cancel := short(context.Background())
	defer cancel()
	lines.Flush(ctx)
	if took := time.Since(began); took < time.Second/3 {
		t.Errorf("the logger was not waited for: %s", took)
	}
	close(block)
	for lines.Busy() {
		lines.Flush(context.Background())
	}
	began, pulse := time.Now(), natstest.Feel(t)
	lines.Flush(context.Background())
	if took := time.Since(began); took >= time.Second+pulse.Lost() {
		t.Errorf("waited %s for nothing", took)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1+harness.LinesMax+1 {
		t.Fatalf("%d lines", len(got))
	}
	if m := got[0]; m["level"] != "WARN" || m["msg"] != "first" || m["session"] != "s" || m["err"] != `no "luck"` ||
		m["app"] != "x" || m["seq"] != json.Number("1152921504606846977") || m["waits"] != true ||
		m["took"] != json.Number("1.5") {
		t.Errorf("%v", m)
	}
	dropped := 0
	for _, m := range got {
		n := 0
		const text = "the logger was too slow: log lines dropped: %d"
		if _, err := fmt.Sscanf(fmt.Sprint(m["msg"]), text, &n); err == nil {
			dropped += n
		}
	}
	if dropped != 5 {
		t.Errorf("%d lines are said to be dropped, want 5", dropped)
	}
}

// TestFewLines: without a logger the default one gets warnings and lines about the connection, and nothing else.
func TestFewLines(t *testing.T) {
	kept, logged := linesOf(t)
	was := slog.Default()
	slog.SetDefault(kept)
	defer slog.SetDefault(was)
	few, lines := harness.Detach(nil)
	few.Info().Str("entity", "harness").Msg("claimed")
	few.Info().Str("entity", "broker").Msg("broker back")
	few.Warn().Msg("fenced")
	for lines.Busy() {
		lines.Flush(context.Background())
	}
	if got := strings.Join(logged(), "; "); got != `level=INFO msg="broker back"; level=WARN msg=fenced` {
		t.Errorf("without a logger: %s", got)
	}
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
