package ledger

import "sync/atomic"

// counts are a ledger's counters since its start.
type counts struct {
	batches, failed, takeovers, commits, documents, facts, parked, parkedLate, parkFailed, mended, aside,
	back atomic.Uint64
}

// Counts returns the ledger's counters by name.
func (l *Ledger) Counts() map[string]uint64 {
	n := &l.fold.count
	return map[string]uint64{
		"batches": n.batches.Load(), "batches_failed": n.failed.Load(), "takeovers": n.takeovers.Load(),
		"commits":   n.commits.Load(),
		"documents": n.documents.Load(), "facts_fed": n.facts.Load(), "parked": n.parked.Load(),
		"parked_late": n.parkedLate.Load(), "park_failed": n.parkFailed.Load(),
		"set_aside": n.aside.Load(), "set_aside_back": n.back.Load(),
		"documents_mended": n.mended.Load(),
		"clock_steps":      uint64(l.bus.Clock.StepsNoticed()),
	}
}

// stored counts a batch after everything of it is stored.
func (n *counts) stored(commits int, ts []*touched, strays int) {
	n.batches.Add(1)
	n.commits.Add(uint64(commits))
	n.parked.Add(uint64(strays))
	for _, t := range ts {
		if t.changed {
			n.documents.Add(1)
		}
		for _, x := range t.feed {
			n.facts.Add(uint64(len(x.Events)))
		}
		n.parked.Add(uint64(len(t.parked)))
	}
}
