package coalloc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/grid"
)

// TestPut: sites that come, change and shrink leave the view as if it had been made anew.
func TestPut(t *testing.T) {
	v := NewView([]Site{{ID: "a", Processors: 4, Free: 4}}, nil)
	v.Put(Site{ID: "b", Processors: 9, Free: 7})
	v.Put(Site{ID: "a", Processors: 6, Free: 99})
	v.Put(Site{ID: "b"})
	v.Put(Site{ID: "c", Processors: 3, Free: 2})
	if v.Free() != 8 || v.most != 6 || len(v.Sites) != 3 || v.Index("c") != 2 {
		t.Errorf("%d idle, widest %d, %+v", v.Free(), v.most, v.Sites)
	}
	if order := v.widest(); !slices.Equal(order, []int32{0, 2, 1}) {
		t.Errorf("order %v", order)
	}
	parts, ok := ClusterMinimization(nil, &Request{Processors: 8}, v)
	if !ok || len(parts) != 2 {
		t.Errorf("%v, %v", parts, ok)
	}
}

// TestKeep: sites that leave are gone from the view; who joins later takes no place of
// theirs.
func TestKeep(t *testing.T) {
	v := viewOf(table2(t), 30, 20, 25, 200)
	v.widest()
	v.Keep(func(id grid.SiteID) bool { return id != "b" && id != "d" })
	if v.Free() != 55 || v.most != 100 || len(v.Sites) != 2 || v.Index("b") != -1 || v.Index("c") != 1 || v.Network != nil {
		t.Errorf("%d idle, widest %d, %+v, network %v", v.Free(), v.most, v.Sites, v.Network)
	}
	if err := (&Request{Processors: 150, Splits: []Split{{{50, "b"}, {100, ""}}}}).Placeable(v); err == nil {
		t.Error("a site that has left is counted on")
	}
	v.Put(Site{ID: "e", Processors: 90, Free: 90})
	parts, ok := ClusterMinimization(nil, &Request{Processors: 140}, v)
	if got := text(v, parts, ok); got != "e:90 a:30 c:20" {
		t.Errorf("placed %s", got)
	}
	v.Keep(func(grid.SiteID) bool { return false })
	if v.Free() != 0 || v.most != 0 || len(v.Sites) != 0 {
		t.Errorf("%+v are left", v.Sites)
	}
}

// TestSiteBeyondTheNetwork: a site that has joined since anybody looked at the network is
// placed at as one of which nothing is known.
func TestSiteBeyondTheNetwork(t *testing.T) {
	_, survey, ids := surveyedFederation(t, 5)
	for name, network := range map[string]Network{"matrix": table2(t), "estimates": survey.Network(0, ids[:4], make([]int64, 4))} {
		v := viewOf(network, 5, 5, 5, 5)
		v.Put(Site{ID: "e", Processors: 100, Free: 5})
		for at := range 5 {
			if l, b := network.Latency(at, 4), network.Bandwidth(4, at); l != LatencyMax || b != 1 {
				t.Errorf("%s: %v and %d bytes a second between site %d and one that is not known", name, l, b, at)
			}
		}
		for p := range policyLast + 1 {
			r := &Request{Processors: 25, CCR: 1, Inputs: []Input{{Bytes: 1, Holders: []grid.SiteID{"a"}}}}
			if parts, ok := p.Place(nil, r, v, grid.Hour); ok != (p != PolicyWF) {
				t.Errorf("%s: %v places %v", name, p, parts)
			}
		}
	}
}

// TestWhatAViewKeepsIsFresh: whatever has changed, a view places as a new one would,
// on what is idle and as if all were.
func TestWhatAViewKeepsIsFresh(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	v := federation(60)
	network := v.Network.(plane)
	v.SetNetwork(network[:60])
	for step := range 400 {
		switch i := rng.IntN(len(v.Sites)); rng.IntN(6) {
		case 0:
			v.SetFree(i, rng.Int64N(50))
		case 1:
			s := v.Sites[i]
			s.Processors, s.Free = 1+rng.Int64N(500), rng.Int64N(100)
			v.Put(s)
		case 2:
			if len(v.Sites) < 100 {
				network = append(network, network[i])
				v.Put(Site{ID: grid.SiteID(fmt.Sprint("new", step)), Processors: 40, Free: 7})
				v.SetNetwork(network)
			}
		case 3:
			network = slices.Clone(network)
			network[i], network[0] = network[0], network[i]
			v.SetNetwork(network)
		case 4:
			Groups(v, grid.Time(500+rng.Int64N(5000)))
		case 5:
			if len(v.Sites) > 40 {
				gone := v.Sites[i].ID
				network = slices.Delete(slices.Clone(network), i, i+1)
				v.Keep(func(id grid.SiteID) bool { return id != gone })
				v.SetNetwork(network)
			}
		}
		fresh := NewView(slices.Clone(v.Sites), v.Network)
		for _, p := range []Policy{PolicyFCM, PolicyCA, PolicyAdaptive} {
			r := &Request{Processors: 1 + rng.Int64N(900), CCR: 250}
			got, ok := p.Place(nil, r, v, grid.Hour)
			want, possible := p.Place(nil, r, fresh, grid.Hour)
			if ok != possible || !slices.Equal(got, want) {
				t.Fatalf("step %d: %v places %v, a new view %v", step, p, got, want)
			}
			got, ok = p.Place(nil, r, idleView(v), grid.Hour)
			want, possible = p.Place(nil, r, idleView(fresh), grid.Hour)
			if ok != possible || !slices.Equal(got, want) {
				t.Fatalf("step %d: if all were idle %v places %v, on a new view %v", step, p, got, want)
			}
		}
	}
}
