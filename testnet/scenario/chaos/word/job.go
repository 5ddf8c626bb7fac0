package word

import (
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// request is one of a home, for a guarantee.
type request struct {
	home, site grid.SiteID
	task       grid.TaskID
	number     uint64
}

// guarantee is one of a site, by its name for it.
type guarantee struct {
	site, home grid.SiteID
	task       grid.TaskID
	hold       uint64
}

type grant struct {
	price   grid.Price
	cost    grid.Credits
	lease   grid.Time
	gpus    int64
	at      grid.Time
	expires grid.Time // in true time
	over    bool      // its home does not want it, or its job has come
}

type name struct {
	site grid.SiteID
	hold uint64
}

// execution is one at a site.
type execution struct {
	site int
	task grid.TaskID
}

type run struct {
	start, end grid.Time // 0: it goes on
	lost       bool
	gone       bool // its site has said that it will never run
	cost       grid.Credits
	told       bool // cost is set

	price      grid.Price // for which it came
	processors int64
}

// The bounds of what clocks and messages make uncertain.
const (
	timely    = grid.Second
	allowance = grid.Minute // of home, for messages; see market.Config.Allowance
)

// off returns by how much spans may differ that two clocks count.
func off(span grid.Time) grid.Time { return timely + span/300 }

// near reports whether two spans are the same but for what clocks make of them.
func near(a, b grid.Time) bool { return max(a-b, b-a) <= off(max(a, b)) }

// asked takes a question of a home.
func (w *Watch) asked(o *word, m *market.Negotiate) {
	w.asks[request{o.from, o.to, m.Task, m.Request}] = *m
	s, up := scenario.SiteAt(w.N, o.at)
	if !up || m.Probe {
		return
	}
	v, there := s.Glance(m.Task.Job)
	if !there || v.Foreign || v.Epoch != m.Task.Epoch || v.State != site.Placing {
		return
	}
	j := v.Job
	if b, known := w.budgets[j.ID]; known && j.Budget > b {
		w.Checks.Violated("%s places job %s with a budget of %v; %v are left", o.from, j.ID, j.Budget, b)
	}
	switch {
	case m.Processors != j.Processors || m.GPUs != j.GPUs || m.Memory != j.Memory || m.Work != j.Away().Work:
		w.Checks.Violated("%s asks %s for %+v, for job %s, which needs %d processors, %+v", o.from, o.to, *m, j.ID, j.Processors, j.Away().Work)
	case j.Goal == grid.GoalTime && j.Budget >= 0 && m.CostMax > j.Budget:
		w.Checks.Violated("%s would pay %v to %s for job %s, whose budget is %v", o.from, m.CostMax, o.to, j.ID, j.Budget)
	case len(w.site(o.at).Heads.Members) > 0: // it packs jobs, and those have no deadlines
	case (m.Deadline == grid.Never) != (j.Deadline == grid.Never):
		w.Checks.Violated("%s wants job %s to be done within %v at %s, its deadline is %v", o.from, j.ID, m.Deadline, o.to, j.Deadline)
	case m.Deadline == grid.Never:
	case m.Deadline > max(j.Deadline-o.local, 0) || m.Deadline < min(j.Deadline-o.local-allowance, grid.SpanMax):
		w.Checks.Violated("%s wants job %s to be done within %v at %s, %v are left", o.from, j.ID, m.Deadline, o.to, j.Deadline-o.local)
	}
}

// event notes what is left of budgets.
func (w *Watch) event(_ grid.Time, _ int, e *grid.Event) {
	switch e.Kind {
	case grid.JobSubmitted:
		if e.Job.Budget >= 0 {
			w.budgets[e.Job.ID] = e.Job.Budget
		}
	case grid.JobReplaced:
		if left, known := w.budgets[e.Job.ID]; known {
			w.budgets[e.Job.ID] = max(left-e.Cost, 0)
		}
	}
}

// promised takes the answer.
func (w *Watch) promised(o *word, m *market.Reply) {
	w.idle(o, m.Load.Free)
	if m.Refusal != market.Granted {
		w.refuses(o, m)
		return
	}
	if m.Probe {
		return
	}
	if a, known := w.asks[request{o.to, o.from, m.Task, m.Request}]; known {
		switch {
		case m.Cost > a.CostMax:
			w.Checks.Violated("%s promises job %s to %s for %v, which would pay %v", o.from, m.Task.Job, o.to, m.Cost, a.CostMax)
		case m.GPUs != a.GPUs.Count || m.Lease != a.Lease && m.Lease != 0:
			w.Checks.Violated("%s promises job %s to %s with %d GPUs and a lease of %v, asked for were %d and %v", o.from, m.Task.Job, o.to, m.GPUs, m.Lease, a.GPUs.Count, a.Lease)
		case m.Finish > a.Deadline || m.Start > m.Finish:
			w.Checks.Violated("%s promises job %s to %s within %v to %v, wanted was within %v", o.from, m.Task.Job, o.to, m.Start, m.Finish, a.Deadline)
		}
		w.offers(o, m, &a)
	}
	id := guarantee{o.from, o.to, m.Task, m.Hold}
	g := &grant{price: m.Price, cost: m.Cost, lease: m.Lease, gpus: m.GPUs, at: o.now, expires: o.now + m.HoldSpan}
	if before := w.grants[id]; before != nil {
		if before.price != g.price || before.cost != g.cost || before.lease != g.lease || before.gpus != g.gpus || g.expires > before.expires+off(m.HoldSpan) {
			w.Checks.Violated("%s has promised job %s to %s as %+v, and says now %+v", o.from, m.Task.Job, o.to, *before, *g)
		}
		return
	}
	w.grants[id] = g
	if task, used := w.holds[name{o.from, m.Hold}]; used && task != m.Task {
		w.Checks.Violated("%s names a guarantee for job %s as one for job %s: %d", o.from, m.Task.Job, task.Job, m.Hold)
	}
	w.holds[name{o.from, m.Hold}] = m.Task
}

// submitted takes a job that leaves its home.
func (w *Watch) submitted(o *word, m *market.JobSubmission) {
	task := grid.TaskID{Job: m.Job.ID, Epoch: m.Epoch}
	id := guarantee{o.to, o.from, task, m.Hold}
	g := w.grants[id]
	first := !w.sent[id]
	w.sent[id] = true
	if g == nil {
		return
	}
	if m.Price != g.price || m.Cost != g.cost {
		w.Checks.Violated("%s has promised job %s for %v, and gets it for %v (%v, %v)", o.to, m.Job.ID, g.cost, m.Cost, m.Price, g.price)
	}
	if came, ever := w.came[o.at]; first && o.now > g.expires+off(g.expires-g.at) && !(ever && came >= g.at) {
		w.Checks.Violated("%s sends job %s to %s for guarantee %d, which has ended at %v", o.from, m.Job.ID, o.to, m.Hold, g.expires)
	}
	if c := m.Cheque; c != nil && (c.Payer != o.from || c.Payee != o.to || c.Task != task || c.Ceiling != m.Cost) {
		w.Checks.Violated("%s sends job %s to %s with a cheque for something else: %+v, %v were agreed", o.from, m.Job.ID, o.to, *c, m.Cost)
	}
	j := m.Job
	at, _ := w.N.Index(o.to)
	r := w.run(execution{at, task})
	r.price, r.processors = m.Price, j.Processors
	if (m.Deadline == grid.Never) != (j.Deadline == grid.Never) || m.Deadline != grid.Never && m.Deadline != min(max(j.Deadline-o.local, 0), grid.SpanMax) {
		w.Checks.Violated("%s sends job %s, and says that %v are left until its deadline; %v are", o.from, j.ID, m.Deadline, j.Deadline-o.local)
	}
	if m.Age != min(max(o.local-j.Submit, 0), grid.SpanMax) {
		w.Checks.Violated("%s sends job %s, and says that it is %v old; it is %v", o.from, j.ID, m.Age, o.local-j.Submit)
	}
}

// unwanted takes it that a home does not want a guarantee.
func (w *Watch) unwanted(o *word, m *market.Cancel) {
	if g := w.grants[guarantee{o.to, o.from, m.Task, m.Hold}]; g != nil {
		g.over = true
	}
}

// arrived takes what a site answers to a job. Whoever was not down since it gave a guarantee takes its
// job, unless its owner wants no more of that home.
func (w *Watch) arrived(o *word, m *market.Acknowledge) {
	id := guarantee{o.from, o.to, m.Task, m.Hold}
	g := w.grants[id]
	if m.Of != wire.MarketJobSubmission || g == nil {
		return
	}
	came, ever := w.came[o.at]
	lasted := o.now+off(g.expires-g.at) < g.expires && !w.set[o.at] && !(ever && came >= g.at)
	if s, up := scenario.SiteAt(w.N, o.at); m.Unknown && w.sent[id] && !g.over && lasted && up && !s.Draining() && len(s.GuestDesk().Bans()) == 0 {
		w.Checks.Violated("%s has given %s guarantee %d for job %s, epoch %d, until %v, and does not know of it", o.from, o.to, m.Hold, m.Task.Job, m.Task.Epoch, g.expires)
	}
	g.over = true
}

// run returns what is known of an execution.
func (w *Watch) run(id execution) *run {
	r := w.runs[id]
	if r == nil {
		r = new(run)
		w.runs[id] = r
	}
	return r
}

// start takes the start of an execution.
func (w *Watch) start(now grid.Time, x *testnet.Execution) {
	if x.Squad != nil || x.Pilot.Key != 0 {
		return
	}
	r := w.run(execution{x.Site, x.ID})
	r.start, r.end, r.lost = now, 0, false
	if r.gone && !w.Apart(x.Site) {
		w.Checks.Violated("job %s starts at %s with epoch %d, which has said that it never will", x.ID.Job, w.N.ID(x.Site), x.ID.Epoch)
	}
}

func (w *Watch) end(now grid.Time, x *testnet.Execution) {
	if r := w.runs[execution{x.Site, x.ID}]; r != nil && x.Squad == nil && x.Pilot.Key == 0 {
		r.end, r.lost = now, r.lost || x.Lost
	}
}

// ended takes what a site says of an execution that is over.
func (w *Watch) ended(o *word, m *market.JobCompletion) {
	w.sign(o, m.Claim)
	r := w.run(execution{o.at, m.Task})
	began, over, ran := r.start > 0, r.end > 0, r.end-r.start
	switch {
	case m.Abandoned:
		r.gone = true
	case r.lost || w.set[o.at]: // when it ended is when its site has learned so
	case !began && m.Run > 0:
		w.Checks.Violated("%s says that job %s has run for %v with epoch %d; it never began", o.from, m.Task.Job, m.Run, m.Task.Epoch)
	case began && over && (!near(m.Run, ran) || !near(m.Ago, o.now-r.end)):
		w.Checks.Violated("%s says that job %s has run for %v with epoch %d, until %v ago; it has for %v, until %v ago", o.from, m.Task.Job, m.Run, m.Task.Epoch, m.Ago, ran, o.now-r.end)
	}
	if m.Abandoned {
		return
	}
	if most := grid.CostProcessorTime.Cost(r.price, r.processors, ran+off(ran)); r.price > 0 && began && over && !r.lost && !w.set[o.at] && m.Cost > most {
		w.Checks.Violated("%s says that job %s has cost %v with epoch %d, %v at most for %v", o.from, m.Task.Job, m.Cost, m.Task.Epoch, most, ran)
	}
	if c := m.Claim; c != nil && c.Amount != m.Cost {
		w.Checks.Violated("%s says that job %s has cost %v, and claims %v", o.from, m.Task.Job, m.Cost, c.Amount)
	}
	if r.told && r.cost != m.Cost {
		w.Checks.Violated("%s says that job %s has cost %v with epoch %d, and has said %v", o.from, m.Task.Job, m.Cost, m.Task.Epoch, r.cost)
	}
	r.told, r.cost = true, m.Cost
}
