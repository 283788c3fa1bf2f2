package reconciler

import (
	"context"
	"maps"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// childIndex is the index of children by parent. It is a cache of documents: complete in the active replica only. Each
// walk over all documents notes what it finds; entries that two walks in a row have not found are dropped.
type childIndex struct {
	mu       sync.Mutex
	walk     uint64                               // that has begun last
	children map[events.Ref]map[string]childEntry // by parent and child
	parents  map[events.Ref]events.Ref
	waiting  map[events.Ref]uint64 // parents with calls that were left behind: the last walk that found them
	complete bool
}

// childEntry is one child.
type childEntry struct {
	call string // the parent's
	walk uint64 // the walk in which it was last noted
}

func newChildIndex() *childIndex {
	return &childIndex{children: map[events.Ref]map[string]childEntry{}, parents: map[events.Ref]events.Ref{},
		waiting: map[events.Ref]uint64{}}
}

// begin starts a walk.
func (x *childIndex) begin() (walk uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.walk++
	return x.walk
}

// forget drops entries that neither this walk, which has read all documents, nor the one before has found.
func (x *childIndex) forget(walk uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for parent, kids := range x.children {
		for child, c := range kids {
			if c.walk+1 < walk {
				delete(kids, child)
				delete(x.parents, events.Ref{Harness: parent.Harness, Session: child})
			}
		}
		if len(kids) == 0 {
			delete(x.children, parent)
		}
	}
	maps.DeleteFunc(x.waiting, func(_ events.Ref, found uint64) bool { return found+1 < walk })
}

// record records the parent of a session.
func (x *childIndex) record(s *session.State) { x.add(s.Ref(), s.Parent, s.ParentCall) }

func (x *childIndex) add(child events.Ref, parent, call string) {
	if parent == "" || call == "" || parent == child.Session {
		return
	}
	of := events.Ref{Harness: child.Harness, Session: parent}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.children[of] == nil {
		x.children[of] = map[string]childEntry{}
	}
	x.children[of][child.Session] = childEntry{call, x.walk}
	x.parents[child] = of
}

// circular reports whether a session is its own ancestor. No parent waits for such a child: its parents would wait for
// each other.
func (x *childIndex) circular(r events.Ref) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.parents[r]
	for range treeDepthMax {
		if !ok || at == r {
			break
		}
		at, ok = x.parents[at]
	}
	return ok && at == r
}

// of returns the children that this session's open calls wait for.
func (x *childIndex) of(s *session.State) []events.Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	var refs []events.Ref
	for child, c := range x.children[s.Ref()] {
		if s.Tools[c.call] != nil {
			refs = append(refs, events.Ref{Harness: s.Harness, Session: child})
		}
	}
	return refs
}

// named returns a child with all that the index knows of it: its name, and the call that waits for it.
func (x *childIndex) named(parent events.Ref, child string) *session.State {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := session.New(events.Ref{Harness: parent.Harness, Session: child})
	s.Parent, s.ParentCall = parent.Session, x.children[parent][child].call
	return s
}

// count returns how many children a session has, also of calls that have ended.
func (x *childIndex) count(parent events.Ref) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.children[parent])
}

func (x *childIndex) awaits(r events.Ref, waits bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if waits {
		x.waiting[r] = x.walk
	} else {
		delete(x.waiting, r)
	}
}

func (x *childIndex) isAwaiting(r events.Ref) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, waits := x.waiting[r]
	return waits
}

func (x *childIndex) whole() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.complete
}

func (x *childIndex) setWhole(whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complete = whole
}

// learnChildren reads the parent of each session: this process has become the active one, and from now on sees every
// changed document, until ctx ends.
func (r *Reconciler) learnChildren(ctx context.Context) error {
	var docs session.Reader
	err := r.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		ref, err := events.ParseSessionKey(e.Key)
		if err != nil {
			// not a session
			return nil
		}
		// A document that cannot be read is reported by the decider that decodes it.
		if h, err := docs.Head(e.Value); err == nil {
			r.children.add(ref, h.Parent, h.ParentCall)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.children.setWhole(true)
	context.AfterFunc(ctx, func() { r.children.setWhole(false) })
	r.loop.WalkSoon()
	return nil
}

// notifyParent schedules a decision about a parent when its child has settled.
func (r *Reconciler) notifyParent(ctx context.Context, child *session.State) {
	parent := events.Ref{Harness: child.Harness, Session: child.Parent}
	if child.Parent == "" || child.Parent == child.Session || Unsettled(child) || !r.children.isAwaiting(parent) {
		return
	}
	if r.children.count(parent) > childrenMax {
		r.passSoon(parent.Harness)
		return
	}
	r.loop.Check(ctx, parent)
}
