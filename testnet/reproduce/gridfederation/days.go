package gridfederation

import (
	"fmt"
	"path/filepath"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/workload"
)

// "The simulation experiments were conducted by utilizing workload trace data over the
// total period of two days (in simulation units) at all the resources" (§3.1). Which two
// days of each log that were, the paper does not say; table 2 tells how many jobs they
// had and, as utilisation over the share accepted, how much work. The rule: of each log
// the two days that come closest to that (workload.BestDays), the same for all
// experiments. It looks at what the days offer and not at what any experiment makes of
// them.

// daysByLoad returns the n pairs of days of each site that come closest; those of a site
// without a log are of the model, a seed for each.
func (s *federationStudy) daysByLoad(logged []bool, n int) ([][]pair, error) {
	pairs := make([][]pair, len(s.sites))
	for i := range s.sites {
		var err error
		if logged[i] {
			pairs[i], err = s.loggedDays(i, n)
		} else {
			pairs[i], err = s.generatedDays(i, n)
		}
		if err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

func (s *federationStudy) loggedDays(i, n int) (pairs []pair, err error) {
	site := &s.sites[i]
	t, err := site.OpenLog(s.o.Traces, workload.Options{})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	best, err := workload.BestDays(t, site.Target(), n)
	if err == nil && len(best) == 0 {
		err = fmt.Errorf("%s: no jobs: want the whole log", filepath.Join(s.o.Traces, site.Trace))
	}
	for _, d := range best {
		pairs = append(pairs, pair{Days: d, source: site.Trace, lines: t.Lines()})
	}
	return pairs, err
}

func (s *federationStudy) generatedDays(i, n int) (pairs []pair, err error) {
	for w := range n {
		jobs, err := s.sites[i].GenerateDays(i, workload.EmbeddedSeed+uint64(w))
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{Days: workload.Days{Jobs: jobs}, source: modelName})
	}
	return pairs, nil
}

// pair is two days that may be those of the paper.
type pair struct {
	workload.Days
	source string
	lines  string              // what became of the log's
	width  int64               // generated: of the machine that the model's jobs are from
	load   reproduce.Number    // offered, in percent
	alone  [2]reproduce.Number // utilisation and jobs accepted in experiment 1, in percent
	far    float64             // from table 2
}
