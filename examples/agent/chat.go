package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

const (
	errorBytesMax = 64 << 10 // bytes of an error's body that are read
	lineBytesMax  = 1 << 20  // bytes of one line of a stream
)

// message is one message of a conversation, in the endpoint's format.
type message struct {
	Role      string     `json:"role"` // system, user, assistant or tool
	Content   string     `json:"content"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`   // assistant
	ToolCall  string     `json:"tool_call_id,omitempty"` // tool: the id of the call
}

// toolCall is a call that the model requests.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON, unless the model makes an error
	} `json:"function"`
}

// client is a client of an endpoint that is compatible with OpenAI's chat completions. It never retries: Holdfast
// decides when a failed turn is retried.
type client struct {
	endpoint string // the part before /chat/completions
	key      string
	http     *http.Client
}

// request is one model call.
type request struct {
	Model    string     `json:"model"`
	Messages []message  `json:"messages"`
	Tools    []toolSpec `json:"tools,omitempty"`
	Stream   bool       `json:"stream"`
	Options  struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// chunk is one chunk of a stream.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
			ToolCalls []struct {
				Index int `json:"index"`
				toolCall
			} `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt        int64 `json:"prompt_tokens"`
		Completion    int64 `json:"completion_tokens"`
		PromptDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// follower has the callbacks for a stream.
type follower struct {
	// delta is called for each chunk. output reports whether the chunk is text for the user, or part of a call.
	delta  func(text string, output bool)
	finish func(reason string)
	usage  func(t events.Tokens)
}

// stream makes a model call and returns the model's message. An error from the provider is a [*harness.ProviderError].
// An error of reading the stream is returned as it is.
func (c *client) stream(ctx context.Context, req request, f follower) (message, error) {
	req.Stream, req.Options.Usage = true, true
	body, err := json.Marshal(req)
	if err != nil {
		return message{}, fmt.Errorf("agent: request: %w", err)
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.endpoint, "/")+"/chat/completions",
		bytes.NewReader(body))
	if err != nil {
		return message{}, fmt.Errorf("agent: endpoint %s: %w", c.endpoint, err)
	}
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set("Accept", "text/event-stream")
	if c.key != "" {
		hr.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(hr)
	if err != nil {
		return message{}, &harness.ProviderError{Raw: failure.Raw{Code: failure.Network, Text: err.Error()}}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return message{}, refused(resp)
	}
	return read(resp.Body, f)
}

// refused returns the error of a response that is not a stream.
func refused(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, errorBytesMax))
	if err != nil {
		body = append(body, "\n(cut: "+err.Error()+")"...)
	}
	return &harness.ProviderError{Raw: failure.Read(resp.StatusCode, failure.RetryAfter(resp.Header.Get), sent(resp),
		body)}
}

// sent returns the instant of the response by the provider's own clock, if the response has a Date. A Retry-After date
// is by that clock, too.
func sent(resp *http.Response) time.Time {
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return at
}

// read reads a stream to its end.
func read(stream io.Reader, f follower) (message, error) {
	reply, finished := message{Role: "assistant"}, false
	report := f.finish
	f.finish = func(reason string) { finished = true; report(reason) }
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if data = strings.TrimSpace(data); !ok {
			// a comment, an event's name or the end of an event
			continue
		}
		if data == "[DONE]" {
			if !finished {
				// Some providers omit the reason. [DONE] marks the end as well.
				report("")
			}
			return reply, nil
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return reply, fmt.Errorf("agent: a piece of the stream: %w", err)
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return reply, &harness.ProviderError{Raw: failure.Read(http.StatusOK, "", time.Now(), []byte(data))}
		}
		reply.take(&c, f)
	}
	return reply, lines.Err()
}

// take adds a chunk to the model's message.
func (m *message) take(c *chunk, f follower) {
	for i := range c.Choices {
		choice := &c.Choices[i]
		m.Content += choice.Delta.Content
		for _, part := range choice.Delta.ToolCalls {
			m.call(part.Index, part.toolCall)
		}
		if text := choice.Delta.Content; text != "" || choice.Delta.Reasoning != "" || len(choice.Delta.ToolCalls) > 0 {
			f.delta(text, text != "" || len(choice.Delta.ToolCalls) > 0)
		}
		if choice.Finish != "" {
			f.finish(choice.Finish)
		}
	}
	if u := c.Usage; u != nil {
		f.usage(events.Tokens{Input: u.Prompt, CacheRead: u.PromptDetails.Cached, Output: u.Completion,
			Reasoning: u.CompletionDetails.Reasoning})
	}
}

// callsMax is the maximum number of calls in one message.
const callsMax = 64

// call adds a chunk of a call.
func (m *message) call(index int, part toolCall) {
	if index < 0 || index >= callsMax {
		return
	}
	for len(m.ToolCalls) <= index {
		m.ToolCalls = append(m.ToolCalls, toolCall{Type: "function"})
	}
	c := &m.ToolCalls[index]
	if part.ID != "" {
		c.ID = part.ID
	}
	c.Function.Name += part.Function.Name
	c.Function.Arguments += part.Function.Arguments
}

// overflowed reports whether a model call failed because its prompt does not fit.
func overflowed(err error) bool {
	p, ok := errors.AsType[*harness.ProviderError](err)
	return ok && failure.Classify(p.Raw).Kind == failure.ContextExceeded
}
