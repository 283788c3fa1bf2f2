package explore

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// keyBytes is how much of a state's hash is kept.
const keyBytes = 16

// keyer writes a state down without what makes no difference: ids that are derived are numbered as they come, places in
// the log and incarnations by their order.
type keyer struct {
	buf   []byte
	names []string
	seqs  []uint64
}

// key is the same for states that behave the same.
func (s *state) key() [keyBytes]byte {
	k := &keyer{buf: make([]byte, 0, 512)}
	k.seqs = s.places()
	k.session(s.st)
	k.fates(s)
	k.processes(s)
	sum := sha256.Sum256(k.buf)
	return [keyBytes]byte(sum[:keyBytes])
}

func (k *keyer) byte(b byte)   { k.buf = append(k.buf, b) }
func (k *keyer) number(n int)  { k.buf = binary.AppendVarint(k.buf, int64(n)) }
func (k *keyer) text(t string) { k.number(len(t)); k.buf = append(k.buf, t...) }

func (k *keyer) flags(bs ...bool) {
	n := 0
	for _, b := range bs {
		n <<= 1
		if b {
			n |= 1
		}
	}
	k.number(n)
}

// id writes a name; one that was derived by its number.
func (k *keyer) id(id string) {
	if !strings.Contains(id, "-") {
		k.text(id)
		return
	}
	at := slices.Index(k.names, id)
	if at < 0 {
		at = len(k.names)
		k.names = append(k.names, id)
	}
	k.byte('#')
	k.number(at)
}

// place writes a place in the log by its order among all that matter.
func (k *keyer) place(seq uint64) {
	at, _ := slices.BinarySearch(k.seqs, seq)
	k.number(at)
}

// places are all that are written, in order.
func (s *state) places() []uint64 {
	st := s.st
	seqs := []uint64{0, st.HeldSeq, st.StoppedSeq}
	for _, p := range st.Prompts {
		seqs = append(seqs, p.SettledSeq)
	}
	for i := range st.Queue {
		seqs = append(seqs, st.Queue[i].Seq)
	}
	add := func(list []session.Carried) {
		for _, c := range list {
			seqs = append(seqs, c.Seq)
		}
	}
	if p := st.Pending.Turn; p != nil {
		seqs = append(seqs, p.Seq, p.Held)
		add(p.Prompts)
	}
	if t := st.Turn; t != nil {
		add(t.Prompts)
	}
	if p := st.Pending.Stop; p != nil {
		seqs = append(seqs, p.Seq)
	}
	if l := st.LastTurn; l != nil {
		seqs = append(seqs, l.Seq)
		add(l.Prompts)
	}
	if l := st.LastCompaction; l != nil {
		seqs = append(seqs, l.Seq)
	}
	seqs = append(seqs, s.law.Places()...)
	slices.Sort(seqs)
	return slices.Compact(seqs)
}

func (k *keyer) session(st *session.State) {
	k.text(string(st.Phase))
	k.flags(st.Owned, st.Exclusive, st.Closed != nil, st.SupersededBy != "", st.Policy.AutoRetry, st.Usage != nil)
	k.flags(st.UsageOver(0), st.Stalled())
	k.text(st.Left)
	k.number(st.Continuations.Count)
	k.place(st.HeldSeq)
	k.place(st.StoppedSeq)
	if t := st.Turn; t != nil {
		k.byte('T')
		k.id(t.ID)
		k.text(string(t.Cause))
		k.id(t.OfTurn)
		k.id(t.Message)
		k.flags(t.Synthetic, t.Epoch == st.Epoch, t.Compaction != "")
		k.carried(st.Epoch, t.Prompts)
	}
	if l := st.LastTurn; l != nil {
		k.byte('L')
		k.id(l.ID)
		k.text(l.Outcome)
		k.text(string(l.Cause))
		k.id(l.OfTurn)
		k.id(l.Message)
		k.text(l.Actor)
		k.place(l.Seq)
		k.flags(l.Synthetic, l.HadOutput)
		k.failure(l.Error)
		k.carried(st.Epoch, l.Prompts)
	}
	k.open(st)
	k.pending(st)
	r := &st.Retry
	k.text(r.State)
	k.id(r.Turn)
	k.text(r.Reason)
	k.failure(r.Error)
	for _, n := range []int{r.Attempt, r.SameFailures, r.Resumes, r.Overflows} {
		k.number(n)
	}
	k.compaction(st)
	k.endings(st)
}

func (k *keyer) prompts(ids []string) {
	k.number(len(ids))
	for _, id := range ids {
		k.id(id)
	}
}

// carried writes what a turn carries, with the places of the decisions: they are compared with that of a stop.
func (k *keyer) carried(epoch uint64, list []session.Carried) {
	k.number(len(list))
	for _, c := range list {
		k.id(c.Prompt)
		k.place(c.Seq)
		k.flags(c.Had == epoch, c.Quiet)
	}
}

func (k *keyer) failure(f *events.Failure) {
	if f == nil {
		k.byte('-')
		return
	}
	k.text(f.Kind)
}

// open writes calls, prompts and queue.
func (k *keyer) open(st *session.State) {
	for _, id := range sortedKeys(st.Tools) {
		c := st.Tools[id]
		k.byte('C')
		k.id(id)
		k.id(c.Turn)
		k.flags(c.Epoch == st.Epoch)
	}
	for _, id := range sortedKeys(st.Prompts) {
		p := st.Prompts[id]
		k.byte('P')
		k.id(id)
		k.id(p.Turn)
		k.id(p.Call)
		k.text(string(p.Status))
		k.flags(p.Epoch == st.Epoch, p.Unattended)
		k.place(p.SettledSeq)
	}
	for i := range st.Queue {
		k.byte('Q')
		k.id(st.Queue[i].ID)
		k.place(st.Queue[i].Seq)
	}
}

func (k *keyer) pending(st *session.State) {
	if p := st.Pending.Turn; p != nil {
		k.byte('t')
		k.id(p.ID)
		k.text(string(p.Cause))
		k.id(p.OfTurn)
		k.id(p.Message)
		k.id(p.Compaction)
		k.place(p.Seq)
		k.place(p.Held)
		k.flags(p.By != "")
		k.number(p.Attempt)
		k.carried(st.Epoch, p.Prompts)
	}
	if p := st.Pending.Stop; p != nil {
		k.byte('s')
		k.id(p.Turn)
		k.text(p.Actor)
		k.place(p.Seq)
	}
	if p := st.Pending.Compaction; p != nil {
		k.byte('c')
	}
}

func (k *keyer) compaction(st *session.State) {
	if c := st.Compaction; c != nil {
		k.byte('O')
		k.text(c.State)
		k.id(c.ID)
		k.text(c.Reason)
		k.text(c.FollowUp)
		k.id(c.Message)
		k.id(c.Turn)
		k.flags(c.Epoch == st.Epoch)
	}
	if l := st.LastCompaction; l != nil {
		k.byte('l')
		k.id(l.ID)
		k.text(l.Outcome)
		k.text(l.FollowUp)
		k.id(l.Turn)
		k.id(l.Message)
		k.place(l.Seq)
		k.flags(l.Progress)
		k.number(l.Failures)
		k.failure(l.Error)
	}
}

// endings writes what has ended of what may be named again. A turn that is not open has ended.
func (k *keyer) endings(st *session.State) {
	var ended []string
	for i := range st.Recent {
		if e := &st.Recent[i]; !strings.Contains(e.ID, "-") && e.Entity != session.EntityTurn {
			ended = append(ended, e.Entity+" "+e.ID+" "+e.Outcome)
		}
	}
	slices.Sort(ended)
	for _, e := range ended {
		k.text(e)
	}
}

func (k *keyer) fates(s *state) {
	for i, f := range s.fates {
		k.byte(byte(f))
		k.flags(s.awaits(i))
	}
	s.law.Each(func(prompt string, at uint64) {
		k.byte('D')
		k.id(prompt)
		k.place(at)
	})
	for _, id := range s.law.Done() {
		k.byte('d')
		k.id(id)
	}
	for _, at := range s.law.Acts() {
		k.place(at)
	}
	k.place(s.law.LastStop())
	k.number(s.law.Continued())
	k.flags(slices.Concat(s.reworded[:], []bool{s.full})...)
	k.prompts(s.law.Unattended())
	own, received, turns := s.law.Had(s.st.Epoch)
	for _, ids := range [][]string{own, received, turns} {
		k.prompts(ids)
	}
	if t := s.st.Turn; t != nil {
		k.prompts(s.law.Named(t.ID))
	}
	k.buf = fmt.Append(k.buf, s.spent)
	l := s.st.LastCompaction
	timed := s.st.Retry.State == session.RetryScheduled || l != nil && l.Outcome == session.OutcomeFailed
	k.flags(timed && !s.waitsUntil().IsZero())
}

// processes writes both, in whatever order is the smaller: one is as good as the other.
func (k *keyer) processes(s *state) {
	incs := []uint64{s.procs[0].inc, s.procs[1].inc}
	owner := s.ownerInc()
	ranked := append(slices.Clone(incs), owner, s.supersededBy())
	for i := range s.procs {
		ranked = append(ranked, s.procs[i].knew)
	}
	for i := range s.leases {
		if s.matters(&s.leases[i]) {
			ranked = append(ranked, s.leases[i].inc)
		}
	}
	rank := slices.Compact(slices.Sorted(slices.Values(ranked)))
	order := func(inc uint64) int { at, _ := slices.BinarySearch(rank, inc); return at }
	var both [processes][]byte
	for i := range s.procs {
		p := &s.procs[i]
		own := &keyer{names: k.names, seqs: k.seqs}
		own.byte(byte(p.phase))
		own.flags(p.stopped, p.mine, p.held, p.compact, p.mine && p.epoch == s.st.Epoch)
		own.number(order(p.inc))
		own.id(p.turn)
		own.flags(slices.Concat(p.asking[:], p.todo[:], p.returned[:], p.receipt[:], p.late[:], p.unsaid[:])...)
		own.flags(append(p.appended[:], p.took)...)
		own.chosen(p.options)
		own.lease(s, p.inc)
		own.claim(s, i, order)
		both[i] = own.buf
	}
	slices.SortFunc(both[:], slices.Compare)
	for _, b := range both {
		k.buf = append(append(k.buf, '|'), b...)
	}
	k.byte('|')
	k.number(order(owner))
	k.number(order(s.supersededBy()))
	for i := range s.leases {
		if l := &s.leases[i]; s.matters(l) {
			k.number(order(l.inc))
			k.byte(byte(l.health))
			k.flags(l.ready, l.claimed, l.late)
		}
	}
	k.flags(s.drawn > max(incs[0], incs[1]))
}

// claim writes what a process needs to claim its session again, and what it has sent.
func (k *keyer) claim(s *state, i int, order func(uint64) int) {
	p := &s.procs[i]
	k.facts(p.rest)
	for _, c := range s.sent {
		if c.p == i && s.canArrive(c) {
			k.byte('S')
			k.number(order(c.inc))
			k.flags(slices.Contains(p.claims, c.inc), slices.Contains(p.sentAs, c.inc))
			k.facts(c.facts)
			k.lease(s, c.inc)
		}
	}
	k.flags(p.again)
	if !p.held && !p.stopped {
		return
	}
	st := s.st
	owner := s.ownerInc()
	k.flags(slices.Contains(p.sentAs, owner), slices.Contains(p.claims, owner), owner == p.knew,
		st.Epoch == p.epoch, st.Epoch > p.epoch)
	if t := st.Turn; t != nil {
		k.flags(t.Epoch >= p.epoch)
		for _, c := range t.Prompts {
			k.flags(c.Had >= p.epoch)
		}
	}
	for _, id := range sortedKeys(st.Tools) {
		k.flags(st.Tools[id].Epoch >= p.epoch)
	}
	for _, id := range sortedKeys(st.Prompts) {
		k.flags(st.Prompts[id].Epoch >= p.epoch)
	}
	if c := st.Compaction; c != nil {
		k.flags(c.Epoch >= p.epoch)
	}
}

// chosen writes the turn that Worker.Options is asked about, with the decisions that it brought then.
func (k *keyer) chosen(f *events.TurnStarted) {
	if f == nil {
		k.byte('-')
		return
	}
	k.id(f.Turn)
	k.id(f.Message)
	k.id(f.Prompt)
	k.prompts(f.Prompts)
}

func (k *keyer) facts(facts []events.Fact) {
	k.number(len(facts))
	for _, f := range facts {
		k.text(string(f.Kind()))
		if _, claims := f.(events.SessionClaimed); !claims {
			k.id(f.Subject())
		}
	}
}

func (k *keyer) lease(s *state, inc uint64) {
	if l := s.lease(inc); l != nil {
		k.byte(byte(l.health))
		k.flags(l.ready, l.claimed, l.late)
	}
}

func (s *state) ownerInc() uint64 { return number(s.st.Incarnation) }

func (s *state) supersededBy() uint64 { return number(s.st.SupersededBy) }

func number(text string) uint64 {
	var n uint64
	for _, c := range text {
		n = n*10 + uint64(c-'0')
	}
	return n
}

func sortedKeys[K cmp.Ordered, T any](m map[K]T) []K { return slices.Sorted(maps.Keys(m)) }
