package coalloc

import "gridnode/grid"

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
	case j.Tasks > grid.RanksMax:
		return r, badRequest("%d tasks, at most %d start together", j.Tasks, grid.RanksMax)
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
	r.ClustersMax, r.CCR = int(c.SitesMax), c.CCR
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
