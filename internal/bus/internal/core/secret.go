package core

import "crypto/rand"

// NewSecret returns a new token of 130 random bits, for each name on the wire that another client must not guess: reply
// subjects, consumers, batches, leases and instances. The tokens of the nuid package are unique and can be computed:
// one of them and the next give all that follow in the same process.
func NewSecret() string { return rand.Text() }
