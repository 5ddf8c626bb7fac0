package measure

import (
	"math"
	"math/bits"

	"gridnode/grid"
)

// Stats are the figures of one site, or of all together. "Its jobs" are the jobs
// of a site's own users, wherever they run; times are seconds of virtual time,
// taken when executions really start and end.
type Stats struct {
	Submitted int64 `json:"submitted"` // its jobs
	Accepted  int64 `json:"accepted"`  // of them, those that were not rejected
	Rejected  int64 `json:"rejected"`  // of them, those that no site would have
	Finished  int64 `json:"finished"`  // of them, those whose result has come home
	Local     int64 `json:"local"`     // executions of its jobs here
	Migrated  int64 `json:"migrated"`  // executions of its jobs elsewhere
	Remote    int64 `json:"remote"`    // executions of others' jobs here

	// Utilization is the processor time of executions here over the site's
	// processors × time: from 0 to the makespan, or over the scenario's window.
	Utilization Ratio `json:"utilization"`

	AWT          Decimal `json:"awt"`          // mean wait: start − submission
	ASD          Decimal `json:"asd"`          // mean bounded slowdown: (wait + run time) / max(run time, 10 s), at least 1
	AWRT         Decimal `json:"awrt"`         // mean response time weighted with processors × run time (Resource delegation, eq. 1)
	ResponseTime Decimal `json:"responseTime"` // mean of end − submission
	Makespan     Decimal `json:"makespan"`     // end of the last execution here (eq. 5), counted from 0

	// Goodput is the processor time of its jobs' executions, in processor-seconds,
	// by where they ran: at home, at a sibling under the same authority, elsewhere in
	// the same grid, in another grid. Sites of one federation are one grid.
	Goodput          Decimal `json:"goodput"`
	GoodputLocal     Decimal `json:"goodputLocal"`
	GoodputIntraSite Decimal `json:"goodputIntraSite"`
	GoodputIntraGrid Decimal `json:"goodputIntraGrid"`
	GoodputInterGrid Decimal `json:"goodputInterGrid"`

	DelegationsPerJob Ratio   `json:"delegationsPerJob"` // processors' delegations over its jobs
	SquashedArea      Decimal `json:"squashedArea"`      // processor-seconds used here, by anyone's jobs (eq. 2)
	LeasedArea        Decimal `json:"leasedArea"`        // processor-seconds of its jobs on leased processors (eq. 3)
	Incentive         Amount  `json:"incentive"`         // credits the site earned, from its own users, too
	BudgetSpent       Amount  `json:"budgetSpent"`       // credits its users paid, in all
	MessagesLocal     int64   `json:"messagesLocal"`     // the paper's four kinds about its jobs, sent and received here
	MessagesRemote    int64   `json:"messagesRemote"`    // the same kinds about others' jobs, sent and received here
	Coallocated       int64   `json:"coallocated"`       // its jobs that ran at several sites at once
	QueueLength       Decimal `json:"queueLength"`       // jobs waiting here, averaged over time until the makespan
	Missed            int64   `json:"missed"`            // jobs that exceed their soft deadlines (MUSCLE)
	MCP               Decimal `json:"mcp"`               // mean comprehensive performance (MUSCLE)
	PB                Decimal `json:"pb"`                // performance balance (MUSCLE)
}

// Tally is what Stats are made of. Areas are in processor-microseconds, times in
// microseconds.
type Tally struct {
	Submitted, Rejected, Finished int64
	local, migrated, remote       int64
	wait, slowdown, response      Sum // over executions of its jobs
	weighted, weight              Sum // eq. 1
	goodput, goodputLocal         Sum
	area, areaWindow, waitHere    Sum // of executions here
	leased                        Sum // of its jobs on leased processors (eq. 3)
	last                          grid.Time
	Incentive, Spent              grid.Credits
	Sent, MessagesRemote          int64
}

// slowdownFloor is the run time below which a job's slowdown is measured as if it
// had run that long.
const slowdownFloor = 10 * grid.Second

// slowdownScale is what one is in tally.slowdown.
const slowdownScale = 1_000_000

// Times is what an execution adds to the tallies.
type Times struct {
	Processors       int64
	leased           int64 // of them, those that another site lends
	Wait, Start, End grid.Time
	Window           grid.Time // of utilization
}

// Account accounts for an execution to its job's home, to the site that ran it, and
// to the one that lends some of the processors; lender is nil if none does.
func Account(home, here, lender *Tally, x *Times) {
	wait, span, m := x.Wait, x.End-x.Start, x.Processors
	response := wait + span

	home.wait.Add(int64(wait), 1)
	home.response.Add(int64(response), 1)
	home.slowdown.Add(slowdownOf(wait, span), 1)
	var area Sum
	area.Add(m, int64(span))
	home.weight.plus(area)
	home.weighted.Scaled(area, int64(response))
	home.goodput.plus(area)
	if home == here {
		home.local++
		home.goodputLocal.Add(m-x.leased, int64(span))
	} else {
		home.migrated++
		here.remote++
	}
	here.waitHere.Add(int64(wait), 1)
	here.used(m-x.leased, x)
	if lender != nil {
		home.leased.Add(x.leased, int64(span))
		lender.used(x.leased, x)
	}
}

// Lent accounts for processors of an execution that another site lends to its job's home.
// Account has to follow, without that lender.
func Lent(home, lender *Tally, processors int64, x *Times) {
	x.leased += processors
	home.leased.Add(processors, int64(x.End-x.Start))
	lender.used(processors, x)
}

// used accounts for processors of an execution to the site whose they are.
func (t *Tally) used(processors int64, x *Times) {
	if processors == 0 {
		return
	}
	t.area.Add(processors, int64(x.End-x.Start))
	t.areaWindow.Add(processors, int64(min(x.End, x.Window)-min(x.Start, x.Window)))
	t.last = max(t.last, x.End)
}

// slowdownOf returns the bounded slowdown in slowdownScale. wait and span are not negative.
func slowdownOf(wait, span grid.Time) int64 {
	den := uint64(max(span, slowdownFloor))
	hi, lo := bits.Mul64(uint64(wait+span), slowdownScale)
	lo, carry := bits.Add64(lo, den/2, 0)
	hi += carry
	if hi >= den {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, den)
	return int64(max(min(q, math.MaxInt64), slowdownScale))
}

// Plus adds what another site has.
func (t *Tally) Plus(u *Tally) {
	t.Submitted += u.Submitted
	t.Rejected += u.Rejected
	t.Finished += u.Finished
	t.local += u.local
	t.migrated += u.migrated
	t.remote += u.remote
	for _, p := range []struct{ to, from *Sum }{
		{&t.wait, &u.wait}, {&t.slowdown, &u.slowdown}, {&t.response, &u.response},
		{&t.weighted, &u.weighted}, {&t.weight, &u.weight},
		{&t.goodput, &u.goodput}, {&t.goodputLocal, &u.goodputLocal},
		{&t.area, &u.area}, {&t.areaWindow, &u.areaWindow}, {&t.waitHere, &u.waitHere}, {&t.leased, &u.leased},
	} {
		p.to.plus(*p.from)
	}
	t.last = max(t.last, u.last)
	t.Incentive += u.Incentive
	t.Spent += u.Spent
	t.Sent += u.Sent
	t.MessagesRemote += u.MessagesRemote
}

// Stats works the figures out for that many processors. If window is not
// grid.Never, utilization is over it.
func (t *Tally) Stats(processors int64, window grid.Time) Stats {
	const toSeconds = 100 // microseconds in a sum to hundredths of seconds: ·100/10⁶
	executions := SumOf(t.local + t.migrated)
	used, over := t.area, t.last
	if window != grid.Never {
		used, over = t.areaWindow, window
	}
	var capacity, perSecond Sum
	capacity.Add(processors, int64(over))
	perSecond.Add(int64(grid.Second), 1)
	mean := func(s Sum) Decimal {
		d := Sum{}
		d.Scaled(executions, int64(grid.Second))
		return Decimal(s.Over(d, toSeconds))
	}
	area := func(s Sum) Decimal { return Decimal(s.Over(perSecond, toSeconds)) }
	var weight, slowdown, elsewhere Sum
	weight.Scaled(t.weight, int64(grid.Second))
	slowdown.Scaled(executions, slowdownScale)
	elsewhere = t.goodput.minus(t.goodputLocal)
	return Stats{
		Submitted: t.Submitted, Accepted: t.Submitted - t.Rejected, Rejected: t.Rejected, Finished: t.Finished,
		Local: t.local, Migrated: t.migrated, Remote: t.remote,
		Utilization:  Ratio(used.Over(capacity, 10_000)),
		AWT:          mean(t.wait),
		ASD:          Decimal(t.slowdown.Over(slowdown, 100)),
		AWRT:         Decimal(t.weighted.Over(weight, toSeconds)),
		ResponseTime: mean(t.response),
		Makespan:     Decimal((t.last + grid.Second/200) / (grid.Second / 100)),
		Goodput:      area(t.goodput), GoodputLocal: area(t.goodputLocal), GoodputIntraGrid: area(elsewhere),
		SquashedArea: area(t.area), LeasedArea: area(t.leased),
		Incentive: Amount(t.Incentive), BudgetSpent: Amount(t.Spent),
		MessagesLocal: t.Sent, MessagesRemote: t.MessagesRemote,
		QueueLength: Decimal(t.waitHere.Over(SumOf(int64(t.last)), 100)),
	}
}
