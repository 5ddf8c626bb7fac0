package market

import (
	"cmp"
	"math/bits"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
)

// Circumstances is what a ranking depends on besides the job and the quotes.
type Circumstances struct {
	Now       grid.Time
	Home      grid.SiteID // the job's home; its quote is ranked like the others
	HomeStart grid.Time   // earliest start at home by its own schedule; Never if it cannot run the job
	Policy    Policy      // whose Key and Traits count; nil: PlacementCoordinated
	Allowance grid.Time   // what messages may take out of another site's promise
	Memory    *Memory     // nil: nothing was learned from asking
	Gossip    Gossip      // nil: there are no load reports

	Negotiations []Negotiation // with sites that were asked for this job, in order
}

// policy returns the policy that counts.
func (at *Circumstances) policy() Policy {
	if at.Policy == nil {
		return coordinated{}
	}
	return at.Policy
}

// Gossip returns the newest load report of a site (directory.Directory.Load).
type Gossip func(site grid.SiteID) (directory.Load, bool)

// Negotiation is what has come of asking a site.
type Negotiation struct {
	Site    grid.SiteID
	Outcome Outcome // OutcomeCandidate while it is asked or once it granted; else why it is out
	Refusal Refusal
	Finish  grid.Time // promised, or what it could have promised; 0 if it did not say
	Cost    grid.Credits
}

// Rank judges every quoted site for a job and returns the verdicts, best first:
// first those that would do, in the order of the policy's Key (the first is
// OutcomeChosen), then the others in the same order. Quotes are expected once per
// site. It is pure and takes O(n log n) time. What a site refuses with, what `submit
// --dry-run` and what `why` show are its verdicts.
//
// A site would do if it is wide enough, may run the job, is estimated to finish
// by the deadline, and costs no more than the budget. Ties of the key go to home,
// which costs no message, then to the earlier finish, the lower cost, and the lower
// site ID.
func Rank(job *grid.Job, quotes []directory.Quote, at Circumstances) []Verdict {
	var r ranking
	r.rank(job, quotes, &at)
	return r.explain(job, at.Now)
}

// ranking is a Rank whose memory is used again, and that sorts no further than it
// is read: a placement mostly wants the first.
type ranking struct {
	quotes   []directory.Quote
	verdicts []Verdict // by quote
	order    []ranked
	sorted   int // order is final up to here
}

// ranked is the position of one site in the order.
type ranked struct {
	fits   bool
	home   bool
	key    int64 // by the policy
	finish grid.Time
	cost   grid.Credits
	index  int32 // of quote and verdict
}

// rank fills r with verdicts, details left out.
func (r *ranking) rank(job *grid.Job, quotes []directory.Quote, at *Circumstances) {
	r.quotes, r.verdicts, r.order, r.sorted = quotes, r.verdicts[:0], r.order[:0], 0
	r.verdicts, r.order = slices.Grow(r.verdicts, len(quotes)), slices.Grow(r.order, len(quotes))
	policy := at.policy()
	for i := range quotes {
		q := &quotes[i]
		r.verdicts = append(r.verdicts, judge(job, q, at))
		v := &r.verdicts[i]
		c := Candidate{Job: job, Quote: q, Verdict: v, Home: q.Site == at.Home}
		r.order = append(r.order, ranked{
			fits: v.Outcome == OutcomeCandidate, home: c.Home,
			key: policy.Key(c), finish: v.Finish, cost: v.Cost, index: int32(i),
		})
	}
}

// at returns the site in place i, or nil behind the last.
func (r *ranking) at(i int) *ranked {
	if i >= len(r.order) {
		return nil
	}
	const few = 8 // then sorting is cheaper than searching once more
	for ; r.sorted <= i; r.sorted++ {
		rest := r.order[r.sorted:]
		if r.sorted >= few {
			slices.SortFunc(rest, r.compare)
			r.sorted = len(r.order)
			break
		}
		best := 0
		for k := range rest {
			if r.compare(rest[k], rest[best]) < 0 {
				best = k
			}
		}
		rest[0], rest[best] = rest[best], rest[0]
	}
	return &r.order[i]
}

// compare orders two sites as Rank says.
func (r *ranking) compare(a, b ranked) int {
	switch {
	case a.fits != b.fits:
		return compareBool(b.fits, a.fits)
	case a.key != b.key:
		return cmp.Compare(a.key, b.key)
	case a.home != b.home:
		return compareBool(b.home, a.home)
	}
	return cmp.Or(cmp.Compare(a.finish, b.finish), cmp.Compare(a.cost, b.cost),
		cmp.Compare(r.quotes[a.index].Site, r.quotes[b.index].Site))
}

// explain returns the verdicts in order, with details, and marks the first one
// that would do as chosen.
func (r *ranking) explain(job *grid.Job, now grid.Time) []Verdict {
	verdicts := make([]Verdict, 0, len(r.order))
	for i := range r.order {
		o := r.at(i)
		v := r.verdicts[o.index]
		if i == 0 && v.Outcome == OutcomeCandidate {
			v.Outcome = OutcomeChosen
		}
		v.Detail = v.detail(job, &r.quotes[o.index], now)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// judge returns the verdict on one site.
func judge(job *grid.Job, q *directory.Quote, at *Circumstances) Verdict {
	load := at.Memory.adjust(q, at.Gossip, job.Processors, at.Now)
	v := Verdict{Site: q.Site, Name: q.Name, Price: job.GPUs.Price(load.Price, job.Processors, q.GPUWeight), Outcome: OutcomeCandidate}
	if q.Site != at.Home {
		job = job.Away() // Close-to-Files: its files have to be moved there first
	}
	v.Cost = job.CostAt(q.Rating, v.Price, q.Cost)
	estimate := job.EstimateAt(q.Rating)
	v.Finish = finishAt(job, q, &load, estimate, at)
	said := negotiationWith(q.Site, at.Negotiations)
	if said != nil {
		if said.Finish != 0 {
			v.Finish = said.Finish
		}
		if said.Cost != 0 {
			v.Cost = said.Cost
		}
	}
	v.Outcome, v.Refusal = outcomeOf(job, q, at, &v, estimate, said)
	if v.Outcome == OutcomeCandidate && load.shunned > 0 {
		v.Outcome = OutcomeUnreachable
	}
	if v.Outcome == OutcomeUnreachable {
		v.Until = load.shunned
	}
	if v.Outcome == OutcomeTooNarrow || v.Outcome == OutcomeTooLittle || v.Outcome == OutcomeNoGPUs {
		v.Finish = grid.Never
	}
	return v
}

// outcomeOf names the first thing that is wrong with a site, if anything is.
func outcomeOf(job *grid.Job, q *directory.Quote, at *Circumstances, v *Verdict, estimate grid.Time, said *Negotiation) (Outcome, Refusal) {
	foreign := q.Site != at.Home
	latest := job.Deadline
	if foreign && latest != grid.Never {
		latest -= at.Allowance
	}
	switch {
	case said != nil && said.Outcome != OutcomeCandidate:
		return said.Outcome, said.Refusal
	case foreign && job.Goal == grid.GoalLocal, job.Site != "" && job.Site != q.Site:
		return OutcomeNotNamed, 0
	case job.Processors > q.Processors:
		return OutcomeTooNarrow, 0
	case job.Memory > q.Memory && q.Memory > 0:
		return OutcomeTooLittle, 0
	case !q.GPUs.Has(job.GPUs):
		return OutcomeNoGPUs, 0
	case foreign && job.IsModule() && !q.Modules:
		return OutcomeNoModules, 0
	case foreign && !job.IsModule() && !q.Foreign:
		return OutcomeNoForeign, 0
	case job.Budget >= 0 && v.Cost > job.Budget && (job.Goal == grid.GoalTime || !at.policy().Traits().TimeBudget):
		return OutcomeTooDear, 0
	case said != nil && said.Finish != 0 && v.Finish <= job.Deadline:
		return OutcomeCandidate, 0 // promised
	case at.Now.Add(estimate) > latest:
		return OutcomeTooLate, 0
	case v.Finish > latest:
		return OutcomeLoaded, 0
	}
	return OutcomeCandidate, 0
}

// finishAt estimates when a site would be done. A job that fits into what is
// startable now does not wait; a wider one waits for a part of what a job as wide
// as the site would wait, and at least until when the site said that a job no wider
// could start.
//
// That part is the square root of its part of the processors that are not
// startable. In 40 000 replies of a federation at 65 % load a job that was too wide
// by 1, 3, 7 and 15 % of its site waited for 17, 27, 31 and 39 % (medians) of what a
// job as wide as the site would have: promises fill the gaps, so even a narrow job
// comes behind many of them.
func finishAt(job *grid.Job, q *directory.Quote, load *adjusted, estimate grid.Time, at *Circumstances) grid.Time {
	if q.Site == at.Home {
		return at.HomeStart.Add(estimate)
	}
	var wait grid.Time
	if widest := min(load.Widest, q.Processors); job.Processors > widest {
		wait = share(load.Wait, rootOf(job.Processors-widest, q.Processors-widest), rootOne)
	}
	if job.GPUs.Count > 0 {
		wait = max(wait, waitForGPUs(job.GPUs, q, at.Now))
	}
	return max(at.Now.Add(wait), load.notBefore).Add(estimate)
}

// waitForGPUs estimates when a site has GPUs for a job: at once if there are enough that are
// free; else after a part of what it says the last of them takes to be so.
func waitForGPUs(need grid.GPUs, q *directory.Quote, now grid.Time) grid.Time {
	count, free, wait := q.GPUs.Of(need.Type)
	if free >= need.Count || count <= free {
		return 0
	}
	return share(max(wait-max(now-q.Issued, 0), 0), need.Count-free, count-free)
}

// rootOne is what rootOf returns for one.
const rootOne = 1 << 19

// rootOf returns the square root of part/whole in rootOne-ths, rounded down. Both
// are positive and at most 2^24, part no more than whole.
func rootOf(part, whole int64) int64 {
	if part >= whole {
		return rootOne
	}
	n := uint64(part) << 38 / uint64(whole)
	r := uint64(1) << ((bits.Len64(n) + 1) / 2) // not below the root
	for {
		next := (r + n/r) / 2
		if next >= r {
			return int64(r)
		}
		r = next
	}
}

// share returns t·part/whole for 0 ≤ t and part ≤ whole, else t.
func share(t grid.Time, part, whole int64) grid.Time {
	if part >= whole || t <= 0 {
		return max(t, 0)
	}
	hi, lo := bits.Mul64(uint64(t), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(whole))
	return grid.Time(quotient)
}

func negotiationWith(site grid.SiteID, list []Negotiation) *Negotiation {
	for i := range list {
		if list[i].Site == site {
			return &list[i]
		}
	}
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
