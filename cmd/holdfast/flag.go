package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// envPrefix begins the name of each environment variable that sets a flag.
const envPrefix = "HOLDFAST_"

// natsDefault is where `holdfast up` listens.
const natsDefault = "nats://127.0.0.1:4222"

// Values of --sync.
const (
	syncEach  = "each"
	syncGroup = "group"
)

// settings are the values of the options that several commands share.
type settings struct {
	nats, creds, prefix string
	context             string
	contextFrom         string   // what named the context, if that was no flag of this program
	natsFrom            string   // what named the broker, if that was no flag
	ofContext           []string // flags that the context has set
	passwordFile, nkey  string
	consumerKeyFile     string
	tlsCA, tlsCert      string
	tlsKey              string
	timeout             time.Duration
	json                bool
	by                  string

	data, listen, http, readyFile string
	sync                          string // syncEach or syncGroup
	board                         bool
	logLevel                      string
	readyLagMax                   uint64
	replicas                      int
	feedKeptFor                   time.Duration
	logMax, objectsMax            string
	settledKeptFor, closedKeptFor time.Duration
	grace, adoptionGrace          time.Duration
	disconnectGrace               time.Duration
	idleCompactionsMax            int
	retryJitter                   float64
}

// option is one shared flag. The reference page is printed from this table.
type option struct {
	name  string
	usage string // meaning and unit
	wrong string // effect of a wrong value
	bind  func(fs *pflag.FlagSet, s *settings, o *option)
}

// oldNames maps names of earlier builds to the present names of options. An old name works, hidden, as a flag and in
// the environment.
var oldNames = map[string]string{
	"by":           "person",
	"closed-for":   "settled-prompts-kept-for",
	"feed-age":     "feed-kept-for",
	"idle-at-once": "idle-compactions-max",
	"lag-max":      "ready-lag-max",
	"retain":       "closed-sessions-kept-for",
}

// presentName returns the present name of a flag.
func presentName(name string) string {
	if now, old := oldNames[name]; old {
		return now
	}
	return name
}

func stringOption(name, def string, at func(*settings) *string, usage, wrong string) option {
	return option{name, usage, wrong, func(fs *pflag.FlagSet, s *settings, o *option) {
		fs.StringVar(at(s), o.name, def, o.usage)
	}}
}

func durationOption(name string, def time.Duration, at func(*settings) *time.Duration, usage, wrong string) option {
	return option{name, usage, wrong, func(fs *pflag.FlagSet, s *settings, o *option) {
		fs.DurationVar(at(s), o.name, def, o.usage)
	}}
}

// options is the table.
var options = []option{
	stringOption("nats", natsDefault, func(s *settings) *string { return &s.nats },
		"the broker's `URL`, several separated by commas", "Nothing is reached, or another cell is."),
	stringOption("context", "", func(s *settings) *string { return &s.context },
		"a `name` of a context of the nats CLI, which has the URL and the login; without it and "+
			"without --nats people's commands use that of NATS_CONTEXT, else the selected one",
		"Another cell is reached."),
	stringOption("creds", "", func(s *settings) *string { return &s.creds },
		"a credentials `file`; none by default", "The broker refuses."),
	stringOption("password-file", "", func(s *settings) *string { return &s.passwordFile },
		"a `file` with the password of the user in --nats; by default the URL has it", "The broker refuses."),
	stringOption("nkey", "", func(s *settings) *string { return &s.nkey },
		"a `file` with the seed of an nkey to log in with; none by default", "The broker refuses."),
	stringOption("consumer-key-file", "", func(s *settings) *string { return &s.consumerKeyFile },
		"a `file` with a secret, from which the names of the service's consumers follow; by default users can guess "+
			"them",
		"A user of the cell can delay all sessions. Different in two processes of a service: both work at once."),
	stringOption("tls-ca", "", func(s *settings) *string { return &s.tlsCA },
		"a `file` with the authorities of the broker's certificate, in PEM (default: the system's)",
		"Too many: a foreign broker is believed. Too few: none is."),
	stringOption("tls-cert", "", func(s *settings) *string { return &s.tlsCert },
		"a `file` with this client's certificate, in PEM; none by default", "A broker that wants one refuses."),
	stringOption("tls-key", "", func(s *settings) *string { return &s.tlsKey },
		"the `file` with the key of --tls-cert", "A broker that wants a certificate refuses."),
	stringOption("prefix", events.DefaultPrefix, func(s *settings) *string { return &s.prefix },
		"the cell's `prefix`: the first word of all its streams, buckets and subjects",
		"Another, perhaps empty, cell is seen."),
	durationOption("timeout", 10*time.Second, func(s *settings) *time.Duration { return &s.timeout },
		"how long to try to reach the broker, and to wait for an answer",
		"Too short: gives up during an election (4 to 7 s). Too long: a script hangs."),
	{"json", "print JSON, one object a line", "", func(fs *pflag.FlagSet, s *settings, o *option) {
		fs.BoolVar(&s.json, o.name, false, o.usage)
	}},
	stringOption("person", "", func(s *settings) *string { return &s.by },
		"the person who asks (default: the user of the login, else $USER, else the system account)",
		"Another person is in the log, or the services refuse (403)."),
	stringOption("data", "./holdfast-data", func(s *settings) *string { return &s.data },
		"`directory` of the embedded broker's data; made if need be",
		"On a disk that is slow or not kept, everything is slow or lost."),
	stringOption("sync", syncEach, func(s *settings) *string { return &s.sync },
		"when the embedded broker syncs writes to the disk: `each` before the broker acknowledges it, or group: many "+
			"at once, and clients wait for that",
		"each: fewer turns a second. group: a client of your own that publishes to the log has to ask for the sync."),
	stringOption("listen", "127.0.0.1:4222", func(s *settings) *string { return &s.listen },
		"`host:port` where the embedded broker listens; port 0: any",
		"The embedded broker asks for no password: beyond loopback every host on the network can write."),
	stringOption("http", "127.0.0.1:8480", func(s *settings) *string { return &s.http },
		"`host:port` of /healthz, /readyz and /metrics, and of the board; port 0: any",
		"Beyond loopback every host on the network can read health and metrics; `holdfast up` serves no board there."),
	{"board", "serve the board, a page on which people see and answer what waits for them, at --http",
		"Every user of this machine can open it, as each can connect to --listen.",
		func(fs *pflag.FlagSet, s *settings, o *option) { fs.BoolVar(&s.board, o.name, true, o.usage) }},
	stringOption("ready-file", "", func(s *settings) *string { return &s.readyFile },
		"`file` written when all is ready: {\"nats\", \"http\", \"pid\"}; removed at a clean end",
		"A script starts before there is anything to talk to."),
	stringOption("log-level", "info", func(s *settings) *string { return &s.logLevel },
		"the least `level` that is logged: debug, info, warn, error",
		"Too low: the disk fills. Too high: nothing tells what was decided."),
	{"ready-lag-max", "how many commits may wait for a consumer before /readyz answers 503",
		"Too low: taken out of service under a burst. Too high: people see old state without a warning.",
		func(fs *pflag.FlagSet, s *settings, o *option) { fs.Uint64Var(&s.readyLagMax, o.name, 10_000, o.usage) }},
	{"replicas", "copies of each stream and bucket: 1, 3 or 5; never lowered",
		"Too few: a lost disk is lost data. More than there are nodes: refused by the broker.",
		func(fs *pflag.FlagSet, s *settings, o *option) { fs.IntVar(&s.replicas, o.name, 1, o.usage) }},
	durationOption("feed-kept-for", 72*time.Hour, func(s *settings) *time.Duration { return &s.feedKeptFor },
		"how long the feed keeps events; 0: no feed",
		"Too short: a notifier that was down misses events. Too long: the disk fills."),
	stringOption("log-max", "50%", func(s *settings) *string { return &s.logMax },
		"`size` at which the log refuses new commits: bytes, KiB, MiB, GiB, or a share of the embedded broker's "+
			"store (%); 0: none; never lowered",
		"Too small: new sessions and messages are refused early. Too large, or none: a full disk stops recovery, too."),
	stringOption("objects-max", "25%", func(s *settings) *string { return &s.objectsMax },
		"`size` at which contents over 256 KiB are refused, as for --log-max",
		"Too small: large messages are refused early. Too large, or none: they fill the disk that the log is on."),
	durationOption("settled-prompts-kept-for", ledger.Default().SettledKeptFor, func(s *settings) *time.Duration {
		return &s.settledKeptFor
	},
		"how long a settled prompt stays in the people's view",
		"Too short: a person who looks a moment later does not see the answer."),
	durationOption("closed-sessions-kept-for", ledger.Default().ClosedKeptFor, func(s *settings) *time.Duration {
		return &s.closedKeptFor
	},
		"how long after its end a session's log is kept",
		"Too short: past events cannot be looked up. Too long: the disk fills."),
	durationOption("grace", reconciler.Default().Grace, func(s *settings) *time.Duration { return &s.grace },
		"how long after the end of a lease that was not renewed its owner counts as dead",
		"Too short: a short pause costs a running turn. Too long: people wait for work without a process."),
	durationOption("adoption-grace", reconciler.Default().AdoptionGrace, func(s *settings) *time.Duration {
		return &s.adoptionGrace
	},
		"how long a newer incarnation that is not ready may adopt the items of an older one, from its start or from "+
			"the last session that it claimed; at most 60 times as long",
		"Too short: questions expire that would have been adopted. Too long: the items of the dead one stay open."),
	durationOption("disconnect-grace", reconciler.Default().DisconnectGrace, func(s *settings) *time.Duration {
		return &s.disconnectGrace
	},
		"how long a harness whose connection ended may take to connect again, before its lease is ended; 0: no lease "+
			"is ended before its TTL",
		"Too short: a process that is slow to connect again starts over. Too long: people wait for work without a "+
			"process."),
	{"idle-compactions-max", "how many idle sessions of the cell are compacted at once",
		"Too many: the provider's limits are spent on idle sessions. Too few: conversations are compacted while a " +
			"person waits.",
		func(fs *pflag.FlagSet, s *settings, o *option) {
			fs.IntVar(&s.idleCompactionsMax, o.name, compaction.Default().IdleCompactionsMax, o.usage)
		}},
	{"retry-jitter", "the largest part of a retry's delay that is added to it, 0 to 1",
		"Too little: turns that failed together are tried again together. Too much: people wait for longer.",
		func(fs *pflag.FlagSet, s *settings, o *option) {
			fs.Float64Var(&s.retryJitter, o.name, retry.Default().Jitter, o.usage)
		}},
}

// Groups of options.
var (
	optionsBroker  = []string{"nats", "creds", "password-file", "nkey", "tls-ca", "tls-cert", "tls-key", "prefix"}
	optionsCommand = []string{"nats", "context", "creds", "password-file", "nkey", "tls-ca", "tls-cert", "tls-key",
		"prefix", "timeout", "json"}
	optionsUp = []string{"data", "sync", "listen", "http", "board", "ready-file", "prefix", "log-level",
		"ready-lag-max", "replicas", "feed-kept-for", "log-max", "objects-max", "json"}
	optionsService = []string{"consumer-key-file", "http", "ready-file", "log-level", "ready-lag-max", "replicas",
		"feed-kept-for", "log-max", "objects-max"}
)

// addFlags adds options to a command.
func (a *app) addFlags(cmd *cobra.Command, names ...[]string) {
	for _, group := range names {
		for _, name := range group {
			if cmd.Flags().Lookup(name) != nil {
				continue
			}
			for i := range options {
				if options[i].name == name {
					bindOption(cmd.Flags(), &a.settings, options[i])
				}
			}
		}
	}
}

// bindOption adds an option to a set of flags, with its old names.
func bindOption(fs *pflag.FlagSet, s *settings, o option) {
	o.bind(fs, s, &o)
	now := o.name
	for old, present := range oldNames {
		if present != now {
			continue
		}
		o.name = old
		o.bind(fs, s, &o)
		fs.Lookup(old).Hidden = true
	}
}

// envName returns the environment variable of a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// envNameOf returns the environment variable of a flag of a command: a flag that is no shared option has the name of
// its command in it, so that it is not set for another one.
func envNameOf(cmd *cobra.Command, flag string) string {
	if slices.ContainsFunc(options, func(o option) bool { return o.name == presentName(flag) }) {
		return envName(flag)
	}
	_, below, _ := strings.Cut(cmd.CommandPath(), " ")
	return envName(strings.ReplaceAll(below, " ", "-") + "-" + flag)
}

// fromEnvironment sets each flag that the environment has and the command line has not. A variable that set the flag in
// earlier builds, and now has another name, is an error: a sweep with HOLDFAST_DRY_RUN would change the cell.
func (a *app) fromEnvironment(cmd *cobra.Command) error {
	var wrong error
	given := map[string]bool{"help": true, "version": true}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[presentName(f.Name)] = true })
	// of the command line: it wins over the environment
	if given["context"] {
		if err := a.fromContext(cmd, given); err != nil {
			return err
		}
		cmd.Flags().Visit(func(f *pflag.Flag) { given[presentName(f.Name)] = true })
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, now := a.env(envNameOf(cmd, f.Name)), presentName(f.Name)
		if given[now] || wrong != nil {
			return
		}
		name, before := envNameOf(cmd, f.Name), envName(f.Name)
		if value == "" && name != before && a.env(before) != "" {
			wrong = usage(cmd, "%s is not read any more: set %s", before, name)
		}
		if value == "" || now != f.Name && a.env(envNameOf(cmd, now)) != "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			wrong = usage(cmd, "%s=%q: %s", envNameOf(cmd, f.Name), value, wanted(f, err))
		}
		if f.Name == "nats" {
			a.natsFrom = name
		}
	})
	if wrong != nil {
		return wrong
	}
	if !given["context"] {
		cmd.Flags().Visit(func(f *pflag.Flag) { given[presentName(f.Name)] = true })
		if err := a.fromContext(cmd, given); err != nil {
			return err
		}
		if err := a.fromNATS(cmd, given); err != nil {
			return err
		}
	}
	return a.checkSettings(cmd)
}

// wanted says what the value of a flag looks like.
func wanted(f *pflag.Flag, err error) string {
	switch f.Value.Type() {
	case "bool":
		return "want true or false"
	case "int", "int64":
		return "want a whole number"
	case "uint64":
		return "want a whole number, 0 or more"
	case "float64":
		return "want a number"
	case "duration":
		return "want a duration, such as 90s, 5m or 1h30m"
	}
	return err.Error()
}

// checkSettings reports wrong values of the shared options before anything is started.
func (a *app) checkSettings(cmd *cobra.Command) error {
	has := func(name string) bool { return cmd.Flags().Lookup(name) != nil }
	switch {
	case has("timeout") && a.timeout <= 0:
		return usage(cmd, "--timeout %s: want more than 0", a.timeout)
	case has("replicas") && a.replicas != 1 && a.replicas != 3 && a.replicas != 5:
		return usage(cmd, "--replicas %d: want 1, 3 or 5", a.replicas)
	case has("feed-kept-for") && a.feedKeptFor < 0:
		return usage(cmd, "--feed-kept-for %s: want 0 (no feed) or more", a.feedKeptFor)
	}
	for name, size := range map[string]string{"log-max": a.logMax, "objects-max": a.objectsMax} {
		if _, err := bytesOf(size, 0); has(name) && err != nil {
			return usage(cmd, "--%s %q: want bytes, such as 8GiB, or a share, such as 50%%", name, size)
		}
	}
	for name, address := range map[string]string{"listen": a.listen, "http": a.http} {
		if has(name) && !isAddress(address) {
			return usage(cmd, "--%s %q: want host:port, with a port from 0 to 65535", name, address)
		}
	}
	if err := bus.CheckAddresses(a.nats); has("nats") && err != nil {
		return usage(cmd, "%s: %v: want nats://host:port", cmp.Or(a.natsFrom, "--nats"), err)
	}
	if has("prefix") {
		if _, err := events.NewCell(a.prefix); err != nil {
			return usage(cmd, "--%v", err)
		}
	}
	if has("log-level") {
		if _, err := a.logger(); err != nil {
			return usage(cmd, "--log-level %q: want debug, info, warn or error", a.logLevel)
		}
	}
	for i := range targets {
		if slices.ContainsFunc(targets[i].options, func(name string) bool { return !has(name) }) {
			continue
		}
		if err := targets[i].check(&a.settings); err != nil {
			return usage(cmd, "%s", flagsNamed(cmd, err.Error()))
		}
	}
	return a.checkLogin(cmd)
}

// fieldNames matches the names of fields in the error of a service's configuration.
var fieldNames = regexp.MustCompile(`(?m)^config: ([a-z-]+): `)

// flagsNamed puts flags, as they were typed, in place of the fields of a service's configuration.
func flagsNamed(cmd *cobra.Command, text string) string {
	return fieldNames.ReplaceAllStringFunc(text, func(field string) string {
		f := cmd.Flags().Lookup(fieldNames.FindStringSubmatch(field)[1])
		if f == nil {
			return field
		}
		return fmt.Sprintf("--%s %s: ", f.Name, f.Value)
	})
}

// isAddress reports whether a text has the form of an address to listen on.
func isAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// bytesOf reads a size: a number of bytes, KiB, MiB or GiB, or a percentage of a store. A share of a store of unknown
// size is no limit, 0.
func bytesOf(text string, store int64) (int64, error) {
	number := strings.TrimRight(text, "KMGTiB%")
	unit, known := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
		"%": max(store, 0) / 100}[text[len(number):]]
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil:
		return 0, err
	case !known || n < 0 || unit > 0 && n > math.MaxInt64/unit || text[len(number):] == "%" && n > 100:
		return 0, fmt.Errorf("%q is no size", text)
	}
	return n * unit, nil
}

// reservedBytes is how much of a store the other streams may take: the broker reserves the limit of each stream.
const reservedBytes = 1 << 30

// limit sets the size limits of the cell's streams on a service's connection. store is the store of the embedded
// broker, 0 for another broker. A share of a store without room beside the other streams is no limit.
func (a *app) limit(cfg bus.Config, store int64) (bus.Config, error) {
	var err1, err2 error
	store = max(store-reservedBytes, 0)
	cfg.LogBytesMax, err1 = bytesOf(a.logMax, store)
	cfg.ObjectBytesMax, err2 = bytesOf(a.objectsMax, store)
	return cfg, errors.Join(err1, err2)
}

// busConfig returns the connection that the options describe.
func (a *app) busConfig(name string) bus.Config {
	feedKeptFor := a.feedKeptFor
	if feedKeptFor == 0 {
		// no feed
		feedKeptFor = -1
	}
	who := events.Asker{Class: events.ClassPerson, ID: a.person()}
	inbox := events.Inbox(a.prefix, events.ClassPerson, who.ID)
	if slices.ContainsFunc(targets, func(t target) bool { return t.name == name }) {
		who, inbox = events.Asker{}, events.Inbox(a.prefix, events.ClassService, name)
	}
	return bus.Config{URL: a.nats, Creds: a.creds, PasswordFile: a.passwordFile, NKey: a.nkey, TLSCA: a.tlsCA,
		ConsumerKeyFile: a.consumerKeyFile, TLSCert: a.tlsCert, TLSKey: a.tlsKey,
		Name: "holdfast-" + name, Prefix: a.prefix, Inbox: inbox, Asker: who,
		Replicas: a.replicas, FeedKeptFor: feedKeptFor}
}

// person returns the asker: the user that logs in, unless --person names another. Without a login, and with a token, it
// is the user of the system, from the environment or, as in many containers, from the system's account.
func (a *app) person() string {
	login := bus.LoginOf(bus.Config{URL: a.nats, Creds: a.creds, PasswordFile: a.passwordFile, NKey: a.nkey})
	for _, by := range []string{a.by, login, a.env("USER"), a.env("LOGNAME")} {
		if by != "" {
			return by
		}
	}
	if account, err := user.Current(); err == nil && account.Username != "" {
		return account.Username
	}
	// an account without a name
	return fmt.Sprint("uid-", os.Getuid())
}

// describe returns a command's long help with examples.
func describe(text string, examples ...string) (long, example string) {
	for i, e := range examples {
		examples[i] = fmt.Sprintf("  %s", e)
	}
	return text, strings.Join(examples, "\n")
}
