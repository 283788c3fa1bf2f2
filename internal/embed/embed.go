// Package embed runs a NATS server with JetStream on disk inside this process, for one data directory at a time.
//
// The package owns a directory that has the marker file. It refuses any other directory that is not empty, so that a
// store never mixes with other files. A lock on the directory refuses a second server on the same data; the operating
// system ends the lock with the process. The package handles no signals and never ends the process: a fatal error of
// nats-server is the error of [Start], or a line in the log.
package embed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/priority"
)

const (
	readyPollMS = 5     // how often a starting server is polled
	readyWaitMS = 1     // how long each poll waits
	randomPort  = -1    // any port, for nats-server
	handshakeS  = 2     // for the handshake of a websocket
	queuedMax   = 1_024 // requests to the API that wait, in each of two queues: the server holds their bodies
	closedMax   = 1_024 // ended connections that the server knows: each question sorts all of them
)

const loopback = "127.0.0.1"

// Config configures a server. The zero value of each field except Dir is its default.
type Config struct {
	// Dir is the data directory. It is created if it does not exist. Required.
	Dir string
	// Listen is host:port for clients; port 0 is any free one. Default: no socket, only in-process connections.
	Listen string
	// Name of the server, unique in a cluster and kept across restarts. Default: a new one at each start.
	Name string
	// SyncAlways syncs every write to disk before it is acknowledged. Without it a power failure loses up to two
	// minutes of acknowledged writes. A killed process loses nothing in either case.
	SyncAlways bool
	// Group syncs writes in groups, after the server has acknowledged them: [Server.Synced] waits for that. The name of
	// the server begins with [GroupPrefix] then. Only a single server, without SyncAlways, where [CanGroup]. Default:
	// off.
	Group bool
	// RewriteEvery is how often the server writes blocks again that have mostly removed messages. Default: 2 min.
	RewriteEvery time.Duration
	// File is a nats-server configuration file for all other settings: accounts, permissions, limits. Default: none.
	File string
	// Cluster joins the server to others. Default: a single server.
	Cluster *Cluster
	// WebsocketOrigins are the origins, such as http://127.0.0.1:8480, whose pages may open a websocket. The server
	// then listens for websockets on any port of loopback, without TLS. Default: no websockets.
	WebsocketOrigins []string
	// Mend names streams whose files are checked before the server starts. A damaged file is copied to the directory
	// "damaged" below Dir and written again without its unreadable parts. Default: none. Each start reads these streams
	// completely.
	Mend []string
	// Log receives the server's warnings and errors. Default: no log.
	Log zerolog.Logger
}

// Cluster configures how a server finds the others.
type Cluster struct {
	Name   string   // the same on all of them
	Listen string   // host:port for the others
	Routes []string // nats://host:port of each, this one may be among them
}

// Server is one running server.
type Server struct {
	cfg  Config
	srv  *server.Server
	lock *lock
	done chan struct{}
	once sync.Once

	damages []Damage
	gate    priority.Gate

	group    *group // nil: without groups
	endGroup func() // ends the group and waits for that
	failed   chan error
}

// Start runs a server and returns when it accepts connections. It fails with [ErrDirInUse], [ErrNotOurs],
// [ErrNewerData], [ErrForeignFile], [ErrPortInUse], or with the error of nats-server. ctx limits only the
// start; end a running server with [Server.Shutdown].
func Start(ctx context.Context, cfg Config) (*Server, error) {
	opts, err := options(cfg)
	if err != nil {
		return nil, err
	}
	l, err := openDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, lock: l, done: make(chan struct{}), failed: make(chan error, 1)}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	for _, d := range s.damages {
		cfg.Log.Error().
			Str("service", "broker").
			Str("entity", d.Path).
			Msgf("%d bytes from %d on cannot be read: the file is kept as it was in %s", d.Bytes, d.Offset, keptDir)
	}
	if err := s.start(ctx, opts); err != nil {
		return nil, errors.Join(err, l.release())
	}
	if !opts.DontListen {
		s.cfg.Listen = s.srv.Addr().String()
	}
	return s, nil
}

// prepare makes the files readable for the server that starts next.
func (s *Server) prepare() error {
	m := mirror{s.cfg.Dir}
	cut, err := m.prepare()
	if err != nil {
		return err
	}
	if s.damages, err = mend(s.cfg.Dir, s.cfg.Mend, cut); err != nil {
		return err
	}
	if cut {
		s.cfg.Log.Warn().Str("service", "broker").Msg("the machine ended without a sync: the store was restored")
		if err := m.moveAhead(); err != nil {
			return err
		}
	}
	if s.cfg.Group {
		s.group, err = newGroup(s.cfg.Dir, func(err error) { s.failed <- err }, s.cfg.Log)
		return err
	}
	if _, exists, err := m.state(); err != nil || !exists {
		return err
	}
	if err := syncTree(filepath.Join(s.cfg.Dir, storeDir)); err != nil {
		return err
	}
	return m.remove()
}

// start runs the server and waits until it is ready, has failed, or ctx ends. It shuts down a server that is not ready.
func (s *Server) start(ctx context.Context, opts *server.Options) error {
	for _, addr := range []string{s.cfg.Listen, s.clusterListen()} {
		if err := free(ctx, addr); err != nil {
			return err
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	fatal := make(chan string, 1)
	srv.SetLoggerV2(&logger{log: s.cfg.Log, fatal: fatal}, false, false, false)
	started := make(chan struct{})
	go func() {
		srv.Start()
		close(started)
	}()
	poll := time.NewTicker(readyPollMS * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case text := <-fatal:
			err = s.fatal(text)
		case <-ctx.Done():
			err = fmt.Errorf("start: %w", ctx.Err())
		case <-poll.C:
			if !srv.ReadyForConnections(readyWaitMS * time.Millisecond) {
				continue
			}
		}
		break
	}
	if err != nil {
		srv.Shutdown()
		<-started
		srv.WaitForShutdown()
		return err
	}
	s.srv = srv
	if s.group == nil {
		return nil
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.group.run(running)
	}()
	s.endGroup = func() {
		end()
		<-ended
	}
	return nil
}

func (s *Server) clusterListen() string {
	if s.cfg.Cluster == nil {
		return ""
	}
	return s.cfg.Cluster.Listen
}

// free fails with [ErrPortInUse] if another process listens on addr; "" and port 0 are always free.
func free(ctx context.Context, addr string) error {
	if addr == "" || strings.HasSuffix(addr, ":0") {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return portInUse(addr)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l.Close()
}

// fatal returns the error for a fatal log line of nats-server.
func (s *Server) fatal(text string) error {
	if strings.Contains(text, syscall.EADDRINUSE.Error()) {
		return portInUse(s.cfg.Listen)
	}
	return fmt.Errorf("start: %s", text)
}

// options returns the options of nats-server for a Config.
func options(cfg Config) (*server.Options, error) {
	if cfg.Dir == "" {
		return nil, fmt.Errorf("%w: no data directory is given", ErrNotOurs)
	}
	var err error
	o := new(server.Options)
	if cfg.File != "" {
		if o, err = server.ProcessConfigFile(cfg.File); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", cfg.File, err)
		}
	}
	o.ServerName, o.StoreDir, o.SyncAlways, o.DontListen = cfg.Name, cfg.Dir, cfg.SyncAlways, cfg.Listen == ""
	o.JetStream, o.NoSigs, o.NoLog = true, true, true
	o.MaxClosedClients = closedMax
	if cfg.RewriteEvery > 0 {
		o.SyncInterval = cfg.RewriteEvery
	}
	if cfg.Group {
		if cfg.SyncAlways || cfg.Cluster != nil || !CanGroup() {
			return nil, errors.New("syncs in groups are for a single server, on a system with hard links and synced " +
				"directories")
		}
		o.ServerName = GroupPrefix + nuid.Next()
	}
	// not in the file
	if o.JetStreamRequestQueueLimit == 0 {
		o.JetStreamRequestQueueLimit, o.JetStreamInfoQueueLimit = queuedMax, queuedMax
	}
	if cfg.Listen != "" {
		if o.Host, o.Port, err = hostPort(cfg.Listen); err != nil {
			return nil, err
		}
	}
	if len(cfg.WebsocketOrigins) > 0 {
		// Without the exact origins every page that a browser on this machine shows could connect.
		o.Websocket = server.WebsocketOpts{Host: loopback, Port: randomPort, NoTLS: true,
			AllowedOrigins: cfg.WebsocketOrigins, HandshakeTimeout: handshakeS * time.Second}
	}
	if cfg.Cluster == nil {
		return o, nil
	}
	o.Cluster.Name = cfg.Cluster.Name
	if o.Cluster.Host, o.Cluster.Port, err = hostPort(cfg.Cluster.Listen); err != nil {
		return nil, err
	}
	o.Routes = server.RoutesFromStr(strings.Join(cfg.Cluster.Routes, ","))
	return o, nil
}

// hostPort splits an address. Port 0 becomes [randomPort].
func hostPort(addr string) (string, int, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("listen on %q: want host:port: %w", addr, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("listen on %q: want a port from 0 to 65535", addr)
	}
	if n == 0 {
		return host, randomPort, nil
	}
	return host, int(n), nil
}

// URL returns the address for clients, "" without a socket.
func (s *Server) URL() string {
	if s.cfg.Listen == "" {
		return ""
	}
	return "nats://" + reachable(s.cfg.Listen)
}

// reachable returns the address at which this machine reaches what listens on an address: loopback for all addresses.
func reachable(at string) string {
	host, port, err := net.SplitHostPort(at)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return at
}

// WebsocketAddr returns host:port for websockets, "" when the server accepts none.
func (s *Server) WebsocketAddr() string {
	at, err := url.Parse(s.srv.WebsocketURL())
	// nats-server builds it from its own address
	if err != nil || at.Port() == "0" {
		return ""
	}
	return at.Host
}

// Config returns the Config of the running server, with the port that the system chose.
func (s *Server) Config() Config { return s.cfg }

// Leads reports whether this server leads the JetStream of its cluster. Streams can be created only when some server
// leads.
func (s *Server) Leads() bool { return s.srv.JetStreamIsLeader() }

// SyncsEach reports whether this server syncs each write before it acknowledges it. (In a cluster it syncs the
// replicated writes later.)
func (s *Server) SyncsEach() bool { return s.cfg.SyncAlways && s.cfg.Cluster == nil }

// EndedConnections returns this server's id and the numbers of up to limit connections that their clients have ended,
// or that broke. Those that the server closed itself are not among them.
func (s *Server) EndedConnections(limit int) (id string, clients []uint64, err error) {
	all, err := s.srv.Connz(&server.ConnzOptions{State: server.ConnClosed, Sort: server.ByStop, Limit: limit})
	if err != nil {
		return "", nil, fmt.Errorf("connections: %w", err)
	}
	for _, c := range all.Conns {
		switch c.Reason {
		case server.ClientClosed.String(), server.ReadError.String(), server.WriteError.String():
			clients = append(clients, c.Cid)
		}
	}
	return all.ID, clients, nil
}

// OpenConnections returns the names of up to limit open connections, the newest first.
func (s *Server) OpenConnections(limit int) (names []string, err error) {
	all, err := s.srv.Connz(&server.ConnzOptions{Sort: server.ByUptime, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("connections: %w", err)
	}
	for _, c := range all.Conns {
		names = append(names, c.Name)
	}
	return names, nil
}

// Damages returns the unreadable parts that Start found in the files of [Config.Mend].
func (s *Server) Damages() []Damage { return s.damages }

// Priority returns the gate by which batch work in this process yields to time-critical work.
func (s *Server) Priority() *priority.Gate { return &s.gate }

// StoreBytesMax returns the maximum size of the store: three quarters of the free disk space at the start, unless the
// configuration sets it.
func (s *Server) StoreBytesMax() int64 {
	if c := s.srv.JetStreamConfig(); c != nil {
		return c.MaxStore
	}
	return 0
}

// InProcessConn returns a new connection without a socket.
func (s *Server) InProcessConn() (net.Conn, error) {
	c, err := s.srv.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// Shutdown ends the server and returns when all data is on disk and the directory is unlocked. Another call only waits.
func (s *Server) Shutdown() {
	s.once.Do(func() {
		if s.group != nil {
			s.endGroup()
		}
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
		if err := s.syncAll(); err != nil {
			s.cfg.Log.Error().AnErr("err", err).Str("service", "broker").Msg("the store is not synced")
		}
		if err := s.lock.release(); err != nil {
			s.cfg.Log.Warn().AnErr("err", err).Str("service", "broker").Msg("data directory not unlocked")
		}
		close(s.done)
	})
	<-s.done
}

// syncAll syncs the files of a group whose server has ended. After a sync that has failed it does nothing: the next one
// may succeed although the data is lost.
func (s *Server) syncAll() error {
	if s.group == nil || errors.Is(s.group.err, ErrSyncFailed) {
		return nil
	}
	return s.group.end()
}

// SyncsInGroups reports whether this server acknowledges writes before they are synced ([Config.Group]).
func (s *Server) SyncsInGroups() bool { return s.group != nil }

// Synced waits until a stream is synced up to a sequence, or, for one that was not stored, until one sync has ended. It
// returns how far the stream is synced. It fails with [ErrSyncFailed], or when ctx or the server ends.
func (s *Server) Synced(ctx context.Context, stream string, seq uint64) (mark uint64, err error) {
	if s.group == nil {
		return 0, fmt.Errorf("%s: this server does not sync in groups", stream)
	}
	return s.group.synced(ctx, stream, seq)
}

// SyncFailed receives the error of a sync. From then on nothing is acknowledged, and only a new start helps, after a
// look at the disk.
func (s *Server) SyncFailed() <-chan error { return s.failed }

// Done is closed when Shutdown has finished.
func (s *Server) Done() <-chan struct{} { return s.done }

// logger logs warnings and errors, and keeps the first fatal line of nats-server.
type logger struct {
	log   zerolog.Logger
	fatal chan<- string // room for one: the first is the cause
}

// Noticef implements [server.Logger]. Notices are not logged.
func (l *logger) Noticef(string, ...any) {}

// Debugf implements [server.Logger].
func (l *logger) Debugf(string, ...any) {}

// Tracef implements [server.Logger].
func (l *logger) Tracef(string, ...any) {}

// plainWebsocket begins a warning about websockets without TLS. Ours are on loopback only.
const plainWebsocket = "Websocket not configured with TLS"

// Warnf implements [server.Logger].
func (l *logger) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, plainWebsocket) {
		return
	}
	l.log.Warn().Str("service", "broker").Msgf(format, v...)
}

// Errorf implements [server.Logger].
func (l *logger) Errorf(format string, v ...any) {
	l.log.Error().Str("service", "broker").Msgf(format, v...)
}

// Fatalf implements [server.Logger]. It does not end the process.
func (l *logger) Fatalf(format string, v ...any) {
	l.log.Error().Str("service", "broker").Msgf(format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
