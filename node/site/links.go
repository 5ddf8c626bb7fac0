package site

import (
	"errors"
	"fmt"

	"gridnode/grid"
	"gridnode/lease"
)

// links is the part that owns the links of the hierarchy of delegation, as they are
// agreed with other sites while the site runs.
type links struct {
	*base
	kinship  *lease.Kinship
	matches  *lease.Matchmaker
	siblings *siblings                // nil: links have no part in whom this site gossips with
	inviting map[grid.SiteID][]uint64 // tokens of users who invited sites
}

func (*links) takes(b *board) {
	of := func(s *Site) *links { return s.links }
	hear(b, of, (*links).message, kinshipKinds...)
	take(b, of, (*links).change)
	take(b, of, (*links).relinked)
	take(b, of, (*links).answered)
}

func (k *links) tick(now grid.Time, out *grid.Outbox) { k.kinship.Step(now, grid.Tick{}, out) }

func (k *links) nextTimer() grid.Time { return k.kinship.NextTimer() }

func (k *links) keeps() []string { return []string{lease.LinkPrefix} }

func (k *links) recover(now grid.Time, stored records, out *grid.Outbox) error {
	err := k.kinship.Recover(now, stored.each, out)
	k.matches.SetLinks(k.kinship.Links())
	if k.siblings != nil {
		k.siblings.relate(now, out)
	}
	return err
}

// message is for the kinship. What did not arrive is repeated in any case.
func (k *links) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	if _, ok := in.(*grid.Delivery); ok {
		k.kinship.Step(now, in, out)
	}
}

// change invites, accepts or drops on behalf of a user.
func (k *links) change(now grid.Time, in *ChangeLink, out *grid.Outbox) {
	var err error
	switch in.Change {
	case InviteLink:
		if err = k.kinship.Invite(now, in.Site, out); err == nil {
			k.inviting[in.Site] = append(k.inviting[in.Site], in.Token)
			return
		}
	case AcceptLink:
		err = k.kinship.Accept(now, in.Site, out)
	case DropLink:
		err = k.kinship.Drop(now, in.Site, out)
	}
	switch {
	case errors.Is(err, lease.ErrUnknown):
		err = fmt.Errorf("%w (%w)", ErrUnknownLink, err)
	case errors.Is(err, lease.ErrLinked), errors.Is(err, lease.ErrLoop):
		err = fmt.Errorf("%w: %w", ErrLink, err)
	}
	link, there := k.kinship.Get(in.Site)
	if !there {
		link.Site = in.Site
	}
	out.Answer(in.Token, &LinkAnswer{Link: link, Err: err})
}

// answered passes the first word of an invited site to whoever invited it.
func (k *links) answered(_ grid.Time, in *lease.Answered, out *grid.Outbox) {
	a := &LinkAnswer{Link: in.Kin}
	if in.Standing == lease.Declined {
		a.Err = fmt.Errorf("%w: %s", ErrLink, in.Reason)
	}
	for _, token := range k.inviting[in.Site] {
		out.Answer(token, a)
	}
	delete(k.inviting, in.Site)
}

// relinked: the links are others than before.
func (k *links) relinked(now grid.Time, _ *lease.Relinked, out *grid.Outbox) {
	k.matches.SetLinks(k.kinship.Links())
	if k.siblings != nil {
		k.siblings.relate(now, out)
	}
	for _, kin := range k.kinship.Kin() {
		if kin.Standing == lease.Suspended && kin.Relation == lease.Parent && len(k.notices) < noticesMax {
			k.notices = append(k.notices, Notice{
				"the link to a parent is not used; 'gridnode links' shows all links, delegation.links is where they are configured",
				[]any{"parent", kin.Site, "reason", kin.Reason},
			})
		}
	}
}

// Notice is what people who run a site should know: a text, which is the same each
// time, and names and values that tell what it is about.
type Notice struct {
	Text  string
	About []any
}

// noticesMax bounds what waits to be logged.
const noticesMax = 16
