package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// secured is a broker with the printed permissions, and more configuration, on which every service runs as its own
// user.
func secured(t *testing.T, more ...string) *embed.Server {
	t.Helper()
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	users, err := permission.Users(cell, []string{"agent 1", "other"}, []string{"ann"}, []string{"root"})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		t.Setenv(u.Password, "secret-"+u.Name[:3])
	}
	srv := natstest.Start(t, natstest.Settings(t, permission.Conf(users)+strings.Join(more, "\n")))
	var ends []func() (int, string)
	for i := range targets {
		ready := filepath.Join(t.TempDir(), "ready.json")
		ends = append(ends, runProgram(targets[i].name, "--nats", login(srv, "holdfast-"+targets[i].name), "--http",
			"127.0.0.1:0", "--ready-file", ready))
		natstest.Until(t, "the "+targets[i].name+" to be ready", func() bool {
			_, err := os.Stat(ready)
			return err == nil
		})
	}
	t.Cleanup(func() {
		for _, end := range ends {
			code, output := end()
			if code != exitDone || strings.Contains(output, "ermission") || strings.Contains(output, "forbidden") {
				t.Errorf("a service ended with %d, and said\n%s", code, output)
			}
		}
	})
	return srv
}

// TestTheBrokerAnswersNoQuestionOfTheCell: nats-server imports questions of its own into each account, without
// wildcards. Those are active as delivery subjects of consumers, so in the cell's account nothing answers them.
func TestTheBrokerAnswersNoQuestionOfTheCell(t *testing.T) {
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	users, err := permission.Users(cell, []string{"h"}, []string{"p"}, []string{"o"})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		t.Setenv(u.Password, "secret")
	}
	conf := permission.Conf(users)
	for account, head := range map[string]string{"HOLDFAST": "  HOLDFAST {\n", "SYS": "  \"$SYS\" {\n"} {
		if strings.Count(conf, head) != 1 {
			t.Fatalf("no account %s:\n%s", account, conf)
		}
		// with all rights
		user := "{ user: all-" + account + ", password: secret-all }"
		if account == "HOLDFAST" {
			conf = strings.Replace(conf, head+"    jetstream: enabled\n    users: [\n",
				head+"    jetstream: enabled\n    users: [\n"+user+"\n", 1)
		} else {
			conf = strings.Replace(conf, head, head+"users: [ "+user+" ]\n", 1)
		}
	}
	srv := natstest.Start(t, natstest.Settings(t, conf))
	connect := func(user string) *nats.Conn {
		nc, err := nats.Connect(login(srv, user))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	m, err := connect("all-SYS").Request("$SYS.REQ.ACCOUNT.HOLDFAST.INFO", nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Data struct {
			Imports []struct {
				To   string `json:"local_subject"`
				Type string `json:"type"`
			} `json:"imports"`
		} `json:"data"`
	}
	if err := json.Unmarshal(m.Data, &info); err != nil || len(info.Data.Imports) == 0 {
		t.Fatalf("%v: %s", err, m.Data)
	}
	var literal int
	all := connect("all-HOLDFAST")
	for _, im := range info.Data.Imports {
		if strings.ContainsAny(im.To, "*>") || strings.HasPrefix(im.To, "$JS.API.") {
			continue
		}
		literal++
		if _, err := all.Request(im.To, nil, time.Minute); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s: %v", im.To, err)
		}
	}
	if literal < 4 {
		t.Errorf("%d imports without a wildcard: %s", literal, m.Data)
	}
}

// login returns the broker's URL for a user.
func login(srv *embed.Server, user string) string {
	return strings.Replace(srv.URL(), "//", "//"+strings.ReplaceAll(user, " ", "%20")+":secret-"+user[:3]+"@", 1)
}

// runAs runs a command as a person and returns what it printed.
func runAs(t *testing.T, url string, code int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	p := &Program{Args: append(args, "--nats", url, "--timeout", "1m"), Env: []string{"USER=ann"}, Stdout: &out,
		Stderr: &errs}
	if got := p.Run(t.Context()); got != code {
		t.Errorf("%q: exit code %d, want %d: %s%s", args, got, code, &out, &errs)
	}
	return out.String() + errs.String()
}

// Under the printed permissions everything works: services set the cell up, a harness asks and is answered, a person
// looks and decides, and dead owners are recovered.
func TestSecuredCellWorks(t *testing.T) {
	srv := secured(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	h, err := harness.Connect(ctx, harness.Config{ID: "agent 1", URL: login(srv, "harness-agent 1"), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(ctx, "s 1", harness.OpenOptions{Title: "secured"})
	if err = errors.Join(err, h.Ready(ctx)); err != nil {
		t.Fatal(err)
	}
	turn, err := s.StartTurn(ctx, harness.StartOptions{Content: "go", By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	call, err := turn.Tool(ctx, harness.ToolOptions{Name: "ask_user"})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := turn.Ask(ctx, harness.Prompt{ID: "p1", Call: call.ID(),
			Questions: []events.Question{{ID: "q", Question: "Shall I?", Custom: true}}})
		answered <- err
	}()
	ann := login(srv, "ann")
	runAs(t, ann, exitDone, "show", "s 1", "--wait", "prompts=1")
	runAs(t, ann, exitDone, "answer", "s 1", "p1", "yes")
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"sessions"}, {"prompts", "--all"}, {"watch", "--once"}, {"events", "s 1"},
		{"queue", "s 1"}} {
		runAs(t, ann, exitDone, command...)
	}
	examinedByAPerson(t, ann)
	later, err := h.Open(ctx, "s 2", harness.OpenOptions{Title: "later"})
	if err != nil {
		t.Fatal(err)
	}
	failing, err := later.StartTurn(ctx, harness.StartOptions{Content: "go", By: "ann"})
	if err = errors.Join(err,
		failing.Fail(ctx, events.Failure{Kind: "rate_limit", RetryAfterMS: 120_000}, false)); err != nil {
		t.Fatal(err)
	}
	runAs(t, ann, exitDone, "show", "s 2", "--wait", "phase=retrying")
	if _, err := h.Send(ctx,
		harness.Message{Session: "s 2", ID: "m1", Content: "from the harness", By: "ann"}); err != nil {
		t.Error(err)
	}
	long := filepath.Join(t.TempDir(), "long.txt")
	if err := os.WriteFile(long, bytes.Repeat([]byte("long "), events.ContentBytesMax/4), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, decide := range [][]string{{"retry", "cancel", "s 2"},
		{"send", "s 2", "--file", long, "--id", "m3", "--synthetic"}, {"retry", "now", "s 2"},
		{"send", "s 2", "hello", "--id", "m2"}, {"withdraw", "s 2", "m2"},
		{"configure", "s 2", "idle_compaction_after_s=60"}, {"check", "s 2"}, {"compact", "s 2"},
		{"stop", "s 2", "--force"}} {
		runAs(t, ann, exitDone, decide...)
	}
	for _, operate := range [][]string{{"rebuild"}, {"sweep", "--dry-run"}} {
		runAs(t, ann, exitFailed, operate...)
		runAs(t, login(srv, "root"), exitDone, operate...)
	}
	if err := h.Close(ctx); err != nil {
		t.Fatal(err)
	}
	// The reconciler closes the call with the answer of the dead process, and requests a turn that continues it.
	runAs(t, ann, exitDone, "show", "s 1", "--wait", "owned=false", "--wait", "tools=0", "--wait", "phase=queued")
}

// No user can write as another user, or take another user's work.
func TestSecuredCellKeepsUsersApart(t *testing.T) {
	srv := secured(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	open := func(user, inbox string) *bus.Bus {
		b, err := bus.Open(ctx, bus.Config{URL: login(srv, user), Inbox: inbox})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	agent := open("harness-agent 1", events.Inbox("hf", events.ClassHarness, "agent 1"))
	ann := open("ann", events.Inbox("hf", events.ClassPerson, "ann"))
	rec := open("holdfast-reconciler", events.Inbox("hf", events.ClassService, "reconciler"))
	retry := open("holdfast-retry", events.Inbox("hf", events.ClassService, "retry"))
	mine, others := events.Ref{Harness: "agent 1", Session: "s"}, events.Ref{Harness: "other", Session: "s"}
	fact := func(r events.Ref) []events.Event {
		return []events.Event{events.New("e", events.HarnessSource(r.Harness, "1"), r, 1, time.Now(),
			events.SessionOpened{Incarnation: "1"})}
	}
	appends := func(b *bus.Bus, r events.Ref, w events.Writer) error {
		_, err := b.Log.Append(ctx, r, w, 0, fact(r))
		return err
	}
	store := func(b *bus.Bus, bk kv.Bucket, key string) error {
		_, err := b.KV.Store(ctx, bk, key, []byte("{}"), 0)
		return err
	}
	lease := func(b *bus.Bus, key string) error {
		_, err := b.Leases.Acquire(ctx, key, []byte("{}"), time.Minute)
		return err
	}
	steal := func(b *bus.Bus, src consumer.Source) error {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return b.Consumers.Consume(short, src, nil)
	}
	nudged := make(chan uint64, 2)
	for what, err := range map[string]error{
		"a harness writes to its own session": appends(agent, mine, events.WriterHarness),
		"a service claims a place":            lease(rec, events.ClaimKey("compacting")),
		"a harness listens for its nudges": agent.Hints.OnNudge(ctx, "agent 1", func(_ string, seq uint64) {
			nudged <- seq
		}),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	// a permission error may arrive later
	_ = agent.Hints.OnNudge(ctx, "other", func(_ string, seq uint64) { nudged <- seq })
	rec.Hints.Nudge(others, 6)
	rec.Hints.Nudge(mine, 7)
	select {
	case seq := <-nudged:
		// all earlier messages have arrived
		if _, err := agent.Log.LastSeq(ctx); err != nil || seq != 7 || len(nudged) > 0 {
			t.Errorf("a harness hears another's nudges, %v", err)
		}
	case <-ctx.Done():
		t.Error("a service cannot nudge")
	}
	for _, later := range []time.Duration{time.Hour, 2 * time.Hour} {
		if err := rec.Timers.Set(ctx, timer.Timer{What: "reconciler", Ref: mine,
			Due: time.Now().Add(later)}); err != nil {
			t.Errorf("its own alarm, or one in its place: %v", err)
		}
	}
	for name, err := range map[string]error{
		"a harness as another":            appends(agent, others, events.WriterHarness),
		"a harness as the ledger":         appends(agent, mine, events.WriterLedger),
		"a harness as the reconciler":     appends(agent, mine, events.WriterReconciler),
		"a person as a harness":           appends(ann, mine, events.WriterHarness),
		"a person as the ledger":          appends(ann, mine, events.WriterLedger),
		"a service as a harness":          appends(rec, mine, events.WriterHarness),
		"a service as another":            appends(rec, mine, events.WriterLedger),
		"a harness writes a document":     store(agent, kv.State, events.SessionKey(mine)),
		"a harness writes its own work":   store(agent, kv.State, events.WorkKey(mine)),
		"a person writes a document":      store(ann, kv.State, events.SessionKey(mine)),
		"a decider writes a document":     store(rec, kv.State, events.SessionKey(mine)),
		"a harness takes another's lease": lease(agent, events.HarnessLeaseKey("other", "1")),
		"a harness poses as a service":    lease(agent, events.ServiceLeaseKey("reconciler", "x")),
		"a service poses as a harness":    lease(retry, events.HarnessLeaseKey("other", "1")),
		"a person takes a lease":          lease(ann, events.HarnessLeaseKey("other", "1")),
		"a harness sets an alarm": agent.Timers.Set(ctx,
			timer.Timer{What: "reconciler", Ref: mine, Due: time.Now()}),
		"a service sets another's alarm": rec.Timers.Set(ctx,
			timer.Timer{What: "retry", Ref: mine, Due: time.Now()}),
		"a harness changes streams":             agent.Layout.Ensure(ctx),
		"a harness purges a session":            agent.Log.PurgeSession(ctx, mine, 1),
		"a service that is not the ledger, too": rec.Log.PurgeSession(ctx, mine, 1),
		"a harness reads the ledger's log": steal(agent,
			consumer.Source{Stream: consumer.LogStream, Durable: "ledger"}),
		"a decider reads the ledger's log": steal(rec,
			consumer.Source{Stream: consumer.LogStream, Durable: "ledger"}),
		"a decider reads another's documents": steal(rec,
			consumer.Source{Stream: consumer.StateDocs, Durable: "retry",
				Filter: []string{"session.a.>", "session.b.>"}}),
		"a harness claims a place": lease(agent, events.ClaimKey("x")),
		"a person reads a decider's documents": steal(ann,
			consumer.Source{Stream: consumer.StateDocs, Durable: "reconciler"}),
		"a harness answers for a person": agent.Services.Request(ctx, "ledger", "answer",
			map[string]string{"harness": "agent 1", "session": "s"}, nil),
		"a harness sweeps": agent.Services.Request(ctx, "reconciler", "sweep", struct{}{}, nil),
	} {
		if !errors.Is(err, bus.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if commits, err := rec.Log.Read(ctx, mine, 0); err != nil || len(commits) != 1 {
		t.Errorf("%d commits of the session, %v", len(commits), err)
	}
}

// examinedByAPerson checks what doctor shows to a person.
func examinedByAPerson(t *testing.T, ann string) {
	t.Helper()
	output := runAs(t, ann, exitDone, "doctor")
	if strings.Contains(output, "secret") {
		t.Errorf("the doctor shows a password:\n%s", output)
	}
	if !strings.Contains(output, "this user may not read the places of services") {
		t.Errorf("a person reads the places of services, with their pins:\n%s", output)
	}
}

// The consumers in the printed permissions are those that services have.
func TestPermissionsKnowTheConsumers(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	known := map[string]bool{}
	for _, d := range permission.Durables(b.Cell()) {
		known[d.Service+" "+d.Name] = true
	}
	for i := range targets {
		for _, src := range targets[i].consumers(b, &settings{}) {
			if !known[targets[i].name+" "+src.Durable] {
				t.Errorf("%s: no permissions are printed for its consumer %s", targets[i].name, src.Durable)
			}
		}
	}
}
