package point

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// Unsaved is where a daemon dies whose store fails: of its step nothing is durable, and nothing
// leaves. All other places are how many orders have left.
const Unsaved = -1

// Count is a point, how often it has come, and how often a fault has struck there.
type Count struct {
	Name      string
	Seen, Hit int64
}

// Counts are the points of a run. NewCounts makes one.
type Counts struct {
	tallies map[order]*tally
	sends   [Recovery + 1][wire.KindMax]*tally // of them, by message

	// Of the step that was taken last.
	saves  []saved  // what it saves and forgets, each kind once
	orders []*tally // the others, in order
	binds  []bound
}

// tally counts the points of one kind of orders.
type tally struct {
	seen          int64
	before, after int64   // that were hit
	weight        float64 // how much likelier than others it is to be hit
}

// saved is a kind of records in a step.
type saved struct {
	order order
	tally *tally
}

// bound is an order of a step that carries out what a record promises.
type bound struct {
	tally *tally
	at    int // orders before it
}

// NewCounts returns counts of nothing.
func NewCounts() *Counts { return &Counts{tallies: make(map[order]*tally)} }

// tallyOf returns that of a kind of orders.
func (c *Counts) tallyOf(o order) *tally {
	t := c.tallies[o]
	if t == nil {
		t = &tally{weight: weightOf(o)}
		c.tallies[o] = t
	}
	if o.act == send {
		c.sends[o.cause][o.message] = t
	}
	return t
}

// Take counts the points of a step.
func (c *Counts) Take(cause Cause, out *grid.Outbox) {
	c.saves, c.orders, c.binds = c.saves[:0], c.orders[:0], c.binds[:0]
	if len(out.Records) > 0 {
		c.takeRecords(cause, out)
	}
	mayBind := len(c.saves) > 0 && cause != Recovery
	for _, e := range out.Effects {
		if e.Kind == grid.EffectSend && !mayBind { // most of all orders, by far
			if t := c.sends[cause][out.Sends[e.Index].Message.MessageKind()]; t != nil {
				t.seen++
				c.orders = append(c.orders, t)
				continue
			}
		}
		if e.Kind == grid.EffectSave || e.Kind == grid.EffectDelete {
			continue
		}
		o, ok := orderOf(cause, e, out)
		if !ok {
			continue
		}
		t := c.tallyOf(o)
		t.seen++
		if mayBind {
			c.takeBinds(o, len(c.orders))
		}
		c.orders = append(c.orders, t)
	}
}

// takeRecords counts what a step saves and forgets.
func (c *Counts) takeRecords(cause Cause, out *grid.Outbox) {
	for _, e := range out.Effects {
		if e.Kind != grid.EffectSave && e.Kind != grid.EffectDelete {
			continue
		}
		o, _ := orderOf(cause, e, out)
		if slices.ContainsFunc(c.saves, func(s saved) bool { return s.order == o }) {
			continue
		}
		t := c.tallyOf(o)
		t.seen++
		c.saves = append(c.saves, saved{o, t})
	}
}

// takeBinds counts the records of a step that an order carries out.
func (c *Counts) takeBinds(o order, at int) {
	for i := range c.saves {
		record := c.saves[i].order
		if record.act != save || !binds(record.record, o) {
			continue
		}
		t := c.tallyOf(order{act: bind, record: record.record, then: o.act, message: o.message})
		t.seen++
		c.binds = append(c.binds, bound{t, at})
	}
}

// Orders returns how many orders the step has, besides what is saved.
func (c *Counts) Orders() int { return len(c.orders) }

// points passes where one strikes who has the daemon die at a place: each kind of orders, and its count of hits.
func (c *Counts) points(place int, yield func(t *tally, hits *int64)) {
	if place <= 0 {
		for _, s := range c.saves {
			if place == Unsaved {
				yield(s.tally, &s.tally.before)
			} else {
				yield(s.tally, &s.tally.after)
			}
		}
	}
	if place > 0 {
		t := c.orders[place-1]
		yield(t, &t.after)
	}
	if place < 0 || place >= len(c.orders) {
		return
	}
	t := c.orders[place]
	yield(t, &t.before)
	for _, b := range c.binds {
		if b.at == place {
			yield(b.tally, &b.tally.before)
		}
	}
}

// Chance returns how likely the daemon is to die at a place of the step, if it is usual for what
// comes as often as the mean of all points. What was hit in this run is less likely to be again.
func (c *Counts) Chance(place int, usual float64) (most float64) {
	c.points(place, func(t *tally, hits *int64) {
		most = max(most, min(usual*t.weight/float64(1+*hits), max(usual, chanceMost)))
	})
	return most
}

// chanceMost is how likely a daemon is to die where one hardly ever could: what comes then is to be
// seen, too.
const chanceMost = 0.5

// Hit notes that the daemon dies at a place of the step.
func (c *Counts) Hit(place int) {
	c.points(min(place, len(c.orders)), func(_ *tally, hits *int64) { *hits++ })
}

// All returns the points that there were, in order of their names.
func (c *Counts) All() (list []Count) {
	for o, t := range c.tallies {
		if o.act == bind {
			list = append(list, Count{"between " + o.String(), t.seen, t.before})
			continue
		}
		list = append(list, Count{"before " + o.String(), t.seen, t.before}, Count{"after " + o.String(), t.seen, t.after})
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
