package site

import (
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/others"
)

func TestWhatAnotherSchedulerSaysDecidesWhatStarts(t *testing.T) {
	s, err := New(Config{ID: "here", Name: "here", Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}, Price: 1, Parts: Jobs}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out grid.Outbox
	starts := func(now grid.Time, in grid.Input) int {
		out.Reset()
		s.Step(now, in, &out)
		s.Step(now, grid.Tick{}, &out)
		return len(out.Tasks)
	}
	starts(1, &Room{Taken: []others.Taken{{Processors: 3, Until: grid.Hour}}})
	j := &grid.Job{
		ID: grid.JobID{Lo: 1}, Home: "here", User: "u", Tasks: 2, Resources: grid.Resources{Processors: 2}, Estimate: grid.Minute, Work: grid.WorkOf(grid.Minute, 0, grid.Rating{Speed: 1, Bandwidth: 1}),
		Deadline: grid.Never, Budget: grid.NoBudget, Command: &grid.Command{Args: []string{"true"}},
	}
	if n := starts(2, &Submit{Token: 1, Job: j}); n != 0 {
		t.Fatalf("%d tasks started on processors that others hold (%v)", n, out.Answers)
	}
	if got := s.Scheduler(); got.Others != 3 || got.Trouble != "" {
		t.Errorf("the scheduler: %+v, want 3 processors of others and no trouble", got)
	}
	starts(3, &Room{Trouble: "no answer"})
	if got := s.Scheduler(); got.Others != 3 || got.Trouble != "no answer" || len(s.Notices()) != 1 {
		t.Errorf("the scheduler: %+v, want its trouble, a notice, and what it said before", got)
	}
	if n := starts(4, &Room{Taken: []others.Taken{{Processors: 1, Until: grid.Never}}}); n != 1 {
		t.Fatalf("%d tasks started once others were gone, want 1", n)
	}
	id := out.Tasks[0].ID
	starts(5, &Room{Waiting: []grid.TaskID{id}})
	starts(grid.Minute, &Room{Begun: []Begun{{ID: id, Start: grid.Minute}}})
	if got := s.Scheduler(); got.Margin != grid.Minute-4 || got.Broken != 0 {
		t.Errorf("after a start a minute late: %+v, want that margin and no promise broken", got)
	}
	again, err := New(s.cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	value := out.Records[len(out.Records)-1].AppendRecord(nil)
	kept := func(yield func(string, []byte) bool) { yield(others.RecordKey, value) }
	if err := again.Recover(grid.Hour, kept, &out); err != nil || again.Scheduler().Margin != grid.Minute-4 {
		t.Errorf("after a restart: %+v (%v), want the margin", again.Scheduler(), err)
	}
}
