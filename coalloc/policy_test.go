package coalloc

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// drawView draws up to six sites and what lies between them.
func drawView(t *rapid.T) *View {
	n := rapid.IntRange(1, 6).Draw(t, "sites")
	m := NewMatrix(n)
	var sites []Site
	for i := range n {
		processors := rapid.Int64Range(0, 12).Draw(t, "processors")
		s := Site{ID: grid.SiteID(rune('a' + i)), Processors: processors, Free: rapid.Int64Range(0, processors).Draw(t, "free")}
		if rapid.Bool().Draw(t, "known") {
			wait := rapid.SampledFrom([]grid.Time{0, grid.Second, grid.Hour, grid.Never}).Draw(t, "wait")
			s.Wait = func(int64) grid.Time { return wait }
		}
		sites = append(sites, s)
		for j := range i + 1 {
			if err := m.Set(i, j, grid.Time(rapid.Int64Range(1, 2000).Draw(t, "latency")), rapid.Int64Range(0, 1000).Draw(t, "bandwidth")); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := NewView(sites, m)
	if rapid.Bool().Draw(t, "grouped") {
		Groups(v, grid.Time(rapid.Int64Range(1, 2000).Draw(t, "radius")))
	}
	return v
}

// drawRequest draws a valid request.
func drawRequest(t *rapid.T) *Request {
	r := &Request{CCR: rapid.Int64Range(-1, 4000).Draw(t, "ccr"), ClustersMax: rapid.IntRange(0, 4).Draw(t, "clusters")}
	if rapid.Bool().Draw(t, "flexible") {
		r.Processors = rapid.Int64Range(1, 30).Draw(t, "processors")
		r.ComponentsMin = rapid.IntRange(0, 4).Draw(t, "least")
		r.ComponentsMax = rapid.IntRange(0, 5).Draw(t, "most")
		r.ComponentMin = rapid.Int64Range(0, 6).Draw(t, "size")
		r.Each = rapid.Int64Range(0, 3).Draw(t, "each")
		r.Processors *= r.each()
	} else {
		for range rapid.IntRange(1, 2).Draw(t, "splits") {
			var s Split
			for range rapid.IntRange(1, 4).Draw(t, "components") {
				site := grid.SiteID(rapid.SampledFrom([]string{"", "", "a", "b", "z"}).Draw(t, "site"))
				s = append(s, Component{rapid.Int64Range(1, 8).Draw(t, "component"), site})
			}
			r.Splits = append(r.Splits, s)
		}
		for _, c := range r.Splits[0] {
			r.Processors += c.Processors
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "inputs") {
		r.Inputs = append(r.Inputs, Input{
			Bytes:   rapid.Int64Range(0, 1<<40).Draw(t, "bytes"),
			Holders: rapid.SampledFrom([][]grid.SiteID{{"a", "q"}, {"b"}, nil}).Draw(t, "holders"),
			Closed:  rapid.SampledFrom([][]grid.SiteID{nil, {"b"}, {"c", "a"}}).Draw(t, "closed"),
		})
	}
	if r.Validate() != nil {
		t.Skip("contradictory")
	}
	return r
}

// TestPlacementsFit: whatever a policy places fits, keeps every limit and changes
// nothing; and it says the same when it is asked again.
func TestPlacementsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, r := drawView(t), drawRequest(t)
		before := slices.Clone(v.left)
		for p := range Policy(len(policyNames)) {
			prefix := []Part{{Site: 99}}
			parts, ok := p.Place(prefix, r, v, grid.Hour)
			if parts[0].Site != 99 || !ok && len(parts) != 1 {
				t.Fatalf("%v returned %v, %v", p, parts, ok)
			}
			if ok {
				if err := r.Fits(parts[1:], v); err != nil {
					t.Fatalf("%v placed %v: %v", p, parts[1:], err)
				}
				if err := r.Placeable(v); err != nil && len(r.Splits) == 0 {
					t.Fatalf("%v placed %v, which is said to be impossible: %v", p, parts[1:], err)
				}
			}
			if !slices.Equal(before, v.left) || len(v.touched) != 0 {
				t.Fatalf("%v changed the view", p)
			}
			again, okAgain := p.Place(nil, r, v, grid.Hour)
			if ok != okAgain || !slices.Equal(again, parts[1:]) {
				t.Fatalf("%v placed %v, then %v", p, parts[1:], again)
			}
		}
	})
}

// TestWorstFitRefuses: what it cannot divide, or may not spread over as many sites.
func TestWorstFitRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    Request
		want string
	}{
		{"flexible", Request{Processors: 6}, "b:6"},
		{"one component", Request{Processors: 6, ComponentsMin: 1}, "b:6"},
		{"two components", Request{Processors: 6, ComponentsMin: 2}, "no"},
		{"two sites are named", Request{Processors: 4, Splits: []Split{{{2, "a"}, {2, "b"}}}}, "a:2 b:2"},
		{"of which one may be used", Request{Processors: 4, Splits: []Split{{{2, "a"}, {2, "b"}}}, ClustersMax: 1}, "no"},
		{"the same one is named twice", Request{Processors: 4, Splits: []Split{{{2, "a"}, {2, "a"}}}, ClustersMax: 1}, "a:2 a:2"},
	} {
		v := viewOf(nil, 4, 9, 7)
		parts, ok := WorstFit(nil, &tt.r, v)
		if got := text(v, parts, ok); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestMinimizationIsExact: FCM places a flexible job whenever that is possible, on as
// few sites as possible, as ten lines that try everything find out.
func TestMinimizationIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, r := drawView(t), drawRequest(t)
		if len(r.Splits) > 0 {
			t.Skip("its user has divided the job")
		}
		fewest := 0
		for set := range 1 << len(v.Sites) {
			var n, idle int64
			for i := range v.Sites {
				if set>>i&1 == 1 {
					n++
					idle += v.Sites[i].Free / r.each() * r.each()
					if v.Sites[i].Free < r.least() {
						idle = -1 << 40
					}
				}
			}
			if idle >= r.Processors && n*r.least() <= r.Processors && int(n) >= r.ComponentsMin && int(n) <= r.most() && (fewest == 0 || int(n) < fewest) {
				fewest = int(n)
			}
		}
		parts, ok := ClusterMinimization(nil, r, v)
		if ok != (fewest > 0) || len(parts) != fewest {
			t.Fatalf("placed %v, %v; %d sites are possible", parts, ok, fewest)
		}
	})
}

// plane is a view of n sites in places on a plane, with their latencies.
type plane []struct{ x, y int64 }

func (p plane) Latency(a, b int) grid.Time {
	dx, dy := p[a].x-p[b].x, p[a].y-p[b].y
	return grid.Time(max(dx, -dx)+max(dy, -dy)) + 30
}
func (p plane) Bandwidth(a, b int) int64 { return 1_000_000_000 / int64(p.Latency(a, b)) }

func federation(n int) *View {
	var p plane
	var sites []Site
	state := uint64(7)
	next := func(n uint64) int64 {
		state = state*6364136223846793005 + 1442695040888963407
		return int64(state >> 33 % n)
	}
	for i := range n {
		p = append(p, struct{ x, y int64 }{next(5)*10_000 + next(500), next(4)*10_000 + next(500)})
		processors := 16 + next(500)
		sites = append(sites, Site{ID: grid.SiteID(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))), Processors: processors, Free: next(uint64(processors / 4))})
	}
	v := NewView(sites, p)
	Groups(v, 1500)
	return v
}

// counted counts the looks at a network.
type counted struct {
	Network
	looks int
}

func (c *counted) Latency(a, b int) grid.Time { c.looks++; return c.Network.Latency(a, b) }

// TestNeverAllPairs: grouping and placing look at far fewer than n² pairs.
func TestNeverAllPairs(t *testing.T) {
	for _, n := range []int{1000, 4000} {
		v := federation(n)
		c := &counted{Network: v.Network}
		v.Network = c
		groups := Groups(v, 1500)
		if groups < 10 || groups > 60 {
			t.Errorf("%d groups of sites that lie in 20 places", groups)
		}
		for p := range Policy(len(policyNames)) {
			if parts, ok := p.Place(nil, &Request{Processors: 700}, v, grid.Hour); !ok || p != PolicyWF && len(parts) < 2 {
				if p != PolicyWF && p != PolicyCF || p == PolicyCF && !ok {
					t.Errorf("%v: %v", p, parts)
				}
			}
		}
		if limit := n * 400; c.looks > limit {
			t.Errorf("%d sites: %d looks at the network, want at most %d; all pairs are %d", n, c.looks, limit, n*n)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	r := &Request{Processors: 700, CCR: 250}
	for p := range Policy(len(policyNames)) {
		b.Run(p.String()+"/sites=1000", func(b *testing.B) {
			v := federation(1000)
			var parts []Part
			b.ReportAllocs()
			for i := range b.N {
				v.SetFree(i%1000, int64(i%7)) // something has changed since the last placement
				parts, _ = p.Place(parts[:0], r, v, grid.Hour)
			}
		})
	}
	b.Run("first/sites=1000", func(b *testing.B) { // groups and all, as after a directory scan
		b.ReportAllocs()
		base := federation(1000)
		for range b.N {
			v := NewView(base.Sites, base.Network)
			Groups(v, 1500)
			CommunicationAware(nil, r, v, MetricLatency)
		}
	})
}
