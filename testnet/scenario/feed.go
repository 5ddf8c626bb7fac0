package scenario

import (
	"io"

	"gridnode/grid"
	"gridnode/testnet/workload"
)

// feed is a Source of the jobs of a workload, each with its home's deadline and
// budget. The workload's site numbers are the network's.
type feed struct {
	source workload.Source
	qos    workload.QoS
	homes  []workload.Home
	goal   func(site int, job *workload.Job) grid.Goal // nil: GoalLocal
	adjust func(*grid.Job)                             // nil: nothing
	read   int64
	job    workload.Job
	jobs   grid.Slab[grid.Job]
}

// Next implements Source.
func (f *feed) Next() (*grid.Job, int, error) {
	ok, err := f.source.Next(&f.job)
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		return nil, 0, io.EOF
	}
	f.read++
	j := f.jobs.New()
	f.qos.Job(&f.job, &f.homes[f.job.Site], j)
	if f.goal != nil {
		j.Goal = f.goal(f.job.Site, &f.job)
	}
	if f.adjust != nil {
		f.adjust(j)
	}
	return j, f.job.Site, nil
}
