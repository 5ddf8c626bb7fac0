package site

import (
	"strings"
	"testing"

	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/market"
)

// waitingHead returns a head that has heard of no member, with so many jobs that have
// been in windows already.
func waitingHead(tb testing.TB, jobs int) (s *Site, now grid.Time) {
	tb.Helper()
	rating := grid.Rating{Speed: 1000, Bandwidth: 1000}
	s, err := New(Config{
		ID: "head", Name: "head", Rating: rating, Price: grid.Credit,
		Heads:     HeadsConfig{Members: []string{"m1", "m2", "m3"}, HeadConfig: muscle.HeadConfig{Window: grid.Second}},
		Directory: directory.Config{Federation: "test", Topic: "load"},
	}, 1)
	if err != nil {
		tb.Fatal(err)
	}
	var out grid.Outbox
	now = grid.Hour
	for i := range jobs {
		job := &grid.Job{
			ID: grid.JobID{Lo: uint64(i + 1)}, Home: "head", User: "ann", Tasks: 1, Submit: now, Estimate: grid.Minute,
			Work: grid.WorkOf(grid.Minute, 0, rating), Deadline: grid.Never, Budget: grid.NoBudget,
		}
		job.Processors = 1
		out.Reset()
		s.Step(now, &Submit{Job: job}, &out)
	}
	for range 3 {
		now += 2 * grid.Second
		out.Reset()
		s.Step(now, grid.Tick{}, &out)
	}
	return s, now
}

// Jobs that nobody could take in a window say so, by member.
func TestHeadTellsWhyJobsWait(t *testing.T) {
	s, _ := waitingHead(t, 3)
	v, known := s.Job(grid.JobID{Lo: 2})
	if !known || v.State != Placing || !v.Waits || !strings.HasPrefix(v.Reason, "no member that is there could take it; waits for the packing window") {
		t.Errorf("%+v", v)
	}
	if len(v.Verdicts) != 3 {
		t.Fatalf("%d verdicts, want one for each member", len(v.Verdicts))
	}
	for _, verdict := range v.Verdicts {
		if verdict.Outcome != market.OutcomeUnreachable || verdict.Detail != "not heard of yet" {
			t.Errorf("%+v", verdict)
		}
	}
}

// TestHeadRefusesWhatNobodyFits: a job that each cluster has refused for good ends when the window
// closes; another one of the same window does not.
func TestHeadRefusesWhatNobodyFits(t *testing.T) {
	b := newBench(t, func(c *Config) {
		together(c)
		c.Heads = HeadsConfig{Members: []string{"here"}, HeadConfig: muscle.HeadConfig{Window: grid.Second}}
	})
	b.site.packing.members = nil // there is its own cluster alone
	b.step(&Submit{Token: 1, Job: b.job(1, 2)}, &Submit{Token: 2, Job: b.job(2, 2)})
	e := b.site.jobs.byID[grid.JobID{Lo: 1}]
	e.packed.unfit, e.packed.why = []grid.SiteID{"here"}, "here: it is too narrow"
	b.site.packing.Head.Withdraw(e.job.ID)
	b.site.packing.place(b.now, e, &b.out)
	b.now += 2 * grid.Second
	b.step()
	if v := b.want(1, Refused); v.Reason != "no cluster that this site heads has room for it; here: it is too narrow" {
		t.Errorf("refused as %q", v.Reason)
	}
	b.want(2, Running)
}

// BenchmarkHeadWaits is a window of a head with 10 000 jobs that no member can take.
func BenchmarkHeadWaits(b *testing.B) {
	s, now := waitingHead(b, 10_000)
	var out grid.Outbox
	b.ReportAllocs()
	for b.Loop() {
		now += 2 * grid.Second
		out.Reset()
		s.Step(now, grid.Tick{}, &out)
	}
}
