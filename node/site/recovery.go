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
	js.add(e)
	switch {
	case e.foreign:
		js.agent.Step(now, &market.Restore{Job: e.job, Award: e.award}, out)
		if e.state.Terminal() { // home may not have the result yet
			js.live++
			js.agent.Step(now, &market.Ended{Task: e.task(), Result: e.result}, out)
			return
		}
		rc.waiting = append(rc.waiting, e)
	case e.state.Terminal():
		js.finished = append(js.finished, finishedJob{e.job.ID, max(e.result.End, e.job.Submit)})
	case e.award.Bank != "" && !rc.payment.paid(e.task()): // it never left
		if e.state != Cancelling {
			e.state = Placing
		}
		rc.waiting = append(rc.waiting, e)
	case e.award.Site != "" && e.award.Site != rc.cfg.ID:
		if e.state == Placing {
			e.state = Awarded
		}
		js.agent.Step(now, &market.Resume{Job: e.job, Award: e.award, Messages: e.messages, Losses: e.losses}, out)
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
	if gang, _, yes := grid.GangOf(in.ID); yes {
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
	if e.state == Cancelling {
		out.Kill(grid.Task{ID: in.ID, Job: e.job, Cause: e.reason})
		return
	}
	e.state = Running
}

// tick, the first time, takes up the jobs that no shim runs.
func (rc *recovery) tick(now grid.Time, out *grid.Outbox) {
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

// promise puts a recovered job back into the schedule, with its old promise if
// that can still be kept and as early as possible otherwise.
func (rc *recovery) promise(now grid.Time, e *entry, out *grid.Outbox) {
	e.state = Queued
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
type records []record

type record struct {
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

// Recover rebuilds the site from what was stored. It is called once, before any Step. It
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
	s.feed(now, told, out)
	if s.gangs != nil {
		s.gangs.recovered(now, out)
	}
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
	for key, value := range stored {
		if strings.HasPrefix(key, recordPrefix) {
			e, err := decodeEntry(value)
			if err != nil {
				return nil, nil, recordError(key, err)
			}
			entries = append(entries, e)
			continue
		}
		for i, k := range s.recorders {
			if slices.ContainsFunc(k.keeps(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
				kept[i] = append(kept[i], record{key, value})
			}
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.job.Submit, b.job.Submit), a.job.ID.Compare(b.job.ID))
	})
	return entries, kept, nil
}
