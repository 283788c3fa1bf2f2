// Package object is the format of NATS object stores, so that any client can read what is stored: an object is a message
// about it, under a subject made of its name, and its content in chunks, under a subject of their own.
package object

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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
	return Info{Name: name, Bucket: bucket, NUID: nuid, Size: len(content), Chunks: (len(content) + ChunkBytes - 1) / ChunkBytes, Digest: digest(content)}
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
