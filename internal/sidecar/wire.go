package sidecar

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

const (
	bufferBytes  = 64 << 10
	clipBytes    = 100     // of what an error quotes
	failureBytes = 8 << 10 // of the text of a failure
)

// Errors of a line.
var (
	errTooLong    = fmt.Errorf("a line has more than %d bytes; it was not read", LineBytesMax)
	errNotJSON    = errors.New("a line is not JSON")
	errNotMessage = errors.New("a line is no request, notification or reply of JSON-RPC 2.0")
	errID         = errors.New("the id of a request is a text or a number")
)

// message is any message of JSON-RPC 2.0.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  *string         `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// replyID returns the id to reply under; nil for none, and for one that is no text and no number.
func (m *message) replyID() json.RawMessage {
	if len(m.ID) == 0 || m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9') {
		return nil
	}
	return m.ID
}

// answer returns the reply to a request.
func answer(id json.RawMessage, result any, err error) message {
	if err != nil {
		return message{JSONRPC: "2.0", ID: id, Error: errorOf(err)}
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return message{JSONRPC: "2.0", ID: id, Error: errorOf(fmt.Errorf("the result: %w", err))}
	}
	return message{JSONRPC: "2.0", ID: id, Result: raw}
}

// refusal returns the reply to a request that was not run; without an id its id is null.
func refusal(id json.RawMessage, code int, err error) message {
	if id == nil {
		id = json.RawMessage("null")
	}
	return message{JSONRPC: "2.0", ID: id, Error: protocolError(code, err)}
}

// clip shortens what an error quotes.
func clip(text string) string {
	if len(text) <= clipBytes {
		return text
	}
	return strings.ToValidUTF8(text[:clipBytes], "") + "…"
}

// lines reads lines of a limited length.
type lines struct{ r *bufio.Reader }

func newLines(in io.Reader) *lines { return &lines{bufio.NewReaderSize(in, bufferBytes)} }

// next returns the next line, without spaces around it. A line that is too long is skipped, and the error is
// errTooLong. A line that the end of the stream cuts off is no message: its writer died while it wrote.
func (l *lines) next() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if long = long || len(line)+len(part) > LineBytesMax+1; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		case long:
			return nil, errTooLong
		}
		return bytes.TrimSpace(line), nil
	}
}

// writer writes messages, each as one line.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *writer) write(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(append(line, '\n'))
	return err
}

// close closes the stream, also below a write that waits.
func (w *writer) close(c io.Closer) error { return c.Close() }
