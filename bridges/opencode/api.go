package opencode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Limits of one request to a server.
const (
	requestMax    = 20 * time.Second
	replyBytesMax = 256 << 20
	errorTextMax  = 200
	// A server sends a heartbeat every 10 s. A connection that is silent for longer than this is given up.
	silenceMax = 35 * time.Second
)

// errUnsupported says that the server does not have the endpoint: it answers unknown routes with its web page.
var errUnsupported = errors.New("the server does not have this endpoint")

// statusError is a refusal of the server.
type statusError struct {
	Code int
	Text string
}

// Error names the status.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.Code, e.Text) }

// refused reports whether the server understood the request and refused it: a repetition is refused, too.
func refused(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return errors.Is(err, errUnsupported) || ok && e.Code >= 400 && e.Code < 500 && !slices.Contains(passing, e.Code)
}

// passing are the refusals that say nothing of the request: it is sent again.
var passing = []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}

// unreadable reports whether a reply, or what the server has stored, is not the JSON that it should be.
func unreadable(err error) bool {
	_, ok := errors.AsType[*json.SyntaxError](err)
	return ok || misshapen(err)
}

// api is the HTTP interface of one server.
type api struct {
	base   *url.URL
	client *http.Client
	silent bool // errors do not quote the server, which may quote the user
}

// newAPI checks the address of a server.
func newAPI(address string) (*api, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("address %.100q: want http://host:port", redacted(u, address))
	}
	return &api{base: u, client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 8}}}, nil
}

// redacted returns an address without its password.
func redacted(u *url.URL, address string) string {
	if u == nil {
		if _, host, ok := strings.Cut(address, "@"); ok {
			return "…@" + host
		}
		return address
	}
	return u.Redacted()
}

// at returns the address of an endpoint. The server keeps state for each directory; "" is the one it was started in.
func (a *api) at(directory string, segments ...string) string {
	u := a.base.JoinPath(segments...)
	q := u.Query()
	if directory != "" {
		q.Set("directory", directory)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// call sends one request and decodes its reply. in and out may be nil.
func (a *api) call(ctx context.Context, method, address string, in, out any) error {
	return a.callFor(ctx, requestMax, method, address, in, out)
}

// callFor is call with another limit of its time; 0: none.
func (a *api) callFor(ctx context.Context, limit time.Duration, method, address string, in, out any) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode a request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, replyBytesMax))
	if err != nil {
		return fmt.Errorf("read the reply of %s: %w", req.URL.Path, err)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode/100 != 2:
		if a.silent {
			raw = nil
		}
		return &statusError{Code: res.StatusCode, Text: cutText(strings.TrimSpace(string(raw)), errorTextMax)}
	case kind == "text/html":
		return fmt.Errorf("%w: %s %s", errUnsupported, method, req.URL.Path)
	case out == nil || len(raw) == 0:
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("the reply of %s: %w", req.URL.Path, err)
	}
	return nil
}

func (a *api) get(ctx context.Context, out any, directory string, segments ...string) error {
	return a.call(ctx, http.MethodGet, a.at(directory, segments...), nil, out)
}

func (a *api) post(ctx context.Context, in any, directory string, segments ...string) error {
	return a.call(ctx, http.MethodPost, a.at(directory, segments...), in, nil)
}

// stream is a connection to the events of all directories.
type stream struct {
	body    io.ReadCloser
	reader  *bufio.Reader
	silence *time.Timer
	cancel  context.CancelCauseFunc
}

// errSilent says that the server sent nothing, not even a heartbeat.
var errSilent = fmt.Errorf("the server was silent for %s", silenceMax)

// events connects to the event stream, and returns when the server has said that it is connected.
func (a *api) events(ctx context.Context) (*stream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	silence := time.AfterFunc(silenceMax, func() { cancel(errSilent) })
	fail := func(err error) (*stream, error) {
		silence.Stop()
		cancel(err)
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.at("", "global", "event"), nil)
	if err != nil {
		return fail(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := a.client.Do(req) //nolint:bodyclose // the stream closes it
	if err != nil {
		return fail(err)
	}
	s := &stream{body: res.Body, reader: bufio.NewReader(res.Body), silence: silence, cancel: cancel}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		s.close()
		return nil, fmt.Errorf("the event stream: status %d, type %q", res.StatusCode, kind)
	}
	for {
		raw, err := s.next()
		if err != nil {
			s.close()
			return nil, err
		}
		if ev, err := unwrap(raw); err == nil && ev.Type == "server.connected" {
			return s, nil
		}
	}
}

// next returns the data of the next event. An event beyond the limit is dropped. Silence counts only while next waits:
// the connection buffers events that arrive between two calls.
func (s *stream) next() (json.RawMessage, error) {
	var data []byte
	s.silence.Reset(silenceMax)
	defer s.silence.Stop()
	for {
		line, tooLong, err := readLine(s.reader, lineBytesMax)
		if err != nil {
			return nil, fmt.Errorf("the event stream ended: %w", err)
		}
		s.silence.Reset(silenceMax)
		line = bytes.TrimRight(line, "\r\n")
		switch rest, isData := bytes.CutPrefix(line, []byte("data:")); {
		case tooLong:
			data = nil
		case isData && len(data)+len(rest) <= lineBytesMax:
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		case len(line) == 0 && len(data) > 0:
			return data, nil
		}
	}
}

// waiting reports whether more of the stream has arrived already.
func (s *stream) waiting() bool { return s.reader.Buffered() > 0 }

func (s *stream) close() {
	s.silence.Stop()
	s.cancel(errors.New("the event stream was closed"))
	_ = s.body.Close()
}
