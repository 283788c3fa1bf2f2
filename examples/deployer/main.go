// Command deployer is an agent that survives SIGKILL at every step: it asks where to deploy, asks for permission, and
// runs a command. Each of these happens once for a message.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

func deploy(ctx context.Context, turn *harness.Turn) error {
	where, err := turn.AskOnce(ctx, "which-env", harness.Prompt{Questions: []events.Question{{ID: "env",
		Question: "Deploy where?", Options: []events.Option{{Label: "staging"}, {Label: "production"}}}}})
	env := where.Choice()
	if err != nil || env == "" {
		return err
	}
	may, err := turn.AskOnce(ctx, "may-deploy", harness.Prompt{Kind: events.PromptPermission,
		Title: "Run ./deploy.sh " + env})
	if err != nil || may.Status != session.Answered {
		return err
	}
	out, err := harness.Step(ctx, turn, "deploy", func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, "./deploy.sh", env).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return string(out), err
	})
	// A failure is tried once more. Killed while it ran: ask, and do not run it again.
	if errors.Is(err, harness.ErrOutcomeUnknown) {
		_, err = turn.AskOnce(ctx, "is-it-up", harness.Prompt{Questions: []events.Question{{ID: "up",
			Question: "./deploy.sh was cut off. Is " + env + " up?"}}})
	}
	if out != "" {
		log.Print(out)
	}
	return err
}

func main() {
	ctx := context.Background()
	h, err := harness.Connect(ctx, harness.Config{ID: "deployer", URL: os.Getenv("HOLDFAST_NATS")})
	fatal(err)
	_, err = h.Open(ctx, "shop", harness.OpenOptions{Title: "Deploy the shop"})
	fatal(err)
	fatal(h.Ready(ctx))
	fatal(h.Work(ctx, harness.Worker{Turn: deploy}))
}

func fatal(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
