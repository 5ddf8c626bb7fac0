package market

import (
	"fmt"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
)

// Outcome says what a ranking made of one site. Numbers are stored: append only.
type Outcome uint8

const (
	OutcomeCandidate   Outcome = iota + 1 // would do, but another is better
	OutcomeChosen                         // the best, or the one that has the job
	OutcomeTooNarrow                      // fewer processors than the job needs
	OutcomeTooLittle                      // less memory per processor than the job needs
	OutcomeTooLate                        // past the deadline even if it were idle
	OutcomeLoaded                         // past the deadline because of what waits there
	OutcomeTooDear                        // over the budget
	OutcomeNoForeign                      // runs no jobs of other sites
	OutcomeNotNamed                       // the job names another site, or may only run at home
	OutcomeRefused                        // was asked and said no
	OutcomeExpired                        // its guarantee ended before the job could be sent
	OutcomeUnreachable                    // could not be reached, or did not answer
	OutcomeNoConsent                      // does not consent to be headed by this site
	OutcomeNoModules                      // runs no modules of other sites
	OutcomeNoGPUs                         // has too few GPUs, or none of the type that the job needs
)

var outcomeNames = [...]string{"", "candidate", "chosen", "too-narrow", "too-little-memory", "too-late", "loaded",
	"too-dear", "foreign-refused", "not-named", "refused", "expired", "unreachable", "no-consent", "modules-refused", "too-few-gpus"}

// String returns the stable name used in tables and JSON ("too-late").
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return fmt.Sprintf("outcome-%d", uint8(o))
	}
	return outcomeNames[o]
}

// Verdict is what a ranking says about one site.
type Verdict struct {
	Site    grid.SiteID
	Name    string
	Price   grid.Price
	Cost    grid.Credits // of the whole estimate, by the site's cost model
	Finish  grid.Time    // estimated, or promised once the site was asked; Never if it cannot run the job
	Outcome Outcome
	Refusal Refusal   // why, for OutcomeRefused
	Until   grid.Time // the site is not asked before, unless it publishes anew; 0: nothing is remembered that says so
	Detail  string    // for people; empty inside a placement
}

// Option is something that could be had.
type Option struct {
	Site   grid.SiteID // empty if nothing could
	Name   string
	Cost   grid.Credits
	Finish grid.Time
}

// String names the site as people know it.
func (o Option) String() string {
	if o.Name != "" {
		return o.Name
	}
	return string(o.Site)
}

// Earliest returns the earliest finish that verdicts offer when deadline and
// budget are ignored.
func Earliest(verdicts []Verdict) Option {
	return bestOf(verdicts, func(a *Verdict, b Option) bool {
		return a.Finish < b.Finish || a.Finish == b.Finish && a.Cost < b.Cost
	})
}

// Cheapest returns the lowest cost that verdicts offer when deadline and budget
// are ignored.
func Cheapest(verdicts []Verdict) Option {
	return bestOf(verdicts, func(a *Verdict, b Option) bool {
		return a.Cost < b.Cost || a.Cost == b.Cost && a.Finish < b.Finish
	})
}

func bestOf(verdicts []Verdict, better func(*Verdict, Option) bool) Option {
	var best Option
	for i := range verdicts {
		v := &verdicts[i]
		switch v.Outcome {
		case OutcomeCandidate, OutcomeChosen, OutcomeTooLate, OutcomeLoaded, OutcomeTooDear:
		case OutcomeRefused:
			if v.Refusal != TooLate { // that one names the finish it could have promised
				continue
			}
		default:
			continue
		}
		if v.Finish != grid.Never && (best.Site == "" || better(v, best)) {
			best = Option{v.Site, v.Name, v.Cost, v.Finish}
		}
	}
	return best
}

// detail puts a verdict into words. q is the quote it was made from, nil for what is candidate or chosen without one.
func (v *Verdict) detail(job *grid.Job, q *directory.Quote, now grid.Time) string {
	switch v.Outcome {
	case OutcomeCandidate, OutcomeChosen:
		text := fmt.Sprintf("costs %v, done in %v", v.Cost, span(v.Finish-now))
		if _, size := job.Tree(); size > 0 && q != nil && q.Site != job.Home {
			text += fmt.Sprintf(", of which %v to move %d bytes", span(job.MovingAt(q.Rating)), size)
		}
		return text
	case OutcomeTooNarrow:
		return fmt.Sprintf("has %d processors, the job needs %d", q.Processors, job.Processors)
	case OutcomeTooLittle:
		return fmt.Sprintf("has %d bytes per processor, the job needs %d", q.Memory, job.Memory)
	case OutcomeNoGPUs:
		return fmt.Sprintf("has GPUs: %v; the job needs %v", q.GPUs, job.GPUs)
	case OutcomeTooLate:
		return fmt.Sprintf("would need %v even if idle, %v too long", span(job.SeenFrom(q.Site).EstimateAt(q.Rating)), span(now+job.SeenFrom(q.Site).EstimateAt(q.Rating)-job.Deadline))
	case OutcomeLoaded:
		return fmt.Sprintf("would be done in %v, %v past the deadline", span(v.Finish-now), span(v.Finish-job.Deadline))
	case OutcomeTooDear:
		return fmt.Sprintf("costs %v, the budget is %v", v.Cost, job.Budget)
	case OutcomeNoForeign:
		return "runs no jobs of other sites"
	case OutcomeNoModules:
		return NoModules.String()
	case OutcomeNotNamed:
		if job.Site == "" {
			return "the job is to run at home"
		}
		return "the job is to run at another site"
	case OutcomeRefused:
		if v.Refusal == TooLate && v.Finish != grid.Never {
			return fmt.Sprintf("%s: could be done in %v", v.Refusal, span(v.Finish-now))
		}
		return v.Refusal.String()
	case OutcomeExpired:
		return "its guarantee ended before the job could be sent"
	case OutcomeUnreachable:
		return "did not answer"
	}
	return ""
}

// span rounds for people: to a second when it is long, to a millisecond if not.
func span(t grid.Time) grid.Time {
	unit := grid.Second
	if t < 10*grid.Second && t > -10*grid.Second {
		unit = grid.Millisecond
	}
	return t / unit * unit
}

// verdicts explains p for users. The site that has the job is marked as chosen
// even if another one was preferred.
func (b *broker) verdicts(now grid.Time, p *placement, chosen grid.SiteID) []Verdict {
	if b.cfg.Quiet && p.token == 0 {
		return nil
	}
	verdicts := Rank(p.job, p.quotes, b.circumstances(now, &p.Search))
	for i := range verdicts {
		switch v := &verdicts[i]; {
		case chosen == "":
		case v.Site == chosen:
			v.Outcome, v.Refusal = OutcomeChosen, 0
			var q *directory.Quote
			if at := slices.IndexFunc(p.quotes, func(q directory.Quote) bool { return q.Site == chosen }); at >= 0 {
				q = &p.quotes[at]
			}
			v.Detail = v.detail(p.job, q, now)
		case v.Outcome == OutcomeChosen:
			v.Outcome = OutcomeCandidate
		}
	}
	return verdicts
}

// describe puts the refusal into words.
func (r *Refused) describe(now grid.Time, failed error) string {
	switch r.Why {
	case ReasonStopped:
		return "stopped while it was being placed"
	case ReasonNoAnswer:
		return fmt.Sprintf("%v, and this site cannot run it", failed)
	}
	text := "no site would have it"
	if n := len(r.Verdicts); n > 1 {
		text = fmt.Sprintf("none of %d sites would have it", n)
	}
	if r.Earliest.Site == "" {
		return text
	}
	text += fmt.Sprintf("; earliest: done in %v for %v credits at %s", span(r.Earliest.Finish-now), r.Earliest.Cost, r.Earliest)
	if r.Cheapest.Site != r.Earliest.Site {
		text += fmt.Sprintf("; cheapest: %v credits, done in %v at %s", r.Cheapest.Cost, span(r.Cheapest.Finish-now), r.Cheapest)
	}
	return text
}
