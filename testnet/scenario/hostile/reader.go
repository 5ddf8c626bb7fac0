package hostile

import (
	"bufio"
	"bytes"

	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/member"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// codecs returns the protocols of real nodes, by the kinds of their messages.
func codecs(f *member.Federation) map[grid.Kind]*wire.Protocol {
	by := make(map[grid.Kind]*wire.Protocol)
	for _, p := range []*wire.Protocol{
		&market.Protocol, &directory.Protocol, &lease.Protocol, &bank.Protocol, &fee.Protocol, &dataset.Protocol,
		&sibling.Protocol, &record.Protocol, member.NewProtocol(f),
	} {
		for kind := range p.Decoders {
			by[kind] = p
		}
	}
	return by
}

// travel returns a message as it arrives: encoded by who sends it, decoded and verified by who
// receives it. The error is the decoder's.
func (t *town) travel(from grid.SiteID, message grid.Message) (grid.Message, error) {
	p := t.codecs[message.MessageKind()]
	m, ok := message.(wire.Message)
	if p == nil || !ok {
		return nil, wire.Malformed("kind %d is of no protocol", message.MessageKind())
	}
	frame, err := wire.Encode(m)
	if err != nil {
		return nil, err
	}
	body, err := wire.ReadFrame(bufio.NewReader(bytes.NewReader(frame)))
	if err != nil {
		return nil, err
	}
	return p.Decode(from, body)
}

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
	message, err := r.t.travel(d.From, d.Message)
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
