package opencode

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/harness"
)

// Limits of a comparison.
const (
	compareMax  = 5 * time.Second  // for one session, while the events of all others wait
	comeBackMax = 30 * time.Second // between two attempts to compare the sessions that are left
)

// errMoves says that a session changed each time that it was read.
var errMoves = errors.New("the session changed each time that it was read")

// owe records that a session is to be compared. taken: recovery took it from this process.
func (l *process) owe(id string, taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed[id] = l.owed[id] || taken
	select {
	case l.owing <- struct{}{}:
	default:
	}
}

// owes returns the sessions that are to be compared, and forgets them.
func (l *process) owes() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.owed
	l.owed = map[string]bool{}
	return all
}

// put puts back a session that could not be compared, without a signal.
func (l *process) put(id string, taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed[id] = l.owed[id] || taken
}

// compareAll reads what the server says about each session that may have changed unseen, and stores the difference. A
// session that cannot be read is left for [follower.catchUp].
func (r *follower) compareAll(ctx context.Context) error {
	owed := r.process.owes()
	r.mu.Lock()
	defer r.mu.Unlock()
	// ids, and directories
	ids := map[string]string{}
	directories := map[string]bool{"": true}
	for _, id := range slices.Concat(r.translator.Active(), slices.Collect(maps.Keys(owed))) {
		ids[id] = r.translator.directory(id)
		directories[ids[id]] = true
	}
	for dir := range directories {
		live, err := r.activity(ctx, dir)
		if err != nil && r.lost(ctx) {
			r.putAll(owed)
			return err
		}
		if err != nil {
			r.log.Warn("a directory cannot be read", "directory", dir, "err", err)
			continue
		}
		for _, id := range live.sessions() {
			if _, ok := ids[id]; !ok {
				ids[id] = dir
			}
		}
	}
	for id, dir := range ids {
		once, cancel := context.WithTimeout(ctx, compareMax)
		n, err := r.readOf(once, r.process, dir, id)
		cancel()
		switch {
		case err == nil:
			err = r.compare(ctx, id, owed[id], n)
		case refused(err):
			r.log.Warn("a session cannot be read", "session", id, "err", err)
			err = nil
		case !r.lost(ctx):
			r.log.Warn("a session cannot be read: trying again later", "session", id, "err", err)
			r.process.owe(id, owed[id])
			err = nil
		}
		if err != nil {
			r.putAll(owed)
			return err
		}
	}
	return r.store(ctx, r.translator.Flush())
}

func (r *follower) putAll(owed map[string]bool) {
	for id, taken := range owed {
		r.process.put(id, taken)
	}
}

// lost reports whether the server does not answer any request, so that the trouble is not that of one session.
func (r *follower) lost(ctx context.Context) bool {
	once, cancel := context.WithTimeout(ctx, compareMax)
	defer cancel()
	_, err := r.marks(once)
	return err != nil
}

// catchUp compares the sessions that are left, until ctx ends: those that could not be read, and those that recovery
// took while this process slept. Each attempt is about one session, and no other waits for its end.
func (r *follower) catchUp(ctx context.Context, l *process) {
	pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(comeBackMax), backoff.WithMaxElapsedTime(0))
	var again <-chan time.Time
	for {
		select {
		case <-l.owing:
		case <-again:
		case <-ctx.Done():
			return
		}
		again = nil
		for id, taken := range l.owes() {
			err := r.catchUpOne(ctx, l, id, taken)
			switch {
			case err == nil:
				r.log.Info("a session is compared", "session", id)
				continue
			case refused(err):
				r.log.Warn("a session cannot be read", "session", id, "err", err)
				continue
			case ctx.Err() == nil:
				r.log.Warn("a session is not compared: trying again", "session", id, "err", err)
			}
			l.put(id, taken)
			if again == nil {
				again = time.After(pace.NextBackOff())
			}
		}
		if again == nil {
			pace.Reset()
		}
	}
}

// catchUpOne compares one session. A reading counts only if no event about the session came meanwhile.
func (r *follower) catchUpOne(ctx context.Context, l *process, id string, taken bool) error {
	for range readsMax {
		r.mu.Lock()
		seen, dir := r.translator.touched(id), r.translator.directory(id)
		r.mu.Unlock()
		n, err := r.readOf(ctx, l, dir, id)
		if err != nil {
			return err
		}
		r.mu.Lock()
		if r.translator.touched(id) != seen {
			r.mu.Unlock()
			continue
		}
		err = r.compare(ctx, id, taken, n)
		r.mu.Unlock()
		return err
	}
	return errMoves
}

// compare stores what has happened to a session unseen. A session that recovery took is begun again first, as by a
// bridge that returns: its run continues as a turn of its own, and its prompts are awaited again. The caller has the
// lock. A session whose turn may not have been sent is left to the handler of that turn.
func (r *follower) compare(ctx context.Context, id string, taken bool, n *Snapshot) error {
	r.process.mu.Lock()
	if taken {
		delete(r.process.undecided, id)
	}
	undecided := r.process.undecided[id] != ""
	r.process.mu.Unlock()
	if undecided {
		return nil
	}
	if taken {
		if ours, err := r.again(ctx, id); err != nil || !ours {
			return err
		}
	}
	err := r.store(ctx, append(r.translator.Compare(time.Now().UTC(), id, n), r.translator.Flush()...))
	if err != nil {
		return err
	}
	return r.driveRetries(ctx)
}

// again claims a session that recovery took from this process. It is not ours if it is closed, if another process has
// it, or if this process already runs a turn in it that was requested meanwhile: the handler of that turn looks at the
// session by itself. The caller has the lock.
func (r *follower) again(ctx context.Context, id string) (ours bool, err error) {
	l := r.process
	l.drop(id)
	s, err := l.h.Claim(ctx, id)
	switch {
	case err == nil:
	case errors.Is(err, harness.ErrNotFound), errors.Is(err, harness.ErrSessionClosed),
		errors.Is(err, harness.ErrOwned), errors.Is(err, harness.ErrFenced) && l.h.Context().Err() == nil:
		r.log.Warn("a session is not continued", "session", id, "err", err)
		return false, nil
	default:
		return false, err
	}
	l.keep(s)
	st := s.State()
	u := r.translator.session(id).turn
	l.mu.Lock()
	runs := st.Turn != nil && u != nil && u.id == st.Turn.ID && l.working[id] == ""
	if st.Turn != nil && !runs {
		l.mu.Unlock()
		return false, nil
	}
	delete(l.turns, id)
	for prompt, a := range l.asked {
		if a.session == id && !a.decided {
			a.cancel()
			delete(l.asked, prompt)
		}
	}
	l.mu.Unlock()
	// recovery took the session, and has not closed anything in it
	if runs {
		if err := r.adoptOpen(ctx, s, false, true); err != nil {
			return false, err
		}
		r.watchStop(s)
		return true, nil
	}
	r.translator.taken(id, st)
	r.log.Info("a session is begun again: recovery had taken it", "session", id)
	return true, nil
}
