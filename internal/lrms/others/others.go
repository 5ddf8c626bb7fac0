// Package others counts, in a site's lrms, the processors that belong to another scheduler
// and that its other users hold: as if tasks ran on them, from now until they are expected
// back. So whatever asks lrms what is free, or what can be promised, sees what is left.
//
// It learns, too, how much later than foretold that scheduler begins what it is given, and
// expects processors back that much later. The margin follows the worst case at once and
// forgets it slowly, as jobs begin in time.
//
// Like the rest of lrms it reads no clock, starts nothing and is not safe for concurrent use.
package others

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Taken is processors that others hold.
type Taken struct {
	Processors int64
	Until      grid.Time // expected; grid.Never if nobody knows
}

// TakenMax bounds what is told apart.
const TakenMax = 64

// Bounds of the margin.
const (
	MarginMax = grid.Day
	forget    = 16 // of a margin that was not needed, one part in so many is forgotten with each job
)

// Ledger counts what others hold of one cluster's processors.
type Ledger struct {
	cluster *lrms.Cluster
	tasks   []grid.TaskID // as which they are counted
	held    int64

	margin grid.Time // 0 to MarginMax
	broken int64     // promises that were not kept
}

// New returns an empty ledger.
func New(cluster *lrms.Cluster) *Ledger { return &Ledger{cluster: cluster} }

// Take counts what others hold now, in the place of what they held before. Of what is
// more than the cluster has idle nothing is counted: it is processors of tasks which were
// started and which that scheduler has not begun. lrms.Schedule has to follow.
func (l *Ledger) Take(now grid.Time, taken []Taken) {
	for _, id := range l.tasks {
		l.cluster.Ended(now, id)
	}
	l.tasks, l.held = l.tasks[:0], 0
	idle := l.cluster.Processors() - l.cluster.State(now).Busy
	for i, t := range taken[:min(len(taken), TakenMax)] {
		n := min(t.Processors, idle)
		if n < 1 {
			continue
		}
		id := taskOf(i)
		span := grid.SpanMax
		if t.Until < grid.Never {
			span = min(max(t.Until.Add(l.margin)-now, 1), grid.SpanMax)
		}
		if err := l.cluster.Adopt(now, lrms.Request{ID: id, Processors: n, Estimate: span}, now); err != nil {
			panic(fmt.Sprintf("others: %d of %d idle processors: %v", n, idle, err))
		}
		l.tasks = append(l.tasks, id)
		idle -= n
		l.held += n
	}
}

// Began learns from a task that began late after it was given to the scheduler; broken
// says that a promise about it cannot be kept.
func (l *Ledger) Began(late grid.Time, broken bool) {
	if late = min(max(late, 0), MarginMax); late > l.margin {
		l.margin = late
	} else {
		l.margin -= (l.margin - late + forget - 1) / forget
	}
	if broken {
		l.broken++
	}
}

// Held returns how many processors are counted.
func (l *Ledger) Held() int64 { return l.held }

// Margin returns how much later than foretold processors are expected.
func (l *Ledger) Margin() grid.Time { return l.margin }

// Broken returns how many promises were not kept.
func (l *Ledger) Broken() int64 { return l.broken }

// taskOf names a task as which processors are counted. No job is called so: epochs of jobs
// begin at 1.
func taskOf(i int) grid.TaskID {
	const mark = 0x6f7468657273 // "others"
	return grid.TaskID{Job: grid.JobID{Hi: mark, Lo: uint64(i)}}
}

// RecordKey is the key of the record of what was learned.
const RecordKey = "others"

// Record is what was learned.
type Record struct{ margin, broken uint64 }

// Record returns what was learned, to be stored.
func (l *Ledger) Record() Record { return Record{uint64(l.margin), uint64(l.broken)} }

// RecordKey implements grid.Record.
func (Record) RecordKey() string { return RecordKey }

// AppendRecord implements grid.Record.
func (r Record) AppendRecord(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, r.margin), r.broken)
}

var errRecord = errors.New("not a margin and a count of promises")

// Recover takes up what was stored.
func (l *Ledger) Recover(value []byte) error {
	margin, n := binary.Uvarint(value)
	if n <= 0 || margin > uint64(MarginMax) {
		return errRecord
	}
	broken, m := binary.Uvarint(value[n:])
	if m <= 0 || n+m != len(value) || broken > 1<<62 {
		return errRecord
	}
	l.margin, l.broken = grid.Time(margin), int64(broken)
	return nil
}
