package natstest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// Impostor speaks enough of the NATS protocol to be a broker that refuses.
type Impostor struct {
	Version   string // the version that it reports; default: a recent one
	JetStream bool   // whether it reports JetStream
	// a protocol error, such as Authorization Violation, that is the answer to each client; "" for none
	Refusal string
}

// Start runs the impostor until the test ends and returns its URL. It answers every request with "no responders".
func (i Impostor) Start(t testing.TB) string {
	t.Helper()
	if i.Version == "" {
		i.Version = "2.15.2"
	}
	l, err := net.Listen("tcp", loopbackAny)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go i.serve(conn)
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		<-gone
	})
	return "nats://" + l.Addr().String()
}

// serve talks to one client until one side closes the connection.
func (i Impostor) serve(conn net.Conn) {
	// the client may have closed it
	defer func() { _ = conn.Close() }()
	write := func(format string, v ...any) {
		// the client may have closed it: the scanner reports that
		_, _ = fmt.Fprintf(conn, format+"\r\n", v...)
	}
	write(`INFO {"server_id":"IMPOSTOR","version":%q,"headers":true,"max_payload":1048576,"jetstream":%t,"proto":1}`,
		i.Version, i.JetStream)
	// of subscriptions, by inbox
	sids := map[string]string{}
	in := bufio.NewScanner(conn)
	for in.Scan() {
		words := strings.Fields(in.Text())
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "CONNECT":
			if i.Refusal != "" {
				write("-ERR '%s'", i.Refusal)
				return
			}
		case "PING":
			write("PONG")
		case "SUB":
			sids[strings.TrimSuffix(words[1], ".*")] = words[len(words)-1]
		case "PUB", "HPUB":
			if len(words) < 4 || !strings.HasPrefix(words[2], "_INBOX.") {
				continue
			}
			reply := words[2]
			write("HMSG %s %s 16 16\r\nNATS/1.0 503\r\n\r\n", reply, sids[reply[:strings.LastIndexByte(reply, '.')]])
		}
	}
}
