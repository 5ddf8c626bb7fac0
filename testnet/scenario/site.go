package scenario

import (
	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
)

// JobsMax is how many live jobs a site of a virtual network may have: no run fails
// because a log is long.
const JobsMax = 1 << 30

// Inputs makes the inputs that site.Site knows.
func Inputs() testnet.Inputs {
	return testnet.Inputs{
		Submit: func(used grid.Input, token uint64, job *grid.Job) grid.Input {
			in, ok := used.(*site.Submit)
			if !ok {
				in = new(site.Submit)
			}
			*in = site.Submit{Token: token, Job: job}
			return in
		},
		Adopted: func(id grid.TaskID, start grid.Time) grid.Input { return &site.Adopted{ID: id, Start: start} },
	}
}

// Submission tells the checker which answers acknowledge a job.
func Submission(answer any) (id grid.JobID, submission bool, err error) {
	s, ok := answer.(*site.Submitted)
	if !ok {
		return grid.JobID{}, false, nil
	}
	return s.ID, true, s.Err
}
