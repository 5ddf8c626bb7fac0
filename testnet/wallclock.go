package testnet

import (
	"slices"

	"gridnode/grid"
)

// wallClocks are clocks that do not only drift. As in a real host the clock of a daemon goes on
// from what the machine's clock showed as it started: a step, or a machine's clock that stands
// still, is taken up by the next start. The stamps of executions are the machine's. What an
// execution was given (its lease, its limit) is a span, and none of this changes it.
type wallClocks struct {
	on    []wrongClock        // that are wrong now
	taken map[int32]grid.Time // by site: by how much its daemon's clock is off
	base  map[int32]int64     // by site that was slewed: its drift
}

// wrongClock is a clock fault in force.
type wrongClock struct {
	fault int32
	site  int32
	kind  FaultKind
	since grid.Time
	by    grid.Time
}

// SlewMax bounds how much a clock that is slewed gains or loses, its drift included, in
// millionths, unless its drift alone is more.
const SlewMax = 1000

// clockLeast is the least that a machine's clock shows. It rises, so that no two starts of a
// daemon see the same instant.
func clockLeast(now grid.Time) grid.Time { return grid.Minute + now/64 }

// off returns by how much the machine's clock of a site is off.
func (w *wallClocks) off(now grid.Time, s int32) (by grid.Time) {
	for i := range w.on {
		switch c := &w.on[i]; {
		case c.site != s:
		case c.kind == FaultStep:
			by += c.by
		case c.kind == FaultStill:
			by -= now - c.since
		}
	}
	return by
}

// wall returns what the machine's clock of a site shows.
func wall(l *lane, s int32) grid.Time {
	local := l.members[s].Clock.Local(l.now)
	if l.clocks.taken == nil && l.clocks.on == nil {
		return local
	}
	return max(local+l.clocks.off(l.now, s)-l.clocks.taken[s], clockLeast(l.now))
}

// strike lets a clock fault begin or end. Where the daemon has taken up what is over now, its
// owner starts it anew.
func (w *wallClocks) strike(n *Network, i int32, f *Fault) {
	s := int32(f.Sites[0])
	if f.healing {
		w.on = slices.DeleteFunc(w.on, func(c wrongClock) bool { return c.fault == f.begun })
	} else {
		w.on = append(w.on, wrongClock{fault: i, site: s, kind: f.Kind, since: n.now, by: f.Delay})
	}
	if f.Kind == FaultSlew {
		w.slew(n, s)
		return
	}
	if m := &n.members[s]; f.healing && m.core != nil && w.taken[s] != w.off(n.now, s) {
		n.err = n.Schedule(Fault{Kind: FaultDaemon, At: n.now, For: grid.Second, Sites: f.Sites})
	}
}

// takeUp has a daemon that starts go by its machine's clock.
func (w *wallClocks) takeUp(n *Network, s int32) {
	if w.taken == nil && w.on == nil {
		return
	}
	m := &n.members[s]
	by := w.off(n.now, s) - w.taken[s]
	if local := m.Clock.Local(n.now); by < 0 {
		by = min(max(by, clockLeast(n.now)-local), 0)
	}
	if by == 0 {
		return
	}
	if w.taken == nil {
		w.taken = make(map[int32]grid.Time)
	}
	w.taken[s] += by
	m.Clock.Offset += by
	for i := range n.observers {
		if f := n.observers[i].Step; f != nil {
			f(n.now, int(s), by)
		}
	}
}

// slew has a site's clock gain or lose more from now on, or no more.
func (w *wallClocks) slew(n *Network, s int32) {
	m := &n.members[s]
	if w.base == nil {
		w.base = make(map[int32]int64)
	}
	base, known := w.base[s]
	if !known {
		base = m.Clock.Drift
		w.base[s] = base
	}
	drift := base
	for i := range w.on {
		if c := &w.on[i]; c.site == s && c.kind == FaultSlew {
			drift += int64(c.by)
		}
	}
	most := max(SlewMax, base, -base)
	m.Clock = m.Clock.slewed(n.now, max(min(drift, most), -most))
	if m.core == nil {
		return
	}
	if next := m.nextTimer(); next != grid.Never { // it may come earlier now
		n.laneOf(s).arm(s, next)
	}
	if m.away != nil && m.away.core != nil {
		m.away.arm()
	}
}

// slewed returns a clock that shows the same at t, and drifts otherwise.
func (c Clock) slewed(t grid.Time, drift int64) Clock {
	d := Clock{Drift: drift}
	d.Offset = c.Local(t) - d.Local(t)
	return d
}
