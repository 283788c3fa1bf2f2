package board

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// KnownCookie proves that a browser has logged in before, with the name of its login. Such a browser does not wait for
// the attempts of others.
const KnownCookie = "__Host-holdfast-known"

// errCrowded means that too many attempts to log in of one lane wait.
var errCrowded = errors.New("too many attempts to log in wait here: try again in a few seconds")

const (
	knownFor    = 400 * 24 * time.Hour // how long a browser keeps the proof; browsers allow no longer time
	refusedMax  = 10                   // refused attempts of a lane that do not wait
	refusedRate = 1                    // further ones, a second
	waitMax     = 6 * time.Second      // the longest that an attempt waits; then come [tryFor] and the response
	crowdMax    = 64                   // attempts of a lane that wait
	laneAtOnce  = 2                    // attempts of a lane that are tried at once
	lanesMax    = 65_536               // lanes that are remembered
	shares      = 64                   // lanes of one address, at most
)

// proof returns the value of [KnownCookie] for a name.
func (d *door) proof(name string) string {
	h := hmac.New(sha256.New, d.secret)
	h.Write([]byte(name))
	return hex.EncodeToString(h.Sum(nil))
}

// knows reports whether a request proves that its browser has logged in with this name before.
func (d *door) knows(r *http.Request, name string) bool {
	c, err := r.Cookie(KnownCookie)
	return err == nil && hmac.Equal([]byte(c.Value), []byte(d.proof(name)))
}

// remember gives a browser that has logged in the proof of that, if it has none.
func (d *door) remember(w http.ResponseWriter, r *http.Request, name string) {
	if d.knows(r, name) {
		return
	}
	c := cookie(KnownCookie, d.proof(name))
	c.MaxAge = int(knownFor / time.Second)
	http.SetCookie(w, c)
}

// laneOf returns the lane of a browser that has not logged in before: its address and a share of all names. Which names
// are in one share follows from the secret, so no program can choose a name that has the share of another one.
func (d *door) laneOf(address, name string) string {
	h := hmac.New(sha256.New, d.secret)
	// a proof is of a name without a NUL
	h.Write([]byte("share\x00" + name))
	return fmt.Sprintf("%s %d", addressOf(address), h.Sum(nil)[0]%shares)
}

// newSecret returns a secret that ends with the process.
func newSecret() []byte {
	secret := make([]byte, sha256.Size)
	rand.Read(secret)
	return secret
}

// addressOf returns the address that an attempt comes from, as far as one host has it: of IPv6 the first 64 bits.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return host
	}
	return prefix.String()
}

// gate lets a few attempts to log in through at once. Each attempt is in a lane, and waits for its own lane's refused
// attempts only: an accepted one costs its lane nothing.
type gate struct {
	places chan struct{}

	mu    sync.Mutex
	lanes map[string]*lane
}

func newGate() *gate {
	return &gate{places: make(chan struct{}, attemptsMax), lanes: map[string]*lane{}}
}

// lane is the attempts of a share of the names from one address, or of the browsers that have logged in with one name.
type lane struct {
	places chan struct{}

	mu      sync.Mutex
	left    float64 // attempts that do not wait; negative: as many wait
	at      time.Time
	waiting int
}

// lane returns the lane with this key.
func (g *gate) lane(key string, now time.Time) *lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[key]
	if l == nil {
		g.forget(now)
		l = &lane{places: make(chan struct{}, laneAtOnce), left: refusedMax, at: now}
		g.lanes[key] = l
	}
	return l
}

// forget makes room for more lanes: for a quarter of all at least, so that it is seldom called. Lanes that are as new
// go first, then any.
func (g *gate) forget(now time.Time) {
	if len(g.lanes) < lanesMax {
		return
	}
	for key, l := range g.lanes {
		if l.isNew(now) {
			delete(g.lanes, key)
		}
	}
	for key := range g.lanes {
		if len(g.lanes) <= lanesMax*3/4 {
			return
		}
		delete(g.lanes, key)
	}
}

// isNew reports whether a lane is as one that was never used.
func (l *lane) isNew(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill(now)
	return l.left >= refusedMax && l.waiting == 0
}

func (l *lane) refill(now time.Time) {
	l.left = min(refusedMax, l.left+now.Sub(l.at).Seconds()*refusedRate)
	l.at = now
}

// enter takes a turn in the lane, and returns how long that takes.
func (l *lane) enter(now time.Time) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill(now)
	wait := time.Duration(max(0, 1-l.left) / refusedRate * float64(time.Second))
	if l.waiting >= crowdMax || wait > waitMax {
		return 0, errCrowded
	}
	l.left--
	l.waiting++
	return wait, nil
}

// leave ends what enter began. free gives the turn back.
func (l *lane) leave(free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	if free {
		l.left = min(refusedMax, l.left+1)
	}
}

// pass carries out an attempt in a lane. Only an attempt that the brokers refuse takes a turn of the lane.
func (g *gate) pass(ctx context.Context, key string, attempt func() error) (err error) {
	now := time.Now()
	l := g.lane(key, now)
	wait, err := l.enter(now)
	if err != nil {
		return err
	}
	defer func() { l.leave(!errors.Is(err, errRefused)) }()
	turn, late := time.NewTimer(wait), time.NewTimer(waitMax)
	defer turn.Stop()
	defer late.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, places := range []chan struct{}{l.places, g.places} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-late.C:
			return errCrowded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return attempt()
}
