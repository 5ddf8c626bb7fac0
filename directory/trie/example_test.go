package trie_test

import (
	"fmt"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// A holder of the root splits it when more quotes have come than it keeps, and tells
// those that belong below where to.
func ExampleFences_Split() {
	var root trie.Prefix
	var points []trie.Position // the quotes, in order
	for price := range int64(14) {
		points = append(points, trie.PositionOf(1000+price, 1<<63))
	}
	at := points[7]

	var fences trie.Fences
	fmt.Println("split:", fences.Split(root, points, 8, grid.Hour))
	to, moved := fences.Way(at, root)
	fmt.Println("belongs below:", moved, to.Contains(at))
	// Output:
	// split: true
	// belongs below: true true
}

// A site goes by what it remembers: the quotes from a position on are in the longest
// cell known there, up to where the next one begins.
func ExampleMap() {
	m := trie.NewMap()
	low := trie.PrefixOf(trie.First(), 2) // 00
	m.Learn(trie.Prefix{}, []trie.Prefix{low, trie.PrefixOf(trie.Last(), 3)})

	known := m.Find(trie.First(), nil)
	edge := m.Edge(known.Prefix, trie.First(), false, nil)
	fmt.Println("first in", known.Prefix, "to its end:", edge == low.End())

	known = m.Find(edge.Next(), nil)
	edge = m.Edge(known.Prefix, edge.Next(), false, nil)
	fmt.Printf("then in %q up to %v\n", known.Prefix, trie.PrefixOf(edge.Next(), 3))
	// Output:
	// first in 00 to its end: true
	// then in "" up to 111
}

// A cell that has had few quotes for a lifetime asks for a second copy of each in the
// cell above, and leaves when all have one.
func ExampleLife() {
	var life trie.Life
	lifetime := 10 * grid.Minute
	found := trie.Census{Quotes: 3, Max: 64, Leaf: true, Mature: true}
	for _, round := range []struct {
		at   grid.Time
		safe bool
	}{{0, false}, {10 * grid.Minute, false}, {20 * grid.Minute, true}, {40 * grid.Minute, true}} {
		found.Safe = round.safe
		life.Reconsider(round.at, lifetime, found)
		fmt.Println(round.at, life.Stage(round.at, lifetime))
	}
	// Output:
	// 0s sparse
	// 10m0s closing
	// 20m0s leaving
	// 40m0s closed
}
