package market

import "gridnode/grid"

// advancePaper is the loop of Grid-Federation §2.2, kept exactly:
//
//	"1. Set r = 1.
//	2. If OFT is required for the job then query the federation directory for the
//	r-th fastest GFA; otherwise OFC is required and the query is made for the r-th
//	cheapest GFA. Refer to the result of the query as the remote GFA.
//	3. The local GFA sends a message to the remote GFA, requesting a guarantee on
//	the time to complete the job.
//	4. If the remote GFA confirms the guarantee then the job is sent, otherwise
//	r := r + 1 and the process iterates through step 2."
//
// The r-th quote is read from pages of the directory. Home is one of the GFAs; it
// is asked without a message.
//
// "If the job's QoS parameters cannot be satisfied (after iterating up to the
// greatest r such that GFA could feasibly complete the job) then the job is
// dropped." So the loop ends at the last site that could do it if it were idle,
// and sites before it are asked even if they could not, unless
// Config.SkipInfeasible says otherwise.
//
// "Similarly, for OFT then GFA m with R_m is chosen such that D(J, R_m) is minimal
// and B(J, R_m) ≤ b": the cost follows from the quote by eq. 3, which home knows
// before it asks, so a site over the budget is passed over without a message. For
// OFC the paper has no such condition, and neither has the loop.
func (b *broker) advancePaper(now grid.Time, p *placement, out *grid.Outbox) {
	if p.outstanding() > 0 {
		return
	}
	if i := p.grantedAsk(); i >= 0 {
		b.award(now, p, &p.asks[i], out)
		return
	}
	at := b.circumstances(now, p)
	for {
		if p.next >= p.feasible && !p.foresee(&at) {
			break
		}
		i := p.next
		q := &p.quotes[i]
		if p.skips(i, &at, b.cfg.SkipInfeasible) {
			p.next++
			continue
		}
		if q.Site == b.cfg.Site {
			p.next++
			if b.takeHome(now, p, out) {
				return
			}
			at.Asked = p.asked
			continue
		}
		b.negotiate(now, p, i, out)
		if p.waiting == nil {
			p.next++
		}
		return
	}
	if !p.end {
		b.find(now, p, out)
		return
	}
	why := ReasonNoSite
	if p.failed != nil {
		why = ReasonNoAnswer
	}
	b.refuse(now, p, why, out)
}

// grantedAsk returns the guarantee that p has, or -1.
func (p *placement) grantedAsk() int {
	for i := range p.asks {
		if p.asks[i].state == granted {
			return i
		}
	}
	return -1
}

// foresee looks for the next site that could feasibly complete the job, and
// reports whether there is one on the pages so far.
func (p *placement) foresee(at *Circumstances) bool {
	for i := p.feasible; i < len(p.quotes); i++ {
		switch v := judge(p.job, &p.quotes[i], at); v.Outcome {
		case OutcomeCandidate, OutcomeLoaded:
			p.feasible = i + 1
			return true
		}
	}
	return false
}

// skips reports whether the loop passes over quote i without a message.
func (p *placement) skips(i int, at *Circumstances, infeasible bool) bool {
	switch v := judge(p.job, &p.quotes[i], at); v.Outcome {
	case OutcomeCandidate, OutcomeLoaded:
		return false
	case OutcomeTooNarrow, OutcomeTooLittle, OutcomeTooLate:
		return infeasible
	}
	return true // over the budget, unwilling, not named, or asked before
}
