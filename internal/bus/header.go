package bus

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

// The broker stores everything that a client puts between the first line and the empty one of its headers: a line
// without a colon, a key with a space. The client library then returns no header at all, and cannot write such a key
// again. The readable part of a header counts here, and the rest is kept under headerOdd.
const (
	headerOdd     = "Hf-Unreadable-Header" // one line that is no header field, quoted
	oddLinesMax   = 8                      // kept of a header
	oddBytesMax   = 200                    // kept of a line
	headersAtOnce = 32                     // that are read again concurrently
)

// headerOf reads the readable part of a header block.
func headerOf(raw []byte) nats.Header {
	if h, err := nats.DecodeHeadersMsg(raw); err == nil {
		return h
	}
	h := nats.Header{}
	_, rest, _ := strings.Cut(string(raw), "\n")
	for line := range strings.SplitSeq(rest, "\n") {
		line = strings.TrimSuffix(line, "\r")
		key, value, ok := strings.Cut(line, ":")
		switch {
		case ok && key != "":
			h[key] = append(h[key], strings.TrimLeft(value, " \t"))
		case line != "":
			keepOdd(h, line)
		}
	}
	return h
}

// keepOdd keeps an unreadable line for operators.
func keepOdd(h nats.Header, line string) {
	if len(h[headerOdd]) < oddLinesMax {
		h[headerOdd] = append(h[headerOdd], strconv.Quote(line[:min(len(line), oddBytesMax)]))
	}
}

// sendable reports whether the client library can write a key of a header.
func sendable(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' || strings.IndexByte("\"()/,:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return key != ""
}

// withHeaders reads the headers of deliveries that came without: the library drops a header that it cannot read. A
// message that is gone meanwhile stays without.
func (b *Bus) withHeaders(ctx context.Context, stream string, ds []delivery) error {
	var all errgroup.Group
	all.SetLimit(headersAtOnce)
	for i := range ds {
		if ds[i].msg.Header != nil {
			continue
		}
		all.Go(func() error {
			m, err := b.get(ctx, stream, getRequest{Seq: ds[i].seq})
			switch {
			case err == nil:
				ds[i].msg.Header = m.Header
			case !errors.Is(err, ErrNotFound) || noStream(err):
				return err
			}
			return nil
		})
	}
	return all.Wait()
}

// pinOf returns the pin that the broker gave with a delivery, "" if it cannot be read. It follows everything that the
// author wrote.
func pinOf(h nats.Header) string {
	if pins := h[headerPin]; len(pins) > 0 {
		return pins[len(pins)-1]
	}
	return ""
}
