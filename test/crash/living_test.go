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

// strikeSlack is by how much the broker's stamp of a commit may be later than the death of its writer.
const strikeSlack = time.Second

// readLost reads in the harnesses' logs which incarnations lost their lease while they lived: on a machine that is too
// busy to renew it, or while the broker was away.
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
			var line struct{ Reason, Message string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "lease lost" {
				lost[line.Reason] = true
			}
		}
	}
	return lost, nil
}

// checkLiving: nobody is called dead who lives: who was neither struck since he last wrote, nor
// lost his lease, nor was replaced (N). Of a session that nobody owns only its holds are said.
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
			if !slices.ContainsFunc(p.struck[r.Harness], func(at time.Time) bool { return at.After(wrote.Add(-strikeSlack)) && at.Before(c.At) }) {
				p.fail("N", r, "%d: %s was called dead, and it lives: it wrote at %s, nobody has struck it since", c.Seq, f.Incarnation, wrote.Format(time.StampMilli))
			}
		}
	}
}
