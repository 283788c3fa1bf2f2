// Package board serves the page on which people see and answer what waits for them.
//
// The page is a set of files from the binary. It speaks NATS: [Handler] passes its websocket at /nats to the broker's
// own listener, so the broker checks what the page may do, and the page sees the same buckets as every other client.
//
// [New] is for a broker on this machine. [NewCluster] is for the brokers of a cluster, and has a log-in.
//
// The package checks no Host: the server that it is mounted on does that for every path, see package health.
package board

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
)

//go:embed web
var files embed.FS

// socketPath is where the page opens its websocket.
const socketPath = "/nats"

// Policy is the Content-Security-Policy of every response. Scripts, styles and connections are from this origin alone,
// and text becomes markup only in the templates of lit-html.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
	"trusted-types lit-html"

// headers of every response, beside the Content-Security-Policy.
var headers = map[string]string{
	"Content-Security-Policy":      Policy,
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
}

// types are the media types of the files that are served, by extension. A file of another extension is not served.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// Cell is what the page has to know before it connects.
type Cell struct {
	Prefix  string `json:"prefix"`
	Version string `json:"version"`
	Person  string `json:"person"` // who asks, unless the reader of the page enters another name
	// Login says that the person has logged in: the brokers know the name, and no other one can be entered.
	Login bool `json:"login,omitempty"`
}

// file is one file as it is served.
type file struct {
	body []byte
	kind string // its media type
	tag  string // its ETag
}

// Handler serves the page. End it with [Handler.Close].
type Handler struct {
	files  map[string]file
	socket http.Handler
	doctor *examiner
	door   *door // nil: the board has no login
	done   chan struct{}
	once   sync.Once
}

// New returns the handler for a cell whose broker accepts websockets at broker (host:port on this machine). The result
// of doctor is served as JSON at /doctor.json.
func New(cell Cell, broker string, doctor Doctor) (*Handler, error) {
	h := &Handler{files: map[string]file{}, done: make(chan struct{}), doctor: newExaminer(doctor)}
	err := fs.WalkDir(files, "web", func(name string, entry fs.DirEntry, err error) error {
		kind := types[path.Ext(name)]
		if err != nil || entry.IsDir() || kind == "" {
			return err
		}
		body, err := files.ReadFile(name)
		h.add(strings.TrimPrefix(name, "web"), kind, body)
		return err
	})
	if err != nil {
		return nil, err
	}
	h.files["/"] = h.files["/index.html"]
	body, err := json.Marshal(cell)
	if err != nil {
		return nil, err
	}
	h.add(cellPath, "application/json", body)
	h.socket = proxy(&url.URL{Scheme: "http", Host: broker}, http.DefaultTransport,
		func(*http.Request) string { return "" })
	return h, nil
}

func (h *Handler) add(at, kind string, body []byte) {
	sum := sha256.Sum256(body)
	h.files[at] = file{body: body, kind: kind, tag: `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// proxy passes websockets on to the broker. It hides the page's cookies, but for what cookies returns: all others are
// none of the broker's. It keeps the page's Origin, which the broker checks. An error of the broker is a status for the
// page and no line in the log: the page asks again every second.
func proxy(target *url.URL, over http.RoundTripper, cookies func(*http.Request) string) http.Handler {
	return &httputil.ReverseProxy{
		Transport: over,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.Path, r.Out.URL.RawQuery = "/", ""
			r.Out.Header.Del("Authorization")
			r.Out.Header.Del("Cookie")
			if own := cookies(r.In); own != "" {
				r.Out.Header.Set("Cookie", own)
			}
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	if h.door != nil && h.door.serve(w, r) {
		return
	}
	if r.URL.Path == socketPath {
		h.serveSocket(w, r)
		return
	}
	if r.URL.Path == doctorPath {
		h.doctor.ServeHTTP(w, r)
		return
	}
	f, found := h.files[r.URL.Path]
	switch {
	case !found:
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page is only read", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	// the files change with the program
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if _, err := w.Write(f.body); err != nil {
		// the reader has disconnected
		return
	}
}

// serveSocket passes one websocket on until one side closes it or the handler ends.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "this is a websocket", http.StatusUpgradeRequired)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// an upgraded connection is no longer the server's: Shutdown does not end it
	go func() {
		select {
		case <-h.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	h.socket.ServeHTTP(w, r.WithContext(ctx))
}

// Close ends all websockets. Another call does nothing.
func (h *Handler) Close() { h.once.Do(func() { close(h.done) }) }
