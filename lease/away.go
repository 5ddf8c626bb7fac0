package lease

import (
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// SubmitWide takes a job that is wider than the site, whether anything is delegated
// here or not: it waits until its owner starts it on a lease (after Cancel), or until
// processors are Brought for it. One with a deadline that this site cannot keep is
// delegated at once: processors are Brought for it, or the deadline is Unmet. It returns lrms.ErrQueueFull if too many requests wait.
func (m *Matchmaker) SubmitWide(now grid.Time, w Work, out *grid.Outbox) error {
	switch {
	case w.Processors <= m.cluster.Processors() && (w.By == 0 || w.By == grid.Never):
		return m.Submit(now, w, out)
	case m.demands[w.ID] != nil:
		return fmt.Errorf("%s epoch %d waits already: %w", w.ID.Job, w.ID.Epoch, lrms.ErrKnown)
	case len(m.demands) >= LeasesMax:
		return fmt.Errorf("%d requests wait: %w", LeasesMax, lrms.ErrQueueFull)
	}
	d := m.newDemand(w)
	d.wide, d.away = true, true
	m.demands[d.ID] = d
	if d.latest != grid.Never {
		m.delegate(now, d, out)
		return nil
	}
	m.setAside(d)
	return nil
}

// Away calls yield for the own jobs that wait and are in no queue of the cluster, as
// they gave way to others, or are wider than the site, in order of submission, until it
// returns false. The matchmaker must not be changed meanwhile.
func (m *Matchmaker) Away(yield func(lrms.Request) bool) {
	m.list = m.list[:0]
	for _, d := range m.asking {
		if d.round == nil && d.from == (ID{}) && !d.brought && !d.aside {
			m.list = append(m.list, d)
		}
	}
	slices.SortFunc(m.list, func(a, b *demand) int { return cmp.Compare(a.sequence, b.sequence) })
	asked := m.list
	for _, d := range m.aside {
		for len(asked) > 0 && asked[0].sequence < d.sequence {
			if !yield(asked[0].Request) {
				return
			}
			asked = asked[1:]
		}
		if !yield(d.Request) {
			return
		}
	}
	for _, d := range asked {
		if !yield(d.Request) {
			return
		}
	}
}

// recalled takes in that a lender wants its processors back, why being Accepted, or why it does
// not lend: it is not asked again for twice as long as a refusal is believed, so that the job's
// next round goes elsewhere.
func (m *Matchmaker) recalled(now grid.Time, l Lease, why Reason) {
	m.hearsay.believe(l.Lender, refusal{processors: 1, ttl: TTLMax, reason: why, until: now + 2*m.cfg.Retry})
}
