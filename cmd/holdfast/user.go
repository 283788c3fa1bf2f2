package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/internal/secret"
)

// userCommand changes the users of a secured cell one by one.
func userCommand(a *app) *cobra.Command {
	long, example := describe("Add a user of a secured cell, replace its password, or remove it.\n\n"+
		"Each command changes the files of `holdfast secrets DIR` and the permissions of the broker, and prints the "+
		"commands that bring them to a cluster, whether kustomize or Helm has installed it. No process is started "+
		"again for that: the broker and its clients read their files while they run. It needs no broker.",
		"holdfast user add ./secrets --harness reviewer", "holdfast user rotate ./secrets reviewer",
		"holdfast user remove ./secrets reviewer")
	cmd := &cobra.Command{Use: "user", Short: "Add, rotate or remove a user of a secured cell", Long: long,
		Example: example, GroupID: groupRepair, Args: cobra.NoArgs}
	cmd.AddGroup(&cobra.Group{ID: groupRepair, Title: "Commands:"})
	cmd.AddCommand(userAddCommand(a), userRotateCommand(a), userRemoveCommand(a))
	return cmd
}

// userChange is a change of a cell's users.
type userChange struct {
	dir         string // of the secrets
	permissions string // the file with the broker's permissions
	namespace   string
	configMap   string // with the permissions
	include     string // the first line of permissions
}

func (c *userChange) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.permissions, "permissions", "deploy/k8s/nats/permissions.conf",
		"the `file` with the permissions of the broker, which is written")
	cmd.Flags().StringVar(&c.namespace, "namespace", "holdfast", "the Kubernetes `namespace` of the printed commands")
	cmd.Flags().StringVar(&c.configMap, "config-map", "nats-permissions",
		"the `name` of the config map with the permissions: users.permissionsConfigMap of the Helm chart")
}

func userAddCommand(a *app) *cobra.Command {
	var c userChange
	var named cellUsers
	long, example := describe("Make the files of new users, and the permissions of the broker with them. "+
		"The users that are there keep what they have.",
		"holdfast user add ./secrets --harness reviewer", "holdfast user add ./secrets --person bob --nkey-user bob")
	cmd := &cobra.Command{Use: "add DIR", Short: "Add users", Long: long, Example: example,
		GroupID: groupRepair, Args: arguments(1, 1, "DIR")}
	named.bind(cmd)
	c.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.dir = args[0]
		list, err := c.read()
		if err != nil {
			return err
		}
		more := named.list(list.Prefix)
		if err := list.Add(more); err != nil {
			return usage(cmd, "%v", err)
		}
		added := namesOf(&more)
		if len(added) == 0 {
			return usage(cmd, "no user is named: give --harness, --person, --operator, --backup or --restore")
		}
		if err := c.write(&list, ""); err != nil {
			return err
		}
		var folders []string
		for _, name := range added {
			u, err := list.Find(name)
			if err != nil {
				return err
			}
			folders = append(folders, secret.Folder(u))
		}
		return a.print(c.comment("new users: "+strings.Join(added, ", ")) + c.secrets(folders...) + c.reload(true))
	}
	return cmd
}

// namesOf returns the names of the users of a list.
func namesOf(l *secret.List) (names []string) {
	for _, id := range l.Harnesses {
		names = append(names, "harness-"+id)
	}
	return slices.Concat(names, l.People, l.Operators, l.Backup, l.Restore)
}

func userRotateCommand(a *app) *cobra.Command {
	var c userChange
	long, example := describe("Make another password, or another nkey, for a user. Its connections end when the "+
		"broker reads the new one, and its programs connect again with their file. Certificates are renewed by "+
		"`holdfast secrets`.",
		"holdfast user rotate ./secrets my-agent", "holdfast user rotate ./secrets holdfast-ledger")
	cmd := &cobra.Command{Use: "rotate DIR NAME", Short: "Replace the password or nkey of a user", Long: long,
		Example: example, GroupID: groupRepair, Args: arguments(2, 2, "DIR", "NAME")}
	c.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.dir = args[0]
		list, u, err := c.find(cmd, args[1])
		if err == nil {
			err = secret.Forget(c.dir, u)
		}
		if err == nil {
			err = c.write(&list, "")
		}
		if err != nil {
			return err
		}
		return a.print(c.comment("the new secret of "+u.Name) + c.secrets(secret.Folder(u)) +
			c.comment("wait until the programs of "+u.Name+" have the new file: a mounted one has it in a minute") +
			c.reload(false))
	}
	return cmd
}

func userRemoveCommand(a *app) *cobra.Command {
	var c userChange
	long, example := describe("Remove a user. Its connections end when the broker reads its files. Its "+
		"commits stay: the sessions of a harness are recovered as those of a dead one.",
		"holdfast user remove ./secrets reviewer")
	cmd := &cobra.Command{Use: "remove DIR NAME", Short: "Remove a user", Long: long, Example: example,
		GroupID: groupRepair, Args: arguments(2, 2, "DIR", "NAME")}
	c.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.dir = args[0]
		list, u, err := c.find(cmd, args[1])
		if err != nil {
			return err
		}
		if err := list.Remove(u); err != nil {
			return usage(cmd, "%v", err)
		}
		folder := secret.Folder(u)
		if err := c.write(&list, folder); err != nil {
			return err
		}
		return a.print(c.comment("without "+u.Name) + c.secrets() + c.reload(false) +
			fmt.Sprintf("kubectl -n %s delete secret %s\n", c.namespace, folder))
	}
	return cmd
}

// find reads the list of the folder, and finds a user in it.
func (c *userChange) find(cmd *cobra.Command, name string) (secret.List, permission.User, error) {
	list, err := c.read()
	if err != nil {
		return list, permission.User{}, err
	}
	u, err := list.Find(name)
	if err != nil {
		err = usage(cmd, "%v", err)
	}
	return list, u, err
}

// read reads the list of users, and checks that the permissions can be written.
func (c *userChange) read() (secret.List, error) {
	list, err := secret.ReadList(c.dir)
	if err != nil {
		return list, err
	}
	old, err := os.ReadFile(c.permissions)
	if err != nil {
		return list, fmt.Errorf("%w\n  name the file of `holdfast permissions` with --permissions", err)
	}
	var ok bool
	c.include, _, ok = strings.Cut(string(old), "\n")
	if !ok || !strings.HasPrefix(c.include, "include ") {
		return list, fmt.Errorf("%s does not begin with an include of the passwords\n  print it with "+
			"`holdfast permissions --passwords FILE`", c.permissions)
	}
	return list, nil
}

// write makes the files of all users, writes the permissions, removes the folder of a user that is gone ("": none), and
// writes the list. Each file of the other users that is there is kept.
func (c *userChange) write(list *secret.List, gone string) error {
	users, err := list.Users()
	if err == nil {
		err = list.Make(c.dir, time.Now())
	}
	if err == nil {
		err = os.WriteFile(c.permissions, []byte(c.include+"\n"+permission.Conf(users)), permissionsMode)
	}
	if err == nil && gone != "" {
		err = os.RemoveAll(filepath.Join(c.dir, gone))
	}
	if err != nil {
		return err
	}
	return list.Write(c.dir)
}

const permissionsMode = 0o644 // it has no password

// comment returns a line that a shell ignores.
func (c *userChange) comment(text string) string { return "# " + text + "\n" }

// secrets returns the commands that apply the secrets of these folders, those of the broker, and its permissions.
func (c *userChange) secrets(folders ...string) string {
	apply := fmt.Sprintf("--dry-run=client -o yaml | kubectl -n %s apply -f -\n", c.namespace)
	var b strings.Builder
	for _, folder := range append(folders, secret.NodesFolder) {
		fmt.Fprintf(&b, "kubectl -n %s create secret generic %s --from-file=%s %s", c.namespace, folder,
			quoted(filepath.Join(c.dir, folder)), apply)
	}
	fmt.Fprintf(&b, "kubectl -n %s create configmap %s --from-file=permissions.conf=%s %s", c.namespace,
		quoted(c.configMap), quoted(c.permissions), apply)
	return b.String() + c.comment("kustomize: the next apply takes nats/permissions.conf of the manifests: keep this "+
		"file there") +
		c.comment("Helm: an upgrade keeps this config map; if the values set users.permissions, give each upgrade "+
			"--set-file users.permissions=FILE, with this file")
}

// reload returns the commands that wait until each node of the broker has the files, and have it read them. With a new
// account each node reads them twice: nats-server 2.15 starts what an account imports when it reads the account for the
// second time.
func (c *userChange) reload(again bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("for pod in $(kubectl -n %s get pods -l app.kubernetes.io/name=nats -o name); do", c.namespace)
	for _, f := range [][2]string{
		{"/etc/nats-users/" + secret.UsersFile, filepath.Join(c.dir, secret.NodesFolder, secret.UsersFile)},
		{"/etc/nats/permissions.conf", c.permissions}} {
		line("  until kubectl -n %s exec $pod -- cat %s | cmp -s - %s; do sleep 2; done", c.namespace, f[0],
			quoted(f[1]))
	}
	line("  kubectl -n %s exec $pod -- nats-server --signal reload=/var/run/nats/nats.pid", c.namespace)
	if again {
		line("  sleep 2")
		line("  kubectl -n %s exec $pod -- nats-server --signal reload=/var/run/nats/nats.pid", c.namespace)
	}
	line("done")
	return b.String()
}

// quoted returns a word for a shell.
func quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-", r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
