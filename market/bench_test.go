package market

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
)

// pair is two sites wired back to back, with as little around the agents as can be.
type pair struct {
	now   grid.Time
	sides [2]pairSide
	page  []directory.Quote
	done  int
}

type pairSide struct {
	id       grid.SiteID
	agent    *Agent
	cluster  *lrms.Cluster
	outbox   grid.Outbox
	started  []lrms.Request
	delivery grid.Delivery
	ended    Ended
}

func newPair(b *testing.B, placement Placement, sites int) *pair {
	p := &pair{now: testEpoch}
	for i, id := range []grid.SiteID{"a", "b"} {
		cluster, err := lrms.New(lrms.Config{Processors: 1024})
		if err != nil {
			b.Fatal(err)
		}
		cfg := Config{
			Offer: Offer{
				Site: id, Resources: grid.Resources{Processors: 1024}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
				Price: grid.Credits(9-i) * grid.Credit, Foreign: true,
			},
			Placement: placement, Quiet: true, Near: 1,
		}
		dir := directory.New(directory.Config{Self: id, Federation: "bench"}, rand.New(rand.NewPCG(1, 2)))
		p.sides[i] = pairSide{id: id, cluster: cluster, agent: New(cfg, cluster, dir, rand.New(rand.NewPCG(1, 2)))}
	}
	p.page = append(p.page, p.sides[1].agent.Quote(p.now))
	for i := range sites - 1 {
		p.page = append(p.page, quoteOf(fmt.Sprintf("s%d", i), 100, nil))
	}
	return p
}

// step gives an input to one side and carries messages until nothing moves.
func (p *pair) step(side int, in grid.Input) {
	s := &p.sides[side]
	s.outbox.Reset()
	s.agent.Step(p.now, in, &s.outbox)
	sends := s.outbox.Sends
	for _, in := range s.outbox.Locals {
		if _, ok := in.(*Completed); ok {
			p.done++
		}
	}
	other := &p.sides[1-side]
	for _, m := range sends {
		if m.To != other.id {
			continue // of the directory
		}
		other.delivery = grid.Delivery{From: s.id, Message: m.Message}
		p.step(1-side, &other.delivery)
	}
}

// job places one job from a, which b runs for no time at all.
func (p *pair) job(b *testing.B, job *grid.Job) {
	home, there := &p.sides[0], &p.sides[1]
	p.now += grid.Second
	job.ID.Lo++
	job.Submit, job.Deadline = p.now, p.now+grid.Hour
	p.step(0, &Place{Job: job, Epoch: 1})
	for id := range home.agent.broker.queries {
		p.step(0, &directory.Found{ID: id, Quotes: p.page, End: true})
	}
	there.started = there.cluster.Schedule(p.now, there.started[:0])
	for i := range there.started {
		task := there.started[i].ID
		there.cluster.Ended(p.now, task)
		there.ended = Ended{task, grid.Result{Start: p.now, End: p.now}}
		p.step(1, &there.ended)
	}
}

// BenchmarkRoundTrip is one job from Place to Completed between two sites:
// a ranking, negotiate, reply, submission, acknowledgement, completion and its
// acknowledgement, with the directory's answer given by the benchmark.
func BenchmarkRoundTrip(b *testing.B) {
	for _, placement := range []Placement{PlacementCoordinated, PlacementPaper} {
		for _, sites := range []int{1, 16} {
			b.Run(fmt.Sprintf("%v/quotes=%d", placement, sites), func(b *testing.B) {
				p := newPair(b, placement, sites)
				job := &grid.Job{
					ID: grid.JobID{Hi: 1}, Home: "a", Resources: grid.Resources{Processors: 4}, Tasks: 1, Estimate: grid.Minute,
					Work: grid.Work{Instructions: int64(grid.Minute) * 1000}, Budget: grid.NoBudget, Goal: grid.GoalCost,
				}
				b.ReportAllocs()
				for b.Loop() {
					p.job(b, job)
				}
				if p.done != b.N {
					b.Fatalf("%d of %d jobs completed", p.done, b.N)
				}
			})
		}
	}
}

// BenchmarkRank ranks quotes as a placement does, and as it is explained to users.
func BenchmarkRank(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, sites := range []int{10, 100, 1000} {
		var quotes []directory.Quote
		for i := range sites {
			quotes = append(quotes, quoteOf(fmt.Sprintf("site%d", i), 1+rng.Int64N(20), func(q *directory.Quote) {
				q.Speed, q.Widest, q.Wait = 500+rng.Int64N(1000), rng.Int64N(11), grid.Time(rng.Int64N(int64(grid.Hour)))
			}))
		}
		job := hourJob(func(j *grid.Job) { j.Processors, j.Deadline, j.Budget = 4, 3*grid.Hour, 50*grid.Credit })
		at := Circumstances{Home: "site0", Memory: new(Memory)}
		b.Run(fmt.Sprintf("placement/quotes=%d", sites), func(b *testing.B) {
			var r ranking
			b.ReportAllocs()
			for b.Loop() {
				r.rank(job, quotes, &at)
			}
		})
		b.Run(fmt.Sprintf("explained/quotes=%d", sites), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Rank(job, quotes, at)
			}
		})
	}
}
