package sibling

import (
	"errors"
	"fmt"
	"slices"

	"gridnode/grid"
)

// auditLate is how long after it was due something may wait still: a timer may be late.
const auditLate = grid.Minute

// Audit returns which bound a circle exceeds, which of its lists is not what the others come to, or what
// it waits for without a timer; nil: there is nothing of that kind. It is asked of a circle at rest,
// between two Steps.
func (c *Circle) Audit(now grid.Time) error {
	return errors.Join(c.auditLists(now), c.auditMembers(now), c.auditNames(now), c.auditTimers(now))
}

// auditLists looks at who is in which list.
func (c *Circle) auditLists(now grid.Time) error {
	var sites []grid.SiteID
	sieve := uint64(0)
	for i := range c.members {
		site := c.members[i].site
		if sites = append(sites, site); site == c.cfg.Self || i > 0 && site <= sites[i-1] {
			return fmt.Errorf("sibling %s is listed twice, out of order, or is this site", site)
		}
		if c.name(site) != nil {
			return fmt.Errorf("sibling %s counts as none, too", site)
		}
		sieve |= sieveOf(site)
	}
	for i := range c.names {
		site := c.names[i].site
		if site == c.cfg.Self || i > 0 && site <= c.names[i-1].site {
			return fmt.Errorf("%s is known twice, out of order, or is this site", site)
		}
		if kin := slices.Contains(c.kin, site); kin != c.names[i].kin {
			return fmt.Errorf("%s is greeted as kin (%t), and is kin (%t)", site, c.names[i].kin, kin)
		}
	}
	for _, site := range c.kin {
		if site != c.cfg.Self && c.member(site) == nil && c.name(site) == nil {
			return fmt.Errorf("%s is kin, and neither a sibling nor known", site)
		}
	}
	switch {
	case !slices.Equal(sites, c.sites) || !slices.Equal(c.watched(), c.watchers):
		return fmt.Errorf("the siblings are %v, the owner was told %v, of whom it is watched by %v", sites, c.sites, c.watchers)
	case sieve != c.sieve:
		return fmt.Errorf("the siblings %v are found by %b", sites, c.sieve)
	case c.room() < 0 && c.round > now || c.count(true) > KinMax+len(c.kin):
		return fmt.Errorf("%d siblings are too many, of whom are %d kin", len(sites), c.count(true))
	case len(c.names) > namesMax+len(c.kin)+greetsMax || c.budget < 0 || c.budget > greetsMax:
		return fmt.Errorf("%d sites are known, and %d may be greeted", len(c.names), c.budget)
	}
	return nil
}

// auditMembers looks at when siblings are missed, and given up.
func (c *Circle) auditMembers(now grid.Time) error {
	for i := range c.members {
		m := &c.members[i]
		latest := now + max(againMax+againMax/32+lateMin, c.cfg.Silence/3)
		if m.asks > 0 {
			latest = max(m.asked+max(c.cfg.Silence/3*2, askMin), now+1)
		}
		switch {
		case m.due > latest:
			return fmt.Errorf("sibling %s is missed at %v, and was asked %d times since %v", m.site, m.due, m.asks, m.asked)
		case !c.unknown && m.due < c.missing:
			return fmt.Errorf("sibling %s is missed at %v, and nobody before %v", m.site, m.due, c.missing)
		case len(m.told) > othersMax:
			return fmt.Errorf("%d sites know that sibling %s is missed", len(m.told), m.site)
		}
	}
	return nil
}

// auditNames looks at whether those who may become siblings are greeted.
func (c *Circle) auditNames(now grid.Time) error {
	room := c.room()
	for i := range c.names {
		if n := &c.names[i]; n.pending && !n.kin {
			room--
		}
	}
	for i := range c.names {
		n := &c.names[i]
		var latest grid.Time
		switch {
		case n.pending:
			latest = n.greeted + greetMax
		case n.kin:
			latest = max(n.greeted+kinPause, now)
		case n.greeted < 0 && room > 0 && c.budget > 0:
			latest = now + roundPause
		default:
			continue
		}
		if c.round > latest {
			return fmt.Errorf("%s was greeted at %v, and what comes of it is looked at at %v", n.site, n.greeted, c.round)
		}
	}
	return nil
}

// auditTimers looks at when others are looked for, and whether that was forgotten.
func (c *Circle) auditTimers(now grid.Time) error {
	switch {
	case c.NextTimer() < now-auditLate:
		return fmt.Errorf("what was to be done at %v is not", c.NextTimer())
	case c.look > max(now, c.last+lookFull) || c.poor() && c.look > max(now, c.last+lookMax):
		return fmt.Errorf("siblings were looked for at %v, and are again at %v", c.last, c.look)
	case c.next > c.look || c.announce > now && c.next > c.announce:
		return fmt.Errorf("siblings are looked for at %v and announced at %v, and neither before %v", c.look, c.announce, c.next)
	case c.announce > now+announceSpan:
		return fmt.Errorf("the site is announced at %v", c.announce)
	case c.mend != grid.Never && c.mend > now+lookAgain:
		return fmt.Errorf("who is lost is replaced by others at %v", c.mend)
	case c.sample != grid.Never && c.sample > now+lookFull:
		return fmt.Errorf("random sites are looked for at %v", c.sample)
	}
	return nil
}
