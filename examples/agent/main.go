// Agent is a small but complete agent harness. It talks to any endpoint that is compatible with OpenAI's chat
// completions. Holdfast keeps the state that has to survive a restart. Read it as the tutorial of package harness.
//
//	holdfast up                                              # in another terminal
//	go run ./examples/agent --script "Look around"           # without an account: a script is the model
//	OPENAI_API_KEY=… go run ./examples/agent --session demo "What is in this directory?"
//	holdfast watch demo                                      # its steps, its questions, its next retry
//
// It takes the connection flags of the program holdfast, such as -password-file and -tls-ca, and their variables.
//
// # Where the state is
//
//	conversation   on this machine's disk, one file per session (--dir): the messages for the model, entry by entry
//	turns          Holdfast requests them: new messages, retries, follow-ups of compactions. This program never
//	               retries by itself: it reports how a turn failed, and gets a request when it is time
//	questions      in Holdfast's log. The answer is the result of the question tool's call, so it may arrive while
//	               this program is not running. A permission belongs to the asking process, and expires with it
//	compaction     Holdfast decides when, from the reported usage; this program makes the summary
//
// Kill it at any point and start it again: interrupted calls get the result that the log has, or none, and are never
// repeated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// openAI is the default endpoint, which needs a key.
const openAI = "https://api.openai.com/v1"

// leaveMaxS is the time limit for a graceful end, in seconds.
const leaveMaxS = 10

// config has the values of the flags.
type config struct {
	nats, creds, prefix  string
	passwordFile, nkey   string
	tlsCA, tlsCert       string
	tlsKey               string
	harness, session     string
	endpoint, key, model string
	dir, root            string
	contextLimit         int64
	ttl                  time.Duration
	script               bool
	message              string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := program(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, printable(err.Error()))
		os.Exit(1)
	}
}

// program is main, in a form that a test can call.
func program(ctx context.Context, args []string, out, side io.Writer) error {
	cfg, err := flags(args, side)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return run(ctx, cfg, out)
}

func flags(args []string, side io.Writer) (config, error) {
	cfg := config{key: os.Getenv("OPENAI_API_KEY")}
	fs := flag.NewFlagSet("agent", flag.ContinueOnError)
	fs.SetOutput(side)
	fs.StringVar(&cfg.nats, "nats", "nats://127.0.0.1:4222", "the broker's address")
	fs.StringVar(&cfg.creds, "creds", "", "a credentials file for the broker")
	fs.StringVar(&cfg.passwordFile, "password-file", "", "a file with the password of the user in -nats")
	fs.StringVar(&cfg.nkey, "nkey", "", "a file with the seed of an nkey")
	fs.StringVar(&cfg.tlsCA, "tls-ca", "", "a file with the broker's authorities (default: the system's)")
	fs.StringVar(&cfg.tlsCert, "tls-cert", "", "a file with this client's certificate")
	fs.StringVar(&cfg.tlsKey, "tls-key", "", "the file with the key of -tls-cert")
	fs.StringVar(&cfg.prefix, "prefix", "hf", "the cell's prefix")
	fs.StringVar(&cfg.harness, "harness", "agent", "the harness id: this installation")
	fs.StringVar(&cfg.session, "session", "demo", "the session that is opened, and that the message goes to")
	fs.StringVar(&cfg.endpoint, "endpoint", openAI,
		"an endpoint that is compatible with OpenAI's; the key is taken from OPENAI_API_KEY")
	fs.BoolVar(&cfg.script, "script", false, "use a scripted model in this process: no account is needed")
	fs.StringVar(&cfg.model, "model", "gpt-4o-mini", "the model")
	fs.Int64Var(&cfg.contextLimit, "context-limit", 0,
		"how many tokens the model takes in; 0: unknown, then nothing is compacted before it overflows")
	fs.StringVar(&cfg.dir, "dir", ".agent", "where conversations are kept")
	fs.StringVar(&cfg.root, "root", ".", "the working directory of the tools")
	fs.DurationVar(&cfg.ttl, "ttl", 15*time.Second,
		"how long after a power failure it is noticed; a crash is noticed within 3 s")
	if err := errors.Join(fromEnvironment(fs), fs.Parse(args)); err != nil {
		return cfg, err
	}
	cfg.message = strings.Join(fs.Args(), " ")
	if cfg.key == "" && !cfg.script && cfg.endpoint == openAI {
		return cfg, errors.New("OPENAI_API_KEY is not set: set it, name another -endpoint, or try -script, which " +
			"needs no account")
	}
	if cfg.script {
		cfg.model = scriptedModel
	}
	return cfg, nil
}

// connectionFlags can also be set by variables, as those of the program holdfast: -tls-ca is HOLDFAST_TLS_CA.
var connectionFlags = []string{"nats", "creds", "password-file", "nkey", "tls-ca", "tls-cert", "tls-key", "prefix"}

// fromEnvironment sets the connection flags that the environment has. The command line takes precedence.
func fromEnvironment(fs *flag.FlagSet) error {
	for _, name := range connectionFlags {
		variable := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		value := os.Getenv(variable)
		if value == "" {
			continue
		}
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
	}
	return nil
}

// run works until ctx ends, then leaves gracefully.
func run(ctx context.Context, cfg config, out io.Writer) (err error) {
	if cfg.script {
		endpoint, stop, err := serveScript(ctx)
		if err != nil {
			return err
		}
		cfg.endpoint, cfg.script = endpoint, false
		return errors.Join(run(ctx, cfg, out), stop())
	}
	h, err := harness.Connect(ctx, harness.Config{ID: cfg.harness, URL: cfg.nats, Creds: cfg.creds,
		PasswordFile: cfg.passwordFile, NKey: cfg.nkey, TLSCA: cfg.tlsCA, TLSCert: cfg.tlsCert, TLSKey: cfg.tlsKey,
		Prefix: cfg.prefix, TTL: cfg.ttl})
	if err != nil {
		return err
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveMaxS*time.Second)
		defer cancel()
		err = errors.Join(err, h.Close(late))
	}()
	s, err := h.Open(ctx, cfg.session, harness.OpenOptions{Agent: "agent", Model: cfg.model,
		ContextLimit: cfg.contextLimit})
	if err != nil {
		return err
	}
	if err := h.Ready(ctx); err != nil {
		return err
	}
	if q := question(s.State()); q != "" && cfg.message != "" {
		// A message of a person takes the place of an answer.
		if _, err := fmt.Fprintf(out, "! a question of an earlier process waits, so the message is not sent\n"+
			"  holdfast answer %s/%s %s ANSWER\n", cfg.harness, cfg.session, q); err != nil {
			return err
		}
	} else if cfg.message != "" {
		if _, err := h.Send(ctx, harness.Message{Session: cfg.session, Content: cfg.message,
			By: os.Getenv("USER")}); err != nil {
			return err
		}
	}
	a := &agent{cfg: cfg, model: &client{endpoint: cfg.endpoint, key: cfg.key, http: http.DefaultClient}, out: out,
		allowed: map[string]bool{}}
	return h.Work(ctx, a.worker())
}

// question returns the question of an earlier process that waits for its answer; "" without one.
func question(st *session.State) string {
	for _, id := range st.PendingPrompts() {
		if p := st.Prompts[id]; p.Kind == events.PromptQuestion && p.OnOwnerLoss == events.LossKeep {
			return id
		}
	}
	return ""
}
