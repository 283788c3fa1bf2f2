package opencode

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the plugin is part of the program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// PluginSource is the plugin for OpenCode, a module in JavaScript without dependencies.
//
//go:embed plugin/holdfast.js
var PluginSource []byte

// Variables in the environment of OpenCode that its plugin reads.
const (
	PluginURLVar   = "HOLDFAST_PLUGIN_URL"
	PluginTokenVar = "HOLDFAST_PLUGIN_TOKEN" //nolint:gosec // the name of a variable
	PluginQueueVar = "HOLDFAST_PLUGIN_QUEUE"
)

// Limits of a request of the plugin.
const (
	pluginBytesMax = 16 << 20
	pluginReadMax  = 10 * time.Second
)

// Plugin is where the plugin in OpenCode asks the bridge whether a call may run.
type Plugin struct {
	Listener net.Listener // Run closes it
	Token    string       // what requests have to name; not empty
}

// ServerEnv returns the variables that a server has when it is started for this bridge: those with which its plugin
// finds the bridge, and the one that leaves compactions to Holdfast.
func (b *Bridge) ServerEnv() (env []string) {
	if b.Drive.Compaction {
		env = append(env, AutoCompactVar+"=1")
	}
	if b.Plugin == nil {
		return env
	}
	if b.Drive.Queue {
		env = append(env, PluginQueueVar+"=1")
	}
	return append(env, PluginURLVar+"=http://"+b.Plugin.Listener.Addr().String(), PluginTokenVar+"="+b.Plugin.Token)
}

// verdict is a reply to the plugin. It asks again after 503.
type verdict struct {
	status int
	text   string
}

// Verdicts.
var (
	permitted   = verdict{status: http.StatusNoContent}
	notYet      = verdict{http.StatusServiceUnavailable, "the bridge does not follow this process of OpenCode yet"}
	replaced    = verdict{http.StatusConflict, "the bridge follows another process of OpenCode in place of this one"}
	isOver      = verdict{http.StatusConflict, "the log has the end of this call: it was closed before it ran"}
	leaving     = verdict{http.StatusServiceUnavailable, "the bridge ends"}
	wrongToken  = verdict{http.StatusUnauthorized, "the token is not that of the bridge: compare " + PluginTokenVar}
	withdrawn   = verdict{http.StatusConflict, "it was withdrawn from the queue, or its turn has failed"}
	waits       = verdict{http.StatusAccepted, "it waits for its turn"}
	unknownPath = verdict{http.StatusNotFound, "this bridge does not know the request: print its plugin again"}
)

// pluginRequest is a request of the plugin.
type pluginRequest struct {
	Session string   `json:"session"`
	Call    string   `json:"call"`    // its id, with /call
	Message string   `json:"message"` // its id, with /message
	Text    string   `json:"text"`    // of the message
	Marks   []string `json:"marks"`   // of the process that asks
}

// serve answers the plugin until ctx ends. The returned function waits for the last reply.
func (r *follower) serve(ctx context.Context) (end func()) {
	p := r.Plugin
	if p == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	srv := &http.Server{Handler: http.HandlerFunc(r.plugin), ReadHeaderTimeout: pluginReadMax,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(p.Listener); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("the plugin gets no replies", "err", err)
		}
	}()
	return func() {
		cancel()
		_ = srv.Shutdown(context.WithoutCancel(ctx))
		<-done
	}
}

// plugin answers one request of the plugin.
func (r *follower) plugin(w http.ResponseWriter, req *http.Request) {
	v := r.verdictOf(w, req)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(v.status)
	_, _ = io.WriteString(w, v.text)
}

func (r *follower) verdictOf(w http.ResponseWriter, req *http.Request) verdict {
	if !r.Plugin.knows(req) {
		r.token.Do(func() { r.log.Warn("a plugin asks with another token: its calls fail", "var", PluginTokenVar) })
		return wrongToken
	}
	paths := map[string]func(context.Context, *process, pluginRequest) verdict{"/call": r.mayRun,
		"/message": r.mayBegin}
	ask := paths[req.URL.Path]
	if req.Method != http.MethodPost || ask == nil {
		return unknownPath
	}
	var q pluginRequest
	err := json.NewDecoder(http.MaxBytesReader(w, req.Body, pluginBytesMax)).Decode(&q)
	if err != nil || q.Session == "" || q.Call+q.Message == "" {
		return verdict{http.StatusBadRequest, fmt.Sprintf("want a session, a call or a message, and marks: %v", err)}
	}
	l, v := r.processOf(q.Marks)
	if l == nil {
		return v
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	return ask(ctx, l, q)
}

// knows reports whether a request names the token.
func (p *Plugin) knows(req *http.Request) bool {
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(p.Token))
	return ok && p.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// processOf returns the process of OpenCode that has these marks, if it is the one that the bridge follows.
func (r *follower) processOf(marks []string) (*process, verdict) {
	l := r.serving.Load()
	switch {
	case l == nil:
		return nil, notYet
	case slices.Contains(marks, l.mark):
		return l, verdict{}
	case len(incarnations(marks, r.marksPrefix(l.h.ID()))) > 0:
		return nil, replaced
	}
	return nil, notYet
}

// mayRun waits until the log has the begin of a call, and this process has the session by the log. A call that the log
// has closed does not run.
func (r *follower) mayRun(ctx context.Context, l *process, q pluginRequest) verdict {
	for {
		r.mu.Lock()
		c, changed, s := r.translator.callOf(q.Session, q.Call), r.changed, l.handle(ident("ses", q.Session))
		over := c != nil && c.done
		r.mu.Unlock()
		if over {
			return isOver
		}
		if c != nil && s != nil && s.State().Tools[c.id] != nil {
			err := s.Confirm(ctx)
			switch {
			case err == nil && s.State().Tools[c.id] != nil:
				l.asks(callKey{s.ID(), c.id})
				return permitted
			case errors.Is(err, harness.ErrFenced):
				l.owe(s.ID(), true)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if l.ctx.Err() != nil {
				return notYet
			}
			return leaving
		}
	}
}

// callOf returns the newest call of a session that has an id of OpenCode: that of the provider or of the part. nil
// without one.
func (t *Translator) callOf(session, id string) (found *call) {
	s := t.sessions[ident("ses", session)]
	if s == nil {
		return nil
	}
	for key, c := range s.calls {
		mine := key == id || slices.ContainsFunc(c.names, func(name string) bool {
			return name == id || strings.HasSuffix(name, "/"+id)
		})
		if mine && c.turn != nil && (found == nil || found.done) {
			found = c
		}
	}
	return found
}
