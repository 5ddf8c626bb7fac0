package market

import (
	"fmt"
	"math"

	"gridnode/directory"
	"gridnode/grid"
)

// Policy is how a home looks for a site for its jobs. Placement has the ones that are
// built in; whoever embeds one of them and replaces a method has another.
//
// A policy is a pure function: what a method returns depends on its arguments only, so
// that the same run gives the same trace. It keeps nothing between two calls except in
// Search.Marks, reads no clock, ranges over no map, draws only with Search.Draw, and
// changes neither job nor quotes. One value serves all jobs of all sites it is given
// to. What it decides with are integers: floats differ between machines.
type Policy interface {
	// Traits returns what the policy wants of the agent around it, always the same.
	Traits() Traits

	// Key returns what of a site the policy wants small. It orders those that would do
	// (Rank) wherever sites are compared: by Search.Ranked, by `submit --dry-run` and
	// by `why`.
	Key(c Candidate) int64

	// Next returns what to do now for a job. It is called when the first page of quotes
	// is there and whenever something has come of the last move, but not while a page
	// is fetched. A move that is none is a defect of the policy, and panics: to ask or
	// award a quote that is not there, to ask a site that is being asked or has given
	// its guarantee, home a second time, or anybody while a site is StandingQueued, to
	// award what is not granted, and to wait when nobody is asked.
	Next(s *Search) Move
}

// Traits are what a policy wants of the agent around it. The zero value suits most.
type Traits struct {
	// Whole: the pages hold every site in the order of the job's goal, with home where
	// the directory lists it or should. Otherwise they hold the sites that suit the
	// job, of a page behind the first preferably those with room at the moment, and home
	// is known from the first page on.
	Whole bool

	// Literal: quotes are taken at their word. Otherwise load reports, what sites
	// replied lately, and what this home is asking them for count, too.
	Literal bool

	// Final: a refusal is final. Otherwise a site whose price has changed, and one that
	// is busy at the moment, a little later, may be asked once more.
	Final bool

	// TimeBudget: a budget binds jobs of GoalTime only.
	TimeBudget bool
}

// Candidate is what Policy.Key judges: a site that a job might run at.
type Candidate struct {
	Job     *grid.Job
	Quote   *directory.Quote
	Verdict *Verdict // price, cost and finish by all that is known; Outcome as well
	Home    bool     // the site is the job's home
}

// Move is what a policy does next for a job.
type Move struct {
	Act   Act
	Quote int // of ActAsk and ActAward: place among Search.Quotes

	// Again, after ActAsk: Next is called at once, and not when something has come of
	// it. After home was asked in vain it always is.
	Again bool
}

// Act is the kind of a Move.
type Act uint8

const (
	ActWait   Act = iota + 1 // for somebody who was asked
	ActAsk                   // negotiate with a site, or place the job at home if home can take it
	ActAward                 // take a guarantee up; all others are given back
	ActPage                  // fetch the next page of quotes; ActRefuse if there is none
	ActRefuse                // give up: no site will have the job
)

// Placement is a Policy that is built in.
type Placement uint8

const (
	// PlacementCoordinated ranks a page of quotes, skips what cannot work, and
	// asks as few sites as it can.
	PlacementCoordinated Placement = iota
	// PlacementPaper is the published loop of Grid-Federation §2.2: negotiate with
	// the r-th cheapest or fastest site, r = 1, 2, …, until one accepts.
	PlacementPaper
)

var placementNames = [...]string{"coordinated", "paper"}

// String returns the name used in configuration files.
func (p Placement) String() string {
	if int(p) >= len(placementNames) {
		return fmt.Sprintf("placement-%d", uint8(p))
	}
	return placementNames[p]
}

// ParsePlacement is the inverse of String.
func ParsePlacement(s string) (Placement, error) {
	for p, name := range placementNames {
		if s == name {
			return Placement(p), nil
		}
	}
	return 0, fmt.Errorf("placement %q: want coordinated or paper", s)
}

// policy returns what p stands for.
func (p Placement) policy() Policy {
	if p == PlacementPaper {
		return paper{}
	}
	return coordinated{}
}

// Traits implements Policy.
func (p Placement) Traits() Traits { return p.policy().Traits() }

// Key implements Policy.
func (p Placement) Key(c Candidate) int64 { return p.policy().Key(c) }

// Next implements Policy.
func (p Placement) Next(s *Search) Move { return p.policy().Next(s) }

// homeFirst is the key of GoalSpill and GoalLocal: home, then falling speed
// (experiment 2).
func homeFirst(c Candidate) int64 {
	if c.Home {
		return math.MinInt64
	}
	return -c.Quote.Speed
}
