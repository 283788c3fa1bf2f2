package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a bridge.
const (
	reconnectMax = time.Second // between two attempts to reach the server
	readsMax     = 20          // reads of a session until two of them agree
	probesEvery  = time.Second // the first request of a connection is made again, if it has no answer
	bootReads    = 3           // of a session, in a server that has just been started
	leaveMax     = 5 * time.Second
)

// Bridge keeps the sessions of one living OpenCode server in a cell: it follows the server's events, stores them as the
// facts of one incarnation for each process of the server, and brings decisions of people to the server.
//
// A process of the server is recognised by a mark that it has only in its memory: an MCP entry that starts nothing. A
// server with the mark is the process that the incarnation stands for; what happened while the connection was lost is
// read and compared. A server without the mark is a new process: the incarnation of the old one is abandoned, and a new
// one is ready at once, so recovery closes what the old process held and does not wait for a lease.
type Bridge struct {
	// URL of the server, http://host:port. Required.
	URL string
	// Connect returns the next incarnation of the harness. Required.
	Connect func(ctx context.Context) (*harness.Harness, error)
	// Cell is part of the mark's name: a bridge takes no mark of another cell for its own. Default: hf.
	Cell string
	// Content is how much of the user's content is stored: the zero value as much as [agent.ContentTitles]. At the
	// level none a refusal of the server is logged without its text.
	Content agent.Content
	// Drive is what Holdfast decides in place of OpenCode. Default: nothing.
	Drive Drive
	// Plugin is where the plugin in OpenCode asks before a call runs. Default: no plugin.
	Plugin *Plugin
	// Log takes one line for each connection, restart and refusal. Default: nothing is logged.
	Log *slog.Logger
}

// Run keeps the sessions until ctx ends, and returns nil then. While the server or the connection to it is gone, it
// tries again. Errors: the address is not one; those of Connect; [*harness.ReplacedError], another bridge of the same
// harness id has taken over.
func (b *Bridge) Run(ctx context.Context) error {
	if b.Plugin != nil {
		defer func() { _ = b.Plugin.Listener.Close() }()
	}
	r, err := b.newFollower()
	if err != nil {
		return err
	}
	return r.run(ctx)
}

func (b *Bridge) newFollower() (*follower, error) {
	a, err := newAPI(b.URL)
	if err != nil {
		return nil, err
	}
	log := b.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a.silent = b.Content.Hidden()
	r := &follower{Bridge: b, api: a, log: log, held: map[string]bool{},
		changed: make(chan struct{})}
	r.translator = r.newTranslator()
	return r, nil
}

func (r *follower) run(ctx context.Context) error {
	defer r.leave()
	defer r.serve(ctx)()
	pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(reconnectMax), backoff.WithMaxElapsedTime(0))
	for {
		err := r.attend(ctx, pace.Reset)
		if fatal, ok := errors.AsType[*fatalError](err); ok && ctx.Err() == nil {
			return fatal.err
		}
		if ctx.Err() != nil {
			return nil
		}
		wait, what := pace.NextBackOff(), "not connected to OpenCode: trying again"
		if _, ok := errors.AsType[*brokerError](err); ok {
			what = "OpenCode was restarted, and the broker is away: waiting for the broker"
		}
		r.log.Warn(what, "url", r.api.base.Redacted(), "err", err, "in", wait.String())
		if err := r.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// newTranslator returns the translator of a living server, at the level of content of the bridge.
func (b *Bridge) newTranslator() *Translator {
	t := NewLiveTranslator()
	t.Content(b.Content)
	return t
}

// pause waits. The error is that of a harness that another process has replaced.
func (r *follower) pause(ctx context.Context, wait time.Duration) error {
	var replaced <-chan struct{}
	if r.process != nil {
		replaced = r.process.h.Context().Done()
	}
	due := time.NewTimer(wait)
	defer due.Stop()
	select {
	case <-due.C:
	case <-ctx.Done():
	case <-replaced:
		return context.Cause(r.process.h.Context())
	}
	return nil
}

// fatalError ends a bridge: another attempt would fail in the same way.
type fatalError struct{ err error }

// Error implements error.
func (e *fatalError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *fatalError) Unwrap() error { return e.err }

// brokerError says that the broker is away, which has been there before.
type brokerError struct{ err error }

// Error implements error.
func (e *brokerError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *brokerError) Unwrap() error { return e.err }

// awaitsBroker reports whether another attempt to connect to the broker can succeed without a change of the settings.
func awaitsBroker(err error) bool {
	return errors.Is(err, harness.ErrUnreachable) || errors.Is(err, harness.ErrNoCell) ||
		errors.Is(err, context.DeadlineExceeded)
}

// follower is a bridge at work.
type follower struct {
	*Bridge
	api      *api
	log      *slog.Logger
	process  *process                // nil: no process of the server is known
	gone     []*process              // processes that have ended, and whose incarnations are not abandoned yet
	began    bool                    // the broker was there
	noReplay atomic.Bool             // the server refuses to complete messages
	serving  atomic.Pointer[process] // the marked process, for the plugin
	token    sync.Once               // another token was warned of

	mu         sync.Mutex // guards what follows, and the order of what is stored
	translator *Translator
	held       map[string]bool            // sessions that the log has of this harness
	waiting    map[string]map[string]bool // by session: calls whose prompts awaited an answer when the life began
	changed    chan struct{}              // closed when facts were stored, and replaced
}

// process is one process of the server.
type process struct {
	h       *harness.Harness
	mark    string
	ctx     context.Context // ends with the process, or with the bridge
	cancel  context.CancelFunc
	waits   sync.WaitGroup
	works   bool // requested turns are run
	mu      sync.Mutex
	handles map[string]*harness.Session
	asked   map[string]*asking // by prompt: decisions that this process waits for, or has brought to the server
	sent    map[string]bool    // by prompt: the server may have been sent the decision
	awaited map[string]int     // by prompt: waits for its decision that have not ended
	turnsAt map[string]int     // by session: handlers of turns that have not ended
	turns   map[string]string  // by session: the turn whose stop is watched
	working map[string]string  // by session: the turn that a handler has sent to the server
	// by session: a requested turn of an earlier bridge, which may have died before it sent the message
	undecided map[string]string
	aborting  map[string]chan struct{} // by session: closed when the abort of a run is over
	messages  map[string]*heldMessage  // that the plugin holds
	hasHeld   bool                     // the plugin has held a message
	owed      map[string]bool          // sessions that are to be compared; true: recovery took them from this process
	owing     chan struct{}            // something is owed
	owesAsk   map[callKey]bool         // calls that run, and for which the plugin did not ask yet
	warned    sync.Once                // that the plugin does not ask
}

// asking is one wait for a decision.
type asking struct {
	session string
	cancel  context.CancelFunc
	decided bool          // the decision is on its way to the server, or there
	settled bool          // the server has replied to the decision: it does not ask any more
	known   chan struct{} // closed when answer is set, or will not be; nil: nothing reads the decision
	once    sync.Once     // sets answer, and closes known
	answer  harness.Answer
}

// learn sets the decision, or a zero one after an Ask without a decision. The first call counts: an Ask brings another
// decision if a person took the first one back, and the server has the first one.
func (a *asking) learn(answer harness.Answer) {
	a.once.Do(func() {
		a.answer = answer
		close(a.known)
	})
}

// attend connects and follows the stream until it ends. connected is called when the connection is complete.
func (r *follower) attend(ctx context.Context, connected func()) error {
	mark, err := r.meet(ctx)
	if err != nil {
		return err
	}
	s, err := r.api.events(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	defer context.AfterFunc(r.process.h.Context(), s.close)()
	// The process that has the mark before and after is the one that the stream belongs to.
	marks, err := r.marks(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(marks, mark) {
		return errors.New("the server restarted while the bridge connected to it")
	}
	if err := r.compareAll(ctx); err != nil {
		return err
	}
	connected()
	ctxOfStream, stop := context.WithCancel(ctx)
	var catching sync.WaitGroup
	defer catching.Wait()
	defer stop()
	catching.Go(func() { r.catchUp(ctxOfStream, r.process) })
	if !r.process.works {
		r.process.works = true
		r.work(r.process)
	}
	r.log.Info("connected to OpenCode", "url", r.api.base.Redacted(), "incarnation", r.process.h.Incarnation())
	for {
		raw, err := s.next()
		if cause := context.Cause(r.process.h.Context()); cause != nil {
			return &fatalError{cause}
		}
		if err != nil {
			return err
		}
		if err := r.event(ctx, raw, s.waiting()); err != nil {
			return err
		}
	}
}

// errDisposed ends a connection: prompts of the directory are gone, and so is the mark if it was in that directory.
var errDisposed = errors.New("the server has disposed the instance of a directory")

// marksPrefix is what the names of all marks of this harness begin with.
func (r *follower) marksPrefix(id string) string {
	cell := r.Cell
	if cell == "" {
		cell = events.DefaultPrefix
	}
	return "holdfast-" + cell + "-" + id + "-"
}

// marks returns the names of all MCP entries of the server. Marks of bridges are among them.
func (r *follower) marks(ctx context.Context) ([]string, error) {
	var entries map[string]json.RawMessage
	if err := r.api.get(ctx, &entries, "", "mcp"); err != nil {
		return nil, err
	}
	var names []string
	for name := range entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a, b) })
	return names, nil
}

// firstMarks is [follower.marks] for the first request of a connection. A server that boots never answers some of the
// requests that it gets, so the request is made again while the earlier ones wait: the first reply counts.
func (r *follower) firstMarks(ctx context.Context) ([]string, error) {
	type reply struct {
		names []string
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const probesMax = int(requestMax / probesEvery)
	replies := make(chan reply, probesMax)
	again := time.NewTicker(probesEvery)
	defer again.Stop()
	for made := 0; ; {
		if made < probesMax {
			made++
			go func() {
				names, err := r.marks(ctx)
				replies <- reply{names, err}
			}()
		}
		select {
		case first := <-replies:
			return first.names, first.err
		case <-again.C:
		}
	}
}

// incarnations returns the incarnations of the marks of this harness, the oldest first.
func incarnations(names []string, prefix string) (all []string) {
	for _, name := range names {
		n, ok := strings.CutPrefix(name, prefix)
		if ok && n != "" && strings.Trim(n, "0123456789") == "" {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		switch {
		case fold.Older(a, b):
			return -1
		case fold.Older(b, a):
			return 1
		}
		return 0
	})
	return all
}

// meet finds out which process of the server runs, makes an incarnation for it if it is new, and returns its mark.
func (r *follower) meet(ctx context.Context) (mark string, err error) {
	names, err := r.firstMarks(ctx)
	if err != nil {
		return "", err
	}
	if r.process != nil {
		if slices.Contains(names, r.process.mark) {
			return r.process.mark, nil
		}
		for _, n := range incarnations(names, r.marksPrefix(r.process.h.ID())) {
			if fold.Older(r.process.h.Incarnation(), n) {
				return "", &fatalError{&harness.ReplacedError{Harness: r.process.h.ID(), Incarnation: n}}
			}
		}
		r.bury()
	}
	if err := r.begin(ctx, names); err != nil {
		return "", err
	}
	return r.process.mark, nil
}

// reasonRestarted is why the incarnation of a process is abandoned.
const reasonRestarted = "OpenCode was restarted"

// bury ends the work for a process that is gone. Its incarnation keeps its sessions until the next one has claimed
// those that it continues: recovery would close their turns.
func (r *follower) bury() {
	r.serving.Store(nil)
	r.process.cancel()
	r.process.waits.Wait()
	r.gone = append(r.gone, r.process)
	r.process = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	// facts that it held back are not stored: recovery closes what is in the log
	r.translator.Restart()
}

// abandon ends the incarnations of processes that are gone.
func (r *follower) abandon(ctx context.Context) {
	for _, l := range r.gone {
		r.log.Warn("abandoned", "incarnation", l.h.Incarnation(), "reason", reasonRestarted)
		if err := l.h.AbandonBecause(ctx, reasonRestarted); err != nil {
			r.log.Warn("the reason is not stored: recovery follows as for a killed process", "err", err)
		}
	}
	r.gone = nil
}

// begin makes an incarnation for the process that runs. If the server has a mark of this harness, an earlier bridge has
// left while the process went on, and what it left open is continued. Otherwise the process is new, and holds nothing.
func (r *follower) begin(ctx context.Context, names []string) error {
	h, err := r.Connect(ctx)
	if err != nil && r.began && awaitsBroker(err) {
		return &brokerError{err}
	}
	if err != nil {
		return &fatalError{err}
	}
	r.began = true
	ctxOfLife, cancel := context.WithCancel(h.Context())
	l := &process{h: h, ctx: ctxOfLife, cancel: cancel, handles: map[string]*harness.Session{},
		asked: map[string]*asking{}, sent: map[string]bool{}, awaited: map[string]int{}, turnsAt: map[string]int{},
		turns: map[string]string{}, working: map[string]string{},
		undecided: map[string]string{}, aborting: map[string]chan struct{}{}, owed: map[string]bool{},
		messages: map[string]*heldMessage{}, owesAsk: map[callKey]bool{},
		owing: make(chan struct{}, 1)}
	prefix := r.marksPrefix(h.ID())
	known := incarnations(names, prefix)
	l.mark = prefix + h.Incarnation()
	if len(known) > 0 {
		l.mark = prefix + known[0]
	}
	r.process = l
	err = r.seed(ctx, known)
	if err == nil {
		r.abandon(ctx)
		err = h.Ready(ctx)
	}
	if err == nil && len(known) == 0 {
		r.repairAll(ctx, r.directories())
		err = r.setMark(ctx, l.mark)
	}
	if err == nil {
		r.driveCompactions(ctx)
		r.serving.Store(l)
	}
	if err != nil {
		cancel()
		h.Abandon()
		l.waits.Wait()
		r.process = nil
		r.mu.Lock()
		defer r.mu.Unlock()
		r.translator = r.newTranslator()
	}
	return err
}

// directories returns the directories of the sessions that are known; "" is the one that the server was started in.
func (r *follower) directories() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bool{"": true}
	for _, id := range slices.Concat(r.translator.Active(), slices.Collect(maps.Keys(r.held))) {
		all[r.translator.directory(id)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// setMark leaves a mark in the memory of the server: an MCP entry that is switched off, so it starts nothing.
func (r *follower) setMark(ctx context.Context, name string) error {
	return r.api.post(ctx, map[string]any{"name": name, "config": map[string]any{"type": "local",
		"command": []string{"true"}, "enabled": false}}, "", "mcp")
}

// seed tells the translator of the sessions in the log. Open turns are continued if their owner stood for the process
// that still runs: its incarnation is that of the oldest mark, or a later one.
func (r *follower) seed(ctx context.Context, marks []string) error {
	docs, unreadable, err := r.process.h.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, u := range unreadable {
		r.log.Warn("a document cannot be read", "session", u.Session, "err", u.Err)
	}
	directories := r.learnDirectories(ctx, docs)
	owed := map[string]string{}
	if len(marks) == 0 {
		if owed, err = r.notBegun(ctx, docs, directories); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = map[string]map[string]bool{}
	for _, d := range docs {
		if d.Closed != nil {
			continue
		}
		r.held[d.Ref().Session] = true
		r.waiting[d.Ref().Session] = waitingCalls(d)
		newest := ""
		if d.LastTurn != nil {
			newest = d.LastTurn.ID
		}
		id := d.Ref().Session
		turns := []string{}
		if d.Turn != nil {
			turns = append(turns, d.Turn.ID)
		}
		r.translator.Know(id, newest, turns...)
		if dir := directories[id]; dir != "" {
			r.translator.session(id).info.Directory = dir
		}
		same := len(marks) > 0
		if d.Turn == nil || !d.Owned || same && fold.Older(d.Incarnation, marks[0]) || !same && owed[id] != d.Turn.ID {
			continue
		}
		err := r.adopt(ctx, id, same)
		if errors.Is(err, harness.ErrOwned) {
			r.log.Warn("a session is left alone: another process has it", "session", id, "err", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waitingCalls returns the calls of a session with a prompt that awaits its answer.
func waitingCalls(d *fold.State) map[string]bool {
	calls := map[string]bool{}
	for _, p := range d.Prompts {
		if p.Status == fold.Awaiting && p.Call != "" {
			calls[p.Call] = true
		}
	}
	return calls
}

// learnDirectories returns the directories of the sessions that were last active, as the server says them: the
// documents do not have them, and the server keeps state for each directory.
func (r *follower) learnDirectories(ctx context.Context, docs []*fold.State) map[string]string {
	docs = slices.DeleteFunc(slices.Clone(docs), func(d *fold.State) bool { return d.Closed != nil })
	slices.SortStableFunc(docs, func(a, b *fold.State) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	all := map[string]string{}
	for _, d := range docs[:min(len(docs), sessionsMax)] {
		id := d.Ref().Session
		var s stored
		err := r.api.get(ctx, &s, "", "session", id)
		if _, replied := errors.AsType[*statusError](err); err != nil && !replied {
			r.log.Warn("the directories of sessions are not known yet", "session", id, "err", err)
			return all
		}
		if err == nil {
			all[id] = s.Directory
		}
	}
	return all
}

// notBegun returns the requested turns, by session, that the dead processes of the server have not begun: the process
// that serves now runs them. It runs before the repair.
func (r *follower) notBegun(ctx context.Context, docs []*fold.State, directories map[string]string) (
	owed map[string]string, err error) {
	owed = map[string]string{}
	for _, d := range docs {
		if d.Closed != nil || d.Turn == nil || !d.Owned || !isRequested(d.Turn) {
			continue
		}
		id := d.Ref().Session
		n, err := r.readSoon(ctx, directories[id], id)
		switch {
		case err == nil && n.Idle && unsent(decodeMessages(n), d.Turn.ID, d.Turn.Message):
			owed[id] = d.Turn.ID
		case err != nil && !refused(err) && r.lost(ctx):
			return nil, err
		case err != nil:
			r.log.Warn("a turn is left to recovery", "session", id, "turn", d.Turn.ID, "err", err)
		}
	}
	return owed, nil
}

// readSoon reads a session of a server that may not be ready for all requests yet.
func (r *follower) readSoon(ctx context.Context, dir, id string) (n *Snapshot, err error) {
	for range bootReads {
		once, cancel := context.WithTimeout(ctx, compareMax)
		n, err = r.read(once, dir, id)
		cancel()
		if err == nil || refused(err) || ctx.Err() != nil {
			break
		}
	}
	return n, err
}

// adopt claims a session with its open turn. same: the process of the server is that of the turn, so all else that is
// open in the session is continued, too. The caller has the lock.
func (r *follower) adopt(ctx context.Context, id string, same bool) error {
	s, err := r.process.h.Claim(ctx, id)
	if errors.Is(err, harness.ErrNotFound) || errors.Is(err, harness.ErrSessionClosed) {
		return nil
	}
	if err != nil {
		return err
	}
	r.process.keep(s)
	st := s.State()
	if st.Turn == nil {
		return nil
	}
	// the document is older than what recovery did
	if p := st.Pending.Turn; p != nil && p.OfTurn == st.Turn.ID {
		return nil
	}
	requested := isRequested(st.Turn)
	if err := r.adoptOpen(ctx, s, requested, same); err != nil {
		return err
	}
	r.translator.Continue(id, st.Turn.ID, st.Turn.Message)
	// its handler finds out whether the server has the message
	if requested {
		r.process.mu.Lock()
		defer r.process.mu.Unlock()
		r.process.undecided[id] = st.Turn.ID
		return nil
	}
	// it runs already
	r.translator.sessions[id].turn.awaited = false
	r.watchStop(s)
	return nil
}

// isRequested reports whether a turn was requested of a bridge, which then has to send a message: one that came through
// Holdfast, the message of a turn whose prompt was decided, or that of a turn that a person resumed. All other turns
// are runs that OpenCode began.
func isRequested(t *fold.Turn) bool {
	switch t.Cause {
	case events.CauseAnswer, events.CauseRetry:
		return true
	case events.CauseResume:
		// a run that OpenCode continued has another id: see newTurnID
		return strings.HasPrefix(t.ID, requestedPrefix)
	}
	return t.Message != "" && !strings.HasPrefix(t.Message, messagePrefix)
}

// requestedPrefix is what the ids of turns begin with that were requested through Holdfast.
const requestedPrefix = "turn-"

// adoptOpen continues the open turn of a session. forWork: the handler of requested turns runs it. all: everything else
// that the log has open is continued, too.
func (r *follower) adoptOpen(ctx context.Context, s *harness.Session, forWork, all bool) error {
	st := s.State()
	adopt := harness.Adopt{Turn: true, ForWork: forWork}
	for call := range st.Tools {
		if all {
			adopt.Calls = append(adopt.Calls, call)
		}
	}
	for _, p := range st.PendingPrompts() {
		if all {
			adopt.Prompts = append(adopt.Prompts, harness.Prompt{ID: p})
		}
	}
	_, err := r.process.h.Claim(ctx, s.ID(), adopt)
	return err
}

// leave ends the bridge. The server works on, so everything open is left as it is for the next bridge.
func (r *follower) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveMax)
	defer cancel()
	r.abandon(ctx)
	if r.process == nil {
		return
	}
	r.process.cancel()
	r.process.h.Abandon()
	r.process.waits.Wait()
}

// event translates and stores one event.
func (r *follower) event(ctx context.Context, raw json.RawMessage, more bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	steps := r.translator.Translate(Record{At: time.Now().UTC(), Event: raw})
	if !more {
		steps = append(steps, r.translator.Flush()...)
	}
	// also after an error: the connection ends with it
	disposed := r.translator.takeDisposed()
	r.warnUnasked(steps)
	if err := r.store(ctx, steps); err != nil {
		return err
	}
	if err := r.driveRetries(ctx); err != nil {
		return err
	}
	if disposed {
		return errDisposed
	}
	return nil
}

// store appends the facts of steps. The caller has the lock.
func (r *follower) store(ctx context.Context, steps []Step) error {
	defer func() {
		close(r.changed)
		r.changed = make(chan struct{})
	}()
	ends := r.translator.ends()
	taken := map[string]bool{}
	try := func(session string, do func() error) error {
		if session == "" || taken[session] {
			return nil
		}
		err := do()
		switch {
		case err == nil:
		case ctx.Err() != nil, r.process.h.Context().Err() != nil:
			return err
		case errors.Is(err, harness.ErrFenced):
			taken[session] = true
			r.process.owe(session, true)
		default:
			r.log.Warn("not stored", "session", session, "err", err)
			r.process.drop(session)
		}
		return nil
	}
	for i := range ends {
		// An end that the steps have is compared there: what they say about its prompts comes before it.
		if s := r.process.handle(ends[i].session); s != nil && !inSteps(steps, &ends[i]) {
			if err := try(s.ID(), func() error { return r.refuseUnmet(ctx, s, &ends[i]) }); err != nil {
				return err
			}
		}
	}
	for i := range steps {
		if err := try(steps[i].Session, func() error { return r.storeStep(ctx, &steps[i], ends) }); err != nil {
			return err
		}
	}
	for i := range steps {
		r.forget(r.process, steps[i].Session)
	}
	return nil
}

// storeStep appends the facts of a step. ends are how the calls of the steps have ended.
func (r *follower) storeStep(ctx context.Context, step *Step, ends []callEnd) error {
	s, err := r.session(ctx, step)
	if err != nil || len(step.Facts) == 0 {
		return err
	}
	if err := r.relay(ctx, s, step.Facts, ends); err != nil {
		return err
	}
	for _, f := range step.Facts {
		switch f := f.(type) {
		case events.TurnStarted:
			r.watchStop(s)
		case events.PromptRequested:
			r.await(s, f)
		}
	}
	return nil
}

// session returns the handle of a step's session; it opens or claims the session if this process does not have it.
func (r *follower) session(ctx context.Context, step *Step) (*harness.Session, error) {
	if s := r.process.handle(step.Session); s != nil {
		return s, nil
	}
	s, err := r.process.h.Claim(ctx, step.Session)
	if errors.Is(err, harness.ErrNotFound) {
		o := step.Open
		if o == nil {
			o = &events.SessionOpened{}
		}
		s, err = r.process.h.Open(ctx, step.Session, harness.OpenOptions{Parent: o.Parent, ParentCall: o.ParentCall,
			Root: o.Root, Title: o.Title, Agent: o.Agent, Model: o.Model, Native: o.Native, Policy: r.policy(o.Parent)})
	}
	if err != nil {
		return nil, err
	}
	r.process.keep(s)
	r.held[step.Session] = true
	return s, nil
}

func (l *process) handle(id string) *harness.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handles[id]
}

func (l *process) keep(s *harness.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handles[s.ID()] = s
}

func (l *process) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.handles, id)
}

// activity is what a server does in one directory.
type activity struct {
	Status      map[string]json.RawMessage
	Questions   []json.RawMessage
	Permissions []json.RawMessage
}

func (r *follower) activity(ctx context.Context, dir string) (*activity, error) {
	var v activity
	if err := r.api.get(ctx, &v.Status, dir, "session", "status"); err != nil {
		return nil, err
	}
	if err := r.api.get(ctx, &v.Questions, dir, "question"); err != nil {
		return nil, err
	}
	if err := r.api.get(ctx, &v.Permissions, dir, "permission"); err != nil {
		return nil, err
	}
	return &v, nil
}

// sessions returns the sessions that are busy or wait for a person.
func (v *activity) sessions() (ids []string) {
	for id := range v.Status {
		ids = append(ids, id)
	}
	for _, raw := range slices.Concat(v.Questions, v.Permissions) {
		ids = append(ids, sessionOf(raw))
	}
	return ids
}

// of returns the prompts of one session.
func of(list []json.RawMessage, id string) []json.RawMessage {
	return slices.DeleteFunc(slices.Clone(list), func(raw json.RawMessage) bool { return sessionOf(raw) != id })
}

// sessionOf returns the session that a prompt belongs to.
func sessionOf(raw json.RawMessage) string {
	var v struct {
		Session string `json:"sessionID"`
	}
	if err := json.Unmarshal(raw, &v); err != nil && !misshapen(err) {
		return ""
	}
	return v.Session
}

// read returns what the server says about one session. An idle session is read until its messages are the same before
// and after it was seen idle: then nothing ran in between.
func (r *follower) read(ctx context.Context, dir, id string) (*Snapshot, error) {
	n := &Snapshot{}
	if err := r.api.get(ctx, &n.Session, dir, "session", id); err != nil {
		return nil, err
	}
	// Only in its own directory the server says what a session does. It is not known after a restart of the bridge.
	var s stored
	if err := json.Unmarshal(n.Session, &s); err == nil && s.Directory != "" {
		dir = s.Directory
	}
	var before json.RawMessage
	for range readsMax {
		var messages json.RawMessage
		if err := r.api.get(ctx, &messages, dir, "session", id, "message"); err != nil {
			return nil, err
		}
		same := n.Idle && string(messages) == string(before)
		if err := json.Unmarshal(messages, &n.Messages); err != nil {
			return nil, fmt.Errorf("the messages of %s: %w", id, err)
		}
		if same {
			return n, nil
		}
		v, err := r.activity(ctx, dir)
		if err != nil {
			return nil, err
		}
		_, busy := v.Status[id]
		n.Questions, n.Permissions, n.Idle, before = of(v.Questions, id), of(v.Permissions, id), !busy, messages
		if busy {
			n.Status = v.Status[id]
			return n, nil
		}
	}
	// it changes all the time: its events will tell
	n.Idle = false
	return n, nil
}

// readOf is [follower.read] of the process l. The error is errAnother if another process answers that the session runs
// nothing: that says nothing about what l was asked to run. The mark is read after the session, because a process that
// has it then has answered both.
func (r *follower) readOf(ctx context.Context, l *process, dir, id string) (*Snapshot, error) {
	n, err := r.read(ctx, dir, id)
	if err == nil && n.Idle && !r.isMarked(l) {
		return nil, errAnother
	}
	return n, err
}

// watchStop aborts the open turn of a session when a person stops it.
func (r *follower) watchStop(s *harness.Session) {
	t := s.OpenTurn()
	if t == nil {
		return
	}
	l := r.process
	l.mu.Lock()
	seen := l.turns[s.ID()] == t.ID()
	l.turns[s.ID()] = t.ID()
	l.mu.Unlock()
	if seen {
		return
	}
	dir := r.translator.directory(s.ID())
	l.waits.Go(func() {
		select {
		case <-t.Context().Done():
		case <-l.ctx.Done():
			return
		}
		cause := context.Cause(t.Context())
		if errors.Is(cause, harness.ErrFenced) {
			l.owe(s.ID(), true)
		}
		if !errors.Is(cause, harness.ErrStopped) || errors.Is(cause, harness.ErrEnded) {
			return
		}
		err := r.insist(l.ctx, "stop", func() error {
			return r.api.post(l.ctx, struct{}{}, dir, "session", s.ID(), "abort")
		})
		if err != nil && l.ctx.Err() == nil {
			r.log.Warn("OpenCode refused the stop", "session", s.ID(), "err", err)
		}
	})
}

// await waits for the decision about a prompt, and brings it to the server. The end of a call is the receipt for its
// prompts. For a prompt without a call the receipt follows the server's reply, or its event about the prompt
// ([follower.settledInServer]).
func (r *follower) await(s *harness.Session, f events.PromptRequested) {
	l := r.process
	ctx, cancel := context.WithCancel(l.ctx)
	a := &asking{session: s.ID(), cancel: cancel, known: make(chan struct{})}
	l.mu.Lock()
	seen := l.asked[f.Prompt] != nil
	if !seen {
		l.asked[f.Prompt] = a
		l.awaited[f.Prompt]++
	}
	l.mu.Unlock()
	if seen {
		cancel()
		return
	}
	dir := r.translator.directory(s.ID())
	bring := func(answer harness.Answer) error {
		a.learn(answer)
		if !l.decides(f.Prompt, s.ID()) {
			// a turn brings it
			return errOwed
		}
		err := r.decide(l, s, dir, f, answer)
		if err != nil && f.Call == "" {
			l.mu.Lock()
			// the next turn may bring it
			a.decided = false
			l.mu.Unlock()
		}
		return err
	}
	l.waits.Go(func() {
		defer r.asksEnd(l, s.ID(), f.Prompt)
		defer cancel()
		p := harness.Prompt{ID: f.Prompt}
		if f.Call == "" {
			p.Bring = func(_ context.Context, answer harness.Answer) error { return bring(answer) }
		}
		answer, err := s.Ask(ctx, p)
		if f.Call != "" && err == nil {
			// the end of the call says what became of it
			_ = bring(answer)
		}
		a.learn(harness.Answer{})
		switch {
		case err == nil:
		case errors.Is(err, harness.ErrFenced):
			l.gaveUp(f.Prompt, a)
			l.owe(s.ID(), true)
		default:
			l.gaveUp(f.Prompt, a)
			if ctx.Err() == nil && a.answer.Status == "" && !errors.Is(err, harness.ErrClosedID) &&
				!errors.Is(err, harness.ErrUnknown) {
				r.log.Warn("no decision", "session", s.ID(), "prompt", f.Prompt, "err", err)
			}
		}
	})
}

// decides reports whether the caller is to bring the decision about a prompt to the server. One caller is.
func (l *process) decides(prompt, session string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.asked[prompt]
	switch {
	case a == nil:
		a = &asking{session: session, cancel: func() {}}
		l.asked[prompt] = a
	case a.decided:
		return false
	}
	a.decided, l.sent[prompt] = true, true
	return true
}

// hasSent reports whether the server may have been sent the decision about a prompt.
func (l *process) hasSent(prompt string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent[prompt]
}

// settles records that the server has replied to the decision about a prompt, and does not ask any more.
func (l *process) settles(prompt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.asked[prompt]; a != nil {
		a.settled = true
	}
}

// gaveUp records that a wait has ended without a decision: the prompt can be awaited again.
func (l *process) gaveUp(prompt string, a *asking) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked[prompt] == a && !a.decided {
		delete(l.asked, prompt)
	}
}

// isMarked reports whether the process that answers now is the one of this life.
func (r *follower) isMarked(l *process) bool {
	names, err := r.marks(l.ctx)
	return err == nil && slices.Contains(names, l.mark)
}

// settledThere reports whether the server has settled a prompt.
func (r *follower) settledThere(session, prompt string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.translator.sessions[session]
	return s != nil && s.prompts[prompt] != nil && s.prompts[prompt].done && !s.prompts[prompt].unsettled
}

// errOwed says that a decision did not reach the process that asked: a turn brings it.
var errOwed = errors.New("the process that asked did not take the decision")

// decide brings a decision to the server, unless it was made there. The error is that of a decision that the server
// does not have, and that is not refused in the log.
func (r *follower) decide(l *process, s *harness.Session, dir string, f events.PromptRequested,
	a harness.Answer) error {
	if a.By == byOpenCode && r.settledThere(s.ID(), f.Prompt) {
		return nil
	}
	if !decidedByPerson(a.Status) {
		// it ended with its turn
		return nil
	}
	unreplied, err := r.sendWhileAsked(l, s.ID(), dir, f, a)
	if isNotFound(err) {
		// After an attempt without a reply, "not found" can mean that the server has taken this decision. Said by
		// another process than the one that asked, it means nothing: the decision is owed to the turn.
		switch marked := r.isMarked(l); {
		case marked && unreplied == 0:
			return r.refuseLate(l, s, f.Prompt)
		case !marked:
			err = fmt.Errorf("%w: %w", errOwed, err)
		case f.Call == "":
			// it waits no longer, and no event has said that it has another decision
			return nil
		}
	}
	// it stays owed: the log has no receipt that refuses it
	if err != nil && l.ctx.Err() == nil {
		r.log.Warn("OpenCode does not have the decision", "session", s.ID(), "prompt", f.Prompt, "err", err)
	}
	return err
}

// sendWhileAsked sends a decision until the server has taken it or no longer asks: one that the server refuses is sent
// again each second. It returns the number of attempts without a reply.
func (r *follower) sendWhileAsked(l *process, session, dir string, f events.PromptRequested, a harness.Answer) (
	unreplied int, err error) {
	again := time.NewTicker(idleEvery)
	defer again.Stop()
	for {
		attempts, err := r.sendDecision(l.ctx, dir, f.Prompt, f.PromptKind == events.PromptPermission,
			labelsOf(f.Questions, r.askedThere(session, f.Prompt), a), a)
		unreplied += attempts - 1
		if !refused(err) || isNotFound(err) {
			return unreplied, err
		}
		r.log.Warn("OpenCode refused the decision: trying again", "session", session, "prompt", f.Prompt, "err", err)
		select {
		case <-again.C:
		case <-l.ctx.Done():
			return unreplied, err
		}
		if r.settledThere(session, f.Prompt) {
			return unreplied, err
		}
	}
}

// refuseLate stores that a decision did not reach the agent, which has another one. The error is nil if the log says
// how the prompt ended.
func (r *follower) refuseLate(l *process, s *harness.Session, prompt string) error {
	r.log.Warn("the decision came too late for OpenCode", "session", s.ID(), "prompt", prompt)
	err := s.Refuse(l.ctx, prompt, reasonLate)
	if errors.Is(err, harness.ErrEnded) {
		return nil
	}
	if err != nil && l.ctx.Err() == nil {
		r.log.Warn("not stored", "session", s.ID(), "prompt", prompt, "err", err)
	}
	return err
}

func isNotFound(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.Code == http.StatusNotFound
}

// askedThere returns the questions of a prompt as the server asks them; none if they are not known.
func (r *follower) askedThere(session, prompt string) []events.Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.translator.sessions[session]
	if s == nil || s.prompts[prompt] == nil {
		return nil
	}
	return s.prompts[prompt].questions
}

// sendDecision sends a decision until the server has taken or refused it, and returns the number of attempts. labels
// answer the questions, in the words of the server.
func (r *follower) sendDecision(ctx context.Context, dir, prompt string, permission bool, labels [][]string,
	a harness.Answer) (attempts int, err error) {
	kind, action, body := "question", "reply", any(map[string][][]string{"answers": labels})
	switch {
	case permission:
		kind, body = "permission", permissionReply(a)
	case a.Status != fold.Answered && correction(a) == "":
		action, body = replyReject, struct{}{}
	}
	err = r.insist(ctx, "a decision", func() error {
		attempts++
		return r.api.post(ctx, body, dir, kind, prompt, action)
	})
	return attempts, err
}

// reasonLate is why a decision is refused.
const reasonLate = "OpenCode no longer waits for it: the prompt was settled there first"

// textRejected begins the answer of a person who has rejected a question with a text.
const textRejected = "The user rejected this question: "

// correction returns the text with which a person has rejected a question, "" for other decisions.
func correction(a harness.Answer) string {
	if a.Status != fold.Rejected {
		return ""
	}
	return strings.TrimSpace(a.Text)
}

// labelsOf returns what the questions of a prompt are answered with: see given. OpenCode's rejection of a question has
// no text, so the text of a person is the answer to the first one, and the others are skipped.
func labelsOf(shown, asked []events.Question, a harness.Answer) [][]string {
	if text := correction(a); text != "" {
		return [][]string{{textRejected + text}}
	}
	return given(shown, asked, a)
}

// given returns an answer as OpenCode takes it: the labels, and own text, of each question in order. shown are the
// questions of the log, asked those of OpenCode; asked may be empty if they are the same.
func given(shown, asked []events.Question, a harness.Answer) [][]string {
	all := make([][]string, 0, len(shown))
	byID := map[string]events.Answer{}
	for _, one := range a.Answers {
		byID[one.Question] = one
	}
	for i, q := range shown {
		one := byID[q.ID]
		labels := append([]string{}, one.Selected...)
		for k := range labels {
			if i < len(asked) {
				labels[k] = revealed(q, asked[i], labels[k])
			}
		}
		if one.Text != "" {
			labels = append(labels, one.Text)
		}
		all = append(all, labels)
	}
	return all
}

// permissionReply returns a decision about a permission as OpenCode takes it.
func permissionReply(a harness.Answer) map[string]string {
	if a.Status == fold.Answered {
		switch a.Choice() {
		case "once", "always":
			return map[string]string{"reply": a.Choice()}
		}
	}
	reply := map[string]string{"reply": replyReject}
	if a.Text != "" {
		reply["message"] = a.Text
	}
	return reply
}

// insist repeats a request until the server has taken or refused it, or ctx ends. A reply that cannot be read ends it,
// too.
func (r *follower) insist(ctx context.Context, what string, do func() error) error {
	pace := backoff.NewExponentialBackOff(backoff.WithMaxInterval(reconnectMax), backoff.WithMaxElapsedTime(0))
	for {
		err := do()
		if err == nil || refused(err) || unreadable(err) || ctx.Err() != nil {
			return err
		}
		r.log.Warn("OpenCode did not take it: trying again", "what", what, "err", err)
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
			return err
		}
	}
}
