package bustest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config is the configuration of a stream at the broker.
func Config(t testing.TB, js jetstream.JetStream, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(Within(t, Patience), stream)
	if err != nil {
		t.Fatalf("%s: %v", stream, err)
	}
	return s.CachedInfo().Config
}

// Foreign puts a message into the log as a program does that does not know this package.
func Foreign(t testing.TB, js jetstream.JetStream, subject, body string, header nats.Header) uint64 {
	t.Helper()
	ack, err := js.PublishMsg(Within(t, Patience), &nats.Msg{Subject: subject, Data: []byte(body), Header: header})
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}
