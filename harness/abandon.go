package harness

// Abandon ends this process's part at once, as SIGKILL would: nothing is withdrawn or released, and the lease ends by
// itself when its TTL has passed. It is for those who play the death of a process, such as the replay of a recording; a
// process that leaves says [Harness.Close]. Contexts end with [ErrClosed]. It returns when nothing more is sent.
func (h *Harness) Abandon() {
	h.cancel(ErrClosed) // before anything else: what is said under it is not sent any more
	for _, s := range h.owned() {
		s.drop(ErrClosed)
	}
	h.running.Wait()
	h.mu.Lock()
	left := h.state == leaseDraining
	h.state = leaseDraining // Close has nothing left to do
	h.mu.Unlock()
	if !left {
		h.bus.Close()
	}
}
