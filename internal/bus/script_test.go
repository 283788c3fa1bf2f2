package bus_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
)

// asked is a message that a client has published to a scripted broker.
type asked struct {
	subject, reply string
	header, body   string
}

// is says whether the message asks the JetStream API for this.
func (a asked) is(what string) bool { return strings.HasPrefix(a.subject, "$JS.API."+what) }

// decode reads the body as JSON.
func (a asked) decode(t testing.TB, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), to); err != nil {
		t.Errorf("%s: %s: %v", a.subject, a.body, err)
	}
}

// said is what a scripted broker sends to the reply subject of a request.
type said struct {
	subject, reply string // of the message; the subject is the request's reply subject by default
	header, body   string
	every          time.Duration // it is sent again and again; 0: once
}

// Answers that a script gives often.
var (
	silence   = []said{}
	notFound  = says(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)
	noStream  = says(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`)
	trouble   = says(`{"error":{"code":500,"err_code":10060,"description":"trouble"}}`)
	wrongLast = says(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"}}`)
)

func says(body string) []said { return []said{{body: body}} }

// status is a message of the broker about a pull.
func status(line string, fields ...string) said {
	h := "NATS/1.0 " + line + "\r\n"
	for i := 0; i < len(fields); i += 2 {
		h += fields[i] + ": " + fields[i+1] + "\r\n"
	}
	return said{header: h + "\r\n"}
}

// delivery is a message of a stream as a consumer delivers it: its sequence in the stream, its number at the consumer,
// and how many are still to come.
func delivery(stream, subject, body string, seq, nth, pending int) said {
	ack := fmt.Sprintf("$JS.ACK.%s.c.1.%d.%d.%d.%d", stream, seq, nth, time.Now().UnixNano(), pending)
	return said{subject: subject, reply: ack, header: "NATS/1.0\r\nX: y\r\n\r\n", body: body}
}

// stored is the answer to a request for one message.
func stored(subject string, seq int, header, body string, at time.Time) []said {
	text, err := json.Marshal(map[string]any{"message": map[string]any{
		"subject": subject, "seq": seq, "hdrs": []byte(header), "data": []byte(body), "time": at.UTC()}})
	if err != nil {
		panic(err)
	}
	return says(string(text))
}

// script is a broker that answers as a test says.
type script struct {
	t      testing.TB
	url    string
	answer func(a asked) []said // nil: no responders
	login  chan string          // the CONNECT lines
	done   chan struct{}        // closed when the test ends

	mu    sync.Mutex
	conns []net.Conn
	info  string // more fields of INFO
	deaf  bool   // it ends new connections at once
}

// scripted starts a broker that answers each request with what answer returns: a nil list means that there are no
// responders. The question for the JetStream account is answered for it. answer runs on one goroutine a connection.
func scripted(t testing.TB, answer func(a asked) []said) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, url: "nats://" + l.Addr().String(), answer: answer, login: make(chan string, 100),
		done: make(chan struct{})}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			deaf := s.deaf
			if deaf {
				_ = c.Close()
			} else {
				s.conns = append(s.conns, c)
			}
			s.mu.Unlock()
			if !deaf {
				go s.serve(c)
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		close(s.done)
		s.cut()
		<-gone
	})
	return s
}

// open connects to it.
func (s *script) open() *bus.Bus {
	s.t.Helper()
	return busAt(s.t, s.url)
}

// wantLogin makes it ask for a signature.
func (s *script) wantLogin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = `,"auth_required":true,"nonce":"abcdefgh"`
}

// cut ends all connections.
func (s *script) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

// say sends a line of the protocol to all clients.
func (s *script) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_, _ = io.WriteString(c, line+"\r\n")
	}
}

func (s *script) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	s.mu.Lock()
	info := s.info
	s.mu.Unlock()
	var saying sync.Mutex
	say := func(text string) {
		saying.Lock()
		defer saying.Unlock()
		_, _ = io.WriteString(c, text+"\r\n") // the client may have hung up: the reader finds out
	}
	say(`INFO {"server_id":"SCRIPT","version":"2.15.2","headers":true,"max_payload":8388608,"jetstream":true,"proto":1` + info + `}`)
	sids := map[string]string{}
	for in := bufio.NewReader(c); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "CONNECT":
			s.login <- line
		case "PING":
			say("PONG")
		case "SUB":
			sids[strings.TrimSuffix(words[1], ".*")] = words[len(words)-1]
		case "PUB", "HPUB":
			a, err := published(in, words)
			if err != nil {
				return
			}
			s.respond(say, sids, a)
		}
	}
}

// published reads what follows a PUB or HPUB line.
func published(in io.Reader, words []string) (a asked, err error) {
	headed, sizes := words[0] == "HPUB", 1
	if headed {
		sizes = 2
	}
	a.subject = words[1]
	if len(words) == 2+sizes+1 {
		a.reply = words[2]
	}
	total, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return a, err
	}
	head := 0
	if headed {
		if head, err = strconv.Atoi(words[len(words)-2]); err != nil {
			return a, err
		}
	}
	text := make([]byte, total+len("\r\n"))
	if _, err := io.ReadFull(in, text); err != nil {
		return a, err
	}
	a.header, a.body = string(text[:head]), string(text[head:total])
	return a, nil
}

// respond sends what the script says to the subscription of the request's reply subject.
func (s *script) respond(say func(string), sids map[string]string, a asked) {
	var all []said
	if a.subject == "$JS.API.INFO" {
		all = says(`{}`)
	} else {
		all = s.answer(a)
	}
	if a.reply == "" {
		return
	}
	sid, ok := sids[a.reply]
	if at := strings.LastIndexByte(a.reply, '.'); !ok && at > 0 {
		sid = sids[a.reply[:at]]
	}
	if all == nil {
		all = []said{status("503")}
	}
	for _, m := range all {
		if m.subject == "" {
			m.subject = a.reply
		}
		to := m.subject + " " + sid
		if m.reply != "" {
			to += " " + m.reply
		}
		text := fmt.Sprintf("MSG %s %d\r\n%s", to, len(m.body), m.body)
		if m.header != "" {
			text = fmt.Sprintf("HMSG %s %d %d\r\n%s%s", to, len(m.header), len(m.header)+len(m.body), m.header, m.body)
		}
		say(text)
		if m.every > 0 {
			go s.repeat(m.every, func() { say(text) })
		}
	}
}

// repeat says something again and again until the test ends.
func (s *script) repeat(every time.Duration, say func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			say()
		case <-s.done:
			return
		}
	}
}
