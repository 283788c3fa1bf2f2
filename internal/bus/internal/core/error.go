package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// The errors of this package. Every error has one of these, or one of pkg/events, in its chain.
var (
	// ErrLostRace means that another writer was first: read the new commits and decide again.
	ErrLostRace = errors.New("lost race")
	// ErrLogBehind means that the log ends before a commit that the writer has folded: the broker has lost commits, or
	// an older copy of it was restored. Another attempt fails, too: an operator must decide (`holdfast doctor`).
	ErrLogBehind = errors.New("the log has lost commits")
	// ErrNotFound means that there is no such commit, key or stream: treat it as empty, or set the cell up first.
	ErrNotFound = errors.New("not found")
	// ErrUnreachable means that the broker did not answer in time; whether a write was stored is unknown: try again.
	ErrUnreachable = errors.New("broker unreachable")
	// ErrInFlight is an [ErrUnreachable] of a write that was refused for long because writes with its guard were in
	// flight, perhaps an earlier copy of it: the stream's leader may have lost the other nodes, or another client uses
	// the guard. Try again.
	ErrInFlight = fmt.Errorf("%w: writes with this guard are in flight, which the leader may be unable to store",
		ErrUnreachable)
	// ErrBusy is an [ErrInFlight] of a write of which no copy is stored or in flight: try again.
	ErrBusy = fmt.Errorf("%w, and this one is not stored", ErrInFlight)
	// ErrFull means that a limit of the stream or the disk refuses the write: free space or raise the limit.
	ErrFull = errors.New("full")
	// ErrForbidden means that the credentials do not allow it: an operator must change them; another attempt fails,
	// too.
	ErrForbidden = errors.New("forbidden")
	// ErrNoJetStream means that the broker, or this account on it, has no JetStream: an operator must enable it.
	ErrNoJetStream = errors.New("no JetStream")
	// ErrNoAnswer is an [ErrUnreachable] of a broker that accepted the connection: its JetStream has no leader, or a
	// node has disabled it because its disk is full. An operator must check the nodes.
	ErrNoAnswer = fmt.Errorf("%w: JetStream does not answer", ErrUnreachable)
	// ErrTooOld means that the broker lacks a needed feature: an operator must upgrade it.
	ErrTooOld = errors.New("broker too old")
	// ErrNewerLayout means that a later version set up the cell: upgrade this program.
	ErrNewerLayout = errors.New("newer layout")
	// ErrHalfRestored means that the restore of the log did not end: an operator must remove the streams of the cell
	// and restore it again.
	ErrHalfRestored = errors.New("the cell is restored in part only")
	// ErrExists means that the key is taken: choose another, or read who has it.
	ErrExists = errors.New("exists")
	// ErrLeaseLost means that another process has the lease, or that it expired: stop all work under it.
	ErrLeaseLost = errors.New("lease lost")
)

// ServerVersionMin is the oldest supported broker: the first one that can reset a consumer, which a clean hand-over of
// ordered delivery needs. (Message schedules came with 2.12, per-message TTL and pinned consumers with 2.11.)
const ServerVersionMin = "2.14.0"

// Codes of the JetStream API that nats.go has no constant for.
const (
	codeAccountFull        = 10002
	codeNoPeers            = 10005
	codeClusterAway        = 10008
	codeNotLeader          = 10009
	codeServerFull         = 10023
	codeMemoryFull         = 10028
	codeStorageFull        = 10047
	codeStoreFailed        = 10077 // the reason is in its text: "maximum … exceeded" for a limit of the stream
	codeStreamOffline      = 10118
	codeConsumerOffline    = 10119
	codeIDInProcess        = 10158 // a message of this id is proposed, and not stored yet
	codeGuardNotReady      = 10163 // another write under the same guard is in flight
	codeStreamOfflineWhy   = 10194
	codeConsumerOfflineWhy = 10195
)

// Translate turns an error of the client or the server into one of this package; op says what was done and to what. An
// error of this package, or one without an equivalent, keeps its chain.
func Translate(op string, err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil {
		if errors.Is(err, kind) {
			return fmt.Errorf("%s: %w", op, err)
		}
		return fmt.Errorf("%w: %s: %w%s", kind, op, err, advice(kind))
	}
	return fmt.Errorf("%s: %w", op, err)
}

// advice returns what to do about errors that a person must solve.
func advice(kind error) string {
	switch {
	case errors.Is(kind, ErrNoJetStream):
		return " (start nats-server with -js, or enable JetStream for this account)"
	case errors.Is(kind, ErrForbidden):
		return " (check the credentials and the permissions of this user)"
	default:
		return ""
	}
}

// kindOf returns the equivalent error of this package; nil for none.
func kindOf(err error) error {
	for _, ours := range []error{ErrLostRace, ErrLogBehind, ErrNotFound, ErrUnreachable, ErrFull, ErrForbidden,
		ErrNoJetStream, ErrTooOld,
		ErrNewerLayout, ErrHalfRestored, ErrExists, ErrLeaseLost} {
		if errors.Is(err, ours) {
			return ours
		}
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return kindOfCode(api)
	}
	switch {
	case isAuth(err), errors.Is(err, nats.ErrPermissionViolation):
		return ErrForbidden
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		// others have a code
		return ErrNotFound
	case isAway(err):
		return ErrUnreachable
	default:
		return nil
	}
}

// kindOfCode is the table of error codes of the JetStream API.
func kindOfCode(e *jetstream.APIError) error {
	switch e.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return ErrLostRace
	case jetstream.JSErrCodeMessageNotFound, jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeConsumerNotFound,
		jetstream.JSErrCodeConsumerDoesNotExist:
		return ErrNotFound
	case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return ErrNoJetStream
	case codeAccountFull, codeServerFull, codeMemoryFull, codeStorageFull:
		return ErrFull
	case codeStoreFailed:
		if strings.Contains(e.Description, "exceeded") || strings.Contains(e.Description, "no space") {
			return ErrFull
		}
		return ErrUnreachable
	case codeNoPeers, codeClusterAway, codeNotLeader, codeGuardNotReady, codeStreamOffline, codeConsumerOffline,
		codeStreamOfflineWhy,
		codeConsumerOfflineWhy:
		return ErrUnreachable
	default:
		return nil
	}
}

// NoStream reports whether the stream is missing, and not only the message: both are [ErrNotFound].
func NoStream(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamNotFound
}

// idInProcess reports whether a message was refused because one of its id is proposed. It may be lost: the leader
// forgets the id then only with the window for duplicates, or with its leadership.
func idInProcess(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeIDInProcess
}

// inFlight reports whether a write was refused because another one with its guard is in flight. That says nothing about
// the guard: each user that may write to the stream can name any subject as its guard.
func inFlight(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// isAuth reports whether the broker refuses the login. While connecting, the client library has it only as text.
func isAuth(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "authentication expired") || strings.Contains(text, "authentication revoked") ||
		strings.Contains(text, "authorization violation")
}

// isAway reports whether the broker, or the stream's leader, is temporarily not reachable.
func isAway(err error) bool {
	for _, away := range []error{nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionClosed,
		nats.ErrNoServers,
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrConnectionDraining,
		nats.ErrStaleConnection,
		jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, jetstream.ErrTooManyStalledMsgs,
		jetstream.ErrNoHeartbeat,
		jetstream.ErrServerShutdown, jetstream.ErrConnectionClosed, jetstream.ErrConsumerDeleted,
		jetstream.ErrConsumerLeadershipChanged,
		context.DeadlineExceeded} {
		if errors.Is(err, away) {
			return true
		}
	}
	// of the socket: its write has failed, and how much of it arrived is unknown
	return errors.As(err, new(
		*net.OpError))
}

// unreachable returns the error for a broker that did not answer in time, with the last cause.
func unreachable(op string, cause error) error {
	if errors.Is(cause, ErrForbidden) || errors.Is(cause, ErrUnreachable) {
		return cause
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, op, cause)
}

// Redacted returns a broker's URL, or several separated by commas, for display and logs: without user and password,
// also without a scheme.
func Redacted(urls string) string {
	all := strings.Split(urls, ",")
	for i, u := range all {
		scheme, rest, whole := strings.Cut(u, "://")
		if !whole {
			scheme, rest = "", u
		}
		if all[i] = rest[strings.LastIndex(rest, "@")+1:]; whole {
			all[i] = scheme + "://" + all[i]
		}
	}
	return strings.Join(all, ",")
}

// newEnough reports whether a broker's version is ServerVersionMin or later. A suffix such as -RC.1 is ignored.
func newEnough(version string) bool {
	have, want := numbers(version), numbers(ServerVersionMin)
	for i := range want {
		if have[i] != want[i] {
			return have[i] > want[i]
		}
	}
	return true
}

// numbers returns the three parts of a version; an unreadable part counts as 0.
func numbers(version string) (n [3]int) {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	for i, part := range strings.SplitN(version, ".", 3) {
		v, err := strconv.Atoi(part)
		if err != nil {
			return n
		}
		n[i] = v
	}
	return n
}

// deniedMax limits the subjects remembered as denied; beyond it all are forgotten, which costs a time-out and no
// correctness.
const deniedMax = 1024

// denials remembers what the broker refused without a reply: forbidden publishes and subscriptions show only as an
// asynchronous error, and the waiting call needs the reason.
type denials struct {
	mu      sync.Mutex
	at      map[string]time.Time // by subject
	inbox   time.Time            // when the subscription for replies was denied
	changed chan struct{}        // closed and replaced at each denial
}

func newDenials() *denials {
	return &denials{at: map[string]time.Time{}, changed: make(chan struct{})}
}

// add reads the subject from the error's text: … for Publish to "subject".
func (d *denials) add(err error) {
	_, rest, ok := strings.Cut(err.Error(), `"`)
	subject, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.at) >= deniedMax {
		clear(d.at)
	}
	d.at[subject] = time.Now()
	if strings.HasPrefix(subject, nats.InboxPrefix) {
		d.inbox = d.at[subject]
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// Next returns a channel that is closed at the next denial.
func (d *denials) Next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Since returns [ErrForbidden] if this subject, or the inbox for replies, was denied at t or later.
func (d *denials) Since(subject string, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.at[subject]; ok && !at.Before(t) {
		return fmt.Errorf("%w: %s: not permitted to this user%s", ErrForbidden, subject, advice(ErrForbidden))
	}
	if !d.inbox.IsZero() && !d.inbox.Before(t) {
		return fmt.Errorf("%w: %s: no answer can arrive, the inbox is not permitted to this user", ErrForbidden,
			subject)
	}
	return nil
}

// attempts are the requests in flight: a lost connection or a denial ends them at once, instead of after their
// time-out.
type attempts struct {
	mu     sync.Mutex
	next   int
	cancel map[int]context.CancelFunc
}

// enter starts an attempt; the returned function ends it.
func (a *attempts) enter(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeoutMS*time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancel == nil {
		a.cancel = map[int]context.CancelFunc{}
	}
	a.next++
	id := a.next
	a.cancel[id] = cancel
	return ctx, func() {
		cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.cancel, id)
	}
}

// cut ends all attempts.
func (a *attempts) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.cancel {
		cancel()
	}
}

// checkCreds refuses an invalid credentials file before the broker is asked repeatedly.
func checkCreds(path string) error {
	if path == "" {
		return nil
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: credentials: %w", ErrForbidden, err)
	}
	if _, err = nkeys.ParseDecoratedJWT(body); err == nil {
		_, err = nkeys.ParseDecoratedUserNKey(body)
	}
	if err != nil {
		return fmt.Errorf("%w: credentials %s: %w", ErrForbidden, path, err)
	}
	return nil
}
