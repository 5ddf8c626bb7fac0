package hostile

import (
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// hook stands around a site: it reads what hostile members say as a node does, and what a
// hostile one says is a lie.
func (t *town) hook(i int, s *scenario.Enrolled) testnet.Site {
	r := &reader{Enrolled: s, t: t, at: i}
	if lie := t.liars[i]; lie != "" {
		l := &liar{reader: r, does: lie, first: make(map[grid.SiteID]*directory.Quote)}
		t.forgers[i].liar = l
		return l
	}
	return r
}

// reader drops what the decoders of a real node do not take.
type reader struct {
	*scenario.Enrolled
	t  *town
	at int
}

// Step implements testnet.Site.
func (r *reader) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	d, ok := in.(*grid.Delivery)
	if !ok {
		r.Enrolled.Step(now, in, out)
		return
	}
	from := r.t.index[d.From]
	if r.t.honest(from) {
		r.Enrolled.Step(now, in, out)
		return
	}
	what, forged := r.t.sealed[d.Message]
	delete(r.t.sealed, d.Message)
	message, err := r.t.codec.Travel(d.From, d.Message)
	if err != nil {
		if forged {
			f := r.t.forged[what]
			f.Refused++
			r.t.forged[what] = f
		}
		return
	}
	r.Enrolled.Step(now, &grid.Delivery{From: d.From, Message: message}, out)
}
