package market

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// faults is a network in which anything happens to messages and daemons, for a
// while; then it heals.
type faults struct {
	*network
	rng     *rand.Rand
	healed  bool
	loss    int // thousandths
	double  int
	tell    int // of the lost ones, that their sender is told
	slow    int // that a message takes up to a minute
	crashes int // thousandths, per event
	sleep   int // a daemon that is down comes back at every sleep-th event
	jobs    []grid.JobID
}

// TestFaults checks, over random networks, jobs and faults, what doc.go promises.
func TestFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		run := newFaults(t, seed)
		run.play(grid.Hour)
		run.heal()
		run.settle(t)
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
}

// fatal lets a rapid.T stand in for a testing.TB.
type fatal struct {
	testing.TB
	t *rapid.T
}

func (f fatal) Fatal(args ...any)                 { f.t.Fatal(args...) }
func (f fatal) Fatalf(format string, args ...any) { f.t.Fatalf(format, args...) }

func newFaults(t *rapid.T, seed uint64) *faults {
	rng := rand.New(rand.NewPCG(seed, 7))
	n := newNetwork(fatal{nil, t})
	n.silent = true
	f := &faults{network: n, rng: rng, loss: rng.IntN(300), double: rng.IntN(300), tell: rng.IntN(1000), slow: rng.IntN(200), crashes: rng.IntN(300), sleep: 1 + rng.IntN(40)}
	for i := range 2 + rng.IntN(4) {
		spans := []grid.Time{grid.Second, 10 * grid.Second, 20 * grid.Minute}
		n.add(Config{
			Offer: Offer{
				Site: grid.SiteID(fmt.Sprintf("s%d", i)), Resources: grid.Resources{Processors: 1 + rng.Int64N(8)},
				Rating: grid.Rating{Speed: 500 + rng.Int64N(1000), Bandwidth: 1000}, Price: grid.Price(rng.IntN(4)) * grid.Credit,
				Cost: grid.CostModel(rng.IntN(2)), Foreign: rng.IntN(8) > 0,
			},
			Placement: [...]Policy{PlacementCoordinated, PlacementPaper, erratic{}}[rng.IntN(3)],
			Page:      1 + rng.IntN(4), Parallel: 1 + rng.IntN(3), HoldSpan: spans[rng.IntN(3)], Allowance: grid.Time(rng.IntN(2)) * grid.Second,
			Near: 1 + rng.IntN(4), AsksPerPeer: 1 + rng.IntN(4), HoldsPerPeer: 1 + rng.IntN(4), SkipInfeasible: rng.IntN(2) == 0, HoldShare: int64(500 + 500*rng.IntN(2)),
		}, grid.Time(rng.Int64N(int64(2*grid.Hour)))-grid.Hour)
	}
	return f
}

// send decides what becomes of the messages that were just sent.
func (f *faults) send() {
	for i := range f.flight {
		m := &f.flight[i]
		if m.at != 0 {
			continue
		}
		m.at = f.now + grid.Time(f.rng.Int64N(int64(100*grid.Millisecond))) + 1
		if f.healed {
			continue
		}
		if f.rng.IntN(1000) < f.slow {
			m.at += grid.Time(f.rng.Int64N(int64(grid.Minute)))
		}
		if f.rng.IntN(1000) < f.double {
			twin := *m
			twin.at += grid.Time(f.rng.Int64N(int64(20 * grid.Second)))
			twin.twin = true
			f.flight = append(f.flight, twin)
			m = &f.flight[i]
			m.twin = true
		}
		if f.rng.IntN(1000) < f.loss {
			m.lost = true
		}
	}
}

// arrive hands over everything that is due, in the order of arrival.
func (f *faults) arrive() {
	for {
		f.send()
		first := -1
		for i, m := range f.flight {
			if m.at <= f.now && (first < 0 || m.at < f.flight[first].at) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		m := f.flight[first]
		f.flight = slices.Delete(f.flight, first, first+1)
		if f.sites[m.to].up && !m.lost {
			f.hand(m)
		} else if !m.twin && f.rng.IntN(1000) < f.tell {
			f.sites[m.from].step(&grid.Undelivered{To: m.to, Message: m.message})
		}
	}
}

// play lets things happen for span.
func (f *faults) play(span grid.Time) {
	for end := f.now + span; f.now < end; {
		f.pass(f.now + grid.Time(f.rng.Int64N(int64(20*grid.Second))))
		f.deaf = f.rng.IntN(10) == 0
		switch f.rng.IntN(6) {
		case 0:
			for range 1 + f.rng.IntN(6) {
				f.submit()
			}
		case 1:
			f.change()
		case 2:
			f.cancelOne()
		case 3:
			s := f.sites[f.order[f.rng.IntN(len(f.order))]]
			if s.up {
				s.publish()
			}
		default:
			s := f.sites[f.order[f.rng.IntN(len(f.order))]]
			if !s.up && f.rng.IntN(f.sleep) == 0 {
				s.restart()
			} else if s.up && f.rng.IntN(1000) < f.crashes {
				s.crash()
			}
		}
	}
}

// pass lets time pass until then.
func (f *faults) pass(then grid.Time) {
	for {
		f.arrive()
		next := f.nextEvent()
		for _, m := range f.flight {
			next = min(next, m.at)
		}
		if next > then {
			break
		}
		f.now = max(f.now, next)
		f.tick()
	}
	f.now = then
	f.tick()
}

func (f *faults) submit() {
	home := f.sites[f.order[f.rng.IntN(len(f.order))]]
	if !home.up || len(f.jobs) >= 40 {
		return
	}
	span := grid.Time(1 + f.rng.Int64N(int64(10*grid.Minute)))
	job := f.job(uint64(len(f.jobs)+1), home.cfg.Site, 1+f.rng.Int64N(8), span, grid.Goal(f.rng.IntN(4)))
	job.RunTime = 1 + grid.Time(f.rng.Int64N(int64(span)))
	switch f.rng.IntN(4) {
	case 0:
		job.Deadline = grid.Never
	case 1:
		job.Deadline += grid.Hour
	}
	if f.rng.IntN(3) == 0 {
		job.Budget = grid.NoBudget
	}
	if f.rng.IntN(8) == 0 {
		job.Site = f.order[f.rng.IntN(len(f.order))]
	}
	f.jobs = append(f.jobs, job.ID)
	f.place(job)
}

// change changes a price, or asks what would happen.
func (f *faults) change() {
	s := f.sites[f.order[f.rng.IntN(len(f.order))]]
	if !s.up {
		return
	}
	if f.rng.IntN(2) == 0 {
		s.agent.SetPrice(grid.Price(f.rng.IntN(4)) * grid.Credit)
		return
	}
	s.step(&Preview{Token: 1, Job: f.job(1000, s.cfg.Site, 1+f.rng.Int64N(8), grid.Minute, grid.Goal(f.rng.IntN(4)))})
}

func (f *faults) cancelOne() {
	if len(f.jobs) == 0 || f.rng.IntN(3) > 0 {
		return
	}
	id := f.jobs[f.rng.IntN(len(f.jobs))]
	for _, at := range f.order {
		s := f.sites[at]
		if j := s.jobs[id]; j != nil && s.up && !j.cancelled && (j.state == "placing" || j.state == "awarded") {
			f.stop(at, id)
		}
	}
}

func (f *faults) heal() {
	f.healed, f.deaf = true, false
	for _, id := range f.order {
		if s := f.sites[id]; !s.up {
			s.restart()
		}
		f.sites[id].publish()
	}
}

// settle waits until nothing is left to do and checks that nothing is left over.
func (f *faults) settle(t *rapid.T) {
	for end := f.now + 100*grid.Hour; f.now < end; {
		next := f.nextEvent()
		for _, m := range f.flight {
			next = min(next, m.at)
		}
		if next == grid.Never {
			break
		}
		f.pass(max(next, f.now))
	}
	for _, overlap := range f.overlaps {
		t.Error(overlap)
	}
	for _, id := range f.order {
		f.check(t, f.sites[id])
	}
}

func (f *faults) check(t *rapid.T, s *site) {
	for id, j := range s.jobs {
		if j.state != "done" && j.state != "refused" && j.state != "cancelled" {
			t.Errorf("%s: job %s is %s at the end", s.cfg.Site, f.name(id), j.state)
		}
		if j.award.Cost > j.job.Budget && j.job.Budget >= 0 && s.cfg.Placement == PlacementCoordinated && j.state == "done" {
			t.Errorf("%s: job %s costs %v, its budget is %v", s.cfg.Site, f.name(id), j.award.Cost, j.job.Budget)
		}
		if j.result.Cost > j.award.Cost {
			t.Errorf("%s: job %s was charged %v, agreed were %v", s.cfg.Site, f.name(id), j.result.Cost, j.award.Cost)
		}
	}
	for id := range s.remotes {
		t.Errorf("%s: remote job %s was never delivered", s.cfg.Site, f.name(id))
	}
	a := s.agent
	b, holds, remote, timers := &a.broker, a.provider.admission.holds, a.provider.jobs, &a.office.timers
	if len(b.placing)+len(b.queries)+len(a.away.jobs)+len(holds)+len(remote)+timers.Len()+len(a.office.memory.freed) > 0 {
		t.Errorf("%s: left over: %d placements, %d queries, %d migrated, %d holds, %d remote, %d timers", s.cfg.Site,
			len(b.placing), len(b.queries), len(a.away.jobs), len(holds), len(remote), timers.Len())
	}
	for id, e := range a.office.memory.sites {
		if e.underWay != 0 || e.processors != 0 || e.area != 0 || e.waiting.len() != 0 || e.holds != 0 || e.held != 0 {
			t.Errorf("%s remembers of %s: %+v", s.cfg.Site, id, e)
		}
	}
	if state := s.cluster.State(s.clock()); state.Reserved > 0 || state.Running > 0 || state.Queued > 0 {
		t.Errorf("%s: cluster is left with %+v", s.cfg.Site, state)
	}
}
