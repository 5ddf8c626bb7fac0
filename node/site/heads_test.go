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
