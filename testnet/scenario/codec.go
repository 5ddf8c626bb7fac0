package scenario

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
)

// Codec has messages travel as those of real nodes do. A virtual network hands over what sites say
// as it is.
type Codec map[grid.Kind]*wire.Protocol

// NewCodec returns the protocols of the members of a federation; nil: of an open one.
func NewCodec(f *member.Federation) Codec {
	by := make(Codec)
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

// Travel returns a message as it arrives: encoded by who sends it, decoded and verified by who
// receives it. The error is the decoder's.
func (c Codec) Travel(from grid.SiteID, message grid.Message) (grid.Message, error) {
	p := c[message.MessageKind()]
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
