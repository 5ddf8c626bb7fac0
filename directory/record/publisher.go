package record

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
)

// Times and bounds of publishing.
const (
	changePause = 10 * grid.Second // between two records of a site, at least
	lookFirst   = 4 * grid.Minute  // between the first two look-ups of who is nearest, as all may just have come up; then a lifetime, which doubles twice
	lookAlone   = 15 * grid.Second // while there is nobody else; doubles up to lookAloneMax
	lookMax     = grid.Minute      // for an answer of the router
	lookPause   = grid.Minute      // between two look-ups because holders were lost
	triesMax    = 2                // times a record is sent to a holder that does not answer

	lookAloneMax = 5 * grid.Minute
)

// publisher keeps the site's own record at the sites nearest to its ID and to its name.
type publisher struct {
	cfg    *Config
	rng    *rand.Rand
	holder *holder // for the records that this site holds itself

	offer      Offer
	own        *Record // nil before the first
	places     []place // of the ID, and of the name
	remembered []place // the same, before a restart
	copies     []copied
	renew      grid.Time     // when the next record is issued
	floor      uint64        // of sequences: a holder has a record of that one
	rivals     []grid.SiteID // who else claims the name, by ID
}

// place is one of the keys under which the record lies.
type place struct {
	key     grid.Key
	looking bool
	looked  grid.Time // when the latest look-up began
	look    grid.Time // when the next one is due, or this one is given up
	pace    grid.Time // to the one after that
	alone   grid.Time // the same, while there is nobody else; 0 before
	holders []grid.SiteID
	spares  []grid.SiteID // the next ones, which a seeker asks as well: they take the places of those that are lost
	failed  []grid.SiteID // nearest sites that did not take it
}

// copied is the record at one site.
type copied struct {
	site  grid.SiteID
	sent  uint64    // sequence that it was sent
	tries int       // times that was
	due   grid.Time // when it should have answered; grid.Never if nothing is awaited
}

// next returns when something is due.
func (p *publisher) next() grid.Time {
	t := p.renew
	for i := range p.places {
		t = min(t, p.places[i].look)
	}
	for i := range p.copies {
		t = min(t, p.copies[i].due)
	}
	return t
}

// set takes what the site says of itself from now on.
func (p *publisher) set(now grid.Time, offer Offer, out *grid.Outbox) {
	if p.own != nil && p.offer.same(&offer) {
		return
	}
	if err := offer.Check(); err != nil {
		panic(fmt.Sprintf("record: of this site: %v", err))
	}
	offer.Addresses = slices.Clone(offer.Addresses)
	p.offer = offer
	if p.own == nil {
		p.issue(now, out)
		return
	}
	p.renew = min(p.renew, max(now, p.own.Issued+changePause))
}

// issue makes a newer record and sends it to those who hold the one before.
func (p *publisher) issue(now grid.Time, out *grid.Outbox) {
	r := &Record{Site: p.cfg.Self, Offer: p.offer, Sequence: max(uint64(now), p.floor+1), Issued: now, Lifetime: p.cfg.Lifetime}
	if p.own != nil {
		r.Sequence = max(r.Sequence, p.own.Sequence+1)
		if p.own.Name != r.Name {
			p.rivals = nil
		}
	}
	if p.cfg.Seal != nil {
		if err := r.seal(p.cfg.Seal); err != nil {
			panic(fmt.Sprintf("record: of this site: %v", err))
		}
	}
	p.own = r
	p.renew = now + p.cfg.Lifetime/3 - grid.Time(p.rng.Int64N(int64(p.cfg.Lifetime/32)+1))
	texts := []string{string(r.Site)}
	if r.Name != "" && r.Name != string(r.Site) {
		texts = append(texts, r.Name)
	}
	known, places := slices.Concat(p.places, p.remembered), make([]place, 0, len(texts))
	for _, text := range texts {
		k := key(p.cfg.Federation, text)
		if i := slices.IndexFunc(known, func(old place) bool { return old.key == k }); i >= 0 {
			places = append(places, known[i])
		} else {
			places = append(places, place{key: k, look: now, pace: lookFirst})
		}
	}
	p.places, p.remembered = places, nil
	p.send(now, out)
	p.tick(now, out)
}

// tick does what is due.
func (p *publisher) tick(now grid.Time, out *grid.Outbox) {
	if p.renew <= now {
		p.issue(now, out)
		return
	}
	for i := range p.places {
		if at := &p.places[i]; at.look <= now {
			at.looking, at.looked, at.look = true, now, now+lookMax
			out.Closest(at.key)
		}
	}
	for i := 0; i < len(p.copies); i++ {
		c := &p.copies[i]
		switch {
		case c.due > now:
		case c.tries < triesMax:
			p.enter(now, c, out)
		default:
			p.lose(now, c.site)
			i--
		}
	}
}

// asked reports whether a look-up of a key is under way.
func (p *publisher) asked(k grid.Key) bool {
	return slices.ContainsFunc(p.places, func(at place) bool { return at.looking && at.key == k })
}

// closest takes the sites nearest to a key.
func (p *publisher) closest(now grid.Time, in *grid.Closest, out *grid.Outbox) {
	for i := range p.places {
		at := &p.places[i]
		if !at.looking || at.key != in.Key {
			continue
		}
		at.looking = false
		if len(in.Peers) == 0 || len(in.Peers) == 1 && in.Peers[0] == p.cfg.Self {
			at.alone = max(lookAlone, min(2*at.alone, lookAloneMax))
			at.look, at.pace = now+at.alone, lookFirst
			continue
		}
		at.look, at.pace = now+at.pace-grid.Time(p.rng.Int64N(int64(at.pace/8))), p.slower(at.pace)
		at.holders, at.spares = at.holders[:0], at.spares[:0]
		for i, site := range in.Peers {
			switch {
			case slices.Contains(at.failed, site):
			case len(at.holders) < p.cfg.Replicas:
				at.holders = append(at.holders, site)
			case i < firstWave:
				at.spares = append(at.spares, site)
			}
		}
		at.failed, at.alone = at.failed[:0], 0
		p.send(now, out)
	}
}

// slower returns the span to the look-up after the next one. A federation has to grow
// manyfold until none of the holders is among those that a seeker asks, so that later ones
// are for that only.
func (p *publisher) slower(pace grid.Time) grid.Time {
	return min(max(2*pace, p.cfg.Lifetime), 4*p.cfg.Lifetime)
}

// send brings the newest record to the holders that do not have it.
func (p *publisher) send(now grid.Time, out *grid.Outbox) {
	holds := func(site grid.SiteID) bool {
		return slices.ContainsFunc(p.places, func(at place) bool { return slices.Contains(at.holders, site) })
	}
	p.copies = slices.DeleteFunc(p.copies, func(c copied) bool { return !holds(c.site) })
	for i := range p.places {
		for _, site := range p.places[i].holders {
			p.appoint(now, site, grid.Never)
		}
	}
	for i := range p.copies {
		if c := &p.copies[i]; c.sent < p.own.Sequence {
			c.tries = 0
			p.enter(now, c, out)
		}
	}
}

// appoint makes a site one that has the record, or is due to be sent it.
func (p *publisher) appoint(now grid.Time, site grid.SiteID, due grid.Time) {
	if site == p.cfg.Self {
		p.holder.enter(now, p.own)
		p.rival(p.holder.rivals(now, p.own))
	} else if p.copy(site) == nil {
		p.copies = append(p.copies, copied{site: site, due: due})
	}
}

func (p *publisher) enter(now grid.Time, c *copied, out *grid.Outbox) {
	c.tries++
	c.sent = p.own.Sequence
	c.due = now + p.cfg.Timeout
	out.Send(c.site, &Enter{p.own})
}

func (p *publisher) copy(site grid.SiteID) *copied {
	i := slices.IndexFunc(p.copies, func(c copied) bool { return c.site == site })
	if i < 0 {
		return nil
	}
	return &p.copies[i]
}

// entered takes a holder's answer.
func (p *publisher) entered(now grid.Time, from grid.SiteID, m *Entered) {
	c := p.copy(from)
	if c == nil || c.due == grid.Never {
		return
	}
	switch {
	case m.Refusal == Taken && m.Sequence <= p.own.Sequence:
		if m.Sequence == p.own.Sequence { // else it is the answer to the one before
			c.due = grid.Never
			p.rival(m.Claims)
		}
	case m.Refusal == Outdated && m.Sequence > p.own.Sequence && m.Sequence < uint64(now+grid.Day):
		// This site issued it with a clock that was ahead.
		c.due = grid.Never
		p.floor = max(p.floor, m.Sequence)
		p.renew = min(p.renew, max(now, p.own.Issued+changePause))
	default:
		p.lose(now, from)
	}
}

// rival notes who else claims the name.
func (p *publisher) rival(sites []grid.SiteID) {
	for _, site := range sites {
		if i, found := slices.BinarySearch(p.rivals, site); !found && site != p.cfg.Self && len(p.rivals) < claimsMax {
			p.rivals = slices.Insert(p.rivals, i, site)
		}
	}
}

// lose gives a holder up. A spare one takes its place, and once there is none others are
// looked for.
func (p *publisher) lose(now grid.Time, site grid.SiteID) {
	p.copies = slices.DeleteFunc(p.copies, func(c copied) bool { return c.site == site })
	for i := range p.places {
		at := &p.places[i]
		at.spares = slices.DeleteFunc(at.spares, func(s grid.SiteID) bool { return s == site })
		j := slices.Index(at.holders, site)
		switch {
		case j < 0:
			continue
		case len(at.spares) > 0:
			at.holders[j] = at.spares[0]
			at.spares = at.spares[1:]
			p.appoint(now, at.holders[j], now)
		default:
			at.holders = slices.Delete(at.holders, j, j+1)
			if !at.looking {
				at.look = min(at.look, max(now, at.looked+lookPause))
			}
		}
		at.failed = append(at.failed, site)
	}
}
