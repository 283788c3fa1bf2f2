// Package readme_test runs the commands and programs of README.md.
package readme_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	root          = "../.."
	waitMaxS      = 180 // for one command of the page
	pollMS        = 20
	snippetsLines = 60 // the maximum length of a whole harness
)

// block is a fenced block of the page, with its mark and content.
type block struct {
	mark string
	text string
}

func (b block) lines() []string { return strings.Split(strings.TrimRight(b.text, "\n"), "\n") }

// page returns the blocks of README.md.
func page(t *testing.T) []block {
	t.Helper()
	return blocks(t, root+"/README.md")
}

var fenced = regexp.MustCompile("(?ms)^```([a-z ]*)\n(.*?)^```$")

// blocks returns the blocks of a page.
func blocks(t *testing.T, file string) (all []block) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fenced.FindAllStringSubmatch(string(body), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// marked returns the blocks with a mark, in their order.
func marked(t *testing.T, mark string, want int) []block {
	t.Helper()
	all := slices.DeleteFunc(page(t), func(b block) bool { return b.mark != mark })
	if len(all) != want {
		t.Fatalf("%d blocks are marked %q, but this test runs %d: add the others to the test", len(all), mark,
			want)
	}
	return all
}

// visitor is a shell in a checkout, with these variables besides the usual ones.
type visitor struct {
	t   *testing.T
	ctx context.Context
	dir string
	env []string
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*waitMaxS*time.Second)
	t.Cleanup(cancel)
	dir := t.TempDir()
	env := append(os.Environ(), "HOLDFAST_DATA="+filepath.Join(dir, "data"), "HOLDFAST_LISTEN=127.0.0.1:0",
		"HOLDFAST_HTTP=127.0.0.1:0",
		"HOLDFAST_READY_FILE="+filepath.Join(dir, "ready.json"), "HOLDFAST_TIMEOUT=1m", "USER=ada")
	return &visitor{t: t, ctx: ctx, dir: dir, env: env}
}

// types runs a line of the page, and fails the test with its output.
func (v *visitor) types(line string, env ...string) string {
	v.t.Helper()
	out, err := v.tries(line, env...)
	if err != nil {
		v.t.Fatal(err)
	}
	return out
}

// tries runs a line like types, but returns the error.
func (v *visitor) tries(line string, env ...string) (string, error) {
	cmd := exec.CommandContext(v.ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = root, append(slices.Clone(v.env), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("$ %s\n%s%w", line, out, err)
	}
	return string(out), err
}

// output is the output of a program so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// starts runs a program in the background until the test ends. The channel has the program's result.
func (v *visitor) starts(name string, args ...string) (*output, *exec.Cmd, <-chan error) {
	v.t.Helper()
	out := new(output)
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = root, v.env, out, out
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	ended, gone := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- cmd.Wait()
		close(gone)
	}()
	v.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			v.t.Error(err)
		}
		select {
		case <-gone:
		case <-time.After(waitMaxS * time.Second):
			v.t.Errorf("%s does not end: %v", name, cmd.Process.Kill())
			<-gone
		}
	})
	return out, cmd, ended
}

// until calls try until it returns nil, and fails the test after the time limit.
func (v *visitor) until(try func() error) {
	v.t.Helper()
	tick := time.NewTicker(pollMS * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(waitMaxS * time.Second)
	defer late.Stop()
	for err := try(); err != nil; err = try() {
		select {
		case <-tick.C:
		case <-late.C:
			v.t.Fatal(err)
		}
	}
}

// ready waits until `holdfast up` is ready, and returns the address of its broker.
func (v *visitor) ready() string {
	v.t.Helper()
	var note struct{ NATS string }
	v.until(func() error {
		body, err := os.ReadFile(filepath.Join(v.dir, "ready.json"))
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &note)
	})
	return note.NATS
}

func (v *visitor) sees(out *output, want string) {
	v.t.Helper()
	re := regexp.MustCompile("(?m)" + want)
	v.until(func() error {
		if text := out.String(); !re.MatchString(text) {
			return fmt.Errorf("no %s in:\n%s", want, text)
		}
		return nil
	})
}

// builds compiles a program of the page with the repository's packages.
func (v *visitor) builds(name string, b block) string {
	v.t.Helper()
	file, program := filepath.Join(v.dir, name+".go"), filepath.Join(v.dir, name)
	if err := os.WriteFile(file, []byte(b.text), 0o644); err != nil {
		v.t.Fatal(err)
	}
	v.types("go vet "+file+" && go build -o "+program+" "+file, "CGO_ENABLED=0")
	return program
}

// TestREADME runs the page's commands in their order: first the tour, then, on a cell that stays up, the programs of
// the page with their commands.
func TestREADME(t *testing.T) {
	v := newVisitor(t)
	commands, programs := marked(t, "sh run", 7), marked(t, "go", 2)

	// A drill checks the time limits of real processes, in seconds.
	const standstill = 300 * time.Millisecond
	tour := ""
	natstest.RetryStalled(t, standstill, func() (err error) {
		tour, err = v.tries(commands[0].text, "HOLDFAST_TRY_ONCE=1", "HOLDFAST_TRY_FAST=1")
		return err
	})
	for _, want := range []string{`^prompt +permission .* expired +owner-lost`, `promises kept`,
		`^painter/wall +colour-1 +question +awaiting`} {
		if !regexp.MustCompile("(?m)" + want).MatchString(tour) {
			t.Errorf("no %s in the tour:\n%s", want, tour)
		}
	}
	v.types(commands[2].text, "GOBIN="+v.dir)
	if output := v.types(filepath.Join(v.dir, "holdfast") + " version"); !strings.HasPrefix(output, "holdfast ") {
		t.Errorf("installed: %q", output)
	}
	deployer := v.module(marked(t, "go deployer", 1)[0], marked(t, "sh module", 1)[0].lines())
	artist, screen := v.builds("artist", programs[0]), v.builds("screen", programs[1])

	v.env = append(v.env, "HOLDFAST_DATA="+filepath.Join(v.dir, "fresh"))
	v.starts("./bin/holdfast", "up")
	v.env = append(v.env, "HOLDFAST_NATS="+v.ready())
	for _, line := range commands[1].lines() {
		v.types(line)
	}
	v.deploys(deployer, commands[3].lines())
	watched, _, _ := v.starts(screen)
	output, _, ended := v.starts(artist)
	v.sees(watched, `^KeyValuePutOp blocker\.artist\.wall\.wall\.which-colour-\w+ .*"status":"awaiting"`)
	v.sees(watched, `^asked: artist wall .*"prompt":"which-colour-\w+"`)
	v.types(commands[4].text)
	if err := <-ended; err != nil || output.String() != "ada says red\n" {
		t.Errorf("the harness printed %q and ended with %v", output, err)
	}
	v.sees(watched, `^KeyValuePutOp blocker\.artist\.wall\.wall\.which-colour-\w+ .*"status":"answered"`)
	v.types("./bin/holdfast show artist/wall --wait phase=idle")
	for _, line := range append(commands[5].lines(), commands[6].lines()...) {
		output := v.types(line)
		for command, want := range map[string]string{
			"queue": `(?m)^ceiling +ada .* and now the ceiling$`, "withdraw": `^withdrawn `,
			"check": `^would not be compacted: `, "show": `(?m)^  queue +1 message, `,
		} {
			if strings.Contains(line, "holdfast "+command+" ") && !regexp.MustCompile(want).MatchString(output) {
				t.Errorf("$ %s\n%sno %s", line, output, want)
			}
		}
	}
	if v.types("./bin/holdfast show artist/wall --wait phase=compacting"); t.Failed() {
		t.Log(watched)
	}
}

// module makes a module of the deployer with the page's commands, in the folder beside a checkout, and compiles it in
// place of the last command, which runs it.
func (v *visitor) module(b block, lines []string) string {
	v.t.Helper()
	checkout, err := filepath.Abs(root)
	dir := filepath.Join(v.dir, "deployer")
	err = errors.Join(err, os.Mkdir(dir, 0o755), os.Symlink(checkout, filepath.Join(v.dir, "holdfast-checkout")),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(b.text), 0o644))
	if err != nil {
		v.t.Fatal(err)
	}
	last := len(lines) - 1
	if lines[last] != "go run ." {
		v.t.Fatalf("the page runs the program with %q", lines[last])
	}
	// A proxy that refuses the module of Holdfast, as those of companies do with what they do not know. All others come
	// from the proxies of this machine, as they do for a reader of the page.
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/github.com/holdfast-dev/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer proxy.Close()
	proxies := proxy.URL + "," + strings.TrimSpace(v.types("go env GOPROXY"))
	for _, line := range append(slices.Clone(lines[:last]), "go vet .", "go build -o deployer .") {
		// The fixture's name differs from the page's: the test installs the program as holdfast.
		line = strings.Replace(line, "../holdfast", "../holdfast-checkout", 1)
		v.types("cd "+dir+" && "+line, "CGO_ENABLED=0", "GOPROXY="+proxies, "GOSUMDB=off", "GOFLAGS=")
	}
	return filepath.Join(dir, "deployer")
}

// deploys starts the deployer of the page and types the page's commands: its question is seen, and answered, and then
// its permission is seen. The rest is tested with the example.
func (v *visitor) deploys(program string, lines []string) {
	v.t.Helper()
	v.starts(program)
	v.types("./bin/holdfast show deployer/shop --wait owned=true")
	shown := []string{`question +awaiting .* Deploy where\?`, `permission +awaiting .* Run \./deploy\.sh staging`}
	for _, line := range lines {
		if !strings.Contains(line, "holdfast prompts") {
			v.types(line)
			continue
		}
		want := regexp.MustCompile("(?m)^deployer/shop .* " + shown[0] + "$")
		shown = shown[1:]
		v.until(func() error {
			output, err := v.tries(line)
			if err == nil && !want.MatchString(output) {
				err = fmt.Errorf("no %s in:\n%s", want, output)
			}
			return err
		})
	}
	if len(shown) > 0 {
		v.t.Errorf("the page does not show %q", shown)
	}
}

// TestOutage: everything that `holdfast up` runs is killed, and started again after longer than a lease lives, while
// the page's harnesses wait for answers. The same harness with the same question gets the answer.
func TestOutage(t *testing.T) {
	// most of the time it waits
	t.Parallel()
	// longer than the default lease
	const away = 17 * time.Second
	v := newVisitor(t)
	v.types("go build -o " + filepath.Join(v.dir, "holdfast") + " ./cmd/holdfast")
	artist := v.builds("artist", marked(t, "go", 2)[0])
	deployer := v.builds("deployer", marked(t, "go deployer", 1)[0])
	holdfast := filepath.Join(v.dir, "holdfast")
	_, first, ended := v.starts(holdfast, "up")
	broker := v.ready()
	v.env = append(v.env, "HOLDFAST_NATS="+broker, "HOLDFAST_LISTEN="+strings.TrimPrefix(broker, "nats://"))
	output, _, done := v.starts(artist)
	v.starts(deployer)
	v.types(holdfast + " show deployer/shop --wait owned=true")
	v.types(holdfast + " send deployer/shop deploy")
	waits := func() error {
		text, err := v.tries(holdfast + " prompts")
		if err != nil || !strings.Contains(text, "which-colour") || !strings.Contains(text, "which-env") {
			return fmt.Errorf("the questions are not there: %s %w", text, err)
		}
		return nil
	}
	v.until(waits)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatal("it ended by itself")
	}
	if err := os.Remove(filepath.Join(v.dir, "ready.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	<-time.After(away)
	v.starts(holdfast, "up")
	v.ready()
	v.until(waits)
	// The services may be starting.
	v.until(func() error {
		_, err := v.tries(holdfast + " answer artist/wall colour=red --person ada")
		return err
	})
	select {
	case err := <-done:
		// The log says that the broker was lost, and came back.
		if text := output.String(); err != nil || !strings.HasSuffix(text, "\nada says red\n") ||
			!strings.Contains(text, "INFO broker back") {
			t.Errorf("the harness printed %q and ended with %v", output, err)
		}
	case <-time.After(waitMaxS * time.Second):
		t.Fatalf("the harness still waits; its output is %q", output)
	}
	v.types(holdfast + " answer deployer/shop staging --person ada")
	v.rejects(holdfast, "deployer/shop", "may-deploy")
	for _, session := range []string{"artist/wall", "deployer/shop"} {
		shown := v.types(holdfast + " show " + session + " --wait phase=idle")
		if !strings.Contains(shown, "completed") || strings.Contains(shown, "interrupted") {
			t.Errorf("the turn of %s that ended is another one:\n%s", session, shown)
		}
	}
}

// rejects waits for a permission of this name in a session, and rejects it.
func (v *visitor) rejects(holdfast, session, name string) {
	v.t.Helper()
	id := regexp.MustCompile(name + `-\w+`)
	v.until(func() error {
		text, err := v.tries(holdfast + " prompts " + session)
		if err != nil || !id.MatchString(text) {
			return fmt.Errorf("%s is not there: %s %w", name, text, err)
		}
		v.types(holdfast + " reject " + session + " " + id.FindString(text) + " --person ada")
		return nil
	})
}

// TestArtistRunsAgain: the page's second program is killed while it waits, and waits for the same question when it runs
// again; after its end it asks another one. An answer that arrives while it is dead reaches it. A process that has
// claimed its session gets the answer itself. TestOutage waits meanwhile.
func TestArtistRunsAgain(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	holdfast := filepath.Join(v.dir, "holdfast")
	v.types("go build -o " + holdfast + " ./cmd/holdfast")
	artist := v.builds("artist", marked(t, "go", 2)[0])
	v.starts(holdfast, "up")
	v.env = append(v.env, "HOLDFAST_NATS="+v.ready())
	asks := func(but string) (question string) {
		v.until(func() error {
			output, err := v.tries(holdfast + " prompts artist/wall")
			at := regexp.MustCompile(`which-colour-\w+`).FindString(output)
			if question = at; err == nil && (at == "" || at == but) {
				err = fmt.Errorf("no question but %q in:\n%s", but, output)
			}
			return err
		})
		return question
	}
	_, killed, gone := v.starts(artist)
	asked := asks("")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err == nil {
		t.Error("a program that was killed ended without an error")
	}
	other := ""
	for claims, run := range []string{"after a kill", "after its end"} {
		output, _, ended := v.starts(artist)
		v.until(func() error {
			output, err := v.tries(holdfast + " events artist/wall")
			if err == nil && strings.Count(output, "session.claimed") <= claims {
				err = errors.New("it has not claimed its session:\n" + output)
			}
			return err
		})
		question := asks(other)
		if same := question == asked; same != (other == "") {
			t.Errorf("%s it asks %s, and asked %s before", run, question, asked)
		}
		v.types(holdfast + " answer artist/wall colour=red --person ada")
		if err := <-ended; err != nil || output.String() != "ada says red\n" {
			t.Errorf("%s it printed %q and ended with %v", run, output, err)
		}
		other = question
	}
	_, killed, gone = v.starts(artist)
	asks(other)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err == nil {
		t.Error("a program that was killed ended without an error")
	}
	v.untilShown(holdfast+" show artist/wall --json", `"owned":false`)
	v.types(holdfast + " answer artist/wall colour=blue --person ada")
	output, _, ended := v.starts(artist)
	if err := <-ended; err != nil || output.String() != "ada says blue\n" {
		t.Errorf("answered while it was dead, it printed %q and ended with %v", output, err)
	}
}

// untilShown types a command until it prints this text.
func (v *visitor) untilShown(command, text string) {
	v.t.Helper()
	v.until(func() error {
		output, err := v.tries(command)
		if err == nil && !strings.Contains(output, text) {
			err = fmt.Errorf("%s prints no %s:\n%s", command, text, output)
		}
		return err
	})
}

// If Node.js is installed, the page's JavaScript must parse. Its fields must exist.
func TestBrowserNamesWhatIsThere(t *testing.T) {
	b := marked(t, "js", 1)[0]
	cell, err := events.NewCell(events.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`.open("` + cell.StateBucket() + `")`,
		`{ key: "` + events.BlockerKeys("", "") + `" }`,
		`nc.request("` + cell.ServiceSubject("ledger", "answer") + `", `, `"Nats-Service-Error-Code"`} {
		if !strings.Contains(b.text, want) {
			t.Errorf("no %s on the page", want)
		}
	}
	fields := func(v any) map[string]json.RawMessage {
		body, err := json.Marshal(v)
		var all map[string]json.RawMessage
		if err = errors.Join(err, json.Unmarshal(body, &all)); err != nil {
			t.Fatal(err)
		}
		return all
	}
	names := func(after string) []string {
		list := regexp.MustCompile(regexp.QuoteMeta(after) + `\[?\{ ([a-z, ]+),? `).FindStringSubmatch(b.text)
		if list == nil {
			t.Fatalf("no list of fields after %q", after)
		}
		return strings.Split(strings.TrimSuffix(list[1], ","), ", ")
	}
	for after, v := range map[string]any{
		"entry.json()); // ": session.Blocker{Questions: []events.Question{{}}},
		"const request = ":   request.Answer{}, "// answers: ": events.Answer{Text: "x"},
	} {
		known := fields(v)
		for _, name := range names(after) {
			if _, ok := known[name]; !ok {
				t.Errorf("%s%s: there is no such field", after, name)
			}
		}
	}
	if node, err := exec.LookPath("node"); err == nil {
		file := filepath.Join(t.TempDir(), "page.mjs")
		if err := os.WriteFile(file, []byte(b.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(node, "--check", file).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// The harness on the page is the compiled example, without the code that answers in it.
func TestHarnessIsTheExample(t *testing.T) {
	b := marked(t, "go", 2)[0]
	if n := len(b.lines()); n > snippetsLines {
		t.Errorf("the shortest complete harness has %d lines, more than %d", n, snippetsLines)
	}
	example, err := os.Open(root + "/harness/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(example)
	if err := errors.Join(err, example.Close()); err != nil {
		t.Fatal(err)
	}
	text := string(body)
	text = text[strings.Index(text, "func Example() {"):]
	text = text[:strings.Index(text, "\n}\n")]
	plain := strings.NewReplacer(`ID: "painter"`, "ID", `ID: "artist"`, "ID", "cell.url", "URL",
		`os.Getenv("HOLDFAST_NATS")`, "URL").Replace
	rest := strings.Split(plain(text), "\n")
	inside := false
	for _, l := range b.lines() {
		l = plain(l)
		if l == "}" {
			break
		}
		if inside && strings.TrimSpace(l) != "" {
			at := slices.Index(rest, l)
			if at < 0 {
				t.Errorf("the example does not have this line at this place: %s", l)
				continue
			}
			rest = rest[at+1:]
		}
		inside = inside || l == "func main() {"
	}
	for _, l := range rest {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "//") {
			t.Errorf("the page does not have this line of the example's end: %s", l)
		}
	}
}

// Every file that the page links to exists.
func TestLinks(t *testing.T) {
	body, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(body), -1)
	if len(links) < 10 {
		t.Fatalf("%d links", len(links))
	}
	for _, m := range links {
		if strings.Contains(m[1], "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Error(err)
		}
	}
}
