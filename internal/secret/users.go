package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// ListFile is the file with the [List] of a folder.
const ListFile = "users.json"

// List is what the files of a folder were made for: the users of a cell, without its services, and its brokers.
type List struct {
	Prefix    string   `json:"prefix"`
	Harnesses []string `json:"harnesses,omitempty"`
	People    []string `json:"people,omitempty"`
	Operators []string `json:"operators,omitempty"`
	Backup    []string `json:"backup,omitempty"`
	Restore   []string `json:"restore,omitempty"`
	NKeys     []string `json:"nkey_users,omitempty"` // names of users that log in with nkeys
	Hosts     []string `json:"hosts"`                // see [Cell]
	Nodes     []string `json:"nodes"`
	Days      int      `json:"days"` // how long a certificate is valid
}

// ReadList reads the list of a folder.
func ReadList(dir string) (List, error) {
	var l List
	body, err := os.ReadFile(filepath.Join(dir, ListFile))
	if errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("%s has no %s: run `holdfast secrets %[1]s` once, with the flags of all its users", dir,
			ListFile)
	}
	if err == nil {
		err = json.Unmarshal(body, &l)
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w", filepath.Join(dir, ListFile), err)
	}
	return l, nil
}

// Users returns the users of the cell, services among them.
func (l *List) Users() ([]permission.User, error) {
	cell, err := events.NewCell(l.Prefix)
	if err != nil {
		return nil, err
	}
	users, err := permission.Users(cell, l.Harnesses, l.People, l.Operators,
		permission.Copiers{Backup: l.Backup, Restore: l.Restore})
	if err == nil {
		err = permission.WithNKeys(users, l.NKeys)
	}
	return users, err
}

// Make writes the files of the users to dir, as [Make] does.
func (l *List) Make(dir string, now time.Time) error {
	users, err := l.Users()
	if err != nil {
		return err
	}
	return Make(dir, Cell{Users: users, Hosts: l.Hosts, Nodes: l.Nodes,
		Valid: time.Duration(l.Days) * 24 * time.Hour, Now: now})
}

// Write writes the list to dir. It is the last step of a change, so that a change that was cut off can be made again.
func (l *List) Write(dir string) error {
	body, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, ListFile), append(body, '\n'))
}

// Add adds the users of another list. It fails if the cell has one of them.
func (l *List) Add(more List) error {
	for _, pair := range [][2]*[]string{{&l.Harnesses, &more.Harnesses}, {&l.People, &more.People},
		{&l.Operators, &more.Operators}, {&l.Backup, &more.Backup}, {&l.Restore, &more.Restore},
		{&l.NKeys, &more.NKeys}} {
		*pair[0] = append(*pair[0], *pair[1]...)
	}
	_, err := l.Users()
	return err
}

// Find returns the user with this name, "harness-my-agent", "ann" or "holdfast-ledger", or the harness with this id.
func (l *List) Find(name string) (permission.User, error) {
	users, err := l.Users()
	if err != nil {
		return permission.User{}, err
	}
	for _, wanted := range []string{name, "harness-" + name} {
		for _, u := range users {
			if u.Name == wanted {
				return u, nil
			}
		}
	}
	var names []string
	for _, u := range users {
		names = append(names, u.Name)
	}
	return permission.User{}, fmt.Errorf("no user has the name %q: there are %s", name, strings.Join(names, ", "))
}

// Remove removes a user from the list. A service cannot be removed.
func (l *List) Remove(u permission.User) error {
	if u.Service != "" {
		return fmt.Errorf("%s is a service, and each cell has it", u.Name)
	}
	for _, names := range []*[]string{&l.Harnesses, &l.People, &l.Operators, &l.Backup, &l.Restore, &l.NKeys} {
		*names = slices.DeleteFunc(*names, func(n string) bool {
			return n == u.Name || names == &l.Harnesses && "harness-"+n == u.Name
		})
	}
	return nil
}

// Forget removes the password or the nkey of a user, so that Make makes another one.
func Forget(dir string, u permission.User) error {
	file := PasswordFile
	if u.NKey != "" {
		file = NKeyFile
	}
	err := os.Remove(filepath.Join(dir, Folder(u), file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
