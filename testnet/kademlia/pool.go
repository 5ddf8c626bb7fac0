package kademlia

import "gridnode/grid"

// Pool is what the nodes of one network share: messages, look-ups and answers that
// are used again. A message goes back when it has been delivered, so the network
// must deliver none twice. The zero value is ready. Not safe for concurrent use.
//
// One pool for all keeps as many messages as are mostly under way at once, and the next
// one is the one that was used last, which the processor's cache still has. What thousands
// of sites need beyond that when they come up at the same instant goes to the collector.
type Pool struct {
	finds   []*Find
	nodes   []*Nodes
	lookups []*lookup
	answers answers
}

// poolMax is how many unused values of a type a Pool keeps.
const poolMax = 4096

// last takes the last value of a list, or makes one.
func last[T any](list *[]*T) *T {
	n := len(*list)
	if n == 0 {
		return new(T)
	}
	v := (*list)[n-1]
	*list = (*list)[:n-1]
	return v
}

// keep adds a value to a list that has room.
func keep[T any](list *[]*T, v *T) {
	if len(*list) < poolMax {
		*list = append(*list, v)
	}
}

// find returns a Find to fill in.
func (p *Pool) find() *Find {
	if p == nil {
		return new(Find)
	}
	return last(&p.finds)
}

// reply returns a Nodes to fill in.
func (p *Pool) reply() *Nodes {
	if p == nil {
		return new(Nodes)
	}
	return last(&p.nodes)
}

// back takes a message that has arrived.
func (p *Pool) back(m grid.Message) {
	if p == nil {
		return
	}
	switch m := m.(type) {
	case *Find:
		keep(&p.finds, m)
	case *Nodes:
		keep(&p.nodes, m)
	}
}

// lookup returns a look-up that has heard of nobody.
func (p *Pool) lookup(key grid.Key) *lookup {
	if p == nil {
		return &lookup{key: key, head: headOf(&key)}
	}
	l := last(&p.lookups)
	if l.candidates == nil {
		l.candidates = make([]candidate, 0, candidatesUsual)
	}
	*l = lookup{key: key, head: headOf(&key), candidates: l.candidates[:0]}
	return l
}

// ended takes a look-up that nobody refers to any more.
func (p *Pool) ended(l *lookup) {
	if p != nil {
		keep(&p.lookups, l)
	}
}

// answer returns an answer without peers. Whoever asked takes what stands in it at
// the instant it is given.
func (p *Pool) answer(now grid.Time) *grid.Closest {
	if p == nil {
		return new(grid.Closest)
	}
	return p.answers.take(now)
}

// answers hands out the answers of one instant one after the other, and all of them
// again at the next.
type answers struct {
	list []*grid.Closest
	used int // at the instant at
	at   grid.Time
}

func (a *answers) take(now grid.Time) *grid.Closest {
	if now != a.at {
		a.at, a.used = now, 0
	}
	if a.used == len(a.list) {
		a.list = append(a.list, new(grid.Closest))
	}
	c := a.list[a.used]
	a.used++
	c.Peers = c.Peers[:0]
	return c
}
