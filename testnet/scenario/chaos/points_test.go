package chaos

import (
	"slices"
	"strings"
	"testing"
)

// TestPoints: daemons die after what a step saves and before its other orders, in recoveries,
// too, and what was hit and missed is told. Nothing is violated.
func TestPoints(t *testing.T) {
	between, recovering, unsaved, bare := false, false, false, false
	for seed := range uint64(4) { // which points are hit is chance, but in four runs all kinds of them are
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults, cfg.Features = 5+seed, 5, 5, "within=0.3,coincide=0.2,loss,between=0.05,store=0.005,oneway=1,slow=0.5", "cancel,requeue,fail"
		run := &trial{script: &Script{Format: formatScript, Seed: cfg.Seed, Config: cfg}}
		result, err := run.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := result.Config.(*chaosReport).Points
		if c.Hit < 30 || c.Hit > c.Seen || len(c.Missed) != c.Seen-c.Hit {
			t.Errorf("%d of %d points were hit, %d missed", c.Hit, c.Seen, len(c.Missed))
		}
		for name := range run.points.hit {
			unsaved = unsaved || strings.HasPrefix(name, "loses ")
			bare = bare || run.points.hit[name] > 0 && strings.HasPrefix(name, "saves nothing, sends market.")
			recovering = recovering || strings.HasPrefix(name, "recovers, ")
			between = between || strings.HasSuffix(name, "then sends market.acknowledge")
		}
		injected := result.Config.(*chaosReport).Injected
		if injected["oneway"] == 0 || injected["slow"] == 0 {
			t.Errorf("injected %v", injected)
		}
		if !slices.ContainsFunc(run.told.Strikes, func(s Strike) bool { return s.Kind == strikeWithin && s.Left > 0 }) {
			t.Error("no daemon has died between two orders")
		}
		if between && recovering && unsaved && bare {
			return
		}
	}
	t.Errorf("hit between save and acknowledgement: %v, in a recovery: %v, as a save failed: %v, where nothing is saved: %v", between, recovering, unsaved, bare)
}

// TestFullDisks: a daemon that finds no room for what it is to save dies, and dies again until
// there is some. Nothing is violated, and the replay of what happened is the same run.
func TestFullDisks(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults = 3, 5, 2, "full=2"
	run := &trial{script: &Script{Format: formatScript, Seed: cfg.Seed, Config: cfg}}
	if _, err := run.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := &trial{script: run.listed()}
	if _, err := again.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	times := 0
	for _, list := range run.points.full.when {
		times += len(list)
	}
	if died := run.points.full.died; times == 0 || died <= uint64(times) || again.points.full.died != died || again.n.TraceHash() != run.n.TraceHash() {
		t.Errorf("%d daemons have died of %d full disks, and %d in the replay (trace %x, %x)", died, times, again.points.full.died, run.n.TraceHash(), again.n.TraceHash())
	}
}

// TestPlain: kinds of records have one name, whatever they are about.
func TestPlain(t *testing.T) {
	for key, want := range map[string]string{
		"job/ckydmwh1mbc860000g0000003c": "job", "bank/payment/ckydmwh1mbc860000g0000003c/1": "bank/payment",
		"bank/account/site-1": "bank/account", "deaths/latest": "deaths",
	} {
		if got := plain(key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}
