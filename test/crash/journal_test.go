package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

const journalMode = 0o600

// kindOwned stands for session.opened and session.claimed.
const kindOwned = "owned"

// note is one line of a journal: an answer that a client received, written at once.
type note struct {
	events.Ref
	By   string `json:"by"`             // who received it
	Kind string `json:"kind,omitempty"` // of the fact that was acknowledged
	ID   string `json:"id,omitempty"`   // its subject; the incarnation for kindOwned
	Seq  uint64 `json:"seq,omitempty"`  // place in the log, if the answer had one

	Prompt   string `json:"prompt,omitempty"` // that the answer is about:
	Status   string `json:"status,omitempty"` // how it was settled
	Text     string `json:"text,omitempty"`   // the decision's text
	Received bool   `json:"heard,omitempty"`  // an agent received it

	// Owner is the incarnation to which Ask returned the prompt's outcome, and At is the instant.
	Owner string    `json:"owner,omitempty"`
	At    time.Time `json:"at,omitzero"`

	Wrong string `json:"wrong,omitempty"` // what should not have happened
}

// journal is a file that outlives its writer: a written line survives SIGKILL.
type journal struct {
	by   string
	mu   sync.Mutex
	file *os.File
}

func openJournal(path, by string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, journalMode)
	return &journal{by: by, file: f}, err
}

// write writes a note with a single write.
func (j *journal) write(n note) {
	n.By = j.by
	line, err := json.Marshal(n)
	if err != nil {
		// texts and numbers always encode
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		// without a journal the test proves nothing
		panic(err)
	}
}

// readJournals reads all journals of a folder. It skips a last line that a kill cut off.
func readJournals(dir string) ([]note, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	var all []note
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := bytes.Split(text, []byte("\n"))
		for i, line := range lines[:len(lines)-1] {
			var n note
			if err := json.Unmarshal(line, &n); err != nil {
				return nil, fmt.Errorf("crash: %s:%d: %w", path, i+1, err)
			}
			all = append(all, n)
		}
	}
	return all, nil
}
