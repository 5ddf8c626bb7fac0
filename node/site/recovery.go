package site

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gridnode/grid"
	"gridnode/market"
)

// recovery is the part that takes up, after a restart, the jobs that were stored. The
// driver says what of them still runs and what has ended; the first Tick sees to what
// is left.
type recovery struct {
	*base
	jobs    *jobs
	payment cheques
	limbo   *limbo
	guests  *guests  // nil: nothing is held
	gangs   *gangs   // nil: nothing runs at several sites
	waiting []*entry // for the first Tick; nil where one has ended or was adopted
}

// resumer is a way that takes its jobs up by itself.
type resumer interface {
	resume(now grid.Time, e *entry, out *grid.Outbox)
}

func (*recovery) takes(b *board) {
	take(b, func(s *Site) *recovery { return s.recovery }, (*recovery).adopted)
}

func (*recovery) nextTimer() grid.Time { return grid.Never }

// restore takes one stored entry up where it stood.
func (rc *recovery) restore(now grid.Time, e *entry, out *grid.Outbox) {
	js := rc.jobs
	js.enter(e)
	if !e.foreign && !e.state.Terminal() {
		js.gate.Enter(e.job, e.state == Waiting)
	}
	if len(e.gpus) > 0 && !e.state.Terminal() && e.state != Waiting {
		js.gpus.Adopt(now, e.task(), e.gpus)
	}
	switch {
	case e.foreign:
		js.agent.Step(now, &market.Restore{Job: e.job, Award: e.award, Over: e.state.Terminal()}, out)
		if e.state.Terminal() { // home may not have the result yet
			if e.state == Returned {
				js.abandon(now, e, out)
			} else {
				js.agent.Step(now, &market.Ended{Task: e.task(), Result: e.result}, out)
			}
			return
		}
		rc.waiting = append(rc.waiting, e)
	case e.state.Terminal():
		js.finished = append(js.finished, finishedJob{e.job.ID, max(e.result.End, e.job.Submit)})
	case e.state == Waiting: // what it waits for is known once all are there
	case e.award.Bank != "" && !rc.payment.paid(e.task()): // it never left
		if e.state != Cancelling {
			e.state = Placing
		}
		rc.waiting = append(rc.waiting, e)
	case e.award.Site != "" && e.award.Site != rc.cfg.ID:
		if e.state == Placing {
			e.state = Awarded
		}
		js.agent.Step(now, &market.Resume{Job: e.job, Award: e.award, Messages: e.messages, Losses: e.unheard.Told(e.losses)}, out)
		if e.state == Cancelling {
			js.agent.Step(now, &market.Stop{Job: e.job.ID, Cause: e.reason}, out)
		}
	default: // placing, or in the queue here, perhaps running: the shim knows
		rc.waiting = append(rc.waiting, e)
	}
}

// causeUnwanted is why an execution is ended that a restart has left over.
const causeUnwanted = "nobody waits for it any more"

// adopted: the shim still runs this task.
func (rc *recovery) adopted(now grid.Time, in *Adopted, out *grid.Outbox) {
	for _, w := range rc.jobs.watchers {
		if w.adopted(in, out) {
			return
		}
	}
	if gang, _, yes := grid.SquadOf(in.ID); yes {
		out.Kill(grid.Task{ID: gang, Cause: causeUnwanted, Abandon: true})
		return
	}
	e := rc.jobs.current(in.ID)
	if e == nil || e.state.Terminal() {
		out.Kill(grid.Task{ID: in.ID, Cause: causeUnwanted})
		return
	}
	if err := rc.cluster.Adopt(now, rc.requestOf(e), in.Start); err != nil {
		panic(fmt.Sprintf("site: adopt task %v: %v", in.ID, err))
	}
	rc.forget(e)
	e.start = in.Start
	rc.jobs.began(e)
	rc.jobs.gate.Begun(e.job, &rc.jobs.table) // what waits for that was not told by what is stored
	if e.state == Cancelling {
		out.Kill(grid.Task{ID: in.ID, Job: e.job, Cause: e.reason})
		return
	}
	e.state = Running
	rc.jobs.tellHome(now, e, out)
}

// tick, the first time, takes up the jobs that no shim runs: first those whose tasks may
// have this site's own processors still, before one that waits gets them, and of those the
// ones that were not given up. One that was may have left its processors to them already.
func (rc *recovery) tick(now grid.Time, out *grid.Outbox) {
	if rc.gangs != nil && rc.gangs.recovering {
		rc.gangs.recovered(now, out)
	}
	if len(rc.waiting) == 0 {
		return
	}
	slices.SortStableFunc(rc.waiting, func(a, b *entry) int { return cmp.Compare(b.together(), a.together()) })
	for _, e := range rc.waiting {
		if e != nil && len(e.gpus) > 0 {
			rc.jobs.gpus.Release(e.task())
		}
	}
	for _, e := range rc.waiting {
		if e == nil {
			continue // ended or adopted meanwhile
		}
		if r, own := rc.jobs.wayOf(e.job).(resumer); own && !e.foreign {
			r.resume(now, e, out)
			continue
		}
		switch {
		case e.lease != 0:
			rc.limbo.putBack(now, e)
		case e.state == Cancelling:
			rc.jobs.withdraw(now, e, e.reason, out)
		case e.state == Placing:
			rc.jobs.place(now, e, out)
			out.Save(e)
		default:
			rc.promise(now, e, out)
		}
	}
	rc.waiting = nil
}

// together returns 3 for an execution whose tasks started together, 2 for one of them that was given up
// and some of whose tasks run here still, 1 for one of which none does, else 0.
func (e *entry) together() int {
	switch {
	case e == nil || e.gang == nil:
		return 0
	case e.gone == 0:
		return 3
	case e.divided != nil && e.divided.here:
		return 2
	}
	return 1
}

// promise puts a recovered job back into the schedule, with its old promise if
// that can still be kept and as early as possible otherwise.
func (rc *recovery) promise(now grid.Time, e *entry, out *grid.Outbox) {
	if rc.guests.keeping(e) {
		return
	}
	e.state = Queued
	if e.leaseUnknown() {
		e.adrift = true
		return
	}
	request := rc.requestOf(e)
	if e.award.Finish == 0 {
		if err := rc.jobs.queue.enqueue(now, request, e, out); err != nil {
			rc.jobs.expired(now, e, out)
		}
		return
	}
	if _, err := rc.cluster.Admit(now, request, e.award.Finish); err != nil {
		if _, err := rc.cluster.Admit(now, request, grid.Never); err != nil {
			rc.jobs.expired(now, e, out)
		}
	}
}

// forget takes e off the list of jobs to take up, and reports whether it was there.
func (rc *recovery) forget(e *entry) bool {
	for i, r := range rc.waiting {
		if r == e {
			rc.waiting[i] = nil
			return true
		}
	}
	return false
}

// onLease calls do for the waiting jobs that ran on the processors of a lease, and takes
// them off the list.
func (rc *recovery) onLease(number uint64, do func(*entry)) {
	for i, e := range rc.waiting {
		if e != nil && e.lease == number && e.gone == 0 {
			rc.waiting[i] = nil
			do(e)
		}
	}
}

// records are what a part has stored.
type records []row

type row struct {
	key   string
	value []byte
}

// each yields records, as often as it is asked to.
func (r records) each(yield func(string, []byte) bool) {
	for i := range r {
		if !yield(r[i].key, r[i].value) {
			return
		}
	}
}

func recordError(key string, err error) error { return fmt.Errorf("record %s: %w", key, err) }

// RecordsVersion is the version of what the records of a site mean. It rises with a change by
// which an earlier program would misread them, or lose what it must not: a part that keeps
// records, or a field of one, without which a job, a lease or an account is another.
const RecordsVersion = 1

// Recover rebuilds the site from what was stored. It is called once, before any Step. The
// driver then says what still runs and what has ended, and gives a Tick, before any other
// input: else something new could have the processors of what is still to be taken up. It
// returns an error that names the first record that cannot be read: a site must not run
// on half of its jobs. Records of parts that the site does not have stay where they are.
func (s *Site) Recover(now grid.Time, stored iter.Seq2[string, []byte], out *grid.Outbox) error {
	told := len(out.Locals) // what the cores say meanwhile waits until the jobs are there
	entries, kept, err := s.sort(stored)
	if err != nil {
		return err
	}
	for i, k := range s.recorders {
		if err := k.recover(now, kept[i], out); err != nil {
			return err
		}
	}
	for _, e := range entries {
		s.recovery.restore(now, e, out)
	}
	for _, e := range entries {
		if e.state == Waiting {
			s.jobs.gate.Wait(e.job, &e.turn, &s.jobs.table)
		}
	}
	s.feed(now, told, out)
	if s.pilots != nil {
		s.pilots.recovered(now, out)
	}
	slices.SortFunc(s.jobs.finished, func(a, b finishedJob) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.id.Compare(b.id))
	})
	return nil
}

// sort reads the records of jobs, and gives each recorder its own.
func (s *Site) sort(stored iter.Seq2[string, []byte]) (entries []*entry, kept []records, err error) {
	kept = make([]records, len(s.recorders))
	prefixes := make([][]string, len(s.recorders))
	for i, k := range s.recorders {
		prefixes[i] = k.keeps()
	}
	for key, value := range stored {
		if strings.HasPrefix(key, RecordPrefix) {
			e, err := decodeEntry(value)
			if err != nil {
				return nil, nil, recordError(key, err)
			}
			entries = append(entries, e)
			continue
		}
		for i := range prefixes {
			if slices.ContainsFunc(prefixes[i], func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
				kept[i] = append(kept[i], row{key, value})
			}
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.job.Submit, b.job.Submit), a.job.ID.Compare(b.job.ID))
	})
	return entries, kept, nil
}

// limbo is the part that waits until executions are certainly dead: those whose lease
// has ended without the lender's word that nothing is left of them.
type limbo struct {
	*base
	jobs     *jobs
	stranded agenda // executions of which nobody knows what is left, by when they are certainly dead
}

func (*limbo) takes(*board) {}

func (m *limbo) nextTimer() grid.Time { return m.stranded.next() }

// strand notes from when on an execution is certainly dead.
func (e *entry) strand(now, gone grid.Time) {
	e.gone = max(gone, now)
	e.goneSpan = e.gone - now
}

// strandBack is that after a restart. The instant says nothing, as the clock may have been set since,
// forward or back; but what was said was said before now.
func (e *entry) strandBack(now grid.Time) { e.gone = now + e.goneSpan }

// put has the job wait until its execution is certainly dead, as it is from e.gone on.
func (m *limbo) put(e *entry) { m.stranded.enter(e.gone, e.task()) }

// putBack takes up, after a restart, a job that ran on processors of others under a
// lease which is not known any more.
func (m *limbo) putBack(now grid.Time, e *entry) {
	e.strandBack(now)
	m.put(e)
}

// tick places those jobs again whose executions are certainly dead by now.
func (m *limbo) tick(now grid.Time, out *grid.Outbox) {
	for _, l := range m.stranded.take(now) {
		if e := m.jobs.current(l.id); e != nil && !e.state.Terminal() && e.gone != 0 && !m.jobs.minded(l.id) { // else its part says when it has ended
			e.reason = ""
			m.jobs.lost(now, l.id, out)
		}
	}
}

// agenda is executions that are to be looked at again, in order of when.
type agenda []appointment

type appointment struct {
	at grid.Time
	id grid.TaskID
}

func (a *agenda) enter(at grid.Time, id grid.TaskID) {
	i, _ := slices.BinarySearchFunc(*a, appointment{at, id}, func(x, y appointment) int {
		return cmp.Or(cmp.Compare(x.at, y.at), x.id.Compare(y.id))
	})
	*a = slices.Insert(*a, i, appointment{at, id})
}

// next returns when the first one is due; Never if there is none.
func (a agenda) next() grid.Time {
	if len(a) == 0 {
		return grid.Never
	}
	return a[0].at
}

// take returns those that are due by now, and forgets them.
func (a *agenda) take(now grid.Time) []appointment {
	n := 0
	for n < len(*a) && (*a)[n].at <= now {
		n++
	}
	if n == 0 {
		return nil
	}
	due := slices.Clone((*a)[:n])
	*a = slices.Delete(*a, 0, n)
	return due
}
