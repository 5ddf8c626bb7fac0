package lease

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gridnode/grid"
)

// Bounds of what the links of a site make it keep and send.
const (
	DepthMax    = 16  // sites from the root of a hierarchy down
	SiblingsMax = 256 // that a parent names to a child
	offersMax   = 64  // invitations that wait for a decision
	claimsMax   = 16  // sites whose configurations say that this one is their child

	KinPeriod   = grid.Minute // between two words over a link
	kinRetryMin = 2 * grid.Second
	inviteMax   = grid.Hour        // the longest pause between two copies of an invitation
	inviteWait  = 10 * grid.Second // how long who invites waits for a first word
	offerSpan   = 7 * grid.Day     // how long an invitation stands
	leaveSpan   = grid.Day         // how long a parent is told that this site has left
)

// Consent says what becomes of an invitation to be another site's child.
type Consent uint8

// Consents.
const (
	ConsentAsk   Consent = iota // it waits for Accept
	ConsentAllow                // it is accepted if this site has no parent
	ConsentDeny                 // it is declined
)

var consentNames = [...]string{"ask", "allow", "deny"}

// String returns the name used in configuration files.
func (c Consent) String() string { return consentNames[c] }

// ParseConsent is the inverse of String.
func ParseConsent(s string) (Consent, error) {
	for c, name := range consentNames {
		if s == name {
			return Consent(c), nil
		}
	}
	return 0, fmt.Errorf("%q: want ask, allow or deny", s)
}

// ErrLinked is returned for links that there are already, in this way or another.
// Nothing has changed.
var ErrLinked = errors.New("linked already")

// Kinship is the place of one site in the hierarchy of delegation: its links by
// configuration and by invitation. Any site may invite any other to be its child; it
// becomes that if its users, or its configuration, agree. Children by invitation learn
// of each other and become siblings.
//
// Parent and child tell each other every KinPeriod that they are that, and the parent
// who is above it. So a site sees when configurations or invitations of several sites
// make it its own ancestor: one site of such a loop, the one with the smallest ID,
// suspends the link to its parent until the loop is gone.
//
// It is deterministic, reads no clock and is not safe for concurrent use.
type Kinship struct {
	site     grid.SiteID
	consent  Consent
	kin      map[grid.SiteID]*kin
	order    []*kin                      // all of them, by site
	claims   map[grid.SiteID]*kin        // what others' configurations say
	siblings map[grid.SiteID]grid.SiteID // as named by the parent by invitation: the sibling, and that parent
	alarms   grid.Alarms[*kin]
	numbers  uint64    // newest number of an invitation
	owed     bool      // the children are to be told what is new
	quiet    grid.Time // but not before
}

// KinshipConfig is what a Kinship is told.
type KinshipConfig struct {
	Site    grid.SiteID
	Links   []Link // by configuration
	Consent Consent
}

// Relinked says that Kinship.Links has changed.
type Relinked struct{}

// Answered says that an invited site has said something for the first time, or has not
// in time: Kin is how the link stands.
type Answered struct{ Kin }

// NewKinship returns the place of a site as configured. The error is that of
// CheckLinks, or says that there is no site or no such consent.
func NewKinship(cfg KinshipConfig) (*Kinship, error) {
	if cfg.Site == "" || cfg.Consent > ConsentDeny {
		return nil, fmt.Errorf("lease: kinship of site %q with consent %d: %w", cfg.Site, cfg.Consent, ErrBounds)
	}
	if err := CheckLinks(cfg.Site, cfg.Links); err != nil {
		return nil, err
	}
	ks := &Kinship{
		site: cfg.Site, consent: cfg.Consent, kin: make(map[grid.SiteID]*kin), claims: make(map[grid.SiteID]*kin),
		siblings: make(map[grid.SiteID]grid.SiteID), numbers: 1,
	}
	for _, l := range cfg.Links {
		k := &kin{Kin: Kin{Link: l, Origin: Configured}, pause: kinRetryMin}
		ks.insert(k)
		if l.Relation != Sibling { // siblings have nothing to say
			ks.alarms.Set(&k.alarm, 0)
		}
	}
	return ks, nil
}

// insert enters a link.
func (ks *Kinship) insert(k *kin) {
	k.alarm.Owner = k
	ks.kin[k.Site] = k
	at, _ := slices.BinarySearchFunc(ks.order, k, compareKin)
	ks.order = slices.Insert(ks.order, at, k)
}

func compareKin(a, b *kin) int { return cmp.Compare(a.Site, b.Site) }

// remove forgets a link, and with a parent the siblings that it has named.
func (ks *Kinship) remove(k *kin) {
	ks.alarms.Stop(&k.alarm)
	delete(ks.kin, k.Site)
	at, found := slices.BinarySearchFunc(ks.order, k, compareKin)
	if found {
		ks.order = slices.Delete(ks.order, at, at+1)
	}
	ks.orphan(k)
}

// orphan forgets the siblings that a parent has named.
func (ks *Kinship) orphan(parent *kin) {
	for s, by := range ks.siblings {
		if by == parent.Site {
			delete(ks.siblings, s)
		}
	}
}

// parent returns the link to this site's parent, suspended or not; nil if it has none.
func (ks *Kinship) parent() *kin {
	for _, k := range ks.order {
		if k.Relation == Parent && (k.Standing == Linked || k.Standing == Suspended) {
			return k
		}
	}
	return nil
}

// path returns the sites above this one, the root first, and this one. Of a loop it
// names each site once.
func (ks *Kinship) path() []grid.SiteID {
	var above []grid.SiteID
	if p := ks.parent(); p != nil && p.Standing == Linked {
		above = p.path
		if len(above) == 0 {
			above = []grid.SiteID{p.Site}
		}
	} else if p == nil {
		if c := ks.claim(); c != nil {
			above = c.path
		}
	}
	if at := slices.Index(above, ks.site); at >= 0 {
		above = above[at+1:]
	}
	if len(above) >= DepthMax {
		above = above[len(above)-DepthMax+1:]
	}
	return append(slices.Clone(above), ks.site)
}

// claim returns the claim that counts for who is above this site: the first by site.
func (ks *Kinship) claim() *kin {
	var first *kin
	for _, c := range ks.claims {
		if c.Standing == Linked && (first == nil || c.Site < first.Site) {
			first = c
		}
	}
	return first
}

// objection returns why a link to a parent, or to who says to be it, is not used.
func (ks *Kinship) objection(k *kin) Objection {
	at := slices.Index(k.path, ks.site)
	switch {
	case at >= 0 && (k.fresh || slices.Min(k.path[at:]) == ks.site):
		return AboveItself
	case at < 0 && len(k.path) >= DepthMax:
		return TooDeep
	}
	return NoObjection
}

// judge suspends a link to a parent, or takes it up again, and reports whether that
// has changed anything.
func (ks *Kinship) judge(now grid.Time, k *kin, out *grid.Outbox) bool {
	why := ks.objection(k)
	stands := Linked
	if why != NoObjection {
		stands = Suspended
	}
	k.fresh = false
	if k.Standing == stands && k.Reason == why {
		return false
	}
	ks.stand(now, k, stands, why, out)
	return true
}

// stand moves a link to a standing.
func (ks *Kinship) stand(now grid.Time, k *kin, s Standing, why Objection, out *grid.Outbox) {
	k.Standing, k.Reason, k.Since, k.Until = s, why, now, 0
	if s != Linked {
		ks.orphan(k)
	}
	ks.relinked(out)
}

func (ks *Kinship) relinked(out *grid.Outbox) { out.Local(&Relinked{}) }

// Links returns the neighbours that requests may be delegated to, in order: those that
// are configured or invited by site, then siblings by site.
func (ks *Kinship) Links() []Link {
	var links []Link
	for _, k := range ks.order {
		if k.Standing == Linked {
			links = append(links, k.Link)
		}
	}
	for _, s := range ks.named() {
		if len(links) < LinksMax {
			links = append(links, Link{s, Sibling})
		}
	}
	return links
}

// named returns the siblings that the parent has named and that are not linked in any
// other way, by site.
func (ks *Kinship) named() []grid.SiteID {
	var list []grid.SiteID
	for s := range ks.siblings {
		if k := ks.kin[s]; k == nil || k.Standing != Linked {
			list = append(list, s)
		}
	}
	slices.Sort(list)
	return list
}

// Kin returns all links as users see them: configured and invited, siblings that the
// parent has named, and claims of others' configurations that are refused; each by site.
func (ks *Kinship) Kin() []Kin {
	var list []Kin
	for _, k := range ks.order {
		list = append(list, k.Kin)
	}
	for _, s := range ks.named() {
		list = append(list, Kin{Link: Link{s, Sibling}, Origin: ByParent})
	}
	refused := len(list)
	for _, c := range ks.claims {
		if c.Standing == Suspended {
			list = append(list, c.Kin)
		}
	}
	slices.SortFunc(list[refused:], func(a, b Kin) int { return cmp.Compare(a.Site, b.Site) })
	return list
}

// Get returns the link to a site; ok is false if there is none.
func (ks *Kinship) Get(site grid.SiteID) (k Kin, ok bool) {
	if e := ks.kin[site]; e != nil {
		return e.Kin, true
	}
	if _, named := ks.siblings[site]; named {
		return Kin{Link: Link{site, Sibling}, Origin: ByParent}, true
	}
	return Kin{}, false
}

// Invite wants a site to be this one's child. Answered says what it makes of that at
// first; the invitation stands for a week. The error wraps ErrBounds, ErrLoop or
// ErrLinked and says what is wrong.
func (ks *Kinship) Invite(now grid.Time, site grid.SiteID, out *grid.Outbox) error {
	ks.expire(now, out)
	k := ks.kin[site]
	switch {
	case site == "" || len(site) > siteIDMax:
		return fmt.Errorf("invite a site without a name: %w", ErrBounds)
	case site == ks.site:
		return fmt.Errorf("%s cannot be its own parent: %w", site, ErrLoop)
	case slices.Contains(ks.path(), site):
		return fmt.Errorf("%s is above this site: %w", site, ErrLoop)
	case k != nil && k.Standing == Offered:
		return fmt.Errorf("%s has invited this site to be its child: accept or drop that first: %w", site, ErrLinked)
	case k != nil && k.Standing != Invited && k.Standing != Declined:
		return fmt.Errorf("%s is this site's %s by %s, %s: %w", site, k.Relation, k.Origin, k.Standing, ErrLinked)
	case k == nil && len(ks.kin) >= LinksMax:
		return fmt.Errorf("%d links, no more are kept: %w", LinksMax, ErrBounds)
	}
	if k == nil {
		k = &kin{Kin: Kin{Link: Link{Site: site}, Origin: ByInvitation}}
		ks.insert(k)
	}
	ks.numbers = max(ks.numbers+1, uint64(max(now, 1)))
	k.Relation, k.Standing, k.Reason, k.Since, k.Until = Child, Invited, NoObjection, now, now+offerSpan
	k.number, k.pause, k.awaited = ks.numbers, kinRetryMin, true
	out.Save((*kinRecord)(k))
	ks.relinked(out) // it may have been named as a sibling
	ks.speak(now, k, out)
	return nil
}

// Accept makes this site a child of the one that has invited it. It returns ErrUnknown
// if there is no invitation, ErrLinked if this site has a parent, ErrLoop if the link
// would make it its own ancestor.
func (ks *Kinship) Accept(now grid.Time, site grid.SiteID, out *grid.Outbox) error {
	ks.expire(now, out)
	k := ks.kin[site]
	if k == nil || k.Standing != Offered {
		return fmt.Errorf("%s has not invited this site, or not any more: %w", site, ErrUnknown)
	}
	switch ks.refusal(k.path) {
	case HasParent:
		return fmt.Errorf("%s is this site's parent: drop that link first: %w", ks.parent().Site, ErrLinked)
	case AboveItself:
		return fmt.Errorf("%s is below this site: %w", site, ErrLoop)
	case TooDeep:
		return fmt.Errorf("%s is the last of %d sites from the root down, which is as deep as it goes: %w", site, DepthMax, ErrLoop)
	}
	ks.join(now, k, out)
	return nil
}

// join makes this site the child of one that has invited it.
func (ks *Kinship) join(now grid.Time, k *kin, out *grid.Outbox) {
	k.fresh, k.pause = true, kinRetryMin
	ks.stand(now, k, Linked, NoObjection, out)
	out.Save((*kinRecord)(k))
	ks.speak(now, k, out)
}

// Drop undoes a link that was made by invitation, withdraws an invitation, or declines
// one. It returns ErrUnknown if there is none, and ErrLinked for a link that comes from
// elsewhere: the text says from where.
func (ks *Kinship) Drop(now grid.Time, site grid.SiteID, out *grid.Outbox) error {
	ks.expire(now, out)
	k := ks.kin[site]
	switch parent, named := ks.siblings[site]; {
	case k == nil && named:
		return fmt.Errorf("%s is a sibling by way of %s: drop the link to that one: %w", site, parent, ErrLinked)
	case k == nil:
		return fmt.Errorf("no link to %s: %w", site, ErrUnknown)
	case k.Origin == Configured:
		return fmt.Errorf("%s is this site's %s by delegation.links of its configuration: change that: %w", site, k.Relation, ErrLinked)
	}
	switch {
	case k.Relation == Child:
		out.Delete((*kinRecord)(k))
		if k.Standing != Declined {
			out.Send(site, &Family{Number: k.number, Path: ks.path(), Reason: Parted})
		}
		ks.remove(k)
		k.Standing, k.Reason = Declined, Parted
		ks.answered(k, out) // nothing comes any more
		ks.relinked(out)
		ks.announce(now, out)
	case k.Standing == Offered:
		ks.leave(now, k, out)
	case k.Standing != Leaving:
		ks.leave(now, k, out)
		ks.relinked(out)
	}
	return nil
}

// leave tells a parent, until it has confirmed it, that this site is not its child.
func (ks *Kinship) leave(now grid.Time, k *kin, out *grid.Outbox) {
	ks.orphan(k)
	k.Standing, k.Reason, k.Since, k.Until, k.pause = Leaving, NoObjection, now, now+leaveSpan, kinRetryMin
	out.Save((*kinRecord)(k))
	ks.speak(now, k, out)
}

// refusal returns why this site cannot be the child of a site with that path now.
func (ks *Kinship) refusal(path []grid.SiteID) Objection {
	switch {
	case ks.parent() != nil:
		return HasParent
	case slices.Contains(path, ks.site):
		return AboveItself
	case len(path) >= DepthMax:
		return TooDeep
	}
	return NoObjection
}
