package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// truth reports the comparison of the documents with the log, or its error: a document that is ahead of the log shows a
// loss.
func (p *patient) truth(found *ledger.Survey, err error) {
	if err != nil {
		p.add("truth", levelWrong, "try again; with a larger --timeout in a large cell",
			"documents were not compared with the log: %v", err)
		return
	}
	p.compared(found)
}

// compared adds what the comparison found.
func (p *patient) compared(found *ledger.Survey) {
	if len(found.Lost) == 0 && len(found.Wrong) == 0 {
		p.add("truth", levelOK, "", "the log has all that %s",
			terminal.Count(found.Documents, "document knows", "documents know"))
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
	names := make([]string, 0, len(found))
	// by the name of a service's consumer
	several := map[string][]consumer.Stranger{}
	for _, x := range found {
		if x.Durable != "" {
			several[x.Durable] = append(several[x.Durable], x)
			continue
		}
		names = append(names, fmt.Sprintf("%s of %s %s", x.Name, x.Stream, x.Why))
	}
	p.consumerKeys(several)
	p.check(len(names), "strangers", levelNote,
		"find out whose they are; `nats consumer rm -f STREAM CONSUMER` removes one",
		"consumer that Holdfast did not make: ", "consumers that Holdfast did not make: ", few(names, namesMax))
	p.uncounted(ctx)
}

// uncounted reports consumers that the broker counts for no limit: each takes memory of a node. The reconciler deletes
// them, but for a few with a subscription. In a cell without users no broker tells of them.
func (p *patient) uncounted(ctx context.Context) {
	found, err := p.bus.Consumers.Uncounted(ctx)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return
	case errors.Is(err, bus.ErrForbidden):
		p.add("uncounted", levelNote, "give the broker what `holdfast permissions` prints",
			"the brokers do not tell this user of consumers that they do not list")
		return
	case err != nil:
		p.add("uncounted", levelNote, "try again; if it stays, read the log of the reconciler, which deletes them",
			"%d consumers that the broker counts for no limit, or more: %v", len(found), err)
		return
	}
	names := make([]string, 0, len(found))
	for i := range found {
		names = append(names, found[i].String())
	}
	p.check(len(names), "uncounted", levelNote,
		"the reconciler deletes them within a minute, but for 16 with a subscription; take the rights of the user "+
			"whose inbox they deliver to",
		"consumer that the broker counts for no limit: ", "consumers that the broker counts for no limit: ",
		few(names, namesMax))
}

// When the store is reported as nearly full.
const (
	storeFullPercent = 80 // of the account's limit
	// limitlessPart is the part of the log's limit that streams without a limit may take: the manifests leave as much
	// of the store when all other streams are full
	limitlessPart = 10
)

// store reports the bytes of each stream, and a store that may become full through streams without a limit.
func (p *patient) store(cell layout.Inspection) {
	var each []string
	total, limitless := uint64(0), uint64(0)
	for _, s := range cell.Streams {
		total += s.Bytes
		text := s.Name + " " + sizeOf(s.Bytes)
		if s.BytesMax > 0 {
			text += " of " + sizeOf(s.BytesMax)
		} else {
			limitless += s.Bytes
		}
		each = append(each, text)
	}
	text := sizeOf(total) + " in each copy: " + strings.Join(each, ", ")
	if cell.BytesMax > 0 {
		text = fmt.Sprintf("%d %% of the account's %s are used; %s", cell.Bytes/max(cell.BytesMax/100, 1),
			sizeOf(cell.BytesMax), text)
	}
	logMax := cell.Streams[0].BytesMax
	switch {
	case cell.BytesMax > 0 && cell.Bytes >= cell.BytesMax/100*storeFullPercent:
		p.add("store", levelWrong, "raise the account's limit: beyond it the broker refuses every write", "%s", text)
	case logMax > 0 && limitless >= logMax/limitlessPart:
		p.add("store", levelNote, "enlarge the store, or close sessions and shorten --closed-sessions-kept-for: a "+
			"full store refuses every write",
			"streams without a limit have %s, more than a tenth of the log's limit; %s", sizeOf(limitless), text)
	default:
		p.add("store", levelOK, "", "%s", text)
	}
}

// sizeOf prints a number of bytes with one decimal of the largest unit.
func sizeOf(n uint64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1<<10 {
		return terminal.Plural(int(n), "byte")
	}
	f, unit := float64(n)/(1<<10), 0
	for f >= 1<<10 && unit < len(units)-1 {
		f, unit = f/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %s", f, units[unit])
}

// unselectable reports messages of the log that belong to no session and that retention cannot remove: their subjects,
// as filters, select commits of sessions.
func (p *patient) unselectable(ctx context.Context) {
	found, err := p.bus.Log.Unselectable(ctx)
	if err != nil {
		p.add("strays", levelWrong, "try again; with a larger --timeout in a large cell", "%v", err)
		return
	}
	names := make([]string, 0, len(found))
	for _, subject := range slices.Sorted(maps.Keys(found)) {
		names = append(names, fmt.Sprintf("%q (last at %d)", subject, found[subject]))
	}
	p.check(len(names), "strays", levelNote,
		"`nats stream rmm -f "+p.bus.Cell().LogStream()+" SEQUENCE` deletes one message; then doctor names the one "+
			"before it; never purge by such a subject: as a filter it selects commits of sessions",
		"subject of the log names no session, and retention cannot remove its messages: ",
		"subjects of the log name no session, and retention cannot remove their messages: ", few(names, namesMax))
}

// consumersNamedMax limits the named consumers of services: each service has at most two.
const consumersNamedMax = 20

// consumerKeys reports consumers of services of which several have the same name, with and without a key. Processes
// with different keys use several; a service that was given a key leaves one behind.
func (p *patient) consumerKeys(several map[string][]consumer.Stranger) {
	var double, unused []string
	for _, durable := range slices.Sorted(maps.Keys(several)) {
		var inUse []string
		for _, x := range several[durable] {
			name := x.Stream + " " + x.Name
			if x.Used {
				inUse = append(inUse, name)
			} else {
				unused = append(unused, name)
			}
		}
		if len(inUse) > 1 {
			double = append(double, inUse...)
		}
	}
	if len(double) > 0 {
		p.add("consumer keys", levelWrong,
			"stop all processes of the service, then start them with the same key; if a consumer is not the "+
				"service's, `nats consumer rm -f STREAM CONSUMER` removes it",
			"processes of one service use several consumers, so work is done more than once: %s",
			few(double, consumersNamedMax))
	}
	if len(unused) > 0 {
		p.add("consumer keys", levelNote,
			"if doctor still says so when all services run: `nats consumer rm -f STREAM CONSUMER` removes each",
			"no process uses these consumers, as after a change of the key: %s", few(unused, consumersNamedMax))
	}
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
			"the streams are on %d nodes, with %s each: %s", len(all),
			terminal.Count(replicas, "copy", "copies"), strings.Join(all, ", "))
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
		return fmt.Errorf("doctor: sessions: %w", err)
	}
	for _, s := range t.left {
		d, err := reconciler.Decide(s, reconciler.Input{Now: t.now, Children: children[s.Ref()]},
			p.app.source(ctx, p.bus.Log))
		if err != nil || len(d.Facts) > 0 {
			t.orphans = append(t.orphans, s.Ref().String())
		}
	}
	return nil
}
