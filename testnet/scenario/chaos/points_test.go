package chaos

import (
	"slices"
	"strings"
	"testing"
)

// TestPoints: daemons die before and after what a step saves and each of its other orders, on
// timers and in recoveries, too, and what was hit and missed is told. Nothing is violated.
func TestPoints(t *testing.T) {
	between, recovering, unsaved, durable, bare, looking, timed := false, false, false, false, false, false, false
	for seed := range uint64(4) { // which points are hit is chance, but in four runs all kinds of them are
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults, cfg.Features = 5+seed, 5, 5, "within=0.3,coincide=0.2,loss,between=0.05,store=0.005,oneway=1,slow=0.5", "cancel,requeue,fail"
		run := &trial{script: scriptOf(cfg)}
		result, err := run.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := result.Config.(*chaosReport).Points
		if c.Hit < 30 || c.Hit > c.Seen || len(c.Missed) != c.Seen-c.Hit {
			t.Errorf("%d of %d points were hit, %d missed", c.Hit, c.Seen, len(c.Missed))
		}
		for _, p := range run.points.counts.All() {
			if p.Hit > p.Seen {
				t.Errorf("%s: hit %d of %d times", p.Name, p.Hit, p.Seen)
			}
			hit := func(part string) bool { return p.Hit > 0 && strings.HasPrefix(p.Name, part) }
			unsaved = unsaved || hit("before saving ")
			durable = durable || hit("after saving ")
			between = between || hit("between saving ")
			recovering = recovering || hit("before sending ") && strings.HasSuffix(p.Name, ", in recovery")
			timed = timed || hit("after sending ") && strings.HasSuffix(p.Name, ", on a timer")
		}
		bare = bare || slices.ContainsFunc(run.told.Strikes, func(s Strike) bool { return s.Kind == strikeBetween })
		looking = looking || slices.ContainsFunc(run.told.Strikes, func(s Strike) bool { return s.Kind == strikeLook })
		injected := result.Config.(*chaosReport).Injected
		if injected["oneway"] == 0 || injected["slow"] == 0 {
			t.Errorf("injected %v", injected)
		}
		if !slices.ContainsFunc(run.told.Strikes, func(s Strike) bool { return s.Kind == strikeWithin && s.Left > 0 }) {
			t.Error("no daemon has died between two orders")
		}
		if between && recovering && unsaved && durable && bare && looking && timed {
			return
		}
	}
	t.Errorf("hit between a save and what carries it out: %v, in a recovery: %v, as a save failed: %v, after one: %v, where nothing is saved: %v, as one looks for sites: %v, on a timer: %v",
		between, recovering, unsaved, durable, bare, looking, timed)
}

// ran runs a script that violates nothing.
func ran(t *testing.T, s *Script) *trial {
	t.Helper()
	run := &trial{script: s}
	if _, err := run.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return run
}

// TestFullDisks: a daemon that finds no room for what it is to save dies, and dies again until
// there is some. Nothing is violated, and the replay of what happened is the same run.
func TestFullDisks(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults = 3, 5, 2, "full=2"
	run := ran(t, scriptOf(cfg))
	again := ran(t, run.listed())
	times := 0
	for _, list := range run.points.full.when {
		times += len(list)
	}
	if died := run.points.full.died; times == 0 || died <= uint64(times) || again.points.full.died != died || again.n.TraceHash() != run.n.TraceHash() {
		t.Errorf("%d daemons have died of %d full disks, and %d in the replay (trace %x, %x)", died, times, again.points.full.died, run.n.TraceHash(), again.n.TraceHash())
	}
}

// TestTornSteps: a daemon that dies as soon as it has saved has died after a save, and before what
// would come next.
func TestTornSteps(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults = 3, 4, 1, "torn=10"
	run := ran(t, scriptOf(cfg))
	hit := make(map[string]int64)
	for _, p := range run.points.counts.All() {
		hit[p.Name] = p.Hit
	}
	if hit["after saving job"] == 0 || hit["between saving job and answering"] == 0 || hit["before saving job"] > 0 || hit["after answering"] > 0 {
		t.Errorf("hit %v", hit)
	}
}

// TestStrikesWithinSteps: the replay of what happened has daemons die within the same steps, of each sort.
func TestStrikesWithinSteps(t *testing.T) {
	cfg := Default()
	cfg.Seed, cfg.Sites, cfg.Hours, cfg.Faults = 3, 5, 2, "within=0.01,between=0.01,store=0.01"
	run := ran(t, scriptOf(cfg))
	again := ran(t, run.listed())
	kinds := make(map[string]int)
	for _, s := range run.told.Strikes {
		kinds[s.Kind]++
	}
	if len(kinds) != 4 || !slices.Equal(run.points.counts.All(), again.points.counts.All()) || again.n.TraceHash() != run.n.TraceHash() {
		t.Errorf("strikes %v, trace %x, that of the replay %x", kinds, run.n.TraceHash(), again.n.TraceHash())
	}
}
