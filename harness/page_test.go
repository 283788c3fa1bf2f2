package harness_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// paintWall is the example with which the page of the package opens.
func paintWall(ctx context.Context, url string, questions []events.Question,
	paint func(ctx context.Context, colour string) error) error {
	h, err := harness.Connect(ctx, harness.Config{URL: url, ID: "painter"})
	if err != nil {
		return err
	}
	// continues what was cut off
	if _, err := h.Open(ctx, "wall", harness.OpenOptions{}); err != nil {
		return err
	}
	if err := h.Ready(ctx); err != nil {
		return err
	}
	err = h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, t *harness.Turn) error {
		answer, err := t.AskOnce(ctx, "colour", harness.Prompt{Questions: questions})
		if err != nil {
			// a failed turn is retried, or a person is asked to continue it
			return err
		}
		return paint(ctx, answer.Choice())
	}})
	return errors.Join(err, h.Close(context.WithoutCancel(ctx)))
}

// TestPageOfThePackage: the example on the page is one that works.
func TestPageOfThePackage(t *testing.T) {
	page, err := os.ReadFile("harness.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	for line := range strings.Lines(string(page)) {
		if text, ok := strings.CutPrefix(line, "//\t"); ok {
			shown += "\t" + text
		} else if shown != "" {
			break
		}
	}
	own, err := os.ReadFile("page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	body := regexp.MustCompile(`(?ms)^func paintWall\(.*?error\) error \{\n(.*?)^\}$`).FindSubmatch(own)
	if body == nil || shown != string(body[1]) {
		t.Errorf("the page shows\n%s\nand what is run is\n%s", shown, body[1])
	}

	ctx := t.Context()
	// the program ends before the person's request is acknowledged
	working, finished := context.WithCancel(ctx)
	defer finished()
	cell := startCell(ctx)
	defer cell.stop()
	r := events.Ref{Harness: "painter", Session: "wall"}
	painted := ""
	done := make(chan error, 1)
	go func() {
		done <- paintWall(working, cell.url, []events.Question{{ID: "colour", Question: "Which colour?", Custom: true}},
			func(_ context.Context, colour string) error {
				painted = colour
				finished()
				return nil
			})
	}()
	for !cell.state(ctx, r).Opened() {
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	cell.request(ctx, r, "turn-1")
	cell.person(ctx, r, "", "red")
	if err := <-done; err != nil || painted != "red" {
		t.Errorf("painted %q, %v", painted, err)
	}
}
