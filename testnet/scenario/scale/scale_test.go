package scale

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

func scaleOf(t *testing.T, change func(*Config)) *Result {
	t.Helper()
	cfg := Config{Seed: 1, Sites: 16, Span: 2 * grid.Hour, Placement: "coordinated", OFT: 50}
	change(&cfg)
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestScaleAddsUp: what is counted by site, by type and by purpose is the same.
func TestScaleAddsUp(t *testing.T) {
	for _, placement := range []string{"coordinated", "paper"} {
		r := scaleOf(t, func(c *Config) { c.Placement = placement })
		var types int64
		for _, n := range r.ByType {
			types += n
		}
		p := r.PerJob
		parts := p.Negotiation + p.Receipts + p.Queries + p.QueryLookups + p.Publishing + p.Lookups + p.Gossip + p.Other
		if diff := parts - p.Total; diff < -9 || diff > 9 { // nine figures are rounded
			t.Errorf("%s: the parts of a job's messages are %v, all are %v", placement, parts, p.Total)
		}
		// Look-ups under way at the begin or the end are counted at one end only.
		if all := p.Total.Float() * float64(r.Jobs); all < 0.98*float64(types) || all > 1.02*float64(types)+float64(r.Migrated) {
			t.Errorf("%s: %.0f messages by purpose, %d by type", placement, all, types)
		}
		if mean := p.Negotiation - r.Negotiation.Mean; mean < -5 || mean > 5 {
			t.Errorf("%s: %v negotiation messages per job on the wire, %v by the jobs' own count", placement, p.Negotiation, r.Negotiation.Mean)
		}
		if r.Jobs < 80 || r.Accepted == 0 || r.Accepted > r.Jobs || r.Migrated > r.Accepted || r.ResponseTime <= 0 || r.BudgetSpent <= 0 {
			t.Errorf("%s: %d jobs, %d accepted, %d elsewhere, response %v, budget %v", placement, r.Jobs, r.Accepted, r.Migrated, r.ResponseTime, r.BudgetSpent)
		}
		if r.Queries < r.Accepted/2 || r.PerQuery.Mean <= 0 || r.QueryLookups > r.Lookups || r.RequestsPerLookup < 100 {
			t.Errorf("%s: %d queries of %v messages, %d of %d look-ups, %v requests each", placement, r.Queries, r.PerQuery, r.QueryLookups, r.Lookups, r.RequestsPerLookup)
		}
		// Two authorities of eight: one sibling hears of a site every six minutes, the
		// others every half hour, and all when it matters to them.
		if g := r.UpkeepPerSiteMinute.Gossip.Float(); g < 0.37 || g > 1.5 {
			t.Errorf("%s: %v load reports per site and minute", placement, g)
		}
		var sent SiteLoad
		for _, l := range r.MessagesPerSite {
			if l.Times < 100 || l.Mean <= 0 || l.Hottest == "" {
				t.Errorf("%s: %+v", placement, l)
			}
			if l.Messages == "market" {
				sent = l
			}
		}
		if perSite := float64(r.Jobs) * (p.Negotiation + p.Receipts).Float() * 2 / 16; sent.Mean.Float() < 0.8*perSite || sent.Mean.Float() > 1.01*perSite {
			t.Errorf("%s: %v market messages per site, want about %.0f", placement, sent.Mean, perSite)
		}
	}
}

// TestScaleIsDeterministic: one seed, one trace; replicas in step are another run.
func TestScaleIsDeterministic(t *testing.T) {
	short := func(c *Config) { c.Span = grid.Hour / 4 }
	first, second := scaleOf(t, short), scaleOf(t, short)
	other := scaleOf(t, func(c *Config) { short(c); c.InStep = true })
	if first.TraceHash != second.TraceHash || first.TraceHash == other.TraceHash {
		t.Errorf("trace hashes %s and %s of the same run, %s in step", first.TraceHash, second.TraceHash, other.TraceHash)
	}
}

func TestScaleRefuses(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Sites = 0 },
		func(c *Config) { c.Span = SpanMax + 1 },
		func(c *Config) { c.OFT = 101 },
		func(c *Config) { c.Stay = StayMin - 1 },
		func(c *Config) { c.Placement = "best" },
		func(c *Config) { c.Traces = []string{"nowhere"} },
	} {
		cfg := Config{Seed: 1, Sites: 2, Span: grid.Hour, Placement: "paper"}
		change(&cfg)
		if _, err := Run(context.Background(), cfg); !errors.Is(err, scenario.ErrConfig) {
			t.Errorf("%+v: %v, want an error about the configuration", cfg, err)
		}
	}
}

// TestTurnedDays: wherever a run begins in the two days, the whole circle has every
// job once, and what is there at the begin is what would be running then.
func TestTurnedDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := grid.Time(rapid.Int64Range(0, int64(SpanMax)-1).Draw(t, "begin"))
		span := grid.Time(rapid.Int64Range(1, int64(SpanMax)).Draw(t, "span"))
		var days []workload.Job
		for i := range rapid.IntRange(1, 20).Draw(t, "jobs") {
			run := grid.Time(rapid.Int64Range(1, int64(grid.Day)).Draw(t, "run time"))
			days = append(days, workload.Job{Number: int64(i), Submit: grid.Time(rapid.Int64Range(0, int64(SpanMax)-1).Draw(t, "submit")), RunTime: run, Estimate: run + 5, Processors: 1})
		}
		seen := map[int64]int{}
		last := grid.Time(0)
		for _, j := range turned(days, begin, span) {
			if j.Submit < last {
				t.Fatalf("job %d is out of order", j.Number)
			}
			last = j.Submit
			seen[j.Number]++
			if j.Number < earlierJob {
				continue
			}
			original := days[j.Number-earlierJob]
			end := original.Submit + original.RunTime // it runs at begin, in this round of the circle or the last
			if left := end - begin; left != j.RunTime && left+SpanMax != j.RunTime && left-SpanMax != j.RunTime || j.RunTime <= 0 || j.RunTime >= original.RunTime || j.Estimate < j.RunTime {
				t.Fatalf("job %d from %v for %v: %v left at %v", original.Number, original.Submit, original.RunTime, j.RunTime, begin)
			}
		}
		for _, j := range days {
			at := (j.Submit - begin + SpanMax) % SpanMax
			within, running := at < span, at > 0 && at+j.RunTime > SpanMax
			if (seen[j.Number] == 1) != within || (seen[j.Number+earlierJob] == 1) != running {
				t.Fatalf("job %d is %v after the begin and runs %v: %d times submitted, %d times running before", j.Number, at, j.RunTime, seen[j.Number], seen[j.Number+earlierJob])
			}
		}
	})
}

// TestPhasesAreSpread: the rounds begin all over the two days, however many there are.
func TestPhasesAreSpread(t *testing.T) {
	cfg := Config{}
	for _, rounds := range []int{2, 7, 100} {
		var hit [4]int
		for r := range rounds {
			at := cfg.phase(r)
			if at < 0 || at >= SpanMax {
				t.Fatalf("round %d begins at %v", r, at)
			}
			hit[at/(grid.Day/2)]++
		}
		for q, n := range hit {
			if rounds >= 7 && (n < rounds/4-1 || n > rounds/4+2) {
				t.Errorf("%d of %d rounds begin in quarter %d", n, rounds, q)
			}
		}
	}
}

// TestSkew: the same jobs come, nine tenths of them to a tenth of the sites, in order, and no
// two are taken for one.
func TestSkew(t *testing.T) {
	const sites = 160
	w, err := federation.NewTable1(sites, nil, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	come := func(skew bool) (all, hot int) {
		cfg := Config{Seed: 1, Sites: sites, Span: SpanMax, Skew: skew}
		seen := map[grid.JobID]bool{}
		source := cfg.jobs(w)
		last := grid.Time(0)
		for job := (workload.Job{}); ; {
			ok, err := source.Next(&job)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return all, hot
			}
			if job.Submit < last {
				t.Fatalf("skew %t: job %d comes after one of %v", skew, job.Number, last)
			}
			last = job.Submit
			if job.Number >= earlierJob {
				continue
			}
			id := workload.JobID(job.Site, job.Number)
			if seen[id] {
				t.Fatalf("skew %t: two jobs %d at site %d", skew, job.Number, job.Site)
			}
			seen[id] = true
			all++
			if job.Site/roundSites%skewRounds == 0 {
				hot++
			}
		}
	}
	all, even := come(false)
	skewed, hot := come(true)
	if skewed != all || even > all/8 || hot < all*88/100 || hot > all*92/100 {
		t.Errorf("%d of %d jobs at a tenth of the sites, with skew %d of %d", even, all, hot, skewed)
	}
}

// TestSitesLeave: where sites do not stay nothing that was counted is lost, nor much of what
// users get.
func TestSitesLeave(t *testing.T) {
	stay := scaleOf(t, func(*Config) {})
	r := scaleOf(t, func(c *Config) { c.Stay = grid.Hour })
	if r.Left < 10 || r.Left > 60 { // sixteen sites, two hours
		t.Errorf("sites were left %d times", r.Left)
	}
	if r.Acceptance < stay.Acceptance*4/5 || r.Jobs < stay.Jobs*9/10 {
		t.Errorf("%v of %d jobs were accepted, %v of %d where sites stay", r.Acceptance, r.Jobs, stay.Acceptance, stay.Jobs)
	}
	if r.Queries < stay.Queries*9/10 || r.Lookups < r.QueryLookups || r.Lookups < stay.Lookups || r.RequestsPerLookup < 100 {
		t.Errorf("%d queries and %d look-ups of %v requests, %d for queries; where sites stay %d queries and %d look-ups", r.Queries, r.Lookups, r.RequestsPerLookup, r.QueryLookups, stay.Queries, stay.Lookups)
	}
}

// TestScaleWithWorkers: whatever number of workers goes through a run, the same happens, is told
// and is counted; with sites that leave and come back as well, and many events at one instant.
func TestScaleWithWorkers(t *testing.T) {
	stays, most := []grid.Time{2 * grid.Hour, 0}, 8
	if testing.Short() {
		stays, most = stays[:1], 2
	}
	for _, stay := range stays {
		run := func(workers int) *Result {
			r := scaleOf(t, func(c *Config) {
				c.Sites, c.Span, c.Stay, c.InStep, c.Workers = 300, grid.Hour/6, stay, true, workers
			})
			if (r.strides > 0) != (workers > 1) {
				t.Fatalf("%d workers went through %d strides", workers, r.strides)
			}
			r.strides, r.WallSeconds, r.ProcessorSeconds, r.SetupSeconds, r.EventsPerSecond = 0, 0, 0, 0, 0
			return r
		}
		want := run(1)
		for workers := 2; workers <= most; workers *= 2 {
			if got := run(workers); !reflect.DeepEqual(got, want) {
				t.Errorf("sites stay %v: %d workers got\n%+v, one\n%+v", stay, workers, got, want)
			}
		}
	}
}
