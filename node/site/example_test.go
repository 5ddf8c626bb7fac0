package site_test

import (
	"fmt"

	"gridnode/grid"
	"gridnode/node/site"
)

// A site is stepped by hand: a job is submitted, a Tick starts it, and what has run it
// reports its end.
func ExampleSite() {
	s, err := site.New(site.Config{
		ID: "here", Name: "here", Parts: site.Jobs, Discipline: site.EASY,
		Resources: grid.Resources{Processors: 4}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: grid.Credit,
	}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	var out grid.Outbox
	var task grid.Task
	step := func(now grid.Time, inputs ...grid.Input) {
		for _, in := range append(inputs, grid.Tick{}) {
			s.Step(now, in, &out)
		}
		for _, e := range out.Effects {
			switch e.Kind {
			case grid.EffectSave:
				fmt.Println(now, "save", out.Records[e.Index].RecordKey()[:4])
			case grid.EffectAnswer:
				fmt.Println(now, "answer", out.Answers[e.Index].Value.(*site.Submitted).Err)
			case grid.EffectStart:
				task = out.Tasks[e.Index]
				fmt.Println(now, "start", task.Job.Processors, "processors for", task.Limit)
			case grid.EffectTell:
				fmt.Println(now, out.Events[e.Index].Kind)
			}
		}
		out.Reset()
	}
	rating := grid.Rating{Speed: 1000, Bandwidth: 1000}
	job := &grid.Job{
		ID: grid.JobID{Lo: 1}, Home: "here", User: "ann", Resources: grid.Resources{Processors: 3}, Tasks: 1, Submit: grid.Second,
		Estimate: grid.Minute, Work: grid.WorkOf(grid.Minute, 0, rating), Deadline: grid.Never, Budget: grid.NoBudget,
	}
	step(grid.Second, &site.Submit{Token: 1, Job: job})
	step(40*grid.Second, &grid.TaskEnded{ID: task.ID, Result: grid.Result{Start: grid.Second, End: 40 * grid.Second}})
	view, _ := s.Job(job.ID)
	fmt.Println(view.State, "for", view.Result.Cost)
	// Output:
	// 1s answer <nil>
	// 1s submitted
	// 1s placed
	// 1s save job/
	// 1s start 3 processors for 1m0s
	// 1s started
	// 40s ended
	// 40s finished
	// 40s save job/
	// done for 0.0325
}
