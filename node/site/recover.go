package site

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
)

// Recover rebuilds the table of jobs from what was stored. It is called once,
// before any Step. It returns an error that names the first record that cannot
// be read: a site must not run on half of its jobs.
func (s *Site) Recover(now grid.Time, records iter.Seq2[string, []byte], out *grid.Outbox) error {
	told := len(out.Locals) // what the cores say meanwhile waits until the jobs are there
	var entries []*entry
	var leases, shared, held []leaseRecord
	for key, value := range records {
		if strings.HasPrefix(key, lease.RecordPrefix) || strings.HasPrefix(key, lease.LinkPrefix) {
			leases = append(leases, leaseRecord{key, value})
		}
		if strings.HasPrefix(key, coalloc.RecordPrefix) || strings.HasPrefix(key, coalloc.HomePrefix) {
			shared = append(shared, leaseRecord{key, value})
		}
		if strings.HasPrefix(key, dataset.RecordPrefix) {
			held = append(held, leaseRecord{key, value})
		}
		if strings.HasPrefix(key, bank.RecordPrefix) && s.desk != nil {
			if err := s.desk.Load(now, key, value, out); err != nil {
				return fmt.Errorf("record %s: %w", key, err)
			}
			continue
		}
		if !strings.HasPrefix(key, recordPrefix) {
			continue
		}
		e, err := decodeEntry(value)
		if err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		entries = append(entries, e)
	}
	if s.desk != nil {
		if err := s.desk.Loaded(now, out); err != nil {
			return err
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.job.Submit, b.job.Submit), a.job.ID.Compare(b.job.ID))
	})
	if s.data != nil {
		if err := s.data.Recover(now, each(held)); err != nil {
			return err
		}
	}
	if s.book != nil {
		if err := s.co.coord.Recover(each(shared), out); err != nil {
			return err
		}
		if err := s.co.home.Recover(now, each(shared), out); err != nil {
			return err
		}
		if err := s.book.Recover(now, each(leases), out); err != nil {
			return err
		}
		if err := s.kinship.Recover(now, each(leases), out); err != nil {
			return err
		}
		s.matches.SetLinks(s.kinship.Links())
	}
	for _, e := range entries {
		s.restore(now, e, out)
	}
	s.feed(now, told, out)
	if s.book != nil {
		s.recoverHome(now, out)
		s.recoverPilots(now, out)
	}
	slices.SortFunc(s.finished, func(a, b finishedJob) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.id.Compare(b.id))
	})
	return nil
}

// leaseRecord is a record of the book, or of a link.
type leaseRecord struct {
	key   string
	value []byte
}

// each yields records, as often as it is asked to.
func each(records []leaseRecord) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, r := range records {
			if !yield(r.key, r.value) {
				return
			}
		}
	}
}

// restore takes one recovered entry up where it stood.
func (s *Site) restore(now grid.Time, e *entry, out *grid.Outbox) {
	s.add(e)
	switch {
	case e.foreign:
		if s.agent != nil {
			s.agent.Step(now, &market.Restore{Job: e.job, Award: e.award}, out)
		}
		if e.state.Terminal() { // home may not have the result yet
			s.live++
			s.agent.Step(now, &market.Ended{Task: e.task(), Result: e.result}, out)
			return
		}
		s.recovered = append(s.recovered, e)
	case e.state.Terminal():
		s.finished = append(s.finished, finishedJob{e.job.ID, max(e.result.End, e.job.Submit)})
	case e.award.Bank != "" && s.desk.Cheque(e.task()) == nil: // it never left
		if e.state != Cancelling {
			e.state = Placing
		}
		s.recovered = append(s.recovered, e)
	case e.award.Site != "" && e.award.Site != s.cfg.ID:
		if e.state == Placing {
			e.state = Awarded
		}
		s.agent.Step(now, &market.Resume{Job: e.job, Award: e.award, Messages: e.messages}, out)
		if e.state == Cancelling {
			s.agent.Step(now, &market.Stop{Job: e.job.ID, Cause: e.reason}, out)
		}
	default: // placing, or in the queue here, perhaps running: the shim knows
		s.recovered = append(s.recovered, e)
	}
}

// adopted: the shim still runs this task.
func (s *Site) adopted(now grid.Time, in *Adopted, out *grid.Outbox) {
	if epoch, yes := IsPilot(in.ID); yes {
		if _, kept := s.pilots[epoch]; !kept {
			out.Kill(grid.Task{ID: in.ID, Cause: "its lease is over"})
		}
		return
	}
	if gang, _, yes := grid.GangOf(in.ID); yes {
		s.adoptedGang(gang, out)
		return
	}
	e := s.current(in.ID)
	if e == nil || e.state.Terminal() {
		out.Kill(grid.Task{ID: in.ID, Cause: "nobody waits for it any more"})
		return
	}
	request := lrms.Request{ID: in.ID, Processors: e.job.Processors, Estimate: e.job.EstimateAt(s.cfg.Rating)}
	if err := s.cluster.Adopt(now, request, in.Start); err != nil {
		panic(fmt.Sprintf("node: adopt task %v: %v", in.ID, err))
	}
	s.forgetRecovered(e)
	e.start = in.Start
	if e.state == Cancelling {
		out.Kill(grid.Task{ID: in.ID, Job: e.job, Cause: e.reason})
		return
	}
	e.state = Running
}

// requeue, at the first Tick, takes up the jobs that no shim runs.
func (s *Site) requeue(now grid.Time, out *grid.Outbox) {
	for _, e := range s.recovered {
		switch {
		case e != nil && divided(e.job):
			s.rejoin(now, e, out)
		case e == nil: // ended or adopted meanwhile
		case e.lease != 0:
			s.recoverBorrowed(now, e)
		case e.state == Cancelling:
			s.withdraw(now, e, e.reason, out)
		case e.state == Placing:
			s.place(now, e, out)
			out.Save(e)
		default:
			s.promise(now, e, out)
		}
	}
	s.recovered = nil
}

// promise puts a recovered job back into the schedule, with its old promise if
// that can still be kept and as early as possible otherwise.
func (s *Site) promise(now grid.Time, e *entry, out *grid.Outbox) {
	e.state = Queued
	request := lrms.Request{ID: e.task(), Processors: e.job.Processors, Estimate: e.job.EstimateAt(s.cfg.Rating)}
	if e.award.Finish == 0 {
		if err := s.enqueue(now, request, e); err != nil {
			s.expired(now, e, out)
		}
		return
	}
	if _, err := s.cluster.Admit(now, request, e.award.Finish); err != nil {
		if _, err := s.cluster.Admit(now, request, grid.Never); err != nil {
			s.expired(now, e, out)
		}
	}
}

// forgetRecovered takes e off the list of jobs to queue again.
func (s *Site) forgetRecovered(e *entry) {
	for i, r := range s.recovered {
		if r == e {
			s.recovered[i] = nil
			return
		}
	}
}
