package wire

import (
	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Bounds of what a job says about co-allocation. What it means is checked by package
// coalloc where the job is submitted.
const (
	componentsTextMax = 16 << 10
	wordMax           = 32   // bytes of a count and of a policy
	partsMax          = 64   // components of a job
	sitesMaxMax       = 1024 // of a limit of sites
)

func coallocationProto(c *grid.Coallocation) *wirepb.Coallocation {
	if c == nil {
		return nil
	}
	return &wirepb.Coallocation{Components: c.Components, Count: c.Count, PerSite: c.PerSite, SitesMax: c.SitesMax, Policy: c.Policy, Ccr: c.CCR}
}

func coallocationFromProto(p *wirepb.Coallocation) *grid.Coallocation {
	if p == nil {
		return nil
	}
	return &grid.Coallocation{Components: p.Components, Count: p.Count, PerSite: p.PerSite, SitesMax: p.SitesMax, Policy: p.Policy, CCR: p.Ccr}
}

func checkCoallocation(c *grid.Coallocation) error {
	switch {
	case c == nil:
	case len(c.Components) > componentsTextMax:
		return Malformed("components of %d bytes, at most %d", len(c.Components), componentsTextMax)
	case len(c.Count) > wordMax || len(c.Policy) > wordMax:
		return Malformed("number of components, or policy of their placement, longer than %d bytes", wordMax)
	case c.PerSite < 0 || c.PerSite > processorsMax:
		return Malformed("components of at least %d processors", c.PerSite)
	case c.SitesMax < 0 || c.SitesMax > sitesMaxMax:
		return Malformed("a limit of %d sites, want 1 to %d, 0 for none", c.SitesMax, sitesMaxMax)
	}
	return nil
}

// GangProto returns the wire form of g; its task travels beside it. Pilots are this
// site's business: with told they are left out.
func GangProto(g *grid.Gang, told bool) *wirepb.Gang {
	if g == nil {
		return nil
	}
	p := &wirepb.Gang{Each: g.Each}
	for i := range g.Parts {
		part := &wirepb.GangPart{Site: string(g.Parts[i].Site), Processors: g.Parts[i].Processors}
		if !told {
			part.Pilot, part.Key = string(g.Parts[i].Pilot.Site), g.Parts[i].Pilot.Key
		}
		p.Parts = append(p.Parts, part)
	}
	return p
}

// GangFromProto checks p and returns the gang, or an error wrapping ErrMalformed. It
// returns nil if p is.
func GangFromProto(task grid.TaskID, p *wirepb.Gang) (*grid.Gang, error) {
	if p == nil {
		return nil, nil
	}
	g := &grid.Gang{Task: task, Each: p.Each}
	if p.Each < 1 || p.Each > processorsMax || len(p.Parts) == 0 || len(p.Parts) > partsMax {
		return nil, Malformed("gang of %d components, %d processors a task", len(p.Parts), p.Each)
	}
	ranks := int64(0)
	for i, part := range p.Parts {
		if part.Processors < 1 || part.Processors > processorsMax || part.Processors%p.Each != 0 ||
			len(part.Site) == 0 || len(part.Site) > siteIDMax || len(part.Pilot) > siteIDMax {
			return nil, Malformed("component %d of a gang: %d processors at a site of %d bytes", i, part.Processors, len(part.Site))
		}
		ranks += part.Processors / p.Each
		g.Parts = append(g.Parts, grid.GangPart{
			Site: grid.SiteID(part.Site), Processors: part.Processors, Pilot: grid.Pilot{Site: grid.SiteID(part.Pilot), Key: part.Key},
		})
	}
	if ranks > grid.RanksMax {
		return nil, Malformed("gang of %d tasks, at most %d", ranks, grid.RanksMax)
	}
	return g, nil
}
