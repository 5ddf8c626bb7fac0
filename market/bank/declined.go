package bank

import (
	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// declined are the latest transfers that a ledger has refused. Who asked was told that nothing is
// moved: a copy of the request that comes when there are credits must not move them, while the same
// transfer may be asked for again. Of those that are forgotten too soon the account keeps refusals.
// The zero value is ready.
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

// refusals are what an account stores of transfers from it that were refused: the last of them, which
// stands for all that were asked for before. The zero value is that there was none.
type refusals struct {
	asked grid.Time // by the sender's clock, the latest
	at    grid.Time // by the bank's
	why   Refusal
}

// add notes a refusal.
func (r *refusals) add(m refusedMove) { *r = refusals{max(r.asked, m.asked), max(r.at, m.at), m.why} }

// copied reports whether a request may be a copy of one that was refused.
func (r *refusals) copied(now, asked grid.Time) bool {
	return asked != 0 && asked <= r.asked && now < r.at.Add(copyLife)
}

func (r *refusals) proto() *wirepb.BankRefused {
	if *r == (refusals{}) {
		return nil
	}
	return &wirepb.BankRefused{Asked: int64(r.asked), At: int64(r.at), Why: uint32(r.why)}
}

// refusals returns what an account has stored.
func (c *check) refusals(p *wirepb.BankRefused) refusals {
	if p == nil {
		return refusals{}
	}
	r := refusals{asked: c.asked(p.Asked), at: grid.Time(p.At), why: c.refusal(p.Why)}
	if r.why == Done || r.why >= refusalMax { // a newer version's
		r.why = Full
	}
	return r
}

// add notes a refusal, and returns that which it has to forget for it: whose id is none if there is room.
func (d *declined) add(now grid.Time, id moveKey, asked grid.Time, why Refusal) (noted, crowded refusedMove) {
	if d.last == nil {
		d.last = make(map[moveKey]refusedMove)
	}
	if d.trim(now); len(d.list) == declinedMax {
		crowded = d.list[0]
		d.forget()
	}
	m := refusedMove{id, max(asked, d.last[id].asked), now, why}
	d.list = append(d.list, m)
	d.last[id] = m
	return m, crowded
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
