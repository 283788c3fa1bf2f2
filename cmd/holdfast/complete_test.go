package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// A document that cannot be read does not end the completion with a panic, and the words that were found before it are
// offered.
func TestCompletionBesideADamagedDocument(t *testing.T) {
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	store := func(id string, doc []byte) {
		key := events.SessionKey(events.Ref{Harness: "agent", Session: id})
		if _, err := b.KV.Store(t.Context(), kv.State, key, doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := session.New(events.Ref{Harness: "agent", Session: "whole"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	store("whole", whole)
	store("damaged", []byte("{"))
	a := newApp(&Program{})
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error { return a.fromEnvironment(cmd) }}
	a.addFlags(cmd, optionsCommand)
	cmd.SetArgs([]string{"--nats", srv.URL(), "--timeout", "1m"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, find := range map[string]func(context.Context, *app, *cobra.Command, []string, string) ([]string, error){
		"prompts": completePrompts, "messages": completeMessages,
	} {
		if words, err := find(t.Context(), a, cmd, []string{"agent/damaged"}, ""); err == nil || len(words) > 0 {
			t.Errorf("%s of a damaged document: %q, %v", name, words, err)
		}
	}
	var words []string
	// within the time limit of completion
	natstest.Until(t, "the session before the damaged one", func() bool {
		words = a.complete(cmd, []string{"S"}, nil, "")
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "agent/whole\t") })
	})
	if len(words) != 1 {
		t.Errorf("%q", words)
	}
}

// TestBareNames: a session whose document changes while its name is looked up is one session. The keys are listed twice
// then.
func TestBareNames(t *testing.T) {
	one, other := events.Ref{Harness: "a", Session: "s1"}, events.Ref{Harness: "b", Session: "s1"}
	var found []events.Ref
	first := events.SessionKey(one)
	for _, key := range []string{first, "session.odd", events.SessionKey(other), first} {
		found = addNamed(found, key)
	}
	if !slices.Equal(found, []events.Ref{one, other}) {
		t.Errorf("found %v", found)
	}
}
