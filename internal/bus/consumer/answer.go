package consumer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// Limits of what is kept of the brokers' answers: users decide how many consumers there are, and how long their
// configurations.
const (
	answerBytesMax = 512 << 20 // of one answer, which is read as a stream
	foundMax       = 100_000   // of those that no limit counts, and of the others in the broker's lists as many

	acceptEncoding  = "Accept-Encoding"
	contentEncoding = "Content-Encoding"
	encodingGzip    = "gzip"
)

// detail is a consumer in the answer of a broker.
type detail struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Active  bool      `json:"push_bound"`
	Config  *struct {
		To       string `json:"deliver_subject"`
		Sourcing bool   `json:"sourcing"`
	} `json:"config"`
}

// answer reads the answer of one broker. The name of a stream comes before its consumers.
type answer struct {
	*json.Decoder
	q      *question
	node   string
	failed json.RawMessage

	stream string // of the consumers that are read
}

// read adds what the answer of one broker has, and returns its name.
func (q *question) read(m *nats.Msg) (node string, err error) {
	var text io.Reader = bytes.NewReader(m.Data)
	if m.Header.Get(contentEncoding) == encodingGzip {
		if text, err = gzip.NewReader(text); err != nil {
			return "", fmt.Errorf("consumers that no limit counts: %w", err)
		}
	}
	a := answer{Decoder: json.NewDecoder(io.LimitReader(text, answerBytesMax)), q: q}
	if err := a.object(a.top); err != nil {
		return a.node, fmt.Errorf("consumers that no limit counts, answer of %s: %w", a.node, err)
	}
	if len(a.failed) > 0 {
		return a.node, fmt.Errorf("consumers that no limit counts, answer of %s: %s", a.node, a.failed)
	}
	return a.node, nil
}

// object reads an object. field reads the value of a field, and returns false for one that it does not know.
func (a *answer) object(field func(name string) (known bool, err error)) error {
	return a.delimited('{', func() error {
		name, err := a.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string)
		known, err := field(text)
		if err == nil && !known {
			err = a.Decode(new(json.RawMessage))
		}
		return err
	})
}

// delimited reads an object or an array; null has no items.
func (a *answer) delimited(begin json.Delim, item func() error) error {
	first, err := a.Token()
	switch {
	case err != nil:
		return err
	case first == nil:
		return nil
	case first != begin:
		return fmt.Errorf("%v instead of %v at byte %d", first, begin, a.InputOffset())
	}
	for a.More() {
		if err := item(); err != nil {
			return err
		}
	}
	_, err = a.Token()
	return err
}

func (a *answer) top(name string) (bool, error) {
	switch name {
	case "server":
		return true, a.object(func(name string) (bool, error) {
			if name != "name" {
				return false, nil
			}
			return true, a.Decode(&a.node)
		})
	case "error":
		return true, a.Decode(&a.failed)
	case "data":
		return true, a.object(func(name string) (bool, error) {
			if name != "stream_detail" {
				return false, nil
			}
			return true, a.delimited('[', a.readStream)
		})
	}
	return false, nil
}

// readStream reads one stream with its consumers.
func (a *answer) readStream() error {
	a.stream = ""
	return a.object(func(name string) (bool, error) {
		switch name {
		case "name":
			return true, a.Decode(&a.stream)
		case "consumer_detail", "direct_consumer_detail":
			if a.stream == "" {
				return false, errors.New("consumers before the name of their stream")
			}
			if !slices.Contains(streams(a.q.Cell), a.stream) {
				return false, nil
			}
			return true, a.delimited('[', func() error { return a.readConsumer(name == "direct_consumer_detail") })
		}
		return false, nil
	})
}

// readConsumer keeps a consumer that no limit counts. Without configurations it also keeps the names of the listed
// ones.
func (a *answer) readConsumer(direct bool) error {
	var d detail
	if err := a.Decode(&d); err != nil {
		return err
	}
	if a.q.configs && d.Config == nil {
		return fmt.Errorf("consumer %s of %s: its configuration is missing", d.Name, a.stream)
	}
	at := a.stream + " " + d.Name
	switch {
	case a.q.seen[at]:
		return nil
	case !direct && !a.q.configs:
		if len(a.q.listed) == foundMax {
			return nil
		}
		a.q.listed = append(a.q.listed, listed{a.stream, d.Name, d.Created})
	case direct || d.Config.Sourcing:
		if len(a.q.found) == foundMax {
			return nil
		}
		u := Uncounted{Stream: a.stream, Name: d.Name, Sourcing: !direct, Active: d.Active}
		if direct {
			u.Node = a.node
		}
		if d.Config != nil {
			u.To = d.Config.To
		}
		a.q.found = append(a.q.found, u)
	default:
		return nil
	}
	a.q.seen[at] = true
	return nil
}
