package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// askedSuffix ends the name of the endpoint for users of a secured cell.
const askedSuffix = "-as"

// Fields of a request that name the asker, or the harness.
const (
	fieldBy      = "by"
	fieldHarness = "harness"
)

// Reasons for dropping a request without a reply: it would go where the sender may not publish.
var (
	errNoInbox   = errors.New("the reply would not go to an inbox")
	errDelivered = errors.New("a stream delivered it")
)

// errNoAsker reports a subject below the service's that names no asker.
var errNoAsker = errors.New("the subject is not one of a verb and an asker")

// signer sets the asker of a request.
type signer events.Asker

// askerKey is the key of the asker in the context of a request.
type askerKey struct{}

// AskerOf returns who sent the request that is handled with this context, as its subject names it. It is the zero Asker
// in a cell without users, and for the services themselves.
func AskerOf(ctx context.Context) events.Asker {
	who, _ := ctx.Value(askerKey{}).(events.Asker)
	return who
}

// WithAsker returns a context of a request of this asker.
func WithAsker(ctx context.Context, who events.Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, who)
}

// fromInbox returns why a request is dropped that a stream delivered, or whose reply would not go to an inbox.
func fromInbox(m *nats.Msg) error {
	if core.Delivered(m.Header, m.Reply) {
		return errDelivered
	}
	if !events.IsInbox(m.Reply) {
		return fmt.Errorf("%w: %.100q", errNoInbox, m.Reply)
	}
	return nil
}

// asked returns the verb and the sender of a request, or why it is dropped.
func (s *server) asked(m *nats.Msg) (string, signer, error) {
	if err := fromInbox(m); err != nil {
		return "", signer{}, err
	}
	below := strings.TrimPrefix(m.Subject, s.conn.Cell.ServiceSubject(s.service, ""))
	verb, _, _ := strings.Cut(below, ".")
	who, err := s.conn.Cell.ParseAsk(s.service, verb, m.Subject)
	if err != nil {
		return "", signer{}, fmt.Errorf("%w: %w", errNoAsker, err)
	}
	return verb, signer(who), nil
}

// sign returns the body with the asker in it, under the last of its names. The field by names a person, and a harness
// may ask about its own sessions only: a body that names another asker is refused with 403. A body that is not an
// object is left to the handler.
func (s signer) sign(body []byte) ([]byte, error) {
	field := fieldBy
	switch s.Class {
	case "":
		return body, nil
	case events.ClassHarness:
		field = fieldHarness
	}
	if len(body) == 0 {
		body = []byte(`{}`)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return body, nil
	}
	for name, value := range fields {
		// as encoding/json reads names
		if !strings.EqualFold(name, field) {
			continue
		}
		var named string
		if err := json.Unmarshal(value, &named); err != nil {
			return nil, events.BadRequest(&events.FieldError{Field: field,
				Err: fmt.Errorf("%w: want a text", events.ErrMalformed)})
		}
		if named != "" && named != s.ID {
			return nil, events.NotYours(field, fmt.Sprintf("%s: %q asks, and the request names %q", field, s.ID, named))
		}
	}
	id, err := json.Marshal(s.ID)
	if err != nil {
		return nil, fmt.Errorf("asker: %w", err)
	}
	comma := ","
	if len(fields) == 0 {
		comma = ""
	}
	// the content stays unchanged
	head := bytes.TrimSuffix(bytes.TrimSpace(body), []byte("}"))
	return fmt.Appendf(nil, `%s%s"%s":%s}`, head, comma, field, id), nil
}
