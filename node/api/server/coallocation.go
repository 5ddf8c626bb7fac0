package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/node/api"
)

// wishesOf returns what the cores are told, with no sites' names looked up yet.
func wishesOf(c *api.Coallocation) (*grid.Coallocation, error) {
	out := &grid.Coallocation{
		Components: c.Components, Count: c.Count, PerSite: c.MinPerSite, SitesMax: c.MaxSites, Policy: c.Policy, CCR: coalloc.CCRUnknown,
	}
	if c.CCR != nil {
		if !(*c.CCR >= 0 && *c.CCR <= coalloc.CCRMax/1000) {
			return nil, fmt.Errorf("ccr: %v, want 0 to %d", *c.CCR, coalloc.CCRMax/1000)
		}
		out.CCR = int64(*c.CCR*1000 + 0.5)
	}
	return out, nil
}

// divide adds what a spec says about co-allocation to a job.
func (by *submitter) divide(job *grid.Job, spec *api.JobSpec) error {
	if spec.Coallocation == nil && len(spec.Inputs) > 0 {
		return errors.New("inputs: want coallocation, too: count 1 places a job as a whole close to them")
	}
	bound := job.Deadline != grid.Never || job.Budget >= 0 || job.Site != "" || spec.Policy != "" && spec.Policy != grid.GoalLocal.String()
	if spec.Spread {
		if bound || spec.Coallocation != nil {
			return errors.New("spread, and coallocation, a deadline, budget, site or market policy, exclude each other: such a job waits in its site's queue")
		}
		job.Spread, job.Goal = true, grid.GoalLocal
	}
	if spec.Coallocation == nil {
		return nil
	}
	c, err := wishesOf(spec.Coallocation)
	if err != nil {
		return err
	}
	if bound {
		return errors.New("coallocation, and a deadline, budget, site or market policy, exclude each other: such a job is placed by its own policies")
	}
	job.Coallocate, job.Goal = c, grid.GoalLocal
	if spec.Tasks == 0 && c.Components != "" {
		r, err := coalloc.ParseComponents(c.Components)
		if err != nil {
			return err
		}
		each := max(spec.CPUsPerTask, 1)
		if r.Processors%each != 0 {
			return fmt.Errorf("coallocation: components of %d processors together, tasks take %d each", r.Processors, each)
		}
		job.Processors, job.Tasks = r.Processors, r.Processors/each
	}
	_, err = coalloc.OfJob(job)
	return err
}

// nameComponents replaces the names of sites in components by their IDs.
func (a *Server) nameComponents(ctx context.Context, spec *api.JobSpec, known map[string]grid.SiteID) error {
	if spec.Coallocation == nil || spec.Coallocation.Components == "" {
		return nil
	}
	r, err := coalloc.ParseComponents(spec.Coallocation.Components)
	if err != nil {
		return errorf(api.CodeUsage, "%v", err)
	}
	var text strings.Builder
	for i, split := range r.Splits {
		for k, c := range split {
			switch {
			case k > 0:
				text.WriteByte(',')
			case i > 0:
				text.WriteByte('|')
			}
			text.WriteString(strconv.FormatInt(c.Processors, 10))
			if c.Site == "" {
				continue
			}
			id, found := known[string(c.Site)]
			if !found {
				if id, err = a.siteNamed(ctx, string(c.Site)); err != nil {
					return err
				}
				known[string(c.Site)] = id
			}
			text.WriteString("@" + string(id))
		}
	}
	copied := *spec.Coallocation
	copied.Components = text.String()
	spec.Coallocation = &copied
	return nil
}

// coallocationOf is the inverse of Coallocation.job.
func coallocationOf(c *grid.Coallocation) *api.Coallocation {
	if c == nil {
		return nil
	}
	out := &api.Coallocation{Components: c.Components, Count: c.Count, MinPerSite: c.PerSite, MaxSites: c.SitesMax, Policy: c.Policy}
	if c.CCR >= 0 {
		ccr := float64(c.CCR) / 1000
		out.CCR = &ccr
	}
	return out
}

// componentsOf returns what users see of where a job's components are, and the names
// of their sites as one text.
func componentsOf(g *grid.Gang, names func(grid.SiteID) string) (components []api.Component, sites string) {
	if g == nil {
		return nil, ""
	}
	var all []string
	for i := range g.Parts {
		p := &g.Parts[i]
		c := api.Component{Site: string(p.Site), SiteName: names(p.Site), Processors: p.Processors, Tasks: p.Processors / g.Each}
		if c.SiteName == "" {
			c.SiteName = c.Site
		}
		components = append(components, c)
		all = append(all, c.SiteName)
	}
	return components, strings.Join(all, "+")
}
