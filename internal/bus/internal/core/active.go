package core

import (
	"slices"
	"sync"
)

// Actives has the consumers that this process takes the messages of now: the broker has given it their pins. Its
// methods may be called concurrently.
type Actives struct {
	mu   sync.Mutex
	list []active
}

// active is one pin.
type active struct{ durable, stream string }

// Begin says that this process is active at a durable consumer of a stream, until end is called.
func (a *Actives) Begin(durable, stream string) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pin := active{durable, stream}
	a.list = append(a.list, pin)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if i := slices.Index(a.list, pin); i >= 0 {
			a.list = slices.Delete(a.list, i, i+1)
		}
	}
}

// Streams returns the streams of durable consumers of these names at which this process is active, sorted.
func (a *Actives) Streams(durables ...string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var streams []string
	for _, pin := range a.list {
		if slices.Contains(durables, pin.durable) {
			streams = append(streams, pin.stream)
		}
	}
	slices.Sort(streams)
	return slices.Compact(streams)
}
