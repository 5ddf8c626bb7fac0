package record

import (
	"errors"
	"fmt"
	"slices"

	"gridnode/grid"
)

// Audit returns what a registry does too late or not at all, or which of its lists is not what the others
// come to; nil: there is nothing of that kind. It is asked of a registry at rest.
func Audit(now grid.Time, g *Registry) error {
	return errors.Join(g.publisher.audit(now), g.holder.audit(now), g.seeker.audit(now))
}

func (p *publisher) audit(now grid.Time) error {
	if p.own == nil {
		return nil
	}
	if latest := max(now, p.own.Issued+changePause); !p.own.Offer.same(&p.offer) && p.renew > latest {
		return fmt.Errorf("what the site says anew of itself is published at %v, and not by %v", p.renew, latest)
	}
	if p.renew > now+p.cfg.Lifetime/3 {
		return fmt.Errorf("the site's record is renewed at %v", p.renew)
	}
	for i := range p.places {
		at, latest := &p.places[i], now+max(4*p.cfg.Lifetime, lookFirst)
		if at.looking {
			latest = now + lookMax
		}
		if at.look > latest {
			return fmt.Errorf("who is near to a key is looked up at %v, and not by %v", at.look, latest)
		}
		for _, site := range at.holders {
			if site != p.cfg.Self && p.copy(site) == nil {
				return fmt.Errorf("%s is to have the site's record, and is not sent it", site)
			}
		}
	}
	for i := range p.copies {
		if err := p.copies[i].audit(now, p); err != nil {
			return fmt.Errorf("the site's record at %s: %w", p.copies[i].site, err)
		}
	}
	return nil
}

func (c *copied) audit(now grid.Time, p *publisher) error {
	switch {
	case c.tries > triesMax || c.sent > p.own.Sequence:
		return fmt.Errorf("record %d was sent %d times, the newest is %d", c.sent, c.tries, p.own.Sequence)
	case c.due == grid.Never && c.sent != p.own.Sequence:
		return fmt.Errorf("it is record %d, the newest is %d, and that is not sent", c.sent, p.own.Sequence)
	case c.due != grid.Never && c.due > now+p.cfg.Timeout:
		return fmt.Errorf("an answer is awaited until %v", c.due)
	case !slices.ContainsFunc(p.places, func(at place) bool { return slices.Contains(at.holders, c.site) }):
		return errors.New("nobody looks for it there")
	}
	return nil
}

func (h *holder) audit(now grid.Time) error {
	named := 0
	for site, r := range h.held {
		if r.Name == "" {
			continue
		}
		if named++; !slices.Contains(h.claims[r.Name], site) {
			return fmt.Errorf("%s claims the name %s, and is not found by it", site, r.Name)
		}
	}
	for _, list := range h.claims {
		named -= len(list)
	}
	switch {
	case named != 0:
		return fmt.Errorf("%d more sites claim names than are found by them", named)
	case len(h.held) > heldMax:
		return fmt.Errorf("records of %d sites are held", len(h.held))
	case len(h.held) > 0 && h.sweep > now+max(h.cfg.Lifetime/8, sweepPause):
		return fmt.Errorf("records that have expired are dropped at %v", h.sweep)
	}
	return nil
}

func (s *seeker) audit(now grid.Time) error {
	for _, l := range s.searches {
		latest := now + s.cfg.Timeout
		if l.looking {
			latest = now + lookMax
		}
		if l.deadline > latest || l.looking == (len(l.waiting) > 0) {
			return fmt.Errorf("the search for %q asks %d sites, and the router (%t), until %v", l.text, len(l.waiting), l.looking, l.deadline)
		}
	}
	if len(s.searches) > searchesMax || len(s.seen) != len(s.order) {
		return fmt.Errorf("%d searches are under way, records of %d sites are remembered, and count as %d", len(s.searches), len(s.seen), len(s.order))
	}
	return nil
}
