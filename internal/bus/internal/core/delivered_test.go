package core

import "testing"

// TestDelivered: each of these marks shows that a stream sent a message: the reply of a consumer, the headers of a
// direct get.
func TestDelivered(t *testing.T) {
	for _, tt := range []struct {
		header map[string][]string
		reply  string
		want   bool
	}{
		{nil, "", false},
		{nil, "_INBOX.hf.person.ann.x", false},
		{map[string][]string{"X": {"y"}}, "", false},
		{nil, "$JS.ACK.X.a.1.1.1.1.0", true},
		{nil, "$JS.ACK._.hash.X.a.1.1.1.1.0.x", true},
		{map[string][]string{"Nats-Stream": {"X"}}, "", true},
		{map[string][]string{"Nats-Sequence": {"1"}}, "", true},
	} {
		if got := Delivered(tt.header, tt.reply); got != tt.want {
			t.Errorf("header %v, reply %q: %v", tt.header, tt.reply, got)
		}
	}
}
