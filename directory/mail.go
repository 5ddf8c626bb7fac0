package directory

import "gridnode/grid"

// letter is a copy on its way to a holder.
type letter struct {
	to   grid.SiteID
	copy Copy
}

// write puts a copy into the letter to a holder; of two about one cell the later counts.
func (pub *publisher) write(to grid.SiteID, c Copy) {
	for i := range pub.mail {
		if l := &pub.mail[i]; l.to == to && l.copy.Cell == c.Cell {
			l.copy = c
			return
		}
	}
	pub.mail = append(pub.mail, letter{to, c})
}

// post sends what was written, one message to each holder.
func (pub *publisher) post(out *grid.Outbox) {
	for i := range pub.mail {
		to := pub.mail[i].to
		if to == "" {
			continue
		}
		if len(pub.copySpace) < CopiesMax {
			pub.copySpace = make([]Copy, 16*CopiesMax)
		}
		copies := pub.copySpace[:0:CopiesMax]
		for j := i; j < len(pub.mail) && len(copies) < CopiesMax; j++ {
			if l := &pub.mail[j]; l.to == to {
				copies = append(copies, l.copy)
				l.to = ""
			}
		}
		pub.copySpace = pub.copySpace[len(copies):]
		m := pub.publishes.New()
		*m = Publish{Quote: pub.own, Copies: copies}
		out.Send(to, m)
	}
	pub.mail = pub.mail[:0]
}
