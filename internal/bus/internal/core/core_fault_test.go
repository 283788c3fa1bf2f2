package core_test

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
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
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
			b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.OneReply(reply) }).Open()
			if e, err := b.KV.Load(bustest.Within(t, 300*time.Millisecond), kv.State, "k"); err == nil {
				t.Errorf("load: %+v", e)
			}
		})
	}
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.OneReply("not JSON") }).Open()
	if seq, err := b.Log.LastSeq(bustest.Within(t, bustest.Patience)); err == nil {
		t.Errorf("the last commit: %d", seq)
	}
}

// TestAWriteThatIsRefusedWithoutAReason: the broker refuses the guard, and its stream has nothing that the guard does
// not know. The writer gives up after some rounds.
func TestAWriteThatIsRefusedWithoutAReason(t *testing.T) {
	// it mostly waits
	t.Parallel()
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		if a.Is("STREAM.MSG.GET") {
			return bustest.NotFound
		}
		return bustest.WrongLast
	}).Open()
	err := b.Timers.Set(bustest.Within(t, bustest.Patience),
		timer.Timer{What: "x", Ref: bustest.Session, Due: time.Now(), Seq: 1})
	if !errors.Is(err, bus.ErrLostRace) {
		t.Errorf("%v, want ErrLostRace", err)
	}
}

// TestAGuardOfAProposalUnderWay: the broker refuses a guard while another proposal under it is under way. Nothing can
// be seen of that, so the writer looks for a tenth of a second before it sends again.
func TestAGuardOfAProposalUnderWay(t *testing.T) {
	// it mostly waits
	t.Parallel()
	for name, write := range map[string]func(ctx context.Context, b *bus.Bus) error{
		"timer": func(ctx context.Context, b *bus.Bus) error {
			return b.Timers.Set(ctx, timer.Timer{What: "x", Ref: bustest.Session, Due: time.Now(), Seq: 1})
		},
		"key": func(ctx context.Context, b *bus.Bus) error {
			_, err := b.KV.Store(ctx, kv.State, bustest.Key, []byte("x"), 0)
			return err
		},
		"lease": func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Leases.Acquire(ctx, bustest.LeaseKey, nil, time.Minute)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var first time.Time
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				switch {
				case a.Is("STREAM.MSG.GET"):
					return bustest.NotFound
				case first.IsZero():
					first = time.Now()
				}
				if time.Since(first) < 300*time.Millisecond {
					return bustest.WrongLast
				}
				return bustest.OneReply(`{"stream":"S","seq":5}`)
			}).Open()
			if err := write(bustest.Within(t, bustest.Patience), b); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExpiredLogin: a broker that ends the connection because a login has expired, and refuses the next one, is named
// as the reason of what fails meanwhile.
func TestExpiredLogin(t *testing.T) {
	s := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply {
		return bustest.OneReply(`{"state":{"last_seq":3}}`)
	})
	b := s.Open()
	if seq, err := b.Log.LastSeq(bustest.Within(t, bustest.Patience)); err != nil || seq != 3 {
		t.Fatal(seq, err)
	}
	s.Mu.Lock()
	s.Deaf = true
	s.Mu.Unlock()
	s.Send("-ERR 'User Authentication Expired'")
	s.Cut()
	natstest.Until(t, "the reason to be known", func() bool {
		_, err := b.Log.LastSeq(bustest.Within(t, 50*time.Millisecond))
		return errors.Is(err, bus.ErrForbidden) && strings.Contains(err.Error(), "expired")
	})
	s.Mu.Lock()
	s.Deaf = false
	s.Mu.Unlock()
	natstest.Until(t, "the broker to let us in again", b.Connected)
	if seq, err := b.Log.LastSeq(bustest.Within(t, bustest.Patience)); err != nil || seq != 3 {
		t.Error(seq, err)
	}
}

// TestAskedAgainAfterACut: the connection is lost while a request waits for its reply. The request is made again on the
// next connection.
func TestAskedAgainAfterACut(t *testing.T) {
	asked := make(chan bool, 100)
	s := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply {
		asked <- true
		if len(asked) == 1 {
			return bustest.Silence
		}
		return bustest.OneReply(`{"state":{"last_seq":3}}`)
	})
	b, got := s.Open(), make(chan error, 1)
	go func() {
		seq, err := b.Log.LastSeq(bustest.Within(t, bustest.Patience))
		if err == nil && seq != 3 {
			err = fmt.Errorf("the last commit is %d", seq)
		}
		got <- err
	}()
	natstest.Until(t, "the first request", func() bool { return len(asked) > 0 })
	s.Cut()
	if err := bustest.Receive(t, got, "the reply"); err != nil {
		t.Error(err)
	}
}

// TestTheReasonIsLoggedOnce: while the broker is away, each reason why it is not reached is logged once.
func TestTheReasonIsLoggedOnce(t *testing.T) {
	s := natstest.Start(t)
	log := &keptLog{}
	b, err := bus.Open(bustest.Background(t), bus.Config{URL: s.URL(), Log: zerolog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Abort)
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
	_, err := bus.Open(bustest.Within(t, 100*time.Millisecond), bus.Config{Server: refusing{}})
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
	s := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Silence })
	s.WantLogin()
	b, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: s.Url, Creds: path})
	if err != nil {
		t.Fatal(err)
	}
	b.Abort()
	if line := bustest.Receive(t, s.Login, "the login"); !strings.Contains(line, `"jwt":"token-of-ann"`) {
		t.Errorf("logged in with %s", line)
	}
	if _, err := bus.Open(bustest.Within(t, bustest.Patience),
		bus.Config{URL: s.Url, Creds: path + "x"}); !errors.Is(err,
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
	s := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Silence })
	if _, err := bus.Open(bustest.Within(t, 200*time.Millisecond), bus.Config{URL: s.Url, NKey: path}); err == nil {
		t.Error("an account's seed is taken")
	}
}

// muchToFeed is n facts of this size.
func muchToFeed(n, size int) (fs []log.Fed) {
	for i := range n {
		e := bustest.Fact(fmt.Sprint(i), bustest.Session)
		e.Kind, e.Fact, e.Data = "other.thing", nil, []byte(`"`+strings.Repeat("x", size)+`"`)
		fs = append(fs, log.Fed{Ref: bustest.Session, Seq: uint64(i + 1), Events: []events.Event{e}})
	}
	return fs
}

// TestABrokerThatReadsNothing: a client that writes to a broker which reads nothing, as a frozen one, is blocked in the
// client library, and sends no pings either. It is not blocked for longer than a silent connection lasts, and continues
// when the broker does.
func TestABrokerThatReadsNothing(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const most = 20 * time.Second
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	p.Hold(true, true)
	began, pulse := time.Now(), natstest.Feel(t)
	pending := b.Log.Feed(bustest.Within(t, bustest.Patience), muchToFeed(100, 200<<10)...)
	if took := time.Since(began); took > most+pulse.Lost() {
		t.Errorf("blocked for %s", took)
	}
	p.Hold(false, false)
	if _, err := pending.Wait(bustest.Within(t, bustest.Patience)); err != nil {
		t.Error(err)
	}
}

// TestBatchesAreBounded: facts that are fed together are cut into batches by bytes.
func TestBatchesAreBounded(t *testing.T) {
	const n, size = 60, 200 << 10
	s := natstest.Start(t)
	b := natstest.Bus(t, s, bustest.Together)
	fs := muchToFeed(n, size)
	if _, err := b.Log.Feed(bustest.Within(t, bustest.Patience),
		fs...).Wait(bustest.Within(t, bustest.Patience)); err != nil {
		t.Fatal(err)
	}
	_, js := bustest.Outsider(t, s)
	st, err := js.Stream(bustest.Within(t, bustest.Patience), "HF_FEED")
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[string]int{}
	for seq := range uint64(n) {
		m, err := st.GetMsg(bustest.Within(t, bustest.Patience), seq+1)
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

// TestASeedThatIsReplaced: while a client waits for its broker, the file with its seed is removed or damaged.
// Its error then names the file.
func TestASeedThatIsReplaced(t *testing.T) {
	// it mostly waits
	t.Parallel()
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
	// nothing listens there
	if err := l.Close(); err != nil {
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
			err := bustest.Receive(t, done, "the end")
			if err == nil || !strings.Contains(err.Error(), "the-seed") ||
				errors.Is(err, fs.ErrNotExist) != (name == "removed") {
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
	s := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Silence })
	s.WantLogin()
	first := next()
	b, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: s.Url, NKey: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Abort)
	if line := bustest.Receive(t, s.Login, "the login"); !strings.Contains(line, first) {
		t.Errorf("logged in with %s, want %s", line, first)
	}
	second := next()
	s.Cut()
	if line := bustest.Receive(t, s.Login, "the next login"); !strings.Contains(line, second) {
		t.Errorf("logged in with %s, want %s", line, second)
	}
}
