package pull

import "github.com/holdfast-dev/holdfast/pkg/events"

// AheadBytesMax is the most that one consumer is sent ahead.
const AheadBytesMax = heldBytesMax + askedMax*events.CommitBytesMax
