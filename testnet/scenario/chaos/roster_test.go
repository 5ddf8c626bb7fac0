package chaos

import (
	"testing"

	"gridnode/grid"
	"gridnode/node/member"
)

// TestMembers: memberships end, are renewed in time or late, and are revoked, of banks, too,
// under faults: no invariant is violated, and the run can be repeated.
func TestMembers(t *testing.T) {
	run := func(seed uint64) (string, rosterCounts) {
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours, cfg.Features = seed, 6, 1.5, "expire=1,revoke=0.4"
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return r.TraceHash, r.Config.(*chaosReport).Members
	}
	var sum rosterCounts
	hashes := map[string]bool{}
	for seed := range uint64(6) {
		hash, c := run(seed)
		hashes[hash] = true
		sum = rosterCounts{sum.Renewed + c.Renewed, sum.Late + c.Late, sum.Revoked + c.Revoked, sum.Expelled + c.Expelled}
	}
	if sum.Renewed == 0 || sum.Late == 0 || sum.Revoked == 0 || sum.Expelled == 0 {
		t.Errorf("%+v: not all was tried", sum)
	}
	if again, _ := run(5); !hashes[again] || len(hashes) != 6 {
		t.Errorf("six seeds and one again have %d trace hashes", len(hashes))
	}
}

// TestStrangers: those who are invited remain members for as long as they come in time, and a name is
// one member's, under faults: all that is looked at happens.
func TestStrangers(t *testing.T) {
	cfg := Default()
	cfg.Sites, cfg.Hours, cfg.Faults, cfg.Features = 6, 1.5, "loss,daemon,torn,partition,coincide", "invite,expire"
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Config.(*chaosReport).Owners
	if c.Namesakes.In == 0 || c.Namesakes.Out == 0 {
		t.Errorf("namesakes: %+v", c.Namesakes)
	}
	if c.Renewals.Renewed == 0 || c.Renewals.Ended == 0 {
		t.Errorf("renewals: %+v", c.Renewals)
	}
}

// TestMembersAreDrawn: of what a seed has happen, half of the sites are left, and every
// certificate that ends within the run is followed by one that does not.
func TestMembersAreDrawn(t *testing.T) {
	f := features{"expire": 1, "revoke": 1}
	for seed := range uint64(20) {
		const sites = 9
		revoked, last := 0, make(map[int]Wish)
		for _, w := range f.drawMembers(seed, sites, 2*grid.Hour) {
			if w.Kind == WishRevoke {
				revoked++
				continue
			}
			if before := last[w.Site]; before.At >= w.At {
				t.Fatalf("seed %d: site %d is certified at %v after %v", seed, w.Site, w.At, before.At)
			}
			last[w.Site] = w
		}
		if revoked != sites/2 {
			t.Errorf("seed %d: %d of %d sites are revoked", seed, revoked, sites)
		}
		for at, w := range last {
			if w.Span != lasts {
				t.Errorf("seed %d: the last certificate of site %d ends after %v", seed, at, w.Span)
			}
		}
	}
}

// TestShows: who is expelled is told why by a list that revokes it, and by nothing else.
func TestShows(t *testing.T) {
	r, err := newRoster(&Script{Config: Config{Sites: 2}}, features{"revoke": 1})
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.home.Revoke(nil, grid.Hour, r.all[0]...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		last grid.Message
		of   int
		want bool
	}{
		{"its list", &member.Revocations{List: list}, 0, true},
		{"a list of others", &member.Revocations{List: list}, 1, false},
		{"another message", &member.Digest{}, 0, false},
		{"nothing", nil, 0, false},
	} {
		if got := shows(tt.last, r.latest[tt.of]); got != tt.want {
			t.Errorf("%s shows why: %t", tt.name, got)
		}
	}
}
