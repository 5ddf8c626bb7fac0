package market

import (
	"fmt"
	"strings"
	"testing"

	"gridnode/grid"
)

// table1 are the sites of Grid-Federation, table 1.
var table1 = []struct {
	name       string
	processors int64
	mips       int64
	quote      string
	bandwidth  int64 // Mb/s
}{
	{"ctc", 512, 850, "4.84", 2000},
	{"kth", 100, 900, "5.12", 1600},
	{"cm5", 1024, 700, "3.98", 1000},
	{"origin", 2048, 630, "3.59", 1600},
	{"nasa", 128, 930, "5.3", 4000},
	{"par96", 416, 710, "4.04", 1000},
	{"blue", 1152, 730, "4.16", 2000},
	{"sp2", 128, 920, "5.24", 4000},
}

// paperNetwork is the federation of table 1 without latency.
func paperNetwork(t testing.TB, change func(*Config)) *network {
	n := newNetwork(t)
	for _, row := range table1 {
		price, err := grid.ParseCredits(row.quote)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{
			Offer: Offer{
				Site: grid.SiteID(row.name), Name: row.name, Resources: grid.Resources{Processors: row.processors},
				Rating: grid.Rating{Speed: row.mips, Bandwidth: row.bandwidth}, Price: price, Cost: grid.CostPaper,
				Foreign: true,
			},
			Placement: PlacementPaper,
		}
		if change != nil {
			change(&cfg)
		}
		n.add(cfg, 0)
	}
	return n
}

// job makes a job that takes span at its home, 10 % of it communication, with the
// deadline and budget of eqs. 4 and 5.
func (n *network) job(number uint64, home grid.SiteID, processors int64, span grid.Time, goal grid.Goal) *grid.Job {
	s := n.sites[home]
	j := &grid.Job{
		ID: grid.JobID{Hi: 1, Lo: number}, Home: home, Resources: grid.Resources{Processors: processors}, Tasks: 1,
		Submit: s.clock(), Estimate: span, RunTime: span, Work: grid.WorkOf(span, 100, s.cfg.Rating),
		Deadline: s.clock() + 2*span, Goal: goal, Budget: grid.NoBudget,
	}
	j.Budget = 2 * j.CostAt(s.cfg.Rating, s.cfg.Price, s.cfg.Cost)
	return j
}

// asked lists the sites that got a negotiation for a job, in order.
func (n *network) asked() string {
	var sites []string
	for _, line := range n.trace {
		if head, rest, ok := strings.Cut(line, " "); ok && strings.HasPrefix(rest, "negotiate") {
			_, to, _ := strings.Cut(head, "->")
			sites = append(sites, to)
		}
	}
	return strings.Join(sites, " ")
}

// fill occupies all processors of a site for a span.
func (n *network) fill(id grid.SiteID, span grid.Time) {
	s := n.sites[id]
	request := lrmsRequest(1_000_000, s.cfg.Processors, span)
	if err := s.cluster.Submit(s.clock(), request); err != nil {
		n.t.Fatal(err)
	}
	s.schedule()
}

// "2. If OFT is required for the job then query the federation directory for the
// r-th fastest GFA; otherwise OFC is required and the query is made for the r-th
// cheapest GFA." "4. If the remote GFA confirms the guarantee then the job is sent,
// otherwise r := r + 1" (§2.2).
func TestPaperOrderOfNegotiation(t *testing.T) {
	for _, tt := range []struct {
		name   string
		goal   grid.Goal
		full   string // sites without a free processor for a day
		asked  string
		at     grid.SiteID
		counts int32
	}{
		{"cheapest first", grid.GoalCost, "", "origin", "origin", 3},
		{"then the next cheapest", grid.GoalCost, "origin cm5", "origin cm5 par96", "par96", 7},
		// Asking home costs no message: it is the cheapest after the three.
		{"home takes its turn", grid.GoalCost, "origin cm5 par96 blue", "origin cm5 par96 blue", "ctc", 8},
		{"fastest first", grid.GoalTime, "", "nasa", "nasa", 3},
		{"then the next fastest", grid.GoalTime, "nasa sp2", "nasa sp2 kth", "kth", 7},
		{"home after the three faster", grid.GoalTime, "nasa sp2 kth", "nasa sp2 kth", "ctc", 6},
		{"home first without economy", grid.GoalSpill, "", "", "ctc", 0},
		{"then falling speed", grid.GoalSpill, "ctc nasa", "nasa sp2", "sp2", 5},
		{"independent", grid.GoalLocal, "", "", "ctc", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := paperNetwork(t, nil)
			for _, id := range strings.Fields(tt.full) {
				n.fill(grid.SiteID(id), grid.Day)
			}
			job := n.job(1, "ctc", 64, 1000*grid.Second, tt.goal)
			n.place(job)
			n.deliverAll()
			got := n.sites["ctc"].jobs[job.ID]
			if asked := n.asked(); asked != tt.asked || got.award.Site != tt.at || got.messages != tt.counts {
				t.Errorf("asked %q, placed at %s with %d messages; want %q, %s, %d\n%s",
					asked, got.award.Site, got.messages, tt.asked, tt.at, tt.counts, n.takeTrace())
			}
		})
	}
}

// "If the job's QoS parameters cannot be satisfied (after iterating up to the
// greatest r such that GFA could feasibly complete the job) then the job is
// dropped" (§2.2).
func TestPaperDropsAfterGreatestFeasible(t *testing.T) {
	n := paperNetwork(t, nil)
	for _, row := range table1 {
		n.fill(grid.SiteID(row.name), grid.Day)
	}
	// 500 processors fit at origin, cm5, blue and ctc only. The cheapest order is
	// origin cm5 par96 blue ctc kth sp2 nasa: ctc, home, is the last that could.
	job := n.job(1, "ctc", 500, 1000*grid.Second, grid.GoalCost)
	n.place(job)
	n.deliverAll()
	if got := n.asked(); got != "origin cm5 par96 blue" {
		t.Errorf("asked %q, want origin cm5 par96 blue", got)
	}
	if state := n.sites["ctc"].jobs[job.ID].state; state != "refused" {
		t.Errorf("job is %s, want refused", state)
	}

	n = paperNetwork(t, func(c *Config) { c.SkipInfeasible = true })
	n.fill("origin", grid.Day)
	n.fill("cm5", grid.Day)
	n.place(n.job(1, "ctc", 500, 1000*grid.Second, grid.GoalCost))
	n.deliverAll()
	if got := n.asked(); got != "origin cm5 blue" {
		t.Errorf("asked %q with SkipInfeasible, want origin cm5 blue", got)
	}
}

// "for OFT then GFA m with R_m is chosen such that D(J, R_m) is minimal, and
// B(J, R_m) ≤ b" (§2.2). For OFC no such condition is given.
func TestPaperBudget(t *testing.T) {
	n := paperNetwork(t, nil)
	job := n.job(1, "ctc", 64, 1000*grid.Second, grid.GoalTime)
	kth := n.sites["kth"]
	job.Budget = job.CostAt(kth.cfg.Rating, kth.cfg.Price, grid.CostPaper) // below nasa's and sp2's
	n.place(job)
	n.deliverAll()
	if got := n.asked(); got != "kth" {
		t.Errorf("OFT asked %q, want only kth: nasa and sp2 are over the budget", got)
	}

	n = paperNetwork(t, nil)
	job = n.job(1, "ctc", 64, 1000*grid.Second, grid.GoalCost)
	job.Budget = 0
	n.place(job)
	n.deliverAll()
	if got := n.asked(); got != "origin" {
		t.Errorf("OFC asked %q, want origin whatever the budget", got)
	}
}

// "requesting a guarantee on the time to complete the job" (§2.2): a job with
// deadline 2·D(J, R_k) is refused where what runs there leaves too little time,
// and accepted where it is just enough.
func TestPaperGuarantee(t *testing.T) {
	const span = 1000 * grid.Second
	for _, tt := range []struct {
		busy grid.Time
		at   grid.SiteID
	}{
		// At origin the job takes 900 s · 850/630 + 100 s · 2/1.6 = 1339.3 s of 2000 s.
		{660 * grid.Second, "origin"},
		{661 * grid.Second, "cm5"},
	} {
		t.Run(tt.busy.String(), func(t *testing.T) {
			n := paperNetwork(t, nil)
			n.fill("origin", tt.busy)
			job := n.job(1, "ctc", 64, span, grid.GoalCost)
			n.place(job)
			n.deliverAll()
			if got := n.sites["ctc"].jobs[job.ID].award; got.Site != tt.at || got.Finish > job.Deadline {
				t.Errorf("placed at %s to finish %v after the deadline, want %s before it", got.Site, got.Finish-job.Deadline, tt.at)
			}
		})
	}
}

// Eq. 2 and 3, with the numbers of table 1: D(J, R_m) = l/(μ_m p) + Γ/γ_m and
// B(J, R_m) = c_m · l/(μ_m p). A job of 1000 s at CTC has l/p = 765 000 MI.
func TestPaperEquations(t *testing.T) {
	n := paperNetwork(t, nil)
	job := n.job(1, "ctc", 64, 1000*grid.Second, grid.GoalCost)
	for _, tt := range []struct {
		site  grid.SiteID
		takes grid.Time    // µs, rounded up: 765e9/μ + 100e6·2000/γ
		cost  grid.Credits // c·(765e9/μ)/3600e6, rounded, ±1 for the rounding of time
	}{
		{"ctc", 1000 * grid.Second, 1_210_000},
		{"origin", 1_339_285_715, 1_210_913},
		{"nasa", 822_580_646 + 50_000_000, 1_211_022},
	} {
		cfg := n.sites[tt.site].cfg
		if got := job.EstimateAt(cfg.Rating); got != tt.takes {
			t.Errorf("D at %s = %d µs, want %d", tt.site, got, tt.takes)
		}
		if got := job.CostAt(cfg.Rating, cfg.Price, cfg.Cost); got < tt.cost-1 || got > tt.cost+1 {
			t.Errorf("B at %s = %d micro-credits, want %d", tt.site, got, tt.cost)
		}
	}
	if want := 2 * grid.Credits(1_210_000); job.Budget != want {
		t.Errorf("eq. 4: budget %d, want %d", job.Budget, want)
	}
}

// Experiment 4 counts "negotiate, reply, job-submission (messages containing actual
// job) and job-completion (message containing job output)".
func TestPaperMessages(t *testing.T) {
	n := paperNetwork(t, nil)
	n.fill("origin", grid.Day)
	job := n.job(1, "ctc", 64, 1000*grid.Second, grid.GoalCost)
	n.place(job)
	n.deliverAll()
	n.advance(grid.Hour, true)
	got := n.sites["ctc"].jobs[job.ID]
	if got.state != "done" || got.messages != 6 {
		t.Errorf("job is %s with %d messages, want done with 2 negotiations, 2 replies, a submission and a completion", got.state, got.messages)
	}
}

// "5.55 … messages" per job stand for a number of sites asked: a job accepted by
// the r-th remote site costs 2r + 2.
func TestPaperMessagesGrowWithRank(t *testing.T) {
	for r := range 4 {
		n := paperNetwork(t, nil)
		for _, id := range []grid.SiteID{"origin", "cm5", "par96"}[:r] {
			n.fill(id, grid.Day)
		}
		job := n.job(1, "nasa", 16, 1000*grid.Second, grid.GoalCost)
		n.place(job)
		n.deliverAll()
		n.advance(grid.Hour, true)
		if got, want := n.sites["nasa"].jobs[job.ID].messages, int32(2*(r+1)+2); got != want {
			t.Errorf("r = %d: %d messages, want %d", r+1, got, want)
		}
	}
}

func ExampleRank() {
	n := paperNetwork(nil, nil)
	job := n.job(1, "ctc", 256, 1000*grid.Second, grid.GoalCost)
	at := Circumstances{Now: n.now, Home: "ctc", HomeStart: n.now, Policy: PlacementPaper}
	for _, v := range Rank(job, n.list(), at)[:3] {
		fmt.Println(v.Site, v.Outcome, v.Price)
	}
	// Output:
	// origin chosen 3.59
	// cm5 candidate 3.98
	// par96 candidate 4.04
}
