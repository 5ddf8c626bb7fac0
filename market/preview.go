package market

import "gridnode/grid"

// preview ranks a job as a placement would, over all sites, and asks nobody.
func (a *Agent) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	p := a.newPlacement(in.Job)
	p.token = in.Token
	a.find(now, p, out)
}

// previewed answers once all quotes are here.
func (a *Agent) previewed(now grid.Time, p *placement, out *grid.Outbox) {
	if !p.end && len(p.quotes) < a.cfg.PreviewsMax {
		a.find(now, p, out)
		return
	}
	if !p.home {
		a.addHome(now, p)
	}
	result := &PreviewResult{Verdicts: a.verdicts(now, p, ""), Err: p.failed, Certain: p.failed == nil && !p.unsure}
	result.Earliest, result.Cheapest = Earliest(result.Verdicts), Cheapest(result.Verdicts)
	token := p.token
	a.dropPlacement(now, p, out)
	out.Answer(token, result)
}
