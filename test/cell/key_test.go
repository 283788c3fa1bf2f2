package cell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/secret"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The words of doctor about consumers that have the name of a service's consumer.
const (
	severalUsed = "work is done more than once: "
	oneLeft     = "no process uses these consumers, as after a change of the key: "
)

// TestAKeyForARunningCell gives the services of a running cell their consumer keys as the guide says: all processes of
// a service stop, then start with the key. Before that, one process of the ledger starts with the key alone, as after a
// crash. A harness writes and a person answers meanwhile: each acknowledged fact is stored, the documents are the fold
// of the log, and doctor says what to do.
func TestAKeyForARunningCell(t *testing.T) {
	d := deployNodes(t, briefly)
	for _, s := range services {
		if err := os.Remove(filepath.Join(d.secrets.folder(s), secret.ConsumerKey)); err != nil {
			t.Fatal(err)
		}
		d.scaleUp(s)
	}
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}
	t.Cleanup(func() { d.report(t) })
	w := d.write()
	w.proceeds(t)
	root := d.login("root", events.ClassPerson, "root")
	plain := slices.Sorted(slices.Values(durables))
	if got := d.durables(root); !slices.Equal(got, plain) {
		t.Fatalf("without keys the durables are %q, want %q", got, plain)
	}
	d.untilOutput("nothing about keys", func(out string, err error) bool {
		return err == nil && !strings.Contains(out, "consumer keys")
	})

	d.secrets.secrets(d.net.routes()...)
	first := d.services[slices.IndexFunc(d.services, func(r *replica) bool { return r.name == "ledger-a" })]
	first.end(syscall.SIGKILL, true)
	d.until(first.pod, first.fit)
	w.proceeds(t)
	d.untilOutput("that two keys are used", func(out string, err error) bool {
		return err != nil && strings.Contains(out, severalUsed+"HF_LOG ledger, HF_LOG ledger-")
	})

	for _, s := range services {
		d.scaleDown(s)
		d.scaleUp(s)
		for _, r := range d.services {
			d.until(r.pod, r.fit)
		}
		w.proceeds(t)
	}
	d.untilOutput("which consumers are left", func(out string, err error) bool {
		_, left, found := strings.Cut(out, oneLeft)
		left, _, _ = strings.Cut(left, "\n")
		return err == nil && found && slices.Equal(slices.Sorted(strings.SplitSeq(strings.ReplaceAll(left, " ", "."),
			",.")), plain)
	})
	// as doctor says
	for _, name := range plain {
		m, err := root.Request("$JS.API.CONSUMER.DELETE."+name, nil, patience)
		if err != nil || !strings.Contains(string(m.Data), `"success":true`) {
			t.Fatalf("%s is not removed: %v %+v", name, err, m)
		}
	}
	d.untilOutput("nothing about keys again", func(out string, err error) bool {
		return err == nil && !strings.Contains(out, "consumer keys")
	})
	keyed := d.durables(root)
	for i, name := range keyed {
		if digits, ok := strings.CutPrefix(name, plain[i]+"-"); !ok || len(digits) != 24 {
			t.Errorf("with keys a durable is %q", name)
		}
	}
	if len(keyed) != len(plain) {
		t.Errorf("with keys the durables are %q", keyed)
	}
	w.proceeds(t)
	w.end()
	w.verify(d.as("holdfast-ledger", events.ClassService, "ledger"))
}

// durables returns the durable consumers of the cell, by stream and name.
func (d *deployment) durables(operator *account) []string {
	d.t.Helper()
	var all []string
	for _, stream := range []string{"HF_LOG", "KV_hf_state", "HF_TIMERS"} {
		for _, c := range consumers(d.t, operator, stream) {
			if c.Config.Durable != "" {
				all = append(all, stream+"."+c.Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// untilOutput waits until doctor says something.
func (d *deployment) untilOutput(what string, ok func(out string, err error) bool) {
	d.t.Helper()
	var out string
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.t.Logf("doctor, which should say %s, said last:\n%s", what, out)
		}
	})
	natstest.Until(d.t, "doctor to say "+what, func() bool {
		var err error
		out, err = d.doctor()
		return ok(out, err)
	})
}
