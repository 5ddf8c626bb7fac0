package grid

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSiteIndex compares it with a map, over sites that come and go.
func TestSiteIndex(t *testing.T) {
	for _, names := range []int{1, 5, 8, 300} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(names)))
			ids := make([]SiteID, names)
			for i := range ids {
				ids[i] = SiteID(fmt.Sprintf("%0*d", 1+i%20, i)) // some shorter than a word, some longer
			}
			var x SiteIndex
			want := make(map[SiteID]int32)
			for step := range 20_000 {
				i := int32(rng.IntN(names))
				switch _, there := want[ids[i]]; {
				case there:
					x.Remove(ids[i], i)
					delete(want, ids[i])
				case rng.IntN(2) == 0 || step < names:
					x.Add(ids[i], i)
					want[ids[i]] = i
				}
				asked := ids[rng.IntN(names)]
				number, ok := x.Find(asked, func(n int32) SiteID { return ids[n] })
				if n, there := want[asked]; ok != there || ok && number != n || x.Len() != len(want) {
					t.Fatalf("step %d: found %d, %v of %q among %d, want %d, %v of %v", step, number, ok, asked, x.Len(), n, there, slices.Sorted(maps.Keys(want)))
				}
			}
		})
	}
}

// TestSiteIndexTellsApart has IDs whose hashes are equal but for what the table looks at first.
func TestSiteIndexTellsApart(t *testing.T) {
	byHash := make(map[uint32]SiteID)
	for i := range 1 << 20 {
		id := SiteID(fmt.Sprint("site", i))
		other, twin := byHash[hashOf(id)]
		byHash[hashOf(id)] = id
		if !twin {
			continue
		}
		ids := []SiteID{other, id}
		var x SiteIndex
		x.Add(other, 0)
		if number, ok := x.Find(id, func(n int32) SiteID { return ids[n] }); ok {
			t.Errorf("%q, which was not added, has the number %d: its hash is that of %q", id, number, other)
		}
		x.Add(id, 1)
		for want, id := range ids {
			if number, ok := x.Find(id, func(n int32) SiteID { return ids[n] }); !ok || int(number) != want {
				t.Errorf("%q has the number %d, %v, want %d", id, number, ok, want)
			}
		}
		return
	}
	t.Fatal("no two of a million IDs have the same hash")
}

func TestSiteIndexRemovesWhatIsThere(t *testing.T) {
	var x SiteIndex
	x.Add("a", 1)
	defer func() {
		if recover() == nil {
			t.Error("a number that a site does not have can be taken away")
		}
	}()
	x.Remove("a", 2)
}
