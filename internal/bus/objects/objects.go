// Package objects stores content that is too large for an event, under names that prove the content.
//
// An object that is stored is complete and has the content of its name. In a cell with users each user stores under
// subjects of its own, so an object may have several copies.
package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/bus/object"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// How an object's description replaces an older one in a cell without users.
const (
	headerRollup  = "Nats-Rollup"
	rollupSubject = "sub"
)

// In a cell with users each user stores objects under subjects of its own, and the stream allows no roll-ups: no user
// can remove or damage the objects of another. So there may be several copies under one name. A reader takes the first
// one whose content matches the name.

// Objects stores and reads the objects of a cell. Its methods may be called concurrently.
type Objects struct {
	conn *core.Conn
}

// New returns the objects of the cell of a connection.
func New(conn *core.Conn) *Objects { return &Objects{conn: conn} }

// owner returns the owner of the objects that this connection stores, "" in a cell without users.
func (o *Objects) owner() string { return o.conn.Asker().Tokens() }

// Put stores content that belongs to a session and returns its name; existing content is not stored again.
// Errors: a refusal (413) of content larger than [events.ObjectBytesMax]; [core.ErrUnreachable]: put it again.
func (o *Objects) Put(ctx context.Context, r events.Ref, content []byte) (name string, err error) {
	if err := r.Validate(); err != nil {
		return "", fmt.Errorf("object: %w", err)
	}
	if len(content) > events.ObjectBytesMax {
		return "", events.TooLarge(fmt.Sprintf("the content takes %d bytes: send less", len(content)),
			events.ObjectBytesMax)
	}
	owner := o.owner()
	info := object.New(o.conn.Cell.ObjectBucket(), events.ObjectName(r, content), object.OwnID(owner, core.NewSecret()),
		content)
	at := object.OwnMeta(info.Bucket, owner, info.Name)
	if there, err := o.objectInfo(ctx, at); err == nil && there.Digest == info.Digest ||
		err != nil && !errors.Is(err, core.ErrNotFound) {
		return info.Name, err
	}
	op := "store object " + info.Name
	// one after the other: readers join them in the stored order
	for n, last := 0, uint64(0); n < info.Chunks; n++ {
		part := content[n*object.ChunkBytes : min((n+1)*object.ChunkBytes, len(content))]
		if last, err = o.conn.Begin(ctx, o.chunk(op, &info, part, last)).Wait(ctx); err != nil {
			return info.Name, err
		}
	}
	meta, err := json.Marshal(info)
	if err != nil {
		return info.Name, fmt.Errorf("%s: %w", op, err)
	}
	msg := &nats.Msg{Subject: at, Data: meta}
	if !o.conn.NC.AuthRequired() {
		msg.Header = nats.Header{headerRollup: {rollupSubject}}
	}
	_, err = o.conn.Put(ctx, op, object.Stream(info.Bucket), msg)
	return info.Name, err
}

// chunk is the write of one chunk behind the last one of its object, 0 for none. The guard makes a second send safe:
// the subject of the chunks is random, so no other writer has it. A message id would not do: each user of the stream
// can send it before, and then the broker drops the chunk and acknowledges it.
func (o *Objects) chunk(op string, info *object.Info, part []byte, last uint64) *core.Write {
	msg := &nats.Msg{Subject: object.Chunks(info.Bucket, info.NUID), Data: part,
		Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(last, 10)}}}
	verify := func(ctx context.Context) (core.Verdict, uint64, error) {
		m, err := o.conn.Get(ctx, object.Stream(info.Bucket), core.GetRequest{Last: msg.Subject})
		switch {
		case errors.Is(err, core.ErrNotFound) && !core.NoStream(err) && last == 0:
			return core.Undecided, 0, nil
		case errors.Is(err, core.ErrNotFound) && !core.NoStream(err):
			// the earlier chunks were removed
			return core.Lost, 0, nil
		case err != nil:
			return core.Undecided, 0, err
		case m.Seq > last:
			return core.Stored, m.Seq, nil
		default:
			return core.Undecided, 0, nil
		}
	}
	return &core.Write{Op: op, Msg: msg, Verify: verify}
}

// objectInfo returns the description of an object under this subject, of the owner that the subject names.
func (o *Objects) objectInfo(ctx context.Context, subject string) (object.Info, error) {
	bucket := o.conn.Cell.ObjectBucket()
	m, err := o.conn.Get(ctx, object.Stream(bucket), core.GetRequest{Last: subject})
	if err != nil {
		return object.Info{}, err
	}
	info, err := object.Parse(m.Data)
	switch {
	case err != nil:
		return info, err
	case info.Deleted:
		return info, fmt.Errorf("%w: object %s: deleted", core.ErrNotFound, info.Name)
	case !info.Of(object.Owner(bucket, subject)):
		return info, fmt.Errorf("%w: %s names the chunks of another owner", object.ErrDamaged, subject)
	}
	info.Bucket = bucket
	return info, nil
}

// copies returns the subjects with a description of an object: first that of a cell without users, then that of the
// harness in the name, then the others.
func (o *Objects) copies(ctx context.Context, name string) ([]string, error) {
	bucket := o.conn.Cell.ObjectBucket()
	var info jetstream.StreamInfo
	req := map[string]string{"subjects_filter": object.OwnMeta(bucket, "*.*", name)}
	if err := o.conn.Call(ctx, "look for object "+name, "STREAM.INFO."+object.Stream(bucket), req, &info); err != nil {
		return nil, err
	}
	all := slices.Sorted(maps.Keys(info.State.Subjects))
	if r, err := events.ParseObjectName(name); err == nil {
		first := object.OwnMeta(bucket, events.Asker{Class: events.ClassHarness, ID: r.Harness}.Tokens(), name)
		if i := slices.Index(all, first); i > 0 {
			all[0], all[i] = all[i], all[0]
		}
	}
	return append([]string{object.Meta(bucket, name)}, all...), nil
}

// Has returns nil for an existing object, [core.ErrNotFound] for a missing one.
func (o *Objects) Has(ctx context.Context, name string) error {
	_, err := o.firstCopy(ctx, name, func(object.Info) ([]byte, error) { return nil, nil })
	return err
}

// Get returns the content of an object; [core.ErrNotFound] if it does not exist, or was removed with its session.
func (o *Objects) Get(ctx context.Context, name string) ([]byte, error) {
	return o.firstCopy(ctx, name, func(info object.Info) ([]byte, error) { return o.content(ctx, name, info) })
}

// firstCopy returns the result of read for the first readable copy. Without one it returns the error of the copy that
// came furthest.
func (o *Objects) firstCopy(ctx context.Context, name string, read func(object.Info) ([]byte, error)) ([]byte, error) {
	subjects, err := o.copies(ctx, name)
	if err != nil {
		return nil, err
	}
	var worst error
	for _, subject := range subjects {
		info, err := o.objectInfo(ctx, subject)
		if err == nil {
			var content []byte
			if content, err = read(info); err == nil {
				return content, nil
			}
		}
		if worst == nil || errors.Is(worst, core.ErrNotFound) {
			worst = err
		}
		if !errors.Is(err, core.ErrNotFound) && !errors.Is(err, object.ErrDamaged) {
			return nil, err
		}
	}
	return nil, worst
}

// content reads one copy and checks that it matches its name.
func (o *Objects) content(ctx context.Context, name string, info object.Info) ([]byte, error) {
	if info.Size > events.ObjectBytesMax {
		return nil, fmt.Errorf("%w: %s: says it takes %d bytes", object.ErrDamaged, name, info.Size)
	}
	content, next := make([]byte, 0, max(info.Size, 0)), uint64(1)
	for left := chunksMax(info.Size); len(content) < info.Size; left-- {
		if left == 0 {
			return nil, fmt.Errorf("%w: %s: too many small chunks", object.ErrDamaged, name)
		}
		m, err := o.conn.Get(ctx, object.Stream(info.Bucket),
			core.GetRequest{Seq: next, Next: object.Chunks(info.Bucket, info.NUID)})
		switch {
		case err != nil:
			return nil, fmt.Errorf("object %s: %w", name, err)
		// no client of ours stores empty chunks, and a thousand of them would cost the reader time
		case len(m.Data) == 0:
			return nil, fmt.Errorf("%w: %s: an empty chunk", object.ErrDamaged, name)
		}
		content, next = append(content, m.Data...), m.Seq+1
	}
	if r, err := events.ParseObjectName(name); err == nil && events.ObjectName(r, content) != name {
		return nil, fmt.Errorf("%w: %s: its name is another content's", object.ErrDamaged, name)
	}
	return content, info.Check(content)
}

// chunksMax returns how many chunks of an object of this size are read. A user may store a copy under the name of
// another user's content, in chunks of one byte. Each chunk is one request.
func chunksMax(size int) int { return 16 + 4*size/object.ChunkBytes }

// Each calls fn with the name of every object, once for each copy.
func (o *Objects) Each(ctx context.Context, fn func(name string) error) error {
	bucket := o.conn.Cell.ObjectBucket()
	stream, err := o.conn.StreamInfo(ctx, object.Stream(bucket))
	if err != nil {
		return err
	}
	for _, metas := range []string{object.Metas(bucket), object.OwnMetas(bucket)} {
		s := pull.Span{Stream: object.Stream(bucket), Filter: metas, From: 1, Last: stream.State.LastSeq}
		err := pull.Replay(ctx, o.conn, s, func(m *core.Raw) error {
			info, err := object.Parse(m.Data)
			if err != nil || info.Deleted || !object.About(bucket, m.Subject, info.Name) {
				return nil
			}
			return fn(info.Name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete removes all copies of an object. A missing object is a success.
func (o *Objects) Delete(ctx context.Context, name string) error {
	subjects, err := o.copies(ctx, name)
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		info, err := o.objectInfo(ctx, subject)
		if errors.Is(err, core.ErrNotFound) && !info.Deleted {
			continue
		}
		if err != nil && !errors.Is(err, object.ErrDamaged) && !errors.Is(err, core.ErrNotFound) {
			return err
		}
		purge := []string{subject}
		if err == nil {
			// a later call finds an unfinished removal
			purge = []string{object.Chunks(info.Bucket, info.NUID), subject}
		}
		for _, filter := range purge {
			var resp struct{}
			req := map[string]any{"filter": filter}
			if err := o.conn.Call(ctx, "remove object "+name, "STREAM.PURGE."+object.Stream(o.conn.Cell.ObjectBucket()),
				req,
				&resp); err != nil {
				return err
			}
		}
	}
	return nil
}
