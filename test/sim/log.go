package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// journal is the log: commits in order, and for each session where its own are.
type journal struct {
	commits   []events.Commit // seq is the index + 1
	bySession map[events.Ref][]int
	sessions  []events.Ref // in order of appearance
	bug       Bug
}

func newJournal() *journal { return &journal{bySession: map[events.Ref][]int{}} }

// last is the sequence of a session's last commit, 0 for none.
func (j *journal) last(r events.Ref) uint64 {
	if at := j.bySession[r]; len(at) > 0 {
		return j.commits[at[len(at)-1]].Seq
	}
	return 0
}

// append stores events that travelled as bytes. It refuses when the session moved on, unless the writer gave no guard.
func (j *journal) append(r events.Ref, w events.Writer, after uint64, at time.Time, evs []events.Event,
	unguarded bool) (uint64, bool) {
	if j.last(r) != after && !unguarded {
		return 0, false
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		// a mistake in the simulation itself
		panic(fmt.Sprintf("sim: a writer wrote what cannot be decoded: %v", err))
	}
	return j.appendRaw(r, w, after, at, body), true
}

// appendRaw stores bytes of any kind.
func (j *journal) appendRaw(r events.Ref, w events.Writer, after uint64, at time.Time, body []byte) uint64 {
	c := events.Commit{Ref: r, Writer: w, Seq: uint64(len(j.commits)) + 1, Guard: after, Guarded: true, At: at}
	c.Events, c.Err = events.DecodeBatch(r, body)
	if len(j.bySession[r]) == 0 {
		j.sessions = append(j.sessions, r)
	}
	j.bySession[r] = append(j.bySession[r], len(j.commits))
	j.commits = append(j.commits, c)
	return c.Seq
}

// foldOn folds what a state has not seen of its session.
func (j *journal) foldOn(st *session.State) {
	at := j.bySession[st.Ref()]
	i := len(at)
	for i > 0 && j.commits[at[i-1]].Seq > st.Seq {
		i--
	}
	for _, n := range at[i:] {
		j.bug.Fold(st, &j.commits[n])
	}
}

// source finds commits by sequence.
func (j *journal) source(seq uint64) (*events.Commit, error) {
	if seq == 0 || seq > uint64(len(j.commits)) {
		return nil, fmt.Errorf("sim: %w: %d", session.ErrNoCommit, seq)
	}
	return &j.commits[seq-1], nil
}

// of is a session's log up to a place.
func (j *journal) of(r events.Ref, upTo uint64) []events.Commit {
	var cs []events.Commit
	for _, i := range j.bySession[r] {
		if j.commits[i].Seq <= upTo {
			cs = append(cs, j.commits[i])
		}
	}
	return cs
}

// logTextMax is how many commits of a log are printed.
const logTextMax = 24

// logText is the end of a log, for people.
func logText(cs []events.Commit) string {
	var text strings.Builder
	for _, c := range cs[max(0, len(cs)-logTextMax):] {
		fmt.Fprintf(&text, "\n%6d %s %s %s", c.Seq, c.At.Format("15:04:05.000"), c.Ref, c.Writer)
		for _, e := range c.Events {
			data, err := json.Marshal(e.Fact)
			if err != nil {
				data = []byte(err.Error())
			}
			fmt.Fprintf(&text, " · %s@%d %s", e.Kind, e.Epoch, data)
		}
	}
	return text.String()
}

// doc is a stored document.
type doc struct {
	bytes       []byte
	rev         uint64
	parent      string
	incarnation string
	owned       bool
	asks        bool // a prompt waits for a person
	rare        bool // it waits in a way that passes soon, see [rare]
}

func (d *doc) state() *session.State {
	st, err := session.Decode(d.bytes)
	if err != nil {
		panic(fmt.Sprintf("sim: a document that cannot be read was stored: %v", err))
	}
	return st
}

// view is a stored entry of a view.
type view struct {
	bytes string
	ref   events.Ref
}
