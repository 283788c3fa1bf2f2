package opencode

import (
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// noPlugin says what a process of OpenCode needs whose plugin does not ask.
const noPlugin = "put the output of `holdfast bridge opencode plugin` where OpenCode looks for plugins, and " +
	PluginURLVar + " and " + PluginTokenVar + " into its environment"

// callKey names a call of a session.
type callKey struct{ session, call string }

// warnUnasked warns, once for a process of OpenCode, if its plugin is not loaded or lacks a variable: a call of a model
// began and ended, and the plugin did not ask for it; or OpenCode has a message of a person, and the plugin has held
// none. steps are those of one event, and not stored yet. The state that the bridge reads after a lost connection does
// not count: an earlier bridge may have been asked. The caller has the lock.
func (r *follower) warnUnasked(steps []Step) {
	if r.Plugin == nil {
		return
	}
	for i := range steps {
		s := r.translator.session(steps[i].Session)
		for _, f := range steps[i].Facts {
			switch f := f.(type) {
			case events.ToolStarted:
				if s.isOfModel(f.Call) {
					r.process.unasked(callKey{s.id, f.Call})
				}
			case events.ToolFailed:
				r.process.asks(callKey{s.id, f.Call})
			case events.ToolCompleted:
				if !r.process.asks(callKey{s.id, f.Call}) {
					r.warnOnce("OpenCode ran a call for which its plugin did not ask: "+noPlugin, "session", s.id,
						"call", f.Call)
				}
			case events.MessageAccepted:
				if r.Drive.Queue && !f.Synthetic && s.info.ParentID == "" && !r.process.holdsAny() {
					r.warnOnce("OpenCode took a message that its plugin did not hold: "+noPlugin+", and "+
						PluginQueueVar+"=1", "session", s.id, "message", f.Message)
				}
			}
		}
	}
}

// warnOnce warns once for a process of OpenCode.
func (r *follower) warnOnce(text string, args ...any) {
	r.process.warned.Do(func() { r.log.Warn(text, args...) })
}

// isOfModel reports whether an open call is one that OpenCode runs for a model: not a command that a person types after
// !, and not a call that the provider runs.
func (s *session) isOfModel(id string) bool {
	return s.turn != nil && slices.ContainsFunc(s.turn.calls, func(c *call) bool { return c.id == id && c.ofModel })
}

// unasked notes a call for which the plugin has to ask.
func (l *process) unasked(c callKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owesAsk[c] = true
}

// asks notes that the plugin has asked for a call, or that the call is over. It reports false if the plugin still had
// to ask.
func (l *process) asks(c callKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	owed := l.owesAsk[c]
	delete(l.owesAsk, c)
	return !owed
}

// holdsAny reports whether the plugin has held a message.
func (l *process) holdsAny() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasHeld
}
