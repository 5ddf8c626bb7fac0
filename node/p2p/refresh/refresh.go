// Package refresh says when a node of the DHT looks itself up, which keeps it in the routing tables
// of those nearest to it: real nodes and the model of virtual networks alike.
package refresh

import "gridnode/grid"

// The pauses between look-ups of a node by itself.
const (
	Min = 5 * grid.Minute
	Max = grid.Hour
)

// Young is for how long the look-ups of a node that has come up ask all whom they name, which come to know
// it by that. In a network that grows, those that end with the nearest would name others than are nearest.
const Young = 30 * grid.Second

// Grown is how many first bits the farthest of the nodes that a look-up names shares with its key where the network
// is so large, of three hundred nodes where twenty are named, that a node that comes up is one of few: its look-ups
// end as any other's.
const Grown = 4

// Pause is the pause until a node looks itself up again. Each is twice the one before, from Min to Max, as
// long as all is well. The zero value is that of a node that has not looked itself up. Not safe for
// concurrent use.
type Pause struct {
	span  grid.Time
	since grid.Time // the last look-up
	knew  int       // peers at that time
}

// Over reports whether the pause is over for a node that knows so many peers. While it knows fewer than few and
// has come to know others, who may know further ones, no pause is longer than Min.
func (p *Pause) Over(now grid.Time, known, few int) bool {
	if p.knew < known && known < few {
		p.span = min(p.span, Min)
	}
	return now >= p.since.Add(p.span)
}

// Begin begins the next pause: the node looks itself up, and knows so many peers.
func (p *Pause) Begin(now grid.Time, known int) {
	p.span = min(max(2*p.span, Min), Max)
	p.since, p.knew = now, known
}

// End ends the pause: something has happened.
func (p *Pause) End() { p.span = 0 }
