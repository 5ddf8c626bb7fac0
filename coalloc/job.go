package coalloc

import (
	"fmt"

	"gridnode/grid"
)

// OfJob returns what a job's owner has asked for (grid.Job.Coallocate, not nil). The
// error wraps ErrRequest and says what is contradictory or out of bounds.
func OfJob(j *grid.Job) (Request, error) {
	c := j.Coallocate
	var r Request
	var err error
	each := j.Processors / max(j.Tasks, 1)
	switch {
	case c.Components != "" && (c.Count != "" || c.PerSite != 0):
		return r, badRequest("the components are given, so their number and least size cannot be asked for")
	case c.Components == "" && c.Count == "":
		return r, badRequest("neither components nor how many there may be")
	case j.Tasks > grid.PeersMax:
		return r, badRequest("%d tasks, at most %d can speak to each other", j.Tasks, grid.PeersMax)
	case c.Components != "":
		r, err = ParseComponents(c.Components)
	default:
		r, err = ParseFlexible(c.Count, j.Processors, c.PerSite)
		r.Each = each
	}
	if err != nil {
		return r, err
	}
	if r.Processors != j.Processors {
		return r, badRequest("components of %d processors together, the job has %d", r.Processors, j.Processors)
	}
	for i, s := range r.Splits {
		for k, component := range s {
			if component.Processors%each != 0 {
				return r, badRequest("component %d of split %d has %d processors, its tasks take %d each", k+1, i+1, component.Processors, each)
			}
		}
	}
	r.ClustersMax, r.CCR, r.Application = int(c.SitesMax), c.CCR, applicationOf(j)
	if c.Policy != "" {
		policy, err := ParsePolicy(c.Policy)
		if err != nil {
			return r, badRequest("%v", err)
		}
		r.Policy = &policy
	} else if len(j.Inputs) > 0 { // whoever names inputs wants to be close to them
		policy := PolicyCF
		r.Policy = &policy
	}
	return r, r.Validate()
}

// applicationOf names the application of a job: jobs of one user with the same name and
// as many processors and tasks are taken for the same.
func applicationOf(j *grid.Job) string {
	if j.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s\x00%s\x00%d\x00%d", j.User, j.Name, j.Processors, j.Tasks)
}
