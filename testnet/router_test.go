package testnet

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// TestOracleFindsTheNearest compares the walk over the trie with sorting all sites
// by their distance.
func TestOracleFindsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		type place struct {
			id       grid.SiteID
			distance []byte
		}
		key := sha256.Sum256([]byte(rapid.String().Draw(t, "key")))
		var places []place
		for i := range rapid.IntRange(1, 60).Draw(t, "sites") {
			id := grid.SiteID(fmt.Sprintf("site %d", i))
			if _, err := n.Add(Member{ID: id, New: func(int) (Site, error) { return &toySite{timer: grid.Never}, nil }}); err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 3).Draw(t, "down") == 0 {
				n.faults.crash(int32(i), false)
				continue
			}
			distance := sha256.Sum256([]byte(id))
			for j := range distance {
				distance[j] ^= key[j]
			}
			places = append(places, place{id, distance[:]})
		}
		slices.SortFunc(places, func(a, b place) int { return bytes.Compare(a.distance, b.distance) })
		count := rapid.IntRange(1, 25).Draw(t, "count")
		var want []grid.SiteID
		for _, p := range places[:min(count, len(places))] {
			want = append(want, p.id)
		}
		if got := n.Closest(nil, key, count); !slices.Equal(got, want) {
			t.Fatalf("nearest %d are %v, want %v", count, got, want)
		}
	})
}
