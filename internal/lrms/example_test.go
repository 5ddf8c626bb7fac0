package lrms_test

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

func ExampleCluster() {
	task := func(n uint64) grid.TaskID { return grid.TaskID{Job: grid.JobID{Lo: n}} }
	c, err := lrms.New(lrms.Config{Processors: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	pass := func(now grid.Time) {
		for _, r := range c.Schedule(now, nil) {
			fmt.Printf("%v: job %d starts on %d processors\n", now, r.ID.Job.Lo, r.Processors)
		}
	}

	// Two jobs of this site: the second has to wait for the first.
	c.Submit(0, lrms.Request{ID: task(1), Processors: 6, Estimate: 2 * grid.Hour})
	c.Submit(0, lrms.Request{ID: task(2), Processors: 4, Estimate: grid.Hour})
	pass(0)

	// Another site asks. Job 3 is short and narrow enough to start at once; job 4
	// would delay job 2, so its promise comes after that.
	by := 4 * grid.Hour
	for _, r := range []lrms.Request{
		{ID: task(3), Processors: 2, Estimate: grid.Hour},
		{ID: task(4), Processors: 5, Estimate: grid.Hour},
		{ID: task(5), Processors: 8, Estimate: grid.Hour},
	} {
		start, err := c.Reserve(0, r, by)
		var late lrms.TooLate
		if errors.As(err, &late) {
			fmt.Printf("job %d cannot finish by %v, but by %v\n", r.ID.Job.Lo, by, late.Finish)
			continue
		}
		fmt.Printf("job %d is promised to start at %v\n", r.ID.Job.Lo, start)
		c.Commit(0, r.ID)
	}
	pass(0)

	// Job 1 ends early: job 2, the head of the queue, has its turn.
	c.Ended(30*grid.Minute, task(1))
	pass(30 * grid.Minute)
	fmt.Println("next timer:", c.NextTimer())

	// Output:
	// 0s: job 1 starts on 6 processors
	// job 3 is promised to start at 0s
	// job 4 is promised to start at 3h0m0s
	// job 5 cannot finish by 4h0m0s, but by 5h0m0s
	// 0s: job 3 starts on 2 processors
	// 30m0s: job 2 starts on 4 processors
	// next timer: 3h0m0s
}
