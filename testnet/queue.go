package testnet

import (
	"cmp"
	"math/bits"
	"slices"

	"gridnode/grid"
)

// eventKind says what an event is.
type eventKind uint8

const (
	eventDeliver     eventKind = iota // message arrives
	eventUndelivered                  // sender learns that message was never seen
	eventTimer                        // a site's NextTimer
	eventTaskEnd                      // an execution ends; index is its slot
	eventInput                        // an injected input; index is its slot
	eventClosest                      // the oracle's answer to a look-up; index is its slot
	eventFault                        // index is the fault's
	eventCall                         // something of pilots; index is its slot
	eventOutside                      // what those outside have done; index is its slot
)

// event is what happens at an instant to one site, or because of it.
type event struct {
	message    grid.Message
	to, from   int32
	index      int32
	generation uint32 // of the sender, or of the slot: the event is stale if it changed
	kind       eventKind
	silent     bool // no Undelivered for it: another copy may have arrived
}

// place is the rank of an event and where it is kept.
type place struct {
	at    grid.Time
	order uint64 // class, then insertion
	slot  int32
}

func (p place) before(q place) bool {
	return p.at < q.at || p.at == q.at && p.order < q.order
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.order, q.order))
}

// Events of one instant happen by class, then in order of insertion.
const (
	classEnd   uint64 = 0       // ends of executions: processors are free before anyone asks for them
	classOther uint64 = 1 << 63 // everything else
)

// The buckets of the queue: level 0 has buckets of 64 µs, each further level buckets
// as wide as all of the level before together. Six levels span every instant.
const (
	bucketBits  = 6  // of microseconds
	levelBits   = 11 // of buckets
	levelSize   = 1 << levelBits
	levelsMax   = 6
	bitmapWords = levelSize / 64
)

// eventQueue holds events ordered by time, class and insertion, at a cost that does
// not depend on how many there are: a timing wheel with levels (Varghese and Lauck
// 1987), whose buckets are sorted when their time comes. An event lies in one cache
// line of a slab that is reused, so it allocates only while it grows. The zero value
// is ready.
type eventQueue struct {
	slab  []waiting
	free  int32 // list of unused nodes, as number + 1
	count int

	current int64 // bucket of level 0 whose events are in due; all others in levels are later
	due     []place
	head    int       // of due, which is sorted
	late    placeHeap // inserted when their bucket was current already, or past
	levels  [levelsMax]level
}

// waiting is an event that waits, and the next one of its bucket.
type waiting struct {
	at    grid.Time
	order uint64
	event event
	next  int32 // as number + 1; 0: none
	_     [4]byte
}

// level is a ring of buckets, each a list of nodes.
type level struct {
	set   [bitmapWords]uint64 // buckets that have any
	first [levelSize]int32    // as number + 1; 0: none
}

// len returns how many events wait.
func (q *eventQueue) len() int { return q.count }

// push inserts an event that happens at the given instant, not negative, and returns its slot.
// Its order is its class and its number, by which events of one instant are ranked.
func (q *eventQueue) push(at grid.Time, order uint64, e event) (slot int32) {
	q.count++
	i := q.free - 1
	if i < 0 {
		q.slab = append(q.slab, waiting{})
		i = int32(len(q.slab) - 1)
	} else {
		q.free = q.slab[i].next
	}
	v := &q.slab[i]
	v.at, v.order, v.event = at, order, e
	if !q.file(v, i) {
		q.late.push(place{at, v.order, i})
	}
	return i
}

// renumber gives an event another order, which must not change how those that wait are ranked.
// It does nothing if the event has happened. After the last one renumbered must be called.
func (q *eventQueue) renumber(slot int32, old, order uint64) {
	if v := &q.slab[slot]; v.order == old {
		v.order = order
	}
}

// renumbered has the present bucket go by the new orders.
func (q *eventQueue) renumbered() {
	for i := q.head; i < len(q.due); i++ {
		q.due[i].order = q.slab[q.due[i].slot].order
	}
	for i := range q.late {
		q.late[i].order = q.slab[q.late[i].slot].order
	}
}

// file puts a node into its bucket, unless that is the current one or past.
func (q *eventQueue) file(v *waiting, i int32) bool {
	b := int64(v.at) >> bucketBits
	if b <= q.current {
		return false
	}
	n := (bits.Len64(uint64(b^q.current)) - 1) / levelBits
	at := b >> (n * levelBits) & (levelSize - 1)
	l := &q.levels[n]
	v.next = l.first[at]
	l.first[at] = i + 1
	l.set[at/64] |= 1 << (at % 64)
	return true
}

// next returns when the first event happens, grid.Never if there is none.
func (q *eventQueue) next() grid.Time { return q.first().at }

// first returns the first event's place, which is at grid.Never if there is none.
func (q *eventQueue) first() place {
	if q.count == 0 || q.head == len(q.due) && len(q.late) == 0 && !q.advance() {
		return place{at: grid.Never}
	}
	if q.head < len(q.due) && (len(q.late) == 0 || q.due[q.head].before(q.late[0])) {
		return q.due[q.head]
	}
	return q.late[0]
}

// pop removes the first event and returns it with its order. The queue must not be empty.
func (q *eventQueue) pop() (order uint64, e event) {
	if q.head == len(q.due) && len(q.late) == 0 {
		q.advance()
	}
	var p place
	if q.head < len(q.due) && (len(q.late) == 0 || q.due[q.head].before(q.late[0])) {
		p = q.due[q.head]
		q.head++
	} else {
		p = q.late.pop()
	}
	v := &q.slab[p.slot]
	e = v.event
	v.event.message = nil
	v.next = q.free
	q.free = p.slot + 1
	q.count--
	return p.order, e
}

// advance makes the next bucket that has events the current one, and reports whether
// there is any. The current one must be used up.
func (q *eventQueue) advance() bool {
	if q.count == 0 {
		return false
	}
	q.due, q.head = q.due[:0], 0
	for len(q.due) == 0 {
		q.turn()
	}
	switch len(q.due) {
	case 1:
	case 2:
		if q.due[1].before(q.due[0]) {
			q.due[0], q.due[1] = q.due[1], q.due[0]
		}
	default:
		slices.SortFunc(q.due, place.compare)
	}
	return true
}

// turn empties the first bucket after the current one, of the lowest level that has
// one: into due what belongs to its first bucket of level 0, the rest into the levels
// below.
func (q *eventQueue) turn() {
	for n := range q.levels {
		l := &q.levels[n]
		at := l.after(q.current >> (n * levelBits) & (levelSize - 1))
		if at < 0 {
			continue
		}
		above := (n + 1) * levelBits
		q.current = q.current>>above<<above | at<<(n*levelBits)
		i := l.first[at] - 1
		l.first[at] = 0
		l.set[at/64] &^= 1 << (at % 64)
		for i >= 0 {
			v := &q.slab[i]
			next := v.next - 1
			if !q.file(v, i) {
				q.due = append(q.due, place{v.at, v.order, i})
			}
			i = next
		}
		return
	}
	panic("testnet: events wait in no bucket")
}

// after returns the first bucket behind at that has events, or -1.
func (l *level) after(at int64) int64 {
	at++
	for w := at / 64; w < bitmapWords; w++ {
		word := l.set[w]
		if w == at/64 {
			word &= ^uint64(0) << (at % 64)
		}
		if word != 0 {
			return w*64 + int64(bits.TrailingZeros64(word))
		}
	}
	return -1
}

// placeHeap is a binary heap of places.
type placeHeap []place

func (h *placeHeap) push(p place) {
	*h = append(*h, p)
	list := *h
	i := len(list) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !p.before(list[parent]) {
			break
		}
		list[i] = list[parent]
		i = parent
	}
	list[i] = p
}

// pop removes the first place. The heap must not be empty.
func (h *placeHeap) pop() place {
	list := *h
	first := list[0]
	last := len(list) - 1
	p := list[last]
	list = list[:last]
	*h = list
	if last == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && list[child+1].before(list[child]) {
			child++
		}
		if !list[child].before(p) {
			break
		}
		list[i] = list[child]
		i = child
	}
	list[i] = p
	return first
}
