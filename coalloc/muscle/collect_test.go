package muscle

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// TestCollectMakespan: "while the expected makespans of the jobs yet to be scheduled in
// all clusters (provided by TITAN) are greater than a predefined threshold, collect the
// arriving jobs" (algorithm 4).
func TestCollectMakespan(t *testing.T) {
	h := newHeadFor(t, HeadConfig{Collect: CollectMakespan, Threshold: grid.Minute})
	members := []Member{memberOf("a", 4), memberOf("b", 4), memberOf("c", 4)}
	busy := func(a, b grid.Time) []Member {
		members[0].Booked = []Booking{{Processors: 4, Finish: a, Deadline: grid.Never}}
		members[1].Booked = []Booking{{Processors: 1, Finish: b, Deadline: grid.Never}}
		members[2].Presence = Silent // it has no work, and does not count
		return members
	}
	h.Collect(0, jobOf(1, 2, grid.Minute, grid.Hour), nil, nil, 0)
	if h.NextTimer() != 0 || h.Due(0, busy(10*grid.Minute, grid.Minute+300*grid.Millisecond)) {
		t.Fatalf("due at %v, want to be looked at once and not due", h.NextTimer())
	}
	if at := h.NextTimer(); at != 300*grid.Millisecond {
		t.Errorf("looks again at %v, want as the second cluster reaches the threshold", at)
	}
	h.Collect(100*grid.Millisecond, jobOf(2, 2, grid.Minute, grid.Hour), nil, nil, 0)
	if at := h.NextTimer(); at != 300*grid.Millisecond {
		t.Errorf("with a second job it looks again at %v", at)
	}
	if !h.Due(300*grid.Millisecond, busy(10*grid.Minute, grid.Minute)) {
		t.Fatal("one cluster is at the threshold, and jobs are still collected")
	}
	if w := h.Close(300*grid.Millisecond, members); w.Packed != 2 {
		t.Errorf("%d jobs were shared out, want 2", w.Packed)
	}
	if h.NextTimer() != grid.Never {
		t.Errorf("nothing waits, and it looks again at %v", h.NextTimer())
	}
	h.Collect(grid.Second, jobOf(3, 2, grid.Minute, grid.Hour), nil, nil, 0)
	if h.NextTimer() != grid.Second || h.Due(grid.Second, busy(grid.Hour, grid.Hour)) || h.NextTimer() != 2*grid.Second {
		t.Errorf("all are busy for long: it looks again at %v, want after a second", h.NextTimer())
	}
	members[0].Presence, members[1].Presence = Silent, Silent
	if !h.Due(2*grid.Second, members) {
		t.Error("no cluster is there, and the head does not say so")
	}
	h = newHeadFor(t, HeadConfig{Collect: CollectMakespan, Batch: 2})
	for id := range uint64(2) {
		h.Collect(0, jobOf(id, 2, grid.Minute, grid.Hour), nil, nil, 0)
	}
	if members[0].Presence, members[1].Presence = Present, Present; !h.Due(0, busy(grid.Hour, grid.Hour)) {
		t.Error("a full batch is collected on")
	}
}

// TestSlackDoesNotShrink: "the slack of a job is its deadline minus its execution time
// and its arrival time", so jobs that have waited beyond their deadlines leave ε a number
// that tells clusters apart; by the rule Urgent none is left.
func TestSlackDoesNotShrink(t *testing.T) {
	late := Held{Processors: 1, Span: 10, Arrival: -100, Deadline: -40}
	if got := Published.slack(late); got != 50 {
		t.Errorf("slack %v, want 50", got)
	}
	if got := Urgent.slack(late); got != 0 {
		t.Errorf("slack by urgent %v, want none", got)
	}
	none := Held{Processors: 3, Span: 10, Deadline: 10}
	for _, rule := range []Rule{Published, Urgent} {
		var w workload
		w.add(rule, none)
		if e := w.epsilon(rule, 4); e.float() <= 0 || e.float() > 10*3 {
			t.Errorf("ε of a job without slack is %v", e.float())
		}
	}
}

// TestEpsilonCountsWhatClustersHave: a cluster that has jobs comes after an idle one of
// the same size, also where its first processors are free as early.
func TestEpsilonCountsWhatClustersHave(t *testing.T) {
	b := &Batch{
		Clusters: []Cluster{
			{Processors: 4, Weights: titan.DefaultWeights, Has: []Held{{Processors: 1, Span: 50, Deadline: 100}}},
			{Processors: 4, Weights: titan.DefaultWeights},
		},
		Jobs: []Job{{Processors: 1, Deadline: 100, Spans: []grid.Time{10, 10}}},
	}
	for seed := range uint64(8) { // equal clusters are drawn
		p, err := Pack(b, Published, draws(seed))
		if err != nil || p.Placements[0].Cluster != 1 {
			t.Fatalf("the job went to cluster %d, error %v", p.Placements[0].Cluster, err)
		}
	}
}

// TestAssignOnArrival: DLL counts what it has chosen for the jobs that wait, and WRAND's
// choice holds until the batch is shared out.
func TestAssignOnArrival(t *testing.T) {
	members := []Member{memberOf("a", 4), memberOf("b", 4)}
	members[0].Booked = []Booking{{Processors: 4, Finish: 90 * grid.Second, Deadline: grid.Never}}
	members[1].Booked = []Booking{{Processors: 4, Finish: 80 * grid.Second, Deadline: grid.Never}}
	h := newHeadFor(t, HeadConfig{Collect: CollectMakespan, Policy: PolicyDLL})
	for id := range uint64(3) { // loads 90 and 80; 90 and 110; 120 and 110
		job := jobOf(id, 4, 30*grid.Second, grid.Hour)
		h.Collect(0, job, nil, nil, 0)
		h.Assign(0, job.ID, members)
		if got, want := h.waiting[job.ID].site, []grid.SiteID{"b", "a", "b"}[id]; got != want {
			t.Errorf("DLL chose %q for job %d on arrival, want %s", got, id, want)
		}
	}
	at := map[uint64]grid.SiteID{}
	w := h.Close(0, members)
	for _, a := range w.Allotments {
		at[a.Job.ID.Lo] = members[a.Member].Site
	}
	if at[0] != "b" || at[1] != "a" || at[2] != "b" {
		t.Errorf("DLL gave the jobs to %v", at)
	}
	h = newHeadFor(t, HeadConfig{Collect: CollectMakespan, Policy: PolicyWRAND})
	for id := range uint64(40) {
		job := jobOf(id, 1, grid.Second, grid.Hour)
		h.Collect(0, job, nil, nil, 0)
		h.Assign(0, job.ID, members)
		h.waiting[job.ID].site = "b"
	}
	for _, a := range h.Close(0, members).Allotments {
		if members[a.Member].Site != "b" {
			t.Fatal("what was chosen on arrival does not hold")
		}
	}
	job := jobOf(50, 1, grid.Second, grid.Hour)
	h.Collect(0, job, nil, nil, 0)
	h.waiting[job.ID].site = "b"
	members[1].Presence = Silent
	if w := h.Close(0, members); len(w.Allotments) != 1 || members[w.Allotments[0].Member].Site != "a" {
		t.Errorf("the chosen cluster is away: %+v", w.Allotments)
	}
}

// TestCollectSettings: a rule is what its name says, and only the policies that choose on
// arrival do so, where the makespan says when jobs are shared out.
func TestCollectSettings(t *testing.T) {
	for _, rule := range []Collect{CollectWindow, CollectMakespan} {
		if back, err := ParseCollect(rule.String()); back != rule || err != nil {
			t.Errorf("%v is taken as %v, %v", rule, back, err)
		}
		h := newHeadFor(t, HeadConfig{Collect: rule, Threshold: 7 * grid.Second, Policy: PolicyDLL})
		if got, threshold := h.Collects(); got != rule || threshold != 7*grid.Second {
			t.Errorf("set to %v, it collects by %v of %v", rule, got, threshold)
		}
		job := jobOf(1, 1, grid.Second, grid.Hour)
		h.Collect(0, job, nil, nil, 0)
		h.Assign(0, job.ID, []Member{memberOf("a", 4)})
		if got, want := h.OnArrival(), rule == CollectMakespan; got != want || (h.waiting[job.ID].site == "a") != want {
			t.Errorf("by %v it chooses on arrival: %t, %q", rule, got, h.waiting[job.ID].site)
		}
		if h = newHeadFor(t, HeadConfig{Collect: rule, Policy: PolicyMuscle}); h.OnArrival() {
			t.Errorf("by %v MUSCLE chooses on arrival", rule)
		}
	}
	if rule, err := ParseCollect("never"); err == nil || rule != 0 {
		t.Errorf("%v, %v", rule, err)
	}
}
