package site

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// limbo is the part that waits until executions are certainly dead: those whose lease
// has ended without the lender's word that nothing is left of them.
type limbo struct {
	*base
	jobs     *jobs
	stranded []stray // in order of when they are certainly dead
}

// stray is an execution of which nobody knows what is left.
type stray struct {
	id grid.TaskID
	at grid.Time // from then on it is certainly dead
}

func (*limbo) takes(*board) {}

func (m *limbo) nextTimer() grid.Time {
	if len(m.stranded) == 0 {
		return grid.Never
	}
	return m.stranded[0].at
}

// put has the job wait until its execution is certainly dead, as it is from e.gone on.
func (m *limbo) put(e *entry) {
	l := stray{e.task(), e.gone}
	at, _ := slices.BinarySearchFunc(m.stranded, l, func(a, b stray) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.id.Compare(b.id))
	})
	m.stranded = slices.Insert(m.stranded, at, l)
}

// putBack takes up, after a restart, a job that ran on processors of others under a
// lease which is not known any more.
func (m *limbo) putBack(now grid.Time, e *entry) {
	e.gone = max(e.gone, now)
	m.put(e)
}

// tick places those jobs again whose executions are certainly dead by now.
func (m *limbo) tick(now grid.Time, out *grid.Outbox) {
	n := 0
	for n < len(m.stranded) && m.stranded[n].at <= now {
		n++
	}
	if n == 0 {
		return
	}
	due := slices.Clone(m.stranded[:n])
	m.stranded = slices.Delete(m.stranded, 0, n)
	for _, l := range due {
		if e := m.jobs.current(l.id); e != nil && e.gone != 0 && !m.jobs.minded(l.id) { // else its part says when it has ended
			e.reason = ""
			m.jobs.lost(now, l.id, out)
		}
	}
}
