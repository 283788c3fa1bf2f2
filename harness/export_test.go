package harness

// Waiting is how many calls wait for their facts to be stored.
func Waiting(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// HandedOver is how many of these are under way.
func HandedOver(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight == nil {
		return 0
	}
	return len(s.flight.ops)
}

// Asking is how many Asks wait for the prompt.
func Asking(s *Session, prompt string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waiters[prompt]; w != nil {
		return w.asks
	}
	return 0
}
