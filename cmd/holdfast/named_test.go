package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestNamesThatNoSessionHas: the refusal of a name says what to do. If a harness has the name, it says how to list the
// harness's sessions.
func TestNamesThatNoSessionHas(t *testing.T) {
	c, ref := startUp(t, t.TempDir()), events.Ref{Harness: "my agent", Session: "s1"}
	c.append(ref, events.SessionOpened{Incarnation: "1"})
	c.folded(ref)
	const harness = "`holdfast sessions --all --harness 'my agent'` lists its sessions"
	for _, x := range []struct {
		args  []string
		want  string
		other string
	}{
		{[]string{"show", "my agent"}, harness, "`holdfast sessions --all` lists them"},
		{[]string{"watch", "my agent", "--once"}, harness, ""},
		{[]string{"show", "nothing"}, "no such session: nothing; `holdfast sessions --all` lists them", "is a harness"},
		{[]string{"show", "my agent/nothing"}, "no such session", "is a harness"},
		{[]string{"backup", filepath.Join(t.TempDir(), "missing")}, "missing is not a directory: make it first",
			"partial"},
	} {
		var out bytes.Buffer
		p := &Program{Args: append(x.args, "--nats", c.note.NATS), Stdout: &out, Stderr: &out}
		if code := p.Run(context.WithoutCancel(t.Context())); code != exitFailed ||
			!strings.Contains(out.String(), x.want) || x.other != "" && strings.Contains(out.String(), x.other) {
			t.Errorf("%q: exit code %d: %s", x.args, code, &out)
		}
	}
}
