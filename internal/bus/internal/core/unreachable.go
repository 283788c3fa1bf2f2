package core

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
)

// WhyAway returns what an error says about the address at which no broker answers, "" if it says little. Of several
// addresses the client library reports the last one only, so nothing is known.
func WhyAway(address string, err error) string {
	var name *net.DNSError
	var socket *net.OpError
	switch {
	case strings.Contains(address, ","):
		return ""
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, syscall.ECONNREFUSED):
		// so it reports a refused connection
		return "nothing listens there"
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("there is no host %q", name.Name)
	case errors.As(err, &socket) && socket.Op == "read", errors.Is(err, nats.ErrNoInfoReceived):
		return "a program listens there, but does not answer as a broker"
	}
	return ""
}
