package market_test

import (
	"fmt"
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/market"
)

// bargain is a policy that weighs cost against time: it wants the least product of
// both, and asks one site after the other. Pages, and what it takes for known, are
// those of the built-in policy that it embeds.
type bargain struct{ market.Placement }

// Key implements market.Policy.
func (bargain) Key(c market.Candidate) int64 {
	minutes := max(int64((c.Verdict.Finish-c.Job.Submit)/grid.Minute), 1)
	return int64(c.Verdict.Cost/1000) * minutes // credits have room for it: both are small here
}

// Next implements market.Policy.
func (bargain) Next(s *market.Search) market.Move {
	best := s.Ranked(0) // of those that would do, a guarantee included
	if best < 0 {
		return market.Move{Act: market.ActPage}
	}
	switch s.Standing(best) {
	case market.StandingQueued, market.StandingAsked:
		return market.Move{Act: market.ActWait}
	case market.StandingGranted:
		return market.Move{Act: market.ActAward, Quote: best}
	}
	return market.Move{Act: market.ActAsk, Quote: best}
}

func ExamplePolicy() {
	quote := func(site grid.SiteID, speed int64, price grid.Price) directory.Quote {
		return directory.Quote{
			Site: site, Resources: grid.Resources{Processors: 8}, Rating: grid.Rating{Speed: speed, Bandwidth: 1000},
			Price: price, Foreign: true, Free: 8, Widest: 8,
		}
	}
	quotes := []directory.Quote{quote("cheap", 500, grid.Credit), quote("swift", 4000, 20*grid.Credit), quote("fair", 1500, 4*grid.Credit)}
	job := &grid.Job{
		ID: grid.JobID{Lo: 1}, Home: "home", Resources: grid.Resources{Processors: 4}, Tasks: 4, Goal: grid.GoalCost,
		Work: grid.Work{Instructions: 1000 * int64(grid.Hour)}, Deadline: 3 * grid.Hour, Budget: 40 * grid.Credit,
	}
	at := market.Circumstances{Home: "home", HomeStart: grid.Never}
	for _, policy := range []market.Policy{market.PlacementCoordinated, bargain{}} {
		at.Policy = policy
		for _, v := range market.Rank(job, quotes, at) {
			fmt.Printf("%-5s costs %v, done in %v\n", v.Site, v.Cost, v.Finish)
		}
		move := policy.Next(market.NewSearch(job, quotes, at))
		fmt.Println("asks", quotes[move.Quote].Site)
	}
	// Output:
	// cheap costs 8, done in 2h0m0s
	// fair  costs 10.666667, done in 40m0s
	// swift costs 20, done in 15m0s
	// asks cheap
	// swift costs 20, done in 15m0s
	// fair  costs 10.666667, done in 40m0s
	// cheap costs 8, done in 2h0m0s
	// asks swift
}

// party is a site in ExampleAgent: an agent with the driver's loop around it, which
// prints what it says and hands messages over at once.
type party struct {
	site    grid.SiteID
	agent   *market.Agent
	cluster *lrms.Cluster
	other   *party
}

func newParty(site grid.SiteID, processors int64, policy market.Policy) *party {
	cluster, err := lrms.New(lrms.Config{Processors: processors})
	if err != nil {
		panic(err)
	}
	cfg := market.Config{
		Offer: market.Offer{
			Site: site, Resources: grid.Resources{Processors: processors}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
			Price: grid.Credit, Foreign: true,
		},
		Placement: policy,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	dir := directory.New(directory.Config{Self: site, Federation: "example"}, rng)
	return &party{site: site, agent: market.New(cfg, cluster, dir, rng), cluster: cluster}
}

// step is one turn of the loop: everything that is local before anything is sent, as
// records have to be durable first.
func (p *party) step(now grid.Time, in grid.Input) {
	var out grid.Outbox
	p.agent.Step(now, in, &out)
	for _, in := range out.Locals {
		switch in := in.(type) {
		case *market.Placed:
			fmt.Printf("%s: placed at %s for %v credits\n", p.site, in.Award.Site, in.Award.Cost)
		case *market.Refused:
			fmt.Printf("%s: refused: %s\n", p.site, in.Reason)
		case *market.Accepted:
			fmt.Printf("%s: accepted, to start in %v\n", p.site, in.Award.Start-now)
		case *market.Completed:
			fmt.Printf("%s: completed with exit code %d\n", p.site, in.Result.ExitCode)
		case *market.Delivered:
			fmt.Printf("%s: delivered\n", p.site)
		}
	}
	for _, s := range out.Sends {
		fmt.Printf("%s -> %s %T\n", p.site, s.To, s.Message)
		p.other.step(now, &grid.Delivery{From: p.site, Message: s.Message})
	}
}

func ExampleAgent() {
	home, there := newParty("home", 2, bargain{}), newParty("there", 8, nil)
	home.other, there.other = there, home
	job := &grid.Job{
		ID: grid.JobID{Lo: 1}, Home: "home", Site: "there", Resources: grid.Resources{Processors: 4}, Tasks: 4, Goal: grid.GoalCost,
		Estimate: grid.Hour, Work: grid.Work{Instructions: 1000 * int64(grid.Hour)}, Deadline: 3 * grid.Hour, Budget: 5 * grid.Credit,
	}
	home.step(0, &market.Place{Job: job, Epoch: 1})
	for _, started := range there.cluster.Schedule(0, nil) {
		there.cluster.Ended(grid.Hour, started.ID)
		there.step(grid.Hour, &market.Ended{Task: started.ID, Result: grid.Result{End: grid.Hour}})
	}
	// Output:
	// home -> there *market.Negotiate
	// there -> home *market.Reply
	// home: placed at there for 4 credits
	// home -> there *market.JobSubmission
	// there: accepted, to start in 0s
	// there -> home *market.Acknowledge
	// there -> home *market.JobCompletion
	// home: completed with exit code 0
	// home -> there *market.Acknowledge
	// there: delivered
}
