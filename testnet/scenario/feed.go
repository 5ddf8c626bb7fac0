package scenario

import (
	"io"

	"gridnode/grid"
	"gridnode/testnet/workload"
)

// Feed is a Source of the jobs of a workload, each with its home's deadline and
// budget. The workload's site numbers are the network's.
type Feed struct {
	Source workload.Source
	QoS    workload.QoS
	Homes  []workload.Home
	Goal   func(site int, job *workload.Job) grid.Goal // nil: GoalLocal
	Adjust func(*grid.Job)                             // nil: nothing
	Read   int64
	job    workload.Job
}

// Next implements Source.
func (f *Feed) Next() (*grid.Job, int, error) {
	ok, err := f.Source.Next(&f.job)
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		return nil, 0, io.EOF
	}
	f.Read++
	j := new(grid.Job)
	f.QoS.Job(&f.job, &f.Homes[f.job.Site], j)
	if f.Goal != nil {
		j.Goal = f.Goal(f.job.Site, &f.job)
	}
	if f.Adjust != nil {
		f.Adjust(j)
	}
	return j, f.job.Site, nil
}
