package record

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// TestFoundUnderChurn: while sites die and come, a site that is up is found by its name
// and its ID.
func TestFoundUnderChurn(t *testing.T) {
	w := newWorld(t, Config{})
	rng := rand.New(rand.NewPCG(1, 2))
	name := func(id grid.SiteID) string { return "site " + string(id) }
	for i := range 120 {
		id := grid.SiteID(strconv.Itoa(i))
		w.join(id)
		w.set(id, Offer{Name: name(id)})
	}
	up := make(map[grid.SiteID]grid.Time) // since when
	for _, id := range w.order {
		up[id] = 0
	}
	asked, found := 0, 0
	for w.now < 8*grid.Hour { // a site is up for an hour, and down for half an hour
		w.run(w.now + grid.Minute)
		for _, id := range w.order {
			p := w.sites[id]
			switch {
			case p.registry != nil && rng.IntN(60) == 0:
				p.registry = nil
				delete(up, id)
			case p.registry == nil && rng.IntN(30) == 0:
				w.start(p)
				w.set(id, Offer{Name: name(id)})
				up[id] = w.now
			}
		}
		for range 3 {
			var who, whom grid.SiteID
			for who == whom || w.sites[who].registry == nil || w.sites[whom].registry == nil || w.now-up[whom] < grid.Minute {
				who, whom = w.order[rng.IntN(len(w.order))], w.order[rng.IntN(len(w.order))]
			}
			text := name(whom)
			if rng.IntN(2) == 0 {
				text = string(whom)
			}
			asked++
			if slices.Contains(w.find(who, text).sites(), string(whom)) {
				found++
			}
		}
	}
	t.Logf("%d of %d searches found the site", found, asked)
	if 100*found < 99*asked {
		t.Errorf("%d of %d searches found the site, want 99 %%", found, asked)
	}
}

// TestUpkeepRests: what a record costs does not depend on how many sites there are, and
// look-ups become rare.
func TestUpkeepRests(t *testing.T) {
	for _, n := range []int{40, 120} {
		w := newWorld(t, Config{})
		for i := range n {
			id := grid.SiteID(strconv.Itoa(i))
			w.join(id)
			w.set(id, Offer{Name: "site " + string(id)})
		}
		w.run(12 * grid.Hour)
		before, looks := w.sent[wire.DirectoryEnter], w.looks
		w.run(20 * grid.Hour)
		per := float64(w.sent[wire.DirectoryEnter]-before) / float64(n) / 8
		if per > 8*1.65 {
			t.Errorf("%d sites: %.1f records sent by a site and hour, want eight every 40 minutes", n, per)
		}
		if per := float64(w.looks-looks) / float64(n) / 8; per > 0.4 {
			t.Errorf("%d sites: %.2f look-ups of a site and hour, want two every eight hours", n, per)
		}
	}
}

// TestSparesStandIn: the place of a holder that has died is taken by one that the router has
// named already, and only when there is none it is asked again.
func TestSparesStandIn(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range 30 {
		w.join(grid.SiteID(strconv.Itoa(i)))
	}
	w.set("0", Offer{})
	w.run(10 * grid.Minute)
	place := func() *place { return &w.sites["0"].registry.publisher.places[0] }
	place().look = w.now + 4*LifetimeDefault // nothing but losses is of interest
	replicas, looks := len(place().holders), w.looks
	for round := range firstWave - replicas + 1 {
		if round == firstWave-replicas {
			looks++
		}
		next := slices.IndexFunc(place().holders, func(site grid.SiteID) bool { return site != "0" })
		w.sites[place().holders[next]].registry = nil
		w.run(w.now + LifetimeDefault/3)
		if n := len(place().holders); n != replicas || w.looks != looks {
			t.Fatalf("round %d: %d holders, %d look-ups more than are necessary", round, n, w.looks-looks)
		}
		for _, site := range place().holders {
			if g := w.sites[site].registry; g == nil || g.holder.held["0"] == nil {
				t.Errorf("round %d: %s is to hold the record, and has none", round, site)
			}
		}
	}
}

// TestWhatIsHeldIsBounded: a flood of records neither fills more than its room nor takes
// the place of those who were first.
func TestWhatIsHeldIsBounded(t *testing.T) {
	counts := &Counts{}
	h := &holder{cfg: &Config{Lifetime: LifetimeDefault}, counts: counts, held: make(map[grid.SiteID]*Record), claims: make(map[string][]grid.SiteID), sweep: grid.Never, swept: -1}
	enter := func(now grid.Time, site, name string) Refusal {
		_, refusal := h.enter(now, &Record{Site: grid.SiteID(site), Offer: Offer{Name: name}, Sequence: uint64(now), Issued: now, Lifetime: LifetimeDefault})
		return refusal
	}
	for i := range claimsMax {
		if r := enter(1, fmt.Sprint("claims ", i), "delft"); r != Taken {
			t.Fatalf("claim %d: %v", i, r)
		}
	}
	if r := enter(2, "late", "delft"); r != Full {
		t.Errorf("one claim too many: %v", r)
	}
	if r := enter(2, "claims 3", "delft"); r != Taken {
		t.Errorf("a claim is renewed: %v", r)
	}
	for i := range 2 * heldMax {
		want := Taken
		if i >= heldMax-claimsMax {
			want = Full
		}
		if r := enter(3, fmt.Sprint("flood ", i), ""); r != want {
			t.Fatalf("site %d: %v, want %v", i, r, want)
		}
	}
	if len(h.held) != heldMax || len(h.about(4, "delft")) != claimsMax {
		t.Errorf("%d records are held, and %d of delft", len(h.held), len(h.about(4, "delft")))
	}
	h.drop(LifetimeDefault + 2)
	if len(h.held) != heldMax-claimsMax && len(h.about(4, "delft")) != 1 {
		t.Errorf("%d records are held when all but those renewed have expired", len(h.held))
	}
	if r := enter(LifetimeDefault+4, "late", "delft"); r != Taken {
		t.Errorf("a name that is free again: %v", r)
	}
}

// TestSearchesEnd: a search is answered whatever becomes of the router and of those asked.
func TestSearchesEnd(t *testing.T) {
	g, err := New(Config{Self: "me"}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	out := &grid.Outbox{}
	find := func(now grid.Time, token uint64) {
		g.Step(now, &Find{token, "delft"}, out)
	}
	answer := func() *Found {
		t.Helper()
		if len(out.Answers) != 1 {
			t.Fatalf("%d answers", len(out.Answers))
		}
		f := out.Answers[0].Value.(*Found)
		out.Reset()
		return f
	}
	find(0, 1)
	g.Step(g.NextTimer(), grid.Tick{}, out)
	if f := answer(); f.Err != ErrRouter {
		t.Errorf("the router is silent: %+v", f)
	}
	find(grid.Hour, 2)
	g.Step(grid.Hour, &grid.Closest{Key: key("", "delft"), Peers: []grid.SiteID{"a", "b", "me"}}, out)
	g.Step(grid.Hour, &grid.Undelivered{To: "a", Message: out.Sends[0].Message}, out)
	if len(out.Answers) != 0 {
		t.Fatal("an answer before all were asked")
	}
	// Nobody but whom it has asked can answer, and nothing but what it has asked for.
	inform := &Inform{Token: 1, Records: []*Record{{Site: "x", Offer: Offer{Name: "delft"}, Sequence: 1, Issued: grid.Hour, Lifetime: grid.Hour}}}
	g.Step(grid.Hour, &grid.Delivery{From: "liar", Message: inform}, out)
	inform.Records[0].Name = "leiden"
	g.Step(grid.Hour, &grid.Delivery{From: "b", Message: inform}, out)
	if f := answer(); len(f.Records) != 0 || f.Asked != 2 || f.Answered != 1 || g.Rejected != 1 {
		t.Errorf("%+v, and %d records were rejected", f, g.Rejected)
	}
	for token := range uint64(searchesMax + 1) {
		g.Step(2*grid.Hour, &Find{token, strconv.FormatUint(token, 10)}, out)
	}
	if f := answer(); f.Err != ErrBusy {
		t.Errorf("one search too many: %+v", f)
	}
	if g.Asked(key("", "63")) != true || g.Asked(key("", "64")) {
		t.Error("it does not know what it has asked for")
	}
}

// TestNoOlderRecordComesBack: of a site that has changed its name, an older record under
// the former name does not count for who has seen the newer.
func TestNoOlderRecordComesBack(t *testing.T) {
	w := newWorld(t, Config{})
	for _, id := range []grid.SiteID{"a", "b", "c"} {
		w.join(id)
	}
	w.set("a", Offer{Name: "delft"})
	w.run(grid.Minute)
	old := w.find("c", "delft").Records[0]
	w.set("a", Offer{Name: "leiden"})
	w.run(2 * grid.Minute)
	if got := w.find("c", "leiden").sites(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("found %v", got)
	}
	w.sites["b"].registry.holder.held["a"] = old // a liar
	w.sites["b"].registry.holder.claims = map[string][]grid.SiteID{"delft": {"a"}}
	if f := w.find("c", "delft"); len(f.Records) != 0 {
		t.Errorf("%s brought %s back", "b", describeRecord(f.Records[0]))
	}
	if f := w.find("c", "a"); len(f.Records) != 1 || f.Records[0].Name != "leiden" {
		t.Errorf("by its ID: %+v", f.Records)
	}
}

// TestANameIsNotSwapped: a name that was used does not come to stand for another site
// without a word, whether the index or a record says so.
func TestANameIsNotSwapped(t *testing.T) {
	w := newWorld(t, Config{})
	for _, id := range []grid.SiteID{"a", "b", "c"} {
		w.join(id)
	}
	g := w.sites["c"].registry
	mean := func(text string, known ...grid.SiteID) *Meaning {
		t.Helper()
		out := &grid.Outbox{}
		g.Step(w.now, &Meant{1, text, known}, out)
		if len(out.Keys) > 0 {
			g.Step(w.now, &grid.Closest{Key: out.Keys[0], Peers: []grid.SiteID{"b", "c"}}, out)
			g.Step(w.now, &grid.Delivery{From: "b", Message: &Inform{g.seeker.token, w.sites["b"].registry.holder.about(w.now, text)}}, out)
		}
		if len(out.Answers) != 1 {
			t.Fatalf("%d answers about %s", len(out.Answers), text)
		}
		return out.Answers[0].Value.(*Meaning)
	}
	check := func(when string, m *Meaning, site, was grid.SiteID, sites ...grid.SiteID) {
		t.Helper()
		if m.Site != site || m.Was != was || !slices.Equal(m.Sites, sites) {
			t.Errorf("%s: %+v, want %q, was %q, of %v", when, m, site, was, sites)
		}
	}
	check("the index lists it", mean("delft", "a"), "a", "", "a")
	check("the index lists two", mean("delft", "b", "a"), "", "", "a", "b")
	check("an ID", mean("a", "b", "a"), "a", "", "a", "b")
	check("the index lists another", mean("delft", "b"), "", "a", "b")
	w.set("b", Offer{Name: "delft"})
	w.run(w.now + grid.Minute)
	check("another has a record", mean("delft"), "", "a", "b")
	check("nobody", mean("leiden"), "", "")
	w.run(w.now + boundSpan)
	check("it was not used for long", mean("delft"), "b", "", "b")
	for i := range 2 * boundMax {
		w.now++
		mean(fmt.Sprint("name ", i), "a")
	}
	if n := len(g.seeker.bound); n != boundMax || g.seeker.bound[fmt.Sprint("name ", 2*boundMax-1)].site != "a" {
		t.Errorf("%d names are remembered", n)
	}
}
