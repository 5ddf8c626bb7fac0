package packing

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/testnet/measure"
)

// sums is what came of all batches, added up.
type sums struct {
	batches  int
	jobs     int64
	mcp, pb  float64
	span     grid.Time // makespans of all clusters, the longest of each batch
	clusters []packedCluster
}

// packedCluster is what came of one cluster, added up over the batches.
type packedCluster struct {
	jobs, missed   int64
	cp             float64
	makespan, idle grid.Time
	area           grid.Time // processor time of its jobs
}

func newSums(clusters int) *sums { return &sums{clusters: make([]packedCluster, clusters)} }

// share adds a cluster's share of a batch.
func (s *sums) share(cluster, jobs int, f titan.Performance, cp float64) {
	c := &s.clusters[cluster]
	c.jobs += int64(jobs)
	c.missed += int64(f.Missed)
	c.cp += cp
	c.makespan += f.Makespan
	c.idle += f.Idle
}

// batch adds what all clusters made of a batch.
func (s *sums) batch(mcp, pb float64, longest grid.Time, jobs int) {
	s.mcp += mcp
	s.pb += pb
	s.span += longest
	s.jobs += int64(jobs)
	s.batches++
}

// result works the figures out. Makespans are means over the batches.
func (s *sums) result(cfg *Config, begun time.Time) *measure.Result {
	n := float64(s.batches)
	r := &measure.Result{
		Scenario: "packing", Seed: cfg.Seed, Mode: "virtual", Config: *cfg,
		WallSeconds: measure.Seconds(grid.FromDuration(time.Since(begun))),
		Messages:    measure.Messages{ByType: map[string]int64{}}, Table: writePacking,
	}
	utilization := func(area, idle grid.Time) measure.Ratio {
		if area+idle == 0 {
			return 0
		}
		return measure.Ratio(10_000*float64(area)/float64(area+idle) + 0.5)
	}
	var area, idle grid.Time
	for i, site := range cfg.described() {
		c := &s.clusters[i]
		one := measure.Stats{
			Submitted: c.jobs, Accepted: c.jobs, Finished: c.jobs, Local: c.jobs, Missed: c.missed,
			Utilization: utilization(c.area, c.idle), Makespan: hundredths(c.makespan.Seconds() / n),
			Goodput: measure.Seconds(c.area), GoodputLocal: measure.Seconds(c.area), SquashedArea: measure.Seconds(c.area),
			QueueLength: hundredths(float64(c.jobs) / n), MCP: hundredths(c.cp / n),
		}
		area, idle = area+c.area, idle+c.idle
		r.Sites = append(r.Sites, measure.SiteResult{Name: site.Name, Processors: site.Processors, Stats: one})
		r.Total.Missed += c.missed
	}
	t := &r.Total
	t.Submitted, t.Accepted, t.Finished, t.Local = s.jobs, s.jobs, s.jobs, s.jobs
	t.Utilization, t.Makespan = utilization(area, idle), hundredths(s.span.Seconds()/n)
	t.Goodput, t.GoodputLocal, t.SquashedArea = measure.Seconds(area), measure.Seconds(area), measure.Seconds(area)
	t.QueueLength = hundredths(float64(s.jobs) / n)
	t.MCP, t.PB = hundredths(s.mcp/n), hundredths(s.pb/n)
	return r
}

// writePacking prints a line per cluster and one for all.
func writePacking(w io.Writer, r *measure.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "cluster\tprocessors\tjobs\tjobs a batch\tmissed\tutilization\tmakespan s\tCP s\t")
	line := func(name string, processors int64, s *measure.Stats) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%d\t%s %%\t%s\t%s\t\n", name, processors, s.Submitted, measure.Fixed(int64(s.QueueLength), 2),
			s.Missed, measure.Fixed(int64(s.Utilization), 2), measure.Fixed(int64(s.Makespan), 2), measure.Fixed(int64(s.MCP), 2))
	}
	var processors int64
	for i := range r.Sites {
		line(r.Sites[i].Name, r.Sites[i].Processors, &r.Sites[i].Stats)
		processors += r.Sites[i].Processors
	}
	line("all", processors, &r.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	what := "generations of TITAN"
	fmt.Fprintln(w)
	if cfg, ok := r.Config.(Config); ok && cfg.headed() {
		what = "events"
		fmt.Fprintf(w, "a head and %d members, mean wait %s s", len(r.Sites), r.Total.AWT)
		if cfg.Collect == CollectMakespan {
			fmt.Fprintf(w, ", %s jobs in the queue of the multicluster", r.Total.QueueLength)
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "MCP %s s, PB %s s, means over the batches\n%s run, seed %d, trace hash %s: %d %s in %v s\n",
		measure.Fixed(int64(r.Total.MCP), 2), measure.Fixed(int64(r.Total.PB), 2), r.Mode, r.Seed, r.TraceHash, r.Events, what, r.WallSeconds)
	return err
}
