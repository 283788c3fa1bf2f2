package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// loadsAtOnceMax is how many documents are loaded at the same time.
const loadsAtOnceMax = 16

// watch calls fn with the entries that a board begins with, then with an update that is Ready, then with each change.
func (a *app) watch(ctx context.Context, buckets *kv.Buckets, x *board, fn func(kv.Update) error) error {
	if x.limit == 0 {
		return buckets.Watch(ctx, kv.State, watched(x.filter), fn)
	}
	// before the entries are read: what changes meanwhile comes again
	after, err := buckets.Mark(ctx, kv.State)
	if err != nil {
		return err
	}
	first, err := a.firstOf(ctx, buckets, x)
	if err != nil {
		return err
	}
	for i := range first {
		if err := fn(kv.Update{Entry: first[i]}); err != nil {
			return err
		}
	}
	return buckets.WatchAfter(ctx, kv.State, watched(x.filter), after, first, fn)
}

// firstOf returns what a board begins with, in the order of the revisions: the sessions that changed last, the newest
// prompts that wait, and the sessions of these.
func (a *app) firstOf(ctx context.Context, buckets *kv.Buckets, x *board) ([]kv.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	f := x.filter
	prompts, older, err := newestOf(ctx, buckets, events.BlockerKeys(f.harness, ""), x.limit, func(e kv.Entry) bool {
		var b session.Blocker
		// one that cannot be read is counted by the board
		return json.Unmarshal(e.Value, &b) != nil || b.Awaits() && (f.root == "" || b.Root == f.root) &&
			(f.session == "" || b.Session == f.session)
	})
	if err != nil {
		return nil, err
	}
	docs := map[string]kv.Entry{}
	if f.session == "" && !f.waiting {
		newest, more, err := newestOf(ctx, buckets, events.SessionKeys(f.harness), x.limit, func(e kv.Entry) bool {
			s, err := session.Decode(e.Value)
			return err != nil || f.wants(s)
		})
		if err != nil {
			return nil, err
		}
		older = older || more
		for _, e := range newest {
			docs[e.Key] = e
		}
	}
	x.begins(older)
	if err := loadAll(ctx, buckets, docs, sessionsOf(f, prompts)); err != nil {
		return nil, err
	}
	all := append(sortedValues(docs), prompts...)
	slices.SortFunc(all, func(x, y kv.Entry) int { return cmp.Compare(x.Rev, y.Rev) })
	return all, nil
}

// sessionsOf returns the keys of the documents of these prompts, and of the session that is watched alone.
func sessionsOf(f *sessionFilter, prompts []kv.Entry) []string {
	var keys []string
	if f.session != "" {
		keys = append(keys, events.SessionKey(events.Ref{Harness: f.harness, Session: f.session}))
	}
	for i := range prompts {
		if r, err := events.ParseViewKey(prompts[i].Key); err == nil {
			keys = append(keys, events.SessionKey(r))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// loadAll adds the entries of the keys that are not there.
func loadAll(ctx context.Context, buckets *kv.Buckets, have map[string]kv.Entry, keys []string) error {
	keys = slices.DeleteFunc(keys, func(key string) bool { _, has := have[key]; return has })
	var mu sync.Mutex
	loads, ctx := errgroup.WithContext(ctx)
	loads.SetLimit(loadsAtOnceMax)
	for _, key := range keys {
		loads.Go(func() error {
			e, err := buckets.Load(ctx, kv.State, key)
			if errors.Is(err, bus.ErrNotFound) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			have[key] = e
			return err
		})
	}
	return loads.Wait()
}

// newestOf returns the newest entries that are wanted, at most limit, and reports whether there may be more.
func newestOf(ctx context.Context, buckets *kv.Buckets, filter string, limit int, wants func(kv.Entry) bool) (
	[]kv.Entry, bool, error) {
	found := map[string]kv.Entry{}
	older, err := buckets.ListNewest(ctx, kv.State, filter, func() bool { return len(found) >= limit },
		func(e kv.Entry) error {
			// a key that changes meanwhile is listed again
			delete(found, e.Key)
			if wants(e) {
				found[e.Key] = e
			}
			return nil
		})
	all := sortedValues(found)
	slices.SortFunc(all, func(x, y kv.Entry) int { return cmp.Compare(y.Rev, x.Rev) })
	if len(all) > limit {
		all, older = all[:limit], true
	}
	return all, older, err
}
