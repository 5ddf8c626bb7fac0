package site

import "gridnode/grid"

// table is the jobs that a site knows, its own and others', live and ended.
type table struct {
	limits   Limits
	byID     map[grid.JobID]*entry
	users    map[string]int // live home jobs by user
	live     int            // entries not terminal, and those of others whose home may not have the result
	finished []finishedJob  // ended home jobs that are still kept, oldest first
	entries  grid.Slab[entry]
}

type finishedJob struct {
	id grid.JobID
	at grid.Time
}

func newTable(limits Limits) table {
	return table{limits: limits, byID: make(map[grid.JobID]*entry), users: make(map[string]int)}
}

// add puts a live entry into the table.
func (t *table) add(e *entry) {
	t.byID[e.job.ID] = e
	if e.state.Terminal() {
		return
	}
	t.live++
	if !e.foreign {
		t.users[e.job.User]++
	}
}

// end moves a home job to a terminal state and keeps it for as long as ended
// jobs are kept.
func (t *table) end(now grid.Time, e *entry, state State, out *grid.Outbox) {
	t.live--
	if t.users[e.job.User]--; t.users[e.job.User] == 0 {
		delete(t.users, e.job.User)
	}
	e.state = state
	if t.limits.Retention == 0 || t.limits.Finished == 0 {
		out.Delete(e)
		delete(t.byID, e.job.ID)
		return
	}
	out.Save(e)
	t.finished = append(t.finished, finishedJob{e.job.ID, now})
}

// drop forgets a foreign job.
func (t *table) drop(e *entry) {
	t.live--
	delete(t.byID, e.job.ID)
}

// expire forgets ended jobs that were kept long enough, or that are too many.
func (t *table) expire(now grid.Time, out *grid.Outbox) {
	n := 0
	for _, f := range t.finished {
		if len(t.finished)-n <= t.limits.Finished && f.at.Add(t.limits.Retention) > now {
			break
		}
		if e := t.byID[f.id]; e != nil && e.state.Terminal() {
			out.Delete(e)
			delete(t.byID, f.id)
		}
		n++
	}
	if n > 0 {
		t.finished = append(t.finished[:0], t.finished[n:]...)
	}
}

// nextExpiry returns when expire next has something to do.
func (t *table) nextExpiry() grid.Time {
	if len(t.finished) == 0 {
		return grid.Never
	}
	return t.finished[0].at.Add(t.limits.Retention)
}

// current returns the entry of a task, or nil if that execution is not the
// latest one: whatever carries an older epoch changes nothing.
func (t *table) current(id grid.TaskID) *entry {
	if e := t.byID[id.Job]; e != nil && e.epoch == id.Epoch {
		return e
	}
	return nil
}

// save stores e unless its end has settled what is stored.
func (t *table) save(e *entry, out *grid.Outbox) {
	if !e.state.Terminal() {
		out.Save(e)
	}
}
