package site

import (
	"fmt"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/market"
)

// reasons explains what a window made of a job, a verdict for each member: the one
// that it was allotted to comes first. a is nil if it was left.
func (h *packing) reasons(now grid.Time, w *muscle.Window, job *grid.Job, a *muscle.Allotment) []market.Verdict {
	verdicts := make([]market.Verdict, 0, len(w.Members))
	for i := range w.Members {
		m := &w.Members[i]
		v := market.Verdict{Site: m.Site, Name: m.Name, Finish: w.Alone(now, job, i)}
		v.Price, v.Cost = h.priceAt(m, job)
		switch {
		case a != nil && a.Member == i:
			v.Outcome, v.Finish, v.Detail = market.OutcomeChosen, a.Finish, because(w, a)
		case m.Presence == muscle.Unwilling:
			v.Outcome, v.Detail = market.OutcomeNoConsent, "its muscle.head does not name this site"
		case m.Presence != muscle.Present:
			v.Outcome, v.Detail = market.OutcomeUnreachable, m.Presence.String()
		case v.Finish == grid.Never:
			v.Outcome, v.Detail = market.OutcomeTooNarrow, fmt.Sprintf("has %d processors, the job needs %d", m.Processors, job.Processors)
		default:
			v.Outcome, v.Detail = market.OutcomeCandidate, fmt.Sprintf("without the window's other jobs done in %v", round(v.Finish-now))
		}
		verdicts = append(verdicts, v)
		if v.Outcome == market.OutcomeChosen {
			last := len(verdicts) - 1
			copy(verdicts[1:], verdicts[:last])
			verdicts[0] = v
		}
	}
	return verdicts
}

// priceAt returns what a member charges an hour and for a job, as far as is known.
func (h *packing) priceAt(m *muscle.Member, job *grid.Job) (grid.Price, grid.Credits) {
	price, model := h.price(), h.cfg.Cost
	if m.Site != h.cfg.ID {
		q, known := h.dir.Known(m.Site)
		if !known {
			return 0, 0
		}
		price, model = q.Price, q.Cost
	}
	return price, model.Cost(price, job.Processors, job.SeenFrom(m.Site).EstimateAt(m.Rating))
}

// outlook says what would become of a job if the window closed now.
func (h *packing) outlook(now grid.Time, job *grid.Job) *market.PreviewResult {
	if err := h.admit(now, job); err != nil {
		return &market.PreviewResult{Err: err}
	}
	w := h.Head.Preview(now, job, h.memberList(now))
	result := &market.PreviewResult{Certain: true}
	for i := range w.Members {
		if p := w.Members[i].Presence; p == muscle.Unheard || p == muscle.Unresolved {
			result.Certain = false
		}
	}
	var allotment *muscle.Allotment
	for i := range w.Allotments {
		if a := &w.Allotments[i]; a.Job == job {
			allotment = a
		}
	}
	result.Verdicts, result.Waits = h.reasons(now, w, job, allotment), allotment == nil
	return result
}

// because says why a job is where it is.
func because(w *muscle.Window, a *muscle.Allotment) string {
	text := fmt.Sprintf("window %d, %d jobs over %d clusters by %v: ", w.Number, w.Packed, w.Clusters, w.Policy)
	p := &a.Placement
	switch w.Policy {
	case muscle.PolicyDLL:
		text += "the least load"
	case muscle.PolicyWRAND:
		text += "drawn"
	default:
		text += fmt.Sprintf("the least ε, %.3g; with %d others from row %d of the composition table for %d free processors", p.Epsilon, p.Mates, p.Row, p.Space)
	}
	text += fmt.Sprintf("; planned to start in %v", round(p.Start))
	if a.Finish > a.Job.Deadline {
		text += fmt.Sprintf(" and to end %v after its deadline", round(a.Finish-a.Job.Deadline))
	}
	return text
}

// round rounds a span for people.
func round(t grid.Time) grid.Time {
	if t < 10*grid.Second {
		return t / grid.Millisecond * grid.Millisecond
	}
	return t / grid.Second * grid.Second
}
