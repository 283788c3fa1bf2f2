package events

import (
	"fmt"
	"strings"
)

const asidePrefix = "aside."

// AsideKey returns the key, in the state bucket, of the ledger's note that a session was set aside.
func AsideKey(r Ref) string { return asidePrefix + r.tokens() }

// AsideKeys returns the filter for the notes of all sessions that were set aside.
func AsideKeys() string { return asidePrefix + ">" }

// ParseAsideKey returns the session that a note is about.
func ParseAsideKey(key string) (Ref, error) {
	rest, ok := strings.CutPrefix(key, asidePrefix)
	h, s, two := strings.Cut(rest, ".")
	if !ok || !two {
		return Ref{}, fmt.Errorf("%w: not the key of a session set aside: %.100q", ErrMalformed, key)
	}
	return parseRef(h, s)
}
