package testnet

import (
	"strings"
	"testing"

	"gridnode/grid"
)

// forgetful is a core that leaves what it tells itself to its driver.
type forgetful struct{ toySite }

func (f *forgetful) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	if note, ok := in.(*toyNote); ok {
		out.Local(note)
	}
}

// TestNobodyTakesInWhatAnotherIsTold: what a core tells itself never waits in the outbox
// for the next core, which is another site's or a router.
func TestNobodyTakesInWhatAnotherIsTold(t *testing.T) {
	n, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []grid.SiteID{"a", "b"} {
		if _, err := n.Add(Member{ID: id, New: func(int) (Site, error) { return &forgetful{toySite{timer: grid.Never}}, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	n.Inject(0, 0, &toyNote{})
	if said := panicOf(func() { n.Run(t.Context(), grid.Second, nil) }); !strings.Contains(said, "site a has told itself") {
		t.Errorf("panics with %q, want it to name site a", said)
	}
}

// panicOf returns what f panics with, as text.
func panicOf(f func()) (said string) {
	defer func() { said, _ = recover().(string) }()
	f()
	return ""
}

// TestTear: of a step within which a daemon dies what is told has happened, so many other
// orders leave, and no more.
func TestTear(t *testing.T) {
	tear := Tear{For: 1, Left: 2}
	for i, step := range []struct {
		kind   grid.EffectKind
		leaves bool
	}{
		{grid.EffectSave, false}, {grid.EffectSend, true}, {grid.EffectTell, true}, {grid.EffectStart, true},
		{grid.EffectSend, false}, {grid.EffectTell, true}, {grid.EffectAnswer, false},
	} {
		if got := tear.leaves(step.kind); got != step.leaves {
			t.Errorf("order %d, of kind %d: leaves %v", i, step.kind, got)
		}
	}
}

// TestLinger: what is killed goes on for a while, though not for longer than it would anyway, and
// nobody changes that who kills it again.
func TestLinger(t *testing.T) {
	n, err := New(Config{Linger: func(grid.TaskID) grid.Time { return 3 * grid.Second }})
	if err != nil {
		t.Fatal(err)
	}
	site := &toySite{timer: grid.Never}
	if _, err := n.Add(Member{ID: "a", New: func(int) (Site, error) { return site, nil }}); err != nil {
		t.Fatal(err)
	}
	ends := make(map[uint64]grid.Time)
	n.Observe(Observer{End: func(now grid.Time, x *Execution) {
		ends[x.Job.ID.Lo] = now
		if x.Reason != "unwanted" || x.Lapsed {
			t.Errorf("job %s has ended because of %q (lapsed: %v)", x.Job.ID, x.Reason, x.Lapsed)
		}
	}})
	for i, killed := range []grid.Time{2 * grid.Second, 9 * grid.Second} {
		id := grid.TaskID{Job: grid.JobID{Lo: uint64(i)}, Epoch: 1}
		n.Inject(0, 0, &toyRun{grid.Task{ID: id, Job: &grid.Job{ID: id.Job, RunTime: 10 * grid.Second}}})
		n.Inject(killed, 0, &toyKill{id})
		n.Inject(killed+grid.Second/2, 0, &toyKill{id})
	}
	if err := n.Run(t.Context(), grid.Minute, nil); err != nil {
		t.Fatal(err)
	}
	if ends[0] != 5*grid.Second || ends[1] != 10*grid.Second {
		t.Errorf("they end at %v", ends)
	}
}
