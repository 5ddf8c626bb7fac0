package workload

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// TestPaperQoS checks eqs. 1 to 5 of Grid-Federation against rational arithmetic.
//
// §2.3: "In other words, we assign two times the value of total budget and deadline
// for the given job, as compared to the expected budget spent and response time on
// the originating resource." §3.1: "we artificially introduced the communication
// overhead element as 10% of the total parallel job execution time."
func TestPaperQoS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		site := Table1()[rapid.IntRange(0, 7).Draw(t, "site")]
		home := Home{ID: "home", Rating: site.Rating, Price: site.Price, Cost: grid.CostPaper}
		job := Job{
			Number: 3, Site: 2, User: "user7",
			Submit:     grid.Time(rapid.Int64Range(0, int64(grid.Day)).Draw(t, "submit")),
			RunTime:    grid.Time(rapid.Int64Range(1, int64(30*grid.Day)).Draw(t, "run time")),
			Processors: rapid.Int64Range(1, site.Processors).Draw(t, "processors"),
			Memory:     1 << 30,
		}
		job.Estimate = job.RunTime + grid.Hour
		var got grid.Job
		PaperQoS.Job(&job, &home, &got)
		if err := wire.CheckJob(&got); err != nil {
			t.Fatal(err)
		}
		if got.ID != JobID(2, 3) || got.Home != "home" || got.User != "user7" || got.Processors != job.Processors ||
			got.Tasks != job.Processors || got.Memory != job.Memory || got.Submit != job.Submit || got.RunTime != job.RunTime {
			t.Fatalf("%+v from %+v", got, job)
		}
		// D(J, R_k) is the run time, of which 10 % is communication.
		if d := got.Work.At(home.Rating); d != job.RunTime || got.Estimate != job.RunTime {
			t.Fatalf("time at home %v, estimate %v, want the run time %v", d, got.Estimate, job.RunTime)
		}
		if want := job.Submit + 2*job.RunTime; got.Deadline != want {
			t.Fatalf("deadline %v, want submission + 2 D = %v", got.Deadline, want)
		}
		// B(J, R_k) = c_k · l/(μ_k p): the price of the 90 % that compute. Rounding of
		// the tenth to microseconds and of the cost to micro-credits is doubled.
		computing := new(big.Rat).SetFrac64(9*int64(job.RunTime), 10*int64(grid.Hour))
		want, _ := computing.Mul(computing, new(big.Rat).SetFrac64(2*int64(site.Price), 1)).Float64()
		perMicrosecond := 2 * float64(site.Price) / float64(grid.Hour)
		if got := float64(got.Budget); got < want-2 || got > want+perMicrosecond+2 {
			t.Fatalf("budget %v micro-credits, want 2 B = %v", got, want)
		}
	})
}

func TestQoSOptions(t *testing.T) {
	job := Job{Number: 1, Submit: grid.Hour, RunTime: grid.Minute, Estimate: 10 * grid.Minute, Processors: 4}
	home := Home{ID: "a", Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}, Price: 60 * grid.Credit, Cost: grid.CostProcessorTime}
	make := func(q QoS) (j grid.Job) {
		if err := q.Check(); err != nil {
			t.Error(err)
		}
		q.Job(&job, &home, &j)
		return j
	}
	// A credit a minute for each of four processors, for the whole minute.
	q := PaperQoS
	if j := make(q); j.Budget != 8*grid.Credit || j.Deadline != grid.Hour+2*grid.Minute {
		t.Errorf("by processor-time: budget %v, deadline %v", j.Budget, j.Deadline)
	}
	q.Length = LengthEstimate
	if j := make(q); j.Estimate != 10*grid.Minute || j.RunTime != grid.Minute || j.Deadline != grid.Hour+20*grid.Minute || j.Budget != 80*grid.Credit {
		t.Errorf("by the estimate: %+v", j)
	}
	q = QoS{Deadline: 1500, Budget: 500}
	if j := make(q); j.Budget != 2*grid.Credit || j.Deadline != grid.Hour+90*grid.Second || j.Work.Traffic != 0 {
		t.Errorf("other factors: budget %v, deadline %v, traffic %v", j.Budget, j.Deadline, j.Work.Traffic)
	}
	if j := make(QoS{}); j.Budget != grid.NoBudget || j.Deadline != grid.Never {
		t.Errorf("none: budget %v, deadline %v", j.Budget, j.Deadline)
	}
	for _, tt := range []struct {
		q    QoS
		want string
	}{
		{QoS{Deadline: -1}, "deadline factor of -1"}, {QoS{Budget: factorMax + 1}, "budget factor of 1000001"},
		{QoS{Traffic: 1001}, "communication share of 1001"}, {QoS{Length: 9}, "length 9"},
	} {
		if err := tt.q.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.q, err, tt.want)
		}
	}
	// The extremes neither overflow nor panic.
	job = Job{Submit: grid.SpanMax, RunTime: grid.SpanMax, Estimate: grid.SpanMax, Processors: processorsMax}
	home.Price = grid.CreditsMax
	if j := make(QoS{Deadline: factorMax, Budget: factorMax, Traffic: 1000}); j.Deadline < grid.SpanMax || j.Budget != grid.CreditsMax {
		t.Errorf("extremes: deadline %v, budget %v", j.Deadline, j.Budget)
	}
}

func TestJobIDs(t *testing.T) {
	seen := map[grid.JobID]bool{}
	short := map[string]bool{}
	const sites, numbers = 50, 400
	for site := range sites {
		for number := range int64(numbers) {
			id := JobID(site, number)
			if id.IsZero() || seen[id] {
				t.Fatalf("site %d job %d: %v is zero or taken", site, number, id)
			}
			if s, n := Origin(id); s != site || n != number {
				t.Fatalf("site %d job %d: %v is of job %d of site %d", site, number, id, n, s)
			}
			seen[id] = true
			short[id.Short()] = true
		}
	}
	// Prefixes are spread: of 20000 draws from 2^40, all differ almost surely.
	if len(short) != sites*numbers {
		t.Errorf("%d short forms of %d IDs", len(short), sites*numbers)
	}
	for _, id := range []grid.JobID{JobID(1<<23-1, 1<<40), JobID(0, 1<<40), JobID(0, 0)} {
		if id.IsZero() {
			t.Errorf("%v is zero", id)
		}
	}
	if s, n := Origin(JobID(1<<23-2, 1<<40)); s != 1<<23-2 || n != 1<<40 {
		t.Errorf("the last job of the last site is job %d of site %d", n, s)
	}
	// IDs are kept in stores: they must not change from version to version.
	if got, want := JobID(3, 4).String(), "jfe64jryv3m08000100000000g"; got != want {
		t.Errorf("the ID of job 4 of site 3 is %s, want %s", got, want)
	}
}

// TestTable1 compares the data with the paper's tables 1 and 2.
func TestTable1(t *testing.T) {
	for i, want := range []struct {
		name                   string
		processors, mips, jobs int64
		quote                  string // credits a second
		bandwidth              float64
		days                   int64
		utilization, accepted  float64
	}{
		{"CTC SP2", 512, 850, 79302, "4.84", 2, 417, 53.492, 96.642},
		{"KTH SP2", 100, 900, 28490, "5.12", 1.6, 163, 50.06438, 93.865},
		{"LANL CM5", 1024, 700, 201387, "3.98", 1, 215, 47.103, 83.72},
		{"LANL Origin", 2048, 630, 121989, "3.59", 1.6, 817, 44.55013, 93.757},
		{"NASA iPSC", 128, 930, 42264, "5.3", 4, 535, 62.347, 100},
		{"SDSC Par96", 416, 710, 38719, "4.04", 1, 189, 48.17991, 98.941},
		{"SDSC Blue", 1152, 730, 250440, "4.16", 2, 215, 82.08857, 57.67},
		{"SDSC SP2", 128, 920, 73496, "5.24", 4, 111, 79.49243, 50.45},
	} {
		s := Table1()[i]
		quote, err := grid.ParseCredits(want.quote)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != want.name || s.Processors != want.processors || s.Speed != want.mips || s.TraceJobs != want.jobs || s.Jobs != want.days ||
			s.Bandwidth != int64(want.bandwidth*1000) {
			t.Errorf("%+v, want %+v", s, want)
		}
		// A second at the site costs the quote.
		if cost := grid.CostPaper.Cost(s.Price, s.Processors, grid.Second); cost != quote {
			t.Errorf("%s: a second costs %v, want %v", s.Name, cost, quote)
		}
		if (s.Utilization-want.utilization/100)*(s.Accepted-want.accepted/100) > 1e-12 || s.Target().Jobs != want.days {
			t.Errorf("%s: utilization %v, accepted %v, target %+v", s.Name, s.Utilization, s.Accepted, s.Target())
		}
	}
	if got := Table1(); len(got) != 8 || got[3].Trace != "" {
		t.Errorf("%d sites; LANL Origin's log is %q, want none", len(got), got[3].Trace)
	}
	Table1()[0].Name = "changed"
	if Table1()[0].Name != "CTC SP2" {
		t.Error("the table can be changed through what Table1 returns")
	}
}

func TestSites(t *testing.T) {
	sites := Sites(20)
	names := map[string]bool{}
	for i, s := range sites {
		names[s.Name] = true
		if s.Processors != Table1()[i%8].Processors || s.Price != Table1()[i%8].Price {
			t.Errorf("site %d: %+v", i, s)
		}
	}
	if len(names) != 20 || sites[8].Name != "CTC SP2 2" || sites[19].Name != "LANL Origin 3" {
		t.Errorf("names %v", names)
	}
	if len(Sites(0)) != 0 || len(Sites(-1)) != 0 {
		t.Error("no sites should be none")
	}
}

func TestEmbedded(t *testing.T) {
	sites := Sites(17)
	read := func(seed uint64) []Job {
		m, err := Embedded(sites, seed)
		if err != nil {
			t.Fatal(err)
		}
		return collect(t, m)
	}
	jobs := read(EmbeddedSeed)
	if !slices.Equal(jobs, read(EmbeddedSeed)) {
		t.Error("two runs of a seed differ")
	}
	if slices.Equal(jobs, read(2)) {
		t.Error("two seeds do not differ")
	}
	perSite := make([][]Job, len(sites))
	for i, job := range jobs {
		if job.Submit < 0 || job.Submit >= 2*grid.Day || i > 0 && job.Submit < jobs[i-1].Submit ||
			job.Processors < 1 || job.Processors > sites[job.Site].Processors || job.RunTime < grid.Second || job.Estimate != job.RunTime {
			t.Fatalf("job %d: %+v", i, job)
		}
		perSite[job.Site] = append(perSite[job.Site], job)
	}
	// One log's stream is within reach of the published number on some two days.
	for i, site := range sites {
		if n := int64(len(perSite[i])); distance(n, site.Jobs) > site.Jobs/5 {
			t.Errorf("%s: %d jobs, published are %d", site.Name, n, site.Jobs)
		}
	}
	// A site's jobs do not change when sites are added, and replicas differ.
	alone, err := sites[0].GenerateDays(0, EmbeddedSeed)
	if err != nil || !slices.Equal(alone, perSite[0]) {
		t.Errorf("site 0 alone has other jobs (%v)", err)
	}
	if len(perSite[8]) == len(alone) && perSite[8][0].Submit == alone[0].Submit {
		t.Error("the second CTC SP2 repeats the first")
	}
}
