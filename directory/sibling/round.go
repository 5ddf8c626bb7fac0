package sibling

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// tick does what is due.
func (c *Circle) tick(now grid.Time, out *grid.Outbox) {
	for i := len(c.members) - 1; i >= 0; i-- {
		if m := &c.members[i]; m.due <= now {
			c.miss(now, m, out)
		}
	}
	if c.mend <= now {
		c.mended(now)
	}
	if c.next <= now {
		c.lookUp(now, out)
	}
	if c.sample <= now {
		c.draw(out)
		c.sample, c.samples = now+c.spread(c.samples), min(lookSlower*c.samples, lookFull)
	}
	if c.round <= now {
		c.trim(now, out)
		c.seek(now, out)
	}
}

// mended has other sites looked for if no site that was known has taken the place of a
// sibling that was lost: at once if it is poor, else if that was not done lately.
func (c *Circle) mended(now grid.Time) {
	c.mend = grid.Never
	switch {
	case c.room() <= 0:
		return
	case c.poor():
		c.pace = min(c.pace, lookAgain)
		c.look = now
	default:
		c.look = min(c.look, max(now, c.last.Add(lookMax)))
	}
	c.plan(now)
}

// plan finds out when something is to be looked up. An announcement that is due waits for
// what was.
func (c *Circle) plan(now grid.Time) {
	if c.next = c.look; c.announce > now {
		c.next = min(c.next, c.announce)
	}
}

// spread returns a span of about d, so that sites that began together do not look together.
func (c *Circle) spread(d grid.Time) grid.Time { return d - grid.Time(c.rng.Int64N(int64(d/8))) }

// draw looks for the sites nearest to a random key.
func (c *Circle) draw(out *grid.Outbox) {
	for i := 0; i < len(c.key); i += 8 {
		v := c.rng.Uint64()
		for j := range 8 {
			c.key[i+j] = byte(v >> (8 * j))
		}
	}
	c.looking = true
	out.Closest(c.key)
}

// lookUp looks for siblings: for sites of the authority, or at random. Who is full looks
// seldom, for nearer ones; where there is an authority it need not, as newcomers find it, and it sees
// only before every other announcement how many others have announced themselves.
func (c *Circle) lookUp(now grid.Time, out *grid.Outbox) {
	full, due := c.room() <= 0, c.look <= now
	if due {
		c.last, c.look = now, now+c.spread(c.pace)
		switch {
		case full:
			c.pace = min(lookSlower*c.pace, lookFull)
		case c.poor():
			c.pace = min(2*c.pace, lookMax)
		default:
			c.pace = min(lookSlower*c.pace, lookMax)
		}
	}
	if c.cfg.Authority != "" && c.announce <= now && !c.announces() {
		c.announce = now + c.spread(announceSpan)
	}
	c.budget = greetsMax
	switch {
	case c.cfg.Authority == "":
		c.draw(out)
	case full && c.announce <= now && c.few: // nobody has to be found, and few others announced themselves last time
		c.few = false
		c.announce = now + c.spread(announceSpan)
		out.Provide(c.rendez)
	case due && !full || c.announce <= now:
		out.FindProviders(c.rendez)
	}
	c.plan(now)
	c.round = min(c.round, now)
}

// looked takes the sites nearest to a random key.
func (c *Circle) looked(now grid.Time, in *grid.Closest, out *grid.Outbox) {
	if !c.Asked(in.Key) {
		return
	}
	c.looking = false
	var others []grid.SiteID
	for _, site := range in.Peers {
		if site != c.cfg.Self {
			others = append(others, site)
			if c.cfg.Authority == "" {
				c.learn(now, site, false)
			}
		}
	}
	if len(others) > 0 && c.cfg.Samples {
		out.Local(&Sampled{others[:min(len(others), samplesMax)]})
	}
}

// announces reports whether this site is one of those that announce themselves for its
// siblings as well.
func (c *Circle) announces() bool {
	before := 0
	for i := range c.members {
		if m := &c.members[i]; !m.kin && m.site < c.cfg.Self {
			before++
		}
	}
	return before < announcers
}

// found takes sites of the authority, and announces this one if there are few. A newcomer that is told
// of others sees first whether they are its siblings.
func (c *Circle) found(now grid.Time, in *grid.Providers, out *grid.Outbox) {
	for _, site := range in.Peers {
		c.learn(now, site, false)
	}
	if c.announce <= now && !c.introduced && len(in.Peers) > 0 { // those may do so for this site as well, once they are siblings
		c.introduced = true
		c.announce = now + announceLost
		c.next = min(c.next, c.announce)
	}
	if c.announce <= now {
		c.announce = now + c.spread(announceSpan)
		c.next = min(c.next, c.announce)
		if c.few = len(in.Peers) < announcedMax && c.announces(); c.few {
			out.Provide(c.rendez)
		}
	}
}

// probed takes a measurement.
func (c *Circle) probed(now grid.Time, in *grid.Probed) {
	if in.RoundTrip < 0 {
		return
	}
	if m := c.member(in.To); m != nil {
		m.distance = min(m.distance, in.RoundTrip)
	}
	if n := c.name(in.To); n != nil {
		n.distance = min(n.distance, in.RoundTrip)
		c.round = min(c.round, now+roundPause/4)
	}
}

// trim makes room if two answers came where there was room for one.
func (c *Circle) trim(now grid.Time, out *grid.Outbox) {
	for c.room() < 0 {
		c.drop(now, c.farthest().site, out)
	}
}

// seek greets sites while there is room, the nearest first, and measures where there are
// more than that. A full circle greets only who is nearer by half than its farthest.
func (c *Circle) seek(now grid.Time, out *grid.Outbox) {
	c.round = grid.Never
	room := c.room()
	var free []*name // to be greeted
	for i := range c.names {
		n := &c.names[i]
		if n.pending && now-n.greeted >= greetMax {
			n.pending = false
		}
		switch {
		case n.pending:
			c.round = min(c.round, n.greeted+greetMax)
			if !n.kin {
				room--
			}
		case n.kin && n.greeted >= 0 && now-n.greeted < kinPause:
			c.round = min(c.round, n.greeted+kinPause)
		case n.kin:
			c.greet(now, n, out)
		case n.greeted >= 0 && now-n.greeted < retryPause:
		default:
			free = append(free, n)
		}
	}
	slices.SortStableFunc(free, func(a, b *name) int { return cmp.Compare(a.distance, b.distance) })
	if len(free) > max(room, 0) {
		c.measure(now, free, out)
	}
	switch {
	case len(free) > max(room, 0) && waiting(now, free):
		c.round = min(c.round, now+roundPause)
	case room > 0:
		for _, n := range free[:min(room, len(free), c.budget)] {
			c.budget--
			c.greet(now, n, out)
		}
	case len(free) > 0 && c.budget > 0 && c.nearer(free[0].site):
		c.budget--
		c.greet(now, free[0], out)
	}
}

// measure orders sites to be measured that never were, and siblings as well so that there
// is something to compare with.
func (c *Circle) measure(now grid.Time, free []*name, out *grid.Outbox) {
	count := 0
	for _, n := range free {
		if n.asked < 0 && count < measures {
			n.asked = now
			out.Probe(n.site)
			count++
		}
	}
	for i := range c.members {
		if m := &c.members[i]; m.distance == grid.Never {
			out.Probe(m.site)
		}
	}
}

// waiting reports whether a site was measured too recently to have answered.
func waiting(now grid.Time, free []*name) bool {
	return slices.ContainsFunc(free, func(n *name) bool { return n.distance == grid.Never && n.asked >= 0 && now-n.asked < roundPause })
}

func (c *Circle) greet(now grid.Time, n *name, out *grid.Outbox) {
	n.greeted, n.pending = now, true
	c.round = min(c.round, now+greetMax)
	out.Send(n.site, &Greet{Authority: c.cfg.Authority, Kin: n.kin, Poor: c.poor()})
}

// learn remembers a site that is no sibling.
func (c *Circle) learn(now grid.Time, site grid.SiteID, kin bool) {
	if site == c.cfg.Self || c.member(site) != nil {
		return
	}
	if n := c.name(site); n != nil {
		if kin && !n.kin {
			n.kin, c.round = true, min(c.round, now)
		}
		return
	}
	if len(c.names) >= namesMax+len(c.kin) {
		c.forget()
	}
	i, _ := c.find(site)
	c.names = slices.Insert(c.names, i, name{site: site, distance: grid.Never, asked: -1, greeted: -1, kin: kin})
	c.round = min(c.round, now)
}

// forget makes room for another name: the farthest, of several one that has refused goes first.
func (c *Circle) forget() {
	worst := -1
	for i := range c.names {
		n := &c.names[i]
		if n.kin || n.pending {
			continue
		}
		if worst < 0 || better(&c.names[worst], n) {
			worst = i
		}
	}
	if worst >= 0 {
		c.names = slices.Delete(c.names, worst, worst+1)
	}
}

// better reports whether a is more worth knowing than b.
func better(a, b *name) bool {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.greeted, b.greeted)) <= 0
}

// find returns where the name of a site is, or belongs.
func (c *Circle) find(site grid.SiteID) (int, bool) {
	return slices.BinarySearchFunc(c.names, site, func(n name, s grid.SiteID) int { return cmp.Compare(n.site, s) })
}

func (c *Circle) name(site grid.SiteID) *name {
	if i, found := c.find(site); found {
		return &c.names[i]
	}
	return nil
}
