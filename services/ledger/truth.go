package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// logged is one session folded from its first commit in the log.
type logged struct {
	state   *session.State
	commits []events.Commit
}

// logged reads and folds a session's log, from the leader.
func (l *Ledger) logged(ctx context.Context, r events.Ref) (logged, error) {
	commits, err := l.bus.Log.Read(ctx, r, 0)
	if err != nil {
		return logged{}, fmt.Errorf("read %s: %w", r, err)
	}
	st := session.New(r)
	for i := range commits {
		st.Fold(&commits[i])
	}
	return logged{st, commits}, nil
}

// hole returns a commit that a later one names as its predecessor and that the log lacks, 0 for none. A session whose
// first commit names a predecessor was purged, or has lost its beginning: only its document can tell.
func (g *logged) hole() uint64 {
	for i := 1; i < len(g.commits); i++ {
		if c := &g.commits[i]; c.Guarded && c.Guard > g.commits[i-1].Seq {
			return c.Guard
		}
	}
	return 0
}

// errLost is wrapped by every [loss].
var errLost = errors.New("the log has lost commits")

// loss is what a document has folded and the log lacks.
type loss struct {
	ref     events.Ref
	known   uint64 // the last commit that the document has folded
	last    uint64 // the session's last commit in the log, 0 for none
	missing uint64 // a commit that is missing before the last one, 0 for none
}

// Error implements error.
func (x *loss) Error() string {
	if x.missing > 0 {
		return fmt.Sprintf("%v: %s: commit %d is missing", errLost, x.ref, x.missing)
	}
	return fmt.Sprintf("%v: %s: its document has folded commit %d, the log ends with %d", errLost, x.ref, x.known,
		x.last)
}

// Unwrap makes it an [errLost].
func (*loss) Unwrap() error { return errLost }

// shorter reports whether the log has the beginning of the session, without a hole: then the document can be rebuilt
// from it, and the session can continue from there.
func (x *loss) shorter() bool { return x.missing == 0 && x.last > 0 }

// lost compares a document with the log. It returns nil if the log has all that the document has folded; the log may
// have more. A document that cannot be read has folded nothing.
func (g *logged) lost(doc *session.State) *loss {
	if doc == nil || doc.Seq == 0 {
		return nil
	}
	x := &loss{ref: doc.Ref(), known: doc.Seq, last: g.state.Seq, missing: g.hole()}
	beheaded := len(g.commits) > 0 && g.commits[0].Guarded && g.commits[0].Guard > 0 && doc.Closed == nil
	switch {
	case x.missing > 0:
		return x
	case beheaded:
		x.missing = g.commits[0].Guard
		return x
	case doc.Closed != nil && len(g.commits) > 0 && g.commits[0].Seq >= doc.Seq:
		// purged up to its tombstone
		return nil
	case !slices.ContainsFunc(g.commits, func(c events.Commit) bool { return c.Seq == doc.Seq }):
		return x
	}
	return nil
}

// isTombstoneOf reports whether these commits are what retention leaves of a session.
func isTombstoneOf(commits []events.Commit) bool {
	return len(commits) == 1 && commits[0].Guarded && commits[0].Guard > 0
}

// equal reports whether two states are the same document.
func equal(a, b *session.State) bool {
	x, errX := a.Encode()
	y, errY := b.Encode()
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// storedDocument returns a stored document; nil for none, and for one that is damaged or another session's.
func storedDocument(r events.Ref, e kv.Entry) *session.State {
	st, err := session.Decode(e.Value)
	if err != nil || st.Ref() != r {
		return nil
	}
	return st
}
