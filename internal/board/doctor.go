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

// Doctor examines the cell. It returns its findings, which are served as JSON.
type Doctor func(ctx context.Context) any

// examiner serves the findings of a doctor. Several requests at once, or soon after another, have one examination.
type examiner struct {
	examine Doctor
	turn    chan struct{} // has room for one: the request that examines
	body    []byte        // the last findings
	at      time.Time     // when body was made
}

func newExaminer(examine Doctor) *examiner {
	return &examiner{examine: examine, turn: make(chan struct{}, 1)}
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
		body, err := json.Marshal(e.examine(r.Context()))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if r.Context().Err() != nil { // an examination that was cut short is not kept for other requests
			return
		}
		e.body, e.at = body, time.Now()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := w.Write(e.body); err != nil {
		return // the reader has disconnected
	}
}
