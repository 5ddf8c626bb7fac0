package sibling

import (
	"fmt"

	"gridnode/grid"
)

// Memory is what a circle remembers over a restart: with it the circle need look for nobody.
type Memory struct {
	Siblings  []Known   // but kin, at most Config.Size-1, by ID
	Announced grid.Time // when the site last announced itself; 0: not that it knew
}

// Known is a site as it was measured.
type Known struct {
	Site     grid.SiteID
	Distance grid.Time // shortest round trip; grid.Never: none
}

// Check returns an error for a memory that no circle has.
func (m *Memory) Check() error {
	if len(m.Siblings) >= othersMax {
		return fmt.Errorf("%d siblings, want at most %d", len(m.Siblings), othersMax-1)
	}
	for _, k := range m.Siblings {
		if len(k.Site) == 0 || len(k.Site) > siteMax || k.Distance < 0 {
			return fmt.Errorf("sibling %q at %v", k.Site, k.Distance)
		}
	}
	if m.Announced < 0 {
		return fmt.Errorf("announced at %d", m.Announced)
	}
	return nil
}

// Memory returns what the circle is to Remember after a restart.
func (c *Circle) Memory() Memory {
	m := Memory{Announced: c.announced}
	for i := range c.members {
		if s := &c.members[i]; !s.kin {
			m.Siblings = append(m.Siblings, Known{s.site, s.distance})
		}
	}
	return m
}

// Remember has a circle that has no siblings yet greet those it had before a restart. Others
// are looked for once too few of them have answered, and then as for siblings that were lost.
// What the site announced then still counts.
func (c *Circle) Remember(now grid.Time, m Memory) {
	for _, k := range m.Siblings {
		c.learn(now, k.Site, false)
		if n := c.name(k.Site); n != nil {
			n.distance = k.Distance
		}
	}
	if len(m.Siblings) == 0 {
		return
	}
	c.budget = greetsMax
	c.last, c.look, c.pace = now, now+c.spread(lookMax), lookMax
	c.mend = now + lookAgain
	c.announced, c.introduced = min(m.Announced, now), true
	c.announce = now + announceLost
	if c.announced > 0 {
		c.announce = max(c.announce, c.announced+c.spread(announceSpan))
	}
	c.plan(now)
	c.unknown = true
}
