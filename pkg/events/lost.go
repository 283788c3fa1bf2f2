package events

import (
	"fmt"
	"strings"
)

// LostKey returns the key of the note that the log has lost commits of a session. The ledger writes it into the state
// bucket, with the document from before the loss.
func LostKey(r Ref) string { return "lost." + r.tokens() }

// LostKeys returns the filter for the notes of one harness, or of all ("").
func LostKeys(harness string) string {
	if harness == "" {
		return "lost.>"
	}
	return "lost." + tok(harness) + ".*"
}

// ParseLostKey parses the key of a note.
func ParseLostKey(key string) (Ref, error) {
	rest, ok := strings.CutPrefix(key, "lost.")
	h, s, two := strings.Cut(rest, ".")
	if !ok || !two {
		return Ref{}, fmt.Errorf("%w: not the key of a note of a loss: %.100q", ErrMalformed, key)
	}
	return parseRef(h, s)
}

// ParseViewKey returns the session of an entry of a view, of the people's view or of the harness's.
func ParseViewKey(key string) (Ref, error) {
	parts := strings.Split(key, ".")
	switch {
	case len(parts) == 5 && parts[0] == "blocker":
		return parseRef(parts[1], parts[3])
	case len(parts) == 3 && parts[0] == "work":
		return parseRef(parts[1], parts[2])
	}
	return Ref{}, fmt.Errorf("%w: not the key of an entry of a view: %.100q", ErrMalformed, key)
}
