package chaos

import (
	"math/rand/v2"

	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario/federation"
)

// aimCounts is how often jobs at several sites were struck on purpose.
type aimCounts struct {
	Cancelled int64 `json:"cancelled"` // by their users, at any time
	Before    int64 `json:"before"`    // a site of them died while components were held and claimed
	Within    int64 `json:"within"`    // … while some tasks were ready and none had begun
	After     int64 `json:"after"`     // … after they had begun
	Cut       int64 `json:"cut"`       // executions on borrowed processors whose lender was cut off
}

// How long after its cause a site dies that is aimed at, and for how long it is down; and
// how long a user waits before he cancels.
const (
	aimSoon  = 500 * grid.Millisecond // claims and the barrier take a few ways
	aimLater = 5 * grid.Minute
	aimDown  = 5 * grid.Minute

	cutLeast = 3 * grid.Minute // more than a term
	cutsEach = 4               // a lender is cut off for one of so many executions that would be struck
)

// aims strikes jobs that run at several sites, or may, where it hurts. Faults that come by themselves meet
// few of them: to claim, and to get ready, takes less than a second.
type aims struct {
	t       *trial
	n       *testnet.Network
	pcg     *rand.PCG
	chance  int32     // of each, per million
	end     grid.Time // all has healed then
	divided map[grid.JobID]bool
	seen    map[grid.TaskID]aimStage
	cuts    *rand.PCG
	counts  aimCounts
}

// aimStage is how far an execution is.
type aimStage uint8

const (
	stageReady aimStage = iota + 1
	stageBegun
)

// aimAt has a share of the jobs at several sites struck.
func aimAt(t *trial, share float64) *aims {
	n := t.n
	a := &aims{
		t: t, n: n, pcg: draw.PCG(t.script.Seed, "aims", draw.ForFaults), chance: int32(share * million), end: federation.Warmup + t.span,
		divided: make(map[grid.JobID]bool), seen: make(map[grid.TaskID]aimStage), cuts: draw.PCG(t.script.Seed, "aimed cuts", draw.ForFaults),
	}
	if share > 0 {
		n.Observe(testnet.Observer{Event: a.event, Ready: a.ready, Start: a.start})
	}
	return a
}

// event strikes at home: the user cancels, or the site dies that has just begun to claim.
func (a *aims) event(now grid.Time, where int, e *grid.Event) {
	if e.Job.Coallocate == nil && !e.Job.Spread || now >= a.end {
		return
	}
	switch e.Kind {
	case grid.JobSubmitted:
		a.divided[e.Job.ID] = true
		if draw.Chance(a.pcg, a.chance) {
			a.counts.Cancelled++
			within := aimLater
			if draw.Chance(a.pcg, million/2) { // while it is placed and claimed
				within = 2 * aimSoon
			}
			at := now + grid.Time(draw.Uniform(a.pcg, uint64(within)))
			a.t.wish(Wish{Kind: WishCancel, At: at, Site: where, Job: e.Job.ID.String()})
		}
	case grid.JobPlaced:
		a.die(now, where, aimSoon, &a.counts.Before)
	}
}

// ready strikes a site where some tasks are ready.
func (a *aims) ready(now grid.Time, where int, id grid.TaskID) {
	task, _, yes := grid.SquadOf(id)
	if yes && a.divided[task.Job] && a.seen[task] == 0 {
		a.seen[task] = stageReady
		a.die(now, where, aimSoon, &a.counts.Within)
	}
}

// start strikes a site where tasks run.
func (a *aims) start(now grid.Time, x *testnet.Execution) {
	if x.Pilot.Key != 0 {
		a.cut(now, x.Site)
	}
	if x.Squad == nil || !a.divided[x.Job.ID] || a.seen[x.Squad.Gang.Task] == stageBegun {
		return
	}
	a.seen[x.Squad.Gang.Task] = stageBegun
	sites := x.Squad.Gang.Parts
	if where, known := a.n.Index(sites[draw.Uniform(a.pcg, uint64(len(sites)))].Site); known {
		a.die(now, where, aimLater, &a.counts.After)
	}
}

// cut has the network cut a lender off, by chance, for longer than its lease lasts without a word.
func (a *aims) cut(now grid.Time, lender int) {
	if now >= a.end || !draw.Chance(a.cuts, a.chance/cutsEach) {
		return
	}
	f := testnet.Fault{
		Kind: testnet.FaultPartition, Sites: []int{lender},
		At: now + grid.Time(draw.Uniform(a.cuts, uint64(aimSoon))), For: cutLeast + grid.Time(draw.Uniform(a.cuts, uint64(aimDown))),
	}
	if f.At >= a.end {
		return
	}
	f.For = healsBy(f.For, f.At, a.end, lender)
	a.counts.Cut++
	a.t.strike(strikeOf(&f))
}

// die has a site die within a time, by chance, and counts it.
func (a *aims) die(now grid.Time, where int, within grid.Time, count *int64) {
	if now >= a.end || !draw.Chance(a.pcg, a.chance) {
		return
	}
	f := testnet.Fault{
		Kind: testnet.FaultKind(draw.Uniform(a.pcg, uint64(testnet.FaultPartition))), Sites: []int{where},
		At: now + grid.Time(draw.Uniform(a.pcg, uint64(within))), For: grid.Second + grid.Time(draw.Uniform(a.pcg, uint64(aimDown))),
	}
	if f.At >= a.end {
		return
	}
	f.For = healsBy(f.For, f.At, a.end, where)
	*count++
	a.t.strike(strikeOf(&f))
}

// Bounds of what a job does to its machine.
const (
	poisonSoon = 10 * grid.Second // after its start, and before its end
	poisonDown = 2 * grid.Minute
)

// poison has some jobs take the machine down on which they run, each time that they start, until
// faults end: as one does that uses up memory, or that makes the kernel panic.
func (f features) poison(t *trial) {
	seed, end := t.script.Seed, federation.Warmup+t.span
	t.n.Observe(testnet.Observer{Start: func(now grid.Time, x *testnet.Execution) {
		of := x.Job.ID.Lo
		if !f.hits(seed, "poison", of) {
			return
		}
		of += uint64(x.ID.Epoch) << 56
		soon := min(poisonSoon, x.End-now)
		if soon < 1 {
			return
		}
		die := testnet.Fault{Kind: testnet.FaultMachine, Sites: []int{x.Site}, At: now + grid.Time(roll(seed, "poisoned", of, uint64(soon)))}
		if die.At < end {
			die.For = healsBy(grid.Second+grid.Time(roll(seed, "poisoned down", of, uint64(poisonDown))), die.At, end, x.Site)
			t.strike(strikeOf(&die))
		}
	}})
}

// banMost is for how long a home is banned at most.
const banMost = 10 * grid.Minute

// ban has sites ban the homes of some jobs, for a while, that are placed there and on their way,
// until faults end.
func (f features) ban(t *trial) {
	f.placedElsewhere(t, "ban", func(now grid.Time, home, at int, _ *grid.Job, of uint64) {
		t.wish(Wish{Kind: WishBan, At: now, Site: at, Lender: home, Span: grid.Second + grid.Time(roll(t.script.Seed, "banned", of, uint64(banMost)))})
	})
}

// placedElsewhere calls do of those jobs that a feature hits as they are placed at another site than
// home, until faults end, with a number for each execution.
func (f features) placedElsewhere(t *trial, feature string, do func(now grid.Time, home, at int, j *grid.Job, of uint64)) {
	seed, end := t.script.Seed, federation.Warmup+t.span
	t.n.Observe(testnet.Observer{Event: func(now grid.Time, home int, e *grid.Event) {
		at, known := t.n.Index(e.Site)
		if e.Kind != grid.JobPlaced || !known || at == home || now >= end {
			return
		}
		if of := e.Job.ID.Lo + uint64(e.Epoch)<<56; f.hits(seed, feature, of) {
			do(now, home, at, e.Job, of)
		}
	}})
}

// holdMost is for how long a user holds a job at most, and holdNext within which time of the end of one of
// an array the next one.
const (
	holdMost = 20 * grid.Minute
	holdNext = 50 * grid.Millisecond
)

// holdNextOf has users hold half of the jobs of arrays as these are let go, which is when the one before
// has ended, until faults end.
func (f features) holdNextOf(t *trial) {
	seed, end := t.script.Seed, federation.Warmup+t.span
	t.n.Observe(testnet.Observer{Event: func(now grid.Time, home int, e *grid.Event) {
		over := e.Kind == grid.JobFinished || e.Kind == grid.JobCancelled
		if of := e.Job.ID.Lo; over && e.Job.Array != nil && now < end && roll(seed, "hold next", of, 2) == 0 {
			t.wish(Wish{
				Kind: WishHold, At: now + grid.Time(roll(seed, "held at", of, uint64(holdNext))), Site: home, Job: e.Job.ID.String(),
				Span: grid.Second + grid.Time(roll(seed, "held", of, uint64(holdMost))),
			})
		}
	}})
}

// detainMost is for how long an owner holds a job at most, and detainSoon within which time of its
// placement he does.
const (
	detainMost = 10 * grid.Minute
	detainSoon = 20 * grid.Second
)

// detain has owners hold some jobs that others have placed at their sites, or end them, until faults
// end.
func (f features) detain(t *trial) {
	seed := t.script.Seed
	f.placedElsewhere(t, "detain", func(now grid.Time, _, at int, j *grid.Job, of uint64) {
		soon := [...]uint64{uint64(grid.Second), uint64(detainSoon)}[roll(seed, "detain soon", of, 2)]
		t.wish(Wish{
			Kind: WishDetain, At: now + grid.Time(roll(seed, "detained at", of, soon)), Site: at, Job: j.ID.String(),
			Span: grid.Second + grid.Time(roll(seed, "detained", of, uint64(detainMost))), Which: roll(seed, "how", of, 4),
		})
	})
}
