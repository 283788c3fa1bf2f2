package core

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// TTLOf reads a TTL in either form that the broker accepts, seconds or a duration. 0: no TTL.
func TTLOf(text string) time.Duration {
	if s, err := strconv.Atoi(text); err == nil {
		return time.Duration(s) * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// markerTTL is how long the mark of a deleted key stays, for watchers that were away.
const MarkerTTL = time.Hour

// KVStream is the stream behind a bucket, as every KV client knows it.
func KVStream(bucket string) string { return "KV_" + bucket }

// KVSubject returns the subject of a key, or of a filter over keys.
func KVSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// TTLSeconds returns a TTL in the broker's form: whole seconds, at least one, rounded up.
func TTLSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(max((d+time.Second-1)/time.Second, 1)), 10)
}

// Headers of a bucket's messages.
const (
	HeaderOperation    = "KV-Operation"
	headerMarkerReason = "Nats-Marker-Reason"
	operationDelete    = "DEL"
	OperationPurge     = "PURGE"
	markerMaxAge       = "MaxAge"
)

// Deletion reports whether a bucket's message marks the end of its key, and whether the broker expired it.
func Deletion(h nats.Header) (deleted, expired bool) {
	op, reason := h.Get(HeaderOperation), h.Get(headerMarkerReason)
	return op == operationDelete || op == OperationPurge || reason != "", reason == markerMaxAge
}
