package chaos

import (
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
)

// Bounds of what is drawn for clocks.
const (
	stepMost = grid.Hour // by which a clock is set, either way
	slewMost = 500       // microseconds a second that a clock gains or loses while it is slewed, as by NTP
)

// stepBy draws by how much a clock is set: often by little, which is harder to see.
func stepBy(pcg *rand.PCG) grid.Time {
	most := [...]grid.Time{grid.Second, 30 * grid.Second, 5 * grid.Minute, stepMost}[draw.Uniform(pcg, 4)]
	return grid.Time(draw.Uniform(pcg, uint64(2*most+1))) - most
}

// takenUp draws deaths of the daemon while a clock is wrong: only a start takes that up.
func takenUp(pcg *rand.PCG, f *testnet.Fault) (drawn []Strike) {
	for range draw.Uniform(pcg, 3) {
		d := testnet.Fault{Kind: testnet.FaultDaemon, Sites: f.Sites, At: f.At + grid.Time(draw.Uniform(pcg, uint64(f.For)))}
		if d.For = min(1+grid.Time(draw.Uniform(pcg, uint64(grid.Minute))), f.At+f.For-d.At); d.For > 0 {
			drawn = append(drawn, strikeOf(&d))
		}
	}
	return drawn
}

// clockWatch knows what was promised by a clock that has jumped since: who counts on such a
// promise counts wrong, and that is the clock's fault. It counts from the jump to the end of the
// promise, and of one that a site makes later it says nothing.
type clockWatch struct {
	n       *testnet.Network
	jumps   int64
	pending map[int]bool         // sites that have yet to be looked at since their clock has jumped
	jumped  map[int][]jump       // of each site
	leases  map[feeID]bool       // that were there as it did
	tasks   map[grid.TaskID]bool // jobs that were placed
}

// watchClocks starts to watch. It comes before all who ask it.
func watchClocks(n *testnet.Network) *clockWatch {
	w := &clockWatch{n: n, pending: make(map[int]bool), jumped: make(map[int][]jump), leases: make(map[feeID]bool), tasks: make(map[grid.TaskID]bool)}
	n.Observe(testnet.Observer{Step: w.step, Turn: w.turn, Start: w.start})
	return w
}

func (w *clockWatch) step(now grid.Time, at int, by grid.Time) {
	w.jumps++
	w.pending[at] = true
	w.jumped[at] = append(w.jumped[at], jump{now, by})
}

func (w *clockWatch) turn(_ grid.Time, at int) {
	if len(w.pending) > 0 && w.pending[at] {
		w.look(at)
	}
}

// start comes before the first turn if recovery starts something.
func (w *clockWatch) start(_ grid.Time, x *testnet.Execution) {
	if len(w.pending) > 0 && w.pending[x.Site] {
		w.tasks[x.ID] = true
	}
}

// look notes what a site has promised before.
func (w *clockWatch) look(at int) {
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	delete(w.pending, at)
	for l := range lease.All(site.CoresOf(s).Book) {
		w.leases[feeID{l.Borrower, l.Number}] = true
	}
	s.Jobs(func(v site.View) bool {
		if !v.State.Terminal() {
			w.tasks[grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}] = true
		}
		return true
	})
}

// lease reports whether a clock has jumped since a lease was made.
func (w *clockWatch) lease(l *lease.Lease) bool {
	return w != nil && w.jumps > 0 && w.leases[feeID{l.Borrower, l.Number}]
}

// task reports whether a clock has jumped since a job was placed.
func (w *clockWatch) task(id grid.TaskID) bool { return w != nil && w.jumps > 0 && w.tasks[id] }

// set reports whether a site's clock has ever jumped.
func (w *clockWatch) set(at int) bool { return w != nil && w.jumps > 0 && len(w.jumped[at]) > 0 }

// within returns by how much the clocks of sites have jumped between two instants, all
// jumps together.
func (w *clockWatch) within(from, to grid.Time, sites ...grid.SiteID) (sum grid.Time) {
	if w == nil || w.jumps == 0 {
		return 0
	}
	for _, id := range sites {
		at, known := w.n.Index(id)
		if !known {
			continue
		}
		for _, j := range w.jumped[at] {
			if from <= j.at && j.at <= to {
				sum += max(j.by, -j.by)
			}
		}
	}
	return sum
}

// jump is one of a daemon's clock.
type jump struct{ at, by grid.Time }

// sets reports whether clocks of machines may be set in a run, or stand still.
func (s *Script) sets() bool {
	of, _ := parseList("faults", s.Faults, intensities) // was validated
	return of["step"]+of["still"] > 0 || slices.ContainsFunc(s.Strikes, func(x Strike) bool {
		return x.Kind == testnet.FaultStep.String() || x.Kind == testnet.FaultStill.String()
	})
}
