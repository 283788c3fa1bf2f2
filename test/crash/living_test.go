package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// strikeSlack is how much later than its writer's death the broker may stamp a commit.
const strikeSlack = time.Second

// readLost reads in the harnesses' logs which incarnations lost their lease while they lived: the machine was too busy
// to renew it, or the broker was away.
func readLost(dir string) (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	lost := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for lines.Scan() {
			// of [log/slog]
			var line struct{ Incarnation, Msg string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "lease lost" {
				lost[line.Incarnation] = true
			}
		}
	}
	return lost, nil
}

// checkLiving: no living process is called dead (N). A process counts as living if it has not been struck since its
// last write, has not lost its lease, and was not replaced. In a session without an owner only its held calls are
// recorded.
func (p *picture) checkLiving(r events.Ref) {
	var wrote time.Time
	st := session.New(r)
	for i := range p.commits[r] {
		c := &p.commits[r][i]
		owned := st.Owned
		st.Fold(c)
		if c.Writer == events.WriterHarness {
			wrote = c.At
		}
		for _, e := range c.Events {
			f, ok := e.Fact.(events.SessionOrphaned)
			if !ok || !owned || c.Writer != events.WriterReconciler || p.lost[f.Incarnation] || f.SupersededBy != "" {
				continue
			}
			if !slices.ContainsFunc(p.struck[r.Harness], func(at time.Time) bool {
				return at.After(wrote.Add(-strikeSlack)) && at.Before(c.At)
			}) {
				p.fail("N", r, "%d at %s: %s was called dead (%s), and it lives: it wrote at %s, "+
					"its harness was struck at %s", c.Seq, c.At.Format(time.StampMilli), f.Incarnation, f.Detail,
					wrote.Format(time.StampMilli), p.struck[r.Harness])
			}
		}
	}
}
