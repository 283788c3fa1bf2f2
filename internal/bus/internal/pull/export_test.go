package pull

import "github.com/holdfast-dev/holdfast/pkg/events"

// AheadBytesMax is the most that one consumer is sent ahead.
const AheadBytesMax = heldBytesMax + askedMax*events.CommitBytesMax

// Subjects returns the subject that a flow subscribes to, and the reply subject of its pulls.
func (f *Flow) Subjects() (subscribed, reply string) { return f.sub.Subject, f.reply }

// TracedMax is the most traced messages that one search reads.
const TracedMax = tracedMax
