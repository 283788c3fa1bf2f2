package bus

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
	"github.com/nats-io/nuid"

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

// owner returns the owner of the objects that this connection stores, "" in a cell without users.
func (b *Bus) owner() string { return b.asker().Tokens() }

// PutObject stores content that belongs to a session and returns its name; existing content is not stored again.
// Errors: a refusal (413) of content larger than [events.ObjectBytesMax]; [ErrUnreachable]: put it again.
func (b *Bus) PutObject(ctx context.Context, r events.Ref, content []byte) (name string, err error) {
	if err := r.Validate(); err != nil {
		return "", fmt.Errorf("bus: object: %w", err)
	}
	if len(content) > events.ObjectBytesMax {
		return "", events.TooLarge(fmt.Sprintf("the content takes %d bytes: send less", len(content)),
			events.ObjectBytesMax)
	}
	owner := b.owner()
	info := object.New(b.cell.ObjectBucket(), events.ObjectName(r, content), object.OwnID(owner, nuid.Next()), content)
	at := object.OwnMeta(info.Bucket, owner, info.Name)
	if there, err := b.objectInfo(ctx, at); err == nil && there.Digest == info.Digest ||
		err != nil && !errors.Is(err, ErrNotFound) {
		return info.Name, err
	}
	op := "store object " + info.Name
	for n := range info.Chunks { // one after the other: readers join them in the stored order
		part := content[n*object.ChunkBytes : min((n+1)*object.ChunkBytes, len(content))]
		msg := &nats.Msg{Subject: object.Chunks(info.Bucket, info.NUID), Data: part,
			Header: nats.Header{jetstream.MsgIDHeader: {info.NUID + "." + strconv.Itoa(n)}}}
		if err := b.repeat(ctx, op, msg, b.send(ctx, msg)); err != nil {
			return info.Name, err
		}
	}
	meta, err := json.Marshal(info)
	if err != nil {
		return info.Name, fmt.Errorf("bus: %s: %w", op, err)
	}
	msg := &nats.Msg{Subject: at, Data: meta}
	if !b.nc.AuthRequired() {
		msg.Header = nats.Header{headerRollup: {rollupSubject}}
	}
	_, err = b.put(ctx, op, msg)
	return info.Name, err
}

// objectInfo returns the description of an object under this subject, of the owner that the subject names.
func (b *Bus) objectInfo(ctx context.Context, subject string) (object.Info, error) {
	bucket := b.cell.ObjectBucket()
	m, err := b.get(ctx, object.Stream(bucket), getRequest{Last: subject})
	if err != nil {
		return object.Info{}, err
	}
	info, err := object.Parse(m.Data)
	switch {
	case err != nil:
		return info, err
	case info.Deleted:
		return info, fmt.Errorf("%w: object %s: deleted", ErrNotFound, info.Name)
	case !info.Of(object.Owner(bucket, subject)):
		return info, fmt.Errorf("%w: %s names the chunks of another owner", object.ErrDamaged, subject)
	}
	info.Bucket = bucket
	return info, nil
}

// copies returns the subjects with a description of an object: first that of a cell without users, then that of the
// harness in the name, then the others.
func (b *Bus) copies(ctx context.Context, name string) ([]string, error) {
	bucket := b.cell.ObjectBucket()
	var info jetstream.StreamInfo
	req := map[string]string{"subjects_filter": object.OwnMeta(bucket, "*.*", name)}
	if err := b.call(ctx, "look for object "+name, "STREAM.INFO."+object.Stream(bucket), req, &info); err != nil {
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

// HasObject returns nil for an existing object, [ErrNotFound] for a missing one.
func (b *Bus) HasObject(ctx context.Context, name string) error {
	_, err := b.firstCopy(ctx, name, func(object.Info) ([]byte, error) { return nil, nil })
	return err
}

// Object returns the content of an object; [ErrNotFound] if it does not exist, or was removed with its session.
func (b *Bus) Object(ctx context.Context, name string) ([]byte, error) {
	return b.firstCopy(ctx, name, func(info object.Info) ([]byte, error) { return b.content(ctx, name, info) })
}

// firstCopy returns the result of read for the first readable copy. Without one it returns the error of the copy that
// came furthest.
func (b *Bus) firstCopy(ctx context.Context, name string, read func(object.Info) ([]byte, error)) ([]byte, error) {
	subjects, err := b.copies(ctx, name)
	if err != nil {
		return nil, err
	}
	var worst error
	for _, subject := range subjects {
		info, err := b.objectInfo(ctx, subject)
		if err == nil {
			var content []byte
			if content, err = read(info); err == nil {
				return content, nil
			}
		}
		if worst == nil || errors.Is(worst, ErrNotFound) {
			worst = err
		}
		if !errors.Is(err, ErrNotFound) && !errors.Is(err, object.ErrDamaged) {
			return nil, err
		}
	}
	return nil, worst
}

// content reads one copy and checks that it matches its name.
func (b *Bus) content(ctx context.Context, name string, info object.Info) ([]byte, error) {
	if info.Size > events.ObjectBytesMax {
		return nil, fmt.Errorf("bus: %w: %s: says it takes %d bytes", object.ErrDamaged, name, info.Size)
	}
	content, next := make([]byte, 0, max(info.Size, 0)), uint64(1)
	for left := chunksMax(info.Size); len(content) < info.Size; left-- {
		if left == 0 {
			return nil, fmt.Errorf("bus: %w: %s: too many small chunks", object.ErrDamaged, name)
		}
		m, err := b.get(ctx, object.Stream(info.Bucket),
			getRequest{Seq: next, Next: object.Chunks(info.Bucket, info.NUID)})
		switch {
		case err != nil:
			return nil, fmt.Errorf("bus: object %s: %w", name, err)
		// no client of ours stores empty chunks, and a thousand of them would cost the reader time
		case len(m.Data) == 0:
			return nil, fmt.Errorf("bus: %w: %s: an empty chunk", object.ErrDamaged, name)
		}
		content, next = append(content, m.Data...), m.Seq+1
	}
	if r, err := events.ParseObjectName(name); err == nil && events.ObjectName(r, content) != name {
		return nil, fmt.Errorf("bus: %w: %s: its name is another content's", object.ErrDamaged, name)
	}
	return content, info.Check(content)
}

// chunksMax returns how many chunks of an object of this size are read. A user may store a copy under the name of
// another user's content, in chunks of one byte. Each chunk is one request.
func chunksMax(size int) int { return 16 + 4*size/object.ChunkBytes }

// Objects calls fn with the name of every object, once for each copy.
func (b *Bus) Objects(ctx context.Context, fn func(name string) error) error {
	bucket := b.cell.ObjectBucket()
	stream, err := b.streamInfo(ctx, object.Stream(bucket))
	if err != nil {
		return err
	}
	for _, metas := range []string{object.Metas(bucket), object.OwnMetas(bucket)} {
		s := span{stream: object.Stream(bucket), filter: metas, from: 1, last: stream.State.LastSeq}
		err := b.replay(ctx, s, func(m *message) error {
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

// DeleteObject removes all copies of an object. A missing object is a success.
func (b *Bus) DeleteObject(ctx context.Context, name string) error {
	subjects, err := b.copies(ctx, name)
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		info, err := b.objectInfo(ctx, subject)
		if errors.Is(err, ErrNotFound) && !info.Deleted {
			continue
		}
		if err != nil && !errors.Is(err, object.ErrDamaged) && !errors.Is(err, ErrNotFound) {
			return err
		}
		purge := []string{subject}
		if err == nil {
			purge = []string{object.Chunks(info.Bucket, info.NUID), subject} // a later call finds an unfinished removal
		}
		for _, filter := range purge {
			var resp struct{}
			req := map[string]any{"filter": filter}
			if err := b.call(ctx, "remove object "+name, "STREAM.PURGE."+object.Stream(b.cell.ObjectBucket()), req,
				&resp); err != nil {
				return err
			}
		}
	}
	return nil
}
