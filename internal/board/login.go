package board

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Cookies that carry the login of a person to the brokers: the values of user_cookie and pass_cookie in their
// configuration. The prefix __Host- makes a browser refuse them from another host, another path or without TLS.
const (
	UserCookie     = "__Host-holdfast-user"
	PasswordCookie = "__Host-holdfast-password"
)

const (
	loginPath     = "/login"
	logoutPath    = "/logout"
	cellPath      = "/cell.json"
	loginFor      = 12 * time.Hour // how long a browser keeps the cookies
	loginBytesMax = 4 << 10        // of a request to log in
	attemptsMax   = 4              // logins of each gate that are tried at once
)

// Cluster is where the brokers of a cell are, and where people open its board.
type Cluster struct {
	Origin string      // at which people open the board, such as https://board.example
	Broker string      // a broker's websocket, such as wss://n1:8443
	TLS    *tls.Config // the trust in the brokers; nil: the system's
	Doctor Doctor      // examines the cell for a person who has logged in; nil: the board has no doctor
	// Secret is of the proofs that a browser has logged in before; nil: they end with this process. Boards with the
	// same origin have the same.
	Secret []byte
}

// door lets people in who have a login of the brokers.
type door struct {
	cell    Cell
	at      Cluster
	secret  []byte
	unknown *gate // for browsers that have not logged in before, by their addresses and names
	known   *gate // for those that have, by their names
	doctors doctors
	try     func(ctx context.Context, address string, trust *tls.Config, headers http.Header) error
}

// NewCluster returns the handler of a board beside a cluster. It asks for a name and a password, which the brokers
// check, and keeps neither: the browser has them in cookies that no script can read, and the handler passes them to the
// brokers with each websocket.
func NewCluster(cell Cell, at Cluster) (*Handler, error) {
	broker, err := url.Parse(at.Broker)
	if err != nil {
		return nil, err
	}
	h, err := New(cell, broker.Host, nil)
	if err != nil {
		return nil, err
	}
	target := &url.URL{Scheme: "http", Host: broker.Host}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.TLSClientConfig, transport.ForceAttemptHTTP2 = nil, at.TLS, false
	if broker.Scheme == "wss" {
		target.Scheme = "https"
	}
	h.socket = proxy(target, transport, loginOf)
	h.door = &door{cell: cell, at: at, secret: at.Secret, unknown: newGate(), known: newGate(), try: try,
		doctors: doctors{byName: map[string]*examiner{}}}
	if len(at.Secret) == 0 {
		h.door.secret = newSecret()
	}
	return h, nil
}

// loginOf returns the cookies of a request that are the brokers', "" without both.
func loginOf(r *http.Request) string {
	_, cookies := loginIn(r)
	return cookies
}

// loginIn returns the name in the cookies of a request, and those that are the brokers'; "" without both.
func loginIn(r *http.Request) (name, cookies string) {
	user, err := r.Cookie(UserCookie)
	password, missing := r.Cookie(PasswordCookie)
	if err != nil || missing != nil || !carried(user.Value) || !carried(password.Value) {
		return "", ""
	}
	return user.Value, UserCookie + "=" + user.Value + "; " + PasswordCookie + "=" + password.Value
}

// carried reports whether a cookie carries a text unchanged.
func carried(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`",;\`, c)
	})
}

// serve answers the requests that are about the login, and reports whether a request was one of them. Without a login
// nothing is passed to the brokers.
func (d *door) serve(w http.ResponseWriter, r *http.Request) bool {
	if strings.HasPrefix(d.at.Origin, "https://") {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	switch r.URL.Path {
	case loginPath:
		d.serveLogin(w, r)
	case logoutPath:
		if d.ours(w, r) {
			forget(w)
			w.WriteHeader(http.StatusNoContent)
		}
	case cellPath:
		d.serveCell(w, r)
	case doctorPath:
		d.serveDoctor(w, r)
	case socketPath:
		switch {
		case r.Header.Get("Origin") != d.at.Origin:
			http.Error(w, "this websocket is for the board alone", http.StatusForbidden)
		default:
			_, in := d.enter(w, r, false)
			return !in
		}
	default:
		return false
	}
	return true
}

// ours reports whether a request that changes the login comes from the board's own page; else it is refused.
func (d *door) ours(w http.ResponseWriter, r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		http.Error(w, "this is only posted", http.StatusMethodNotAllowed)
	case r.Header.Get("Origin") != d.at.Origin:
		http.Error(w, "this is for the board alone", http.StatusForbidden)
	case err != nil || kind != "application/json":
		http.Error(w, "want application/json", http.StatusUnsupportedMediaType)
	default:
		return true
	}
	return false
}

func (d *door) serveLogin(w http.ResponseWriter, r *http.Request) {
	if !d.ours(w, r) {
		return
	}
	var in struct{ Name, Password string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, loginBytesMax)).Decode(&in); err != nil {
		http.Error(w, "want a name and a password", http.StatusBadRequest)
		return
	}
	if !carried(in.Name) || !carried(in.Password) {
		http.Error(w, "a cookie carries printable ASCII without spaces, quotes, commas, semicolons and backslashes "+
			"only: use another name or password", http.StatusUnprocessableEntity)
		return
	}
	cookies := []*http.Cookie{cookie(UserCookie, in.Name), cookie(PasswordCookie, in.Password)}
	err := d.check(r, in.Name, UserCookie+"="+in.Name+"; "+PasswordCookie+"="+in.Password)
	switch {
	case errors.Is(err, errRefused):
		http.Error(w, "the brokers refuse this name or password", http.StatusUnauthorized)
	case err != nil:
		unasked(w, err)
	default:
		d.remember(w, r, in.Name)
		for _, c := range cookies {
			c.MaxAge = int(loginFor / time.Second)
			http.SetCookie(w, c)
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// cookie is a cookie that no script, no other site and no connection without TLS sees.
func cookie(name, value string) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: true,
		SameSite: http.SameSiteStrictMode}
}

func forget(w http.ResponseWriter) {
	for _, name := range []string{UserCookie, PasswordCookie} {
		c := cookie(name, "")
		c.MaxAge = -1
		http.SetCookie(w, c)
	}
}

// check asks the brokers about a login as a page would: with cookies, from the board's origin. Every path by which a
// password can be tried leads here.
func (d *door) check(r *http.Request, name, cookies string) error {
	gate, lane := d.unknown, d.laneOf(r.RemoteAddr, name)
	if d.knows(r, name) {
		gate, lane = d.known, name
	}
	ctx := r.Context()
	return gate.pass(ctx, lane, func() error {
		return d.try(ctx, d.at.Broker, d.at.TLS, http.Header{"Cookie": {cookies}, "Origin": {d.at.Origin}})
	})
}

// unasked answers a request whose login was not tried, or about which the brokers did not say anything.
func unasked(w http.ResponseWriter, err error) {
	if errors.Is(err, errCrowded) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	}
	http.Error(w, "the brokers cannot be asked: "+err.Error(), http.StatusBadGateway)
}

// enter checks the login of a request, and returns the name and whether the brokers accept it; else it has answered. A
// login that they refuse is forgotten. away says that the request is answered also while they cannot be asked.
func (d *door) enter(w http.ResponseWriter, r *http.Request, away bool) (name string, in bool) {
	name, cookies := loginIn(r)
	if cookies == "" {
		http.Error(w, "log in first", http.StatusUnauthorized)
		return "", false
	}
	switch err := d.check(r, name, cookies); {
	case errors.Is(err, errRefused):
		forget(w)
		http.Error(w, "the brokers refuse this name or password now: log in again", http.StatusUnauthorized)
	case err == nil:
		d.remember(w, r, name)
		return name, true
	case away && !errors.Is(err, errCrowded):
		return name, true
	default:
		unasked(w, err)
	}
	return name, false
}

// doctors has the findings for each person apart: another one may have other rights.
type doctors struct {
	mu     sync.Mutex
	byName map[string]*examiner // of people whose login the brokers have accepted
}

// of returns the findings for a person.
func (d *door) of(name string) *examiner {
	d.doctors.mu.Lock()
	defer d.doctors.mu.Unlock()
	e := d.doctors.byName[name]
	if e == nil {
		e = newExaminer(d.at.Doctor)
		e.login = func(r *http.Request) Login {
			return Login{Name: name, Headers: http.Header{"Cookie": {loginOf(r)}, "Origin": {d.at.Origin}}}
		}
		d.doctors.byName[name] = e
	}
	return e
}

// serveDoctor examines the cell with the login of the person who asks. The brokers check it first, each time: findings
// that are kept are not for others.
func (d *door) serveDoctor(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if name, in := d.enter(w, r, false); in {
		d.of(name).ServeHTTP(w, r)
	}
}

// serveCell says what the page has to know, and who has logged in. A login that the brokers refuse is forgotten. While
// they cannot be asked the page is served: it says itself that it is not connected.
func (d *door) serveCell(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !slices.Contains([]string{http.MethodGet, http.MethodHead}, r.Method) {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page is only read", http.StatusMethodNotAllowed)
		return
	}
	name, in := d.enter(w, r, true)
	if !in {
		return
	}
	cell := d.cell
	cell.Person, cell.Login = name, true
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(cell); err != nil {
		// the reader has disconnected
		return
	}
}
