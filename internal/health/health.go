// Package health serves the state of a process over HTTP: /healthz (alive), /readyz (ready) and /metrics (Prometheus).
//
// A process is ready when each of its parts is connected to the broker, its consumers exist and have an active process
// as soon as messages wait, and fewer messages wait than the limit. A check asks the parts, for at most
// [checkTimeoutMS]; a part that does not answer in time is not ready. Requests share checks: one runs at a time, and
// its result is used for [reportKeptMS].
package health

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the server.
const (
	checkTimeoutMS  = 2_000
	reportKeptMS    = 500 // a report, for later requests
	headerTimeoutMS = 5_000
	readTimeoutMS   = 5_000    // for a whole request
	writeTimeoutMS  = 10_000   // from the header of a request to the end of its response: no handler streams
	idleTimeoutMS   = 5_000    // of a connection between two requests
	headerBytesMax  = 64 << 10 // of a request
	stopTimeoutMS   = 300      // for open requests when the process ends: a service ends within a second
)

// Names of loopback.
const (
	loopback  = "127.0.0.1"
	loopback6 = "::1"
	httpPort  = 80 // the port that an address without one means
)

// ErrPortInUse reports that another process listens on the address. Stop it, or choose another port (0: any).
var ErrPortInUse = errors.New("port in use")

// Part is one service of this process.
type Part struct {
	// Name of the service.
	Name string
	// Connected reports whether the process is connected to the broker now.
	Connected func() bool
	// Consumers of the service; empty for a service without consumers.
	Consumers []Consumer
	// ReadyLagMax is the maximum number of messages that wait for one consumer. Above it the part is not ready.
	ReadyLagMax uint64
	// Counts returns the service's own counters by name. They never decrease. nil for none.
	Counts func() map[string]uint64
}

// Consumer is one durable consumer of a part.
type Consumer struct {
	// Name of the durable.
	Name string
	// Lag returns the number of messages that are not acknowledged, and the active process ("" without one).
	Lag func(ctx context.Context) (pending uint64, active string, err error)
}

// Server is the HTTP server. Parts may be added while it runs.
type Server struct {
	listener net.Listener
	mux      *http.ServeMux
	names    []string    // values of the Host header that are answered, beside those of loopback
	tls      *tls.Config // nil: without

	mu       sync.Mutex
	parts    []Part
	starting bool
	last     *check // nil: none with these parts
	ends     []func()
}

// check is one check of all parts, for the requests that arrive during it and shortly after.
type check struct {
	done   chan struct{} // closed when report is there
	report Report
	at     time.Time // when it was
}

// kept reports whether requests may use the check.
func (c *check) kept() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.done:
		return time.Since(c.at) < reportKeptMS*time.Millisecond
	default:
		// it runs
		return true
	}
}

// Listen opens the socket at host:port; port 0 is any. It fails with [ErrPortInUse]. The server answers no request
// before [Server.Run]. version is shown in the metrics.
func Listen(ctx context.Context, addr, version string) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf(
			"%w: %s: stop what listens there, or choose another address (port 0: any)",
			ErrPortInUse,
			addr,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	s := &Server{listener: l, mux: http.NewServeMux(), starting: true}
	s.mux.HandleFunc(
		"GET /healthz",
		func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, Report{OK: true}) },
	)
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		rep := s.recent(r.Context())
		code := http.StatusOK
		if !rep.OK {
			code = http.StatusServiceUnavailable
		}
		reply(w, code, rep)
	})
	registry := prometheus.NewRegistry()
	if err := register(registry, s, version); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), l.Close())
	}
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return s, nil
}

// Handle registers another handler; pattern as in [http.ServeMux].
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// OnEnd registers a function that ends what a handler took over from the server, such as websockets. It is called when
// the server ends. Register it before [Server.Run].
func (s *Server) OnEnd(end func()) { s.ends = append(s.ends, end) }

// Secure makes the server answer requests for this Host, beside those of loopback, and no others, beyond loopback, too.
// It serves with this configuration of TLS, nil for none. Call it before [Server.Run].
func (s *Server) Secure(host string, cfg *tls.Config) { s.names, s.tls = append(s.names, host), cfg }

// Add adds a part to the report.
func (s *Server) Add(p Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts, s.last = append(s.parts, p), nil
}

// Started declares that all parts are added. Before it the process is not ready.
func (s *Server) Started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting, s.last = false, nil
}

// Close closes the socket of a server that never ran.
func (s *Server) Close() error { return s.listener.Close() }

// URL returns the server's base URL.
func (s *Server) URL() string {
	if s.tls != nil {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Hosts returns the names under which a browser on this machine reaches the server, with the port: the values of the
// Host header that it answers. It is empty for a server beyond loopback: there probes and Prometheus use the names of
// services.
func (s *Server) Hosts() []string {
	at, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return nil
	}
	var hosts []string
	for _, name := range []string{at.IP.String(), loopback, "localhost", loopback6} {
		hosts = append(hosts, net.JoinHostPort(name, strconv.Itoa(at.Port)))
		// a browser leaves it out
		if at.Port == httpPort {
			hosts = append(hosts, strings.TrimSuffix(hosts[len(hosts)-1], ":"+strconv.Itoa(httpPort)))
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// local rejects requests whose Host is not one of [Server.Hosts] or of [Server.Secure], on a server that listens on
// loopback or has such a name. A web page whose name resolves to this machine must not read the responses.
func (s *Server) local(next http.Handler) http.Handler {
	what := "listens on loopback"
	hosts := s.Hosts()
	if len(s.names) > 0 {
		what, hosts = "has a name", append(hosts, s.names...)
	}
	if len(hosts) == 0 {
		return next
	}
	// browsers leave it out, other clients name it
	usual := ":80"
	if s.tls != nil {
		usual = ":443"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := strings.CutSuffix(r.Host, usual)
		if !slices.Contains(hosts, r.Host) && !slices.Contains(s.names, name) {
			http.Error(w, fmt.Sprintf("this address %s and is not %q: ask for %s", what, r.Host,
				strings.Join(hosts, " or ")), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Run serves until ctx ends, then waits for open requests for at most [stopTimeoutMS].
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{
		Handler:           s.local(s.mux),
		ReadHeaderTimeout: headerTimeoutMS * time.Millisecond,
		ReadTimeout:       readTimeoutMS * time.Millisecond,
		WriteTimeout:      writeTimeoutMS * time.Millisecond,
		IdleTimeout:       idleTimeoutMS * time.Millisecond,
		MaxHeaderBytes:    headerBytesMax,
	}
	for _, end := range s.ends {
		srv.RegisterOnShutdown(end)
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeoutMS*time.Millisecond)
		defer cancel()
		// a client that does not read
		if srv.Shutdown(grace) != nil {
			srv.Close()
		}
	})()
	listener := s.listener
	if s.tls != nil {
		listener = tls.NewListener(listener, s.tls)
		// a line for each failed handshake
		srv.ErrorLog = log.New(io.Discard, "", 0)
	}
	err := srv.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	return err
}

// Report is the body of /readyz.
type Report struct {
	OK    bool         `json:"ok"`
	Parts []PartReport `json:"parts,omitempty"`
}

// PartReport is the state of one part.
type PartReport struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it is not ready

	Connected bool             `json:"connected"`
	Consumers []ConsumerReport `json:"consumers,omitempty"` // those that answered
}

// ConsumerReport is the state of one consumer of a part.
type ConsumerReport struct {
	Name   string `json:"name"`
	Lag    uint64 `json:"lag"`    // messages that are not acknowledged
	Active bool   `json:"active"` // some process of the service is active
}

// Report asks every part now.
func (s *Server) Report(ctx context.Context) Report {
	s.mu.Lock()
	parts, starting := append([]Part(nil), s.parts...), s.starting
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, checkTimeoutMS*time.Millisecond)
	defer cancel()
	rep := Report{OK: !starting}
	for i := range parts {
		p := parts[i].report(ctx)
		rep.OK = rep.OK && p.OK
		rep.Parts = append(rep.Parts, p)
	}
	return rep
}

// recent returns the report of a check that runs or has just ended; else it checks itself.
func (s *Server) recent(ctx context.Context) Report {
	s.mu.Lock()
	c := s.last
	if c.kept() {
		s.mu.Unlock()
		select {
		case <-c.done:
			return c.report
		case <-ctx.Done():
			// the client has disconnected
			return Report{}
		}
	}
	c = &check{done: make(chan struct{})}
	s.last = c
	s.mu.Unlock()
	defer close(c.done)
	// others wait for it
	c.report = s.Report(context.WithoutCancel(ctx))
	c.at = time.Now()
	return c.report
}

func (p *Part) report(ctx context.Context) PartReport {
	rep := PartReport{Name: p.Name, Connected: p.Connected()}
	if !rep.Connected {
		rep.Reason = "not connected to the broker"
		return rep
	}
	for _, c := range p.Consumers {
		pending, active, err := c.Lag(ctx)
		if err != nil {
			rep.Reason = fmt.Sprintf("consumer %s: %v", c.Name, err)
			continue
		}
		rep.Consumers = append(rep.Consumers, ConsumerReport{Name: c.Name, Lag: pending, Active: active != ""})
		switch {
		case active == "" && pending > 0:
			// without messages the broker names no active process
			rep.Reason = fmt.Sprintf("consumer %s: no process is active; messages that wait: %d", c.Name, pending)
		case pending > p.ReadyLagMax:
			rep.Reason = fmt.Sprintf(
				"consumer %s: messages that wait: %d, more than %d", c.Name, pending, p.ReadyLagMax)
		}
	}
	rep.OK = rep.Reason == ""
	return rep
}

func reply(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	// these types always encode
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(append(body, '\n')); err != nil {
		// the client has disconnected
		return
	}
}
