package lease

import (
	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Dispatch gives processors to requests in the order of the queue, if a matchmaking
// cycle is due, and appends to started the own jobs that start now.
func (m *Matchmaker) Dispatch(now grid.Time, started []lrms.Request, out *grid.Outbox) []lrms.Request {
	if m.cfg.MatchCycle > 0 {
		if now < m.nextMatch {
			return started
		}
		m.nextMatch = after(m.nextMatch, m.cfg.MatchCycle, now)
	}
	m.comeBack(now)
	for lapsed := true; lapsed; {
		if m.started = m.started[:0]; m.cfg.Rules.Dispatch != nil {
			m.started = m.dispatchBy(now, m.started)
		} else {
			m.started = m.cluster.Schedule(now, m.started)
		}
		lapsed = false
		for _, r := range m.started {
			d := m.demands[r.ID]
			if d != nil && d.round != nil {
				m.giveUp(now, d, out) // own processors came first
			}
			delete(m.demands, r.ID)
			if d == nil || d.from == (ID{}) {
				started = append(started, r)
			} else if m.book.Grant(now, d.from, Terms{Taken: true}, out) == nil {
				m.Delegations.Served++
			} else { // its asker's patience ends at this very instant: what follows in the queue has its room
				m.cluster.Ended(now, r.ID)
				lapsed = true
			}
		}
	}
	return started
}

// dispatchBy starts requests in the order of a policy of one's own, as far as they fit and
// no promise is broken, and then those that the discipline of the queue has start.
func (m *Matchmaker) dispatchBy(now grid.Time, started []lrms.Request) []lrms.Request {
	m.candidates = m.candidates[:0]
	for r := range m.cluster.Waiting {
		if d := m.demands[r.ID]; d != nil {
			m.candidates = append(m.candidates, d.candidate())
		}
	}
	for _, c := range m.cfg.Rules.Dispatch(m.situation(now), m.candidates) {
		d := m.demands[c.Task]
		if d == nil {
			continue
		}
		probe := lrms.Request{ID: taskHeld(d.sequence), Processors: d.processors, Estimate: d.Estimate}
		if m.cluster.Lend(now, probe) != nil {
			continue
		}
		m.cluster.Ended(now, probe.ID)
		if m.cluster.Cancel(now, d.ID) { // else it is named twice
			must(m.cluster.Adopt(now, d.Request, now))
			started = append(started, d.Request)
		}
	}
	return m.cluster.Schedule(now, started)
}

// comeBack puts requests that gave way back to their places, as far as they fit.
func (m *Matchmaker) comeBack(now grid.Time) {
	idle := m.cluster.Idle(now)
	for i := 0; i < len(m.aside) && idle > 0; {
		d := m.aside[i]
		if d.wide || d.processors > idle {
			i++
			continue
		}
		idle -= d.processors
		m.takeUp(d)
		d.away = false
		m.cluster.Unpark(now, d.ID)
	}
}

// Spare returns how many processors are idle here beyond those that the queue waits
// for: what others may hope for, and what this site gossips. A site that does not lend
// has none.
func (m *Matchmaker) Spare(now grid.Time) int64 {
	if !m.cfg.Lend {
		return 0
	}
	return max(m.cluster.Idle(now)-m.cluster.Demand(), 0)
}

// kept returns how many processors are kept from other sites for the own request that
// has given way for longest: a wide one would never find room between narrow ones.
// Where most processors are busy, waiting for them to come free would cost more than
// it gains.
func (m *Matchmaker) kept(now grid.Time) int64 {
	capacity := m.cluster.Processors()
	if m.asideSum == 0 || 4*m.cluster.Idle(now) < capacity {
		return 0
	}
	for _, d := range m.aside {
		if !d.wide {
			return d.processors
		}
	}
	return 0
}
