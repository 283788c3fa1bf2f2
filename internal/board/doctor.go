package board

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// doctorPath is where the findings of the doctor are.
const doctorPath = "/doctor.json"

// examinedFor is how long one examination answers all requests: an examination reads every document.
const examinedFor = 3 * time.Second

// Doctor examines the cell with the rights of a login. It returns its findings, which are served as JSON.
type Doctor func(ctx context.Context, who Login) any

// Login is the login of a person beside a cluster, which the brokers have accepted. It is empty where the board has
// none.
type Login struct {
	Name    string
	Headers http.Header // with which a websocket of a broker is opened
}

// examiner serves the findings of a doctor to one person, or to all who look where there is no log-in. Several requests
// at once, or soon after another, have one examination.
type examiner struct {
	examine Doctor
	login   func(r *http.Request) Login
	turn    chan struct{} // has room for one: the request that examines
	body    []byte        // the last findings
	at      time.Time     // when body was made
}

func newExaminer(examine Doctor) *examiner {
	return &examiner{examine: examine, turn: make(chan struct{}, 1),
		login: func(*http.Request) Login { return Login{} }}
}

// ServeHTTP implements [http.Handler]. It refuses a page of another site, which could not read the findings, and could
// keep the cell busy.
func (e *examiner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case e.examine == nil:
		http.Error(w, "this board has no doctor: run `holdfast doctor`", http.StatusNotFound)
		return
	case site != "" && site != "same-origin" && site != "none":
		http.Error(w, "this page is for the board alone", http.StatusForbidden)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET")
		http.Error(w, "this page is only read", http.StatusMethodNotAllowed)
		return
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-r.Context().Done():
		return
	}
	if e.body == nil || time.Since(e.at) > examinedFor {
		body, err := json.Marshal(e.examine(r.Context(), e.login(r)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		// an examination that was cut short is not kept for other requests
		if r.Context().Err() != nil {
			return
		}
		e.body, e.at = body, time.Now()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := w.Write(e.body); err != nil {
		// the reader has disconnected
		return
	}
}
