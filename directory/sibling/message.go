package sibling

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Bounds of messages.
const (
	siteMax      = 128 // bytes of a site's ID
	AuthorityMax = 64  // bytes of an authority's name
	othersMax    = 16  // sites that a Reply names
	messageMax   = 4 << 10
)

// Greet asks a site whether it will be a sibling.
type Greet struct {
	Authority string // of who asks; empty: none
	Kin       bool   // who asks is set to gossip with the site, whatever lies between them
	Poor      bool   // who asks has less than half of the siblings that it would have
}

// MessageKind returns wire.GossipGreet.
func (*Greet) MessageKind() grid.Kind { return wire.GossipGreet }

// Reply answers a Greet. Not taken and unasked it says that its sender is no sibling, or
// not any more.
type Reply struct {
	Taken  bool
	Others []grid.SiteID // whom one may greet as well; at most othersMax
	Missed grid.SiteID   // unasked: a sibling of its sender that seems to have died; Others have been told
}

// MessageKind returns wire.GossipReply.
func (*Reply) MessageKind() grid.Kind { return wire.GossipReply }

// Protocol is how siblings agree over libp2p.
var Protocol = wire.Protocol{
	ID:       "/gridnode/sibling/1.0.0",
	Decoders: map[grid.Kind]wire.Decoder{wire.GossipGreet: decodeGreet, wire.GossipReply: decodeReply},
}

// Proto implements wire.Message.
func (m *Greet) Proto() proto.Message {
	return &wirepb.SiblingGreet{Authority: m.Authority, Kin: m.Kin, Poor: m.Poor}
}

// Proto implements wire.Message.
func (m *Reply) Proto() proto.Message {
	p := &wirepb.SiblingReply{Taken: m.Taken, Missed: string(m.Missed)}
	for _, s := range m.Others {
		p.Others = append(p.Others, string(s))
	}
	return p
}

func decodeGreet(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.SiblingGreet
	if err := wire.Unmarshal(body, &p, wire.GossipGreet); err != nil {
		return nil, err
	}
	if len(p.Authority) > AuthorityMax {
		return nil, wire.Malformed("authority of %d bytes, at most %d", len(p.Authority), AuthorityMax)
	}
	return &Greet{p.Authority, p.Kin, p.Poor}, nil
}

func decodeReply(_ grid.SiteID, body []byte) (grid.Message, error) {
	if len(body) > messageMax {
		return nil, wire.Malformed("reply of %d bytes, at most %d", len(body), messageMax)
	}
	var p wirepb.SiblingReply
	if err := wire.Unmarshal(body, &p, wire.GossipReply); err != nil {
		return nil, err
	}
	if len(p.Others) > othersMax {
		return nil, wire.Malformed("%d sites, at most %d", len(p.Others), othersMax)
	}
	if len(p.Missed) > siteMax {
		return nil, wire.Malformed("missed site of %d bytes, at most %d", len(p.Missed), siteMax)
	}
	m := &Reply{Taken: p.Taken, Missed: grid.SiteID(p.Missed)}
	for _, s := range p.Others {
		if len(s) == 0 || len(s) > siteMax {
			return nil, wire.Malformed("site of %d bytes, want 1 to %d", len(s), siteMax)
		}
		m.Others = append(m.Others, grid.SiteID(s))
	}
	return m, nil
}
