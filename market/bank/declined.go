package bank

import "gridnode/grid"

// declined are the latest transfers that a ledger has refused. Who asked was told that nothing is
// moved: a copy of the request that comes when there are credits must not move them, while the same
// transfer may be asked for again. They are not stored, so a bank that restarts meanwhile has
// forgotten them. The zero value is ready.
type declined struct {
	list []refusedMove // oldest first
	last map[moveKey]refusedMove
}

type refusedMove struct {
	id    moveKey
	asked grid.Time // by the sender's clock
	at    grid.Time // by the bank's
	why   Refusal
}

// add notes a refusal.
func (d *declined) add(now grid.Time, id moveKey, asked grid.Time, why Refusal) {
	if d.last == nil {
		d.last = make(map[moveKey]refusedMove)
	}
	if d.trim(now); len(d.list) == declinedMax {
		d.forget()
	}
	m := refusedMove{id, max(asked, d.last[id].asked), now, why}
	d.list = append(d.list, m)
	d.last[id] = m
}

// copied returns why a request was refused of which this is a copy, and whether it is one.
func (d *declined) copied(now grid.Time, id moveKey, asked grid.Time) (Refusal, bool) {
	d.trim(now)
	m, known := d.last[id]
	return m.why, known && asked != 0 && asked <= m.asked
}

// trim forgets those of which no copy is under way any more.
func (d *declined) trim(now grid.Time) {
	for len(d.list) > 0 && d.list[0].at.Add(copyLife) <= now {
		d.forget()
	}
}

func (d *declined) forget() {
	if oldest := d.list[0]; d.last[oldest.id] == oldest {
		delete(d.last, oldest.id)
	}
	d.list = d.list[1:]
}
