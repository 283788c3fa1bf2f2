package board

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// examined is a board whose doctor counts its examinations.
func examined(t *testing.T, doctor Doctor) *Handler {
	t.Helper()
	h, err := New(Cell{Prefix: "hf"}, "127.0.0.1:1", doctor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// Several requests have one examination, which has an age.
func TestFindingsOfTheDoctor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int64
		h := examined(t, func(context.Context, Login) any {
			count.Add(1)
			<-time.After(time.Second)
			return []map[string]string{{"check": "log", "level": "ok", "found": "1 <b>commit</b>"}}
		})
		var together sync.WaitGroup
		for range 5 {
			together.Go(func() {
				got := ask(t, h, http.MethodGet, doctorPath, nil)
				if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" ||
					got.header.Get("Cache-Control") != "no-store" || !strings.Contains(got.body, `"check":"log"`) ||
					got.header.Get("Content-Security-Policy") != Policy {
					t.Errorf("reply %+v", got)
				}
			})
		}
		together.Wait()
		if n := count.Load(); n != 1 {
			t.Errorf("five requests at once had %d examinations, want one", n)
		}
		<-time.After(examinedFor)
		ask(t, h, http.MethodGet, doctorPath, nil)
		if n := count.Load(); n != 1 {
			t.Errorf("a request %s later was the examination number %d, want the first", examinedFor, n)
		}
		<-time.After(time.Millisecond)
		ask(t, h, http.MethodGet, doctorPath, nil)
		if n := count.Load(); n != 2 {
			t.Errorf("a later request was answered by the examination number %d, want a second one", n)
		}
	})
}

// A request that ends during its examination leaves no findings for the next one, and one that waits ends by itself.
func TestExaminationThatIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := examined(t, func(ctx context.Context, _ Login) any {
			select {
			case <-ctx.Done():
				return []string{"cut short"}
			case <-time.After(time.Second):
				return []string{"whole"}
			}
		})
		request := func(limit time.Duration) string {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, doctorPath, http.NoBody))
			return w.Body.String()
		}
		var first sync.WaitGroup
		first.Go(func() { request(500 * time.Millisecond) })
		synctest.Wait()
		if got := request(100 * time.Millisecond); got != "" {
			t.Errorf("a request that gave up has %q", got)
		}
		first.Wait()
		if got := request(time.Minute); got != `["whole"]` {
			t.Errorf("the next request has %q", got)
		}
	})
}

// Another site's page, another method and a board without a doctor are refused.
func TestFindingsAreRefused(t *testing.T) {
	doctor := func(context.Context, Login) any { return []string{} }
	for name, c := range map[string]struct {
		doctor       Doctor
		method, site string
		status       int
	}{
		"the board itself":            {doctor, "GET", "same-origin", 200},
		"an address that is entered":  {doctor, "GET", "none", 200},
		"a program":                   {doctor, "GET", "", 200},
		"another site":                {doctor, "GET", "cross-site", 403},
		"another port of the machine": {doctor, "GET", "same-site", 403},
		"a form":                      {doctor, "POST", "same-origin", 405},
		"no doctor":                   {nil, "GET", "same-origin", 404},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{}
			if c.site != "" {
				header["Sec-Fetch-Site"] = c.site
			}
			if got := ask(t, examined(t, c.doctor), c.method, doctorPath, header); got.status != c.status {
				t.Errorf("status %d, want %d: %s", got.status, c.status, got.body)
			}
		})
	}
}
