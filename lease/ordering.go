package lease

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
)

// Ordering is the target site ordering policy: whom to ask first (§4.4).
type Ordering uint8

const (
	// OrderNeighbours asks the directly connected neighbours, siblings first, in
	// random order: the paper's experiments.
	OrderNeighbours Ordering = iota
	// OrderMostFree asks the neighbour with the most free processors first, as far as
	// is known.
	OrderMostFree
	// OrderBestFit asks the neighbour whose free processors fit the request most
	// tightly first.
	OrderBestFit
	// OrderGossip asks the sites of the federation that have gossiped enough free
	// processors, neighbour or not, the tightest fit first; if there is none it asks
	// nobody and waits. Beyond the paper.
	OrderGossip
)

var orderingNames = [...]string{"neighbours", "most-free", "best-fit", "gossip"}

// String returns the name used in flags and configuration files.
func (o Ordering) String() string { return orderingNames[o] }

// ParseOrdering is the inverse of String.
func ParseOrdering(s string) (Ordering, error) {
	for o, name := range orderingNames {
		if s == name {
			return Ordering(o), nil
		}
	}
	return 0, fmt.Errorf("ordering %q: want neighbours, most-free, best-fit or gossip", s)
}

// Target is a site that could be asked.
type Target struct {
	Link
	Free int64 // free processors as last heard; -1 if nothing was
}

// sort puts targets for a request of n processors in the order of the policy. Those
// who are equal are in random order.
func (o Ordering) sort(targets []Target, n int64, rng *rand.Rand) {
	rng.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	slices.SortStableFunc(targets, func(a, b Target) int {
		switch o {
		case OrderMostFree:
			return cmp.Or(cmp.Compare(a.Relation, b.Relation), cmp.Compare(b.Free, a.Free))
		case OrderBestFit:
			return cmp.Or(cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.waste(n), b.waste(n)))
		case OrderGossip:
			return cmp.Or(cmp.Compare(a.waste(n), b.waste(n)), cmp.Compare(a.Relation, b.Relation))
		}
		return cmp.Compare(a.Relation, b.Relation)
	})
}

// waste returns how many processors a request of n would leave free; sites that are
// not known to have n come behind all others, the freest first.
func (t *Target) waste(n int64) int64 {
	if t.Free >= n {
		return t.Free - n
	}
	return 2*ProcessorsMax - t.Free
}

// Selection is what the paper calls delegation policy: which of the waiting requests to delegate
// first (§4.4).
type Selection uint8

const (
	// SelectFCFS delegates the request first that came first: the paper's experiments.
	SelectFCFS Selection = iota
	// SelectWidest delegates the widest first.
	SelectWidest
)

var selectionNames = [...]string{"fcfs", "widest"}

// String returns the name used in configuration files.
func (s Selection) String() string { return selectionNames[s] }

// ParseSelection is the inverse of String.
func ParseSelection(text string) (Selection, error) {
	for s, name := range selectionNames {
		if text == name {
			return Selection(s), nil
		}
	}
	return 0, fmt.Errorf("selection %q: want fcfs or widest", text)
}

// sort puts requests, which came in the order of the queue, in that of the policy.
func (s Selection) sort(demands []*demand) {
	if s == SelectWidest {
		slices.SortStableFunc(demands, func(a, b *demand) int { return cmp.Compare(b.processors, a.processors) })
	}
}

// Loads tells what a site has gossiped that it can spare (Matchmaker.Spare), and the
// number of the report; ok is false if it has said nothing.
type Loads func(site grid.SiteID) (spare int64, report uint64, ok bool)
