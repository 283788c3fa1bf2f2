package board

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// errRefused means that the brokers refuse the name or the password.
var errRefused = errors.New("the brokers refuse the name or the password")

const (
	tryFor        = 3 * time.Second // limits one attempt
	frameBytesMax = 64 << 10        // of one message of a broker; its INFO names the nodes of the cluster
)

// Parts of a websocket's frame, RFC 6455 section 5.2.
const (
	frameBinary  = 0x82 // the only frame of a message
	frameMasked  = 0x80 // a client's frame has a mask
	frameLength  = 0x7f
	frameLength2 = 126 // the length is in the two bytes that follow
)

// try opens a websocket to a broker as the page would, with these headers and no login of its own, and closes it. It
// sends all that it sends in one frame: a broker that refuses the login closes the connection at once, and a client
// that still writes does not read why.
func try(ctx context.Context, address string, trust *tls.Config, headers http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if at.Scheme == "wss" {
		cfg := &tls.Config{MinVersion: tls.VersionTLS12}
		if trust != nil {
			cfg = trust.Clone()
		}
		cfg.ServerName = at.Hostname()
		conn = tls.Client(conn, cfg)
	}
	r, err := openSocket(ctx, conn, at.Host, headers)
	if err != nil {
		return err
	}
	return converse(conn, r)
}

// openSocket makes a websocket of a connection, and returns what reads it.
func openSocket(ctx context.Context, conn net.Conn, host string, headers http.Header) (*bufio.Reader, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header = headers.Clone()
	key := make([]byte, 16)
	rand.Read(key)
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": base64.StdEncoding.EncodeToString(key)} {
		req.Header.Set(name, value)
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		return r, nil
	case http.StatusForbidden:
		return nil, fmt.Errorf("the broker accepts no websockets of %s: add it to allowed_origins",
			headers.Get("Origin"))
	}
	return nil, fmt.Errorf("the broker answers a websocket with %s", resp.Status)
}

// converse reads what the broker says after a CONNECT without a login.
func converse(w io.Writer, r *bufio.Reader) error {
	// INFO
	if _, err := message(r); err != nil {
		return err
	}
	text := "CONNECT {\"verbose\":false,\"lang\":\"board\",\"version\":\"1\",\"protocol\":1}\r\nPING\r\n"
	// hides nothing, and is one
	mask := "\x00\x00\x00\x00"
	if _, err := io.WriteString(w, string([]byte{frameBinary, frameMasked | byte(len(text))})+mask+text); err != nil {
		return err
	}
	for {
		info, err := message(r)
		if err != nil {
			return err
		}
		for line := range strings.Lines(info) {
			lower := strings.ToLower(line)
			switch {
			case strings.HasPrefix(lower, "pong"):
				return nil
			case strings.HasPrefix(lower, "-err") && (strings.Contains(lower, "authorization violation") ||
				strings.Contains(lower, "authentication expired") || strings.Contains(lower, "authentication revoked")):
				return errRefused
			case strings.HasPrefix(lower, "-err"):
				return fmt.Errorf("the broker says %q", strings.TrimSpace(line))
			}
		}
	}
}

// message reads one frame of the broker.
func message(r *bufio.Reader) (string, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", err
	}
	length := int(head[1] & frameLength)
	switch {
	case length == frameLength2:
		if _, err := io.ReadFull(r, head); err != nil {
			return "", err
		}
		length = int(binary.BigEndian.Uint16(head))
	case length > frameLength2:
		return "", fmt.Errorf("the broker sends a frame of more than %d bytes", frameBytesMax)
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	return string(body), err
}
