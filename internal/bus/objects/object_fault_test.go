package objects_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
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

// TestDescriptionsThatLie: an object is damaged if its description names more content than an object may have, if its
// chunks are empty, or so small that a reader would ask for each byte, and if they are not the content described. A
// description under the name of another object is not listed.
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
	publish(object.Chunks(bucket, "other"), "12345")
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
		"other": fmt.Sprintf(`{"name":"other","nuid":"other","size":5,"chunks":1,"digest":%q,"bucket":%q}`, digest,
			bucket),
	} {
		publish(object.Meta(bucket, name), meta)
		if got, err := b.Objects.Get(bustest.Within(t, bustest.Patience), name); !errors.Is(err, object.ErrDamaged) {
			t.Errorf("%s: %d bytes, %v; want ErrDamaged", name, len(got), err)
		}
	}
	publish(object.Meta(bucket, "shown"), fmt.Sprintf(`{"name":"another","nuid":"small","bucket":%q}`, bucket))
	err := b.Objects.Each(bustest.Within(t, bustest.Patience), func(name string) error {
		if name == "another" {
			t.Error("a description is listed under a name that it does not have")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheCopyOfTheHarnessIsFirst: a reader asks for the copy of the harness that the name belongs to before those of
// other users, however many there are.
func TestTheCopyOfTheHarnessIsFirst(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	bucket, content := b.Cell().ObjectBucket(), []byte("content")
	name := events.ObjectName(bustest.Session, content)
	publish := func(subject string, body []byte) {
		t.Helper()
		if _, err := nc.Request(subject, body, bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		owner := events.Asker{Class: events.ClassHarness, ID: fmt.Sprint("0", i)}.Tokens()
		publish(object.OwnMeta(bucket, owner, name), fmt.Appendf(nil, `{"name":%q,"nuid":"%s.x","size":9,"chunks":1}`,
			name, owner))
	}
	owner := events.Asker{Class: events.ClassHarness, ID: bustest.Session.Harness}.Tokens()
	info := object.New(bucket, name, object.OwnID(owner, "x"), content)
	meta, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	publish(object.Chunks(bucket, info.NUID), content)
	publish(object.OwnMeta(bucket, owner, name), meta)
	reads, err := nc.SubscribeSync("$JS.API.STREAM.MSG.GET.*")
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	if got, err := b.Objects.Get(bustest.Within(t, bustest.Patience), name); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%q %v", got, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// the description in a cell without users, that of the harness, and its chunk
	if n, _, err := reads.Pending(); err != nil || n != 3 {
		t.Errorf("%d reads, want 3: %v", n, err)
	}
}

// TestAChunkThatComesTwice: the broker refuses a chunk that it has already, as when a client sends it again while the
// first one is on its way.
func TestAChunkThatComesTwice(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	content := []byte(strings.Repeat("part", object.ChunkBytes/2))
	name, err := b.Objects.Put(ctx, bustest.Session, content)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, object.Stream(b.Cell().ObjectBucket()))
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= 2; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := nc.RequestMsg(&nats.Msg{Subject: m.Subject, Data: m.Data, Header: m.Header}, bustest.Patience)
		if err != nil || !strings.Contains(string(answer.Data), "wrong last sequence") {
			t.Errorf("chunk %d again: %s %v", seq, answer.Data, err)
		}
	}
	if got, err := b.Objects.Get(ctx, name); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes: %v", len(got), err)
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
