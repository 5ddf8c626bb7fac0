package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario/federation"
)

// points has daemons die at fault points: within a step that saves, after the save and before
// one of its other orders, in recoveries, too. It counts those that there are, and those that
// were hit; one that was hit often is hit less.
type points struct {
	t      *trial
	pcg    *rand.PCG
	chance float64           // that a point is hit which was not before
	end    grid.Time         // all has healed then
	seen   map[string]int64  // points, by what is saved and what comes next
	hit    map[string]int64  // of them
	given  map[int][]Strike  // by site: those of the script that have yet to happen
	healed map[int]healing   // by site: when it last came up
	steps  map[int]stepCount // by site: how many saved at the present instant
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
func pointsOf(t *trial, chance float64) *points {
	p := &points{
		t: t, pcg: draw.PCG(t.script.Seed, "points", draw.ForFaults), chance: chance, end: federation.Warmup + t.script.span(),
		seen: make(map[string]int64), hit: make(map[string]int64), given: make(map[int][]Strike),
		healed: make(map[int]healing), steps: make(map[int]stepCount),
	}
	if t.script.Listed {
		p.chance = 0
		for _, s := range t.script.Strikes {
			if s.Kind == strikeWithin && len(s.Sites) == 1 {
				p.given[s.Sites[0]] = append(p.given[s.Sites[0]], s)
			}
		}
	}
	return p
}

// watch notes when sites come up.
func (p *points) watch(n *testnet.Network) {
	n.Observe(testnet.Observer{Fault: func(now grid.Time, f *testnet.Fault) {
		if f.Healing() && f.Kind != testnet.FaultPartition {
			p.healed[f.Sites[0]] = healing{now, n.Events()}
		}
	}})
}

// tear implements testnet.Config.Tear.
func (p *points) tear(now grid.Time, site int, out *grid.Outbox) testnet.Tear {
	if now < federation.Warmup || now >= p.end {
		return testnet.Tear{}
	}
	steps := p.steps[site]
	if steps.at != now {
		steps = stepCount{at: now}
	}
	steps.count++
	p.steps[site] = steps
	names := p.names(now, site, out)
	for _, name := range names {
		p.seen[name]++
	}
	if p.t.script.Listed {
		return p.listed(now, site, steps.count, names)
	}
	left := int(draw.Uniform(p.pcg, uint64(len(names))))
	if p.chance == 0 || !draw.Chance(p.pcg, int32(p.chance*million/float64(1+p.hit[names[left]]))) {
		return testnet.Tear{}
	}
	p.hit[names[left]]++
	s := Strike{Kind: strikeWithin, At: now, Sites: []int{site}, Step: steps.count, Left: left}
	s.For = max(min(grid.Second+grid.Time(draw.Uniform(p.pcg, uint64(aimDown))), p.end-now), 1)
	p.t.told.Strikes = append(p.t.told.Strikes, s)
	return testnet.Tear{For: s.For, Left: left}
}

// listed has a strike of the script happen whose step has come, or one after it.
func (p *points) listed(now grid.Time, site, step int, names []string) testnet.Tear {
	given := p.given[site]
	if len(given) == 0 || given[0].At > now || given[0].At == now && given[0].Step > step {
		return testnet.Tear{}
	}
	s := given[0]
	p.given[site] = given[1:]
	p.t.told.Strikes = append(p.t.told.Strikes, s)
	p.hit[names[min(s.Left, len(names)-1)]]++
	return testnet.Tear{For: max(min(s.For, p.end-now), 1), Left: s.Left}
}

// names returns the fault points of a step, by how many of its orders have left.
func (p *points) names(now grid.Time, site int, out *grid.Outbox) (names []string) {
	saved := "forgets"
	for _, e := range out.Effects {
		if e.Kind == grid.EffectSave {
			saved = "saves " + plain(out.Records[e.Index].RecordKey())
		}
	}
	if h := p.healed[site]; h.at == now && h.event == p.t.n.Events() {
		saved = "recovers, " + saved
	}
	for _, e := range out.Effects {
		next := ""
		switch e.Kind {
		case grid.EffectSave, grid.EffectDelete, grid.EffectTell:
			continue
		case grid.EffectSend:
			next = "sends " + wire.KindName(out.Sends[e.Index].Message.MessageKind())
		case grid.EffectStart:
			next = "starts a task"
		case grid.EffectKill:
			next = "kills a task"
		case grid.EffectAnswer:
			next = "answers"
		default:
			next = fmt.Sprintf("effect %d", e.Kind)
		}
		names = append(names, saved+", then "+next)
	}
	return append(names, saved+", then ends")
}

// plain returns the part of a record's key that all of its kind have.
func plain(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if i > 0 && strings.ContainsFunc(part, func(r rune) bool { return unicode.IsDigit(r) || !unicode.IsLetter(r) }) {
			return strings.Join(parts[:i], "/")
		}
	}
	return parts[0]
}

// sum returns how much was covered.
func (p *points) sum() (c pointCounts) {
	for _, name := range slices.Sorted(maps.Keys(p.seen)) {
		c.Seen++
		if p.hit[name] > 0 {
			c.Hit++
		} else {
			c.Missed = append(c.Missed, name)
		}
	}
	return c
}
