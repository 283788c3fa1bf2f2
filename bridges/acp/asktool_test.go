package acp

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestAskToolSecret: a connection that does not know the secret of the run is closed, and asks nothing.
func TestAskToolSecret(t *testing.T) {
	t.Parallel()
	tools, err := listenTools()
	if err != nil {
		t.Fatal(err)
	}
	defer tools.close()
	for secret, want := range map[string]bool{"wrong": false, "": false, tools.secret: true} {
		conn, err := net.Dial("tcp", tools.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, secret+" key\n"+`{"call":"1","params":{}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if want {
			l := <-tools.lines
			if l.session != "key" || l.Call != "1" || !isTool(json.RawMessage(l.id)) {
				t.Errorf("%+v", l)
			}
		} else if b, err := io.ReadAll(conn); len(b) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: read %q, %v", secret, b, err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAskToolProgress: a call that waits says so, because agents give up calls that say nothing.
func TestAskToolProgress(t *testing.T) {
	t.Parallel()
	tools, err := listenTools()
	if err != nil {
		t.Fatal(err)
	}
	defer tools.close()
	in, client := io.Pipe()
	server, out := io.Pipe()
	a := &AskTool{In: in, Out: out, Address: tools.address("key"), progressEvery: time.Millisecond}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(t.Context()) }()
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask_user","_meta":{"progressToken":"p"},` +
		`"arguments":{"question":"Which?"}}}`
	if _, err := io.WriteString(client, call+"\n"); err != nil {
		t.Fatal(err)
	}
	l := <-tools.lines
	lines := bufio.NewScanner(server)
	for n := 0; n < 2 && lines.Scan(); n++ {
		if !strings.Contains(lines.Text(), `"progressToken":"p"`) {
			t.Fatal(lines.Text())
		}
	}
	l.to.reply(toolAnswered{Call: l.Call, Result: json.RawMessage(`{"action":"accept","content":{"answer":"red"}}`)})
	for lines.Scan() && strings.Contains(lines.Text(), "progress") {
	}
	if !strings.Contains(lines.Text(), `"id":7`) || !strings.Contains(lines.Text(), `"text":"red"`) {
		t.Errorf("the reply is %s", lines.Text())
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAskToolOnce: a request that is sent to the next process of the agent has the tool once.
func TestAskToolOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := New(Config{Run: "r", AskTool: func(key string) json.RawMessage {
		return encode(map[string]string{"name": askServer, "key": key})
	}})
	var sent []string
	take := func(steps []Step) {
		for _, s := range steps {
			for _, l := range s.Lines {
				sent = append(sent, string(l.Raw))
			}
		}
	}
	hello := func() {
		m, err := parse([]byte(sent[len(sent)-1]))
		if err != nil || m.method != "initialize" {
			t.Fatalf("sent %q, %v", sent, err)
		}
		take(p.FromAgent(now, replyTo(m.id, "result", json.RawMessage(`{"agentCapabilities":{"loadSession":true}}`))))
	}
	take(p.FromEditor(now, []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)))
	hello()
	take(p.FromEditor(now, []byte(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w"}}`)))
	take(p.AgentExited(now, "killed"))
	take(p.AgentStarted(now))
	hello()
	last := sent[len(sent)-1]
	if !strings.Contains(last, "session/new") || strings.Count(last, `"name":"`+askServer+`"`) != 1 {
		t.Errorf("the next process gets %s", last)
	}
}
