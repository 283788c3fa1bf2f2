package objects_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
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

// TestAMessageIDOfAnotherUserStopsNoChunk: a message id holds for the whole stream, whichever user sends it. Names from
// the nuid package grow by a constant, so a user that reads two of them can send the ids of the next chunks first.
func TestAMessageIDOfAnotherUserStopsNoChunk(t *testing.T) {
	s, all := bustest.WithUsers(t, "ann", "bob")
	ann, bob := all[1], all[2]
	nc, js := bustest.LoggedIn(t, s)
	ctx := bustest.Background(t)
	r := events.Ref{Harness: "h", Session: "s"}
	stream, err := js.Stream(ctx, "OBJ_hf_objects")
	if err != nil {
		t.Fatal(err)
	}
	// the names of the chunks of two objects
	var seen []string
	for _, content := range []string{"one", "two"} {
		name, err := ann.Objects.Put(ctx, r, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetLastMsgForSubject(ctx,
			"$O.hf_objects.M.person.ann."+base64.URLEncoding.EncodeToString([]byte(name)))
		if err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(string(m.Data), `"nuid":"`)
		id, _, _ = strings.Cut(id, `"`)
		seen = append(seen, id)
	}
	// the digits at the end of a name that grow
	const counted = 10
	head := seen[1][:len(seen[1])-counted]
	step := number(seen[1][len(head):]) - number(seen[0][len(head):])
	for n := range int64(50) {
		next := head + digits(number(seen[1][len(head):])+(n+1)*step, counted)
		m := &nats.Msg{Subject: "$O.hf_objects.C.person.bob.x",
			Header: nats.Header{jetstream.MsgIDHeader: {next + ".0"}}}
		if _, err := nc.RequestMsg(m, bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 5 {
		content := fmt.Sprint("content ", n)
		name, err := ann.Objects.Put(ctx, r, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := bob.Objects.Get(ctx, name); err != nil || string(got) != content {
			t.Errorf("stored %q, read %q: %v", content, got, err)
		}
	}
}

// base62 has the digits of the nuid package.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func number(text string) (n int64) {
	for _, c := range text {
		n = n*int64(len(base62)) + int64(strings.IndexRune(base62, c))
	}
	return n
}

func digits(n int64, size int) string {
	text := make([]byte, size)
	for i := size - 1; i >= 0; i-- {
		text[i] = base62[((n%62)+62)%62]
		n /= 62
	}
	return string(text)
}
