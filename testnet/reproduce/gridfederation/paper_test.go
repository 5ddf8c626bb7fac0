package gridfederation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/reproduce"
	"gridnode/testnet/workload"
)

func small() reproduce.Options {
	o := reproduce.DefaultOptions()
	o.Windows, o.Quick, o.Sizes = 2, true, []int{2, 3}
	return o
}

// TestGridFederation: on the embedded workload the report is complete, says that
// the published figures do not apply, and its figures add up.
func TestGridFederation(t *testing.T) {
	o := small()
	var last, total int64
	o.Progress = func(done, of int64) { last, total = done, of }
	r, err := reproduce.Reproduce(context.Background(), Paper, o)
	if err != nil {
		t.Fatal(err)
	}
	if last != total || total == 0 || r.Runs != 2*(2+3)+2*3 {
		t.Errorf("%d of %d done in %d runs", last, total, r.Runs)
	}
	if !strings.Contains(r.Notes[0], "do not apply") {
		t.Errorf("the report does not say that no logs were used: %q", r.Notes)
	}
	if len(r.Inputs) != 16 || len(r.Experiments) != 5 {
		t.Fatalf("%d inputs and %d experiments", len(r.Inputs), len(r.Experiments))
	}
	plots := 0
	for _, e := range r.Experiments {
		plots += len(e.Plots)
		for _, table := range e.Tables {
			for _, m := range table.Measures {
				if len(m.Cells) != len(table.Columns) {
					t.Errorf("%s: %s has %d cells for %d columns", table.Title, m.Name, len(m.Cells), len(table.Columns))
				}
				for i, c := range m.Cells {
					if s := c.Spread; s != nil && s.N == 2 && (c.Here < s.Min || c.Here > s.Max || s.Mean < s.Min || s.Mean > s.Max) {
						t.Errorf("%s: %s of %s is %v in a spread of %+v", table.Title, m.Name, table.Columns[i], c.Here, *s)
					}
				}
			}
		}
	}
	if plots != 2+5+3+6 {
		t.Errorf("%d plots, want those of figures 2 to 7", plots)
	}
	checkSums(t, r)
	dir := filepath.Join(t.TempDir(), "new")
	path, err := r.Save(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Join(dir, "grid-federation.csv"), filepath.Join(dir, "grid-federation.json")} {
		if info, err := os.Stat(name); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkSums: what the sites have adds up to what all have.
func checkSums(t *testing.T, r *reproduce.Report) {
	t.Helper()
	seen := 0
	for _, e := range r.Experiments {
		for _, table := range e.Tables {
			for _, m := range table.Measures {
				counted := m.Unit == reproduce.Jobs || m.Unit == reproduce.Messages || strings.HasPrefix(m.Name, "incentive")
				if table.Columns[len(table.Columns)-1] != "all" || !counted {
					continue
				}
				seen++
				sum := reproduce.Number(0)
				for _, c := range m.Cells[:siteAll] {
					sum += c.Here
				}
				if all := m.Cells[siteAll].Here; sum < all*0.999999 || sum > all*1.000001 {
					t.Errorf("%s: %s: sites add up to %v, all is %v", table.Title, m.Name, sum, all)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d measures add up", seen)
	}
}

// TestOutcome: what users and owners have agrees with the statistics of the run.
func TestOutcome(t *testing.T) {
	s := &federationStudy{o: small(), sites: workload.Table1()}
	if _, err := s.readWindows(); err != nil {
		t.Fatal(err)
	}
	o, err := s.run(context.Background(), s.windows[0].days, federationCase{mode: "economy", oft: 100, sites: 3})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if want == 0 || got < want*0.999 || got > want*1.001 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for i := range o.Sites {
		u, st := o.users[i], o.stats(i)
		if u.jobs != st.Submitted || u.accepted != st.Accepted {
			t.Errorf("%s: %d jobs, %d accepted, want %d and %d", o.Sites[i].Name, u.jobs, u.accepted, st.Submitted, st.Accepted)
		}
		near("response", u.responseAccepted/float64(u.accepted), st.ResponseTime.Float())
		if spent := grid.Credits(st.BudgetSpent).Float(); u.accepted == u.jobs {
			near("spent", u.spent.printed, spent)
		} else if u.spent.printed <= spent || u.response <= u.responseAccepted {
			t.Errorf("%s: rejected jobs do not count in what was spent (%v) or in the response (%v)", o.Sites[i].Name, u.spent.printed, u.response)
		}
		near("earned", o.earned[i].taken, s.sites[i].Price.Float()/3600*st.SquashedArea.Float())
	}
	if all := o.usersOf(siteAll); all.jobs != o.Total.Submitted || all.spent.printed < grid.Credits(o.Total.BudgetSpent).Float() {
		t.Errorf("all users have %d jobs and spent %v", all.jobs, all.spent)
	}
	if o.messages() == 0 || o.Total.MessagesRemote != o.Total.MessagesLocal {
		t.Errorf("%d messages are local and %d remote; each has a home and another end", o.Total.MessagesLocal, o.Total.MessagesRemote)
	}
}

// TestClaimsSize: a difference of at least half and at most twice the published one
// meets the claim.
func TestClaimsSize(t *testing.T) {
	of := func(hundredths measure.Decimal) *outcome {
		return &outcome{Result: &measure.Result{Messages: measure.Messages{PerJob: measure.Spread{Mean: hundredths}}}}
	}
	s := &federationStudy{sizes: []int{10, 20, 50}, windows: []*federationWindow{{scale: [][3]*outcome{
		{of(500), of(0), of(735)}, {}, {of(1000), of(0), of(1680)},
	}}}}
	claims := s.claimsSize()
	// +47 % where +91.9 % is published, +68 where +138.0 is; then +100 where +213.2 is,
	// and +128.6 where +288.5 is.
	want := []bool{true, false, false, false}
	if len(claims) != len(want) {
		t.Fatalf("%d claims, want two by size and two of the growth: %+v", len(claims), claims)
	}
	for i, c := range claims {
		if c.Holds != want[i] || !c.Shape {
			t.Errorf("%+v: want %v, and in shape", c, want[i])
		}
	}
}

// TestCharges: a job of 4 processors and 3600 s at home, a tenth of it communication,
// at one credit a processor-hour.
func TestCharges(t *testing.T) {
	site := workload.Site{Processors: 8, Rating: grid.Rating{Speed: 100, Bandwidth: 1000}, Price: grid.Price(grid.Credit)}
	var job grid.Job
	workload.PaperQoS.Job(&workload.Job{RunTime: grid.Hour, Estimate: grid.Hour, Processors: 4}, &workload.Home{Rating: site.Rating, Price: site.Price}, &job)
	got := chargesFor(&job, &site)
	for _, tt := range []struct {
		name      string
		got, want float64
	}{{"eq. 3", got.printed, 0.9}, {"eq. 3 × processors", got.computing, 3.6}, {"with communication", got.taken, 4}} {
		if tt.got < tt.want*0.9999 || tt.got > tt.want*1.0001 {
			t.Errorf("%s: %v credits, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// TestRejectedCountAsHomeExpected: what home expects of a rejected job is later than its
// deadline, and the deadline is later than an idle home.
func TestRejectedCountAsHomeExpected(t *testing.T) {
	s := &federationStudy{o: small(), sites: workload.Table1()}
	if _, err := s.readWindows(); err != nil {
		t.Fatal(err)
	}
	o, err := s.run(context.Background(), s.windows[0].days, federationCase{mode: "independent", sites: len(s.sites)})
	if err != nil {
		t.Fatal(err)
	}
	u := o.everybody()
	if o.Total.Rejected == 0 || u.response <= u.responseDeadline || u.responseDeadline <= u.responseIdle || u.responseIdle <= u.responseAccepted {
		t.Errorf("%d jobs are rejected; the sums are %.0f s as expected, %.0f to the deadline, %.0f when idle, %.0f without them",
			o.Total.Rejected, u.response, u.responseDeadline, u.responseIdle, u.responseAccepted)
	}
}

// TestReadings: each reading changes what it says, and nothing else.
func TestReadings(t *testing.T) {
	s := &federationStudy{o: small(), sites: workload.Table1(), sizes: []int{8}}
	if _, err := s.readWindows(); err != nil {
		t.Fatal(err)
	}
	base := s.windows[0].days
	readings, err := s.planReadings(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings {
		if r.days == nil {
			continue
		}
		if used := r.days(base); &used[0][0] == &base[0][0] {
			t.Errorf("%s changes the jobs of the others", r.name)
		}
	}
}

// TestChosenDays: the pairs whose row is closest to table 2 are taken, none of which
// shares a day with a better one, all of one width.
func TestChosenDays(t *testing.T) {
	s := &federationStudy{sites: workload.Table1()}
	if d := s.distanceOf(siteKTH, 163, 50.06438, 93.865); d != 0 {
		t.Errorf("the published row is %v from itself", d)
	}
	// 10 % more jobs, 5 points less utilisation, 10 points less acceptance.
	if d := s.distanceOf(siteCM5, 236, 42.103, 73.72); d < 0.2476 || d > 0.2478 {
		t.Errorf("distance %v, want 21/215 + 0.05 + 0.1", d)
	}
	at := func(day grid.Time, width int64, far float64) pair {
		return pair{Days: workload.Days{Start: day * grid.Day}, width: width, far: far}
	}
	best := apart([]pair{at(3, 1, 0.3), at(4, 1, 0.1), at(5, 1, 0.2), at(6, 1, 0.5), at(9, 2, 0.15), at(1, 1, 0.4)}, 3)
	if len(best) != 3 || best[0].far != 0.1 || best[1].far != 0.4 || best[2].far != 0.5 {
		t.Errorf("chosen %+v, want those of days 4, 1 and 6", best)
	}
}

// TestLikelyPairs: experiment 1 finds the days that table 2 was made of, here days of
// which one is known to fit.
func TestLikelyPairs(t *testing.T) {
	s := &federationStudy{o: small(), sites: workload.Table1()}
	pairs := make([][]pair, len(s.sites))
	for width := range int64(2) {
		g, err := workload.NewGenerator(s.sites[siteOrigin].ModelOf(2048>>(3*width)), workload.Rand(1, 3))
		if err != nil {
			t.Fatal(err)
		}
		days, err := workload.DayPairs(&workload.Window{Source: g, Span: 5 * grid.Day}, 1, 2000)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range days {
			pairs[siteOrigin] = append(pairs[siteOrigin], pair{Days: d, width: width})
		}
	}
	best, err := s.choosePairs(context.Background(), pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs[siteOrigin] {
		if p.alone[0] <= 0 || p.alone[1] <= 0 || p.far < best[siteOrigin][0].far {
			t.Errorf("a pair at %v has %v of utilisation and acceptance and is %v away, the best %v", p.Start, p.alone, p.far, best[siteOrigin][0].far)
		}
	}
	if len(best[siteCTC]) != 0 {
		t.Errorf("%d pairs of a site that had none", len(best[siteCTC]))
	}
}

// TestBeyondThePaper: what the report adds has a figure for every run, and its claims
// follow from them.
func TestBeyondThePaper(t *testing.T) {
	if testing.Short() {
		t.Skip("its runs are those of TestGridFederation")
	}
	s := &federationStudy{o: small(), sites: workload.Table1(), sizes: []int{2, 8}}
	s.o.Windows = 1
	if _, err := s.readWindows(); err != nil {
		t.Fatal(err)
	}
	w := s.windows[0]
	runs := append(s.coordinatedRuns(), s.pricingRuns()...)
	for n, size := range s.sizes {
		for p := range populations {
			runs = append(runs, reproduce.Run{Name: "paper", Weight: 1, Do: func(ctx context.Context) (err error) {
				w.scale[n][p], err = s.run(ctx, w.days, federationCase{mode: "economy", oft: populations[p].oft, sites: size})
				return err
			}})
		}
	}
	if err := s.o.RunAll(context.Background(), runs); err != nil {
		t.Fatal(err)
	}
	for _, e := range []reproduce.Experiment{s.compareCoordinated(), s.comparePricing()} {
		for _, table := range e.Tables {
			for _, m := range table.Measures {
				if len(m.Cells) != len(table.Columns) {
					t.Errorf("%s: %s has %d cells for %d columns", table.Title, m.Name, len(m.Cells), len(table.Columns))
				}
				for i, c := range m.Cells {
					if !c.Here.Known() {
						t.Errorf("%s: %s has nothing for %s", table.Title, m.Name, table.Columns[i])
					}
				}
			}
		}
		if len(e.Claims) < 2 || len(e.Plots) < 2 {
			t.Errorf("%s: %d claims and %d plots", e.Title, len(e.Claims), len(e.Plots))
		}
	}
	for i := range compared {
		if s.coordinated[1][i].perJob() >= compared[i].paper(w, 1).perJob() {
			t.Errorf("%s: the coordinated placement takes %v messages per job, the paper's %v", populations[compared[i].population].name,
				s.coordinated[1][i].perJob(), compared[i].paper(w, 1).perJob())
		}
	}
	// Prices move, and nothing else that the runs with fixed prices do.
	paper := s.pricing[0]
	if fixed, demand := paper.outcomes[0][0], paper.outcomes[0][1]; fixed.TraceHash == demand.TraceHash || len(demand.earners()) <= len(fixed.earners()) {
		t.Errorf("with prices by demand %d sites earn, with fixed ones %d", len(demand.earners()), len(fixed.earners()))
	}
	if n := len(without([]int{siteCTC, siteSP2})); n != siteAll-2 {
		t.Errorf("%d sites are not two of them", n)
	}
	// A claim that does not hold says so.
	s.coordinated[1][0], w.scale[1][0] = w.scale[1][0], s.coordinated[1][0]
	s.coordinated[1][0].Messages.PerJob.Mean = (negotiationMax + 1) * 100
	s.coordinated[1][0].Total.Accepted /= 2
	for _, c := range s.claimsCoordinated(0)[:2] {
		if c.Holds {
			t.Errorf("%+v holds", c)
		}
	}
}
