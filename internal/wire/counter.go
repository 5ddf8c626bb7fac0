package wire

import "gridnode/grid"

// Count is how many messages and bytes of one kind went one way.
type Count struct{ Messages, Bytes int64 }

// Counter counts one site's messages at the envelope. Bytes are zero in virtual
// time, where nothing is encoded. Not safe for concurrent use.
type Counter struct {
	sent, received [KindMax]Count
	Malformed      int64 // frames that did not decode; nothing else came of them
}

// Sent counts an outgoing message of size bytes.
func (c *Counter) Sent(k grid.Kind, size int) { add(&c.sent, k, size) }

// Received counts an incoming message of size bytes.
func (c *Counter) Received(k grid.Kind, size int) { add(&c.received, k, size) }

func add(counts *[KindMax]Count, k grid.Kind, size int) {
	if int(k) < KindMax {
		counts[k].Messages++
		counts[k].Bytes += int64(size)
	}
}

// Set puts counts of one kind in place of what was counted.
func (c *Counter) Set(k grid.Kind, sent, received Count) {
	if int(k) < KindMax {
		c.sent[k], c.received[k] = sent, received
	}
}

// SentOf and ReceivedOf return the count of one kind.
func (c *Counter) SentOf(k grid.Kind) Count     { return c.sent[k] }
func (c *Counter) ReceivedOf(k grid.Kind) Count { return c.received[k] }

// Add adds other to c.
func (c *Counter) Add(other *Counter) {
	for k := range c.sent {
		c.sent[k].Messages += other.sent[k].Messages
		c.sent[k].Bytes += other.sent[k].Bytes
		c.received[k].Messages += other.received[k].Messages
		c.received[k].Bytes += other.received[k].Bytes
	}
	c.Malformed += other.Malformed
}

// Subtract takes away what c had counted before.
func (c *Counter) Subtract(before *Counter) {
	for k := range c.sent {
		c.sent[k].Messages -= before.sent[k].Messages
		c.sent[k].Bytes -= before.sent[k].Bytes
		c.received[k].Messages -= before.received[k].Messages
		c.received[k].Bytes -= before.received[k].Bytes
	}
	c.Malformed -= before.Malformed
}

// SentByName returns the messages sent, by KindName, kinds never sent left out.
func (c *Counter) SentByName() map[string]int64 {
	m := make(map[string]int64)
	for k, n := range c.sent {
		if n.Messages > 0 {
			m[KindName(grid.Kind(k))] = n.Messages
		}
	}
	return m
}
