package packing

import (
	"math"
	"math/rand/v2"

	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/testnet/draw"
)

// Run times on the first cluster follow a bounded Pareto distribution (equation 4)
// from 5 to 100 seconds. The paper does not print its α; 1 is what the work has from
// which it takes the distribution (Tang and Chanson 2000).
const (
	paretoLeast = 5
	paretoMost  = 100
	paretoAlpha = 1
)

// packingJobs draws batches of jobs (section 5). The draws do not depend on the
// policy, so all policies get the same jobs.
type packingJobs struct {
	cfg      *Config
	clusters []packingCluster
	widest   int
	rng      *rand.Rand
}

func newPackingJobs(cfg *Config) *packingJobs {
	g := &packingJobs{cfg: cfg, rng: rand.New(draw.PCG(cfg.Seed, "packing", draw.ForJobs))}
	g.clusters, g.widest = cfg.clusters()
	return g
}

// fill replaces the jobs of b by the next batch. Submissions follow a Poisson
// process, so their number in a collection window does; it is at least 1.
func (g *packingJobs) fill(b *muscle.Batch) {
	b.Jobs = b.Jobs[:0]
	window := g.window()
	var ages []float64
	for len(ages) == 0 {
		for at := g.rng.ExpFloat64(); at < float64(g.cfg.Queue); at += g.rng.ExpFloat64() {
			ages = append(ages, window*(1-at/float64(g.cfg.Queue)))
		}
	}
	for _, age := range ages {
		b.Jobs = append(b.Jobs, g.job(age))
	}
}

// window returns the seconds in which a batch arrives: as long as the clusters take
// for one, by the means, as otherwise the queue would grow or run dry.
func (g *packingJobs) window() float64 {
	capacity := 0.0
	for _, c := range g.clusters {
		capacity += float64(c.processors) * float64(c.rate) / rateUnit
	}
	run := math.Log(paretoMost/paretoLeast) * paretoLeast * paretoMost / (paretoMost - paretoLeast) // mean for α = 1
	size := float64(1+g.widest) / 2
	if g.cfg.Sizes == "log" {
		size = 0 // Σ of the chances that it is at least n
		for n := 1; n <= g.widest; n++ {
			size += 1 - math.Log(float64(n))/math.Log(float64(g.widest)+1)
		}
	}
	return float64(g.cfg.Queue) * run * size / capacity
}

// job draws a job that was submitted that many seconds before the batch is shared out.
func (g *packingJobs) job(age float64) muscle.Job {
	run := g.pareto()
	j := muscle.Job{Processors: g.size()}
	for _, c := range g.clusters {
		// "multiplying by the ratio between" the rates; the first cluster's is 1.
		j.Spans = append(j.Spans, max(micros(run*rateUnit/float64(c.rate)), 1))
	}
	lo, hi := g.cfg.DeadlineRange[0], g.cfg.DeadlineRange[1]
	ratio := lo + (hi-lo)*g.rng.Float64()
	j.Deadline = micros(run * (1 + ratio)) // the first cluster is the slowest
	if g.cfg.Deadlines == "arrival" {
		j.Arrival = -micros(age)
		j.Deadline += j.Arrival
	}
	return j
}

func micros(seconds float64) grid.Time { return grid.Time(math.Round(seconds * 1e6)) }

// pareto inverts the distribution function of equation 4.
func (g *packingJobs) pareto() float64 {
	least, most := math.Pow(paretoLeast, paretoAlpha), math.Pow(paretoMost, paretoAlpha)
	u := g.rng.Float64()
	return math.Pow(most*least/(most-u*(most-least)), 1.0/paretoAlpha)
}

// size draws the processors of a job, 1 to g.widest.
func (g *packingJobs) size() int {
	switch g.cfg.Sizes {
	case "normal":
		// About the middle; three standard deviations reach the ends.
		for {
			mean, deviation := float64(1+g.widest)/2, float64(g.widest-1)/6
			if n := int(math.Round(mean + deviation*g.rng.NormFloat64())); n >= 1 && n <= g.widest {
				return n
			}
		}
	case "log":
		// "the probability that a job uses fewer than n processors is roughly proportional to log n"
		return min(int(math.Exp(g.rng.Float64()*math.Log(float64(g.widest)+1))), g.widest)
	}
	return 1 + g.rng.IntN(g.widest)
}
