// Package object encodes and decodes the format of NATS object stores, so that any client can read what is stored. An
// object is a message about it, under a subject made of its name, and its content in chunks, under a subject of their
// own.
package object

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ChunkBytes is how much of the content one message holds.
const ChunkBytes = 128 << 10

// digestName stands before a digest.
const digestName = "SHA-256="

// ErrDamaged says that what was read is not what was stored.
var ErrDamaged = errors.New("object: damaged")

// Info is what is stored about an object.
type Info struct {
	Name    string    `json:"name"`
	Bucket  string    `json:"bucket"`
	NUID    string    `json:"nuid"` // of its chunks
	Size    int       `json:"size"` // bytes
	MTime   time.Time `json:"mtime"`
	Chunks  int       `json:"chunks"`
	Digest  string    `json:"digest"`
	Deleted bool      `json:"deleted,omitempty"`
}

// New is about content that is to be stored.
func New(bucket, name, nuid string, content []byte) Info {
	return Info{Name: name, Bucket: bucket, NUID: nuid, Size: len(content),
		Chunks: (len(content) + ChunkBytes - 1) / ChunkBytes, Digest: digest(content)}
}

// Parse reads what is stored about an object. The error is [ErrDamaged].
func Parse(meta []byte) (Info, error) {
	var i Info
	if err := json.Unmarshal(meta, &i); err != nil {
		return i, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return i, nil
}

// Check is nil if this is the object's content, else [ErrDamaged].
func (i Info) Check(content []byte) error {
	if digest(content) != i.Digest {
		return fmt.Errorf("%w: %s: its digest is another", ErrDamaged, i.Name)
	}
	return nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return digestName + base64.URLEncoding.EncodeToString(sum[:])
}

// Stream is the stream behind a bucket of objects.
func Stream(bucket string) string { return "OBJ_" + bucket }

// Chunks is the subject of an object's chunks; "*" for those of all.
func Chunks(bucket, nuid string) string { return "$O." + bucket + ".C." + nuid }

// Meta is the subject of what is stored about an object.
func Meta(bucket, name string) string {
	return "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// Metas matches the subjects of all objects.
func Metas(bucket string) string { return "$O." + bucket + ".M.*" }

// The objects of one owner, in a cell with users. An owner is two tokens; "" is a cell without users, "*.*" everybody.

// OwnID is the id of an owner's chunks. It is part of [Info], so a client that knows nothing of owners finds them.
func OwnID(owner, nuid string) string {
	if owner == "" {
		return nuid
	}
	return owner + "." + nuid
}

// OwnMeta is the subject of what an owner has stored about an object.
func OwnMeta(bucket, owner, name string) string {
	return "$O." + bucket + ".M." + OwnID(owner, base64.URLEncoding.EncodeToString([]byte(name)))
}

// OwnChunks matches the chunks of all owners.
func OwnChunks(bucket string) string { return Chunks(bucket, "*.*.*") }

// OwnMetas matches what all owners have stored about objects.
func OwnMetas(bucket string) string { return "$O." + bucket + ".M.*.*.*" }

// Owner is whose subject this is, "" for one of a cell without users.
func Owner(bucket, subject string) string {
	rest := strings.TrimPrefix(subject, "$O."+bucket+".M.")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		return rest[:i]
	}
	return ""
}

// Of says whether the chunks are this owner's: their id is one token behind it.
func (i Info) Of(owner string) bool {
	nuid := i.NUID
	if owner != "" {
		var ok bool
		if nuid, ok = strings.CutPrefix(nuid, owner+"."); !ok {
			return false
		}
	}
	return nuid != "" && !strings.ContainsAny(nuid, ".*> \t\r\n")
}

// About says whether the subject is that of an object with this name.
func About(bucket, subject, name string) bool {
	return subject == OwnMeta(bucket, Owner(bucket, subject), name)
}
