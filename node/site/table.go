package site

import (
	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/grid"
)

// add puts a live entry into the table.
func (s *Site) add(e *entry) {
	s.jobs[e.job.ID] = e
	if e.state.Terminal() {
		return
	}
	s.live++
	if !e.foreign {
		s.users[e.job.User]++
	}
}

// end moves a home job to a terminal state and keeps it for as long as ended
// jobs are kept.
func (s *Site) end(now grid.Time, e *entry, state State, out *grid.Outbox) {
	s.retire(e)
	e.state = state
	if s.cfg.Limits.Retention == 0 || s.cfg.Limits.Finished == 0 {
		out.Delete(e)
		delete(s.jobs, e.job.ID)
		return
	}
	out.Save(e)
	s.finished = append(s.finished, finishedJob{e.job.ID, now})
}

// retire takes a live entry out of the counts.
func (s *Site) retire(e *entry) {
	s.live--
	if e.foreign {
		return
	}
	if s.users[e.job.User]--; s.users[e.job.User] == 0 {
		delete(s.users, e.job.User)
	}
}

// drop forgets a foreign job.
func (s *Site) drop(e *entry) {
	s.live--
	delete(s.jobs, e.job.ID)
}

// expire forgets ended jobs that were kept long enough, or that are too many.
func (s *Site) expire(now grid.Time, out *grid.Outbox) {
	n := 0
	for _, f := range s.finished {
		if len(s.finished)-n <= s.cfg.Limits.Finished && f.at.Add(s.cfg.Limits.Retention) > now {
			break
		}
		if e := s.jobs[f.id]; e != nil && e.state.Terminal() {
			out.Delete(e)
			delete(s.jobs, f.id)
		}
		n++
	}
	if n > 0 {
		s.finished = append(s.finished[:0], s.finished[n:]...)
	}
}

// current returns the entry of a task, or nil if that execution is not the
// latest one: whatever carries an older epoch changes nothing.
func (s *Site) current(id grid.TaskID) *entry {
	if e := s.jobs[id.Job]; e != nil && e.epoch == id.Epoch {
		return e
	}
	return nil
}

// Job returns what is known of a job, its own or another site's.
func (s *Site) Job(id grid.JobID) (View, bool) {
	e := s.jobs[id]
	if e == nil {
		return View{}, false
	}
	v := s.view(e)
	v.Verdicts = s.whyLeft(e)
	return v, true
}

// Jobs calls yield for every job, in no particular order, until it returns false.
func (s *Site) Jobs(yield func(View) bool) {
	for _, e := range s.jobs {
		if !yield(s.view(e)) {
			return
		}
	}
}

// Offer returns the site's own quote as it was last published.
func (s *Site) Offer() directory.Quote { return s.quoted }

// Known returns the newest quote of another site that came by.
func (s *Site) Known(id grid.SiteID) (directory.Quote, bool) {
	if s.dir == nil {
		return directory.Quote{}, false
	}
	return s.dir.Known(id)
}

// Load returns the newest load report of another site that came by.
func (s *Site) Load(id grid.SiteID) (directory.Load, bool) {
	if s.dir == nil {
		return directory.Load{}, false
	}
	return s.dir.Load(id)
}

// Network returns what this site knows of the latencies between sites, by their
// indices: for co-allocation (coalloc.NewView) and for users. Bandwidths are those of
// the quotes. It takes O(sites) time.
func (s *Site) Network(now grid.Time, sites []grid.SiteID) *coalloc.Estimates {
	if s.survey == nil {
		return coalloc.Alone(sites)
	}
	bandwidth := make([]int64, len(sites))
	for i, id := range sites {
		bandwidth[i] = s.cfg.Bandwidth * bytesPerMegabit // also of those that have no quote, as far as anybody knows
		if id == s.cfg.ID {
			continue
		}
		if q, known := s.dir.Known(id); known {
			bandwidth[i] = q.Bandwidth * bytesPerMegabit
		}
	}
	return s.survey.Network(now, sites, bandwidth)
}

// bytesPerMegabit turns a rating's Mb/s into bytes a second.
const bytesPerMegabit = 125_000
