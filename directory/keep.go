package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// onPublish stores the copies of a quote and answers about those whose site wants
// to know or has to do something.
func (k *holder) onPublish(now grid.Time, from grid.SiteID, m *Publish, out *grid.Outbox) {
	if m.Quote.Site != from || len(m.Copies) > CopiesMax {
		k.counts.Rejected++
		return
	}
	receipts := k.receiptChunk()
	for i := range m.Copies {
		c := &m.Copies[i]
		if r := k.keep(now, m.Quote, c); !c.Quiet || c.Ring != r.Ring || r.Moved || r.Refused || r.Closing && !c.Safe || r.Closed {
			receipts = append(receipts, r)
		}
	}
	if len(receipts) > 0 {
		k.receiptSpace = k.receiptSpace[len(receipts):]
		k.answer(from, m.Quote.Sequence, receipts, out)
	}
}

// answer sends receipts, which belong to the message from then on.
func (k *holder) answer(to grid.SiteID, sequence uint64, receipts []Receipt, out *grid.Outbox) {
	m := k.answers.New()
	*m = Published{Sequence: sequence, Receipts: receipts}
	out.Send(to, m)
}

// answerOne sends one receipt.
func (k *holder) answerOne(to grid.SiteID, sequence uint64, r Receipt, out *grid.Outbox) {
	receipts := append(k.receiptChunk(), r)
	k.receiptSpace = k.receiptSpace[1:]
	k.answer(to, sequence, receipts, out)
}

// keep stores a quote in a cell, or says where it belongs.
func (k *holder) keep(now grid.Time, q *Quote, m *Copy) Receipt {
	reply := Receipt{Cell: m.Cell}
	at := q.at(m.Cell.attribute)
	if q.Withdrawn || !k.timely(now, q) || !m.Cell.Contains(at) || m.Spare && !m.Cell.Covers(m.Skip) {
		reply.Refused = true
		return reply
	}
	if k.learn(q) != nil {
		return reply // late: a newer one has been here, or has been withdrawn
	}
	h := k.hold(now, m.Cell)
	if h == nil {
		reply.Refused = true
		return reply
	}
	reply.Ring = k.rings.list[m.Cell].holdersDigest()
	k.contradicted(now, m.Cell, m.Ring)
	skip := trie.Prefix{}
	if m.Spare {
		skip = m.Skip
	}
	if reply.To, reply.Moved = h.fences.Way(at, skip); reply.Moved {
		reply.Fences, _ = h.fences.List()
		reply.Holders = h.fences.Holders(reply.To)
	} else if m.Ring != reply.Ring && m.Ring != 0 {
		reply.Holders = k.rings.list[m.Cell].show(k.cfg.Replicas)
	}
	i := h.of(q)
	news := i < 0 || !h.records[i].quote.sameTerms(q)
	switch {
	case i >= 0 && h.records[i].quote.Sequence > q.Sequence:
		return reply // late, too
	case i < 0 && reply.Moved:
		reply.Absent = true
		return reply // it is not published before it is where it belongs
	case i < 0:
		if len(h.records) >= crowdFactor*k.cfg.CellMax {
			k.expire(now, h)
		}
		if len(h.records) >= crowdFactor*k.cfg.CellMax || !k.count(q.Site) {
			reply.Refused = true
			return reply
		}
	default:
		h.records = slices.Delete(h.records, i, i+1)
	}
	if news {
		k.void(now, h)
	}
	k.raise(now, h, q.summary())
	h.put(record{at: at, quote: q, expires: now + min(q.Expires()-now, q.Lifetime), spare: m.Spare, safe: m.Safe})
	if !reply.Moved && !m.Spare {
		h.life.Published(m.Safe)
		stage := h.life.Stage(now, k.cfg.Lifetime)
		reply.Closing, reply.Closed = stage >= trie.Closing, stage == trie.Closed
		h.split(now, k.cfg.CellMax, now+k.cfg.Lifetime)
		k.upkeepAt = min(k.upkeepAt, h.upkeep.next)
	}
	return reply
}

// adopt stores a copy of a quote that another holder has, and reports whether there was none.
func (k *holder) adopt(now grid.Time, h *holding, q *Quote) (fresh bool) {
	at := q.at(h.cell.attribute)
	if q.Withdrawn || q.impossible(now) || !k.timely(now, q) || !h.cell.Contains(at) || k.learn(q) != nil || h.of(q) >= 0 {
		return false
	}
	if _, stray := h.fences.Way(at, trie.Prefix{}); stray {
		return false
	}
	if len(h.records) >= crowdFactor*k.cfg.CellMax || !k.count(q.Site) {
		return false
	}
	k.raise(now, h, q.summary())
	h.put(record{at: at, quote: q, expires: now + min(q.Expires()-now, q.Lifetime), copied: true})
	return true
}

// onWithdraw drops a site's copy of its quote and says so.
func (k *holder) onWithdraw(now grid.Time, from grid.SiteID, m *Withdraw, out *grid.Outbox) {
	if m.Quote.Site != from {
		k.counts.Rejected++
		return
	}
	k.answerOne(from, m.Quote.Sequence, k.drop(now, m), out)
}

// drop drops a copy.
func (k *holder) drop(now grid.Time, m *Withdraw) Receipt {
	reply := Receipt{Cell: m.Cell, Gone: true}
	q := m.Quote
	if !k.timely(now, q) {
		reply.Refused = true
		return reply
	}
	k.learn(q)
	h := k.holding(m.Cell)
	if h == nil {
		return reply
	}
	if i := h.of(q); i >= 0 && h.records[i].quote.Sequence <= q.Sequence {
		k.void(now, h)
		h.records = slices.Delete(h.records, i, i+1)
		k.uncount(q.Site)
	}
	if m.Moved && m.Cell.Covers(m.To) {
		h.fences.Add(m.To, now+k.cfg.Lifetime)
	}
	return reply
}

// timely reports whether a quote is neither expired nor issued in the future.
func (k *holder) timely(now grid.Time, q *Quote) bool {
	if q.Issued > now+skewMax || q.Expires() <= now {
		k.counts.Rejected++
		return false
	}
	return true
}

// onReport notes that a cell exists and says so.
func (k *holder) onReport(now grid.Time, from grid.SiteID, m *Report, out *grid.Outbox) {
	reply := k.reporteds.New()
	*reply = k.note(now, from, m)
	out.Send(from, reply)
}

// note notes that a cell exists which one that is held here covers, or says
// which cell between them is to know of it instead.
func (k *holder) note(now grid.Time, from grid.SiteID, m *Report) Reported {
	reply := Reported{Token: m.Token}
	h := k.hold(now, m.Cell)
	if h == nil || !m.Cell.Covers(m.Child) {
		return reply
	}
	reply.Ring = k.rings.list[m.Cell].holdersDigest()
	if to, between := h.fences.Way(m.Child.Bits, m.Child); between {
		reply.Moved, reply.To, reply.Holders = true, to, h.fences.Holders(to)
		return reply
	}
	if h.fences.Add(m.Child, now+k.cfg.Lifetime) {
		f := h.fences.Get(m.Child)
		if slices.Contains(m.Holders, from) {
			f.Holders = m.Holders
		}
		f.Testify(from, m.Summary, now+k.cfg.Lifetime)
		k.reconsiderSummary(now, h, f)
	}
	h.fences.Group(h.cell.Prefix, now+k.cfg.Lifetime)
	reply.Strays = h.strays(now, m.Child)
	if !h.upkeep.clear && !h.cell.IsRoot() && h.upkeep.standing != displaced {
		reply.Strays++ // there may be some further up; who holds the cell knows that better than one that does not
	}
	reply.Fences = h.fences.Below(m.Child)
	return reply
}

// raise makes the holder of a cell report at once if what the cell has now exceeds
// what this site has said of it.
func (k *holder) raise(now grid.Time, h *holding, s trie.Summary) {
	if h.upkeep.word.raise(s) {
		k.hurry(h, max(now, h.upkeep.last+k.cfg.Timeout/4))
	}
}

// reconsiderSummary makes the holder of a cell report at once if what a cell below
// has, or that this is not known, shows that it has said too little.
func (k *holder) reconsiderSummary(now grid.Time, h *holding, f *trie.Fence) {
	s, ok := f.Summary(now)
	if ok {
		k.raise(now, h, s)
	} else if h.upkeep.word.retract() {
		k.hurry(h, max(now, h.upkeep.last+k.cfg.Timeout/4))
	}
}
