package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestForeignErrorsBecomeOurs(t *testing.T) {
	code := func(n int, text string) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{ErrorCode: jetstream.ErrorCode(n), Description: text})
	}
	for name, c := range map[string]struct{ err, want error }{
		"lost race, one node":       {code(10071, "wrong last sequence: 3"), ErrLostRace},
		"lost race, three nodes":    {code(10164, "wrong last sequence"), ErrLostRace},
		"guard in flight":           {code(10163, ""), ErrUnreachable},
		"no message":                {code(10037, ""), ErrNotFound},
		"no stream":                 {code(10059, ""), ErrNotFound},
		"maximum of messages":       {code(10077, "maximum messages exceeded"), ErrFull},
		"maximum of bytes":          {code(10077, "maximum bytes exceeded"), ErrFull},
		"store trouble":             {code(10077, "store closed"), ErrUnreachable},
		"account full":              {code(10002, ""), ErrFull},
		"disk full":                 {code(10047, ""), ErrFull},
		"server full":               {code(10023, ""), ErrFull},
		"no leader":                 {code(10008, ""), ErrUnreachable},
		"JetStream off":             {code(10076, ""), ErrNoJetStream},
		"JetStream off for account": {code(10039, ""), ErrNoJetStream},
		"something else":            {code(10060, ""), nil},
		"stream lookup":             {jetstream.ErrStreamNotFound, ErrNotFound},
		"message lookup":            {jetstream.ErrMsgNotFound, ErrNotFound},
		"key lookup":                {jetstream.ErrKeyNotFound, ErrNotFound},
		"deleted key":               {jetstream.ErrKeyDeleted, ErrNotFound},
		"consumer lookup":           {jetstream.ErrConsumerNotFound, ErrNotFound},
		"not enabled for account":   {jetstream.ErrJetStreamNotEnabledForAccount, ErrNoJetStream},
		"not enabled":               {jetstream.ErrJetStreamNotEnabled, ErrNoJetStream},
		"password":                  {nats.ErrAuthorization, ErrForbidden},
		"permission":                {nats.ErrPermissionViolation, ErrForbidden},
		"no responders":             {nats.ErrNoResponders, ErrUnreachable},
		"no responders of a stream": {jetstream.ErrNoStreamResponse, ErrUnreachable},
		"disconnected":              {nats.ErrDisconnected, ErrUnreachable},
		"time-out":                  {context.DeadlineExceeded, ErrUnreachable},
		"the socket":                {&net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, ErrUnreachable},
		"ours":                      {fmt.Errorf("so: %w", ErrExists), ErrExists},
		"of no package":             {errors.New("odd"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Translate("do it to x", c.err)
			if !errors.Is(got, c.err) || !strings.Contains(got.Error(), "do it to x") {
				t.Errorf("translate = %v, which has lost %v or what was done", got, c.err)
			}
			if c.want != nil && !errors.Is(got, c.want) {
				t.Errorf("translate(%v) = %v, want %v", c.err, got, c.want)
			}
			if c.want == nil && kindOf(got) != nil {
				t.Errorf("translate(%v) = %v, want none of ours", c.err, got)
			}
		})
	}
	if Translate("x", nil) != nil {
		t.Error("no error became one")
	}
	if text := Translate("x", fmt.Errorf("so: %w", ErrExists)).Error(); strings.Count(text, ErrExists.Error()) != 1 {
		t.Errorf("%s says more than once of what kind it is", text)
	}
	if err := Translate("x", fmt.Errorf("%w: %w", ErrForbidden, nats.ErrTimeout)); errors.Is(err, ErrUnreachable) {
		t.Errorf("%v: the cause of one of our errors made it another", err)
	}
	if err := unreachable("x", ErrForbidden); errors.Is(err, ErrUnreachable) {
		t.Errorf("%v: what is forbidden is not unreachable", err)
	}
}

func TestNewEnough(t *testing.T) {
	for version, want := range map[string]bool{
		"2.14.0": true, "2.15.2": true, "3.0.0": true, "v2.14.1": true, "2.15.0-RC.1": true, "2.100.0": true,
		"2.13.9": false, "2.9.0": false, "1.99.99": false, "": false, "odd": false, "2": false,
		"2.99999999999999999999.0": false,
	} {
		if got := newEnough(version); got != want {
			t.Errorf("newEnough(%q) = %t", version, got)
		}
	}
}

func TestRedacted(t *testing.T) {
	for url, want := range map[string]string{
		"nats://127.0.0.1:4222":                             "nats://127.0.0.1:4222",
		"nats://ann:s3cret@broker:4222":                     "nats://broker:4222",
		"ann:s3cret@broker:4222":                            "broker:4222",
		"t0ken@broker":                                      "broker",
		"tls://ann:p@ss:w%rd@b1:4222,ann:p@ss@b2,nats://b3": "tls://b1:4222,b2,nats://b3",
		"": "",
	} {
		if got := Redacted(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

func TestDenials(t *testing.T) {
	d, started := newDenials(), time.Now()
	denial := func(subject string) error {
		return fmt.Errorf(`%w: permissions violation for publish to %q`, nats.ErrPermissionViolation, subject)
	}
	next := d.Next()
	d.add(denial("hf.log.x"))
	select {
	case <-next:
	default:
		t.Error("who waits was not woken")
	}
	if err := d.Since("hf.log.x", started); !errors.Is(err, ErrForbidden) {
		t.Errorf("denied subject: %v", err)
	}
	d.add(fmt.Errorf(`%w: for %s`, nats.ErrPermissionViolation, `"`+nats.InboxPrefix+"x"))
	if err := d.Since("hf.log.y", started); err != nil {
		t.Errorf("another subject: %v", err)
	}
	if err := d.Since("hf.log.x", time.Now()); err != nil {
		t.Errorf("after permissions were given: %v", err)
	}
	d.add(denial("_INBOX.abc.*"))
	if err := d.Since("hf.log.y", started); !errors.Is(err, ErrForbidden) {
		t.Errorf("no inbox: %v", err)
	}
	for i := range 3 * deniedMax {
		d.add(denial(fmt.Sprint(i)))
	}
	if len(d.at) > deniedMax {
		t.Errorf("%d remembered", len(d.at))
	}
	d.add(errors.New("in other words"))
}

func TestReconnectDelayIsShort(t *testing.T) {
	for _, attempt := range []int{0, 1, 2, 10, 1_000_000} {
		if d := reconnectDelay(attempt); d > reconnectDelayMaxMS*time.Millisecond || d < 0 {
			t.Errorf("attempt %d waits %s", attempt, d)
		}
	}
}

func TestTTLSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", time.Second: "1",
		1001 * time.Millisecond: "2", time.Hour: "3600"} {
		if got := TTLSeconds(d); got != want {
			t.Errorf("ttlSeconds(%s) = %s, want %s", d, got, want)
		}
	}
}
