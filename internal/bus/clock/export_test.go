package clock

import "time"

// Was makes this process believe that the broker's clock was by so much ahead until now.
func (c *Clock) Was(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broker, c.last = c.broker.Add(ahead), c.last.Add(ahead)
}

// Aged makes this process believe that it has measured the broker's clock so long ago.
func (c *Clock) Aged(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broker, c.local = c.broker.Add(-by), c.local.Add(-by)
}
