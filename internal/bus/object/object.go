// Package object encodes and decodes the format of NATS object stores, so that any client can read the objects. An
// object is a description, under a subject made of its name, and its content in chunks, under another subject.
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

// ChunkBytes is the content of one message, in bytes.
const ChunkBytes = 128 << 10

// digestName stands before a digest.
const digestName = "SHA-256="

// ErrDamaged means that the content differs from what was stored.
var ErrDamaged = errors.New("damaged object")

// Info is the description of an object.
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

// New returns the description of new content.
func New(bucket, name, nuid string, content []byte) Info {
	return Info{Name: name, Bucket: bucket, NUID: nuid, Size: len(content),
		Chunks: (len(content) + ChunkBytes - 1) / ChunkBytes, Digest: digest(content)}
}

// Parse decodes the description of an object. The error is [ErrDamaged].
func Parse(meta []byte) (Info, error) {
	var i Info
	if err := json.Unmarshal(meta, &i); err != nil {
		return i, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return i, nil
}

// Check returns nil if this is the object's content, else [ErrDamaged].
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

// Stream returns the stream behind a bucket of objects.
func Stream(bucket string) string { return "OBJ_" + bucket }

// Chunks returns the subject of an object's chunks; "*" for those of all.
func Chunks(bucket, nuid string) string { return "$O." + bucket + ".C." + nuid }

// Meta returns the subject of an object's description.
func Meta(bucket, name string) string {
	return "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// Metas returns the filter for the descriptions of all objects.
func Metas(bucket string) string { return "$O." + bucket + ".M.*" }

// The objects of one owner, in a cell with users. An owner is two tokens; "" is a cell without users, "*.*" all owners.

// OwnID returns the id of an owner's chunks. It is part of [Info], so a client without knowledge of owners finds them.
func OwnID(owner, nuid string) string {
	if owner == "" {
		return nuid
	}
	return owner + "." + nuid
}

// OwnMeta returns the subject of an owner's description of an object.
func OwnMeta(bucket, owner, name string) string {
	return "$O." + bucket + ".M." + OwnID(owner, base64.URLEncoding.EncodeToString([]byte(name)))
}

// OwnChunks returns the filter for the chunks of all owners.
func OwnChunks(bucket string) string { return Chunks(bucket, "*.*.*") }

// OwnMetas returns the filter for all owners' descriptions.
func OwnMetas(bucket string) string { return "$O." + bucket + ".M.*.*.*" }

// Owner returns the owner in a subject, "" in a cell without users.
func Owner(bucket, subject string) string {
	rest := strings.TrimPrefix(subject, "$O."+bucket+".M.")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		return rest[:i]
	}
	return ""
}

// Of reports whether the chunks belong to this owner: their id is one token behind it.
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

// About reports whether the subject is the description of an object with this name.
func About(bucket, subject, name string) bool {
	return subject == OwnMeta(bucket, Owner(bucket, subject), name)
}
