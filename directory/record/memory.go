package record

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// Place is what a registry remembers over a restart of a key under which the site's record
// lies: with it the registry need not look up who has the record.
type Place struct {
	Key     grid.Key
	Holders []grid.SiteID // those who had it, then those who take their places, the nearest first
	Look    grid.Time     // when they are looked up again
	Pace    grid.Time     // from then to the next time
}

// Places bounds the places of a registry: its ID's, and its name's.
const Places = 2

// Check returns an error for a place that no registry has.
func (p *Place) Check() error {
	if len(p.Holders) > replicasMax+firstWave {
		return fmt.Errorf("a place with %d sites, want at most %d", len(p.Holders), replicasMax+firstWave)
	}
	for _, site := range p.Holders {
		if len(site) == 0 || len(site) > siteMax {
			return fmt.Errorf("a site of %d bytes, want 1 to %d", len(site), siteMax)
		}
	}
	if p.Look < 0 || p.Pace < 0 {
		return fmt.Errorf("a look-up at %d, and then %d later", p.Look, p.Pace)
	}
	return nil
}

// Memory returns what the registry is to Remember after a restart.
func (g *Registry) Memory() (places []Place) {
	for i := range g.publisher.places {
		if at := &g.publisher.places[i]; !at.looking && len(at.holders) > 0 {
			places = append(places, Place{at.key, slices.Concat(at.holders, at.spares), at.look, at.pace})
		}
	}
	return places
}

// Remember has a registry that has published nothing yet send the site's record to those who had
// it before a restart, and look them up when it would have then.
func (g *Registry) Remember(now grid.Time, places []Place) {
	p := &g.publisher
	for i := range places {
		m := &places[i]
		held := min(len(m.Holders), p.cfg.Replicas)
		pace := min(max(m.Pace, lookFirst), 4*p.cfg.Lifetime)
		p.remembered = append(p.remembered, place{
			key: m.Key, look: min(max(m.Look, now), now+pace), pace: pace, looked: now,
			holders: slices.Clone(m.Holders[:held]), spares: slices.Clone(m.Holders[held:]),
		})
	}
}
