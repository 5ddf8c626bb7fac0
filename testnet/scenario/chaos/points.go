package chaos

import (
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario/chaos/point"
	"gridnode/testnet/scenario/federation"
)

// points has daemons die at fault points: within a step that saves, after the save and before or after
// any of its other orders, or because the save fails; and within one that saves nothing, before or
// after any of its orders; in recoveries, too. It counts them all, and those that were hit.
type points struct {
	t      *trial
	end    grid.Time
	counts *point.Counts
	healed []healing // by site: when it last came up

	saving, bare, looking steps
	store                 *rand.PCG // of saves that fail
	storeChance           float64
	full                  fullPoints
}

// steps are those of a sort: that save, that do not, or that only look for sites or for quotes of them.
type steps struct {
	pcg    *rand.PCG
	chance float64          // that a daemon dies at a point that comes as often as most do
	kind   string           // of strikes
	given  map[int][]Strike // by site: those of the script that have yet to happen
	count  []stepCount      // by site: how many there were at the present instant
}

// fullPoints are disks without room: whatever a site is to save fails as long as that lasts, also
// as its daemon comes up again.
type fullPoints struct {
	when map[int][]Strike // by site
	died uint64           // daemons, of it
}

// healing is an event in which a site comes up, or may.
type healing struct {
	at    grid.Time
	event int64
}

// stepCount counts steps of an instant.
type stepCount struct {
	at    grid.Time
	count int
}

// pointCounts says how many fault points there were, and how many were hit.
type pointCounts struct {
	Seen   int      `json:"seen"`
	Hit    int      `json:"hit"`
	Missed []string `json:"missed,omitempty"` // by name
}

// pointsOf has daemons die as the script says, or else with that chance.
func pointsOf(t *trial, faults map[string]float64) *points {
	seed := t.script.Seed
	stepsOf := func(kind, stream string, chance float64) steps {
		return steps{pcg: draw.PCG(seed, grid.SiteID(stream), draw.ForFaults), chance: chance, kind: kind, given: make(map[int][]Strike), count: make([]stepCount, t.script.Sites)}
	}
	p := &points{
		t: t, end: federation.Warmup + t.script.span(), counts: point.NewCounts(), healed: make([]healing, t.script.Sites),
		saving:  stepsOf(strikeWithin, "points", faults["within"]),
		bare:    stepsOf(strikeBetween, "between", faults["between"]),
		looking: stepsOf(strikeLook, "looking", faults["between"]),
		store:   draw.PCG(seed, "store", draw.ForFaults), storeChance: faults["store"],
		full: fullPoints{when: make(map[int][]Strike)},
	}
	if t.script.Listed {
		for _, s := range t.script.Strikes {
			if of := p.sortOf(s.Kind); of != nil && len(s.Sites) == 1 {
				of.given[s.Sites[0]] = append(of.given[s.Sites[0]], s)
			}
		}
	}
	return p
}

// sortOf returns the steps within which a kind of strikes has daemons die; nil: there are none.
func (p *points) sortOf(kind string) *steps {
	switch kind {
	case strikeWithin, strikeStore:
		return &p.saving
	case strikeBetween:
		return &p.bare
	case strikeLook:
		return &p.looking
	}
	return nil
}

// watch notes when sites come up.
func (p *points) watch(n *testnet.Network) {
	n.Observe(testnet.Observer{Fault: func(now grid.Time, f *testnet.Fault) {
		if f.Healing() && f.Kind.Kills() {
			p.healed[f.Sites[0]] = healing{now, n.Events()}
		}
	}})
}

// tear implements testnet.Config.Tear.
func (p *points) tear(now grid.Time, site int, out *grid.Outbox, torn bool) testnet.Tear {
	if now < federation.Warmup || now >= p.end {
		return testnet.Tear{}
	}
	p.counts.Take(p.cause(now, site), out)
	if torn {
		p.counts.Hit(0)
		return testnet.Tear{}
	}
	if len(out.Records) > 0 && p.full.at(now, site) {
		p.full.died++
		p.counts.Hit(point.Unsaved)
		again := grid.Second + grid.Time(roll(p.t.script.Seed, strikeFull, p.full.died, uint64(fullAgain)))
		return testnet.Tear{For: healsBy(again, now, p.end, site), Unsaved: true}
	}
	of := p.sort(out)
	if of == nil {
		return testnet.Tear{}
	}
	s, come := p.strikes(of, now, site)
	if !come {
		return testnet.Tear{}
	}
	p.t.told.Strikes = append(p.t.told.Strikes, s)
	tear := testnet.Tear{For: healsBy(s.For, now, p.end, site), Left: s.Left, Unsaved: s.Kind == strikeStore}
	if tear.Unsaved {
		p.counts.Hit(point.Unsaved)
	} else {
		p.counts.Hit(s.Left)
	}
	return tear
}

// cause returns why a site has the step that is carried out.
func (p *points) cause(now grid.Time, site int) point.Cause {
	switch h := p.healed[site]; {
	case h.at == now && h.event == p.t.n.Events():
		return point.Recovery
	case testnet.Ticks(p.t.n):
		return point.Timer
	}
	return point.Input
}

// fullAgain is within which time a daemon is started again that has found no room.
const fullAgain = 30 * grid.Second

// at reports whether a site has no room.
func (f *fullPoints) at(now grid.Time, site int) bool {
	return slices.ContainsFunc(f.when[site], func(s Strike) bool { return s.At <= now && now < s.At+s.For })
}

// sort returns the steps that one is of; nil: it orders nothing but to tell.
func (p *points) sort(out *grid.Outbox) *steps {
	switch {
	case len(out.Records) > 0:
		return &p.saving
	case p.counts.Orders() == 0:
		return nil
	case looks(out):
		return &p.looking
	}
	return &p.bare
}

// looks reports whether a step that saves nothing only looks for sites, or for quotes of them.
func looks(out *grid.Outbox) bool {
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSend:
			if k := out.Sends[e.Index].Message.MessageKind(); k < wire.DirectoryPublish || k > wire.KademliaNodes {
				return false
			}
		case grid.EffectStart, grid.EffectKill:
			return false
		case grid.EffectAnswer:
			if _, cancels := out.Answers[e.Index].Value.(*site.Cancelled); cancels {
				return false
			}
		}
	}
	return true
}

// strikes returns how the daemon dies within the step that is carried out, if it does: as the script
// says, or else by chance.
func (p *points) strikes(of *steps, now grid.Time, site int) (s Strike, come bool) {
	step := of.step(now, site)
	if p.t.script.Listed {
		return of.listed(now, site, step)
	}
	kind, pcg := of.kind, of.pcg
	left, dies := of.draw(p.counts)
	if !dies {
		if of != &p.saving || p.storeChance == 0 || !draw.Chance(p.store, int32(p.counts.Chance(point.Unsaved, p.storeChance)*million)) {
			return Strike{}, false
		}
		kind, pcg = strikeStore, p.store
	}
	span := healsBy(grid.Second+grid.Time(draw.Uniform(pcg, uint64(aimDown))), now, p.end, site)
	return Strike{Kind: kind, At: now, For: span, Sites: []int{site}, Step: step, Left: left}, true
}

// draw draws whether the daemon dies within a step, and after how many of its orders.
func (of *steps) draw(counts *point.Counts) (left int, dies bool) {
	if of.chance == 0 {
		return 0, false
	}
	for left = range counts.Orders() + 1 {
		if draw.Chance(of.pcg, int32(counts.Chance(left, of.chance)*million)) {
			return left, true
		}
	}
	return 0, false
}

// step counts the steps of a site at an instant, and returns the present one's number.
func (of *steps) step(now grid.Time, site int) int {
	s := &of.count[site]
	if s.at != now {
		*s = stepCount{at: now}
	}
	s.count++
	return s.count
}

// listed returns the strike of the script whose step has come, or one after it.
func (of *steps) listed(now grid.Time, site, step int) (s Strike, come bool) {
	given := of.given[site]
	if len(given) == 0 || given[0].At > now || given[0].At == now && given[0].Step > step {
		return Strike{}, false
	}
	of.given[site] = given[1:]
	return given[0], true
}

// sum returns how much was covered.
func (p *points) sum() (c pointCounts) {
	for _, count := range p.counts.All() {
		c.Seen++
		if count.Hit > 0 {
			c.Hit++
		} else {
			c.Missed = append(c.Missed, count.Name)
		}
	}
	return c
}
