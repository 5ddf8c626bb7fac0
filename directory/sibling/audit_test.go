package sibling

import (
	"testing"

	"gridnode/grid"
)

// TestAudit: what is not as it has to be is found.
func TestAudit(t *testing.T) {
	late := 100 * grid.Day
	for name, spoil := range map[string]func(c *Circle){
		"nobody is twice a sibling":    func(c *Circle) { c.members[1].site = c.members[0].site },
		"a sibling is no other":        func(c *Circle) { c.names[0].site = c.members[0].site },
		"others are in order":          func(c *Circle) { c.names[0], c.names[1] = c.names[1], c.names[0] },
		"the owner knows the siblings": func(c *Circle) { c.sites = c.sites[1:] },
		"the owner knows who watches":  func(c *Circle) { c.watchers = nil },
		"a sibling is found":           func(c *Circle) { c.sieve = 0 },
		"siblings have a bound":        func(c *Circle) { c.cfg.Size, c.round = 2, late },
		"greetings have a bound":       func(c *Circle) { c.budget = greetsMax + 1 },
		"a sibling is missed":          func(c *Circle) { c.members[0].due = late },
		"who was asked is missed soon": func(c *Circle) { c.members[0].asks, c.members[0].due = 1, c.cfg.Silence },
		"the first is missed first":    func(c *Circle) { c.NextTimer(); c.members[0].due = 0 },
		"who knows of it is bounded":   func(c *Circle) { c.members[0].told = make([]grid.SiteID, othersMax+1) },
		"an answer is not waited for":  func(c *Circle) { c.names[0].pending, c.round = true, late },
		"kin are known":                func(c *Circle) { c.kin = []grid.SiteID{"s9"} },
		"who is kin no more is none":   func(c *Circle) { c.names[0].kin = true },
		"kin are greeted":              func(c *Circle) { c.names[0].kin, c.kin, c.round = true, []grid.SiteID{c.names[0].site}, late },
		"who is new is greeted":        func(c *Circle) { c.names[0].greeted, c.names[0].pending, c.round = -1, false, late },
		"what is due is done":          func(c *Circle) { c.round = -2 * auditLate },
		"siblings are looked for":      func(c *Circle) { c.look = late },
		"a poor circle looks soon":     func(c *Circle) { c.cfg.Size, c.look = othersMax, c.last+lookFull },
		"the next of both is next":     func(c *Circle) { c.next = late },
		"the site is announced":        func(c *Circle) { c.announce = late },
		"who is lost is replaced":      func(c *Circle) { c.mend = late },
		"random sites are looked for":  func(c *Circle) { c.sample = late },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, Config{Authority: "a", Samples: true}, "s1", "s2")
			l.step(0, "s1", &Reply{Taken: true, Others: []grid.SiteID{"s3", "s4"}})
			l.step(0, "", grid.Tick{})
			if err := l.Audit(0); err != nil {
				t.Fatal(err)
			}
			if spoil(l.Circle); l.Audit(0) == nil {
				t.Error("it is not seen")
			}
		})
	}
}
