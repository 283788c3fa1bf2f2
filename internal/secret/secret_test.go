package secret

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const day = 24 * time.Hour

func cell(t *testing.T, now time.Time) Cell {
	t.Helper()
	c, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	users, err := permission.Users(c, []string{"my agent"}, []string{"ann"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Cell{Users: users, Hosts: []string{"nats", "127.0.0.1"}, Nodes: []string{"a:6222", "b:6222"},
		Valid: 90 * day, Now: now}
}

// made runs Make, and returns every file in dir.
func made(t *testing.T, dir string, c Cell) map[string]string {
	t.Helper()
	if err := Make(dir, c); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm() != fileMode {
			t.Errorf("%s: others may read it: %v %v", path, info.Mode(), err)
		}
		body, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Two authorities sign, and neither accepts a certificate of the other. Servers have the names that clients ask for.
func TestCertificates(t *testing.T) {
	now := time.Now()
	files := made(t, t.TempDir(), cell(t, now))
	verify := func(folder, ca, host string, usage x509.ExtKeyUsage) error {
		pair, err := tls.X509KeyPair([]byte(files[folder+"/tls.crt"]), []byte(files[folder+"/tls.key"]))
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(files[ca]))
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for _, c := range []struct {
		folder, ca, host string
		usage            x509.ExtKeyUsage
		ok               bool
	}{
		{ServerFolder, "holdfast-ledger/ca.crt", "nats", server, true},
		{ServerFolder, "holdfast-ledger/ca.crt", "127.0.0.1", server, true},
		{ServerFolder, "holdfast-ledger/ca.crt", "evil.example", server, false},
		{"holdfast-ledger", ServerFolder + "/ca.crt", "", client, true},
		{"holdfast-harness-my-agent", ServerFolder + "/ca.crt", "", client, true},
		{"holdfast-ledger", ServerFolder + "/ca.crt", "", server, false}, // a user poses as the broker
		{"holdfast-ledger", RoutesFolder + "/ca.crt", "", client, false}, // a user joins as a node
		{RoutesFolder, RoutesFolder + "/ca.crt", "a", server, true},
		{RoutesFolder, RoutesFolder + "/ca.crt", "b", client, true},
		{RoutesFolder, ServerFolder + "/ca.crt", "", client, false},
	} {
		if err := verify(c.folder, c.ca, c.host, c.usage); (err == nil) != c.ok {
			t.Errorf("%s by %s for %q: %v, want %v", c.folder, c.ca, c.host, err, c.ok)
		}
	}
}

// A second run keeps what is there, makes what is missing, and renews what ends soon.
func TestMakeAgain(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	c := cell(t, now)
	first := made(t, dir, c)
	for name, body := range made(t, dir, c) {
		if first[name] != body {
			t.Errorf("%s changed", name)
		}
	}
	c.Now = now.Add(59 * day)
	if again := made(t, dir, c); again["nats-tls/tls.crt"] != first["nats-tls/tls.crt"] {
		t.Error("a certificate with a third of its time left was made again")
	}
	c.Now = now.Add(61 * day)
	again := made(t, dir, c)
	for name, kept := range map[string]bool{"nats-tls/tls.crt": false, "nats-routes-tls/tls.key": false,
		"holdfast-ledger/tls.crt":  false,
		"holdfast-ledger/password": true, "holdfast-ledger/ca.crt": true, "clients.ca.key": true,
		"nats-users/users.conf": true} {
		if (again[name] == first[name]) != kept {
			t.Errorf("%s after 61 of 90 days: kept %v, want %v", name, !kept, kept)
		}
	}
	c.Hosts = append(c.Hosts, "nats.elsewhere")
	if other := made(t, dir, c); other["nats-tls/tls.crt"] == again["nats-tls/tls.crt"] {
		t.Error("the broker's certificate does not have its new name")
	}
	for _, u := range c.Users {
		key, has := first[Folder(u)+"/consumer-key"]
		if service := u.Account == permission.Account; has != service || service && len(key) < 32 ||
			key != again[Folder(u)+"/consumer-key"] {
			t.Errorf("%s: key %q of consumers", u.Name, key)
		}
	}
	if err := os.Remove(filepath.Join(dir, "holdfast-ledger/password")); err != nil {
		t.Fatal(err)
	}
	last := made(t, dir, c)
	if last["holdfast-ledger/password"] == first["holdfast-ledger/password"] ||
		last["holdfast-retry/password"] != first["holdfast-retry/password"] {
		t.Error("a removed password is not made again, or another one is")
	}
	for _, u := range c.Users {
		if want := u.Password + `: "` + last[Folder(u)+"/password"] +
			`"`; !strings.Contains(last["nats-users/users.conf"], want) {
			t.Errorf("users.conf has no %s", want)
		}
	}
}

// A user with an nkey has a seed in place of a password, which a second run keeps. The broker has the public key.
func TestNKeys(t *testing.T) {
	dir, c := t.TempDir(), cell(t, time.Now())
	if err := permission.WithNKeys(c.Users, []string{"ann"}); err != nil {
		t.Fatal(err)
	}
	first := made(t, dir, c)
	if _, has := first["holdfast-person-ann/password"]; has || first["holdfast-ledger/password"] == "" {
		t.Error("a user with an nkey has a password, or a user without one has none")
	}
	public := func(files map[string]string) string {
		pair, err := nkeys.FromSeed([]byte(files["holdfast-person-ann/nkey"]))
		if err != nil {
			t.Fatal(err)
		}
		key, err := pair.PublicKey()
		if err != nil || !strings.Contains(files["nats-users/users.conf"], `HOLDFAST_NKEY_PERSON_ANN: "`+key+`"`) ||
			strings.Contains(files["nats-users/users.conf"], "HOLDFAST_PASSWORD_PERSON_ANN") {
			t.Errorf("%v: the broker has\n%s", err, files["nats-users/users.conf"])
		}
		return key
	}
	key := public(first)
	if again := made(t, dir, c); again["holdfast-person-ann/nkey"] != first["holdfast-person-ann/nkey"] {
		t.Error("an nkey is made again")
	}
	if err := os.Remove(filepath.Join(dir, "holdfast-person-ann/nkey")); err != nil {
		t.Fatal(err)
	}
	if public(made(t, dir, c)) == key {
		t.Error("a removed nkey is not made again")
	}
	if err := os.WriteFile(filepath.Join(dir, "holdfast-person-ann/nkey"), []byte("no seed"), fileMode); err != nil {
		t.Fatal(err)
	}
	if err := Make(dir, c); err == nil {
		t.Error("a file that has no seed is taken for one")
	}
}
