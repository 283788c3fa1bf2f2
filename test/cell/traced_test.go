package cell

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// tracedForms are headers with which a node of nats-server 2.15.2 keeps the author's request to report a message, and
// which other nodes then obey. In the first one a status in the first line hides the rest from the author's node, and
// is removed when the message is stored. In the second one the author's node finds a subject to which the author may
// publish, and does not find the second one, which it should remove.
var tracedForms = []string{"NATS/1.0 1\r\nNats-Trace-Dest: %s\r\nNats-Trace-Only: true\r\n\r\n",
	"NATS/1.0\r\nNats-Trace-Dest: hf.log.my-agent.traces.harness\r\nA: Nats-Trace-DestNats-Trace-Dest\r\n" +
		"Nats-Trace-Dest: %s\r\n\r\n"}

// traces: no node reports a message to the subject of another user, and a message that nodes drop when they receive it
// stops no reader: the commits behind it are folded.
func (w *world) traces(t *testing.T) {
	for _, user := range []string{"harness-" + attacker, "ann"} {
		subjects := []string{"$O.hf_objects.M.person.ann.x"}
		if user != "ann" {
			subjects = []string{"hf.log.my-agent.traces.harness", "$KV.hf_leases.harness.my-agent.7",
				"hf.progress.my-agent.s", "hf.nudge.my-agent", "$O.hf_objects.M.harness.my-agent.x"}
		}
		for i := range w.nodes {
			raw := w.rawly(t, i, user)
			for _, form := range tracedForms {
				for _, to := range targets() {
					for _, s := range subjects {
						raw.publish(s, fmt.Sprintf(form, to))
					}
				}
			}
			raw.done(t)
		}
	}
	r := events.Ref{Harness: attacker, Session: "after-traces"}
	if _, err := w.harness().Request("hf.log."+r.Harness+"."+r.Session+".harness", []byte(fact(&events.Table()[0], r)),
		patience); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, r.String()+" to have a document", func() bool {
		_, err := w.victim.KV.Load(t.Context(), kv.State, events.SessionKey(r))
		return err == nil
	})
}

// rawConn is a connection of a user without a client library.
type rawConn struct {
	net.Conn
	in *bufio.Scanner
}

// rawly connects to one node as a user.
func (w *world) rawly(t *testing.T, node int, user string) *rawConn {
	t.Helper()
	f := w.folder(user)
	authority, err1 := os.ReadFile(f + "/ca.crt")
	own, err2 := tls.LoadX509KeyPair(f+"/tls.crt", f+"/tls.key")
	at, err3 := url.Parse(w.nodes[node].URL())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := bufio.NewReaderSize(c, 16).ReadString('\n'); err != nil && !strings.Contains(err.Error(), "EOF") {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	secured := tls.Client(c, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own},
		ServerName: at.Hostname()})
	fmt.Fprintf(secured, "CONNECT {\"user\":%q,\"pass\":%q,\"headers\":true,\"verbose\":false}\r\n", user,
		w.password(user))
	return &rawConn{secured, bufio.NewScanner(secured)}
}

// publish sends a message with a header as it is.
func (c *rawConn) publish(subject, header string) {
	const body = "[]"
	fmt.Fprintf(c, "HPUB %s %d %d\r\n%s%s\r\n", subject, len(header), len(header)+len(body), header, body)
}

// done returns when the broker has handled all earlier messages.
func (c *rawConn) done(t *testing.T) {
	t.Helper()
	fmt.Fprint(c, "PING\r\n")
	for c.in.Scan() {
		if c.in.Text() == "PONG" {
			return
		}
	}
	t.Fatalf("the broker has closed the connection: %v", c.in.Err())
}
