package directory

import (
	"flag"
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

var churnSites = flag.Int("churn", 120, "sites of TestCompletenessUnderChurn")

// churnLife is for how long a site stays in the mean: with a lifetime of ten minutes
// a sixth of the federation is replaced within it.
const churnLife = grid.Hour

// TestCompletenessUnderChurn lets sites leave, crash without a word and join all the
// time, their number staying about the same, and compares what queries find with what
// is offered: which share of the live quotes is found, and which share of the answers
// is of sites that have gone. Once it is calm for two lifetimes answers are exact.
func TestCompletenessUnderChurn(t *testing.T) {
	n := newNetwork(t, 1, Config{Lifetime: 10 * grid.Minute})
	sites := *churnSites
	populate(n, sites, n.any)
	n.run(2 * n.cfg.Lifetime)
	gap := churnLife / grid.Time(sites)
	end := n.now + grid.Hour
	var found, wanted, gone, answered, worst, messages, queries int
	before := n.messages()
	worst = 1000
	for step := 0; n.now < end; step++ {
		s := n.anyone()
		if step%2 == 0 {
			n.withdraw(s)
			n.run(grid.Second)
		}
		n.kill(s)
		s = n.join()
		price, speed, free := n.any(0)
		n.set(s, n.offer(s, price, speed, free))
		n.run(gap)
		asker := n.anyone()
		if asker.want == nil {
			continue
		}
		a := Attribute(n.rng.IntN(attributes))
		q := Query{Attribute: a, Descending: n.rng.IntN(2) == 0, Limit: 32, After: Behind(n.anyone().want, a)}
		begun := n.now
		f := n.find(asker, q)
		if n.now-begun > queryTimeout*2*grid.Second {
			t.Fatalf("%s waited %v", asker.id, n.now-begun)
		}
		q.Limit = 0
		got := map[grid.SiteID]bool{}
		for _, id := range ids(f.Quotes) {
			got[id] = true
			if answered++; n.byID[id].want == nil {
				gone++
			}
		}
		missing, passed := 0, 0
		for _, id := range n.want(q) {
			want := n.byID[id].want
			if m := len(f.Quotes); !f.End && (m == 0 || behind(want.at(a), f.Quotes[m-1].at(a), q.Descending)) {
				break // behind the end of the answer
			}
			if passed++; !got[id] && n.now-want.Issued > grid.Second { // else it is on its way
				missing++
			}
		}
		if passed > 0 {
			worst = min(worst, 1000-1000*missing/passed)
		}
		found, wanted, queries, messages = found+passed-missing, wanted+passed, queries+1, messages+int(f.Messages)
	}
	minutes := float64(sites) * 60
	t.Logf("%d sites, each for %v: %d queries found %.2f %% of the live quotes, the worst %.1f %%; %.1f %% of the answers had gone; %.1f messages a query; %.1f messages and %.2f look-ups a site and minute",
		sites, churnLife, queries, 100*float64(found)/float64(wanted), float64(worst)/10, 100*float64(gone)/float64(answered), float64(messages)/float64(queries),
		float64(n.messages()[0]-before[0])/minutes, float64(n.messages()[1]-before[1])/minutes)
	if wanted < 200 || 1000*found < 990*wanted {
		t.Errorf("found %d of %d quotes, want 99 %%", found, wanted)
	}
	n.run(2 * n.cfg.Lifetime)
	for a := range Attribute(attributes) {
		n.check(n.anyone(), Query{Attribute: a, Limit: 100})
		n.check(n.anyone(), Query{Attribute: a, Limit: 100, Descending: true, Filter: Filter{FreeMin: 300}})
	}
}

// messages returns how many messages and look-ups there were so far.
func (n *network) messages() (count [2]int64) {
	for k := range grid.Kind(64) {
		count[0] += n.counter.SentOf(k).Messages
	}
	for _, asked := range n.asked {
		count[1] += int64(asked)
	}
	return count
}

// behind reports whether a comes after b in the order of a query.
func behind(a, b trie.Position, descending bool) bool {
	if descending {
		return a.Less(b)
	}
	return b.Less(a)
}
