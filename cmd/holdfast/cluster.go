package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	page "github.com/holdfast-dev/holdfast/internal/board"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/health"
)

// boardAt is where a board beside a cluster is, and where its brokers are.
type boardAt struct {
	broker    string // a broker's websocket
	origin    string // at which people open the board; "": the address it listens on
	cert, key string // of the board's own TLS
}

func boardCommand(a *app) *cobra.Command {
	var at boardAt
	long, example := describe(`Serve the board, a page on which people see and answer what waits for them, beside a
cluster.

A person logs in with a name and a password of the brokers, which the browser keeps in cookies that no script can
read. The brokers read them and check every request; this process has no login of its own. The brokers need

  websocket {
    port: 8443
    tls { cert_file: "tls.crt", key_file: "tls.key" }
    allowed_origins: ["https://board.example"]
    user_cookie: "`+page.UserCookie+`"
    pass_cookie: "`+page.PasswordCookie+`"
  }

Beyond loopback the board is served with TLS only.`,
		"holdfast board --nats-ws wss://n1.example:8443 --http 0.0.0.0:443 \\\n"+
			"    --origin https://board.example --http-cert tls.crt --http-key tls.key",
		"holdfast board --nats-ws ws://127.0.0.1:8080")
	cmd := &cobra.Command{Use: "board", Short: "Serve the board beside a cluster, with a log-in", Long: long,
		Example: example, GroupID: groupRun, Args: arguments(0, 0)}
	a.addFlags(cmd, []string{"http", "tls-ca", "tls-cert", "tls-key", "prefix", "ready-file", "ready-lag-max",
		"json"})
	cmd.Flags().StringVar(&at.broker, "nats-ws", "", "the `URL` of a broker's websocket")
	cmd.Flags().StringVar(&at.origin, "origin", "",
		"the `URL` at which people open the board (default: the address of --http)")
	cmd.Flags().StringVar(&at.cert, "http-cert", "", "a `file` with the board's certificate, in PEM")
	cmd.Flags().StringVar(&at.key, "http-key", "", "the `file` with the key of --http-cert")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := at.check(); err != nil {
			return usage(cmd, "%v", err)
		}
		return a.bounded(cmd.Context(), func(ctx context.Context) error { return a.serveBoard(ctx, cmd, at) })
	}
	return cmd
}

// check reports addresses that are none, and a certificate that cannot be used.
func (at *boardAt) check() error {
	if at.broker == "" {
		return errors.New("--nats-ws is missing")
	}
	u, err := url.Parse(at.broker)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "ws" && u.Scheme != "wss":
		return fmt.Errorf("--nats-ws %q: want wss://host:port", bus.Redacted(at.broker))
	case u.Scheme == "ws" && !isLoopback(u.Hostname()):
		return fmt.Errorf("--nats-ws %q: passwords go to brokers beyond loopback with TLS only: want wss://", at.broker)
	case u.Port() == "":
		return fmt.Errorf("--nats-ws %q: the port is missing", at.broker)
	}
	if at.origin != "" {
		if at.origin, err = originOf(at.origin); err != nil {
			return err
		}
	}
	if (at.cert == "") != (at.key == "") {
		return errors.New("--http-cert and --http-key: give both or none")
	}
	if at.cert != "" {
		if _, err := tls.LoadX509KeyPair(at.cert, at.key); err != nil {
			return fmt.Errorf("--http-cert: %w", err)
		}
	}
	return nil
}

// secret returns the secret of the proofs that a browser has logged in before. It follows from the key of the board's
// own certificate: the proofs outlive the process, and count at each board with this key. Without one it is nil.
func (at *boardAt) secret() ([]byte, error) {
	if at.key == "" {
		return nil, nil
	}
	key, err := os.ReadFile(at.key)
	if err != nil {
		return nil, fmt.Errorf("--http-key: %w", err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte("holdfast board: browsers that have logged in"))
	return h.Sum(nil), nil
}

// originOf returns an origin as browsers write it.
func originOf(text string) (string, error) {
	u, err := url.Parse(strings.ToLower(text))
	switch {
	case err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("--origin %q: want https://host or https://host:port", text)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "", fmt.Errorf("--origin %q: beyond loopback the board is served with TLS only: want https://", text)
	}
	usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, usual), nil
}

// isLoopback reports whether a host is this machine, by a name that nothing else has.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// serveBoard serves the board until ctx ends.
func (a *app) serveBoard(ctx context.Context, cmd *cobra.Command, at boardAt) error {
	trust, err := a.trust()
	if err != nil {
		return usage(cmd, "%v", err)
	}
	if err := health.RemoveStaleNote(a.readyFile); err != nil {
		return err
	}
	h, err := health.Listen(ctx, a.http, version)
	if err != nil {
		return err
	}
	if len(h.Hosts()) == 0 && (at.cert == "" || at.origin == "") {
		return errors.Join(usage(cmd, "--http %s: beyond loopback the board is served with TLS only, at the address "+
			"that people open: give --http-cert, --http-key and --origin", a.http), h.Close())
	}
	var own *tls.Config
	if at.cert != "" {
		// the files may be replaced
		own = &tls.Config{MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(at.cert, at.key)
				return &pair, err
			}}
	}
	if at.origin == "" {
		at.origin = h.URL()
		if own != nil {
			at.origin = strings.Replace(at.origin, "http://", "https://", 1)
		}
	}
	_, host, _ := strings.Cut(at.origin, "://")
	h.Secure(host, own)
	secret, err := at.secret()
	if err != nil {
		return errors.Join(err, h.Close())
	}
	handler, err := page.NewCluster(page.Cell{Prefix: a.prefix, Version: version},
		page.Cluster{Origin: at.origin, Broker: at.broker, TLS: trust, Doctor: a.doctorBeside(at), Secret: secret})
	if err != nil {
		return errors.Join(err, h.Close())
	}
	h.Handle("/", handler)
	h.OnEnd(handler.Close)
	h.Started()
	err = control.Together(ctx, h.Run, func(context.Context) error { return a.boardReady(h, at) })
	return errors.Join(err, health.RemoveNote(a.readyFile))
}

// doctorBeside returns a doctor that examines the cell as the person who looks at the board: its connections have the
// login of that person, and the brokers check what it reads.
func (a *app) doctorBeside(at boardAt) page.Doctor {
	return func(ctx context.Context, who page.Login) any {
		as := *a
		as.nats, as.by = at.broker, who.Name
		cfg := as.busConfig("doctor")
		cfg.Headers = who.Headers
		return as.examined(ctx, at.broker, func(ctx context.Context) (*bus.Bus, error) { return bus.Open(ctx, cfg) })
	}
}

// boardReady says where the board is.
func (a *app) boardReady(h *health.Server, at boardAt) error {
	note := health.Note{NATS: at.broker, HTTP: h.URL(), PID: os.Getpid()}
	if err := note.Write(a.readyFile); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(note)
	}
	return a.print(fmt.Sprintf("holdfast %s serves the board (process %d)\n  board   %s/\n  broker  %s\n"+
		"  health  %s/readyz\n", version, note.PID, at.origin, at.broker, note.HTTP))
}

// trust is the trust in the brokers' certificates, and this client's own certificate; nil is the system's trust.
func (a *app) trust() (*tls.Config, error) {
	if a.tlsCA == "" && a.tlsCert == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.tlsCA != "" {
		body, err := os.ReadFile(a.tlsCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(body) {
			return nil, fmt.Errorf("--tls-ca %s: no certificate in PEM", a.tlsCA)
		}
	}
	if a.tlsCert != "" {
		if _, err := tls.LoadX509KeyPair(a.tlsCert, a.tlsKey); err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(a.tlsCert, a.tlsKey)
			return &pair, err
		}
	}
	return cfg, nil
}
