package market

import "gridnode/grid"

// paper is the loop of Grid-Federation §2.2, kept exactly:
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
// is asked without a message. The published loop knows nothing but quotes.
type paper struct{}

// Marks of paper.
const (
	paperNext     = iota // quote to look at next, r − 1
	paperFeasible        // quotes before this one may be asked
)

// Traits implements Policy. "For OFC then GFA m ... is chosen such that B is minimal and
// D(J, R_m) ≤ s + d": no budget.
func (paper) Traits() Traits {
	return Traits{Whole: true, Literal: true, Final: true, TimeBudget: true}
}

// Key implements Policy: the directory knows the "k-th cheapest" by the quoted price,
// and the "k-th fastest" by the speed.
func (paper) Key(c Candidate) int64 {
	switch c.Job.Goal {
	case grid.GoalCost:
		return int64(c.Verdict.Price)
	case grid.GoalTime:
		return -c.Quote.Speed
	}
	return homeFirst(c)
}

// Next implements Policy.
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
func (l paper) Next(s *Search) Move {
	if s.outstanding() > 0 {
		return Move{Act: ActWait}
	}
	if i := s.guarantee(); i >= 0 {
		return s.award(i)
	}
	for ; s.Marks[paperNext] < s.Marks[paperFeasible] || l.foresees(s); s.Marks[paperNext]++ {
		i := int(s.Marks[paperNext])
		if !l.skips(s.Verdict(i).Outcome, s.limits().SkipInfeasible) {
			return Move{Act: ActAsk, Quote: i}
		}
	}
	return Move{Act: ActPage}
}

// foresees looks for the next site that could feasibly complete the job, and
// reports whether there is one on the pages so far.
func (paper) foresees(s *Search) bool {
	for i := int(s.Marks[paperFeasible]); i < len(s.quotes); i++ {
		switch s.Verdict(i).Outcome {
		case OutcomeCandidate, OutcomeLoaded:
			s.Marks[paperFeasible] = int64(i + 1)
			return true
		}
	}
	return false
}

// skips reports whether the loop passes over a site without a message.
func (paper) skips(o Outcome, infeasible bool) bool {
	switch o {
	case OutcomeCandidate, OutcomeLoaded:
		return false
	case OutcomeTooNarrow, OutcomeTooLittle, OutcomeTooLate:
		return infeasible
	}
	return true // over the budget, unwilling, not named, or asked before
}
