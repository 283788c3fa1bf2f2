package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/pflag"
)

const (
	repository  = "../.."
	guideTest   = "TestGuide of test/kube/cluster runs it on a real Kubernetes"
	chartTest   = "TestChart of test/kube/cluster runs it on a real Kubernetes"
	operatorOf  = "needs an operator of others in a Kubernetes cluster"
	agentGuide  = "TestAgentGuide of test/readme runs it, on a cell with the page's program"
	server      = "needs an OpenCode server: TestLive* of bridges/opencode run the bridge with one that behaves like it"
	pluginTest  = "needs OpenCode: TestBridgePlugin runs such a command, TestPlugin* of test/agents the server"
	cellGuide   = "TestCommandsOfTheKubernetesGuide of test/cell runs it"
	acpRunGuide = "TestRunsWithoutAnEditor of test/acp continues a session of an agent"
	acpGuide    = "TestAnswers of test/acp answers a permission of an agent"
	ticketTest  = "a command of NATS: TestOtherClientsSetTheTicket of test/cell runs it, with another number"
	drillTest   = "TestRestoreDrill runs it, in another directory"
	network     = "fetches a program or an image from the network"
	tryTest     = "TestScripts/try answers the question of the tour and watches"
	account     = "needs an account: the tests of examples/agent run it with a model of their own"
	scriptTest  = "TestWithoutAnAccount of examples/agent runs it"
	retryTest   = "TestScripts/later and TestScripts/recover run such a command"
	clientTest  = "a command of NATS: TestOtherClients of test/cell watches the bucket with it"
	onNodes     = "needs a cluster: test/cell runs the services on one, with their users"
)

// notRun is each command of a guide that this test does not run, with the reason. Its calls of holdfast are checked
// against the program's commands and flags.
var notRun = map[string]map[string]string{"kubernetes.md": {
	"make render OVERLAY=deploy/k8s/overlays/production":                         network,
	"docker build -f deploy/Dockerfile -t registry.example.com/holdfast:0.1.0 .": network,
	"kubectl create namespace holdfast":                                          guideTest,
	`for dir in ./secrets/*/; do kubectl -n holdfast create secret generic "$(basename "$dir")" ` +
		`--from-file="$dir"; done`: guideTest,
	"for ca in clients routes; do kubectl -n holdfast create secret tls holdfast-$ca-ca " +
		"--cert=./secrets/$ca.ca.crt --key=./secrets/$ca.ca.key; done": operatorOf,
	"kubectl label namespace holdfast pod-security.kubernetes.io/enforce=restricted":                     chartTest,
	"kubectl -n holdfast create configmap nats-permissions --from-file=deploy/k8s/nats/permissions.conf": chartTest,
	"helm install cell deploy/helm/holdfast -n holdfast " +
		"--set image.repository=registry.example.com/holdfast": chartTest,
	"kubectl apply -k deploy/k8s/cert-manager":                                   operatorOf,
	"kubectl apply -k deploy/k8s/backup":                                         guideTest,
	"kubectl apply -k deploy/k8s/monitoring":                                     operatorOf,
	"kubectl -n holdfast create job --from=cronjob/holdfast-backup first-backup": guideTest,
	`for dir in ./secrets/*/; do kubectl -n holdfast create secret generic "$(basename "$dir")" ` +
		`--from-file="$dir" --dry-run=client -o yaml | kubectl apply -f -; done`: guideTest,
	"for i in 0 1 2; do kubectl -n holdfast exec nats-$i -- nats-server " +
		"--signal reload=/var/run/nats/nats.pid; done": guideTest,
	`for dir in ./secrets/holdfast-{ledger,retry,compaction,reconciler}; do kubectl -n holdfast create secret ` +
		`generic "$(basename "$dir")" --from-file="$dir" --dry-run=client -o yaml | ` +
		`kubectl apply -f -; done`: guideTest,
	"for s in ledger retry compaction reconciler; do\n" +
		"  kubectl -n holdfast scale deployment/holdfast-$s --replicas=0\n" +
		"  kubectl -n holdfast wait --for=delete pod -l app.kubernetes.io/component=$s --timeout=2m\n" +
		"  kubectl -n holdfast scale deployment/holdfast-$s --replicas=2\n" +
		"  kubectl -n holdfast rollout status deployment/holdfast-$s\n" +
		"done": guideTest,
	"make -s render OVERLAY=deploy/k8s/overlays/production | kubectl apply -f -":           guideTest,
	"kubectl -n holdfast rollout status deployment/holdfast-ledger":                        guideTest,
	"kubectl -n holdfast port-forward service/nats 4222 &":                                 guideTest,
	"me=./secrets/holdfast-person-screen":                                                  cellGuide,
	"export HOLDFAST_NATS=tls://screen@127.0.0.1:4222 HOLDFAST_PASSWORD_FILE=$me/password": cellGuide,
	"export HOLDFAST_TLS_CA=$me/ca.crt HOLDFAST_TLS_CERT=$me/tls.crt " +
		"HOLDFAST_TLS_KEY=$me/tls.key": cellGuide,
	"holdfast doctor": cellGuide,
}, "board.md": {
	"holdfast board --nats-ws wss://n1.example:8443 --http 0.0.0.0:443 --origin https://board.example \\\n" +
		"  --http-cert tls.crt --http-key tls.key": "needs a cluster with TLS: TestBoardBesideACluster runs one",
}, "acp.md": {
	"holdfast prompts": acpGuide,
	`holdfast answer acp-opencode/SESSION PROMPT "Allow once"`: acpGuide,
	"holdfast acp --ask-tool -- opencode acp":                  "TestAskTool of test/acp runs the tool of an agent",
	"holdfast acp run acp-opencode/SESSION -- opencode acp":    acpRunGuide,
}, "agent.md": {
	"holdfast send reviewer/docs one two three": agentGuide,
	"holdfast events reviewer/docs":             agentGuide,
	"holdfast send reviewer/docs denied":        agentGuide,
	"holdfast show reviewer/docs":               agentGuide,
	"holdfast send reviewer/docs slow":          agentGuide,
	"holdfast stop reviewer/docs":               agentGuide,
	"holdfast compact reviewer/docs":            agentGuide,
}, "opencode.md": {
	"holdfast up":                server,
	"opencode serve --port 4096": server,
	"holdfast bridge opencode --url http://127.0.0.1:4096": server,
	"holdfast bridge opencode --url http://127.0.0.1:4096 --drive retry": "TestDriveRetry of bridges/opencode " +
		"drives the retries of a server that behaves like one",
	"holdfast bridge opencode --drive compaction --spawn -- opencode serve --port 4096": "TestDriveCompaction of " +
		"bridges/opencode drives the compactions of a server that behaves like one",
	"holdfast bridge opencode --url http://127.0.0.1:4096 --spawn -- opencode serve --port 4096": "TestBridgeSpawns " +
		"runs a bridge with a server of its own",
	"holdfast bridge opencode plugin >~/.config/opencode/plugin/holdfast.js":                               pluginTest,
	"holdfast bridge opencode --plugin 127.0.0.1:4097 --spawn -- opencode serve --port 4096":               pluginTest,
	"export HOLDFAST_PLUGIN_TOKEN=$(openssl rand -hex 16) HOLDFAST_PLUGIN_URL=http://127.0.0.1:4097":       pluginTest,
	"holdfast bridge opencode --drive queue --plugin 127.0.0.1:4097 --spawn -- opencode serve --port 4096": pluginTest,
	"holdfast bridge opencode --plugin 127.0.0.1:4097":                                                     pluginTest,
	"opencode attach http://127.0.0.1:4096":                                                                server,
	"holdfast sessions --harness opencode":                                                                 server,
	"holdfast prompts":                                                                                     server,
	"holdfast watch":                                                                                       server,
}, "README.md": {
	"git clone https://github.com/holdfast-dev/holdfast": network,
	"cd holdfast": network,
	"./bin/holdfast answer painter/wall colour-1 blue": tryTest,
	"./bin/holdfast watch":                             tryTest,
	`go run ./examples/agent --script "Look around"`:   scriptTest,
	"OPENAI_API_KEY=… go run ./examples/agent --session demo --context-limit 128000 " +
		`"Which of these files is the largest?"`: account,
	"./bin/holdfast watch agent/demo": account,
	"./bin/holdfast retry now agent/demo      " +
		"# at once; also a failure that is not retried": retryTest,
	"./bin/holdfast retry cancel agent/demo   # cancel it": retryTest,
	"./bin/holdfast resume agent/demo         " +
		"# continue after a crash, if the policy leaves that to a person": retryTest,
	"nats kv watch hf_state 'blocker.>'": clientTest,
	"holdfast ledger     --nats nats://holdfast-ledger@n1:4222 " +
		"--password-file secrets/holdfast-ledger/password --replicas 3": onNodes,
	"holdfast retry      --nats nats://holdfast-retry@n1:4222 " +
		"--password-file secrets/holdfast-retry/password --replicas 3": onNodes,
	"holdfast compaction --nats nats://holdfast-compaction@n1:4222 " +
		"--password-file secrets/holdfast-compaction/password --replicas 3": onNodes,
	"holdfast reconciler --nats nats://holdfast-reconciler@n1:4222 " +
		"--password-file secrets/holdfast-reconciler/password --replicas 3": onNodes,
}, "operate.md": {
	backupGuide:  drillTest,
	restoreGuide: drillTest,
	`nats kv put hf_leases ticket.my-agent '{"incarnation":"1795483645962315"}'`: ticketTest,
}}

// TestTestsOfNotRun: each test that [notRun] names as the one that runs a command is there.
func TestTestsOfNotRun(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir(repository, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		body, err := os.ReadFile(file)
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(body), -1) {
			tests.WriteString(" " + name[1] + " ")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for page, commands := range notRun {
		for command, reason := range commands {
			for _, m := range regexp.MustCompile(`\b(Test\w+)(\*?)`).FindAllStringSubmatch(reason, -1) {
				named++
				want := " " + m[1]
				if m[2] == "" {
					want += " "
				}
				if !strings.Contains(tests.String(), want) {
					t.Errorf("%s: %s: there is no %s%s", page, command, m[1], m[2])
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests were found", named)
	}
}

// guidePage is a page for readers.
type guidePage struct {
	file string
	text string
}

// guidePages returns the pages that match these patterns.
func guidePages(t *testing.T, patterns ...string) (all []guidePage) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, guidePage{file: file, text: string(body)})
		}
	}
	return all
}

var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// statements returns the commands of the page's blocks for a shell. A loop, and a line that continues, are one.
func (p guidePage) statements(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		switch lang, _, _ := strings.Cut(m[1], " "); lang {
		case "sh":
		case "json", "go", "js":
			continue
		default:
			if regexp.MustCompile(`(?m)^(\$ |\./|holdfast |make |go |docker |kubectl |nats )`).MatchString(m[2]) {
				t.Errorf("%s: a block marked %q has commands: mark it sh\n%s", p.file, m[1], m[2])
			}
			continue
		}
		begun := ""
		for l := range strings.Lines(m[2]) {
			if begun += l; strings.HasSuffix(begun, "\\\n") || strings.HasPrefix(begun, "for ") &&
				!strings.HasSuffix(begun, "done\n") {
				continue
			}
			all, begun = append(all, strings.TrimSpace(begun)), ""
		}
		if begun != "" {
			t.Errorf("%s: a command has no end: %s", p.file, begun)
		}
	}
	return all
}

// spans returns the inline code of the page.
func (p guidePage) spans() (all []string) {
	for paragraph := range strings.SplitSeq(fence.ReplaceAllString(p.text, "\n"), "\n\n") {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(paragraph, -1) {
			all = append(all, strings.Join(strings.Fields(m[1]), " "))
		}
	}
	return all
}

// words splits a command as a shell does: quotes, comments, and signs that end a command. Each result is one command.
func words(text string) (all [][]string) {
	var list []string
	word, begun, quote := "", false, rune(0)
	end := func() {
		if begun {
			list = append(list, word)
		}
		word, begun = "", false
	}
	comment := false
	for _, r := range strings.ReplaceAll(text, "\\\n", " ") + "\n" {
		switch {
		case comment && r != '\n':
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && !begun && r == '#':
			comment = true
		case quote == 0 && strings.ContainsRune("\n;|&>", r):
			comment = false
			end()
			all, list = append(all, list), nil
		case quote == 0 && unicode.IsSpace(r):
			end()
		default:
			word, begun = word+string(r), true
		}
	}
	return slices.DeleteFunc(all, func(c []string) bool { return len(c) == 0 })
}

// calls returns the arguments of each call of holdfast in a text.
func calls(text string) (all [][]string) {
	for _, c := range words(text) {
		at := slices.IndexFunc(c, func(w string) bool { return w == "holdfast" || w == "./bin/holdfast" })
		// neither a variable nor a loop
		other := func(w string) bool { return !strings.Contains(w, "=") && w != "do" }
		if at < 0 || slices.ContainsFunc(c[:at], other) {
			// a word of another command
			continue
		}
		all = append(all, slices.DeleteFunc(slices.Clone(c[at+1:]), func(w string) bool { return w == "…" }))
	}
	return all
}

// checkCall parses a call with the program's commands. Without whole the call may leave its arguments out.
func checkCall(args []string, whole bool) error {
	// made by the library when the program runs
	if len(args) > 0 && args[0] == "completion" {
		return nil
	}
	root := newApp(&Program{}).root()
	cmd, rest, err := root.Find(args)
	switch {
	case err != nil:
		return err
	case cmd == root && len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		return fmt.Errorf("there is no command %q", args[0])
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if rest = cmd.Flags().Args(); cmd.Args == nil || !whole && len(rest) == 0 {
		return nil
	}
	return cmd.Args(cmd, rest)
}

// TestCommandsOfPages: each call of holdfast on a page, in a block or in a sentence, names a command that exists, with
// flags and arguments that it takes; each flag that a guide names exists, and each target of make.
func TestCommandsOfPages(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`^--([a-z][a-z-]*)`)
	flags, seen := map[string]bool{"help": true, "version": true}, 0
	for _, cmd := range all(newApp(&Program{})) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	}
	for _, p := range guidePages(t, "*.md", "docs/*.md", "docs/guide/*.md") {
		check := func(text string, whole bool) {
			for _, args := range calls(text) {
				seen++
				if err := checkCall(args, whole); err != nil {
					t.Errorf("%s: %s: %v", p.file, text, err)
				}
			}
			if rest, ok := strings.CutPrefix(text, "make "); ok {
				target := slices.DeleteFunc(strings.Fields(rest), func(w string) bool {
					return strings.HasPrefix(w, "-") || strings.Contains(w, "=")
				})
				if len(target) == 0 || !strings.Contains(string(makefile), "\n"+target[0]+":") {
					t.Errorf("%s: %s: make has no such target", p.file, text)
				}
			}
		}
		for _, s := range p.statements(t) {
			check(s, true)
		}
		for _, s := range p.spans() {
			check(s, false)
			if m := flag.FindStringSubmatch(s); m != nil && !flags[m[1]] {
				t.Errorf("%s: no command has the flag %s", p.file, m[0])
			}
		}
	}
	// the search for calls itself is broken
	if seen < 60 {
		t.Errorf("only %d calls were found", seen)
	}
}

// TestCommandsOfGuides runs the commands in the blocks of the guides and of the contract without a cell, each page in a
// directory of its own, but for those that [notRun] names. A command that is in neither group fails this test. Only
// holdfast itself is run: another program could act on what the machine of a developer is connected to. Blocks of the
// README that are marked run or module are commands that test/readme runs.
func TestCommandsOfGuides(t *testing.T) {
	found := map[string]bool{}
	ranElsewhere := regexp.MustCompile("(?ms)^```sh (?:run|module)\n.*?^```$")
	for _, p := range guidePages(t, "docs/guide/*.md", "docs/contract.md", "README.md") {
		p.text = ranElsewhere.ReplaceAllString(p.text, "")
		dir, name := t.TempDir(), filepath.Base(p.file)
		if err := os.MkdirAll(filepath.Join(dir, "deploy/k8s/nats"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, s := range p.statements(t) {
			if notRun[name][s] != "" {
				found[name+s] = true
				continue
			}
			err := errors.New("it is no call of holdfast")
			if strings.HasPrefix(s, "holdfast ") {
				cmd := exec.CommandContext(t.Context(), "sh", "-ec", s)
				// the settings of the editors of a developer stay as they are
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=",
					"HOLDFAST_NATS=nats://127.0.0.1:1", "HOLDFAST_TIMEOUT=1s")
				var out []byte
				if out, err = cmd.CombinedOutput(); err != nil {
					err = fmt.Errorf("%s%w", out, err)
				}
			}
			if err != nil {
				t.Errorf("%s: no test runs this command: run it, or name it in notRun with the reason\n$ %s\n%v",
					p.file, s, err)
			}
		}
	}
	for name, commands := range notRun {
		for s := range commands {
			if !found[name+s] {
				t.Errorf("notRun names a command that is not on %s: %s", name, s)
			}
		}
	}
}
