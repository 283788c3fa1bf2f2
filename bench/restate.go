package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
)

// Parts c and h measure Restate beside Holdfast if there is a restate-server: the same work, in the same number of
// processes. The server is one node with its defaults, which sync its log. The agent is a service of the Go SDK: a
// session is a virtual object, which handles one invocation at a time. A question is an awakeable. The agent gives its
// id to the person in a step, so the person learns of stored questions only, and resolves it through the ingress. A
// tool is a step.
const (
	restateServer  = "restate-server"
	restateService = "Agent"
	personEnv      = "HOLDFAST_BENCH_PERSON" // the URL of the person
	adminEnv       = "HOLDFAST_BENCH_ADMIN"  // the URL of the server's admin API
	questionsEach  = 20                      // of an invocation of rounds: longer journals are slower
)

// isRestate reports whether a program of parts c and h is a restate-server.
func isRestate(program string) bool { return filepath.Base(program) == restateServer }

// freePorts returns ports of loopback that were free a moment ago.
func freePorts(n int) ([]string, error) {
	ports := make([]string, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// after all are known, so that none is given twice
		defer l.Close()
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// startRestate starts a restate-server with its data in a directory, and waits until it is ready. It returns the URL
// of its admin API; that of the cell is its ingress.
func startRestate(ctx context.Context, program, dir string) (c *cell, admin string, err error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, "", err
	}
	c = &cell{cmd: exec.Command(program, "--no-logo"), dir: dir, done: make(chan error, 1),
		url: "http://127.0.0.1:" + ports[0]}
	c.cmd.Env = append(os.Environ(), "RESTATE_BASE_DIR="+dir, "RESTATE_LISTEN_MODE=tcp", "RESTATE_BIND_IP=127.0.0.1",
		"RESTATE_INGRESS__BIND_PORT="+ports[0], "RESTATE_ADMIN__BIND_PORT="+ports[1], "RESTATE_BIND_PORT="+ports[2],
		"RESTATE_DISABLE_TELEMETRY=true", "RESTATE_LOG_FILTER=off")
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return nil, "", err
	}
	go func() { c.done <- c.cmd.Wait() }()
	admin = "http://127.0.0.1:" + ports[1]
	for _, health := range []string{admin + "/health", c.url + "/restate/health"} {
		// it refuses connections at first
		if err := c.await(ctx, func(ctx context.Context) (bool, error) {
			return call(ctx, http.DefaultClient, http.MethodGet, health, nil) == nil, nil
		}); err != nil {
			c.kill()
			return nil, "", fmt.Errorf("%s: %w", program, err)
		}
	}
	return c, admin, nil
}

// measureRestate is measureCell of a restate-server.
func measureRestate(ctx context.Context, program, what string, n int, long time.Duration) (s sample, err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	c, admin, err := startRestate(ctx, program, dir)
	if err != nil {
		return s, err
	}
	defer c.kill()
	person, err := spawn("restate-person", "", c.url, n)
	if err != nil {
		return s, err
	}
	defer person.kill()
	url, err := person.expect("ready")
	if err != nil {
		return s, err
	}
	return c.work(person, "restate-"+what, n, long, personEnv+"="+url, adminEnv+"="+admin)
}

// call sends a JSON body and returns an error unless the answer is a success. The request is sent again if the server
// closes the connection before it answers: none of them does harm twice.
func call(ctx context.Context, by *http.Client, method, url string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	// tells net/http, and is not sent
	req.Header["X-Idempotency-Key"] = nil
	res, err := by.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, url, res.Status, answer)
	}
	return err
}

// client returns an HTTP client that keeps as many connections as there are requests at once.
func client(atOnce int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, atOnce
	return &http.Client{Transport: t}
}

// playRestatePerson receives the ids of awakeables and resolves each at once, with as many requests at once as are
// expected to be open. The value is the instant of the answer, for the process that asked.
func playRestatePerson(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	open, by := make(chan string, count()), client(count())
	for range count() {
		go func() {
			for id := range open {
				if err := call(ctx, by, http.MethodPost, os.Getenv(listenEnv)+"/restate/awakeables/"+id+"/resolve",
					strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
					stop(fmt.Errorf("resolve %s: %w", id, err))
				}
			}
		}()
	}
	asked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var id string
		if err := json.NewDecoder(r.Body).Decode(&id); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case open <- id:
		case <-r.Context().Done():
		}
	})
	s := &http.Server{Handler: asked, ReadHeaderTimeout: time.Minute}
	go func() { stop(s.Serve(l)) }()
	fmt.Println("ready", "http://"+l.Addr().String())
	<-ctx.Done()
	return context.Cause(ctx)
}

// restateAgent is the agent: a service, and the program that invokes it.
type restateAgent struct {
	by     *http.Client
	person string
	took   []chan time.Duration // of each session, from the person to the agent; read for the next question to be asked
}

// playRestateAgent serves the agent's service and works in many sessions at once, as [playAgent] does.
func playRestateAgent(ctx context.Context, what string) error {
	long, err := time.ParseDuration(os.Getenv(longEnv))
	if err != nil {
		return err
	}
	a := &restateAgent{by: client(count()), person: os.Getenv(personEnv), took: make([]chan time.Duration, count())}
	object := restate.NewObject(restateService).
		Handler("rounds", restate.NewObjectHandler(a.rounds)).Handler("turns", restate.NewObjectHandler(a.turn))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	uri, err := serve(object, stop)
	if err != nil {
		return err
	}
	if err := call(ctx, a.by, http.MethodPost, os.Getenv(adminEnv)+"/deployments",
		map[string]any{"uri": uri}); err != nil {
		return err
	}
	workers := make([]worker, count())
	for i := range workers {
		a.took[i] = make(chan time.Duration)
		workers[i] = a.session(ctx, i, what, stop)
	}
	// its partitions have a leader some seconds after it is healthy
	for _, w := range workers {
		if _, err := w.do(ctx, 0); err != nil {
			return err
		}
	}
	t, err := measure(ctx, workers, long)
	if err != nil {
		return err
	}
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	fmt.Println(lineResult, string(body))
	return nil
}

// serve serves a service over HTTP/2 on loopback.
func serve(object restate.ServiceDefinition, stop context.CancelCauseFunc) (uri string, err error) {
	handler, err := server.NewRestate().WithLogger(slog.DiscardHandler, true).Bind(object).Handler()
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: handler, Protocols: &protocols, ReadHeaderTimeout: time.Minute}
	go func() { stop(s.Serve(l)) }()
	return "http://" + l.Addr().String(), nil
}

// session invokes the service again and again for a session. A round, or a turn, ends with the return of an answer.
func (a *restateAgent) session(ctx context.Context, i int, what string, stop context.CancelCauseFunc) worker {
	go func() {
		for ctx.Err() == nil {
			if err := call(ctx, a.by, http.MethodPost,
				fmt.Sprintf("%s/%s/%d/%s", os.Getenv(listenEnv), restateService, i, what), i); err != nil {
				stop(err)
			}
		}
	}()
	return worker{do: func(ctx context.Context, _ int) (time.Duration, error) {
		select {
		case took := <-a.took[i]:
			return took, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}}
}

// ask asks a question, and returns how long the answer took from the person to here.
func (a *restateAgent) ask(ctx restate.ObjectContext) (time.Duration, error) {
	question := restate.Awakeable[string](ctx)
	if _, err := restate.Run(ctx, func(run restate.RunContext) (restate.Void, error) {
		return restate.Void{}, call(run, a.by, http.MethodPost, a.person, question.Id())
	}); err != nil {
		return 0, err
	}
	answer, err := question.Result()
	back := time.Now()
	if err != nil {
		return 0, err
	}
	begun, wrong := strconv.ParseInt(answer, 10, 64)
	return back.Sub(time.Unix(0, begun)), wrong
}

// rounds asks one question after the other.
func (a *restateAgent) rounds(ctx restate.ObjectContext, i int) (restate.Void, error) {
	for range questionsEach {
		took, err := a.ask(ctx)
		if err != nil {
			return restate.Void{}, err
		}
		a.took[i] <- took
	}
	return restate.Void{}, nil
}

// turn is a whole turn: a tool, a second tool that asks a question, the end. The end of a tool is the result of its
// step; the question and the end of the second tool are steps of their own, as in Holdfast.
func (a *restateAgent) turn(ctx restate.ObjectContext, i int) (restate.Void, error) {
	tool := func(result string) error {
		_, err := restate.Run(ctx, func(restate.RunContext) (string, error) { return result, nil })
		return err
	}
	if err := tool("README.md"); err != nil {
		return restate.Void{}, err
	}
	took, err := a.ask(ctx)
	if err != nil {
		return restate.Void{}, err
	}
	if err := tool("yes"); err != nil {
		return restate.Void{}, err
	}
	a.took[i] <- took
	return restate.Void{}, nil
}
