package record

import (
	"slices"
	"testing"

	"gridnode/grid"
)

// TestRemember: a registry that comes up again sends the record to those who had it, has the next ones
// take the places of those who do not answer, and looks up who is nearest when it would have without
// the restart. Another name is looked up at once.
func TestRemember(t *testing.T) {
	ids := key("", "me")
	looked := func(l lone, now grid.Time) bool {
		var out grid.Outbox
		l.Step(now, grid.Tick{}, &out)
		return slices.Contains(out.Keys, ids)
	}
	first := newLone(t)
	var out grid.Outbox
	first.Set(0, Offer{}, &out)
	if first.Memory() != nil {
		t.Error("it remembers a place that is being looked up")
	}
	first.Step(grid.Second, &grid.Closest{Key: ids, Peers: names("s", 20)}, &out)
	places := first.Memory()
	if len(places) != 1 || places[0].Check() != nil || !slices.Equal(places[0].Holders, names("s", firstWave)) || places[0].Look > grid.Second+lookFirst {
		t.Fatalf("it remembers %+v", places)
	}
	const now = 100 * grid.Second
	again := newLone(t)
	again.Remember(now, places)
	out = grid.Outbox{}
	again.Set(now, Offer{}, &out)
	if len(out.Keys) > 0 || len(out.Sends) != 4 || out.Sends[0].To != "s00" {
		t.Errorf("it looks up %d keys and sends %v", len(out.Keys), out.Sends)
	}
	again.want(now+1, "s01", &Entered{Sequence: uint64(now)})
	again.want(now+1, "s02", &Entered{Sequence: uint64(now)})
	again.want(now+1, "s03", &Entered{Sequence: uint64(now)})
	if looked(again, now+again.cfg.Timeout) || looked(again, now+2*again.cfg.Timeout) || again.publisher.copy("s04") == nil {
		t.Errorf("with a holder that does not answer it has copies %+v", again.publisher.copies)
	}
	if looked(again, places[0].Look-1) || !looked(again, places[0].Look) {
		t.Error("it does not look the holders up when it would have")
	}
	renamed := newLone(t)
	renamed.Remember(now, places)
	out = grid.Outbox{}
	renamed.Set(now, Offer{Name: "anna"}, &out)
	if !slices.Equal(out.Keys, []grid.Key{key("", "anna")}) {
		t.Errorf("with a new name it looks up %d keys", len(out.Keys))
	}
}

// TestPlaceCheck: what no registry remembers is refused.
func TestPlaceCheck(t *testing.T) {
	for _, p := range []Place{
		{Look: -1}, {Pace: -1}, {Holders: []grid.SiteID{""}}, {Holders: names("s", replicasMax+firstWave+1)}, {Holders: []grid.SiteID{grid.SiteID(make([]byte, siteMax+1))}},
	} {
		if p.Check() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
