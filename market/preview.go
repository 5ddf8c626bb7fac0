package market

import "gridnode/grid"

// preview ranks a job as a placement would, over all sites, and asks nobody.
func (b *broker) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	p := b.newPlacement(in.Job)
	p.token = in.Token
	b.find(now, p, out)
}

// previewed answers once all quotes are here.
func (b *broker) previewed(now grid.Time, p *placement, out *grid.Outbox) {
	if !p.end && len(p.quotes) < b.cfg.PreviewsMax {
		b.find(now, p, out)
		return
	}
	if p.own < 0 {
		b.addHome(now, p)
	}
	result := &PreviewResult{Verdicts: b.verdicts(now, p, ""), Err: p.paging.failed, Certain: p.paging.failed == nil && !p.paging.unsure}
	result.Earliest, result.Cheapest = Earliest(result.Verdicts), Cheapest(result.Verdicts)
	token := p.token
	b.drop(now, p, out)
	out.Answer(token, result)
}
