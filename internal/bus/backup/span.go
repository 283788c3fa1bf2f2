package backup

import "sort"

// span is a run of places of a stream without a gap.
type span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// spans are places of a stream, in order.
type spans []span

// add adds a place behind all others.
func (s *spans) add(seq uint64) {
	if n := len(*s); n > 0 && (*s)[n-1].To+1 == seq {
		(*s)[n-1].To = seq
		return
	}
	*s = append(*s, span{seq, seq})
}

// has reports whether a place is one of these.
func (s spans) has(seq uint64) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].To >= seq })
	return i < len(s) && s[i].From <= seq
}

// without returns the places that the other ones do not have.
func (s spans) without(other spans) spans {
	var left spans
	for _, x := range s {
		for seq := x.From; seq <= x.To; seq++ {
			if !other.has(seq) {
				left.add(seq)
			}
		}
	}
	return left
}

// count returns the number of places.
func (s spans) count() int {
	n := 0
	for _, x := range s {
		n += int(x.To - x.From + 1)
	}
	return n
}
