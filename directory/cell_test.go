package directory

import (
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

func TestCellsHaveDifferentKeys(t *testing.T) {
	seen := map[grid.Key]string{}
	for _, federation := range []string{"", "a", "b"} {
		for a := range Attribute(attributes) {
			for _, x := range []trie.Prefix{{}, trie.PrefixOf(trie.First(), 1), trie.PrefixOf(trie.First(), 2), trie.PrefixOf(trie.Last(), 1), trie.PrefixOf(trie.Last(), 2)} {
				key := cell{a, x}.key(federation)
				if other, ok := seen[key]; ok {
					t.Errorf("%v of %q has the key of %s", cell{a, x}, federation, other)
				}
				seen[key] = cell{a, x}.String()
			}
		}
	}
}
