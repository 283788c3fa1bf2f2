package core

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// AddressError says why a text is no address of a broker: what a person has to correct. It has no password.
type AddressError struct {
	Address string // without user and password
	Why     string
}

// Error implements error.
func (e *AddressError) Error() string {
	return fmt.Sprintf("%q is no address of a broker: %s", e.Address, e.Why)
}

// schemes of a broker's address.
var schemes = []string{"nats", "tls", "ws", "wss"}

// CheckAddresses returns an [AddressError] for addresses that no connection can be made to: one, or several separated
// by commas, of which empty ones are ignored, as the client library does.
func CheckAddresses(urls string) error {
	// by: is it a websocket
	some, kinds := false, map[bool]bool{}
	for one := range strings.SplitSeq(urls, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		u, why := readAddress(one)
		if why != "" {
			return &AddressError{Redacted(one), why}
		}
		some, kinds[strings.HasPrefix(u.Scheme, "ws")] = true, true
	}
	switch {
	case !some:
		return &AddressError{Redacted(urls), "it is empty"}
	case len(kinds) > 1:
		return &AddressError{Redacted(urls), "websockets (ws, wss) and others are mixed"}
	}
	return nil
}

// readAddress reads one address as the client library does, and says what is wrong with it. The parser's text is not
// in the reason: it may have a part of a password.
func readAddress(one string) (u *url.URL, why string) {
	whole := func(text string) string {
		if !strings.Contains(text, "://") {
			return "nats://" + text
		}
		return text
	}
	if scheme, _, named := strings.Cut(one, "://"); named && !slices.Contains(schemes, strings.ToLower(scheme)) {
		return nil, "its scheme is not one of " + strings.Join(schemes, ", ")
	}
	shown := whole(Redacted(one))
	open, err := url.Parse(shown)
	if err != nil {
		return nil, whyUnreadable(shown, err)
	}
	u, err = url.Parse(whole(one))
	if err != nil || u.Host != open.Host {
		return nil, "its user or password has a character that needs its code there: %23 for #, %2F for /, " +
			"%3F for ?, %25 for %, %20 for a space"
	}
	if u.Hostname() == "" {
		return nil, "it has no host"
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return nil, fmt.Sprintf("its port is %s, not one of 1 to 65535", u.Port())
	}
	return u, ""
}

// whyUnreadable returns what is wrong with a URL without a login that the parser refuses.
func whyUnreadable(shown string, err error) string {
	if strings.ContainsAny(shown, " \t\r\n") {
		return "it has a space"
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
