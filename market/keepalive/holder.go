package keepalive

import (
	"slices"

	"gridnode/grid"
)

// Holder is the side of an executing site: the jobs of others that it has under leases.
// The zero value is ready.
type Holder struct {
	homes  map[grid.SiteID]*tenancy
	timers grid.Alarms[*tenancy]
}

// tenancy is what a site has of one home's jobs.
type tenancy struct {
	timer grid.Alarm[*tenancy]
	home  grid.SiteID
	list  []execution // in order of their IDs
	asked grid.Time   // Renew.Stamp of the last that went out
	heard grid.Time   // of the newest that was answered
}

// execution is one that is held under a lease.
type execution struct {
	id    grid.TaskID
	lease grid.Time
	end   grid.Time // of the lease, unless it is renewed
	begun bool
	start grid.Time
	told  bool // that its lease has ended before it began
}

// Extended tells the site that a lease was renewed: the execution may go on until End.
type Extended struct {
	Task grid.TaskID
	End  grid.Time
}

// Lapsed tells the site that the lease of an execution has ended that has not begun, as far
// as is known: it must not begin any more.
type Lapsed struct{ Task grid.TaskID }

// Unwanted tells the site that home does not count on an execution any more.
type Unwanted struct{ Task grid.TaskID }

// Enter takes an execution under a lease that ends at end, unless it is renewed.
func (h *Holder) Enter(now grid.Time, home grid.SiteID, id grid.TaskID, lease, end grid.Time) {
	t := h.homes[home]
	if t == nil {
		if h.homes == nil {
			h.homes = make(map[grid.SiteID]*tenancy)
		}
		t = &tenancy{home: home}
		t.timer.Owner = t
		h.homes[home] = t
	}
	if at, there := t.find(id); !there {
		t.list = slices.Insert(t.list, at, execution{id: id, lease: lease, end: end})
	}
	h.hasten(t, min(now.Add(lease/shares), max(end-lease/2, now)))
}

// Soon has a home asked at once, as far as others do not hasten it: after a restart.
func (h *Holder) Soon(now grid.Time, home grid.SiteID) { h.hasten(h.homes[home], now.Add(pause)) }

// Leave forgets an execution that is over.
func (h *Holder) Leave(home grid.SiteID, id grid.TaskID) {
	t := h.homes[home]
	if t == nil {
		return
	}
	if at, there := t.find(id); there {
		t.list = slices.Delete(t.list, at, at+1)
	}
	if len(t.list) == 0 {
		h.timers.Stop(&t.timer)
		delete(h.homes, home)
	}
}

// Each yields the executions that are held, with their homes, in no particular order.
func (h *Holder) Each(yield func(home grid.SiteID, id grid.TaskID) bool) {
	for home, t := range h.homes {
		for i := range t.list {
			if !yield(home, t.list[i].id) {
				return
			}
		}
	}
}

// Begun notes that an execution runs, and has its home learn it soon.
func (h *Holder) Begun(now grid.Time, home grid.SiteID, id grid.TaskID, start grid.Time) {
	if t := h.homes[home]; t != nil {
		if at, there := t.find(id); there {
			t.list[at].begun, t.list[at].start = true, start
			h.hasten(t, now.Add(pause)) // with others that begin now
		}
	}
}

// Tick sends what is due. until says in how much time an execution begins that has not;
// Never if nothing is known.
func (h *Holder) Tick(now grid.Time, until func(grid.TaskID) grid.Time, out *grid.Outbox) {
	for a := h.timers.Pop(now); a != nil; a = h.timers.Pop(now) {
		h.renew(now, a.Owner, until, out)
	}
}

// Next returns when Tick has something to do next.
func (h *Holder) Next() grid.Time { return h.timers.Next() }

// renew asks a home for all that is held of it.
func (h *Holder) renew(now grid.Time, t *tenancy, until func(grid.TaskID) grid.Time, out *grid.Outbox) {
	next, parts := grid.Never, grid.Time(shares)
	if t.asked > t.heard && now-t.asked >= lost {
		parts *= hurry
	}
	t.asked = now
	var m *Renew
	for i := range t.list {
		x := &t.list[i]
		next = min(next, now.Add(x.lease/parts))
		if now >= x.end && !x.begun && !x.told {
			x.told = true
			out.Local(&Lapsed{x.id})
		}
		if now >= x.end {
			continue // whoever runs it is about to end it
		}
		if m == nil || len(m.Held) == heldMax {
			m = &Renew{Stamp: now}
			out.Send(t.home, m)
		}
		held := Held{Task: x.id, Begun: x.begun, Start: grid.Never}
		if x.begun {
			held.Ran = min(max(now-x.start, 0), grid.SpanMax)
		} else if span := until(x.id); span != grid.Never {
			held.Start = min(max(span, 0), grid.SpanMax)
		}
		m.Held = append(m.Held, held)
		if !x.begun {
			next = min(next, x.end)
		}
	}
	h.timers.Set(&t.timer, next)
}

// Renewed takes an answer. A home can only shorten what it grants by what it says: an
// instant at which nothing was asked counts for nothing.
func (h *Holder) Renewed(now grid.Time, from grid.SiteID, m *Renewed, out *grid.Outbox) {
	t := h.homes[from]
	if t == nil {
		return
	}
	if m.Stamp <= t.asked {
		t.heard = max(t.heard, m.Stamp)
	}
	for _, id := range m.Renewed {
		at, there := t.find(id)
		if !there || m.Stamp > now {
			continue
		}
		x := &t.list[at]
		if end := m.Stamp.Add(x.lease); end > x.end && now < x.end {
			x.end = end
			out.Local(&Extended{id, end})
		}
	}
	for _, id := range m.Unwanted {
		if _, there := t.find(id); there {
			out.Local(&Unwanted{id})
		}
	}
}

// hasten has a home asked at an instant at the latest.
func (h *Holder) hasten(t *tenancy, at grid.Time) {
	if !t.timer.SetBy(at) {
		h.timers.Set(&t.timer, at)
	}
}

func (t *tenancy) find(id grid.TaskID) (int, bool) {
	return slices.BinarySearchFunc(t.list, id, func(x execution, id grid.TaskID) int { return x.id.Compare(id) })
}
