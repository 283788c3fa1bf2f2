package objects_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestObjectsOfOwners: no user can remove, replace or damage an object of another one, with every subject that it may
// use.
func TestObjectsOfOwners(t *testing.T) {
	s, all := bustest.WithUsers(t, "ann", "bob")
	service, ann, bob := all[0], all[1], all[2]
	nc, js := bustest.LoggedIn(t, s)
	ctx := bustest.Background(t)
	r := events.Ref{Harness: "h", Session: "s"}
	content := bytes.Repeat([]byte("content "), 40_000)
	name, err := ann.Objects.Put(ctx, r, content)
	if err != nil {
		t.Fatal(err)
	}
	readable := func(what string) {
		t.Helper()
		for _, b := range []*bus.Bus{service, ann, bob} {
			if got, err := b.Objects.Get(ctx, name); err != nil || !bytes.Equal(got, content) ||
				b.Objects.Has(ctx, name) != nil {
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
			if _, err := nc.RequestMsg(m, bustest.Patience); err != nil {
				t.Fatal(err)
			}
		}
		readable("beside " + bad)
	}
	// Bob's copy names Ann's chunks, under another name: removing it leaves hers.
	other := events.ObjectName(events.Ref{Harness: "h", Session: "closed"}, []byte("x"))
	theft := &nats.Msg{Subject: "$O.hf_objects.M.person.bob." + base64.URLEncoding.EncodeToString([]byte(other)),
		Data: []byte(strings.ReplaceAll(anns, name, other))}
	if _, err := nc.RequestMsg(theft, bustest.Patience); err != nil {
		t.Fatal(err)
	}
	if err := service.Objects.Delete(ctx, other); err != nil {
		t.Fatal(err)
	}
	readable("after another object was removed")
	listed := map[string]int{}
	if err := service.Objects.Each(ctx, func(n string) error { listed[n]++; return nil }); err != nil ||
		listed[name] == 0 {
		t.Errorf("listed %v: %v", listed, err)
	}
	if _, err := bob.Objects.Put(ctx, r, content); err != nil {
		t.Error(err)
	}
	if err := service.Objects.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := ann.Objects.Has(ctx, name); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("$O.hf_objects.M.>"))
	if err != nil || len(info.State.Subjects) > 0 {
		t.Errorf("removed, and there is %v, %v", info.State.Subjects, err)
	}
}
