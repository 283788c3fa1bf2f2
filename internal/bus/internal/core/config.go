package core

import (
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/priority"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// InProcess is an embedded server, reached without a socket.
type InProcess interface {
	// InProcessConn is a new connection to the server.
	InProcessConn() (net.Conn, error)
}

// syncing is an embedded server that reports whether it syncs each write.
type syncing interface{ SyncsEach() bool }

// Config configures a connection. The zero value of each field means its default.
type Config struct {
	// URL of the broker, nats://host:port, several separated by commas. May be empty when Server is set.
	URL string
	// Server is an embedded broker; it takes the place of URL.
	Server InProcess
	// Synced: the broker is one node that syncs each write before it acknowledges it, so concurrent writes are sent
	// together. Default: Server decides. Wrongly set: concurrent writes take a few milliseconds longer.
	Synced bool
	// Headers are sent when the URL is that of a broker's websocket, such as a Cookie with the login. Default: none.
	Headers http.Header
	// Creds is the path of a credentials file; none by default.
	Creds string
	// PasswordFile is the path of a file with the password of the user in URL. Default: the URL has it.
	PasswordFile string
	// NKey is the path of a file with the seed of an nkey to log in with; none by default.
	NKey string
	// TLSCA is the path of a file with the authorities whose certificates a broker may show, in PEM. Default: the
	// system's.
	TLSCA string
	// TLSCert and TLSKey are the paths of this client's certificate and its key, in PEM; none by default.
	TLSCert, TLSKey string
	// ConsumerKeyFile is the path of a file with a secret, from which the names of this process's durable consumers
	// follow: a user that cannot guess a name cannot let the broker deliver to that consumer. All processes of a
	// service have the same. Default: the names are those of the services, as in a cell without users.
	ConsumerKeyFile string
	// Name of the connection, seen in the broker's monitoring. Default: holdfast.
	Name string
	// Prefix of the cell. Default: hf.
	Prefix string
	// Inbox is the prefix of the subjects that replies arrive on, see [events.Inbox]: in a secured cell a user may
	// subscribe to no other. Default: _INBOX. A connection adds a random token of its own.
	Inbox string
	// Asker is the user on whose behalf requests are sent, if the broker has users. Default: none, as in a cell without
	// users.
	Asker events.Asker
	// Replicas of each stream and bucket, 1, 3 or 5. Default: 1. With too few a lost disk is lost data.
	Replicas int
	// FeedKeptFor is how long the feed keeps facts. Default: 72 h; negative: no feed.
	FeedKeptFor time.Duration
	// LogBytesMax is the size, in bytes, at which the log refuses new commits. Default: 0, no limit but the disk's.
	LogBytesMax int64
	// ObjectBytesMax is the size, in bytes, at which large contents are refused. Default: 0, no limit but the disk's.
	ObjectBytesMax int64
	// Log takes one line for each lost and regained connection. Default: nothing is logged.
	Log zerolog.Logger
	// Trying receives the error of each attempt of [Open] that failed, in place of Log. Default: Log.
	Trying func(error)
}

// prioritizing is an embedded server whose gate is shared by its whole process.
type prioritizing interface{ Priority() *priority.Gate }

// gateOf returns the gate of the broker's process, else a new one for this connection.
func gateOf(cfg Config) *priority.Gate {
	if s, ok := cfg.Server.(prioritizing); ok {
		return s.Priority()
	}
	return new(priority.Gate)
}
