package core

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestAddresses: what no connection can be made to is named with its reason, and without its password.
func TestAddresses(t *testing.T) {
	const code = "its user or password has a character that needs its code"
	for urls, want := range map[string]string{
		"nats://127.0.0.1:4222": "", "127.0.0.1:4222": "", "localhost": "", "nats://broker:": "", "NATS://b:4222": "",
		"tls://ann:s%23cret@broker:4222/": "", "t0ken@broker": "", "nats://[::1]:4222": "",
		"b1:4222, b2,,nats://b3": "",
		"wss://b:443,ws://b":     "", "nats_1.example": "",
		"nats://ann:s3cret@x@broker:4222": "",
		"foo bar":                         "it has a space",
		"nats://foo bar:4222":             "it has a space",
		"b1,foo bar":                      "it has a space",
		"http://127.0.0.1:4222":           "its scheme is not one of nats, tls, ws, wss",
		"://b":                            "its scheme is not one of nats, tls, ws, wss",
		"nats://a:99999":                  "its port is 99999, not one of 1 to 65535",
		"a:0":                             "its port is 0, not one of 1 to 65535",
		"a:b":                             `invalid port ":b" after host`,
		"nats://ann:s3cret@a:b":           `invalid port ":b" after host`,
		"nats://[::1":                     "missing ']' in host",
		"%zz":                             `invalid URL escape "%zz"`,
		"/tmp/nats.sock":                  "it has no host",
		":4222":                           "it has no host",
		"nats://ann@":                     "it has no host",
		"":                                "it is empty",
		" , ":                             "it is empty",
		"ws://b1:80,nats://b2":            "websockets (ws, wss) and others are mixed",
		"nats://ann:s3cret#x@broker:4222": code,
		"nats://ann:s3cret/x@broker:4222": code,
		"nats://ann:s3cret?x@broker:4222": code,
		"nats://ann:s3cret%x@broker:4222": code,
		"nats://ann:s3cret x@broker:4222": code,
	} {
		err := CheckAddresses(urls)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", urls, err)
			}
			continue
		}
		if e, ok := errors.AsType[*AddressError](err); !ok || !strings.HasPrefix(e.Why, want) {
			t.Errorf("%q: %v, want %q", urls, err, want)
		} else if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "ann") {
			t.Errorf("the login is in the error: %v", err)
		}
	}
}

// TestOpenTriesNoWrongAddress: an attempt that cannot succeed ends at once.
func TestOpenTriesNoWrongAddress(t *testing.T) {
	for _, urls := range []string{"foo bar", "nats://127.0.0.1:99999", "/tmp/nats.sock"} {
		// it would try until then
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		began := time.Now()
		_, err := Open(ctx, Config{URL: urls})
		cancel()
		if _, ok := errors.AsType[*AddressError](err); !ok || !errors.Is(err, ErrUnreachable) {
			t.Errorf("%q: %v after %s", urls, err, time.Since(began))
		}
	}
}
