package board

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// attempts is a board whose brokers know ann with the password secret. They take a while.
type attempts struct {
	t           *testing.T
	h           *Handler
	asked       atomic.Int32
	now, atOnce atomic.Int32
}

const brokersTake = 10 * time.Millisecond

func newAttempts(t *testing.T) *attempts {
	t.Helper()
	h, _ := clustered(t, "127.0.0.1:1", false)
	a := &attempts{t: t, h: h}
	h.door.try = func(_ context.Context, _ string, _ *tls.Config, headers http.Header) error {
		a.asked.Add(1)
		if n := a.now.Add(1); n > a.atOnce.Load() {
			a.atOnce.Store(n)
		}
		defer a.now.Add(-1)
		<-time.After(brokersTake)
		if headers.Get("Cookie") != annsOwn {
			return errRefused
		}
		return nil
	}
	return a
}

// logIn posts a login of ann from an address, and returns the status and how long it took.
func (a *attempts) logIn(address, password, known string) (status int, took time.Duration) {
	a.t.Helper()
	return a.logInAs("ann", address, password, known)
}

func (a *attempts) logInAs(name, address, password, known string) (status int, took time.Duration) {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), http.MethodPost, "/login",
		strings.NewReader(`{"name":"`+name+`","password":"`+password+`"}`))
	r.Header = http.Header{"Origin": {origin}, "Content-Type": {jsonKind}}
	if known != "" {
		r.Header.Set("Cookie", KnownCookie+"="+known)
	}
	return a.serve(r, address)
}

func (a *attempts) serve(r *http.Request, address string) (status int, took time.Duration) {
	r.RemoteAddr = address
	began, w := time.Now(), httptest.NewRecorder()
	a.h.ServeHTTP(w, r)
	return w.Code, time.Since(began)
}

// guess lets an address try wrong passwords, so many at once, and returns how many had each status.
func (a *attempts) guess(address string, n int) map[int]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := map[int]int{}
	for i := range n {
		wg.Go(func() {
			status, _ := a.logIn(address, fmt.Sprintf("guess-%d", i), "")
			mu.Lock()
			defer mu.Unlock()
			all[status]++
		})
	}
	wg.Wait()
	return all
}

// The guesses of one address become slow, on each path by which a password can be tried. Another address, and accepted
// logins, do not wait for them.
func TestGuessesOfAnAddressAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts(t)
		const attacker, other = "192.0.2.1:1000", "192.0.2.2:1000"
		for i := range 3 * refusedMax {
			if status, took := a.logIn(attacker, "secret", ""); status != 204 || took > brokersTake {
				t.Fatalf("the right password, time %d: %d after %s", i, status, took)
			}
		}
		for i := range refusedMax {
			if status, took := a.logIn(attacker, "guess", ""); status != 401 || took > brokersTake {
				t.Fatalf("guess %d: %d after %s", i, status, took)
			}
		}
		for _, path := range []string{cellPath, doctorPath, socketPath, loginPath} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.Header = http.Header{"Origin": {origin}, "Cookie": {UserCookie + "=ann; " + PasswordCookie + "=guess"}}
			if path == loginPath {
				r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, path,
					strings.NewReader(`{"name":"ann","password":"guess"}`))
				r.Header = http.Header{"Origin": {origin}, "Content-Type": {jsonKind}}
			}
			if status, took := a.serve(r, attacker); status != 401 || took < 900*time.Millisecond {
				t.Errorf("a further guess at %s: %d after %s, want 401 after a second", path, status, took)
			}
		}
		if status, took := a.logIn(other, "guess", ""); status != 401 || took > brokersTake {
			t.Errorf("the guess of another address: %d after %s", status, took)
		}
		// The right password waits for its turn, and is tried.
		if status, took := a.logIn(attacker, "secret", ""); status != 204 || took > waitMax {
			t.Errorf("the right password of that address: %d after %s", status, took)
		}
	})
}

// Guesses at the name of one person do not delay another person at the same address. Invented names do not give an
// address more attempts than its lanes have.
func TestGuessesAtOneNameDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts(t)
		const shared = "192.0.2.1:1000"
		other := "bob"
		for i := 0; i < 100 && a.h.door.laneOf(shared, other) == a.h.door.laneOf(shared, "ann"); i++ {
			other = fmt.Sprint("bob", i)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 * crowdMax {
			wg.Go(func() {
				for ctx.Err() == nil {
					a.logInAs(other, shared, "guess", "")
					<-time.After(brokersTake)
				}
			})
		}
		<-time.After(3 * time.Second)
		if status, _ := a.logInAs(other, shared, "guess", ""); status != http.StatusTooManyRequests {
			t.Errorf("a further guess at that name: %d, want 429", status)
		}
		for range 20 {
			if status, took := a.logIn(shared, "secret", ""); status != 204 || took > 2*brokersTake {
				t.Errorf("the first login of another person: %d after %s", status, took)
			}
		}
		stop()
		wg.Wait()
		for i := range 50 * shares {
			a.h.door.unknown.lane(a.h.door.laneOf("192.0.2.9:1", fmt.Sprint("invented", i)), time.Now())
		}
		if got := len(a.h.door.unknown.lanes); got > 2*shares {
			t.Errorf("two addresses have %d lanes", got)
		}
	})
}

// Of many guesses at once a few reach the brokers, and two of one address at the same time.
func TestManyGuessesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts(t)
		all := a.guess("192.0.2.1:1000", 1_000)
		most := refusedMax + int(waitMax/time.Second)*refusedRate
		if all[401] > most || all[401] < refusedMax || all[429] != 1_000-all[401] {
			t.Errorf("of 1,000 guesses: %v, want at most %d tried and 429 for the rest", all, most)
		}
		if got := a.atOnce.Load(); got > laneAtOnce {
			t.Errorf("%d guesses of one address were tried at once", got)
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() { a.guess(fmt.Sprintf("198.51.100.%d:1", i), 5) })
		}
		wg.Wait()
		if got := a.atOnce.Load(); got > attemptsMax {
			t.Errorf("%d guesses were tried at once", got)
		}
	})
}

// A browser that has logged in before is let in with the right password at once, whatever its address and all others
// do. The proof of another name, and a forged one, are no proof.
func TestKnownBrowserIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts(t)
		a.h.door.secret = []byte("0123456789abcdef")
		const shared = "192.0.2.1:1000"
		proof := a.h.door.proof("ann")
		under := func() (end func()) {
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					for ctx.Err() == nil {
						a.guess(fmt.Sprintf("198.51.100.%d:1", i), 1)
						a.guess(shared, 1)
						<-time.After(brokersTake)
					}
				})
			}
			<-time.After(3 * time.Second)
			return func() {
				stop()
				wg.Wait()
			}
		}
		end := under()
		for range 20 {
			if status, took := a.logIn(shared, "secret", proof); status != 204 || took > brokersTake {
				t.Errorf("a known browser under attack: %d after %s", status, took)
			}
		}
		for name, forged := range map[string]string{"forged": strings.Repeat("0", 64), "of bob": a.h.door.proof("bob"),
			"none": ""} {
			if status, took := a.logIn(shared, "secret", forged); status == 204 && took <= brokersTake {
				t.Errorf("a proof that is %s lets pass at once", name)
			}
		}
		end()
		// Guesses in a lane of its own have the same bound.
		for range refusedMax {
			a.logIn("203.0.113.1:1", "guess", proof)
		}
		if _, took := a.logIn("203.0.113.2:1", "guess", proof); took < 900*time.Millisecond {
			t.Errorf("a guess with a proof takes %s", took)
		}
	})
}

// Brokers that are away cost no turn, and a request that ends gives its turn back.
func TestWhatIsNotRefusedCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ctx := newGate(), t.Context()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for range 3 * refusedMax {
			if err := g.pass(ctx, "x", func() error { return errAway }); !errors.Is(err, errAway) {
				t.Fatal(err)
			}
		}
		refused := func() error { return errRefused }
		for range refusedMax {
			if err := g.pass(ctx, "x", refused); !errors.Is(err, errRefused) {
				t.Fatal(err)
			}
		}
		for range 3 * refusedMax {
			if err := g.pass(ended, "x", refused); err == nil || time.Since(g.lanes["x"].at) > 0 {
				t.Fatal(err)
			}
		}
		began := time.Now()
		err := g.pass(ctx, "x", refused)
		if took := time.Since(began); !errors.Is(err, errRefused) || took > time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// The memory of lanes is bounded: those that are as new go first.
func TestLanesAreBounded(t *testing.T) {
	g, now := newGate(), time.Now()
	for i := range lanesMax {
		if l := g.lane(fmt.Sprint(i), now); i == 7 {
			l.left = 0
		}
	}
	g.lane("more", now)
	if got := slices.Sorted(maps.Keys(g.lanes)); !slices.Equal(got, []string{"7", "more"}) {
		t.Errorf("%d lanes are left", len(got))
	}
	for i := range 2 * lanesMax {
		g.lane(fmt.Sprint("used", i), now).left = 0
	}
	if got := len(g.lanes); got > lanesMax {
		t.Errorf("%d lanes", got)
	}
}

// An address is what one host has of it.
func TestAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:1000":                "192.0.2.1",
		"[::ffff:192.0.2.1]:1000":       "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:1000":   "2001:db8:1:2::/64",
		"[fe80:0:0:0:3:4:5:6%eth0]:100": "fe80::/64",
		"pipe":                          "pipe",
	} {
		if got := addressOf(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}

// A proof counts at each board with the same secret, and at no other.
func TestProofOfASecret(t *testing.T) {
	board := func(secret string) *door {
		h, err := NewCluster(Cell{Prefix: "hf"}, Cluster{Origin: origin, Broker: "ws://127.0.0.1:1",
			Secret: []byte(secret)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		return h.door
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("Cookie", KnownCookie+"="+board("one").proof("ann"))
	if !board("one").knows(r, "ann") || board("two").knows(r, "ann") || board("").knows(r, "ann") {
		t.Error("a proof does not follow from its secret")
	}
	if first, second := board("").proof("ann"), board("").proof("ann"); first == second {
		t.Error("boards without a secret have the same proofs")
	}
}
