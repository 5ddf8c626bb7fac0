package testnet

import (
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet/draw"
)

// Link says what becomes of messages between two sites. The zero value delivers
// everything once, at once.
type Link struct {
	// LatencyMin and LatencyMax bound the time a message takes; it is drawn evenly
	// between them, for each message anew.
	LatencyMin, LatencyMax grid.Time

	// Latency, if set, gives the time instead, by the indices of the sites.
	Latency func(from, to int) grid.Time `json:"-"`

	Loss      int32 // of a million messages, how many vanish; 0 to 1,000,000
	Duplicate int32 // of a million, how many arrive twice
	Reorder   int32 // of a million, how many are held back by up to ReorderMax

	ReorderMax grid.Time

	// Coincide is, of a million messages, how many arrive as the receiver's next timer goes
	// off, or a microsecond beside it, if they could arrive then.
	Coincide int32
}

const million = 1_000_000

// Validate returns what is wrong with it.
func (l Link) Validate() error {
	if l.LatencyMin < 0 || l.LatencyMax < l.LatencyMin || l.LatencyMax > grid.Day {
		return fmt.Errorf("latency from %v to %v: want 0 ≤ least ≤ most ≤ 24h", l.LatencyMin, l.LatencyMax)
	}
	for _, p := range []struct {
		name  string
		value int32
	}{{"loss", l.Loss}, {"duplication", l.Duplicate}, {"reordering", l.Reorder}, {"coincidence", l.Coincide}} {
		if p.value < 0 || p.value > million {
			return fmt.Errorf("%s of %d millionths: want 0 to 1000000", p.name, p.value)
		}
	}
	if l.ReorderMax < 0 || l.ReorderMax > grid.Day {
		return fmt.Errorf("reordering by up to %v: want 0 to 24h", l.ReorderMax)
	}
	return nil
}

// wires carry messages and sessions between the sites of a network.
type wires struct {
	n      *Network
	topics map[string][]int32 // sites that hear what is published
	lost   int64              // messages, those across a partition included
	struck [wire.KindMax]Struck
}

// Struck is what faults of links have done to messages of one kind.
type Struck struct {
	Lost      int64 // those across a partition included
	Doubled   int64
	Late      int64 // held back, so that later ones overtake them
	Coincided int64 // arrived with a timer of their receiver, or a microsecond beside it
}

// Any returns how many messages of the kind something has happened to; one may count twice.
func (s *Struck) Any() int64 { return s.Lost + s.Doubled + s.Late + s.Coincided }

// StruckBy returns what faults of links have done to messages of a kind.
func StruckBy(n *Network, k grid.Kind) Struck { return *n.wires.at(k) }

// at returns the counts of a kind.
func (w *wires) at(k grid.Kind) *Struck {
	if int(k) >= len(w.struck) {
		return new(Struck) // nobody can ask for it
	}
	return &w.struck[k]
}

// lose counts a message as lost.
func (w *wires) lose(message grid.Message) {
	w.lost++
	w.at(message.MessageKind()).Lost++
}

// latency draws how long a message takes.
func (w *wires) latency(from, to int32) grid.Time {
	n := w.n
	l := &n.cfg.Link
	m := &n.members[from]
	t := l.LatencyMin
	if l.Latency != nil {
		t = max(l.Latency(int(from), int(to)), 0)
	} else if l.LatencyMax > l.LatencyMin {
		t += grid.Time(draw.Uniform(&m.link, uint64(l.LatencyMax-l.LatencyMin)+1))
	}
	if l.ReorderMax > 0 && draw.Chance(&m.link, l.Reorder) {
		t += grid.Time(draw.Uniform(&m.link, uint64(l.ReorderMax)+1))
	}
	return t + m.slow + n.members[to].slow
}

// transmit puts a message on its way. A site's message to itself takes no time and
// is not lost.
func (w *wires) transmit(from int32, to grid.SiteID, message grid.Message) {
	n := w.n
	m := &n.members[from]
	kind := message.MessageKind()
	n.counts.sent(kind, from)
	for i := range n.observers {
		if f := n.observers[i].Send; f != nil {
			f(n.now, int(from), to, message)
		}
	}
	target, known := n.delivered, true
	if to == "" || to != n.delivery.From { // most messages answer one: no need to look the name up
		if target, known = n.index[to]; !known {
			target = none
		}
	}
	n.trace.effect(from, grid.EffectSend, uint64(kind)<<32|uint64(uint32(target)))
	n.trace.message(message)
	if !known { // nobody answers to that name
		n.inject(n.now+n.cfg.DialTimeout, from, m.incarnation, &grid.Undelivered{To: to, Message: message})
		return
	}
	w.relay(from, target, message)
}

// relay is transmit after counting.
func (w *wires) relay(from, to int32, message grid.Message) {
	n := w.n
	m := &n.members[from]
	e := event{kind: eventDeliver, to: to, from: from, generation: m.incarnation, message: message}
	if from == to {
		n.queue.push(n.now, classOther, e)
		return
	}
	if n.faults.severed(from, to) || draw.Chance(&m.link, n.cfg.Link.Loss) {
		w.lose(message)
		return
	}
	kind := message.MessageKind()
	if draw.Chance(&m.link, n.cfg.Link.Duplicate) {
		e.silent = true // one copy refused does not mean that the other was
		w.at(kind).Doubled++
		n.queue.push(n.now+w.latency(from, to), classOther, e)
	}
	usual := n.now + w.latency(from, to)
	if usual > n.now+n.cfg.Link.LatencyMax {
		w.at(kind).Late++
	}
	at := w.coincide(from, to, usual)
	if at != usual {
		w.at(kind).Coincided++
	}
	n.queue.push(at, classOther, e)
}

// coincide returns when a message arrives that would arrive at an instant: then, or with
// the next timer of the receiver.
func (w *wires) coincide(from, to int32, at grid.Time) grid.Time {
	n := w.n
	l, pcg := &n.cfg.Link, &n.members[from].link
	if !draw.Chance(pcg, l.Coincide) {
		return at
	}
	timer := n.members[to].armed
	if timer == grid.Never || timer <= n.now+l.LatencyMin || timer > n.now+max(l.LatencyMax, l.ReorderMax) {
		return at
	}
	return timer - 1 + grid.Time(draw.Uniform(pcg, 3))
}

// publish floods a message to the other members of a topic. As in live networks it
// counts once as sent, and as received by each that gets it.
func (w *wires) publish(from int32, topic string, message grid.Message) {
	n := w.n
	n.counts.sent(message.MessageKind(), from)
	for _, to := range w.topics[topic] {
		if to != from {
			w.relay(from, to, message)
		}
	}
}

// deliver is a message's arrival.
func (w *wires) deliver(e *event) {
	n := w.n
	m := &n.members[e.to]
	if n.faults.severed(e.from, e.to) {
		w.lose(e.message)
		return
	}
	if m.core == nil {
		w.refuse(e)
		return
	}
	kind := e.message.MessageKind()
	n.counts.received(kind, e.to)
	n.delivery, n.delivered = grid.Delivery{From: n.members[e.from].ID, Message: e.message}, e.from
	n.hand(e.to, kind, &n.delivery)
}

// refuse tells the sender that no connection could be made: at once if the
// machine is up and says so, after the dial's time-out if it is off.
func (w *wires) refuse(e *event) {
	n := w.n
	if e.silent || e.from == e.to {
		return
	}
	after := n.cfg.DialTimeout
	if !n.members[e.to].off {
		after = w.latency(e.to, e.from)
	}
	n.queue.push(n.now+after, classOther, event{
		kind: eventUndelivered, to: e.from, from: e.to, generation: e.generation, message: e.message,
	})
}

// probeTimeMax is after how long a probe without an answer is over.
const probeTimeMax = 2 * grid.Second

// probe measures a round trip: what a small message and its answer take, or nothing
// if one of them is lost or the other site is down. Like the ping of live networks
// it is below the envelope, so it counts as no message.
func (w *wires) probe(from int32, to grid.SiteID) {
	n := w.n
	m := &n.members[from]
	target, known := n.index[to]
	if !known {
		target = none
	}
	n.trace.effect(from, grid.EffectProbe, uint64(uint32(target)))
	answer := &grid.Probed{To: to, RoundTrip: -1}
	if known && n.members[target].core != nil && !n.faults.severed(from, target) && !n.faults.severed(target, from) &&
		!draw.Chance(&m.link, n.cfg.Link.Loss) && !draw.Chance(&m.link, n.cfg.Link.Loss) {
		answer.RoundTrip = w.latency(from, target) + w.latency(target, from)
	}
	after := answer.RoundTrip
	if after < 0 || after > probeTimeMax {
		answer.RoundTrip, after = -1, probeTimeMax
	}
	n.inject(n.now+after, from, m.incarnation, answer)
}
