package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// place is a cell and those of its holders who may have a copy of the own quote.
type place struct {
	cell   cell
	role   role
	copies []replica
	skip   trie.Prefix // of a spare: the closing cell
	moved  bool        // of a place to leave: the cell to was split off it
	to     trie.Prefix
}

// replica is one holder's copy.
type replica struct {
	site     grid.SiteID
	has      uint64    // sequence of the newest quote it is known to have; 0 if none
	sent     uint64    // sequence of the newest quote sent to it; 0 if none
	tries    int       // of that one, or of the withdrawal, without an answer
	deadline grid.Time // for the answer; 0 if none is outstanding
	silent   bool      // it was given up, as it did not answer
	absent   bool      // it has answered the newest quote sent that it has none
	until    grid.Time // 0 while it is one of the holders; else those who do not know better may ask it until then
}

// turn gives a place a role.
func (p *place) turn(r role) {
	if p.role == r && r == former {
		return
	}
	p.role = r
	if r != former {
		p.moved = false
	}
	for i := range p.copies {
		p.copies[i].tries, p.copies[i].deadline = 0, 0
	}
}

// due reports whether the quote of a sequence is to be sent; changed is the
// sequence since which the offer is the same.
func (r *replica) due(sequence, changed uint64) bool {
	if r.until != 0 {
		return r.has < changed
	}
	return r.has < sequence && (r.sent < sequence || r.deadline == 0 && r.tries < triesMax)
}

// note notes that the quote of a sequence goes out.
func (r *replica) note(sequence uint64, deadline grid.Time) {
	if r.sent != sequence {
		r.sent, r.tries = sequence, 0
	}
	r.tries++
	r.deadline, r.absent, r.silent = deadline, false, false
}

// settled reports whether a holder has the quote of a sequence and no answer is
// outstanding.
func (p *place) settled(sequence uint64) bool {
	has := false
	for i := range p.copies {
		c := &p.copies[i]
		if c.deadline != 0 {
			return false
		}
		has = has || c.until == 0 && c.has >= sequence
	}
	return has
}

// safe reports whether a holder has some copy.
func (p *place) safe() bool {
	return p != nil && slices.ContainsFunc(p.copies, func(c replica) bool { return c.until == 0 && c.has > 0 })
}

// answered takes notice of an answer, and reports whether it was to be expected.
func (p *place) answered(from grid.SiteID, sequence uint64, m *Receipt) bool {
	i := slices.IndexFunc(p.copies, func(c replica) bool { return c.site == from })
	if i < 0 {
		return false
	}
	c := &p.copies[i]
	c.absent = m.Absent && sequence >= c.sent
	switch {
	case m.Gone:
		if p.role == former {
			p.copies = slices.Delete(p.copies, i, i+1)
		}
	case p.role == former: // it answers what was published before
	case m.Refused:
		if sequence == c.sent {
			c.deadline, c.tries = 0, triesMax
		}
	default:
		c.has = max(c.has, sequence)
		if c.has >= c.sent {
			c.deadline, c.tries = 0, 0
		}
	}
	return true
}
