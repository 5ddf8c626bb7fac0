package testnet

import "gridnode/internal/grid"

// eventKind says what an event in the heap is.
type eventKind uint8

const (
	eventDeliver     eventKind = iota // message arrives
	eventUndelivered                  // sender learns that message was never seen
	eventTimer                        // a site's NextTimer
	eventTaskEnd                      // an execution ends; index is its slot
	eventInput                        // an injected input; index is its slot
	eventClosest                      // the oracle's answer to a look-up; index is its slot
	eventFault                        // index is the fault's
)

// event is what happens at an instant to one site.
type event struct {
	kind       eventKind
	silent     bool   // no Undelivered for it: another copy may have arrived
	generation uint32 // of the sender, or of the slot: the event is stale if it changed
	to, from   int32
	index      int32
	message    grid.Message
}

// place is one place of the heap: the rank of an event and where it is kept.
type place struct {
	at    grid.Time
	order uint64 // class, then insertion
	slot  int32
}

func (p place) before(q place) bool {
	return p.at < q.at || p.at == q.at && p.order < q.order
}

// Events of one instant run by class, then in order of insertion.
const (
	classEnd   uint64 = 0       // ends of executions: processors are free before anyone asks for them
	classOther uint64 = 1 << 63 // everything else
)

// eventHeap is a 4-ary heap of events ordered by time, class and insertion. Events
// lie in a slab that is reused, so it allocates only while it grows. The zero
// value is ready.
type eventHeap struct {
	places   []place
	events   slots[event]
	inserted uint64
}

// len returns how many events wait.
func (h *eventHeap) len() int { return len(h.places) }

// push inserts an event that happens at the given time.
func (h *eventHeap) push(at grid.Time, class uint64, e event) {
	h.inserted++
	p := place{at, class | h.inserted, h.events.put(e)}
	h.places = append(h.places, p)
	i := len(h.places) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !p.before(h.places[parent]) {
			break
		}
		h.places[i] = h.places[parent]
		i = parent
	}
	h.places[i] = p
}

// next returns when the first event happens, grid.Never if there is none.
func (h *eventHeap) next() grid.Time {
	if len(h.places) == 0 {
		return grid.Never
	}
	return h.places[0].at
}

// pop removes the first event. The heap must not be empty.
func (h *eventHeap) pop() event {
	slot := h.places[0].slot
	last := len(h.places) - 1
	p := h.places[last]
	h.places = h.places[:last]
	if last > 0 {
		h.sink(p)
	}
	return h.events.take(slot)
}

// sink puts p into the hole at the root.
func (h *eventHeap) sink(p place) {
	places := h.places
	i := 0
	for {
		child := 4*i + 1
		if child >= len(places) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(places)); c++ {
			if places[c].before(places[least]) {
				least = c
			}
		}
		if !places[least].before(p) {
			break
		}
		places[i] = places[least]
		i = least
	}
	places[i] = p
}
