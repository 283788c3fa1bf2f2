package objects_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestObjectsHaveALimit: content for which there is no room is refused, and nothing is left that names it.
func TestObjectsHaveALimit(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s, func(c *bus.Config) { c.ObjectBytesMax = 200 << 10 })
	ctx := bustest.Within(t, bustest.Patience)
	name, err := b.Objects.Put(ctx, bustest.Session, make([]byte, 400<<10))
	if !errors.Is(err, bus.ErrFull) {
		t.Errorf("put: %v, want ErrFull", err)
	}
	if err := b.Objects.Has(ctx, name); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("it is there: %v", err)
	}
	_, js := bustest.Outsider(t, s)
	if c := bustest.Config(t, js, "OBJ_hf_objects"); c.MaxBytes != 200<<10 {
		t.Errorf("objects may have %d bytes", c.MaxBytes)
	}
}

// TestDescriptionsThatLie: an object is damaged if its description names more content than an object may have, or if
// its chunks are empty, or so small that a reader would ask for each byte.
func TestDescriptionsThatLie(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	bucket := b.Cell().ObjectBucket()
	publish := func(subject, body string) {
		t.Helper()
		if _, err := nc.Request(subject, []byte(body), bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	publish(object.Chunks(bucket, "empty"), "")
	const small = "read in single bytes"
	for _, c := range small {
		publish(object.Chunks(bucket, "small"), string(c))
	}
	sum := sha256.Sum256([]byte(small))
	digest := "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:])
	for name, meta := range map[string]string{
		"huge": fmt.Sprintf(`{"name":"huge","nuid":"none","size":%d,"chunks":1,"bucket":%q}`, uint64(1)<<60, bucket),
		"small": fmt.Sprintf(`{"name":"small","nuid":"small","size":%d,"chunks":%d,"digest":%q,"bucket":%q}`,
			len(small),
			len(small), digest, bucket),
		"empty": fmt.Sprintf(`{"name":"empty","nuid":"empty","size":5,"chunks":1,"bucket":%q}`, bucket),
	} {
		publish(object.Meta(bucket, name), meta)
		if got, err := b.Objects.Get(bustest.Within(t, bustest.Patience), name); !errors.Is(err, object.ErrDamaged) {
			t.Errorf("%s: %d bytes, %v; want ErrDamaged", name, len(got), err)
		}
	}
}

// TestAnObjectLeavesNothing: an object that replaces another's content under its name is listed once; a removed one is
// not listed and takes no space.
func TestAnObjectLeavesNothing(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	_, js := bustest.Outsider(t, s)
	store, err := js.ObjectStore(ctx, b.Cell().ObjectBucket())
	if err != nil {
		t.Fatal(err)
	}
	list := func() (all []string) {
		t.Helper()
		if err := b.Objects.Each(ctx, func(name string) error { all = append(all, name); return nil }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	content := []byte(strings.Repeat("mine", 100))
	name, err := b.Objects.Put(ctx, bustest.Session, content)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(ctx, name, []byte("theirs, under my name")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Objects.Put(ctx, bustest.Session, content); err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(ctx, "theirs", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if all := list(); len(all) != 2 {
		t.Errorf("listed %v, want both names once", all)
	}
	if err := store.Delete(ctx, "theirs"); err != nil {
		t.Fatal(err)
	}
	if all := list(); len(all) != 1 || all[0] != name {
		t.Errorf("listed %v, want %s", all, name)
	}
	if _, err := js.Conn().Request(object.Meta(b.Cell().ObjectBucket(), "odd"), []byte("no JSON"),
		bustest.Patience); err != nil {
		t.Fatal(err)
	}
	if all := list(); len(all) != 1 {
		t.Errorf("listed %v with a description that cannot be read", all)
	}
	if err := b.Objects.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, object.Stream(b.Cell().ObjectBucket()))
	if err != nil {
		t.Fatal(err)
	}
	// the mark and the odd one; what the other client left under the name
	if n := stream.CachedInfo().State.Msgs; n > 3 {
		t.Errorf("%d messages are left", n)
	}
}

// TestAChunkIsStoredOnce: a chunk whose acknowledgement was lost is not stored twice, whether the broker recognises
// message ids or not.
func TestAChunkIsStoredOnce(t *testing.T) {
	for nth := 1; nth <= 3; nth++ {
		s := natstest.Start(t)
		witness, p := natstest.Bus(t, s), bustest.NewProxy(t, s)
		b := bustest.BusAt(t, p.Addr)
		content := []byte(strings.Repeat(fmt.Sprint("part ", nth), object.ChunkBytes/2))
		lost := p.Lose(false, `MSG \S+ (\d+) \d+\r\n{"stream":"OBJ_hf_objects"`, nth, "99999999")
		name, err := b.Objects.Put(bustest.Within(t, bustest.Patience), bustest.Session, content)
		if err != nil {
			t.Fatal(err)
		}
		bustest.Receive(t, lost, "the acknowledgement to be lost")
		got, err := witness.Objects.Get(bustest.Within(t, bustest.Patience), name)
		if err != nil || string(got) != string(content) {
			t.Errorf("acknowledgement %d lost: read %d bytes of %d: %v", nth, len(got), len(content), err)
		}
	}
}
