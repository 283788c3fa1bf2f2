//go:build recording

package board

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/draw"
	"image/gif"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/test/agents"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

const (
	recordingBytesMax = 400 << 10
	frameTime         = 350 // in hundredths of a second
	frameWidth        = 1120
	frameHeight       = 590
	boardWidth        = 760
	boardHeight       = 510
)

type object = map[string]any

// agentConfig has a model of the test, and a permission that asks for rm.
const agentConfig = `{"autoupdate": false, "share": "disabled", "enabled_providers": ["mock"],
 "model": "mock/big", "small_model": "mock/big",
 "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock",
  "options": {"baseURL": %q, "apiKey": "none"},
  "models": {"big": {"name": "Big", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}}},
 "permission": {"bash": {"*": "allow", "rm *": "ask"}}}`

// editor is a client of the Agent Client Protocol that shows what an editor shows. It decides nothing.
type editor struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	lines   []string          // on its screen
	replies map[string]string // by request: the result
	session string
}

// edit starts an agent in a folder, behind the proxy.
func edit(t *testing.T, c *cell, dir string) *editor {
	t.Helper()
	opencode, err := agents.OpenCode()
	if err != nil {
		t.Fatalf("OpenCode is needed, and is not here: %v", err)
	}
	home := t.TempDir()
	e := &editor{t: t, replies: map[string]string{}}
	e.cmd = exec.Command(binary, "acp", "--nats", "nats://"+c.nats, "--harness", "opencode", "--linger", "0s", "--",
		opencode, "acp")
	e.cmd.Dir, e.cmd.Stderr = dir, os.Stderr
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "OPENCODE_TEST_HOME=" + home, "USER=ann",
		"XDG_DATA_HOME=" + home + "/data", "XDG_CONFIG_HOME=" + home + "/config", "XDG_CACHE_HOME=" + home + "/cache",
		"XDG_STATE_HOME=" + home + "/state", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1",
		"OPENCODE_DISABLE_EXTERNAL_SKILLS=1", "OPENCODE_DISABLE_CLAUDE_CODE=1", "OPENCODE_PURE=1"}
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go e.reads(out)
	t.Cleanup(func() {
		_ = e.in.Close()
		_ = e.cmd.Wait()
	})
	e.does("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}})
	var opened struct {
		Session string `json:"sessionId"`
	}
	if err := json.Unmarshal([]byte(e.does("session/new", object{"cwd": dir, "mcpServers": []any{}})),
		&opened); err != nil {
		t.Fatal(err)
	}
	e.session = opened.Session
	return e
}

// reads puts what the agent says on the screen.
func (e *editor) reads(out io.Reader) {
	in := bufio.NewScanner(out)
	in.Buffer(nil, 8<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
			Params struct {
				Update struct {
					Kind    string `json:"sessionUpdate"`
					Content struct {
						Text string `json:"text"`
					} `json:"content"`
				} `json:"update"`
				Call struct {
					Title string `json:"title"`
					Input struct {
						Command string `json:"command"`
					} `json:"rawInput"`
				} `json:"toolCall"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		switch {
		case m.Method == "" && m.ID != nil:
			e.mu.Lock()
			e.replies[string(m.ID)] = cmp.Or(string(m.Result), string(m.Error))
			e.mu.Unlock()
		case m.Method == "session/request_permission":
			e.shows("? May I run   " + cmp.Or(m.Params.Call.Input.Command, m.Params.Call.Title))
		case m.Params.Update.Kind == "agent_message_chunk":
			e.addText(m.Params.Update.Content.Text)
		}
	}
}

// shows adds a line to the screen.
func (e *editor) shows(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, line)
}

// addText adds words of the agent to the screen.
func (e *editor) addText(words string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.lines); n > 0 && strings.HasPrefix(e.lines[n-1], "• ") {
		e.lines[n-1] += words
		return
	}
	e.lines = append(e.lines, "• "+words)
}

// screen is what the screen has.
func (e *editor) screen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, "\n")
}

// asks sends a request.
func (e *editor) asks(id int, method string, params any) {
	e.t.Helper()
	raw, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err == nil {
		_, err = e.in.Write(append(raw, '\n'))
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// reply returns the reply to a request, "" without one.
func (e *editor) reply(id int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.replies[strconv.Itoa(id)]
}

// does sends a request, and waits for its result.
func (e *editor) does(method string, params any) (result string) {
	e.t.Helper()
	id := len(e.replies) + 1
	e.asks(id, method, params)
	until(e.t, method+" has a reply", func() bool { return e.reply(id) != "" })
	return e.reply(id)
}

// agentPID returns the process of the agent: the child of the proxy.
func (e *editor) agentPID() (pid int) {
	e.t.Helper()
	until(e.t, "the agent runs", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", e.cmd.Process.Pid))
		if err != nil {
			e.t.Fatal(err)
		}
		for _, path := range threads {
			raw, err := os.ReadFile(path)
			if children := strings.Fields(string(raw)); err == nil && len(children) > 0 {
				pid, err = strconv.Atoi(children[0])
				return err == nil
			}
		}
		return false
	})
	return pid
}

// recorder takes the frames of a recording.
type recorder struct {
	p, frame *page // the board, and the page on which a frame is put together
	e        *editor
	frames   []image.Image
	text     strings.Builder // the text of the frames
}

// take adds a frame: a caption, the screen of the editor, and the board from the element seen on.
func (r *recorder) take(caption, seen string) {
	r.p.t.Helper()
	r.p.do(chromedp.EmulateViewport(boardWidth, boardHeight))
	eval[bool](r.p, fmt.Sprintf(`(document.querySelector(%s).scrollIntoView(), true)`, quote(seen)))
	drawn(r.p)
	shot, err := chromedp.Run(r.p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		r.p.t.Fatal(err)
	}
	screen := r.e.screen()
	fmt.Fprintf(&r.text, "%s\n\n%s\n\n", caption, screen)
	body := fmt.Sprintf(`<style>body { margin: 0; background: #20242c; font: 15px sans-serif; color: #e8e8e8 }
		h1 { font-size: 19px; margin: 14px 18px } main { display: flex; gap: 14px; margin: 0 18px }
		pre { width: 310px; height: %dpx; margin: 0; padding: 12px; background: #12151a; white-space: pre-wrap;
			font: 14px/1.5 monospace; border-radius: 6px; box-sizing: border-box }
		img { border-radius: 6px }</style>
		<h1>%s</h1><main><pre>%s</pre><img src="data:image/png;base64,%s"></main>`,
		boardHeight, html.EscapeString(caption), html.EscapeString(screen), base64.StdEncoding.EncodeToString(shot))
	r.frame.do(chromedp.EmulateViewport(frameWidth, frameHeight))
	eval[bool](r.frame, fmt.Sprintf(`(document.body.innerHTML = %s, true)`, quote(body)))
	r.frame.wait(`document.querySelector("img").complete`)
	eval[bool](r.frame, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	shot, err = chromedp.Run(r.frame.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		r.p.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(r.frame.shrink(shot)))
	if err != nil {
		r.p.t.Fatal(err)
	}
	r.frames = append(r.frames, picture)
}

// write writes the recording, and its text beside it.
func (r *recorder) write(name string) {
	r.p.t.Helper()
	all := &gif.GIF{}
	for _, f := range r.frames {
		few := f.(*image.Paletted)
		frame := image.NewPaletted(few.Bounds(), few.Palette)
		draw.Draw(frame, frame.Bounds(), few, image.Point{}, draw.Src)
		all.Image, all.Delay = append(all.Image, frame), append(all.Delay, frameTime)
	}
	all.Delay[len(all.Delay)-1] *= 2
	var out bytes.Buffer
	if err := gif.EncodeAll(&out, all); err != nil {
		r.p.t.Fatal(err)
	}
	if out.Len() > recordingBytesMax {
		r.p.t.Errorf("the recording has %d bytes, want at most %d", out.Len(), recordingBytesMax)
	}
	for path, body := range map[string][]byte{
		filepath.Join(picturesDir, name+".gif"):            out.Bytes(),
		filepath.Join("testdata", "pictures", name+".txt"): []byte(r.text.String()),
	} {
		if err := os.WriteFile(path, body, 0o600); err != nil {
			r.p.t.Fatal(err)
		}
	}
}

// TestRecording records a real OpenCode in an editor: it is killed while it waits for a permission, a person permits
// the call on the board, and the next process runs it, once, and ends the turn.
func TestRecording(t *testing.T) {
	model := mockmodel.Start()
	t.Cleanup(model.Close)
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	run("git", "init", "-q")
	run("mkdir", "build")
	if err := os.WriteFile(filepath.Join(dir, "opencode.json"), fmt.Appendf(nil, agentConfig, model.URL()),
		0o600); err != nil {
		t.Fatal(err)
	}
	remove := mockmodel.Tool("bash", object{"command": "rm -rv build", "description": "Remove build"})
	remove.Until = "removed"
	model.Script("tidy", remove, mockmodel.Text("Done: build is removed, and nothing else."))
	model.Script(mockmodel.Title, mockmodel.Text("Tidy up the project"))

	c := newCell(t)
	e := edit(t, c, dir)
	r := &recorder{p: board(t, c, ""), frame: newPage(t, "about:blank"), e: e}
	e.shows("> Tidy up the project.\n")
	const prompted, row = 100, ".row.open"
	e.asks(prompted, "session/prompt", object{"sessionId": e.session,
		"prompt": []object{{"type": "text", "text": "Tidy up the project."}, {"type": "text", "text": "<<tidy>>"}}})
	r.p.wait(`document.querySelector(".row.waits")`)
	r.p.press("j")
	r.p.wait(`document.querySelector(".row.open .input dd")`)
	until(t, "the editor shows the permission", func() bool { return strings.Contains(e.screen(), "rm -rv build") })
	r.take("1. OpenCode asks for a permission, in the editor and on the board.", row)

	pid := e.agentPID()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e.shows(fmt.Sprintf("\n$ kill -9 %d   # opencode", pid))
	until(t, "the next process runs", func() bool { return e.agentPID() != pid })
	r.p.wait(`document.querySelector(".row.waits")`)
	r.take("2. Its process is killed. The permission is in the log, and waits on.", row)

	r.p.press("1")
	r.p.wait(`document.querySelector("input[type=radio]:checked")`)
	r.p.wait(`!document.querySelector(".form button.main").disabled`)
	r.take("3. A person permits it on the board …", row)
	r.p.press("\r")
	until(t, "the turn has ended", func() bool { return e.reply(prompted) != "" })
	if got := e.reply(prompted); !strings.Contains(got, "end_turn") {
		t.Fatalf("the turn ended with %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "build")); !os.IsNotExist(err) {
		t.Errorf("the command did not run: %v", err)
	}
	if n := strings.Count(e.screen(), "May I run"); n != 1 {
		t.Errorf("the editor showed %d permissions", n)
	}
	r.p.visit("#/s/opencode/" + e.session)
	r.p.wait(`document.querySelector("#phase")?.textContent === "idle"`)
	r.take("4. The next process has the answer, runs the command once, and ends the turn.", "#timeline")
	r.write("recording")
}
