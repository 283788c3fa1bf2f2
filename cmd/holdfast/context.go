package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/terminal"
)

// natsContext is a file of the nats CLI: where a broker is, and how to log in. A field that this program cannot use is
// an error where it would lead to another broker or account.
type natsContext struct {
	URL          string `json:"url"`
	User         string `json:"user"`
	Password     string `json:"password"`
	Token        string `json:"token"`
	Creds        string `json:"creds"`
	NKey         string `json:"nkey"`
	Cert         string `json:"cert"`
	Key          string `json:"key"`
	CA           string `json:"ca"`
	NSC          string `json:"nsc"`
	UserJWT      string `json:"user_jwt"`
	SocksProxy   string `json:"socks_proxy"`
	Domain       string `json:"jetstream_domain"`
	APIPrefix    string `json:"jetstream_api_prefix"`
	TLSFirst     bool   `json:"tls_first"`
	WinCertStore string `json:"windows_cert_store"`
}

// contextDir returns the folder of the nats CLI's contexts, "" if the environment does not say where it is.
func (a *app) contextDir() string {
	config := a.env("XDG_CONFIG_HOME")
	if config == "" && a.home() != "" {
		config = filepath.Join(a.home(), ".config")
	}
	if config == "" {
		return ""
	}
	return filepath.Join(config, "nats", "context")
}

// home returns the home directory, "" if the environment does not name one.
func (a *app) home() string { return cmp.Or(a.env("HOME"), a.env("USERPROFILE")) }

// Where the name of a context is from.
const (
	contextNamed    = "--context"    // the command line, or HOLDFAST_CONTEXT
	contextVariable = "NATS_CONTEXT" // of the nats CLI
	contextSelected = "nats context select"
)

// contextBy returns the context in use with what named it.
func (a *app) contextBy() string {
	if a.contextFrom == contextSelected {
		return fmt.Sprintf("the selected nats context %s", a.context)
	}
	return cmp.Or(a.contextFrom, contextNamed) + " " + a.context
}

// implicitContext returns the context that the nats CLI would use without a flag, and what names it: its variable, or
// the one that is selected. Both are "" without one.
func (a *app) implicitContext() (name, from string) {
	if name := a.env(contextVariable); name != "" {
		return name, contextVariable
	}
	dir := a.contextDir()
	if dir == "" {
		return "", ""
	}
	body, err := os.ReadFile(dir + ".txt")
	if name := strings.TrimSpace(string(body)); err == nil && name != "" {
		return name, contextSelected
	}
	return "", ""
}

// withoutCell has the commands that look, decide or repair and may need no broker, with the flag that says so; "": they
// have one of their own unless one is named.
var withoutCell = map[string]string{"drill": "", "replay": "", "rescue": "from", "restore": "check"}

// asksACell reports whether a person asks a cell with this command line. An agent's process has its broker in its own
// settings.
func asksACell(cmd *cobra.Command) bool {
	if !slices.Contains([]string{groupInspect, groupDecide, groupRepair}, cmd.GroupID) {
		return false
	}
	flag, may := withoutCell[cmd.Name()]
	return !may || flag != "" && !cmd.Flags().Changed(flag)
}

// fromNATS uses the context that the nats CLI would use, and says so: a person may have forgotten it. It is not read
// if the line or the environment names a broker or a context.
func (a *app) fromNATS(cmd *cobra.Command, given map[string]bool) error {
	if a.context != "" || given["nats"] || cmd.Flags().Lookup("context") == nil || !asksACell(cmd) {
		return nil
	}
	if a.context, a.contextFrom = a.implicitContext(); a.context == "" {
		return nil
	}
	if err := a.fromContext(cmd, given); err != nil {
		return err
	}
	why := "NATS_CONTEXT is " + a.context
	if a.contextFrom == contextSelected {
		why = "the nats context " + a.context + " is selected"
	}
	a.printError("%s", terminal.Clean(fmt.Sprintf("using %s: %s (--nats names another)", bus.Redacted(a.nats), why)))
	return nil
}

// fromContext sets the flags that the context in use has, except those that the line or the environment gives.
func (a *app) fromContext(cmd *cobra.Command, given map[string]bool) error {
	if a.context == "" || cmd.Flags().Lookup("context") == nil {
		return nil
	}
	c, err := a.readContext(cmd)
	if err != nil {
		return err
	}
	if c.Creds != "" || c.NKey != "" || a.loginFileNamed(cmd) {
		// with a login in a file, the user in the URL is a name
		c.Token = ""
	}
	servers, err := c.servers()
	if err == nil && servers == "" && !given["nats"] {
		err = errors.New("it has no url; name the broker with --nats")
	}
	if err != nil {
		return usage(cmd, "%s: %v", a.contextBy(), err)
	}
	for _, f := range []struct{ flag, value string }{{"nats", servers}, {"creds", c.Creds}, {"nkey", c.NKey},
		{"tls-ca", c.CA}, {"tls-cert", c.Cert}, {"tls-key", c.Key}} {
		if f.value == "" || given[f.flag] {
			continue
		}
		if rest, ok := strings.CutPrefix(f.value, "~"); ok && (rest == "" || rest[0] == '/') {
			if a.home() == "" {
				return usage(cmd, "%s: %s is %s, and HOME is not set", a.contextBy(), f.flag, f.value)
			}
			f.value = a.home() + rest
		}
		if err := cmd.Flags().Set(f.flag, f.value); err != nil {
			return usage(cmd, "%s: %s: %v", a.contextBy(), f.flag, err)
		}
		a.ofContext = append(a.ofContext, f.flag)
	}
	return nil
}

// loginFileNamed reports whether the command line or the environment names a file with a login.
func (a *app) loginFileNamed(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"creds", "nkey", "password-file"}, func(flag string) bool {
		return cmd.Flags().Changed(flag) || a.env(envName(flag)) != ""
	})
}

// readContext reads and checks the context in use.
func (a *app) readContext(cmd *cobra.Command) (c natsContext, err error) {
	if a.context != filepath.Base(a.context) || strings.HasPrefix(a.context, ".") {
		return c, usage(cmd, "%s: want the name of a context", a.contextBy())
	}
	dir := a.contextDir()
	if dir == "" {
		return c, usage(cmd, "%s: neither XDG_CONFIG_HOME nor HOME says where the contexts are", a.contextBy())
	}
	file := filepath.Join(dir, a.context+".json")
	body, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, usage(cmd, "%s: there is no %s; %s", a.contextBy(), file, contextNames(dir))
	}
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	if err != nil {
		return c, usage(cmd, "%s: %s: %v", a.contextBy(), file, err)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"nsc", c.NSC != ""}, {"user_jwt", c.UserJWT != ""}, {"socks_proxy", c.SocksProxy != ""},
		{"jetstream_domain", c.Domain != ""}, {"jetstream_api_prefix", c.APIPrefix != ""}, {"tls_first", c.TLSFirst},
		{"windows_cert_store", c.WinCertStore != ""}} {
		if f.set {
			return c, usage(cmd, "%s: %s has %q, which holdfast does not support; use --nats and --creds",
				a.contextBy(), file, f.name)
		}
	}
	for _, f := range []struct{ name, value string }{{"user", c.User}, {"password", c.Password}, {"token", c.Token},
		{"creds", c.Creds}, {"nkey", c.NKey}, {"cert", c.Cert}, {"key", c.Key}, {"ca", c.CA}} {
		if scheme := reference.FindString(f.value); scheme != "" {
			return c, usage(cmd, "%s: %s has %q as a reference (%s), which holdfast does not follow; use "+
				"--nats and --creds", a.contextBy(), file, f.name, scheme)
		}
	}
	return c, nil
}

// reference matches the beginning of a value that is not the file or the secret itself: op://vault/item, data:;base64.
var reference = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+://|data:)`)

// contextsIn returns the names of the contexts in a folder.
func contextsIn(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	slices.Sort(names)
	return names
}

// contextNames lists the contexts of a folder.
func contextNames(dir string) string {
	names := contextsIn(dir)
	if len(names) == 0 {
		return "`nats context add` makes one"
	}
	return "there are: " + strings.Join(names, ", ")
}

// servers returns the URLs of a context, with its user or token in each that has none.
func (c natsContext) servers() (string, error) {
	login := url.User(c.Token)
	if c.User != "" {
		login = url.UserPassword(c.User, c.Password)
	}
	var all []string
	for server := range strings.SplitSeq(c.URL, ",") {
		if server = strings.TrimSpace(server); server == "" {
			continue
		}
		if err := bus.CheckAddresses(server); err != nil {
			return "", fmt.Errorf("its url %w: want nats://host:port", err)
		}
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		u, err := url.Parse(server)
		if err != nil {
			return "", err
		}
		if u.User == nil && (c.User != "" || c.Token != "") {
			u.User = login
		}
		all = append(all, u.String())
	}
	return strings.Join(all, ","), nil
}
