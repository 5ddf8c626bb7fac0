package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// onReport notes that a cell exists and says so.
func (k *keeper) onReport(now grid.Time, from grid.SiteID, m *Report, out *grid.Outbox) {
	reply := k.reporteds.New()
	*reply = k.note(now, from, m)
	out.Send(from, reply)
}

// note notes that a cell exists which one that is held here covers, or says
// which cell between them is to know of it instead.
func (k *keeper) note(now grid.Time, from grid.SiteID, m *Report) Reported {
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
	if !h.upkeep.clear && !h.cell.IsRoot() {
		reply.Strays++ // there may be some further up
	}
	reply.Fences = h.fences.Below(m.Child)
	return reply
}

// raise makes the holder of a cell report at once if what the cell has now exceeds
// what this site has said of it.
func (k *keeper) raise(now grid.Time, h *holding, s trie.Summary) {
	if h.upkeep.word.raise(s) {
		k.hurry(h, max(now, h.upkeep.last+k.cfg.Timeout/4))
	}
}

// reconsiderSummary makes the holder of a cell report at once if what a cell below
// has, or that this is not known, shows that it has said too little.
func (k *keeper) reconsiderSummary(now grid.Time, h *holding, f *trie.Fence) {
	s, ok := f.Summary(now)
	if ok {
		k.raise(now, h, s)
	} else if h.upkeep.word.retract() {
		k.hurry(h, max(now, h.upkeep.last+k.cfg.Timeout/4))
	}
}
