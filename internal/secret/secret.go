// Package secret makes the credentials of a secured cell's users and nodes, as files. They are passwords, two
// certificate authorities and their certificates. Each folder has the content of one Kubernetes secret.
package secret

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/holdfast-dev/holdfast/internal/permission"
)

// Names of folders and files. The names in a folder of a certificate are those of Kubernetes and cert-manager.
const (
	NodesFolder  = "nats-users"      // passwords for the configuration of the nodes
	ServerFolder = "nats-tls"        // the certificate that a node shows to clients
	RoutesFolder = "nats-routes-tls" // the certificate that a node shows to other nodes
	UsersFile    = "users.conf"      // the password, or the public nkey, of each user, as variables
	RoutesFile   = "routes.conf"     // the password and the addresses of the nodes, for the block cluster
	PasswordFile = "password"
	NKeyFile     = "nkey"         // a seed
	ConsumerKey  = "consumer-key" // of a service: the names of its consumers follow from it
	CAFile       = "ca.crt"
	CertFile     = "tls.crt"
	KeyFile      = "tls.key"
)

const (
	folderMode    = 0o700
	fileMode      = 0o600
	passwordBytes = 16
	nodeUser      = "node" // of routes
)

// Cell says what is made.
type Cell struct {
	Users []permission.User
	Hosts []string      // names and addresses under which clients reach the nodes
	Nodes []string      // host:port of the routes of each node
	Valid time.Duration // how long a certificate is valid
	Now   time.Time
}

// Make writes the files to dir. A password or an nkey that is there is kept. A certificate that is there is kept unless
// less than a third of its time is left, or its names differ.
func Make(dir string, c Cell) error {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	clients, err1 := c.authority(dir, "clients")
	routes, err2 := c.authority(dir, "routes")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var conf strings.Builder
	for _, u := range c.Users {
		folder := filepath.Join(dir, Folder(u))
		variable, login, file := u.Password, password, PasswordFile
		if u.NKey != "" {
			variable, login, file = u.NKey, nkey, NKeyFile
		}
		value, err := login(filepath.Join(folder, file))
		if err == nil && u.Service != "" {
			_, err = password(filepath.Join(folder, ConsumerKey))
		}
		if err == nil {
			err = c.certificate(folder, clients, u.Name)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&conf, "%s: %q\n", variable, value)
	}
	pw, err := password(filepath.Join(dir, "routes."+PasswordFile))
	if err != nil {
		return err
	}
	return errors.Join(
		write(filepath.Join(dir, NodesFolder, UsersFile), []byte(conf.String())),
		write(filepath.Join(dir, NodesFolder, RoutesFile), []byte(c.routesConf(pw))),
		c.certificate(filepath.Join(dir, ServerFolder), clients, "nats", c.Hosts...),
		c.certificate(filepath.Join(dir, RoutesFolder), routes, nodeUser, c.nodeHosts()...),
	)
}

// Folder is the folder of a user: holdfast-ledger, holdfast-harness-my-agent, holdfast-person-ann.
func Folder(u permission.User) string {
	name := strings.Trim(strings.TrimPrefix(u.Password, permission.PasswordPrefix), "_")
	return "holdfast-" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

func (c *Cell) routesConf(password string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "authorization { user: %s, password: %q, timeout: 5 }\nroutes: [\n", nodeUser, password)
	for _, n := range c.Nodes {
		fmt.Fprintf(&b, "  \"nats://%s:%s@%s\"\n", nodeUser, password, n)
	}
	b.WriteString("]\n")
	return b.String()
}

// nodeHosts are the names of the nodes without their ports.
func (c *Cell) nodeHosts() []string {
	var hosts []string
	for _, n := range c.Nodes {
		host, _, _ := strings.Cut(n, ":")
		hosts = append(hosts, host)
	}
	return hosts
}

// password reads a password, or makes one. It begins with a letter, so that no reader of a configuration takes it for a
// number.
func password(path string) (string, error) {
	body, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(body)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, passwordBytes)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	made := "p" + hex.EncodeToString(random)
	return made, write(path, []byte(made))
}

// nkey reads the seed of an nkey, or makes one. It returns the public key.
func nkey(path string) (public string, err error) {
	seed, err := os.ReadFile(path)
	var pair nkeys.KeyPair
	switch {
	case err == nil:
		pair, err = nkeys.ParseDecoratedUserNKey(seed)
	case errors.Is(err, fs.ErrNotExist):
		if pair, err = nkeys.CreateUser(); err == nil {
			seed, err = pair.Seed()
		}
		if err == nil {
			err = write(path, seed)
		}
	}
	if err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return public, nil
}

func write(path string, body []byte) error {
	err := os.MkdirAll(filepath.Dir(path), folderMode)
	if err == nil {
		err = os.WriteFile(path, body, fileMode)
	}
	if err != nil {
		return err
	}
	return nil
}
