package session

// DecodeQuickly is the way that Decode tries first, and whether it came to an end.
func DecodeQuickly(doc []byte) (*State, bool) { return new(Reader).quickly(doc) }
