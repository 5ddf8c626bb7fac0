package matchmaking

import (
	"context"
	"fmt"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// setLoads are the load levels for which the paper generated sets (§5.3).
var setLoads = []int{10, 30, 50, 60, 70, 80, 90, 95, 98, 100, 120, 150, 200}

// setSize says how large a generated set is.
type setSize struct {
	jobs          int64
	hours, length float64 // processor-hours and hours of all jobs
}

// countRuns generates the sets of all load levels, to be counted.
func (s *matchStudy) countRuns() (runs []reproduce.Run) {
	s.sizes = make([]setSize, len(setLoads)*s.sets)
	for _, load := range setLoads {
		for set := range s.sets {
			size := &s.sizes[len(runs)]
			runs = append(runs, reproduce.Run{Name: fmt.Sprintf("set %d at %d %%", set+1, load), Weight: 1 + int64(load)/10, Result: size, Do: func(context.Context) error {
				cfg := delegation.Default()
				cfg.LoadDAS, cfg.LoadG5K, cfg.Set = float64(load), float64(load), uint64(set+1)
				jobs, err := delegation.Generate(&cfg)
				if err != nil {
					return err
				}
				size.jobs = int64(len(jobs))
				for i := range jobs {
					hours := jobs[i].RunTime.Seconds() / 3600
					size.length += hours
					size.hours += hours * float64(jobs[i].Processors)
				}
				return nil
			}})
		}
	}
	return runs
}

// workload is §5.3: how large the sets are.
func (s *matchStudy) workload() reproduce.Experiment {
	var jobs []reproduce.Number
	var all, hours, length float64
	for _, size := range s.sizes {
		jobs = append(jobs, reproduce.Number(size.jobs))
		all += float64(size.jobs)
		hours += size.hours
		length += size.length
	}
	spread := reproduce.SpreadOf(jobs)
	mean := reproduce.Ratio(length, all)
	e := reproduce.Experiment{Title: "The generated workloads (§5.3)", Text: []string{fmt.Sprintf(
		"%d sets at each of %d load levels from 10 to 200 %%. A job has %s processor-hours in the mean; the printed numbers of jobs and loads imply 6.0 on our clusters.",
		s.sets, len(setLoads), reproduce.Format(reproduce.Ratio(hours, all), 1))}}
	row := reproduce.Measure{Name: "jobs of a set", Unit: reproduce.Jobs}
	for _, v := range []struct{ published, here reproduce.Number }{
		{publishedSets.least, spread.Min}, {publishedSets.mean, spread.Mean}, {publishedSets.most, spread.Max},
	} {
		row.Cells = append(row.Cells, reproduce.Cell{Published: v.published, Here: v.here})
	}
	e.Tables = []reproduce.Table{{Title: "Section 5.3: the sets", Columns: []string{"least", "mean", "most"}, Measures: []reproduce.Measure{row}}}
	e.Claims = append(e.Claims, reproduce.NewClaim("mean run time of the generated jobs", "around one hour", mean > 0.9 && mean < 1.1, "%s h", reproduce.Format(mean, 2)))
	return e
}
