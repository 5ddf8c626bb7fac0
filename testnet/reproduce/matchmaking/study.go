package matchmaking

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/delegation"
	"gridnode/testnet/workload"
)

var Paper = reproduce.Paper{
	Name:  "delegated-matchmaking",
	Title: "A. Iosup, T. Tannenbaum, M. Farrellee, D. Epema and M. Livny: Inter-operating grids through Delegated MatchMaking (2007)",
	Plan:  planMatchmaking,
}

// Load levels of the experiments, in percent.
var (
	defaultLoads    = []int{10, 30, 50, 60, 70, 80, 90, 95, 98}  // §5.3: "the default load levels"
	imbalancedLoads = []int{60, 70, 80, 90, 100, 120, 150, 200}  // of Grid'5000, the DAS at 60 (§6.3)
	thresholdLoads  = []int{10, 30, 50, 70, 90, 98}              // "six load levels ranging from 10 to 98%" (§6.4)
	thresholds      = []int{60, 70, 80, 90, 100, 110, 125}       // percent, "ranging from 0.60 to 1.25"
	bindings        = []int{0, 5, 10, 30, 60, 90, 120, 150, 180} // seconds, table 4 and figure 13
	beyondLoads     = []int{80, 90, 95, 98}                      // where the orderings are compared
	orderings       = []string{"neighbours", "most-free", "best-fit", "gossip"}
)

const (
	dasLoad       = 60 // percent, of the imbalanced experiment
	messagesLoad  = 70 // of figure 12 (b) and of the binding
	setsPerWindow = 2  // ten sets for the five windows of the default
)

// matchCase is one run of the scenario.
type matchCase struct {
	architecture string
	das, g5k     int // percent
	threshold    int // percent
	bind         int // seconds
	ordering     string
	reading      string // one that was not chosen; empty: the chosen ones
	days         int    // for how long jobs are submitted; 0: one
	set          int
	long         bool // four months (§6.1), all else as usual
}

func (c matchCase) name() string {
	if c.long {
		return c.architecture + ", four months"
	}
	return fmt.Sprintf("%s, load %d/%d, threshold %d, binding %d s, %s%s, %d days, set %d", c.architecture, c.das, c.g5k, c.threshold, c.bind, c.ordering, c.reading, max(c.days, 1), c.set)
}

// weight grows with the messages.
func (c matchCase) weight() int64 {
	if c.long {
		return longWeight
	}
	w := int64(max(c.das, c.g5k))
	if c.architecture == "dmm" {
		w *= int64(4 + max(c.g5k-60, 0)/4)
	}
	return w * int64(max(c.days, 1))
}

// longWeight is that of a long run, beside weights of some hundreds to thousands.
const longWeight = 3000

// matchStudy is the paper's evaluation.
type matchStudy struct {
	o       reproduce.Options
	sets    int
	loads   []int // of the default levels that are run
	longRun delegation.LongRun
	logs    []string                       // of the two grids; nil: the long run is generated
	months  func() ([]workload.Job, error) // the jobs of the long run, made once
	inputs  []scenario.Input               // of the logs
	results map[matchCase]*measure.Result
	sizes   []setSize // of the generated sets
}

func newMatchStudy(o reproduce.Options) *matchStudy {
	s := &matchStudy{
		o: o, sets: setsPerWindow * o.Windows, loads: defaultLoads, results: make(map[matchCase]*measure.Result), longRun: longRun,
	}
	if o.Sizes != nil {
		s.loads = o.Sizes
		s.longRun.Work = s.longRun.Work * shortLongRun / grid.Time(s.longRun.Days)
		s.longRun.Jobs = s.longRun.Jobs * shortLongRun / int64(s.longRun.Days)
		s.longRun.Days = shortLongRun
	}
	s.months = sync.OnceValues(s.longJobs)
	return s
}

func planMatchmaking(_ context.Context, o reproduce.Options) (*reproduce.Study, error) {
	s := newMatchStudy(o)
	var err error
	if s.logs, err = gridLogs(o.Traces); err != nil {
		return nil, err
	}
	var cases []matchCase
	for _, c := range s.cases() {
		if !slices.Contains(cases, c) {
			cases = append(cases, c)
		}
	}
	study := &reproduce.Study{Runs: s.countRuns(), Notes: s.notes(), Readings: readings}
	for _, c := range cases {
		for set := range s.sets {
			if set >= s.setsOf(c) {
				continue
			}
			c := c
			c.set = set + 1
			place := delegation.Place()
			s.results[c] = place
			study.Runs = append(study.Runs, reproduce.Run{Name: c.name(), Weight: c.weight(), Result: place, Do: func(ctx context.Context) error {
				r, err := s.run(ctx, c)
				if err == nil {
					*place = *r
				}
				return err
			}})
		}
	}
	study.Report = func() []reproduce.Experiment {
		if s.logs != nil {
			_, _ = s.months() // says what logs were read, even if others have run them
		}
		return s.report()
	}
	return study, nil
}

// plain is a run as the paper's are unless it says otherwise.
func plain(architecture string, das, g5k int) matchCase {
	return matchCase{architecture: architecture, das: das, g5k: g5k, threshold: 100, ordering: "neighbours"}
}

// cases lists what is run, sets aside; some occur twice.
func (s *matchStudy) cases() (list []matchCase) {
	for _, a := range delegation.Architectures {
		for _, load := range s.loads {
			list = append(list, plain(a, load, load))
		}
		if !s.o.Quick {
			list = append(list, longCase(a))
		}
		if s.o.Sizes != nil {
			continue
		}
		for _, load := range imbalancedLoads {
			list = append(list, plain(a, dasLoad, load))
		}
	}
	if s.o.Sizes != nil {
		return list
	}
	for _, load := range thresholdLoads {
		for _, t := range thresholds {
			c := plain("dmm", load, load)
			c.threshold = t
			list = append(list, c)
		}
	}
	for _, b := range bindings {
		c := plain("dmm", messagesLoad, messagesLoad)
		c.bind = b
		list = append(list, c)
	}
	if !s.o.Quick {
		list = append(list, alternativeCases()...)
		list = append(list, longerCases()...)
		for _, load := range beyondLoads {
			for _, o := range orderings {
				c := plain("dmm", load, load)
				c.ordering = o
				list = append(list, c)
			}
		}
	}
	return list
}

// alternativeSets bounds the sets with which readings are run that were not chosen.
const alternativeSets = 5

// setsOf returns how many sets of jobs a case is run with: what takes longer than a day has
// one.
func (s *matchStudy) setsOf(c matchCase) int {
	switch {
	case c.long || c.days > 0:
		return 1
	case c.reading != "":
		return min(s.sets, alternativeSets)
	}
	return s.sets
}

func (s *matchStudy) run(ctx context.Context, c matchCase) (*measure.Result, error) {
	cfg := delegation.Default()
	cfg.Seed, cfg.Set, cfg.Architecture = s.o.Seed, uint64(c.set), c.architecture
	if c.long {
		var err error
		if cfg.Workload, err = s.months(); err != nil {
			return nil, err
		}
		cfg.Drain, cfg.Sample = true, sampleSeconds
	} else {
		cfg.LoadDAS, cfg.LoadG5K = float64(c.das), float64(c.g5k)
		if c.days > 0 {
			cfg.Days = float64(c.days)
		}
		if c.reading != "" {
			alternativeNamed(c.reading).read(&cfg)
		}
	}
	cfg.Threshold, cfg.Bind, cfg.Ordering = float64(c.threshold), int64(c.bind), c.ordering
	return delegation.Run(ctx, cfg)
}

func (s *matchStudy) notes() []string {
	return []string{
		fmt.Sprintf("Workload: the model of Lublin and Feitelson (2003) with 95 %% of the jobs on one processor, one independent stream per cluster, gaps stretched to the load, one day. “Here” is the mean over %d sets (two for each of --windows), “range” their least and greatest, and “± 95 %%” half the width of the 95 %% confidence interval of the mean (Student's t). The seeds of the paper's sets are not known.", s.sets),
		"Sites: figure 1 with sizes that fit the printed totals and ranges, which is all that is known of them: DAS 144 64 64 64 64 (400), Grid'5000 128 128 198 64 | 96 | 112 140 | 148 224 | 94 480 | 114 | 118 | 198 | 684 (2926).",
		"A run ends with the arrival of the last job; only jobs that have ended by then count in goodput, jobs finished, wait and slowdown. Slowdown is bounded (run times below 10 s count as 10 s); the paper's is not.",
		"Reading of DMM: load is processors in use and waited for over processors. A request that is delegated gives way to those behind it; if nobody has room it comes back when it fits at home, and is delegated anew after a cycle. A target that has room queues the request for its next matchmaking cycle, any other passes it on at once: to children, and to siblings and parent if it came from a child. A refusal is believed for one cycle. DTTL 6, delegation cycle 60 s. A site that is at most three quarters busy keeps room for its own request that has given way for longest. None of this is in the paper, which says little about it.",
		"The plots of the paper are not printed as numbers; only what its text says of them is compared. A claim of a size (“+32 %”) holds if ours is at least half and at most twice as large; “at most” and “up to” of a cost hold if ours is not above.",
	}
}
