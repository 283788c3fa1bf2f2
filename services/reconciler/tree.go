package reconciler

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// childrenMax is how many children, with theirs, a decision outside of a pass reads. Each child that settles is a
// reason to decide on its parent again: without a limit, one harness would take all places of the loop.
const childrenMax = 16

// errManyChildren means that a session is decided in a pass, which lists the children, one pass at a time.
var errManyChildren = errors.New("more children than one decision reads")

// errUnfencedChild means that a session is decided in a pass, which fences its children first: until then the process
// of a child, if it was only asleep, may still store another outcome than the one of the parent's call.
var errUnfencedChild = errors.New("a child of a dead owner is not fenced yet")

// tree decides on a session with the outcome of its children.
type tree struct {
	r        *Reconciler
	now      moment
	src      session.Source
	snapshot *snapshot // of a pass; nil: use the index of children
	read     int       // children, from the index
	dry      bool      // nothing is appended, so no child was fenced
	fences   bool      // of a child that was not listed only the name is needed, so it may be unreadable
}

// snapshot are the sessions with a parent or children that a pass has listed, in the state after its own appends.
type snapshot struct {
	mu       sync.Mutex
	states   map[events.Ref]*session.State
	children map[events.Ref][]events.Ref
}

func (k *snapshot) put(s *session.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.states[s.Ref()] = s
}

// renew replaces the state of a known session.
func (k *snapshot) renew(s *session.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := s.Ref(); k.states[r] != nil {
		k.states[r] = s
	}
}

func (k *snapshot) get(r events.Ref) *session.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.states[r]
}

func (f *tree) decide(ctx context.Context, s *session.State, owner Owner, depth int) (Decision, error) {
	in, err := f.input(ctx, s, owner, depth)
	if err != nil {
		return Decision{After: s}, err
	}
	return Decide(s, in, f.src)
}

// input returns what a session is decided on.
func (f *tree) input(ctx context.Context, s *session.State, owner Owner, depth int) (Input, error) {
	in := f.now.input()
	in.Owner = owner
	if len(s.Tools) == 0 || depth >= treeDepthMax || !leftCalls(s) && owner.Liveness != Dead {
		return in, nil
	}
	// a large tree takes seconds
	if err := ctx.Err(); err != nil {
		return in, err
	}
	children, err := f.children(ctx, s)
	if err != nil {
		return in, err
	}
	for i, c := range children {
		owner, err := f.r.checkOwner(ctx, c, f.now)
		if err != nil {
			return in, err
		}
		if !f.dry && Fence(c, Input{Owner: owner}) != nil {
			return in, errUnfencedChild
		}
		d, err := f.decide(ctx, c, owner, depth+1)
		if err != nil {
			return in, err
		}
		children[i] = d.After
	}
	in.Children = children
	return in, nil
}

// children returns the sessions that open calls of this one wait for, in their present state.
func (f *tree) children(ctx context.Context, s *session.State) ([]*session.State, error) {
	var refs []events.Ref
	if f.snapshot == nil {
		if f.read += f.r.children.count(s.Ref()); f.read > childrenMax {
			return nil, errManyChildren
		}
		refs = f.r.children.of(s)
	} else {
		refs = slices.Clone(f.snapshot.children[s.Ref()])
		for _, ref := range f.r.children.of(s) {
			// its document could not be read, or did not exist yet
			if f.snapshot.get(ref) == nil && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	var children []*session.State
	for _, ref := range refs {
		if f.r.children.circular(ref) {
			continue
		}
		var c *session.State
		if f.snapshot != nil {
			c = f.snapshot.get(ref)
		}
		if c == nil {
			var err error
			c, err = f.r.loop.Load(ctx, ref)
			if errors.Is(err, bus.ErrNotFound) {
				continue
			}
			if f.fences {
				c, err = f.r.children.named(s.Ref(), ref.Session), nil
			}
			if err != nil {
				return nil, err
			}
		}
		if s.Tools[c.ParentCall] != nil {
			children = append(children, c)
		}
	}
	return children, nil
}
