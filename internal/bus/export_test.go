package bus

// Kill ends the connection as the death of the process would: nothing is handed over, nothing is flushed.
func (b *Bus) Kill() { b.nc.Close() }
