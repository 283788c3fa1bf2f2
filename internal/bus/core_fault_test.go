package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// keptLog is a log that tests read.
type keptLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *keptLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines are those of the log that have this text.
func (l *keptLog) lines(with string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}

// TestOddRepliesOfTheBroker: a reply that is no JSON, has no message or has one that cannot be decoded is an error,
// never an empty answer.
func TestOddRepliesOfTheBroker(t *testing.T) {
	for name, reply := range map[string]string{
		"no JSON":    "not JSON",
		"no message": `{}`,
		"a body in no code": `{"type":"io.nats.jetstream.api.v1.stream_msg_get_response",` +
			`"message":{"subject":"$KV.hf_state.k","seq":1,"data":"!!!","time":"2026-01-01T00:00:00Z"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := scripted(t, func(asked) []said { return says(reply) }).open()
			if e, err := b.Load(within(t, 300*time.Millisecond), bus.State, "k"); err == nil {
				t.Errorf("load: %+v", e)
			}
		})
	}
	b := scripted(t, func(asked) []said { return says("not JSON") }).open()
	if seq, err := b.LastSeq(within(t, patience)); err == nil {
		t.Errorf("the last commit: %d", seq)
	}
}

// TestAWriteThatIsRefusedWithoutAReason: the broker refuses the guard, and its stream has nothing that the guard does
// not know. The writer gives up after some rounds.
func TestAWriteThatIsRefusedWithoutAReason(t *testing.T) {
	t.Parallel() // it mostly waits
	b := scripted(t, func(a asked) []said {
		if a.is("STREAM.MSG.GET") {
			return notFound
		}
		return wrongLast
	}).open()
	err := b.SetTimer(within(t, patience), bus.Timer{What: "x", Ref: session, Due: time.Now(), Seq: 1})
	if !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("%v, want ErrLostRace", err)
	}
}

// TestAGuardOfAProposalUnderWay: the broker refuses a guard while another proposal under it is under way. Nothing can
// be seen of that, so the writer looks for a tenth of a second before it sends again.
func TestAGuardOfAProposalUnderWay(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, write := range map[string]func(ctx context.Context, b *bus.Bus) error{
		"timer": func(ctx context.Context, b *bus.Bus) error {
			return b.SetTimer(ctx, bus.Timer{What: "x", Ref: session, Due: time.Now(), Seq: 1})
		},
		"key": func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Store(ctx, bus.State, key, []byte("x"), 0)
			return err
		},
		"lease": func(ctx context.Context, b *bus.Bus) error {
			_, err := b.AcquireLease(ctx, leaseKey, nil, time.Minute)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var first time.Time
			b := scripted(t, func(a asked) []said {
				switch {
				case a.is("STREAM.MSG.GET"):
					return notFound
				case first.IsZero():
					first = time.Now()
				}
				if time.Since(first) < 300*time.Millisecond {
					return wrongLast
				}
				return says(`{"stream":"S","seq":5}`)
			}).open()
			if err := write(within(t, patience), b); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExpiredLogin: a broker that ends the connection because a login has expired, and refuses the next one, is named
// as the reason of what fails meanwhile.
func TestExpiredLogin(t *testing.T) {
	s := scripted(t, func(asked) []said { return says(`{"state":{"last_seq":3}}`) })
	b := s.open()
	if seq, err := b.LastSeq(within(t, patience)); err != nil || seq != 3 {
		t.Fatal(seq, err)
	}
	s.mu.Lock()
	s.deaf = true
	s.mu.Unlock()
	s.say("-ERR 'User Authentication Expired'")
	s.cut()
	natstest.Until(t, "the reason to be known", func() bool {
		_, err := b.LastSeq(within(t, 50*time.Millisecond))
		return errors.Is(err, bus.ErrForbidden) && strings.Contains(err.Error(), "expired")
	})
	s.mu.Lock()
	s.deaf = false
	s.mu.Unlock()
	natstest.Until(t, "the broker to let us in again", b.Connected)
	if seq, err := b.LastSeq(within(t, patience)); err != nil || seq != 3 {
		t.Error(seq, err)
	}
}

// TestTheReasonIsLoggedOnce: while the broker is away, each reason why it is not reached is logged once.
func TestTheReasonIsLoggedOnce(t *testing.T) {
	s := natstest.Start(t)
	log := &keptLog{}
	b, err := bus.Open(background(t), bus.Config{URL: s.URL(), Log: zerolog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	s.Shutdown()
	down := time.Now()
	natstest.Until(t, "time for several attempts", func() bool { return time.Since(down) > time.Second })
	lines := log.lines("broker not reached")
	if len(lines) == 0 {
		t.Error("nothing is logged")
	}
	for i := 1; i < len(lines); i++ {
		if lines[i] == lines[i-1] {
			t.Errorf("logged again: %s", lines[i])
		}
	}
}

// refusing is an embedded server that gives no connection.
type refusing struct{}

func (refusing) InProcessConn() (net.Conn, error) { return nil, errors.New("not started") }

// TestTheEmbeddedBrokerIsNamed: an error about an embedded broker does not name an address that is not used.
func TestTheEmbeddedBrokerIsNamed(t *testing.T) {
	_, err := bus.Open(within(t, 100*time.Millisecond), bus.Config{Server: refusing{}})
	if !errors.Is(err, bus.ErrUnreachable) || !strings.Contains(err.Error(), "the embedded broker") {
		t.Error(err)
	}
}

// TestCredentialsAreSent: the token of a credentials file is what a client logs in with. A file that is not there is
// named at once.
func TestCredentialsAreSent(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "user.creds")
	text := fmt.Sprintf("-----BEGIN NATS USER JWT-----\ntoken-of-ann\n------END NATS USER JWT------\n\n-----BEGIN "+
		"USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n", seed)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := scripted(t, func(asked) []said { return silence })
	s.wantLogin()
	b, err := bus.Open(within(t, patience), bus.Config{URL: s.url, Creds: path})
	if err != nil {
		t.Fatal(err)
	}
	b.Kill()
	if line := receive(t, s.login, "the login"); !strings.Contains(line, `"jwt":"token-of-ann"`) {
		t.Errorf("logged in with %s", line)
	}
	if _, err := bus.Open(within(t, patience), bus.Config{URL: s.url, Creds: path + "x"}); !errors.Is(err,
		bus.ErrForbidden) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

// TestASeedOfAnotherSort: the seed of an account is refused as a login.
func TestASeedOfAnotherSort(t *testing.T) {
	pair, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(path, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	s := scripted(t, func(asked) []said { return silence })
	if _, err := bus.Open(within(t, 200*time.Millisecond), bus.Config{URL: s.url, NKey: path}); err == nil {
		t.Error("an account's seed is taken")
	}
}

// muchToFeed is n facts of this size.
func muchToFeed(n, size int) (fs []bus.Fed) {
	for i := range n {
		e := fact(fmt.Sprint(i), session)
		e.Kind, e.Fact, e.Data = "other.thing", nil, []byte(`"`+strings.Repeat("x", size)+`"`)
		fs = append(fs, bus.Fed{Ref: session, Seq: uint64(i + 1), Events: []events.Event{e}})
	}
	return fs
}

// TestABrokerThatReadsNothing: a client that writes to a broker which reads nothing, as a frozen one, is blocked in the client
// library, and sends no pings either. It is not blocked for longer than a silent connection lasts, and continues when the broker
// does.
func TestABrokerThatReadsNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	const most = 20 * time.Second
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := newProxy(t, s)
	b := busAt(t, p.addr)
	p.hold(true, true)
	began, pulse := time.Now(), natstest.Feel(t)
	pending := b.Feed(within(t, patience), muchToFeed(100, 200<<10)...)
	if took := time.Since(began); took > most+pulse.Lost() {
		t.Errorf("blocked for %s", took)
	}
	p.hold(false, false)
	if _, err := pending.Wait(within(t, patience)); err != nil {
		t.Error(err)
	}
}

// TestBatchesAreBounded: facts that are fed together are cut into batches by bytes.
func TestBatchesAreBounded(t *testing.T) {
	const n, size = 60, 200 << 10
	s := natstest.Start(t)
	b := natstest.Bus(t, s, together)
	fs := muchToFeed(n, size)
	if _, err := b.Feed(within(t, patience), fs...).Wait(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	_, js := outsider(t, s)
	st, err := js.Stream(within(t, patience), "HF_FEED")
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[string]int{}
	for seq := range uint64(n) {
		m, err := st.GetMsg(within(t, patience), seq+1)
		if err != nil {
			t.Fatal(err)
		}
		bytes[m.Header.Get("Nats-Batch-Id")] += len(m.Data)
	}
	for id, n := range bytes {
		if id != "" && n > 8<<20 {
			t.Errorf("a batch has %d bytes", n)
		}
	}
	if len(bytes) < 2 {
		t.Errorf("%d batches", len(bytes))
	}
}

// TestInspectWithoutACluster: a broker that says nothing of a cluster has no nodes.
func TestInspectWithoutACluster(t *testing.T) {
	b := scripted(t, func(asked) []said { return says(`{"config":{"metadata":{"hf.layout":"1"}}}`) }).open()
	found, err := b.Inspect(within(t, patience))
	if err != nil || len(found.Streams) == 0 || len(found.Streams[0].Nodes) != 0 || found.Streams[0].Layout != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestWrongSourcesAreRefused: also where nothing is consumed.
func TestWrongSourcesAreRefused(t *testing.T) {
	b := scripted(t, func(asked) []said { return silence }).open()
	ctx, wrong := within(t, patience), bus.Source{Stream: 99, Durable: "x"}
	if _, _, err := b.Lag(ctx, wrong); err == nil {
		t.Error("lag")
	}
	if _, err := b.Acked(ctx, wrong); err == nil {
		t.Error("acknowledged")
	}
	if _, err := b.Strangers(ctx, []bus.Source{wrong}); err == nil {
		t.Error("strangers")
	}
}

// TestRaiseWithoutMetadata: the limit of a log that has no metadata is raised once as well.
func TestRaiseWithoutMetadata(t *testing.T) {
	var updated struct {
		MaxBytes int64             `json:"max_bytes"`
		Metadata map[string]string `json:"metadata"`
	}
	b := scripted(t, func(a asked) []said {
		if a.is("STREAM.UPDATE") {
			a.decode(t, &updated)
			return says(`{}`)
		}
		return says(`{"config":{"name":"HF_LOG","max_bytes":1000000}}`)
	}).open()
	raised, err := b.RaiseLogLimit(within(t, patience))
	if err != nil || !raised || updated.MaxBytes != 1_100_000 || updated.Metadata["hf.raised"] != "1000000" {
		t.Errorf("%t, %v: %+v", raised, err, updated)
	}
}

// TestEnsureWithoutALook: after a refused update it is not known how a stream stands, so setting up fails.
func TestEnsureWithoutALook(t *testing.T) {
	looks, updates := 0, 0
	b := scripted(t, func(a asked) []said {
		switch {
		case a.is("STREAM.CREATE"):
			return says(`{}`)
		case a.is("STREAM.UPDATE"):
			if updates++; updates == 1 {
				return trouble
			}
		case a.is("STREAM.INFO.HF_LOG"):
			if looks++; looks == 2 {
				return trouble
			}
		}
		return says(`{"config":{"name":"x","num_replicas":1}}`)
	}).open()
	if err := b.Ensure(within(t, patience)); err == nil {
		t.Error("it is set up")
	}
}

// TestEnsureRaisesTheLimit: a larger limit of the log is applied to a log that is there.
func TestEnsureRaisesTheLimit(t *testing.T) {
	s := natstest.Start(t)
	for _, most := range []int64{1 << 20, 3 << 20, 2 << 20} {
		natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = most })
	}
	_, js := outsider(t, s)
	if c := config(t, js, "HF_LOG"); c.MaxBytes != 3<<20 {
		t.Errorf("the log may have %d bytes, want 3 MiB", c.MaxBytes)
	}
}

// TestClockGivesUp: a request whose context ends before the broker has answered says so, for the clock as well.
func TestClockGivesUp(t *testing.T) {
	b := scripted(t, func(asked) []said { return silence }).open()
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	go func() { _, err := b.Now(ctx); done <- err }()
	if err := receive(t, done, "the clock"); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("%v, want ErrUnreachable", err)
	}
	if _, err := b.LastSeq(ctx); !errors.Is(err, bus.ErrUnreachable) || strings.Contains(err.Error(), "%!") {
		t.Errorf("%v, want ErrUnreachable", err)
	}
}

// TestASeedThatIsReplaced: while a client waits for its broker, the file with its seed is removed or damaged.
// Its error then names the file.
func TestASeedThatIsReplaced(t *testing.T) {
	t.Parallel() // it mostly waits
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "nats://" + l.Addr().String()
	if err := l.Close(); err != nil { // nothing listens there
		t.Fatal(err)
	}
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"spoiled": func(path string) error { return os.WriteFile(path, []byte("no seed"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "the-seed")
			if err := os.WriteFile(path, seed, 0o600); err != nil {
				t.Fatal(err)
			}
			log, done := &keptLog{}, make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go func() {
				_, err := bus.Open(ctx, bus.Config{URL: url, NKey: path, Log: zerolog.New(log)})
				done <- err
			}()
			natstest.Until(t, "the first attempt to fail", func() bool { return len(log.lines("no broker")) > 0 })
			if err := replace(path); err != nil {
				t.Fatal(err)
			}
			err := receive(t, done, "the end")
			if err == nil || !strings.Contains(err.Error(), "the-seed") || errors.Is(err, fs.ErrNotExist) != (name == "removed") {
				t.Errorf("%v, want an error that names the file", err)
			}
		})
	}
}

// TestANKeyIsReadAgain: a client whose seed is replaced on the disk logs in with the new one at its next connection.
func TestANKeyIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seed")
	next := func() (public string) {
		t.Helper()
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		if public, err = pair.PublicKey(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, seed, 0o600); err != nil {
			t.Fatal(err)
		}
		return public
	}
	s := scripted(t, func(asked) []said { return silence })
	s.wantLogin()
	first := next()
	b, err := bus.Open(within(t, patience), bus.Config{URL: s.url, NKey: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	if line := receive(t, s.login, "the login"); !strings.Contains(line, first) {
		t.Errorf("logged in with %s, want %s", line, first)
	}
	second := next()
	s.cut()
	if line := receive(t, s.login, "the next login"); !strings.Contains(line, second) {
		t.Errorf("logged in with %s, want %s", line, second)
	}
}

// TestTheFeedHasALimit: where the log has a limit, the feed has a part of it; elsewhere it has none.
func TestTheFeedHasALimit(t *testing.T) {
	for most, want := range map[int64]int64{0: -1, 64 << 20: 64 << 20 / bus.FeedPart} {
		s := natstest.Start(t)
		natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = most })
		_, js := outsider(t, s)
		if c := config(t, js, "HF_FEED"); c.MaxBytes != want {
			t.Errorf("a log of %d bytes: the feed may have %d, want %d", most, c.MaxBytes, want)
		}
	}
}
