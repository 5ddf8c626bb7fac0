package lease

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Invite: the receiver shall be a child of the sender. It is repeated until there is
// an answer.
type Invite struct {
	Number uint64        // of the invitation; rises
	Path   []grid.SiteID // sites above the sender, the root first, and the sender
}

// Join: what a site says to its parent, at least every KinPeriod, or to a site that
// wants to be its parent.
type Join struct {
	Number uint64 // of the invitation; 0: the link is in a configuration
	Answer JoinAnswer
	Reason Objection
}

// JoinAnswer is what a site says to being a child.
type JoinAnswer uint8

// Answers. Numbers travel on the wire: append, never renumber.
const (
	AnswerYes   JoinAnswer = iota // it is one
	AnswerWaits                   // its users have not decided yet
	AnswerNo                      // it is none, or will not use the link; Reason says why
)

// Family: what a parent says to a child.
type Family struct {
	Number   uint64
	Path     []grid.SiteID // as in Invite
	Siblings []grid.SiteID // other children; for who was invited
	Reason   Objection     // not 0: the receiver is no child
	Reply    bool          // it answers a Join
}

// Objection says why there is no link, or why it is not used.
type Objection uint8

// Objections. Numbers travel on the wire: append, never renumber.
const (
	NoObjection   Objection = iota
	NotWanted               // its users, or its configuration, do not want that
	HasParent               // the invited site has a parent
	OtherRelation           // the two sites are linked in another way
	AboveItself             // the link makes a site its own ancestor
	TooDeep                 // more than DepthMax sites from the root down
	TooMany                 // no more links or invitations are kept
	NotInvited              // there is no such invitation (any more)
	Parted                  // one of the two has dropped the link
)

var objectionNames = [...]string{
	"", "the site does not want it", "the site has a parent", "the two sites are linked in another way", "a site would be above itself",
	"the hierarchy would be too deep", "too many links or invitations", "there is no such invitation any more", "the link was dropped",
}

// String says it in words. A newer site's objection prints as "refused".
func (o Objection) String() string {
	if int(o) < len(objectionNames) {
		return objectionNames[o]
	}
	return "refused"
}

// MessageKind implements grid.Message.
func (*Invite) MessageKind() grid.Kind { return wire.LeaseInvite }

// MessageKind implements grid.Message.
func (*Join) MessageKind() grid.Kind { return wire.LeaseJoin }

// MessageKind implements grid.Message.
func (*Family) MessageKind() grid.Kind { return wire.LeaseFamily }

// Proto implements wire.Message.
func (m *Invite) Proto() proto.Message {
	return &wirepb.LeaseInvite{Number: m.Number, Path: texts(m.Path)}
}

func decodeInvite(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseInvite
	if err := wire.Unmarshal(body, &p, wire.LeaseInvite); err != nil {
		return nil, err
	}
	var c check
	c.number(p.Number)
	m := &Invite{Number: p.Number, Path: c.sites("site above", p.Path, 1, DepthMax)}
	return wire.Checked(m, c.Err)
}

// Proto implements wire.Message.
func (m *Join) Proto() proto.Message {
	return &wirepb.LeaseJoin{Number: m.Number, Answer: uint32(m.Answer), Reason: uint32(m.Reason)}
}

func decodeJoin(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseJoin
	if err := wire.Unmarshal(body, &p, wire.LeaseJoin); err != nil {
		return nil, err
	}
	var c check
	c.Within("answer", int64(p.Answer), int64(AnswerYes), int64(AnswerNo))
	least := int64(0)
	if p.Answer == uint32(AnswerNo) {
		least = 1
	}
	c.Within("reason", int64(p.Reason), least, 255) // a newer site's reason is one, too
	return wire.Checked(&Join{Number: p.Number, Answer: JoinAnswer(p.Answer), Reason: Objection(p.Reason)}, c.Err)
}

// Proto implements wire.Message.
func (m *Family) Proto() proto.Message {
	return &wirepb.LeaseFamily{Number: m.Number, Path: texts(m.Path), Siblings: texts(m.Siblings), Reason: uint32(m.Reason), Reply: m.Reply}
}

func decodeFamily(_ grid.SiteID, body []byte) (grid.Message, error) {
	var p wirepb.LeaseFamily
	if err := wire.Unmarshal(body, &p, wire.LeaseFamily); err != nil {
		return nil, err
	}
	var c check
	c.Within("reason", int64(p.Reason), 0, 255)
	m := &Family{
		Number: p.Number, Path: c.sites("site above", p.Path, 1, DepthMax), Siblings: c.sites("sibling", p.Siblings, 0, SiblingsMax),
		Reason: Objection(p.Reason), Reply: p.Reply,
	}
	return wire.Checked(m, c.Err)
}

func texts(sites []grid.SiteID) []string {
	list := make([]string, len(sites))
	for i, s := range sites {
		list[i] = string(s)
	}
	return list
}

// sites reads a list of sites, of which none comes twice.
func (c *check) sites(what string, list []string, least, most int) []grid.SiteID {
	c.Within("number of: "+what, int64(len(list)), int64(least), int64(most))
	if c.Err != nil || len(list) == 0 {
		return nil
	}
	sites := make([]grid.SiteID, len(list))
	known := make(map[string]bool, len(list))
	for i, s := range list {
		c.site(what, s)
		if known[s] {
			c.Fail(what + " named twice")
		}
		known[s] = true
		sites[i] = grid.SiteID(s)
	}
	return sites
}
