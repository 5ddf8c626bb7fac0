package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// onPublish stores the copies of a quote and answers about those whose site wants
// to know or has to do something.
func (d *Directory) onPublish(now grid.Time, from grid.SiteID, m *Publish, out *grid.Outbox) {
	if m.Quote.Site != from || len(m.Copies) > CopiesMax {
		d.Rejected++
		return
	}
	receipts := d.receiptChunk()
	for i := range m.Copies {
		c := &m.Copies[i]
		if r := d.keep(now, m.Quote, c); !c.Quiet || c.Ring != r.Ring || r.Moved || r.Refused || r.Closing && !c.Safe || r.Closed {
			receipts = append(receipts, r)
		}
	}
	if len(receipts) > 0 {
		d.receiptSpace = d.receiptSpace[len(receipts):]
		d.answer(from, m.Quote.Sequence, receipts, out)
	}
}

// answer sends receipts, which belong to the message from then on.
func (d *Directory) answer(to grid.SiteID, sequence uint64, receipts []Receipt, out *grid.Outbox) {
	m := d.answers.New()
	*m = Published{Sequence: sequence, Receipts: receipts}
	out.Send(to, m)
}

// answerOne sends one receipt.
func (d *Directory) answerOne(to grid.SiteID, sequence uint64, r Receipt, out *grid.Outbox) {
	receipts := append(d.receiptChunk(), r)
	d.receiptSpace = d.receiptSpace[1:]
	d.answer(to, sequence, receipts, out)
}

// receiptChunk returns an empty slice with room for an answer, cut from a larger one.
func (d *Directory) receiptChunk() []Receipt {
	if len(d.receiptSpace) < CopiesMax {
		d.receiptSpace = make([]Receipt, 16*CopiesMax)
	}
	return d.receiptSpace[:0:CopiesMax]
}

// keep stores a quote in a cell, or says where it belongs.
func (d *Directory) keep(now grid.Time, q *Quote, m *Copy) Receipt {
	reply := Receipt{Cell: m.Cell}
	at := q.at(m.Cell.attribute)
	if q.Withdrawn || !d.timely(now, q) || !m.Cell.Contains(at) || m.Guest && !m.Cell.Covers(m.Skip) {
		reply.Refused = true
		return reply
	}
	if d.learn(q) != nil {
		return reply // late: a newer one has been here, or has been withdrawn
	}
	h := d.hold(now, m.Cell)
	if h == nil {
		reply.Refused = true
		return reply
	}
	reply.Ring = d.rings[m.Cell].known()
	d.doubtRing(now, m.Cell, m.Ring)
	skip := trie.Prefix{}
	if m.Guest {
		skip = m.Skip
	}
	if reply.To, reply.Moved = h.fences.Way(at, skip); reply.Moved {
		reply.Fences, _ = h.fences.List()
		reply.Holders = h.fences.Holders(reply.To)
	}
	i := h.of(q)
	news := i < 0 && m.Cell.attribute != Free || i >= 0 && !h.entries[i].quote.sameTerms(q)
	switch {
	case i >= 0 && h.entries[i].quote.Sequence > q.Sequence:
		return reply // late, too
	case i < 0 && reply.Moved:
		reply.Absent = true
		return reply // it is not published before it is where it belongs
	case i < 0:
		if len(h.entries) >= crowdFactor*d.cfg.CellMax {
			d.expire(now, h)
		}
		if len(h.entries) >= crowdFactor*d.cfg.CellMax || !d.count(q.Site) {
			reply.Refused = true
			return reply
		}
	default:
		h.entries = slices.Delete(h.entries, i, i+1)
	}
	if news {
		d.void(now, h)
	}
	d.raise(now, h, q.summary())
	h.put(entry{at: at, quote: q, expires: now + min(q.Expires()-now, q.Lifetime), guest: m.Guest, safe: m.Safe})
	if !reply.Moved && !m.Guest {
		h.life.Published(m.Safe)
		stage := h.life.Stage(now, d.cfg.Lifetime)
		reply.Closing, reply.Closed = stage >= trie.Closing, stage == trie.Closed
		h.split(now, d.cfg.CellMax, now+d.cfg.Lifetime)
		d.upkeepAt = min(d.upkeepAt, h.upkeep.next)
	}
	return reply
}

// onWithdraw drops a copy.
func (d *Directory) onWithdraw(now grid.Time, m *Withdraw) Receipt {
	reply := Receipt{Cell: m.Cell, Gone: true}
	q := m.Quote
	if !d.timely(now, q) {
		reply.Refused = true
		return reply
	}
	d.learn(q)
	h := d.holding(m.Cell)
	if h == nil {
		return reply
	}
	if i := h.of(q); i >= 0 && h.entries[i].quote.Sequence <= q.Sequence {
		if m.Cell.attribute != Free || q.Withdrawn {
			d.void(now, h)
		}
		h.entries = slices.Delete(h.entries, i, i+1)
		d.uncount(q.Site)
	}
	if m.Moved && m.Cell.Covers(m.To) {
		h.fences.Add(m.To, now+d.cfg.Lifetime)
	}
	return reply
}

// timely reports whether a quote is neither expired nor issued in the future.
func (d *Directory) timely(now grid.Time, q *Quote) bool {
	if q.Issued > now+skewMax || q.Expires() <= now {
		d.Rejected++
		return false
	}
	return true
}

// pageBytesMax leaves room in a frame for what surrounds the quotes of a page.
const (
	pageBytesMax = 51 << 10
	copyBytesMax = 40 << 10 // of a page for a mirror, which has more beside them
)

// onScan returns the next quotes of a cell. For a cell that is not held here the
// page says so.
func (d *Directory) onScan(now grid.Time, from grid.SiteID, m *Scan) *Page {
	p := d.pages.New()
	p.Token, p.Cell = m.Token, m.Cell
	h := d.holding(m.Cell)
	if h == nil {
		return p
	}
	if h.mature && h.lapsed(now) {
		d.doubt(now, h)
	}
	p.Ring = d.rings[m.Cell].known()
	d.doubtRing(now, m.Cell, m.Ring)
	p.Held, p.Mature = true, h.mature && !h.life.Leaves()
	switch {
	case m.Limit == 0:
		p.Count, p.Sum = h.stand(now)
	case m.Copy:
		h.demand.heard(now, int64(m.Answered), d.cfg.Replicas)
		p.Mirrors = d.mirrors(now, h)
	default:
		h.demand.heard(now, 1, d.cfg.Replicas)
		p.Mirrors = d.mirrors(now, h)
	}
	d.answerFrom(now, h, m, p)
	if m.Copy {
		d.fillCopy(now, from, h, m, p)
	}
	return p
}

// answerFrom fills a page with what a cell has.
func (d *Directory) answerFrom(now grid.Time, h *holding, m *Scan, p *Page) {
	if m.Limit == 0 {
		p.HasFences = h.fences.Edges() != m.Fences
		return
	}
	d.fillPage(now, h, m, p)
	if fences, digest := h.fences.List(); digest != m.Fences {
		p.Fences, p.HasFences = fences, true
		p.Hints = h.hints(m.At, m.Descending, p.Barren)
	}
}

// fillPage puts the quotes asked for into a page, and the cells that need not be
// asked before the last of them.
func (d *Directory) fillPage(now grid.Time, h *holding, m *Scan, p *Page) {
	quotes := d.quoteChunk()
	limit, size, most := min(int(m.Limit), PageMax), 0, pageBytesMax
	if m.Copy {
		limit, most = copyMax, copyBytesMax
		quotes = make([]*Quote, 0, min(copyMax, len(h.entries)))
	}
	step, i := 1, h.index(m.At)
	if m.Descending {
		step = -1
		if i == len(h.entries) || h.entries[i].at != m.At {
			i--
		}
	}
	for ; i >= 0 && i < len(h.entries); i += step {
		e := &h.entries[i]
		if now >= e.expires || !m.Filter.Match(e.quote) {
			continue
		}
		size += len(e.quote.Sealed) + 4
		if len(quotes) == limit || size > most {
			p.More = true
			break
		}
		quotes = append(quotes, e.quote)
	}
	p.Quotes = quotes
	if !m.Copy {
		d.quoteSpace = d.quoteSpace[len(quotes):]
	}
	if p.Mature && m.Filter.need().Selective() {
		p.Barren = h.barren(now, m, p)
	}
}

// quoteChunk returns an empty slice with room for a page, cut from a larger one.
func (d *Directory) quoteChunk() []*Quote {
	if len(d.quoteSpace) < PageMax {
		d.quoteSpace = make([]*Quote, 4*PageMax)
	}
	return d.quoteSpace[:0:PageMax]
}

// onReport notes that a cell exists which one that is held here covers, or says
// which cell between them is to know of it instead.
func (d *Directory) onReport(now grid.Time, from grid.SiteID, m *Report) Reported {
	reply := Reported{Token: m.Token}
	h := d.hold(now, m.Cell)
	if h == nil || !m.Cell.Covers(m.Child) {
		return reply
	}
	reply.Ring = d.rings[m.Cell].known()
	if to, between := h.fences.Way(m.Child.Bits, m.Child); between {
		reply.Moved, reply.To, reply.Holders = true, to, h.fences.Holders(to)
		return reply
	}
	if h.fences.Add(m.Child, now+d.cfg.Lifetime) {
		f := h.fences.Get(m.Child)
		if slices.Contains(m.Holders, from) {
			f.Holders = m.Holders
		}
		f.Testify(from, m.Summary, now+d.cfg.Lifetime)
		d.reconsiderSummary(now, h, f)
	}
	h.fences.Group(h.cell.Prefix, now+d.cfg.Lifetime)
	reply.Strays = h.strays(now, m.Child)
	if !h.upkeep.clear && !h.cell.IsRoot() {
		reply.Strays++ // there may be some further up
	}
	reply.Fences = h.fences.Below(m.Child)
	return reply
}
