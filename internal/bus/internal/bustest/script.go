package bustest

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

// Asked is a message that a client has published to a scripted broker.
type Asked struct {
	subject, reply string
	header, Body   string
}

// Is says whether the message asks the JetStream API for this.
func (a Asked) Is(what string) bool { return strings.HasPrefix(a.subject, "$JS.API."+what) }

// Subject is what the message was published on.
func (a Asked) Subject() string { return a.subject }

// On says whether the message was published on a subject that begins so.
func (a Asked) On(prefix string) bool { return strings.HasPrefix(a.subject, prefix) }

// Header is the value of a header of the message, "" without it.
func (a Asked) Header(name string) string {
	_, rest, _ := strings.Cut(a.header, "\r\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return strings.TrimSpace(value)
}

// Decode reads the body as JSON.
func (a Asked) Decode(t testing.TB, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), to); err != nil {
		t.Errorf("%s: %s: %v", a.subject, a.Body, err)
	}
}

// Reply is what a scripted broker sends to the reply subject of a request.
type Reply struct {
	Subject, Reply string // of the message; the subject is the request's reply subject by default
	Header, Body   string
	Every          time.Duration // it is sent again and again; 0: once
}

// Answers that a script gives often.
var (
	Silence   = []Reply{}
	NotFound  = []Reply{{Body: `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`}}
	NoStream  = []Reply{{Body: `{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`}}
	Trouble   = []Reply{{Body: `{"error":{"code":500,"err_code":10060,"description":"trouble"}}`}}
	InProcess = []Reply{{Body: `{"error":{"code":409,"err_code":10158,"description":"id is in process"}}`}}
	InFlight  = []Reply{{Body: `{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`}}
	WrongLast = []Reply{{Body: `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"}}`}}
)

// OneReply is one answer with this body.
func OneReply(body string) []Reply { return []Reply{{Body: body}} }

// Status is a message of the broker about a pull.
func Status(line string, fields ...string) Reply {
	h := "NATS/1.0 " + line + "\r\n"
	for i := 0; i < len(fields); i += 2 {
		h += fields[i] + ": " + fields[i+1] + "\r\n"
	}
	return Reply{Header: h + "\r\n"}
}

// Delivery is a message of a stream as a consumer delivers it: its sequence in the stream, its number at the consumer,
// and how many are still to come.
func Delivery(stream, subject, body string, seq, nth, pending int) Reply {
	ack := fmt.Sprintf("$JS.ACK.%s.c.1.%d.%d.%d.%d", stream, seq, nth, time.Now().UnixNano(), pending)
	return Reply{Subject: subject, Reply: ack, Header: "NATS/1.0\r\nX: y\r\n\r\n", Body: body}
}

// Stored is the answer to a request for one message.
func Stored(subject string, seq int, header, body string, at time.Time) []Reply {
	text, err := json.Marshal(map[string]any{"message": map[string]any{
		"subject": subject, "seq": seq, "hdrs": []byte(header), "data": []byte(body), "time": at.UTC()}})
	if err != nil {
		panic(err)
	}
	return OneReply(string(text))
}

// script is a broker that answers as a test says.
type script struct {
	t      testing.TB
	Url    string
	answer func(a Asked) []Reply // nil: no responders
	Login  chan string           // the CONNECT lines
	done   chan struct{}         // closed when the test ends

	Mu    sync.Mutex
	conns []net.Conn
	info  string // more fields of INFO
	Deaf  bool   // it ends new connections at once
	// the answer to the question for the JetStream account, by default that there are no limits
	Account []Reply
}

// Scripted starts a broker that answers each request with what answer returns: a nil list means that there are no
// responders. The question for the JetStream account is answered for it. answer runs on one goroutine a connection.
func Scripted(t testing.TB, answer func(a Asked) []Reply) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, Url: "nats://" + l.Addr().String(), answer: answer, Login: make(chan string, 100),
		done: make(chan struct{}), Account: OneReply(`{}`)}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.Mu.Lock()
			deaf := s.Deaf
			if deaf {
				_ = c.Close()
			} else {
				s.conns = append(s.conns, c)
			}
			s.Mu.Unlock()
			if !deaf {
				go s.serve(c)
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		close(s.done)
		s.Cut()
		<-gone
	})
	return s
}

// Open connects to it.
func (s *script) Open() *bus.Bus {
	s.t.Helper()
	return BusAt(s.t, s.Url)
}

// WantLogin makes it ask for a signature.
func (s *script) WantLogin() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.info = `,"auth_required":true,"nonce":"abcdefgh"`
}

// Cut ends all connections.
func (s *script) Cut() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

// Send sends a line of the protocol to all clients.
func (s *script) Send(line string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.conns {
		_, _ = io.WriteString(c, line+"\r\n")
	}
}

func (s *script) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	s.Mu.Lock()
	info := s.info
	s.Mu.Unlock()
	var saying sync.Mutex
	write := func(text string) {
		saying.Lock()
		defer saying.Unlock()
		// the client may have hung up: the reader finds out
		_, _ = io.WriteString(c, text+"\r\n")
	}
	write(`INFO {"server_id":"SCRIPT","version":"2.15.2","headers":true,"max_payload":8388608,"jetstream":true,` +
		`"proto":1` + info + `}`)
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
			s.Login <- line
		case "PING":
			write("PONG")
		case "SUB":
			sids[strings.TrimSuffix(words[1], ".*")] = words[len(words)-1]
		case "PUB", "HPUB":
			a, err := published(in, words)
			if err != nil {
				return
			}
			s.respond(write, sids, a)
		}
	}
}

// published reads what follows a PUB or HPUB line.
func published(in io.Reader, words []string) (a Asked, err error) {
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
	a.header, a.Body = string(text[:head]), string(text[head:total])
	return a, nil
}

// respond sends what the script says to the subscription of the request's reply subject.
func (s *script) respond(write func(string), sids map[string]string, a Asked) {
	var all []Reply
	if a.subject == "$JS.API.INFO" {
		s.Mu.Lock()
		all = s.Account
		s.Mu.Unlock()
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
		all = []Reply{Status("503")}
	}
	for _, m := range all {
		if m.Subject == "" {
			m.Subject = a.reply
		}
		to := m.Subject + " " + sid
		if m.Reply != "" {
			to += " " + m.Reply
		}
		text := fmt.Sprintf("MSG %s %d\r\n%s", to, len(m.Body), m.Body)
		if m.Header != "" {
			text = fmt.Sprintf("HMSG %s %d %d\r\n%s%s", to, len(m.Header), len(m.Header)+len(m.Body), m.Header, m.Body)
		}
		write(text)
		if m.Every > 0 {
			go s.repeat(m.Every, func() { write(text) })
		}
	}
}

// repeat says something again and again until the test ends.
func (s *script) repeat(every time.Duration, write func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			write()
		case <-s.done:
			return
		}
	}
}
