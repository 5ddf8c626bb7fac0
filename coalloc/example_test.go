package coalloc_test

import (
	"fmt"

	"gridnode/coalloc"
	"gridnode/grid"
)

// A placement policy of one's own: it divides a flexible job evenly over as few sites as
// hold it, the first that have room. Requests with components go by Worst Fit.
func ExamplePlaceFunc() {
	evenly := func(dst []coalloc.Part, r *coalloc.Request, v *coalloc.View, _ grid.Time) ([]coalloc.Part, bool) {
		if len(r.Splits) > 0 {
			return coalloc.WorstFit(dst, r, v)
		}
		for n := int64(max(r.ComponentsMin, 1)); n <= int64(len(v.Sites)); n++ {
			if r.Processors%n != 0 || r.ClustersMax > 0 && n > int64(r.ClustersMax) {
				continue
			}
			parts := dst
			for i := range v.Sites {
				if placed := int64(len(parts) - len(dst)); v.Sites[i].Free >= r.Processors/n && placed < n {
					parts = append(parts, coalloc.Part{Component: int32(placed), Site: int32(i), Processors: r.Processors / n})
				}
			}
			if int64(len(parts)-len(dst)) == n {
				return parts, true
			}
		}
		return dst, false
	}

	// It is part of what a site is configured with: it places the jobs that name no policy.
	cfg := coalloc.CoordinatorConfig{Queue: coalloc.QueueConfig{Place: evenly}}
	queue, err := coalloc.NewQueue(cfg.Queue)
	if err != nil {
		fmt.Println(err)
		return
	}

	view := coalloc.NewView([]coalloc.Site{
		{ID: "delft", Processors: 32, Free: 16}, {ID: "leiden", Processors: 32, Free: 12}, {ID: "vrije", Processors: 64, Free: 30},
	}, nil)
	for _, processors := range []int64{28, 24, 24} {
		job := grid.JobID{Hi: 1, Lo: uint64(view.Free())}
		if err := queue.Add(0, job, &coalloc.Request{Processors: processors}, grid.Hour); err != nil {
			fmt.Println(err)
			return
		}
		queue.Try(0, job, view, func(w *coalloc.Waiting, parts []coalloc.Part) {
			for _, p := range parts {
				fmt.Printf("job of %d: %d at %s\n", w.Request.Processors, p.Processors, view.Sites[p.Site].ID)
			}
		})
	}
	fmt.Println(queue.Len(), "waits")
	// Output:
	// job of 28: 28 at vrije
	// job of 24: 12 at delft
	// job of 24: 12 at leiden
	// 1 waits
}
