package testnet

import (
	"fmt"
	"math/rand/v2"

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

// wires carry messages and sessions from the sites of a lane.
type wires struct {
	l      *lane
	lost   int64 // messages, those across a partition included
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
func StruckBy(n *Network, k grid.Kind) (s Struck) {
	for _, l := range n.lanes {
		t := l.wires.at(k)
		s.Lost += t.Lost
		s.Doubled += t.Doubled
		s.Late += t.Late
		s.Coincided += t.Coincided
	}
	return s
}

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
	return w.drawn(from, to, &w.l.members[from].link)
}

// drawn draws it from a generator that need not be the sender's.
func (w *wires) drawn(from, to int32, pcg *rand.PCG) grid.Time {
	link, members := &w.l.cfg.Link, w.l.members
	t := link.LatencyMin
	if link.Latency != nil {
		t = max(link.Latency(int(from), int(to)), 0)
	} else if link.LatencyMax > link.LatencyMin {
		t += grid.Time(draw.Uniform(pcg, uint64(link.LatencyMax-link.LatencyMin)+1))
	}
	if link.ReorderMax > 0 && draw.Chance(pcg, link.Reorder) {
		t += grid.Time(draw.Uniform(pcg, uint64(link.ReorderMax)+1))
	}
	return t + members[from].slow + members[to].slow
}

// roundTrip draws how long a question and its answer take. Both are drawn from the
// generator of the site that asks: nothing of the other one is touched.
func (w *wires) roundTrip(from, to int32) grid.Time {
	pcg := &w.l.members[from].link
	return w.drawn(from, to, pcg) + w.drawn(to, from, pcg)
}

// transmit puts a message on its way. A site's message to itself takes no time and
// is not lost.
func (w *wires) transmit(from int32, to grid.SiteID, message grid.Message) {
	l := w.l
	m := &l.members[from]
	kind := message.MessageKind()
	l.counts.sent(kind, l.inLane(from))
	l.tellSend(from, to, message)
	target, known := l.delivered, true
	if to == "" || to != l.delivery.From { // most messages answer one: no need to look the name up
		if target, known = l.find(to); !known {
			target = none
		}
	}
	m.trace.effect(from, grid.EffectSend, uint64(kind)<<32|uint64(uint32(target)))
	m.trace.message(message)
	if !known { // nobody answers to that name
		l.inject(l.now+l.cfg.DialTimeout, from, m.incarnation, &grid.Undelivered{To: to, Message: message})
		return
	}
	w.relay(from, target, message)
}

// relay is transmit after counting.
func (w *wires) relay(from, to int32, message grid.Message) {
	l := w.l
	m := &l.members[from]
	e := event{kind: eventDeliver, to: to, from: from, generation: m.incarnation, message: message}
	if from == to {
		l.push(l.now, classOther, e)
		return
	}
	if l.faults.severed(from, to) || draw.Chance(&m.link, l.cfg.Link.Loss) {
		w.lose(message)
		return
	}
	kind := message.MessageKind()
	if draw.Chance(&m.link, l.cfg.Link.Duplicate) {
		e.silent = true // one copy refused does not mean that the other was
		w.at(kind).Doubled++
		l.push(l.now+w.latency(from, to), classOther, e)
	}
	usual := l.now + w.latency(from, to)
	if usual > l.now+l.cfg.Link.LatencyMax {
		w.at(kind).Late++
	}
	at := w.coincide(from, to, usual)
	if at != usual {
		w.at(kind).Coincided++
	}
	l.push(at, classOther, e)
}

// coincide returns when a message arrives that would arrive at an instant: then, or with
// the next timer of the receiver.
func (w *wires) coincide(from, to int32, at grid.Time) grid.Time {
	l := w.l
	link, pcg := &l.cfg.Link, &l.members[from].link
	if !draw.Chance(pcg, link.Coincide) {
		return at
	}
	timer := l.members[to].armed
	if timer == grid.Never || timer <= l.now+link.LatencyMin || timer > l.now+max(link.LatencyMax, link.ReorderMax) {
		return at
	}
	return timer - 1 + grid.Time(draw.Uniform(pcg, 3))
}

// publish floods a message to the other members of a topic. As in live networks it
// counts once as sent, and as received by each that gets it.
func (w *wires) publish(from int32, topic string, message grid.Message) {
	l := w.l
	l.counts.sent(message.MessageKind(), l.inLane(from))
	for _, to := range l.topics[topic] {
		if to != from {
			w.relay(from, to, message)
		}
	}
}

// deliver is a message's arrival.
func (w *wires) deliver(e *event) {
	l := w.l
	m := &l.members[e.to]
	if l.faults.severed(e.from, e.to) {
		w.lose(e.message)
		return
	}
	if m.core == nil {
		w.refuse(e)
		return
	}
	kind := e.message.MessageKind()
	l.counts.received(kind, l.inLane(e.to))
	l.delivery, l.delivered = grid.Delivery{From: l.members[e.from].ID, Message: e.message}, e.from
	l.hand(e.to, kind, &l.delivery)
}

// refuse tells the sender that no connection could be made: at once if the
// machine is up and says so, after the dial's time-out if it is off.
func (w *wires) refuse(e *event) {
	l := w.l
	if e.silent || e.from == e.to {
		return
	}
	after := l.cfg.DialTimeout
	if !l.members[e.to].off {
		after = w.latency(e.to, e.from)
	}
	l.push(l.now+after, classOther, event{
		kind: eventUndelivered, to: e.from, from: e.to, generation: e.generation, message: e.message,
	})
}

// probeTimeMax is after how long a probe without an answer is over.
const probeTimeMax = 2 * grid.Second

// probe measures a round trip: what a small message and its answer take, or nothing
// if one of them is lost or the other site is down. Like the ping of live networks
// it is below the envelope, so it counts as no message.
func (w *wires) probe(from int32, to grid.SiteID) {
	l := w.l
	m := &l.members[from]
	target, known := l.find(to)
	if !known {
		target = none
	}
	m.trace.effect(from, grid.EffectProbe, uint64(uint32(target)))
	answer := &grid.Probed{To: to, RoundTrip: -1}
	if known && l.members[target].core != nil && !l.faults.severed(from, target) && !l.faults.severed(target, from) &&
		!draw.Chance(&m.link, l.cfg.Link.Loss) && !draw.Chance(&m.link, l.cfg.Link.Loss) {
		answer.RoundTrip = w.roundTrip(from, target)
	}
	after := answer.RoundTrip
	if after < 0 || after > probeTimeMax {
		answer.RoundTrip, after = -1, probeTimeMax
	}
	l.inject(l.now+after, from, m.incarnation, answer)
}
