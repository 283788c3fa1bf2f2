package board

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

const (
	origin   = "https://board.example"
	annsOwn  = UserCookie + "=ann; " + PasswordCookie + "=secret"
	jsonKind = "application/json"
)

// errAway is the error of brokers that cannot be reached.
var errAway = errors.New("connection refused")

// clustered is a board beside a cluster whose brokers know ann with the password secret. tried has the headers of each
// attempt to log in.
func clustered(t *testing.T, broker string, away bool) (h *Handler, tried *[]http.Header) {
	t.Helper()
	h, err := NewCluster(Cell{Prefix: "hf", Version: "1.2.3"}, Cluster{Origin: origin, Broker: "ws://" + broker})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	tried = new([]http.Header)
	h.door.try = func(_ context.Context, _ string, _ *tls.Config, headers http.Header) error {
		*tried = append(*tried, headers)
		switch {
		case away:
			return errAway
		case headers.Get("Cookie") != annsOwn:
			return errRefused
		}
		return nil
	}
	return h, tried
}

// post sends a body to a handler.
func post(t *testing.T, h http.Handler, path, body string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// A login that the brokers accept is kept in cookies that no script reads; every other one is refused, and keeps none.
func TestLogin(t *testing.T) {
	from := func(origin, kind string) map[string]string {
		return map[string]string{"Origin": origin, "Content-Type": kind}
	}
	own := from(origin, jsonKind)
	good := `{"name":"ann","password":"secret"}`
	for name, c := range map[string]struct {
		body   string
		header map[string]string
		away   bool
		status int
	}{
		"ann":                    {good, own, false, 204},
		"with a charset":         {good, from(origin, jsonKind+"; charset=utf-8"), false, 204},
		"another password":       {`{"name":"ann","password":"guess"}`, own, false, 401},
		"no password":            {`{"name":"ann"}`, own, false, 422},
		"a second cookie":        {`{"name":"ann","password":"x; __Host-holdfast-user=root"}`, own, false, 422},
		"a header":               {`{"name":"ann\r\nX: y","password":"x"}`, own, false, 422},
		"no JSON":                {`name=ann&password=secret`, own, false, 400},
		"one megabyte":           {`{"name":"ann","password":"` + strings.Repeat("x", 1<<20) + `"}`, own, false, 400},
		"a form of another page": {good, from(origin, "text/plain"), false, 415},
		"another origin":         {good, from("https://evil.example", jsonKind), false, 403},
		"an origin below":        {good, from(origin+".evil.example", jsonKind), false, 403},
		"no origin":              {good, map[string]string{"Content-Type": jsonKind}, false, 403},
		"brokers that are away":  {good, own, true, 502},
		"away, another password": {`{"name":"ann","password":"guess"}`, own, true, 502},
	} {
		t.Run(name, func(t *testing.T) {
			h, tried := clustered(t, "127.0.0.1:1", c.away)
			resp := post(t, h, "/login", c.body, c.header)
			defer resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			if (resp.StatusCode == http.StatusNoContent) != (len(resp.Cookies()) == 3) {
				t.Errorf("status %d with cookies %v", resp.StatusCode, resp.Cookies())
			}
			for _, cookie := range resp.Cookies() {
				if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode ||
					cookie.Path != "/" || cookie.Domain != "" ||
					cookie.MaxAge != map[bool]int{true: 34_560_000, false: 12 * 3600}[cookie.Name == KnownCookie] ||
					!strings.HasPrefix(cookie.Name, "__Host-") {
					t.Errorf("a cookie that others see: %v", cookie)
				}
			}
			for _, headers := range *tried {
				if headers.Get("Origin") != origin {
					t.Errorf("the brokers were asked from the origin %q", headers.Get("Origin"))
				}
			}
			if want := "max-age=31536000"; resp.Header.Get("Strict-Transport-Security") != want {
				t.Errorf("Strict-Transport-Security: %q", resp.Header.Get("Strict-Transport-Security"))
			}
		})
	}
}

// The page learns who has logged in from the server, and a login that the brokers no longer accept is forgotten.
func TestCellIsForThoseWhoHaveLoggedIn(t *testing.T) {
	for name, c := range map[string]struct {
		cookies   string
		away      bool
		status    int
		forgotten bool
	}{
		"ann":                  {annsOwn, false, 200, false},
		"no login":             {"", false, 401, false},
		"a name alone":         {UserCookie + "=ann", false, 401, false},
		"an old password":      {UserCookie + "=ann; " + PasswordCookie + "=old", false, 401, true},
		"the brokers are away": {annsOwn, true, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := clustered(t, "127.0.0.1:1", c.away)
			got := ask(t, h, http.MethodGet, "/cell.json", map[string]string{"Cookie": c.cookies})
			if got.status != c.status || (len(got.header.Values("Set-Cookie")) == 2) != c.forgotten {
				t.Fatalf("%d %q %v, want %d", got.status, got.body, got.header.Values("Set-Cookie"), c.status)
			}
			for _, line := range got.header.Values("Set-Cookie") {
				if !strings.HasPrefix(line, KnownCookie) && !strings.Contains(line, "Max-Age=0") {
					t.Errorf("the login is not forgotten: %s", line)
				}
			}
			var cell Cell
			if c.status == 200 && (json.Unmarshal([]byte(got.body), &cell) != nil || cell.Person != "ann" ||
				!cell.Login || strings.Contains(got.body, "secret")) {
				t.Errorf("the page learns %s", got.body)
			}
			if got.header.Get("Cache-Control") != "no-store" {
				t.Error("what is about a person is kept by caches")
			}
		})
	}
}

// Findings are for the person with whose login they were made, and only with a login that the brokers accept at that
// time. Each person has one examination in three seconds.
func TestFindingsAreForThoseWhoHaveLoggedIn(t *testing.T) {
	const bobsOwn = UserCookie + "=bob; " + PasswordCookie + "=bobs"
	h, _ := clustered(t, "127.0.0.1:1", false)
	examinations := 0
	h.door.at.Doctor = func(_ context.Context, who Login) any {
		examinations++
		if want := UserCookie + "=" + who.Name + ";"; !strings.HasPrefix(who.Headers.Get("Cookie"), want) ||
			who.Headers.Get("Origin") != origin {
			t.Errorf("%s is examined with %v", who.Name, who.Headers)
		}
		return []string{"found by " + who.Name}
	}
	var cause error
	h.door.try = func(_ context.Context, _ string, _ *tls.Config, headers http.Header) error {
		switch cookies := headers.Get("Cookie"); {
		case cause != nil:
			return cause
		case cookies != annsOwn && cookies != bobsOwn:
			return errRefused
		}
		return nil
	}
	for _, c := range []struct {
		name, cookies string
		want          error
		status        int
		body          string
	}{
		{"no login", "", nil, 401, "log in"},
		{"ann", annsOwn, nil, 200, `["found by ann"]`},
		{"bob", bobsOwn, nil, 200, `["found by bob"]`},
		{"ann again", annsOwn, nil, 200, `["found by ann"]`},
		{"another password", UserCookie + "=ann; " + PasswordCookie + "=guess", nil, 401, "refuse"},
		{"a name alone", UserCookie + "=ann", nil, 401, "log in"},
		{"a removed user", annsOwn, errRefused, 401, "refuse"},
		{"brokers that are away", annsOwn, errAway, 502, "cannot be asked"},
	} {
		cause = c.want
		got := ask(t, h, http.MethodGet, doctorPath, map[string]string{"Cookie": c.cookies})
		if got.status != c.status || !strings.Contains(got.body, c.body) ||
			got.status != http.StatusOK && strings.Contains(got.body, "found") ||
			got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q, want %d %q", c.name, got.status, got.body, c.status, c.body)
		}
		if forgotten := len(got.header.Values("Set-Cookie")) == 2; forgotten != (c.body == "refuse") {
			t.Errorf("%s: the login is forgotten: %v", c.name, forgotten)
		}
	}
	if examinations != 2 {
		t.Errorf("%d examinations, want one of each person", examinations)
	}
}

// A websocket is passed on for the board's own origin and with a login; the brokers get the cookies of the login and no
// others.
func TestWebsocketNeedsALogin(t *testing.T) {
	seen := make(chan *http.Request, 8)
	h, _ := clustered(t, echo(t, seen), false)
	srv := httptest.NewServer(h)
	defer srv.Close()
	for name, c := range map[string]struct {
		origin, cookies string
		status          int
	}{
		"ann":            {origin, "theme=dark; " + annsOwn + "; other=1", 101},
		"another origin": {"https://evil.example", annsOwn, 403},
		"no origin":      {"", annsOwn, 403},
		"null":           {"null", annsOwn, 403},
		"no login":       {origin, "theme=dark", 401},
		"half a login":   {origin, UserCookie + "=ann", 401},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/nats", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Cookie": {c.cookies}}
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Fatalf("status %d, want %d", resp.StatusCode, c.status)
			}
			if c.status == http.StatusSwitchingProtocols {
				if got := (<-seen).Header; got.Get("Cookie") != annsOwn || got.Get("Origin") != origin {
					t.Errorf("the broker gets %v", got)
				}
			} else if len(seen) > 0 {
				t.Error("a refused websocket reached the broker")
			}
		})
	}
}

// Only the board's own page ends a login.
func TestLogout(t *testing.T) {
	h, _ := clustered(t, "127.0.0.1:1", false)
	for from, want := range map[string]int{origin: 204, "https://evil.example": 403} {
		resp := post(t, h, "/logout", "{}", map[string]string{"Origin": from, "Content-Type": jsonKind})
		gone := slices.ContainsFunc(resp.Cookies(), func(c *http.Cookie) bool { return c.MaxAge < 0 })
		if resp.Body.Close(); resp.StatusCode != want || gone != (want == 204) {
			t.Errorf("from %s: %d, forgotten: %v", from, resp.StatusCode, gone)
		}
	}
	if got := ask(t, h, http.MethodGet, "/login", nil); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET /login: %d", got.status)
	}
}
