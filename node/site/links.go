package site

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
)

// ErrUnknownLink: this site has no link to that one, or no invitation of it.
var ErrUnknownLink = errors.New("no such link")

// ErrLink is wrapped by refusals of changes of links; the text says why.
var ErrLink = errors.New("refused")

// ChangeLink changes a link of the hierarchy of delegation. The answer is a
// *LinkAnswer: for an invitation it comes with the first word of the other site, or
// after ten seconds without one.
type ChangeLink struct {
	Token  uint64
	Change LinkChange
	Site   grid.SiteID // the other one
}

// LinkChange is what becomes of a link.
type LinkChange uint8

// Changes of links.
const (
	InviteLink LinkChange = iota + 1 // the other shall be this site's child
	AcceptLink                       // this site becomes the child of the one that invited it
	DropLink                         // no link any more, or no invitation
)

// LinkAnswer answers ChangeLink.
type LinkAnswer struct {
	Link lease.Kin // after the change; of one that is gone only the site
	Err  error     // wraps ErrLink, ErrUnknownLink, lease.ErrBounds
}

// Links returns the links of this site, and why one is not used.
func (s *Site) Links() []lease.Kin {
	if s.kinship == nil {
		return nil
	}
	return s.kinship.Kin()
}

// changeLink invites, accepts or drops on behalf of a user.
func (s *Site) changeLink(now grid.Time, in *ChangeLink, out *grid.Outbox) {
	if s.kinship == nil {
		out.Answer(in.Token, &LinkAnswer{Err: fmt.Errorf("this site is alone: %w", ErrLink)})
		return
	}
	var err error
	switch in.Change {
	case InviteLink:
		if err = s.kinship.Invite(now, in.Site, out); err == nil {
			s.inviting[in.Site] = append(s.inviting[in.Site], in.Token)
			return
		}
	case AcceptLink:
		err = s.kinship.Accept(now, in.Site, out)
	case DropLink:
		err = s.kinship.Drop(now, in.Site, out)
	}
	switch {
	case errors.Is(err, lease.ErrUnknown):
		err = fmt.Errorf("%w (%w)", ErrUnknownLink, err)
	case errors.Is(err, lease.ErrLinked), errors.Is(err, lease.ErrLoop):
		err = fmt.Errorf("%w: %w", ErrLink, err)
	}
	link, there := s.kinship.Get(in.Site)
	if !there {
		link.Site = in.Site
	}
	out.Answer(in.Token, &LinkAnswer{Link: link, Err: err})
}

// linkAnswered passes the first word of an invited site to whoever invited it.
func (s *Site) linkAnswered(in *lease.Answered, out *grid.Outbox) {
	a := &LinkAnswer{Link: in.Kin}
	if in.Standing == lease.Declined {
		a.Err = fmt.Errorf("%w: %s", ErrLink, in.Reason)
	}
	for _, token := range s.inviting[in.Site] {
		out.Answer(token, a)
	}
	delete(s.inviting, in.Site)
}

// linkInput handles what the kinship tells the site, and reports whether it was that.
func (s *Site) linkInput(in grid.Input, out *grid.Outbox) bool {
	switch in := in.(type) {
	case *lease.Relinked:
		s.matches.SetLinks(s.kinship.Links())
		for _, k := range s.kinship.Kin() {
			if k.Standing == lease.Suspended && k.Relation == lease.Parent && len(s.notices) < noticesMax {
				s.notices = append(s.notices, Notice{
					"the link to a parent is not used; 'gridnode links' shows all links, delegation.links is where they are configured",
					[]any{"parent", k.Site, "reason", k.Reason},
				})
			}
		}
	case *lease.Answered:
		s.linkAnswered(in, out)
	default:
		return false
	}
	return true
}

// Notice is what people who run a site should know: a text, which is the same each
// time, and names and values that tell what it is about.
type Notice struct {
	Text  string
	About []any
}

// noticesMax bounds what waits to be logged.
const noticesMax = 16

// Notices returns what people who run the site should know since the last time, for
// the log.
func (s *Site) Notices() []Notice {
	list := s.notices
	s.notices = nil
	return list
}

// isKinship reports whether a message is about links, and not about leases.
func isKinship(m grid.Message) bool {
	switch m.(type) {
	case *lease.Invite, *lease.Join, *lease.Family:
		return true
	}
	return false
}
