package market

import (
	"slices"

	"gridnode/grid"
	"gridnode/market/keepalive"
)

// away is the side of a home whose jobs other sites have: it sends each job and its
// cheque, repeats what is not confirmed, and reports how the job ended.
type away struct {
	*office
	jobs map[grid.JobID]*migrated
}

func newAway(o *office) away { return away{office: o, jobs: make(map[grid.JobID]*migrated)} }

// migrated is a job of ours that another site has, or is about to get
// (Grid-Federation table 3: "jobs migrated to federation").
type migrated struct {
	timer    grid.Alarm[alarmed]
	job      *grid.Job
	award    Award
	phase    phase
	repeat   backoff
	repeatAt grid.Time
	cause    string // of a cancellation
	messages int32
	losses   uint32    // of its executions, so far
	since    grid.Time // the job has been away since then at most
	dead     grid.Time // no execution can be alive from then on, unless its site is heard before; Never without a lease

	lastCall bool          // Until has passed, or its lease, and the site was asked once more
	answered bool          // it has said then that there is no such execution
	copies   int32         // of the submission, sent
	certain  bool          // copies counts all that were ever sent
	lost     int32         // copies that certainly never arrived
	slot     *acquaintance // until acknowledged it counts as under way to its site
}

type phase uint8

const (
	submitting phase = iota + 1 // no acknowledgement yet
	running                     // the site has the job
	cancelling                  // the site is to end it
	paying                      // its cheque is not there yet: the job has not left
)

func (m *migrated) task() grid.TaskID { return grid.TaskID{Job: m.job.ID, Epoch: m.award.Epoch} }

// take begins with a job that a site has guaranteed; slot is its place among what is
// under way to that site.
func (w *away) take(now grid.Time, job *grid.Job, award Award, messages int32, slot *acquaintance) *migrated {
	m := &migrated{job: job, award: award, messages: messages, slot: slot, phase: submitting, since: now}
	m.heard(now)
	m.timer.Owner = m
	w.jobs[job.ID] = m
	return m
}

// awaitCheque keeps a job back until its cheque is there, or its guarantee has ended.
func (w *away) awaitCheque(m *migrated, expires grid.Time) {
	m.phase = paying
	w.timers.Set(&m.timer, expires)
}

// replied reports whether a reply is another copy of the guarantee that a job went to.
func (w *away) replied(from grid.SiteID, r *Reply) bool {
	m := w.jobs[r.Task.Job]
	if m == nil || m.award.Epoch != r.Task.Epoch {
		return false
	}
	m.messages++
	return m.award.Site == from && m.award.Hold == r.Hold
}

// draw asks for the cheque of a job, which leaves with Pay, if that comes while the
// guarantee stands.
func (w *away) draw(now grid.Time, m *migrated, out *grid.Outbox) {
	w.desk.Draw(now, m.task(), m.award.Site, m.award.Cost, m.award.Until-now, out)
}

// submit sends the job, once more if need be.
func (w *away) submit(now grid.Time, m *migrated, out *grid.Outbox) {
	if m.copies == 0 && m.slot != nil {
		m.certain = true
	}
	m.copies++
	m.messages++
	s := w.slabs.submission.New()
	*s = JobSubmission{
		Job: m.job, Epoch: m.award.Epoch, Hold: m.award.Hold, Price: m.award.Price, Cost: m.award.Cost,
		Age: min(max(now-m.job.Submit, 0), grid.SpanMax), Deadline: grid.Never, Losses: m.losses,
	}
	if m.job.Deadline != grid.Never {
		s.Deadline = min(max(m.job.Deadline-now, 0), grid.SpanMax)
	}
	if m.award.Bank != "" {
		s.Cheque = w.desk.Cheque(m.task())
	}
	out.Send(m.award.Site, s)
	w.rearm(now, m)
}

// pay sends a job whose cheque has come.
func (w *away) pay(now grid.Time, in *Pay, out *grid.Outbox) {
	if m := w.jobs[in.Task.Job]; m != nil && m.task() == in.Task && m.phase == paying {
		m.phase = submitting
		w.submit(now, m, out)
	}
}

// rearm sets the timer: when to repeat, or when no execution can be left.
func (w *away) rearm(now grid.Time, m *migrated) {
	if m.lastCall {
		return // its timer stands
	}
	m.repeatAt = grid.Never
	if m.phase != running {
		m.repeatAt = m.repeat.next(now, backoffMax, w.rng)
	}
	w.timers.Set(&m.timer, min(m.repeatAt, m.until()))
}

// due implements alarmed.
func (m *migrated) due(a *Agent, now grid.Time, out *grid.Outbox) {
	w := &a.away
	switch {
	case m.phase == paying:
		w.vanish(m, out) // the guarantee has ended, and the cheque is not there
	case now >= m.until():
		w.callLast(now, m, out)
	case m.phase == submitting:
		w.freeSlot(m) // the hold is over or the job is there: nothing waits for this one
		w.submit(now, m, out)
	case m.phase == cancelling:
		w.askToEnd(now, m, out)
	}
}

// lastCallSpan is how long a site may take to say how an execution ended that must
// have ended by now.
const lastCallSpan = 10 * grid.Second

// callLast, once no execution can be left, asks for its result a last time: home
// may have been away when it was offered, and running the job again is the dearer
// way to get it. Without an answer the execution is lost.
func (w *away) callLast(now grid.Time, m *migrated, out *grid.Outbox) {
	if m.lastCall {
		if m.award.Lease > 0 {
			w.memory.Unreachable(m.award.Site, 0, now)
		}
		w.vanish(m, out)
		return
	}
	m.lastCall = true
	w.freeSlot(m)
	if m.phase == cancelling {
		w.askToEnd(now, m, out)
	} else {
		m.phase = submitting // "unknown" is news again
		w.submit(now, m, out)
	}
	w.timers.Set(&m.timer, now.Add(lastCallSpan))
}

// vanish reports that the execution certainly does not exist (any more).
func (w *away) vanish(m *migrated, out *grid.Outbox) {
	w.forget(m)
	out.Local(&Lost{Task: m.task(), Messages: m.messages, Losses: m.losses, Silent: m.lastCall && !m.answered})
}

func (w *away) forget(m *migrated) {
	w.freeSlot(m)
	w.timers.Stop(&m.timer)
	delete(w.jobs, m.job.ID)
}

func (w *away) freeSlot(m *migrated) {
	if m.slot != nil {
		w.memory.free(m.slot)
		m.slot = nil
	}
}

// castOut has jobs placed elsewhere that were to go to a site of which nothing will be heard any more.
func (w *away) castOut(site grid.SiteID, out *grid.Outbox) {
	var over []*migrated
	for _, m := range w.jobs {
		if m.award.Site == site && m.phase == paying {
			over = append(over, m)
		}
	}
	slices.SortFunc(over, func(a, b *migrated) int { return a.task().Compare(b.task()) })
	for _, m := range over {
		w.vanish(m, out)
	}
}

// resume takes up, after a restart, what was awarded before. The submission is
// repeated: if the job arrived, the site says so again.
func (w *away) resume(now grid.Time, in *Resume, out *grid.Outbox) {
	// When it left, and what was renewed last, is not known any more, but it was before now.
	m := &migrated{job: in.Job, award: in.Award, messages: in.Messages, losses: in.Losses, phase: submitting, since: in.Job.Submit}
	m.heard(now)
	m.timer.Owner = m
	w.jobs[in.Job.ID] = m
	if now >= m.until() {
		w.callLast(now, m, out)
		return
	}
	// Not all at once: a site that was down may have thousands.
	m.repeatAt = now.Add(grid.Time(w.rng.Int64N(int64(resumeSpread))))
	w.timers.Set(&m.timer, min(m.repeatAt, m.until()))
}

const resumeSpread = 2 * grid.Second

// unsubmitted: a copy of the submission never arrived. If that holds for every
// copy ever sent, nobody has the job.
func (w *away) unsubmitted(now grid.Time, to grid.SiteID, s *JobSubmission, out *grid.Outbox) {
	m := w.jobs[s.Job.ID]
	if m == nil || m.award.Epoch != s.Epoch || m.award.Site != to || m.phase == running || m.phase == paying {
		return
	}
	m.lost++
	if m.certain && m.lost == m.copies {
		w.memory.Unreachable(to, 0, now)
		w.vanish(m, out)
	}
}

// stop gives a job up that another site has.
func (w *away) stop(now grid.Time, in *Stop, out *grid.Outbox) {
	if m := w.jobs[in.Job]; m != nil {
		w.cancel(now, m, in.Cause, out)
	}
}

// cancel asks the site to end the job, until it says that it has.
func (w *away) cancel(now grid.Time, m *migrated, cause string, out *grid.Outbox) {
	switch m.phase {
	case cancelling:
		return
	case paying:
		w.sendCancel(m.award.Site, Cancel{Task: m.task(), Hold: m.award.Hold}, out)
		w.vanish(m, out)
		return
	}
	m.phase, m.cause, m.repeat = cancelling, cut(cause), backoff{}
	w.askToEnd(now, m, out)
}

func (w *away) askToEnd(now grid.Time, m *migrated, out *grid.Outbox) {
	w.sendCancel(m.award.Site, Cancel{Task: m.task(), Hold: m.award.Hold, Cause: m.cause, Answer: true}, out)
	w.rearm(now, m)
}

// cut shortens text to what a message may hold, at a character's boundary.
func cut(text string) string {
	if len(text) <= textMax {
		return text
	}
	n := textMax
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}

// acknowledged: the site has the submission or the cancellation, or knows of no such
// guarantee.
func (w *away) acknowledged(now grid.Time, from grid.SiteID, m *Acknowledge, out *grid.Outbox) {
	g := w.jobs[m.Task.Job]
	if g == nil || g.award.Epoch != m.Task.Epoch || g.award.Site != from || g.award.Hold != m.Hold || g.phase == running || g.phase == paying {
		return
	}
	w.freeSlot(g)
	switch {
	case m.Unknown:
		// A guarantee that its site does not know any more is never known again.
		g.answered = true
		w.vanish(g, out)
	case g.phase == submitting:
		g.phase = running
		w.rearm(now, g)
	}
}

// metered returns the most that a job may cost by home's own meter if its site says
// that it ran for run: the agreed price for that long, and not for longer than the job
// has been away. Home does not know by which cost model the site charges; by the time
// of all processors is the dearer one.
func (m *migrated) metered(now, run grid.Time) grid.Credits {
	away := max(now-m.since, 0)
	return grid.CostProcessorTime.Cost(m.award.Price, m.job.Processors, min(run, away.Add(keepalive.Drift(away))))
}

// completion is the result of a job that ran elsewhere. It is acknowledged in any
// case: a site whose award is over may forget its execution, too.
func (w *away) completion(now grid.Time, from grid.SiteID, c *JobCompletion, out *grid.Outbox) {
	cost := grid.Credits(0) // what comes too late changes nothing, and costs nothing
	if m := w.jobs[c.Task.Job]; m != nil && m.award.Epoch == c.Task.Epoch && m.award.Site == from && m.phase != paying {
		m.messages++
		if c.Abandoned {
			m.losses, m.answered = max(m.losses, c.Losses), true
			w.vanish(m, out)
		} else {
			done := w.slabs.completed.New()
			cost = min(c.Cost, m.award.Cost, m.metered(now, c.Run)) // the agreed price never changes
			if m.award.Bank != "" {
				cost = w.desk.Due(c.Task, from, c.Claim, cost)
			}
			end := max(now-c.Ago, 0)
			*done = Completed{Task: c.Task, Messages: m.messages, Result: grid.Result{
				Start: max(end-c.Run, 0), End: end, ExitCode: c.ExitCode, Reason: c.Reason, Cost: cost, Silent: c.Silent, Output: c.Output,
			}}
			w.forget(m)
			out.Local(done)
		}
	} else if c.Losses > 0 {
		out.Local(&Belated{Task: c.Task, Site: from, Losses: c.Losses})
	}
	w.acknowledgeResult(from, c, cost, out)
}

// heard notes that the site of a job was heard of, which has it.
func (m *migrated) heard(now grid.Time) {
	m.dead = grid.Never
	if m.award.Lease > 0 {
		m.dead = keepalive.Dead(now, m.award.Lease)
	}
}

// until returns the instant from which on no execution can be alive. With a lease its end says
// so: from award.Until on it is not renewed. That instant alone proves nothing: the clock of
// either site may have been set since, and a restart takes that up.
func (m *migrated) until() grid.Time {
	if m.award.Lease > 0 {
		return m.dead
	}
	return m.award.Until
}

// renew answers a site that has jobs of this home under leases. What it has and home does
// not count on any more, it is told: that would only cost it processors.
func (w *away) renew(now grid.Time, from grid.SiteID, in *keepalive.Renew, out *grid.Outbox) {
	answer := &keepalive.Renewed{Stamp: in.Stamp}
	for i := range in.Held {
		h := &in.Held[i]
		m := w.jobs[h.Task.Job]
		if m == nil || m.task() != h.Task || m.award.Site != from || m.phase == paying {
			answer.Unwanted = append(answer.Unwanted, h.Task)
			continue
		}
		if now >= m.award.Until {
			continue // it must have ended, whatever is said
		}
		answer.Renewed = append(answer.Renewed, h.Task)
		w.freeSlot(m)
		m.heard(now)
		m.lastCall = false
		if m.phase == submitting { // the acknowledgement was lost
			m.phase = running
		}
		if m.phase == cancelling { // it has not heard that yet
			w.askToEnd(now, m, out)
		} else {
			w.rearm(now, m)
		}
		heard := &Heard{Task: h.Task, Start: grid.Never, Begun: h.Begun}
		if h.Begun {
			heard.Start = max(now-h.Ran, 0)
		} else if h.Start != grid.Never {
			heard.Start = now.Add(h.Start)
		}
		out.Local(heard)
	}
	out.Send(from, answer)
}
