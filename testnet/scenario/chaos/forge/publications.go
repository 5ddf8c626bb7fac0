package forge

import (
	"maps"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/draw"
)

// Publications are some of what sites have published, and all that holders say to have dropped.
type Publications struct {
	n      *testnet.Network
	copies map[int][]*Publication // of messages to a holder, the latest
	gone   map[withdrawal]uint64  // number of the latest quote that a holder says to have dropped
}

// Publication is a message that has been on its way to a holder.
type Publication struct {
	directory.Publish
	From int
}

// withdrawal is what a site has taken back from a holder.
type withdrawal struct {
	holder int
	of     grid.SiteID
}

// The bounds of Publications.
const (
	copiesKept   = 32 // messages to a holder that are remembered
	copiesChosen = 20 // one of so many is
)

func watchPublications(n *testnet.Network) *Publications {
	p := &Publications{n: n, copies: make(map[int][]*Publication), gone: make(map[withdrawal]uint64)}
	n.Observe(testnet.Observer{Send: p.send, Fault: p.fault})
	return p
}

// To returns those to a holder.
func (p *Publications) To(holder int) []*Publication { return p.copies[holder] }

// fault: who has been down knows nothing of the quotes of others.
func (p *Publications) fault(_ grid.Time, f *testnet.Fault) {
	if f.Healing() && f.Kind.Kills() {
		maps.DeleteFunc(p.gone, func(of withdrawal, _ uint64) bool { return of.holder == f.Sites[0] })
	}
}

// send remembers some publications, and all withdrawals.
func (p *Publications) send(_ grid.Time, from int, to grid.SiteID, m grid.Message) {
	switch m := m.(type) {
	case *directory.Published:
		for i := range m.Receipts {
			if r := &m.Receipts[i]; r.Gone && !r.Refused {
				of := withdrawal{from, to}
				p.gone[of] = max(p.gone[of], m.Sequence)
			}
		}
	case *directory.Publish:
		holder, known := p.n.Index(to)
		if !known || holder == from || draw.Mix(m.Quote.Sequence, draw.Text(string(m.Quote.Site)))%copiesChosen != 0 {
			return
		}
		list := p.copies[holder]
		if len(list) == copiesKept {
			list = list[1:]
		}
		p.copies[holder] = append(list, &Publication{directory.Publish{Quote: m.Quote, Copies: slices.Clone(m.Copies)}, from})
	}
}
