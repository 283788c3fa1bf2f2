package harness_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// Everything that is wrong is reported at once, each with what is wanted.
func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  harness.Config
		want []string // fields
	}{
		{"an id is all it needs", harness.Config{ID: "a"}, nil},
		{"no id", harness.Config{}, []string{"ID"}},
		{"an id that is too long", harness.Config{ID: strings.Repeat("x", 129)}, []string{"ID"}},
		{"all at once", harness.Config{ID: "a", Prefix: "Hf", TTL: time.Millisecond, OnLeaseLoss: 9, BufferFactsMax: -1,
			BufferBytesMax: -1},
			[]string{"Prefix", "TTL", "OnLeaseLoss", "BufferFactsMax", "BufferBytesMax"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cfg.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatal(err)
			}
			for _, field := range c.want {
				if !strings.Contains(err.Error(), "config: "+field+": want ") {
					t.Errorf("%s is not reported: %v", field, err)
				}
			}
			if err != nil && strings.Count(err.Error(), "want ") != len(c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestConnectRefused: the error of a connection to a wrong place has the reason.
func TestConnectRefused(t *testing.T) {
	s := natstest.Start(t) // no cell on it
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := harness.Connect(ctx, harness.Config{ID: me, URL: s.URL()})
	wantErr(t, err, harness.ErrNoCell)
	s.Shutdown()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = harness.Connect(short, harness.Config{ID: me, URL: s.URL()})
	wantErr(t, err, harness.ErrUnreachable)
}
