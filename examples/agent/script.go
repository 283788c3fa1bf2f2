package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/examples/agent/script"
)

// scriptedModel is the name of the model of --script.
const scriptedModel = "script"

// serveScript serves a scripted model on loopback, to try the agent without an account, until stop.
func serveScript(ctx context.Context) (endpoint string, stop func() error, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: &script.Server{Reply: scripted}, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return "http://" + l.Addr().String() + "/v1", func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// scripted is a model that asks a question, wants to run a command, and repeats what came of both. It follows from the
// conversation alone, so that the agent can be killed at any point.
func scripted(q script.Request) script.Step {
	if q.Summary {
		return script.Step{Text: "The user tried the script of the agent. It asked a question and ran a command."}
	}
	var results []string
	for _, m := range q.Messages {
		switch m.Role {
		case "user":
			results = nil
		case "tool":
			results = append(results, strings.TrimSpace(m.Content))
		}
	}
	switch len(results) {
	case 0:
		return script.Step{Text: "I follow a script, and have one question.", Calls: []script.Call{{Name: asking,
			Arguments: `{"question":"Shall I list the files here?","options":["yes","no"]}`}}}
	case 1:
		if results[0] != "yes" {
			return script.Step{Text: fmt.Sprintf("You said: %s. Then I leave the files alone.", results[0])}
		}
		return script.Step{Text: "I need your permission for a command.", Calls: []script.Call{{Name: "run",
			Arguments: `{"command":"ls"}`}}}
	}
	return script.Step{Text: "This came of the command:\n" + results[len(results)-1]}
}
