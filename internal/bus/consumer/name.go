package consumer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// keyedDigits is the length of the part of a durable's name that follows from the key: 12 bytes in hexadecimal.
const keyedDigits = 24

// nameOf returns the name of a durable at the broker. Without a key it is the durable's own name. A user who knows the
// name can let the broker deliver to the subscriptions of that consumer in the server, so a secured cell has a key.
func nameOf(key []byte, stream, durable string) string {
	if len(key) == 0 {
		return durable
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(stream + " " + durable))
	return durable + "-" + hex.EncodeToString(h.Sum(nil))[:keyedDigits]
}

// subject returns the subject of a request about this consumer.
func (c *consumption) subject(verb string) string {
	return "CONSUMER." + verb + "." + c.stream + "." + c.name
}

// call is [core.Conn.Call] for a request about this consumer. Errors name the durable: the name at the broker is a
// secret, and /readyz shows errors. A refusal of the broker names the whole subject.
func (c *consumption) call(ctx context.Context, op, subject string, req, resp any) error {
	err := c.conn.Call(ctx, op+" "+c.durable, subject, req, resp)
	if err == nil || c.name == c.durable {
		return err
	}
	return unnamedError{err, strings.ReplaceAll(err.Error(), c.name, c.durable)}
}

// unnamedError is an error with another text.
type unnamedError struct {
	err  error
	text string
}

// Error implements error.
func (e unnamedError) Error() string { return e.text }

// Unwrap returns the error with its own text.
func (e unnamedError) Unwrap() error { return e.err }

// keyed reports whether name can be the name of this durable under a key.
func keyed(name, durable string) bool {
	digits, ok := strings.CutPrefix(name, durable+"-")
	return ok && len(digits) == keyedDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// find returns the information about a source's consumer. A reader without the key, who may list consumers, also finds
// the consumer by the first part of its name. If several have such a name, as after the service was given a key, it is
// the one that processes use. It fails with [core.ErrNotFound] without a consumer, and with another error if no process
// uses any of several, or if processes use several.
func (c *consumption) find(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	info, err := c.info(ctx)
	if err != nil && !errors.Is(err, core.ErrNotFound) || err == nil && used(info) || len(c.conn.ConsumerKey) > 0 {
		return info, err
	}
	var found []*jetstream.ConsumerInfo
	if err == nil {
		found = append(found, info)
	}
	denied := each(ctx, c.conn, c.stream, func(info *jetstream.ConsumerInfo) {
		if keyed(info.Name, c.durable) {
			found = append(found, info)
		}
	})
	switch {
	case errors.Is(denied, core.ErrForbidden):
		// a service: its consumer is not made yet, or no process uses it at this moment
		return info, err
	case denied != nil:
		return info, denied
	case len(found) == 0:
		return info, err
	case len(found) == 1:
		return found[0], nil
	}
	inUse := slices.DeleteFunc(slices.Clone(found), func(info *jetstream.ConsumerInfo) bool { return !used(info) })
	if len(inUse) != 1 {
		return info, fmt.Errorf("%d consumers of %s have the name of %s, with or without a key, and processes "+
			"use %d of them", len(found), c.stream, c.durable, len(inUse))
	}
	return inUse[0], nil
}

// used reports whether a process uses a consumer of a service: one is active, or waits for messages.
func used(info *jetstream.ConsumerInfo) bool { return pinned(info) != "" || info.NumWaiting > 0 }

// each calls fn for the consumers of a stream.
func each(ctx context.Context, conn *core.Conn, stream string, fn func(*jetstream.ConsumerInfo)) error {
	for offset := 0; offset < consumersCheckedMax; {
		var page struct {
			Total     int                       `json:"total"`
			Consumers []*jetstream.ConsumerInfo `json:"consumers"`
		}
		req := map[string]int{"offset": offset}
		if err := conn.Call(ctx, "list the consumers of "+stream, "CONSUMER.LIST."+stream, req, &page); err != nil {
			return err
		}
		for _, info := range page.Consumers {
			fn(info)
		}
		if offset += len(page.Consumers); len(page.Consumers) == 0 || offset >= page.Total {
			break
		}
	}
	return nil
}
