package drill

import "github.com/holdfast-dev/holdfast/harness"

// Login is the files with which an agent proves itself; see [harness.Config].
type Login struct {
	Creds        string `json:"creds,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
	NKey         string `json:"nkey,omitempty"`
	TLSCA        string `json:"tls_ca,omitempty"`
	TLSCert      string `json:"tls_cert,omitempty"`
	TLSKey       string `json:"tls_key,omitempty"`
}

// On adds the files to a configuration.
func (l Login) On(c harness.Config) harness.Config {
	c.Creds, c.PasswordFile, c.NKey = l.Creds, l.PasswordFile, l.NKey
	c.TLSCA, c.TLSCert, c.TLSKey = l.TLSCA, l.TLSCert, l.TLSKey
	return c
}
