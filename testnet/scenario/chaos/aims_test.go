package chaos

import "testing"

// TestAims: jobs at several sites are cancelled, and lose sites, at all their stages, and
// no invariant is violated.
func TestAims(t *testing.T) {
	var counts aimCounts
	var gangs gangCounts
	for seed := range uint64(3) {
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults = seed, 8, 12, "reorder=0.2,aim=0.7"
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		report := r.Config.(*chaosReport)
		c, g := report.Aimed, report.Gangs
		counts.Cancelled, counts.Before, counts.Within, counts.After = counts.Cancelled+c.Cancelled, counts.Before+c.Before, counts.Within+c.Within, counts.After+c.After
		gangs.Cancelled, gangs.Whole, gangs.Broken = gangs.Cancelled+g.Cancelled, gangs.Whole+g.Whole, gangs.Broken+g.Broken
	}
	t.Logf("%+v, %+v", counts, gangs)
	const few = 10
	if min(counts.Cancelled, counts.Before, counts.Within, counts.After, gangs.Cancelled, gangs.Whole, gangs.Broken) < few {
		t.Errorf("%+v of %+v: want %d of each at least", counts, gangs, few)
	}
}

// TestRunsBeforeWaits: after a restart a job whose tasks run on a site's own processors
// has them before one that waits. With this seed a waiting one once set them aside.
func TestRunsBeforeWaits(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults = 1, 8, 8, "reorder=0.2,aim=0.7"
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}
