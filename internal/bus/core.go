package bus

import "github.com/holdfast-dev/holdfast/internal/bus/internal/core"

// The types that all parts share.
type (
	// Config configures a connection. The zero value of each field means its default.
	Config = core.Config
	// InProcess is an embedded server, reached without a socket.
	InProcess = core.InProcess
	// Message is one message of a stream.
	Message = core.Message
	// AddressError says why a text is no address of a broker.
	AddressError = core.AddressError
	// Pending is a write in flight.
	Pending = core.Pending
)

// ServerVersionMin is the oldest supported broker.
const ServerVersionMin = core.ServerVersionMin

// The errors of all parts. Every error has one of these, or one of pkg/events, in its chain.
var (
	// ErrLostRace means that another writer was first: read the new commits and decide again.
	ErrLostRace = core.ErrLostRace
	// ErrInFlight is an [ErrUnreachable] of a write that was refused for long because writes with its guard were in
	// flight, perhaps an earlier copy of it: the stream's leader may have lost the other nodes, or another client uses
	// the guard. Try again.
	ErrInFlight = core.ErrInFlight
	// ErrLogBehind means that the log ends before a commit that the writer has folded: the broker has lost commits, or
	// an older copy of it was restored. Another attempt fails, too: an operator must decide (`holdfast doctor`).
	ErrLogBehind = core.ErrLogBehind
	// ErrNotFound means that there is no such commit, key or stream: treat it as empty, or set the cell up first.
	ErrNotFound = core.ErrNotFound
	// ErrUnreachable means that the broker did not answer in time; whether a write was stored is unknown: try again.
	ErrUnreachable = core.ErrUnreachable
	// ErrFull means that a limit of the stream or the disk refuses the write: free space or raise the limit.
	ErrFull = core.ErrFull
	// ErrForbidden means that the credentials do not allow it: an operator must change them; another attempt fails,
	// too.
	ErrForbidden = core.ErrForbidden
	// ErrNoJetStream means that the broker, or this account on it, has no JetStream: an operator must enable it.
	ErrNoJetStream = core.ErrNoJetStream
	// ErrNoAnswer is an [ErrUnreachable] of a broker that accepted the connection: its JetStream has no leader, or a
	// node has disabled it because its disk is full. An operator must check the nodes.
	ErrNoAnswer = core.ErrNoAnswer
	// ErrTooOld means that the broker lacks a needed feature: an operator must upgrade it.
	ErrTooOld = core.ErrTooOld
	// ErrNewerLayout means that a later version set up the cell: upgrade this program.
	ErrNewerLayout = core.ErrNewerLayout
	// ErrHalfRestored means that the restore of the log did not end: an operator must remove the streams of the cell
	// and restore it again.
	ErrHalfRestored = core.ErrHalfRestored
	// ErrExists means that the key is taken: choose another, or read who has it.
	ErrExists = core.ErrExists
	// ErrLeaseLost means that another process has the lease, or that it expired: stop all work under it.
	ErrLeaseLost = core.ErrLeaseLost
	// ErrTLS means that no trusted connection to the broker was made: the text names the wrong certificate. It comes
	// with [ErrUnreachable], because certificates are replaced while programs run.
	ErrTLS = core.ErrTLS
)

// Redacted returns a broker's URL, or several separated by commas, for display and logs: without user and password,
// also without a scheme.
func Redacted(urls string) string { return core.Redacted(urls) }

// CheckAddresses returns an [AddressError] for addresses that no connection can be made to: one, or several separated
// by commas.
func CheckAddresses(urls string) error { return core.CheckAddresses(urls) }

// WhyAway returns what an error says about the address at which no broker answers, "" if it says little.
func WhyAway(address string, err error) string { return core.WhyAway(address, err) }

// LoginOf returns the name of the user that logs in, the user in the broker's URL. It is never a token.
func LoginOf(cfg Config) string { return core.LoginOf(cfg) }

// NoCell reports whether an error says that the cell, or a part of it, was not set up.
func NoCell(err error) bool { return core.NoStream(err) }
