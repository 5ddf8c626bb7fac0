package forge

import (
	"fmt"
	"slices"

	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/market/keepalive"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// rumours are of who was not asked: about siblings, by who is none of them (D-6), and by homes.
var rumours = []forgery{(*Forger).warning, (*Forger).uninvited, (*Forger).intruder, (*Forger).unasked}

// pair is a site and another one.
type pair struct {
	at int
	of grid.SiteID
}

// greetings are what sites have asked each other to be.
type greetings struct {
	last map[pair]grid.Time
	sum  map[pair]int64
	kin  map[pair]bool // those that gossip whatever lies between them, either way
}

// watchGreetings starts to watch.
func watchGreetings(n *testnet.Network) *greetings {
	g := &greetings{last: make(map[pair]grid.Time), sum: make(map[pair]int64), kin: make(map[pair]bool)}
	n.Observe(testnet.Observer{Send: func(now grid.Time, at int, to grid.SiteID, m grid.Message) {
		if m, yes := m.(*sibling.Greet); yes {
			key := pair{at, to}
			g.last[key] = now
			g.sum[key]++
			if of, known := n.Index(to); m.Kin && known {
				g.kin[key], g.kin[pair{of, n.ID(at)}] = true, true
			}
		}
	}})
	return g
}

// stranger reports whether a site has nothing to do with another one's siblings, nor was lately asked
// to be one.
func (f *Forger) stranger(at int, s *site.Site, other grid.SiteID) bool {
	const answered = 30 * grid.Second // or not at all
	key := pair{at, other}
	last, ever := f.greeted.last[key]
	return s.Siblings() != nil && other != f.N.ID(at) && !slices.Contains(s.Siblings(), other) && !f.greeted.kin[key] && !(ever && f.N.Now()-last < answered)
}

// warning has a site hear from a stranger that one of its siblings is gone: that one is not asked.
func (f *Forger) warning(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	missed, there := Chosen(s.Siblings(), which)
	if !there || !f.stranger(at, s, other) {
		return false, nil
	}
	before := f.greeted.sum[pair{at, missed}]
	f.hear(at, other, &sibling.Reply{Taken: true, Missed: missed})
	if f.greeted.sum[pair{at, missed}] > before {
		return true, fmt.Errorf("%s is asked whether it is there, as %s says that it is not, which is no sibling", missed, other)
	}
	return true, nil
}

// uninvited has a site hear from a stranger that it takes this one, which has not asked.
func (f *Forger) uninvited(at int, s *site.Site, other grid.SiteID, _ uint64) (bool, error) {
	return f.becomes(at, s, other, &sibling.Reply{Taken: true})
}

// intruder has a site hear that a stranger of another authority wants to be its sibling.
func (f *Forger) intruder(at int, s *site.Site, other grid.SiteID, _ uint64) (bool, error) {
	return f.becomes(at, s, other, &sibling.Greet{Authority: "of nobody here", Poor: true})
}

// unasked has a site hear from a home that a job of it may go on, which is to be asked about only later.
func (f *Forger) unasked(at int, _ *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	held, there := Chosen(f.renewed[at], which)
	if !there {
		return false, nil
	}
	now := f.N.Clock(at).Local(f.N.Now())
	if !f.hear(at, held.home, &keepalive.Renewed{Stamp: now + grid.Hour, Renewed: []grid.TaskID{held.task}}) {
		return true, nil
	}
	s, _ := scenario.SiteAt(f.N, at)
	return true, site.Audit(now, s)
}

// holding is what a site asks a home about.
type holding struct {
	home grid.SiteID
	task grid.TaskID
}

// renews remembers what a site has asked about last.
func (f *Forger) renews(_ grid.Time, at int, to grid.SiteID, m grid.Message) {
	if m, yes := m.(*keepalive.Renew); yes {
		f.renewed[at] = f.renewed[at][:0]
		for i := range m.Held {
			f.renewed[at] = append(f.renewed[at], holding{to, m.Held[i].Task})
		}
	}
}

// becomes has a site hear something of a stranger, which is no sibling for that.
func (f *Forger) becomes(at int, s *site.Site, other grid.SiteID, m grid.Message) (bool, error) {
	if !f.stranger(at, s, other) {
		return false, nil
	}
	if !f.hear(at, other, m) {
		return true, nil
	}
	if s, _ = scenario.SiteAt(f.N, at); slices.Contains(s.Siblings(), other) {
		return true, fmt.Errorf("%s is a sibling because of %T %+v", other, m, m)
	}
	return true, nil
}
