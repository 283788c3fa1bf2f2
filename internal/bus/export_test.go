package bus

// Together is whether what is written together is sent together.
func (b *Bus) Together() bool { return b.conn.Together.Load() }
