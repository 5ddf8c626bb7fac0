package delegation

import (
	"gridnode/grid"
	"gridnode/testnet/draw"
	"gridnode/testnet/workload"
)

// What the paper leaves open and what its figures hang on: each is a setting, chosen in
// Default and carried out here. The first value of each is the one that its words support
// best.

// Phases are the values of Config.Phase. "The matchmaking cycle occurs every 300 s" (§5.4):
// of all site managers at once, as in a simulator with one cycle (PhaseStep), or of each
// from an instant of its own (PhaseRandom).
var Phases = []string{PhaseStep, PhaseRandom}

const (
	PhaseStep   = "step"
	PhaseRandom = "random"
)

// phase returns when the cycles of a site manager begin.
func (d *delegated) phase(site int, cycle grid.Time) grid.Time {
	if d.cfg.Phase == PhaseStep {
		return cycle
	}
	return grid.Time(draw.PCG(d.cfg.Seed, delegationID(site), draw.ForClock).Uint64() % uint64(cycle))
}

// Flockings are the values of Config.Flocking. "The user's job manager will switch to a
// new site manager whenever the current site manager cannot solve all of its resource
// demands" (§5.4): to the next of its list, which begins behind its own site
// (FlockingOrder), as Condor's job managers have one, or to any other (FlockingRandom).
var Flockings = []string{FlockingOrder, FlockingRandom}

const (
	FlockingOrder  = "order"
	FlockingRandom = "random"
)

// next returns where a job manager goes that leaves a site.
func (f *flock) next(at int) int {
	if f.d.cfg.Flocking == FlockingOrder {
		return (at + 1) % len(f.sites)
	}
	return (at + 1 + f.rng.IntN(len(f.sites)-1)) % len(f.sites)
}

// Sizes are the values of Config.Sizes. "Unless otherwise specified, we use the default LFM
// parameter values" for "a load of a given level …, for a system of known size" (§5.3): of
// one size for all streams (SizesUniform), or of the stream's cluster (SizesCluster). Which
// size is not said; with those of the clusters the sets have nearly twice as many jobs as
// the paper's, of half the processor-hours. SizesUniform has as many, 11 827 in the mean of
// the load levels. So has SizesWide, on clusters, with other than the default parameters.
// Jobs that are wider than their cluster run elsewhere, or not at all where clusters are
// independent.
var Sizes = []string{SizesUniform, SizesCluster, SizesWide}

const (
	SizesUniform = "uniform"
	SizesCluster = "cluster"
	SizesWide    = "wide"
)

const (
	// uniformProcessors is the size of system for which default jobs are as many as the
	// paper's at its loads.
	uniformProcessors = 338

	// With these two of the model's parameters, within what its authors recommend (the
	// stages meet 1.5 to 3.5 below the top in powers of two), the jobs of each cluster's
	// size are as many.
	wideBelowTop = 1.5
	wideLowShare = 0.725
)

// model returns the workload of a cluster at a load, a fraction: the model of Lublin and
// Feitelson, its gaps stretched to the load.
func model(processors int64, load float64, sizes string) workload.Model {
	of := processors
	if sizes == SizesUniform {
		of = uniformProcessors
	}
	m := workload.Lublin(of)
	m.SetSerial(serialShare)
	if sizes == SizesWide {
		s := &m.Kinds[0].Sizes
		s.Med, s.LowShare = max(s.High-wideBelowTop, s.Low), wideLowShare
	}
	m.Shape.Load = load * float64(processors) / float64(of)
	return m
}
