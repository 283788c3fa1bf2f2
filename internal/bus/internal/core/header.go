package core

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ackPrefix begins the reply subject of every message that a consumer delivers.
const ackPrefix = "$JS.ACK."

// Delivered reports whether a stream delivered this message, through a consumer or a direct get.
func Delivered(h map[string][]string, reply string) bool {
	header := nats.Header(h)
	return header.Get(jetstream.StreamHeader) != "" || header.Get(jetstream.SequenceHeader) != "" ||
		strings.HasPrefix(reply, ackPrefix)
}

// The broker stores everything that a client puts between the first line and the empty one of its headers: a line
// without a colon, a key with a space. The client library then returns no header at all, and cannot write such a key
// again. The readable part of a header counts here, and the rest is kept under headerOdd.
const (
	headerOdd     = "Hf-Unreadable-Header" // one line that is no header field, quoted
	oddLinesMax   = 8                      // kept of a header
	oddBytesMax   = 200                    // kept of a line
	HeadersAtOnce = 32                     // that are read again concurrently
)

// headerOf reads the readable part of a header block.
func headerOf(raw []byte) nats.Header {
	if h, err := nats.DecodeHeadersMsg(raw); err == nil {
		return h
	}
	h := nats.Header{}
	_, rest, _ := strings.Cut(string(raw), "\n")
	for line := range strings.SplitSeq(rest, "\n") {
		line = strings.TrimSuffix(line, "\r")
		key, value, ok := strings.Cut(line, ":")
		switch {
		case ok && key != "":
			h[key] = append(h[key], strings.TrimLeft(value, " \t"))
		case line != "":
			KeepOdd(h, line)
		}
	}
	return h
}

// KeepOdd keeps an unreadable line for operators.
func KeepOdd(h nats.Header, line string) {
	if len(h[headerOdd]) < oddLinesMax {
		h[headerOdd] = append(h[headerOdd], strconv.Quote(line[:min(len(line), oddBytesMax)]))
	}
}

// Sendable reports whether the client library can write a key of a header.
func Sendable(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' || strings.IndexByte("\"()/,:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return key != ""
}

// headerSeq has the session's last commit on which a message was decided, or with which a fact counts.
const HeaderSeq = "Hf-Seq"
