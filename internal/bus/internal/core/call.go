package core

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/pkg/codec"
)

// togetherKey is the metadata key of a log whose broker syncs each write, so that concurrent writes are sent together;
// a hint.
const TogetherKey = "hf.together"

// neverMax is the value of a limit that a stream or a consumer does not have.
const NeverMax = -1

// StreamInfo returns a stream's present state; [ErrNotFound] without one.
func (c *Conn) StreamInfo(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	if err := c.Call(ctx, "look at stream "+stream, "STREAM.INFO."+stream, nil, &info); err != nil {
		return nil, err
	}
	if stream == c.Cell.LogStream() && info.Config.Metadata[TogetherKey] != "" && info.Config.Replicas == 1 {
		c.Together.Store(true)
	}
	return &info, nil
}

// getReply is the reply to a [GetRequest].
type getReply struct {
	Message *Raw `json:"message"`
}

// quickly decodes the reply in the form that the broker writes; false for any other form, which is left to
// encoding/json.
func (r *getReply) quickly(body []byte) bool {
	var m Raw
	var head, data string
	c := codec.Reader(body)
	c.Mark(`{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":`)
	codec.Text(c, `{"subject":`, &m.Subject)
	codec.Number(c, `,"seq":`, &m.Seq)
	codec.Some(c, `,"hdrs":`, &head)
	codec.Some(c, `,"data":`, &data)
	codec.Time(c, `,"time":`, &m.Time)
	c.Mark(`}}`)
	if !c.Ended() {
		return false
	}
	for text, to := range map[*string]*[]byte{&head: &m.RawHead, &data: &m.Data} {
		if *text == "" {
			continue
		}
		var err error
		if *to, err = base64.StdEncoding.DecodeString(*text); err != nil {
			return false
		}
	}
	r.Message = &m
	return true
}

// Late returns the error for a caller whose time is over: the reason of a refused login, if there is one.
func (c *Conn) Late(op string, err error) error {
	if auth := c.authErr.Load(); auth != nil {
		return *auth
	}
	return unreachable(op, err)
}

// Pause waits and reports whether ctx is still alive.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Call sends a request to the JetStream API (subject without its prefix) and decodes the reply into resp. It tries
// again while the broker or a leader is away, until ctx ends, so it is only for requests that may be repeated. Errors
// are translated.
func (c *Conn) Call(ctx context.Context, op, subject string, req, resp any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if req == nil {
		body = nil
	}
	try := func() error {
		err := c.CallOnce(ctx, op, APIPrefix+subject, body, resp)
		if err != nil && (ctx.Err() != nil || c.NC.IsClosed() || !errors.Is(err, ErrUnreachable)) {
			return backoff.Permanent(err)
		}
		return err
	}
	var last error
	err = backoff.RetryNotify(try, backoff.WithContext(NewBackoff(), ctx), func(err error, _ time.Duration) {
		last = err
	})
	if err == nil || ctx.Err() == nil {
		return err
	}
	if last == nil {
		last = err
	}
	return c.Late(op, last)
}

// CallOnce is [Conn.Call] with one attempt, for the whole subject and a body that is encoded.
func (c *Conn) CallOnce(ctx context.Context, op, subject string, body []byte, resp any) error {
	err := c.exchange(ctx, op, subject, body, resp)
	c.observe(ctx, err)
	return err
}

func (c *Conn) exchange(ctx context.Context, op, subject string, body []byte, resp any) error {
	started := time.Now()
	attempt, leave := c.attempts.enter(ctx)
	defer leave()
	m, err := c.NC.RequestWithContext(attempt, subject, body)
	if denied := c.Denied.Since(subject, started); denied != nil {
		return denied
	}
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %s: %w", ErrUnreachable, op, err)
	case err != nil:
		return Translate(op, err)
	}
	if q, ok := resp.(*getReply); ok && q.quickly(m.Data) {
		return nil
	}
	if bytes.Contains(m.Data, []byte(`"error"`)) {
		var failed struct {
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &failed); err == nil && failed.Error != nil {
			return Translate(op, failed.Error)
		}
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("%s: reply: %w", op, err)
	}
	return nil
}

// GetRequest requests one message: by sequence, the first of a subject from a sequence on, or the last of a subject.
type GetRequest struct {
	Seq  uint64 `json:"seq,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	// Since, with Next and without Seq: the first one stored then or later.
	Since *time.Time `json:"start_time,omitempty"`
}

// Raw is one stored message.
type Raw struct {
	Subject string      `json:"subject"`
	Seq     uint64      `json:"seq"`
	RawHead []byte      `json:"hdrs"`
	Data    []byte      `json:"data"`
	Time    time.Time   `json:"time"`
	Header  nats.Header `json:"-"`
}

// Get reads one message from the stream's leader; [ErrNotFound] without one. Others decide on commits and objects, and
// no decision may outlive them: those are returned when they are synced.
func (c *Conn) Get(ctx context.Context, stream string, req GetRequest) (*Raw, error) {
	if stream != c.Cell.LogStream() && stream != "OBJ_"+c.Cell.ObjectBucket() {
		return c.get(ctx, stream, req)
	}
	for pace := NewBackoff(); ; {
		life := c.Syncs.Uptime()
		m, err := c.get(ctx, stream, req)
		if err != nil {
			return nil, err
		}
		if err = c.Syncs.Await(ctx, life, stream, m.Seq); err == nil {
			return m, nil
		}
		if !errors.Is(err, ErrUnreachable) || c.NC.IsClosed() || !Pause(ctx, pace.NextBackOff()) {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
	}
}

func (c *Conn) get(ctx context.Context, stream string, req GetRequest) (*Raw, error) {
	var resp getReply
	if err := c.Call(ctx, "read "+stream, "STREAM.MSG.GET."+stream, req, &resp); err != nil {
		return nil, err
	}
	m := resp.Message
	if m == nil {
		return nil, fmt.Errorf("%w: read %s: empty reply", ErrUnreachable, stream)
	}
	if len(m.RawHead) > 0 {
		m.Header = headerOf(m.RawHead)
	}
	return m, nil
}

// Nothing decodes any JSON object and keeps nothing.
type Nothing struct{}
