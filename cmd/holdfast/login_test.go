package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// A login that cannot work fails with the wrong flag or certificate in the error, and with the documented exit code.
func TestLoginErrors(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	own, foreign := natstest.Certificates(t), natstest.Certificates(t)
	s := natstest.Start(t, natstest.Settings(t,
		`tls { cert_file: "`+own+`/tls.crt", key_file: "`+own+`/tls.key", ca_file: "`+own+`/ca.crt", verify: true }`))
	at := []string{"--nats", s.URL(), "--timeout", "1s"}
	ca := []string{"--tls-ca", own + "/ca.crt"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--creds", none}, exitUsage, "--creds: open " + none},
		{[]string{"--password-file", none}, exitUsage, "--password-file: open " + none},
		{[]string{"--nkey", none}, exitUsage, "--nkey: open " + none},
		{[]string{"--tls-ca", none}, exitUsage, "--tls-ca: open " + none},
		{[]string{"--tls-cert", none}, exitUsage, "--tls-cert: open " + none},
		{[]string{"--tls-key", none}, exitUsage, "--tls-key: open " + none},
		{[]string{"--tls-ca", own + "/tls.key"}, exitFailed, "no certificate in PEM"},
		{[]string{"--tls-cert", own + "/tls.crt", "--tls-key", foreign + "/tls.key"}, exitFailed,
			"private key does not match"},
		{nil, exitUnreachable, "name its file (tls-ca)"},
		{[]string{"--tls-ca", foreign + "/ca.crt"}, exitUnreachable, "is not of an authority in " + foreign},
		{ca, exitUnreachable, "wants a certificate of this client"},
		{append(ca, "--tls-cert", foreign+"/tls.crt", "--tls-key", foreign+"/tls.key"), exitUnreachable,
			"does not accept the certificate"},
	} {
		for _, command := range []string{"sessions", "doctor"} {
			var out bytes.Buffer
			p := &Program{Args: append(append([]string{command}, at...), c.args...), Env: []string{"USER=ann"},
				Stdout: &out, Stderr: &out}
			if code := p.Run(t.Context()); code != c.code || !strings.Contains(out.String(), c.want) ||
				strings.Contains(out.String(), "holdfast up") {
				t.Errorf("%s %q: %d, want %d and %q\n%s", command, c.args, code, c.code, c.want, out.String())
			}
		}
	}
}

// Agents that a command starts log in as the command does.
func TestAgentsLogIn(t *testing.T) {
	a := newApp(&Program{})
	a.creds, a.passwordFile, a.nkey, a.tlsCA, a.tlsCert, a.tlsKey = "1", "2", "3", "4", "5", "6"
	line, err := json.Marshal(drill.Spec{Login: a.login()})
	if err != nil {
		t.Fatal(err)
	}
	var spec drill.Spec
	if err := json.Unmarshal(line, &spec); err != nil {
		t.Fatal(err)
	}
	c := spec.Login.On(harness.Config{ID: "agent"})
	if got := c.ID + c.Creds + c.PasswordFile + c.NKey + c.TLSCA + c.TLSCert + c.TLSKey; got != "agent123456" {
		t.Errorf("an agent logs in with %q", got)
	}
}
