package history

import (
	"fmt"

	"gridnode/grid"
)

// PendingMax is how many lines may wait for a file. When that many do, whoever writes the
// files has been in trouble for long, and no more jobs should be taken.
const PendingMax = 200_000

// Log gives lines their numbers, and knows which are not in a file yet. It is deterministic
// and not safe for concurrent use.
type Log struct {
	first, next uint64 // those from first to next-1 are in the store
}

// NewLog returns the log of a site whose files have all lines up to one; 0: none.
func NewLog(last uint64) *Log { return &Log{first: last + 1, next: last + 1} }

// Add saves a line, with its number.
func (g *Log) Add(l *Line, out *grid.Outbox) {
	l.Seq = g.next
	g.next++
	out.Save(l)
}

// Kept deletes what files have: all lines up to one.
func (g *Log) Kept(last uint64, out *grid.Outbox) {
	for ; g.first <= last && g.first < g.next; g.first++ {
		out.Delete(moved(g.first))
	}
}

// Full reports whether too many lines wait for a file.
func (g *Log) Full() bool { return g.next-g.first >= PendingMax }

// Last returns the number of the latest line, 0 if there is none.
func (g *Log) Last() uint64 { return g.next - 1 }

// Recover takes up a stored line. Its file may have it already: then it is deleted.
func (g *Log) Recover(key string, out *grid.Outbox) error {
	seq, err := seqOf(key)
	switch {
	case err != nil || seq == 0:
		return fmt.Errorf("a line of the job log has the key %q", key)
	case seq < g.first:
		out.Delete(moved(seq))
	default:
		g.next = max(g.next, seq+1)
	}
	return nil
}
