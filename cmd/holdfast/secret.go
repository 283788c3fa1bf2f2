package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/internal/secret"
)

// cellUsers are the users of a secured cell that flags name.
type cellUsers struct {
	harnesses, people, operators []string
	copiers                      permission.Copiers
	nkeys                        []string // the names of users that log in with nkeys
}

// bind gives a command the flags.
func (u *cellUsers) bind(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&u.harnesses, "harness", nil, "a harness `id`; may be repeated")
	cmd.Flags().StringArrayVar(&u.people, "person", nil, "a person's `name`; may be repeated")
	cmd.Flags().StringArrayVar(&u.operators, "operator", nil,
		"an operator's `name`: a person who may also rebuild and sweep; may be repeated")
	cmd.Flags().StringArrayVar(&u.copiers.Backup, "backup", nil,
		"the `name` of a user that may run `holdfast backup`, and nothing else; may be repeated")
	cmd.Flags().StringArrayVar(&u.copiers.Restore, "restore", nil,
		"the `name` of a user that may run `holdfast restore`, and nothing else; may be repeated")
	cmd.Flags().StringArrayVar(&u.nkeys, "nkey-user", nil,
		"the `name` of a user that logs in with an nkey in place of a password, such as holdfast-ledger, "+
			"harness-my-agent or ann; "+
			"* for all; may be repeated")
}

// list returns the users as they are stored beside their files.
func (u *cellUsers) list(prefix string) secret.List {
	return secret.List{Prefix: prefix, Harnesses: u.harnesses, People: u.people, Operators: u.operators,
		Backup: u.copiers.Backup, Restore: u.copiers.Restore, NKeys: u.nkeys}
}

// users is all users of the cell, services among them.
func (u *cellUsers) users(cmd *cobra.Command, prefix string) ([]permission.User, error) {
	list := u.list(prefix)
	users, err := list.Users()
	if err != nil {
		return nil, usage(cmd, "%v", err)
	}
	return users, nil
}

const certificatesDays = 365

// Names of the broker in deploy/k8s, in the namespace holdfast.
var (
	natsHosts = []string{"nats", "nats.holdfast", "nats.holdfast.svc", "localhost", "127.0.0.1"}
	natsNodes = []string{"nats-0.nats-nodes:6222", "nats-1.nats-nodes:6222", "nats-2.nats-nodes:6222"}
)

// secretsCommand is for cells without another authority.
func secretsCommand(a *app) *cobra.Command {
	var named cellUsers
	var hosts, nodes []string
	var days int
	long, example := describe(`Make the passwords and certificates of a secured cell, as files in DIR.

Each folder in DIR is one Kubernetes secret: one for each user (password, ca.crt, tls.crt, tls.key; for a
service also consumer-key, from which the names of its consumers follow), nats-users with the passwords for the
broker, nats-tls for its clients and nats-routes-tls for its nodes. A user of --nkey-user has the seed of an nkey
(nkey) in place of a password; the broker gets the public key. Two authorities sign: one for clients, one for
nodes. Their keys (*.ca.key) stay in DIR: keep DIR offline. A second run keeps what is there and makes what is
missing; it makes a certificate again when less than a third of its time is left. Remove a file to have it made
again. The list of users is kept in `+secret.ListFile+`, for `+"`holdfast user`"+`. It needs no broker.`,
		"holdfast secrets ./secrets --harness my-agent --person screen --operator root")
	cmd := &cobra.Command{Use: "secrets DIR", Short: "Make the passwords and certificates of a secured cell",
		Long: long, Example: example, GroupID: groupRepair,
		Args: arguments(1, 1, "DIR")}
	a.addFlags(cmd, []string{"prefix"})
	named.bind(cmd)
	cmd.Flags().StringArrayVar(&hosts, "host", natsHosts,
		"a `name` or address under which clients reach the broker; may be repeated")
	cmd.Flags().StringArrayVar(&nodes, "node", natsNodes, "`host:port` of a node's routes; may be repeated")
	cmd.Flags().IntVar(&days, "days", certificatesDays, "how many days a certificate is valid")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if days < 1 {
			return usage(cmd, "--days %d: want 1 or more", days)
		}
		list := named.list(a.prefix)
		list.Hosts, list.Nodes, list.Days = hosts, nodes, days
		if _, err := list.Users(); err != nil {
			return usage(cmd, "%v", err)
		}
		if err := list.Make(args[0], time.Now()); err != nil {
			return err
		}
		return list.Write(args[0])
	}
	return cmd
}
