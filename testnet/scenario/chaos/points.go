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
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario/federation"
)

// points has daemons die at fault points: within a step that saves, after the save and before
// one of its other orders, or because the save fails; and within one that saves nothing, after
// some of its orders; in recoveries, too. It counts those points that there are, and those that
// were hit; one that was hit often is hit less.
type points struct {
	t       *trial
	pcg     *rand.PCG
	chance  float64 // that a point is hit which was not before
	end     grid.Time
	seen    map[string]int64  // points, by what is saved and what comes next
	hit     map[string]int64  // of them
	given   map[int][]Strike  // by site: those of the script that have yet to happen
	healed  map[int]healing   // by site: when it last came up
	steps   map[int]stepCount // by site: how many saved at the present instant
	between barePoints
	store   storePoints
	full    fullPoints
}

// barePoints are steps that save nothing: by what they send first, or else start or kill.
type barePoints struct {
	pcg       *rand.PCG
	chance    float64
	given     map[int][]Strike
	steps     map[int]stepCount
	seen, hit [bareKinds]int64
}

// What steps that save nothing do first, or what most of all, besides sending messages, by numbers that no kind has.
const (
	bareStart = wire.KindMax + iota
	bareKill
	bareCancel // answers a user who wants a job to end
	bareKinds
)

// fullPoints are disks without room: whatever a site is to save fails as long as that lasts, also
// as its daemon comes up again.
type fullPoints struct {
	any  bool             // there may be some
	when map[int][]Strike // by site
	died uint64           // daemons, of it
}

// storePoints are saves that fail.
type storePoints struct {
	pcg    *rand.PCG
	chance float64
	hit    map[string]int64 // by what is to be saved
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
	p := &points{
		t: t, pcg: draw.PCG(seed, "points", draw.ForFaults), chance: faults["within"], end: federation.Warmup + t.script.span(),
		seen: make(map[string]int64), hit: make(map[string]int64), given: make(map[int][]Strike),
		healed: make(map[int]healing), steps: make(map[int]stepCount),
		between: barePoints{
			pcg: draw.PCG(seed, "between", draw.ForFaults), chance: faults["between"], given: make(map[int][]Strike), steps: make(map[int]stepCount),
		},
		store: storePoints{pcg: draw.PCG(seed, "store", draw.ForFaults), chance: faults["store"], hit: make(map[string]int64)},
		full:  fullPoints{any: faults[strikeFull] > 0, when: make(map[int][]Strike)},
	}
	if t.script.Listed {
		p.chance, p.between.chance, p.store.chance = 0, 0, 0
		for _, s := range t.script.Strikes {
			switch {
			case len(s.Sites) != 1:
			case s.Kind == strikeWithin || s.Kind == strikeStore:
				p.given[s.Sites[0]] = append(p.given[s.Sites[0]], s)
			case s.Kind == strikeBetween:
				p.between.given[s.Sites[0]] = append(p.between.given[s.Sites[0]], s)
			case s.Kind == strikeFull:
				p.full.any = true
			}
		}
	}
	return p
}

// any reports whether a daemon may die at such a point.
func (p *points) any() bool {
	return p.full.any || p.chance+p.between.chance+p.store.chance > 0 || len(p.given)+len(p.between.given) > 0
}

// inStep reports whether a kind of strikes is one of points.
func inStep(kind string) bool {
	return kind == strikeWithin || kind == strikeBetween || kind == strikeStore
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
func (p *points) tear(now grid.Time, site int, out *grid.Outbox) testnet.Tear {
	if now < federation.Warmup || now >= p.end {
		return testnet.Tear{}
	}
	if len(out.Records) == 0 {
		return p.bare(now, site, out)
	}
	if p.full.at(now, site) {
		p.full.died++
		saved := "finds no room, " + saves(out)
		p.seen[saved]++
		p.hit[saved]++
		again := grid.Second + grid.Time(roll(p.t.script.Seed, strikeFull, p.full.died, uint64(fullAgain)))
		return testnet.Tear{For: healsBy(again, now, p.end, site), Unsaved: true}
	}
	step := stepOf(p.steps, now, site)
	if p.t.script.Listed {
		s, come := p.listed(p.given, now, site, step)
		if !come {
			return testnet.Tear{}
		}
		if names := p.names(now, site, out); s.Kind == strikeWithin {
			p.hit[names[min(s.Left, len(names)-1)]]++
		}
		return testnet.Tear{For: healsBy(s.For, now, p.end, s.Sites[0]), Left: s.Left, Unsaved: s.Kind == strikeStore}
	}
	if p.chance > 0 {
		names := p.names(now, site, out)
		for _, name := range names {
			p.seen[name]++
		}
		left := int(draw.Uniform(p.pcg, uint64(len(names))))
		if draw.Chance(p.pcg, chanceOf(p.chance, p.seen[names[left]], p.hit[names[left]])) {
			p.hit[names[left]]++
			return p.strike(p.pcg, Strike{Kind: strikeWithin, At: now, Sites: []int{site}, Step: step, Left: left})
		}
	}
	if p.store.chance > 0 && draw.Chance(p.store.pcg, int32(p.store.chance*million)) {
		saved := saves(out)
		if p.store.hit[saved]++; draw.Chance(p.store.pcg, int32(million/p.store.hit[saved])) {
			p.seen["loses "+saved]++
			p.hit["loses "+saved]++
			return p.strike(p.store.pcg, Strike{Kind: strikeStore, At: now, Sites: []int{site}, Step: step})
		}
	}
	return testnet.Tear{}
}

// fullAgain is within which time a daemon is started again that has found no room.
const fullAgain = 30 * grid.Second

// at reports whether a site has no room.
func (f *fullPoints) at(now grid.Time, site int) bool {
	return slices.ContainsFunc(f.when[site], func(s Strike) bool { return s.At <= now && now < s.At+s.For })
}

// chanceOf returns the chance, in millionths, that a point is hit which has come so often, and
// was hit so often: what is rare has to be struck as it comes.
func chanceOf(usual float64, seen, hit int64) int32 {
	if seen <= rareMost {
		usual *= rareFactor
	}
	return int32(min(usual/float64(1+hit), 1) * million)
}

// A point is rare as long as it has come so often at most, and is hit that much more often.
const (
	rareMost   = 20
	rareFactor = 10
)

// strike has a daemon die now.
func (p *points) strike(pcg *rand.PCG, s Strike) testnet.Tear {
	s.For = healsBy(grid.Second+grid.Time(draw.Uniform(pcg, uint64(aimDown))), s.At, p.end, s.Sites[0])
	p.t.told.Strikes = append(p.t.told.Strikes, s)
	return testnet.Tear{For: s.For, Left: s.Left, Unsaved: s.Kind == strikeStore}
}

// bare is tear of a step that saves nothing.
func (p *points) bare(now grid.Time, site int, out *grid.Outbox) testnet.Tear {
	b := &p.between
	if b.chance == 0 && len(b.given) == 0 {
		return testnet.Tear{}
	}
	kind, orders := bareKindOf(out)
	if kind < 0 {
		return testnet.Tear{}
	}
	step := stepOf(b.steps, now, site)
	b.seen[kind]++
	if p.t.script.Listed {
		s, come := p.listed(b.given, now, site, step)
		if !come {
			return testnet.Tear{}
		}
		b.hit[kind]++
		return testnet.Tear{For: healsBy(s.For, now, p.end, s.Sites[0]), Left: s.Left}
	}
	chance := b.chance
	if kind == bareCancel { // what users are told counts, and they are told it seldom
		chance *= rareFactor
	}
	if !draw.Chance(b.pcg, chanceOf(chance, b.seen[kind], b.hit[kind])) {
		return testnet.Tear{}
	}
	b.hit[kind]++
	return p.strike(b.pcg, Strike{Kind: strikeBetween, At: now, Sites: []int{site}, Step: step, Left: int(draw.Uniform(b.pcg, uint64(orders)+1))})
}

// bareKindOf returns what a step does first, and how many orders it has; -1 if it only looks
// for sites, or for quotes of them.
func bareKindOf(out *grid.Outbox) (kind, orders int) {
	kind = -1
	for _, e := range out.Effects {
		if e.Kind == grid.EffectTell {
			continue
		}
		orders++
		if e.Kind == grid.EffectAnswer {
			if _, cancels := out.Answers[e.Index].Value.(*site.Cancelled); cancels {
				kind = bareCancel
			}
		}
		switch {
		case kind >= 0:
		case e.Kind == grid.EffectSend:
			if k := out.Sends[e.Index].Message.MessageKind(); !dull(k) {
				kind = int(k)
			}
		case e.Kind == grid.EffectStart:
			kind = bareStart
		case e.Kind == grid.EffectKill:
			kind = bareKill
		}
	}
	return kind, orders
}

// dull reports whether a kind of messages is of those that say nothing anybody relies on.
func dull(k grid.Kind) bool {
	return k >= wire.DirectoryPublish && k <= wire.KademliaNodes
}

// stepOf counts the steps of a site at an instant, and returns the present one's number.
func stepOf(steps map[int]stepCount, now grid.Time, site int) int {
	s := steps[site]
	if s.at != now {
		s = stepCount{at: now}
	}
	s.count++
	steps[site] = s
	return s.count
}

// listed returns the strike of the script whose step has come, or one after it.
func (p *points) listed(all map[int][]Strike, now grid.Time, site, step int) (s Strike, come bool) {
	given := all[site]
	if len(given) == 0 || given[0].At > now || given[0].At == now && given[0].Step > step {
		return Strike{}, false
	}
	all[site] = given[1:]
	p.t.told.Strikes = append(p.t.told.Strikes, given[0])
	return given[0], true
}

// saves returns what a step saves last, by its kind.
func saves(out *grid.Outbox) string {
	saved := ""
	for _, e := range out.Effects {
		if e.Kind == grid.EffectSave {
			saved = plain(out.Records[e.Index].RecordKey())
		}
	}
	return saved
}

// names returns the fault points of a step, by how many of its orders have left.
func (p *points) names(now grid.Time, site int, out *grid.Outbox) (names []string) {
	saved := "forgets"
	if what := saves(out); what != "" {
		saved = "saves " + what
	}
	if testnet.Ticks(p.t.n) {
		saved = "timer " + saved
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
	for kind, seen := range p.between.seen {
		if seen == 0 {
			continue
		}
		name := "saves nothing, starts a task"
		switch {
		case kind == bareKill:
			name = "saves nothing, kills a task"
		case kind == bareCancel:
			name = "saves nothing, answers who cancels"
		case kind < wire.KindMax:
			name = "saves nothing, sends " + wire.KindName(grid.Kind(kind))
		}
		p.seen[name], p.hit[name] = seen, p.between.hit[kind]
	}
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
