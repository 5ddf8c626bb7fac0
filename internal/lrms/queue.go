package lrms

import "gridnode/grid"

// Shape of the queue's index: a leaf node covers blockSize positions, every other
// fanout nodes. Measured with BenchmarkQueue.
const (
	blockShift = 4
	blockSize  = 1 << blockShift
	fanShift   = 3
	fanout     = 1 << fanShift
)

// queue holds the jobs that wait, by position: the order of submission. A job that
// leaves from the middle leaves a hole; holes go when the array is full.
//
// Over the positions stands a tree whose nodes keep the shortest estimate per
// width class, so that the next job that is narrow and short enough to start now
// is found without looking at those that are not.
//
// A parked job keeps its position and is passed over until it is back.
type queue struct {
	entries []waiter // up to the last position in use
	head    int      // position of the first job, len(entries) if there is none
	size    int      // jobs
	parked  int      // jobs that only keep their position
	widths  int      // width classes of the site
	levels  [][]grid.Time
}

// waiter is a job at its position, or what it has left there.
type waiter struct {
	estimate   grid.Time // grid.Never for a hole and for a parked job
	processors int32     // 0 for a hole, vacant for a parked job
	task       int32     // index of the task
}

// vacant marks the position of a parked job.
const vacant = -1

func newQueue(processors int64) queue {
	q := queue{widths: 1}
	if processors > 0 {
		q.widths = width(processors) + 1
	}
	return q
}

// push adds a job at the end and returns its position. There has to be room.
func (q *queue) push(e waiter) int32 {
	at := len(q.entries)
	q.entries = append(q.entries, e)
	q.size++
	q.raise(at, e)
	return int32(at)
}

// raise enters e, which has come to a position, in the index.
func (q *queue) raise(at int, e waiter) {
	node, class := at>>blockShift, width(int64(e.processors))
	for _, level := range q.levels {
		cell := &level[node*q.widths+class]
		if *cell <= e.estimate {
			break
		}
		*cell = e.estimate
		node >>= fanShift
	}
}

// remove takes out the job at a position.
func (q *queue) remove(at int) { q.take(at, waiter{estimate: grid.Never}) }

// replace puts another job at a position that has one.
func (q *queue) replace(at int, e waiter) {
	old := q.entries[at]
	q.entries[at] = e
	q.lower(at, old)
	q.raise(at, e)
}

// park takes out the job at a position and keeps the position for it.
func (q *queue) park(at int) {
	q.parked++
	q.take(at, waiter{estimate: grid.Never, processors: vacant, task: q.entries[at].task})
}

func (q *queue) take(at int, left waiter) {
	e := q.entries[at]
	q.entries[at] = left
	q.size--
	q.lower(at, e)
	q.advance()
}

// advance moves head on to the first job.
func (q *queue) advance() {
	if q.size == 0 {
		if q.parked == 0 {
			q.entries = q.entries[:0]
		}
		q.head = len(q.entries)
		return
	}
	for q.entries[q.head].processors <= 0 {
		q.head++
	}
}

// unpark puts a parked job back where it stood.
func (q *queue) unpark(at int, e waiter) {
	q.entries[at] = e
	q.parked--
	q.size++
	q.head = min(q.head, at)
	q.raise(at, e)
}

// forget gives up the position of a parked job.
func (q *queue) forget(at int) {
	q.entries[at] = waiter{estimate: grid.Never}
	q.parked--
	q.advance()
}

// lower corrects the index after e has left a position.
func (q *queue) lower(at int, e waiter) {
	node, class := at>>blockShift, width(int64(e.processors))
	if q.levels[0][node*q.widths+class] < e.estimate {
		return
	}
	shortest := grid.Never
	for _, other := range q.entries[node<<blockShift : min((node+1)<<blockShift, len(q.entries))] {
		if other.estimate < shortest && width(int64(other.processors)) == class {
			shortest = other.estimate
		}
	}
	for i, level := range q.levels {
		if i > 0 {
			shortest = grid.Never
			below := q.levels[i-1]
			first := node << fanShift
			for child := first; child < first+fanout && child*q.widths < len(below); child++ {
				shortest = min(shortest, below[child*q.widths+class])
			}
		}
		cell := &level[node*q.widths+class]
		if *cell == shortest {
			return
		}
		*cell = shortest
		node >>= fanShift
	}
}

// full reports whether push has no room: compact comes first.
func (q *queue) full() bool { return len(q.entries) == cap(q.entries) }

// compact closes the holes, makes room for as many jobs again as there are, and
// tells every task its new position. It is due once in so many pushes that its
// share per push is constant.
func (q *queue) compact(tasks []task) {
	to := q.entries[:0]
	if room := cap(q.entries); q.size+q.parked > room-room/4 || room == 0 {
		room = max(4*blockSize, 2*room)
		to = make([]waiter, 0, room)
		q.levels = q.levels[:0]
		for nodes := room >> blockShift; ; nodes = (nodes + fanout - 1) >> fanShift {
			q.levels = append(q.levels, make([]grid.Time, nodes*q.widths))
			if nodes <= 1 {
				break
			}
		}
	}
	for _, level := range q.levels {
		for i := range level {
			level[i] = grid.Never
		}
	}
	from := q.entries
	if q.parked == 0 {
		from = from[min(q.head, len(from)):]
	}
	q.entries, q.head, q.size = to, 0, 0
	for _, e := range from {
		switch {
		case e.processors > 0:
			tasks[e.task].link = q.push(e)
		case e.processors == vacant:
			tasks[e.task].link = int32(len(q.entries))
			q.entries = append(q.entries, e)
		}
	}
	q.advance()
}

// window is what a job may have now without breaking a promise: reach[k] is the
// longest estimate of a job of class k, exact for its narrowest.
type window struct {
	widths int // number of classes that fit at all
	reach  [widthsMax]grid.Time
}

// next returns the first position at or after at whose job may fit the window,
// going by its class, or -1.
func (q *queue) next(at int, w *window) int {
	if w.widths == 0 {
		return -1
	}
	for at < len(q.entries) {
		end := min((at|(blockSize-1))+1, len(q.entries))
		for ; at < end; at++ {
			if e := &q.entries[at]; e.processors > 0 {
				if k := width(int64(e.processors)); k < w.widths && e.estimate <= w.reach[k] {
					return at
				}
			}
		}
		if at < len(q.entries) {
			at = q.skip(at, w)
		}
	}
	return -1
}

// skip returns the start of the first block, from the one that starts at at on,
// in which a job may fit the window, or a position beyond the end.
func (q *queue) skip(at int, w *window) int {
	node, level := at>>blockShift, 0
	for node<<(blockShift+fanShift*level) < len(q.entries) {
		for level+1 < len(q.levels) && node&(fanout-1) == 0 {
			node >>= fanShift
			level++
		}
		for q.admits(level, node, w) {
			if level == 0 {
				return node << blockShift
			}
			level--
			node <<= fanShift
		}
		node++
	}
	return len(q.entries)
}

// admits reports whether a job below a node may fit the window.
func (q *queue) admits(level, node int, w *window) bool {
	first := node * q.widths
	for k, shortest := range q.levels[level][first : first+w.widths] {
		if shortest <= w.reach[k] {
			return true
		}
	}
	return false
}
