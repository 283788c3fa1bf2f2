package harness

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Defaults and limits of [Config].
const (
	ttlDefault         = 15 * time.Second
	ttlMin             = time.Second // the broker knows no shorter one
	bufferFactsDefault = 100_000     // facts
	bufferBytesDefault = 64 << 20    // bytes
)

// LeaseLoss says what a process does when its lease is lost.
type LeaseLoss int

const (
	// LeaseRideOut keeps the contexts of sessions and turns alive while the process takes a new incarnation. Running
	// work continues: a tool, a stream of a model, an Ask. Nothing new begins, because a turn, a call and a question
	// are stored before they begin, and nothing is stored until the new incarnation has claimed the session again, with
	// all its open items. A session that another process took meanwhile is cancelled with [ErrFenced]. The default: an
	// outage of the broker loses nothing.
	LeaseRideOut LeaseLoss = iota
	// LeaseRestart cancels the contexts of all sessions and turns with [ErrLeaseLost], then starts over as LeaseRideOut
	// does. A turn of [Harness.Work] whose handler returned because of that fails as lease_lost and is retried; its
	// open items end with it. For processes whose running tools must not overlap with those of a successor: of a pool
	// whose members may be cut off from the broker one by one.
	LeaseRestart
	// LeaseStop cancels everything with [ErrLeaseLost], for good: connect again.
	LeaseStop
)

// Config says who a harness is and where its cell. Zero fields mean their defaults.
type Config struct {
	// ID is the harness id: an installation, or a pool of workers. It outlives restarts. Required.
	ID string
	// URL of the broker, nats://host:port, several separated by commas. Default: nats://127.0.0.1:4222.
	URL string
	// InProcess is an embedded broker, in place of URL.
	InProcess interface{ InProcessConn() (net.Conn, error) }
	// Creds is the path of a credentials file. Default: none.
	Creds string
	// PasswordFile is the path of a file with the password of the user in URL. Default: the URL has it.
	PasswordFile string
	// NKey is the path of a file with the seed of an nkey to log in with. Default: none.
	NKey string
	// TLSCA is the path of a file with the authorities whose certificates the broker may show, in PEM. Default: the
	// system's.
	TLSCA string
	// TLSCert and TLSKey are the paths of this client's certificate and of its key, in PEM. Default: none.
	TLSCert, TLSKey string
	// Prefix of the cell. Default: hf.
	Prefix string
	// TTL of the lease. Default 15 s, at least 1 s. Too short: a busy machine or a slow broker costs the lease. Too
	// long: recovery waits after a power failure of the machine. The crash of a process is noticed sooner, 1.5 s or a
	// tenth of the TTL after its connection ended; a process that cannot connect again for that long loses the lease
	// as well.
	TTL time.Duration
	// Pool lets several processes of this harness id live at once, each owning its own sessions. Default: a newer
	// process takes the place of all older ones.
	Pool bool
	// OnLeaseLoss says what to do when the lease is lost. Default: [LeaseRideOut].
	OnLeaseLoss LeaseLoss
	// Host and Version are in the lease, for people. Default: the machine's name, and nothing.
	Host, Version string
	// BufferFactsMax and BufferBytesMax bound what waits to be stored in this process, in facts and in bytes of JSON.
	// Defaults: 100,000 and 64 MiB. Too small: calls fail with [ErrBufferFull] in a short outage. Too large: memory.
	BufferFactsMax, BufferBytesMax int
	// Log takes one line for each decision about the lease and about who owns a session. Default: [slog.Default] takes
	// warnings, and what Connect waits for; slog.New(slog.DiscardHandler) takes nothing. Its handler runs on a
	// goroutine of its own, so it may block, and may call the client. Keys: service, session, entity, id, seq, epoch,
	// reason, err, took.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.URL == "" && c.InProcess == nil {
		c.URL = "nats://127.0.0.1:4222"
	}
	if c.TTL == 0 {
		c.TTL = ttlDefault
	}
	if c.Prefix == "" {
		c.Prefix = events.DefaultPrefix
	}
	if c.BufferFactsMax == 0 {
		c.BufferFactsMax = bufferFactsDefault
	}
	if c.BufferBytesMax == 0 {
		c.BufferBytesMax = bufferBytesDefault
	}
	if c.Host == "" {
		// only shown to people
		if name, err := os.Hostname(); err == nil {
			c.Host = name
		}
	}
	return c
}

// Validate reports everything that is wrong, and changes nothing.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	need := func(ok bool, field, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("harness: config: %s: want %s", field, want))
		}
	}
	_, err := events.Token(c.ID)
	need(err == nil, "ID", fmt.Sprintf("1 to %d bytes, encoded; got %.40q", events.TokenBytesMax, c.ID))
	_, err = events.NewCell(c.Prefix)
	need(err == nil, "Prefix",
		fmt.Sprintf("1 to 32 of a–z, 0–9, _ and -, beginning with a letter; got %.40q", c.Prefix))
	need(c.TTL >= ttlMin, "TTL", fmt.Sprintf("%s or more; got %s", ttlMin, c.TTL))
	need(c.OnLeaseLoss >= LeaseRideOut && c.OnLeaseLoss <= LeaseStop, "OnLeaseLoss",
		"LeaseRideOut, LeaseRestart or LeaseStop")
	need(c.BufferFactsMax > 0, "BufferFactsMax", "1 or more")
	need(c.BufferBytesMax > 0, "BufferBytesMax", "1 or more")
	return errors.Join(errs...)
}

// exclusive is what the process says about itself in session.opened and session.claimed; nil is the default, true.
func (c Config) exclusive() *bool {
	if !c.Pool {
		return nil
	}
	no := false
	return &no
}
