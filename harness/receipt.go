package harness

import "errors"

// claimReceipts are the receipts in a claim after a lost lease for decisions that Asks wait for. Once that claim is
// stored, the log says that this process has the decisions, so an Ask must not give up before its outcome is known.
type claimReceipts struct {
	waiters []*waiter
	done    chan struct{} // closed when the outcome is known
	stored  bool          // set before done is closed
}

// known ends the wait for the outcome of the claim. The session is locked.
func (c *claimReceipts) known(stored bool) {
	if c == nil {
		return
	}
	if !stored {
		for _, w := range c.waiters {
			w.claim = nil
		}
	}
	c.stored = stored
	close(c.done)
}

// knowReceipts records whether the claim that was sent last, and has receipts for waiting Asks, is stored.
func (s *Session) knowReceipts(stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knowReceiptsLocked(stored)
}

func (s *Session) knowReceiptsLocked(stored bool) {
	s.receipts.known(stored)
	s.receipts = nil
}

// receiptDue reports whether a claim after a lost lease repeats the receipt for a prompt that was settled by a commit:
// an Ask has returned the decision, waits for it, or is about to return it. Such an Ask does not give up before the
// outcome of the claim is known.
func (s *Session) receiptDue(prompt string, settled uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, returned := s.returned[prompt]; returned {
		return true
	}
	w := s.asker(prompt)
	if w == nil {
		return false
	}
	if s.receipts == nil {
		s.receipts = &claimReceipts{done: make(chan struct{})}
	}
	w.claim, w.decided = s.receipts, settled
	s.receipts.waiters = append(s.receipts.waiters, w)
	return true
}

// unexpect ends the part of an Ask that returns an answer or an error. If a claim has the receipt for its prompt, the
// Ask returns the answer once that claim is stored: not one that asked another question under the id.
func (s *Session) unexpect(prompt string, w *waiter, a Answer, err error) (Answer, error) {
	for {
		s.mu.Lock()
		c := w.claim
		if err == nil || c == nil || s.ownership == apart || errors.Is(err, ErrNameTaken) {
			if w.asks--; w.asks == 0 {
				for _, by := range []map[string]*waiter{s.waiters, s.returning} {
					if by[prompt] == w {
						delete(by, prompt)
					}
				}
			}
			s.mu.Unlock()
			return a, err
		}
		s.mu.Unlock()
		<-c.done
		if !c.stored {
			continue
		}
		received, lost := s.received(prompt, w)
		if lost == nil {
			a, err = received, nil
			continue
		}
		s.mu.Lock()
		if w.claim == c {
			w.claim = nil
		}
		s.mu.Unlock()
	}
}

// received returns the decision for which a stored claim has the receipt. It waits until this process is known to own
// the session, or is known to have lost it.
func (s *Session) received(prompt string, w *waiter) (Answer, error) {
	s.mu.Lock()
	read, seq := w.seq != 0, w.decided
	s.mu.Unlock()
	if !read {
		return s.readAnswer(s.h.ctx, prompt, seq)
	}
	<-w.done
	if w.err == nil && !s.have(prompt, w.seq) {
		return Answer{}, errTakenBack
	}
	return w.answer, w.err
}
