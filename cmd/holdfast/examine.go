package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// lossAdvice is the advice for a log that has lost commits.
const lossAdvice = "keep what is left: `holdfast rescue DIR`; restore the broker's files from a backup if there is " +
	"one; " +
	"else accept the loss with `holdfast rebuild --accept-loss`"

// truth compares the documents with the log: a document that is ahead of the log shows a loss.
func (p *patient) truth(ctx context.Context) {
	found, err := ledger.Inspect(ctx, p.bus)
	if err != nil {
		p.add("truth", levelWrong, "try again; with a larger --timeout in a large cell",
			"documents were not compared with the log: %v", err)
		return
	}
	if len(found.Lost) == 0 && len(found.Wrong) == 0 {
		p.add("truth", levelOK, "", "the log has all that %s know", terminal.Plural(found.Documents, "document"))
		return
	}
	names := make([]string, len(found.Lost))
	for i := range found.Lost {
		names[i] = found.Lost[i].String()
	}
	if len(names) > 0 {
		p.add("truth", levelWrong, lossAdvice, "the log has lost commits of %s: %s",
			terminal.Plural(len(names), "session"), shorten(names))
	}
	names = make([]string, len(found.Wrong))
	for i := range found.Wrong {
		names[i] = found.Wrong[i].String()
	}
	if len(names) > 0 {
		p.add("truth", levelWrong,
			"`holdfast rebuild` makes them from the log; so does the ledger when it starts, and by and by",
			"%s missing, damaged or older than what was folded: %s", terminal.Plural(len(names), "document"),
			shorten(names))
	}
}

// strangers reports consumers that no part of Holdfast made: each costs the broker work, and a push consumer can send
// stored messages to any subject.
func (p *patient) strangers(ctx context.Context) {
	var ours []consumer.Source
	for i := range targets {
		ours = append(ours, targets[i].consumers(p.bus, &p.app.settings)...)
	}
	found, err := p.bus.Consumers.Strangers(ctx, ours)
	switch {
	case errors.Is(err, bus.ErrForbidden):
		p.add("strangers", levelNote, askOperator, "this user may not list consumers")
		return
	case err != nil:
		p.add("strangers", levelWrong, "try again", "%v", err)
		return
	}
	names := make([]string, len(found))
	for i, x := range found {
		names[i] = fmt.Sprintf("%s of %s %s", x.Name, x.Stream, x.Why)
	}
	p.check(len(names), "strangers", levelNote,
		"find out whose they are; `nats consumer rm STREAM CONSUMER` removes one",
		"consumers that Holdfast did not make: "+few(names, namesMax))
}

// nodes reports the nodes that hold the cell's streams. A client cannot see a node that holds none.
func (p *patient) nodes(cell layout.Inspection) {
	var all, offline []string
	replicas := 0
	for _, s := range cell.Streams {
		all, offline, replicas = append(all, s.Nodes...), append(offline, s.Offline...), max(replicas, s.Replicas)
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	slices.Sort(offline)
	all, offline = slices.Compact(all), slices.Compact(offline)
	var foreign []string
	for _, n := range all {
		if len(p.app.nodes) > 0 && !slices.Contains(p.app.nodes, n) {
			foreign = append(foreign, n)
		}
	}
	switch {
	case len(foreign) > 0:
		p.add("nodes", levelWrong,
			"remove them from the cluster (`nats server cluster peer-remove`), and change the routes' password",
			"not named with --node, and they hold streams: %s", strings.Join(foreign, ", "))
	case len(offline) > 0:
		p.add("nodes", levelWrong, "start them, or replace them; one whose disk is full starts when there is room",
			"offline: %s", strings.Join(offline, ", "))
	case len(all) > replicas:
		p.add("nodes", levelNote, "name yours with --node, then others are reported",
			"the streams are on %d nodes, with %s each: %s", len(all), copies(replicas), strings.Join(all, ", "))
	default:
		p.add("nodes", levelOK, "", "%s", strings.Join(all, ", "))
	}
}

// unrecovered runs the reconciler's decision on sessions without an owner in which something is open. It does
// not report what recovery leaves open by design: a turn, for example, that continues with the answer once its harness
// takes it.
func (p *patient) unrecovered(ctx context.Context, t *tally) error {
	if len(t.left) == 0 {
		return nil
	}
	children := map[events.Ref][]*session.State{}
	for _, s := range t.left {
		children[s.Ref()] = nil
	}
	err := p.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		s, err := session.Decode(e.Value)
		if err != nil || s.Parent == "" {
			return nil
		}
		parent := events.Ref{Harness: s.Harness, Session: s.Parent}
		if _, left := children[parent]; left {
			children[parent] = append(children[parent], s)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("holdfast: doctor: sessions: %w", err)
	}
	for _, s := range t.left {
		d, err := reconciler.Decide(s, reconciler.Input{Now: t.now, Children: children[s.Ref()]},
			p.app.source(ctx, p.bus))
		if err != nil || len(d.Facts) > 0 {
			t.orphans = append(t.orphans, s.Ref().String())
		}
	}
	return nil
}
