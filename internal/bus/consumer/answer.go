package consumer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/nats-io/nats.go"
)

// Limits of what is kept of the brokers' answers: users decide how many consumers there are, and how long their
// configurations.
const (
	answerBytesMax = 512 << 20 // of one answer, which is read as a stream
	configBytesMax = 64 << 20  // of the configurations, of all answers
	foundMax       = 100_000

	acceptEncoding  = "Accept-Encoding"
	contentEncoding = "Content-Encoding"
	encodingGzip    = "gzip"
)

// detail is a consumer in the answer of a broker.
type detail struct {
	Name   string                     `json:"name"`
	Active bool                       `json:"push_bound"`
	Config map[string]json.RawMessage `json:"config"`
}

// read returns what the consumer's configuration says.
func (d detail) read(stream string) (u Uncounted, err error) {
	if d.Config == nil {
		return u, fmt.Errorf("consumer %s of %s: its configuration is missing", d.Name, stream)
	}
	u = Uncounted{Stream: stream, Name: d.Name, Active: d.Active}
	for field, to := range map[string]any{"deliver_subject": &u.To, "filter_subject": &u.filter,
		"inactive_threshold": &u.Idle, "sourcing": &u.Sourcing} {
		if err := json.Unmarshal(d.Config[field], to); len(d.Config[field]) > 0 && err != nil {
			return u, fmt.Errorf("consumer %s of %s: %s: %w", d.Name, stream, field, err)
		}
	}
	return u, nil
}

// answer reads the answer of one broker, and keeps of it only the consumers that no limit counts. The name of a stream
// and its leader come before its consumers.
type answer struct {
	*json.Decoder
	q      *question
	node   string
	failed json.RawMessage

	stream, leader string // of the consumers that are read
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
	a.stream, a.leader = "", ""
	return a.object(func(name string) (bool, error) {
		switch name {
		case "name":
			return true, a.Decode(&a.stream)
		case "cluster":
			return true, a.object(func(name string) (bool, error) {
				if name != "leader" {
					return false, nil
				}
				return true, a.Decode(&a.leader)
			})
		case "consumer_detail", "direct_consumer_detail":
			if a.stream == "" {
				return false, errors.New("consumers before the name of their stream")
			}
			direct := name == "direct_consumer_detail"
			elsewhere := direct && a.q.leaders && a.leader != "" && a.leader != a.node
			if elsewhere || !slices.Contains(streams(a.q.Cell), a.stream) {
				return false, nil
			}
			return true, a.delimited('[', func() error { return a.readConsumer(direct) })
		}
		return false, nil
	})
}

// readConsumer keeps a consumer that no limit counts. Its configuration is kept if it is needed to end it, and if there
// is room.
func (a *answer) readConsumer(direct bool) error {
	var d detail
	if err := a.Decode(&d); err != nil {
		return err
	}
	u, err := d.read(a.stream)
	if err != nil {
		return err
	}
	u.Sourcing = u.Sourcing && !direct
	at := u.Stream + " " + u.Name
	if !direct && !u.Sourcing || a.q.seen[at] || len(a.q.found) == foundMax {
		return nil
	}
	if size := d.size(); direct && u.Idle > UncountedIdleMax && size <= a.q.room {
		u.config, a.q.room = d.Config, a.q.room-size
	}
	a.q.found, a.q.seen[at] = append(a.q.found, u), u.Sourcing // each replica has a sourcing one
	return nil
}

// size returns the bytes of a configuration.
func (d detail) size() (n int) {
	for field, value := range d.Config {
		n += len(field) + len(value)
	}
	return n
}
