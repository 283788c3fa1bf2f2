package objects_test

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestObjects: an object can be read by this package and by any client of object stores; the same content is stored
// once; a removed object is gone with its chunks.
func TestObjects(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Background(t)
	_, js := bustest.Outsider(t, s)
	r := events.Ref{Harness: "h", Session: "s"}
	store, err := js.ObjectStore(ctx, b.Cell().ObjectBucket())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, size := range []int{0, 1, object.ChunkBytes, object.ChunkBytes + 1, 3*object.ChunkBytes - 7} {
		content := bytes.Repeat([]byte{'x', 'y', byte(size)}, size)[:size]
		name, err := b.Objects.Put(ctx, r, content)
		if err != nil || name != events.ObjectName(r, content) {
			t.Fatalf("put %d bytes: %q %v", size, name, err)
		}
		names = append(names, name)
		if got, err := b.Objects.Get(ctx, name); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes: read %d, %v", size, len(got), err)
		}
		if got, err := store.GetBytes(ctx, name); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes: another client reads %d, %v", size, len(got), err)
		}
	}
	before := streamBytes(t, b)
	if _, err := b.Objects.Put(ctx, r, []byte("x")); err != nil || streamBytes(t, b) != before {
		t.Errorf("the same content again: %v, %d bytes, before %d", err, streamBytes(t, b), before)
	}
	foreign := []byte("what another client has stored")
	if _, err := store.PutBytes(ctx, "theirs", foreign); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Objects.Get(ctx, "theirs"); err != nil || !bytes.Equal(got, foreign) {
		t.Errorf("of another client: %q %v", got, err)
	}
	var found []string
	if err := b.Objects.Each(ctx, func(name string) error {
		found = append(found, name)
		return nil
	}); err != nil || len(found) != len(names)+1 || !slices.Contains(found, "theirs") {
		t.Errorf("listed %v, %v", found, err)
	}
	for _, name := range append(names, "never was") {
		if err := b.Objects.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
		if err := b.Objects.Has(ctx, name); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	if err := store.Delete(ctx, "theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Objects.Get(ctx, "theirs"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("removed by its owner: %v", err)
	}
}

func streamBytes(t *testing.T, b *bus.Bus) uint64 {
	t.Helper()
	found, err := b.Layout.Inspect(bustest.Background(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found.Streams {
		if s.Name == object.Stream(b.Cell().ObjectBucket()) {
			return s.Bytes
		}
	}
	t.Fatal("the cell has no objects")
	return 0
}

// Content that is not what its name says, or not whole, is not passed on; nor is more stored than may be.
func TestObjectsThatAreNot(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Background(t)
	nc, js := bustest.Outsider(t, s)
	r := events.Ref{Harness: "h", Session: "s"}
	if _, err := b.Objects.Put(ctx, events.Ref{Harness: "h"}, nil); err == nil {
		t.Error("of no session")
	}
	_, err := b.Objects.Put(ctx, r, make([]byte, events.ObjectBytesMax+1))
	if refusal, ok := errors.AsType[*events.Refusal](err); !ok || refusal.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("too much: %v", err)
	}
	name := events.ObjectName(r, []byte("mine"))
	store, err := js.ObjectStore(ctx, b.Cell().ObjectBucket())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(ctx, name, []byte("theirs, under my name")); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Objects.Get(ctx, name); !errors.Is(err, object.ErrDamaged) {
		t.Errorf("another content under this name: %q %v", got, err)
	}
	for i, meta := range []string{`{"name":"n","nuid":"none","size":5,"chunks":1,"bucket":"hf_objects"}`, `no JSON`} {
		msg := &nats.Msg{Subject: object.Meta(b.Cell().ObjectBucket(), "n"), Data: []byte(meta)}
		if err := nc.PublishMsg(msg); err != nil || nc.Flush() != nil {
			t.Fatal(err)
		}
		natstest.Until(t, "that to be refused", func() bool {
			_, err := b.Objects.Get(ctx, "n")
			return i == 0 && errors.Is(err, bus.ErrNotFound) || i == 1 && errors.Is(err, object.ErrDamaged)
		})
	}
}
