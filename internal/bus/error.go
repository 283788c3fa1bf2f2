package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// What can go wrong at the door. Every error of this package has one of these, or one of pkg/events, in its chain.
var (
	// ErrLostRace says somebody else wrote first: read what is new and decide again.
	ErrLostRace = errors.New("bus: lost race")
	// ErrLogBehind says the log ends before a commit that the writer has folded: the broker has lost commits, or an older
	// copy of it was restored. Trying again is of no use: an operator must decide (`holdfast doctor`).
	ErrLogBehind = errors.New("bus: the log has lost commits")
	// ErrNotFound says there is no such commit, key or stream: treat it as empty, or set the cell up first.
	ErrNotFound = errors.New("bus: not found")
	// ErrUnreachable says the broker did not answer in the time given; whether a write was stored is unknown: try again.
	ErrUnreachable = errors.New("bus: broker unreachable")
	// ErrFull says a limit of the stream or the disk refuses the write: free room or raise the limit.
	ErrFull = errors.New("bus: full")
	// ErrForbidden says the credentials do not allow it: an operator must change them; trying again is of no use.
	ErrForbidden = errors.New("bus: forbidden")
	// ErrNoJetStream says the broker, or this account on it, has no JetStream: an operator must switch it on.
	ErrNoJetStream = errors.New("bus: no JetStream")
	// ErrNoAnswer is an [ErrUnreachable] of a broker that accepted the connection: its JetStream has no leader, or a node has
	// switched it off because its disk is full. An operator must look at the nodes.
	ErrNoAnswer = fmt.Errorf("%w: JetStream does not answer", ErrUnreachable)
	// ErrTooOld says the broker lacks what is needed: an operator must upgrade it.
	ErrTooOld = errors.New("bus: broker too old")
	// ErrNewerLayout says the cell was set up by a later version: upgrade this program.
	ErrNewerLayout = errors.New("bus: newer layout")
	// ErrExists says the key is taken: choose another, or read who has it.
	ErrExists = errors.New("bus: exists")
	// ErrLeaseLost says the lease is no longer ours: stop all work done under it.
	ErrLeaseLost = errors.New("bus: lease lost")
)

// ServerVersionMin is the oldest broker that will do: it is the first that can reset a consumer, which the clean
// hand-over of ordered delivery needs. (Message schedules came with 2.12, per-message TTL and pinned consumers with 2.11.)
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
	codeStoreFailed        = 10077 // its text says why: "maximum … exceeded" when a limit of the stream refuses
	codeStreamOffline      = 10118
	codeConsumerOffline    = 10119
	codeGuardNotReady      = 10163 // another write under the same guard is still under way
	codeStreamOfflineWhy   = 10194
	codeConsumerOfflineWhy = 10195
)

// translate turns an error of the client or the server into one of ours; op says what was done and about whom. An error
// that is ours already, or that has no equivalent, keeps its chain.
func translate(op string, err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil {
		if errors.Is(err, kind) {
			return fmt.Errorf("bus: %s: %w", op, err)
		}
		return fmt.Errorf("%w: %s: %w%s", kind, op, err, advice(kind))
	}
	return fmt.Errorf("bus: %s: %w", op, err)
}

// advice is what to do about errors that a person must solve.
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

// kindOf is which of our errors this is; nil for none.
func kindOf(err error) error {
	for _, ours := range []error{ErrLostRace, ErrLogBehind, ErrNotFound, ErrUnreachable, ErrFull, ErrForbidden, ErrNoJetStream, ErrTooOld,
		ErrNewerLayout, ErrExists, ErrLeaseLost} {
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
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted): // others have a code
		return ErrNotFound
	case isAway(err):
		return ErrUnreachable
	default:
		return nil
	}
}

// kindOfCode is the table of foreign codes.
func kindOfCode(e *jetstream.APIError) error {
	switch e.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return ErrLostRace
	case jetstream.JSErrCodeMessageNotFound, jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeConsumerNotFound, jetstream.JSErrCodeConsumerDoesNotExist:
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
	case codeNoPeers, codeClusterAway, codeNotLeader, codeGuardNotReady, codeStreamOffline, codeConsumerOffline, codeStreamOfflineWhy,
		codeConsumerOfflineWhy:
		return ErrUnreachable
	default:
		return nil
	}
}

// noStream tells a missing stream from a missing message: both are [ErrNotFound], but only one is an answer.
func noStream(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamNotFound
}

// isAuth is whether the broker refuses to let us in. While connecting the client library says so in words only.
func isAuth(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "authentication expired") || strings.Contains(text, "authentication revoked") ||
		strings.Contains(text, "authorization violation")
}

// isAway is whether the broker, or the stream's leader, cannot be reached for the moment.
func isAway(err error) bool {
	for _, away := range []error{nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionClosed, nats.ErrNoServers,
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrConnectionDraining, nats.ErrStaleConnection,
		jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, jetstream.ErrTooManyStalledMsgs, jetstream.ErrNoHeartbeat,
		jetstream.ErrServerShutdown, jetstream.ErrConnectionClosed, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerLeadershipChanged,
		context.DeadlineExceeded} {
		if errors.Is(err, away) {
			return true
		}
	}
	return false
}

// unreachable says that the time given was over before the broker answered, and what the last trouble was.
func unreachable(op string, cause error) error {
	if errors.Is(cause, ErrForbidden) || errors.Is(cause, ErrUnreachable) {
		return cause
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, op, cause)
}

// Redacted is a broker's URL, or several separated by commas, as it may be shown and logged: without user and password,
// also where the scheme was left out.
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

// newEnough is whether a broker's version is ServerVersionMin or later. A suffix such as -RC.1 is not looked at.
func newEnough(version string) bool {
	have, want := numbers(version), numbers(ServerVersionMin)
	for i := range want {
		if have[i] != want[i] {
			return have[i] > want[i]
		}
	}
	return true
}

// numbers are the three parts of a version; what cannot be read counts as 0.
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

// deniedMax bounds the subjects remembered as denied; past it all are forgotten, which costs a time-out, not truth.
const deniedMax = 1024

// denials remembers what the broker refused without an answer: forbidden publishes and subscriptions show only as an
// asynchronous error, and whoever waits for the answer must be told.
type denials struct {
	mu      sync.Mutex
	at      map[string]time.Time // by subject
	inbox   time.Time            // when the subscription that answers come to was denied
	changed chan struct{}        // closed and replaced at each denial
}

func newDenials() *denials {
	return &denials{at: map[string]time.Time{}, changed: make(chan struct{})}
}

// add takes the subject out of the error's text: … for Publish to "subject".
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

// next is closed at the next denial of anything.
func (d *denials) next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// since is [ErrForbidden] if this subject, or the inbox that answers come to, was denied at t or later.
func (d *denials) since(subject string, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.at[subject]; ok && !at.Before(t) {
		return fmt.Errorf("%w: %s: not permitted to this user%s", ErrForbidden, subject, advice(ErrForbidden))
	}
	if !d.inbox.IsZero() && !d.inbox.Before(t) {
		return fmt.Errorf("%w: %s: no answer can arrive, the inbox is not permitted to this user", ErrForbidden, subject)
	}
	return nil
}

// attempts are the requests under way: a lost connection or a denial ends them at once, instead of after their time-out.
type attempts struct {
	mu     sync.Mutex
	next   int
	cancel map[int]context.CancelFunc
}

// enter begins an attempt; the returned function ends it.
func (a *attempts) enter(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeoutMS*time.Millisecond)
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

// cut ends all attempts under way.
func (a *attempts) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.cancel {
		cancel()
	}
}

// checkCreds refuses a credentials file that is none before the broker is asked again and again.
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
