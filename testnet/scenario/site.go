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
		Submit:  func(token uint64, job *grid.Job) grid.Input { return &site.Submit{Token: token, Job: job} },
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
