package gridfederation

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/workload"
)

// Another rule for the two days, shown among the readings: experiment 1 is run on all
// pairs of days that have about as many jobs as table 2 says, and at each site the pair
// whose row comes closest to table 2's is taken. Experiment 1 is no test any more then.

// pairTolerance is by which part of the published number of jobs a pair's may differ.
const pairTolerance = 10

// LANL Origin's log is not published, so its days are looked for in days of the
// model, with jobs as wide as on machines of different sizes: neither the width nor
// the run time of its jobs is published, only what they offer together.
const (
	originDays  = 60
	widthsFirst = 64 // then the powers of two up to the site's processors
)

// distanceOf returns how far a row is from that of table 2 for a site: the
// difference in jobs, as a share of them, and those in utilisation and acceptance.
func (s *federationStudy) distanceOf(site int, jobs int, utilization, accepted reproduce.Number) float64 {
	off := func(a, b float64) float64 { return max(a-b, b-a) }
	published := float64(publishedJobs[site])
	return off(float64(jobs), published)/published +
		off(float64(utilization), float64(publishedAlone.utilization[site]))/100 +
		off(float64(accepted), float64(publishedAlone.accepted[site]))/100
}

// readPairs returns the pairs of days of a site's log, or of its model, that have
// about as many jobs as the paper's.
func (s *federationStudy) readPairs(i int, logged bool) ([]pair, error) {
	site := &s.sites[i]
	slack := site.Jobs / pairTolerance
	least, most := site.Jobs-slack, site.Jobs+slack
	var pairs []pair
	add := func(days []workload.Days, source string, width int64) {
		for _, d := range days {
			pairs = append(pairs, pair{Days: d, source: source, width: width, load: offeredLoad(d.Jobs, site.Processors)})
		}
	}
	if logged {
		t, err := site.OpenLog(s.o.Traces, workload.Options{})
		if err != nil {
			return nil, err
		}
		defer t.Close()
		days, err := workload.DayPairs(t, least, most)
		add(days, site.Trace, 0)
		return pairs, err
	}
	for width := int64(widthsFirst); width <= site.Processors; width *= 2 {
		g, err := workload.NewGenerator(site.ModelOf(width), workload.Rand(workload.EmbeddedSeed, i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", site.Name, err)
		}
		days, err := workload.DayPairs(&workload.Window{Source: g, Span: originDays * grid.Day}, least, most)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", site.Name, err)
		}
		add(days, fmt.Sprintf("%s, jobs as on %d processors", modelName, width), width)
	}
	return pairs, nil
}

// likelyPairs returns the pairs of days that are most likely the paper's, by site.
func (s *federationStudy) likelyPairs(ctx context.Context, logged []bool) ([][]pair, error) {
	pairs := make([][]pair, len(s.sites))
	for i := range s.sites {
		var err error
		if pairs[i], err = s.readPairs(i, logged[i]); err != nil {
			return nil, err
		}
	}
	chosen, err := s.choosePairs(ctx, pairs, 1)
	if err != nil {
		return nil, err
	}
	for i := range s.sites {
		if len(chosen[i]) > 0 {
			continue
		}
		if logged[i] {
			return nil, fmt.Errorf("%s: no two days have %d jobs, give or take %d %%: want the whole log", filepath.Join(s.o.Traces, s.sites[i].Trace), s.sites[i].Jobs, 100/pairTolerance)
		}
		return nil, fmt.Errorf("%s: no two days of the model have %d jobs, give or take %d %%", s.sites[i].Name, s.sites[i].Jobs, 100/pairTolerance)
	}
	return chosen, nil
}

// choosePairs runs experiment 1 on all pairs, by site, and returns the n best of each
// that share no day, the best first; those of a model are of one width. Sites do
// not help each other in experiment 1, so a run takes a pair of every site.
func (s *federationStudy) choosePairs(ctx context.Context, pairs [][]pair, n int) ([][]pair, error) {
	most := 0
	for i := range pairs {
		most = max(most, len(pairs[i]))
	}
	runs := make([]reproduce.Run, most)
	for k := range runs {
		days := make([][]workload.Job, len(pairs))
		for i := range pairs {
			if k < len(pairs[i]) {
				days[i] = pairs[i][k].Jobs
			}
		}
		runs[k] = reproduce.Run{Name: fmt.Sprintf("experiment 1 on pair %d of days", k+1), Weight: 1, Do: func(ctx context.Context) error {
			o, err := s.run(ctx, days, federationCase{mode: "independent", sites: len(s.sites)})
			if err != nil {
				return err
			}
			for i := range pairs {
				if k < len(pairs[i]) {
					p := &pairs[i][k]
					p.alone = [2]reproduce.Number{reproduce.Number(100 * o.stats(i).Utilization.Float()), o.accepted(i)}
					p.far = s.distanceOf(i, len(p.Jobs), p.alone[0], p.alone[1])
				}
			}
			return nil
		}}
	}
	if err := s.o.RunAll(ctx, runs); err != nil {
		return nil, err
	}
	best := make([][]pair, len(pairs))
	for i := range pairs {
		best[i] = apart(pairs[i], n)
	}
	return best, nil
}

// apart returns the n best pairs that share no day and are of one width.
func apart(pairs []pair, n int) (best []pair) {
	order := slices.Clone(pairs)
	slices.SortStableFunc(order, func(a, b pair) int { return cmp.Compare(a.far, b.far) })
	for _, p := range order {
		shares := func(b pair) bool { return b.width != p.width || max(b.Start-p.Start, p.Start-b.Start) < 2*grid.Day }
		if len(best) < n && !slices.ContainsFunc(best, shares) {
			best = append(best, p)
		}
	}
	return best
}
