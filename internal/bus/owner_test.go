package bus_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// withUsers is a broker that requires a login, and a connection to it as each of these users. The first one is a
// service, which sets the cell up.
func withUsers(t *testing.T, people ...string) (*embed.Server, []*bus.Bus) {
	t.Helper()
	s := natstest.Start(t, natstest.Settings(t, "authorization: { user: u, password: pw }"))
	var all []*bus.Bus
	for i, name := range append([]string{""}, people...) {
		cfg := bus.Config{URL: strings.Replace(s.URL(), "//", "//u:pw@", 1),
			Asker: events.Asker{Class: events.ClassPerson, ID: name}}
		if i == 0 {
			cfg.Asker = events.Asker{}
		}
		b, err := bus.Open(background(t), cfg)
		if err == nil && i == 0 {
			err = b.Ensure(background(t))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Kill)
		all = append(all, b)
	}
	return s, all
}

func loggedIn(t *testing.T, s *embed.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(s.URL(), nats.UserInfo("u", "pw"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// In a cell with users one message of a user cannot remove what others have: the buckets that several write take no
// roll-ups, also when they were made otherwise.
func TestNoRollUpsWhereOthersDataLie(t *testing.T) {
	s, all := withUsers(t, "ann")
	_, js := loggedIn(t, s)
	for range 2 {
		for _, name := range []string{"KV_hf_leases", "OBJ_hf_objects", "HF_LOG"} {
			c := config(t, js, name)
			if c.AllowRollup || c.SubjectDeleteMarkerTTL != 0 {
				t.Errorf("%s: roll-ups %v, markers for %s", name, c.AllowRollup, c.SubjectDeleteMarkerTTL)
			}
			c.AllowRollup = true
			if name != "HF_LOG" {
				c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, time.Minute
			}
			if _, err := js.UpdateStream(background(t), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := all[0].Ensure(background(t)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := all[1].AcquireLease(background(t), "harness.h.1", []byte("{}"), time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"all", "sub"} {
		for _, subject := range []string{"$KV.hf_leases.harness.o.1", "$O.hf_objects.C.person.ann.x",
			"$O.hf_objects.M.person.ann.x"} {
			_, err := js.PublishMsg(background(t),
				&nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {how}}})
			if err == nil || !strings.Contains(err.Error(), "rollup not permitted") {
				t.Errorf("%s: roll-up %s: %v", subject, how, err)
			}
		}
	}
}

// Without markers a watch tells of expired leases all the same: of those that it saw beginning and of those that were
// there before, with TTLs in either form; and not of those that are renewed.
func TestLeasesExpireWithoutMarkers(t *testing.T) {
	t.Parallel() // it mostly waits
	natstest.Calm(t, standstill, func() error { return expireWithoutMarkers(t) })
}

func expireWithoutMarkers(t *testing.T) error {
	s, all := withUsers(t, "ann")
	nc, _ := loggedIn(t, s)
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	put := func(key, ttl string) {
		m := &nats.Msg{Subject: "$KV.hf_leases." + key, Header: nats.Header{jetstream.MsgTTLHeader: {ttl}}}
		if _, err := nc.RequestMsg(m, patience); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now()
	put("harness.h.before", "2")
	put("harness.h.stays", "1h")
	kept := acquire(t, all[1], "harness.h.kept", 2*time.Second)
	lost := kept.Keep(ctx, 0, nil)
	updates, _ := watching(t, all[0], bus.Leases)
	for u := receive(t, updates, "ready"); !u.Ready; u = receive(t, updates, "ready") {
		if u.Deleted {
			return fmt.Errorf("%s ended before the watch was ready", u.Key)
		}
	}
	began := time.Now()
	put("harness.h.after", "2s")
	ended := map[string]time.Time{}
	for len(ended) < 2 {
		u := receive(t, updates, "two leases to end")
		if u.Deleted && !u.Expired {
			return fmt.Errorf("%s is said to be deleted, not expired", u.Key)
		}
		if u.Deleted {
			ended[u.Key] = time.Now()
		}
	}
	for key, from := range map[string]time.Time{"harness.h.before": before, "harness.h.after": began} {
		if after := ended[key].Sub(from); after < 2*time.Second || after > 3500*time.Millisecond {
			return fmt.Errorf("%s ended after %s, want 2 s and little more: %v", key, after, ended)
		}
	}
	select {
	case err := <-lost:
		return fmt.Errorf("a lease that is kept: %w", err)
	default:
		return nil
	}
}

// TestObjectsOfOwners: no user can remove, replace or damage an object of another one, with every subject that it may
// use.
func TestObjectsOfOwners(t *testing.T) {
	s, all := withUsers(t, "ann", "bob")
	service, ann, bob := all[0], all[1], all[2]
	nc, js := loggedIn(t, s)
	ctx := background(t)
	r := events.Ref{Harness: "h", Session: "s"}
	content := bytes.Repeat([]byte("content "), 40_000)
	name, err := ann.PutObject(ctx, r, content)
	if err != nil {
		t.Fatal(err)
	}
	readable := func(what string) {
		t.Helper()
		for _, b := range []*bus.Bus{service, ann, bob} {
			if got, err := b.Object(ctx, name); err != nil || !bytes.Equal(got, content) ||
				b.HasObject(ctx, name) != nil {
				t.Errorf("%s: read %d bytes: %v", what, len(got), err)
			}
		}
	}
	readable("stored once")
	stream, err := js.Stream(ctx, "OBJ_hf_objects")
	if err != nil {
		t.Fatal(err)
	}
	key := base64.URLEncoding.EncodeToString([]byte(name))
	about, err := stream.GetLastMsgForSubject(ctx, "$O.hf_objects.M.person.ann."+key)
	if err != nil {
		t.Fatal(err)
	}
	anns := string(about.Data)
	nuid := anns[strings.Index(anns, "person.ann."):]
	nuid = nuid[:strings.IndexByte(nuid, '"')]
	for _, bad := range []string{anns, strings.ReplaceAll(anns, nuid, "person.bob.>"),
		strings.ReplaceAll(anns, nuid, "person.bob.x"), `{}`, `no JSON`,
		`{"name":"` + name + `","nuid":"person.bob.none","size":99,"chunks":1}`,
		`{"name":"` + name + `","deleted":true}`} {
		for _, m := range []*nats.Msg{{Subject: "$O.hf_objects.C.person.bob.x", Data: []byte("spoilt")},
			{Subject: "$O.hf_objects.M.person.bob." + key, Data: []byte(bad)}} {
			if _, err := nc.RequestMsg(m, patience); err != nil {
				t.Fatal(err)
			}
		}
		readable("beside " + bad)
	}
	// Bob's copy names Ann's chunks, under another name: removing it leaves hers.
	other := events.ObjectName(events.Ref{Harness: "h", Session: "closed"}, []byte("x"))
	theft := &nats.Msg{Subject: "$O.hf_objects.M.person.bob." + base64.URLEncoding.EncodeToString([]byte(other)),
		Data: []byte(strings.ReplaceAll(anns, name, other))}
	if _, err := nc.RequestMsg(theft, patience); err != nil {
		t.Fatal(err)
	}
	if err := service.DeleteObject(ctx, other); err != nil {
		t.Fatal(err)
	}
	readable("after another object was removed")
	listed := map[string]int{}
	if err := service.Objects(ctx, func(n string) error { listed[n]++; return nil }); err != nil || listed[name] == 0 {
		t.Errorf("listed %v: %v", listed, err)
	}
	if _, err := bob.PutObject(ctx, r, content); err != nil {
		t.Error(err)
	}
	if err := service.DeleteObject(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := ann.HasObject(ctx, name); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("$O.hf_objects.M.>"))
	if err != nil || len(info.State.Subjects) > 0 {
		t.Errorf("removed, and there is %v, %v", info.State.Subjects, err)
	}
}
