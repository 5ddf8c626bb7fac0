package muscle

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/internal/lrms/titan"
)

// Start says what the search for the schedule of a share begins with, besides schedules
// drawn at random.
type Start uint8

// Starts.
const (
	StartSeed    Start = iota // the seed schedule of the share, if the policy gives one: the paper's
	StartArrival              // that, else the order of arrival
	StartAll                  // that, the order of the share and the order of the deadlines
)

// PlanConfig is how a Planner searches.
type PlanConfig struct {
	titan.Config
	Start Start

	// Work bounds schedules × jobs × processors, added up over all generations of a
	// batch but the first ones; 0: a search ends when it is stable.
	Work int
}

// HeadPlan is how a Head plans. The set and the generations are those of a site's own
// queue, and with this work a window takes a tenth of a second whatever its size.
var HeadPlan = PlanConfig{
	Config: titan.Config{Set: 30, Stable: 8, Generations: 30, Settle: 100}, Start: StartAll, Work: 3_000_000,
}

// Planner chooses the order in which a cluster is given its share of a batch: it has
// TITAN improve what the policy proposed. Deterministic; not safe for concurrent use.
type Planner struct {
	*titan.Titan
	cfg PlanConfig
	set int // schedules in a generation
}

// NewPlanner returns a planner. The error is about cfg.
func NewPlanner(cfg PlanConfig, rng *rand.Rand) (*Planner, error) {
	t, err := titan.New(cfg.Config, rng)
	if err != nil {
		return nil, err
	}
	return &Planner{Titan: t, cfg: cfg, set: cfg.WithDefaults().Set}, nil
}

// Plan searches for the best schedule of a cluster's share of b; problem is what
// Batch.Problem returns for it. It returns how many generations that took, and by how
// many bits the times of a long problem were cut (titan.Problem.Coarsen). The schedule
// is Best until the next Plan.
func (p *Planner) Plan(b *Batch, problem *titan.Problem, share *Share) (generations int, cut uint) {
	problem.Free = slices.Clone(problem.Free)
	cut = problem.Coarsen()
	if err := p.Set(problem, p.seeds(problem, share)...); err != nil {
		panic(fmt.Sprintf("muscle: a share is no problem for TITAN: %v", err)) // what is in it was checked
	}
	if p.cfg.Work == 0 {
		return p.Run(), cut
	}
	for left := p.cfg.Work * len(problem.Jobs) / max(len(b.Jobs), 1); left > 0 && !p.Done(); left -= p.set * len(problem.Jobs) * problem.Processors {
		p.Generation()
		generations++
	}
	return generations, cut
}

// seeds returns what the search begins with.
func (p *Planner) seeds(problem *titan.Problem, share *Share) (seeds []titan.Schedule) {
	seeded := len(share.Seed.Order) > 0
	if seeded {
		seeds = append(seeds, share.Seed)
	}
	if p.cfg.Start == StartSeed || p.cfg.Start == StartArrival && seeded {
		return seeds
	}
	present := titan.NewSchedule(problem)
	for i := range problem.Jobs {
		present.Order = append(present.Order, int32(i))
	}
	if p.cfg.Start == StartAll {
		urgent := titan.NewSchedule(problem)
		urgent.Order = append(urgent.Order, present.Order...)
		slices.SortStableFunc(urgent.Order, func(a, b int32) int { return cmp.Compare(problem.Jobs[a].Deadline, problem.Jobs[b].Deadline) })
		problem.Settle(&present)
		problem.Settle(&urgent)
		return append(seeds, present, urgent)
	}
	problem.Settle(&present)
	return append(seeds, present)
}
