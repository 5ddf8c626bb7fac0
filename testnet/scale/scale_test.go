package scale

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/live"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/scale"
	"gridnode/testnet/sweep"
	"gridnode/testnet/sweep/away"
)

// TestWhatRunsLeave: a run leaves the same whether another process does it or this one.
func TestWhatRunsLeave(t *testing.T) {
	o := DefaultOptions()
	o.Sizes, o.OFT, o.SiteHours = []int{2, 8}, []int{0, 100}, 64
	o.Away = func(ctx context.Context, runs []sweep.Run, o sweep.Options) error {
		for i := range runs {
			p, path := away.Part{Run: i, Runs: len(runs)}, filepath.Join(t.TempDir(), "part")
			if err := p.Do(path)(ctx, runs, o); !errors.Is(err, away.ErrPart) {
				return err
			}
			var carried *scale.Result
			if err := p.Take(path, &sweep.Run{Result: &carried}); err != nil {
				return err
			}
			if left := *runs[i].Result.(**scale.Result); left.Jobs == 0 || !reflect.DeepEqual(left, carried) {
				t.Errorf("%s: is carried as\n%+v, not as\n%+v", runs[i].Name, carried, left)
			}
		}
		return nil
	}
	if r, err := Measure(t.Context(), o); err != nil || len(r.Results) != 4 {
		t.Fatal(r, err)
	}
	o.Live = true
	if _, err := Measure(t.Context(), o); !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), "--on") {
		t.Errorf("live nodes elsewhere: %v", err)
	}
}

// TestGarbage: a small federation may make much garbage before it is collected, of a large one
// most memory is what lives.
func TestGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var c collector
	for _, tt := range []struct{ more, want int }{{1, 400}, {999, 400}, {2000, 158}, {97_000, 20}, {-99_000, 400}, {-1000, 400}} {
		c.add(tt.more)
		if got := debug.SetGCPercent(100); got != tt.want {
			t.Errorf("%d sites: collects at %d %%, want %d", c.sites, got, tt.want)
		}
	}
	c.fixed = true
	if c.add(10_000); debug.SetGCPercent(100) != 100 {
		t.Error("does not heed what the environment says")
	}
}

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		from, to int
		want     []int
	}{
		{10, 10_000, []int{10, 50, 100, 1000, 10_000}},
		{10, 10, []int{10}},
		{5, 40, []int{5, 10, 40}},
		{50, 120, []int{50, 100, 120}},
	} {
		if got := sizes(tt.from, tt.to); !slices.Equal(got, tt.want) {
			t.Errorf("from %d to %d: %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestSpan(t *testing.T) {
	o := Options{SiteHours: 10_000}
	for sites, want := range map[int]grid.Time{10: 48 * grid.Hour, 1000: 10 * grid.Hour, 10_000: grid.Hour, 100_000: grid.Hour} {
		if got := o.span(sites); got != want {
			t.Errorf("%d sites are measured for %v, want %v", sites, got, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		flag   string
		change func(*Options)
	}{
		{"--from", func(o *Options) { o.From = 0 }},
		{"--from", func(o *Options) { o.To = 5 }},
		{"--from", func(o *Options) { o.To = federation.SitesMax + 1 }},
		{"--steps", func(o *Options) { o.Sizes = []int{50, 10} }},
		{"--steps", func(o *Options) { o.Sizes = []int{10, 10} }},
		{"--steps", func(o *Options) { o.Sizes = []int{0} }},
		{"--jobs", func(o *Options) { o.Workers = -1 }},
		{"--processors", func(o *Options) { o.Processors = -1 }},
		{"--site-hours", func(o *Options) { o.SiteHours = 0 }},
		{"--oft", func(o *Options) { o.OFT = nil }},
		{"--oft", func(o *Options) { o.Sizes, o.OFT = []int{1}, []int{101} }},
		{"--live: 300 nodes", func(o *Options) { o.Live, o.Sizes = true, []int{300} }},
		{"--live: 500 nodes", func(o *Options) { o.Live, o.To = true, 500 }},
		{"--live-rate", func(o *Options) { o.LiveRate = 0 }},
		{"--live-pace", func(o *Options) { o.LivePace = -1 }},
		{"--live", func(o *Options) { o.Load = 50 }},
		{"--live", func(o *Options) { o.Protocols = o.Protocols.All() }},
		{"--live-rest", func(o *Options) { o.LiveRest = -1 }},
		{"--placement", func(o *Options) { o.Sizes, o.Placement = []int{1}, "best" }},
	} {
		o := DefaultOptions()
		tt.change(&o)
		if _, err := Measure(context.Background(), o); !errors.Is(err, scenario.ErrConfig) || !strings.Contains(err.Error(), tt.flag) {
			t.Errorf("%+v: %v, want an error about %s", o, err, tt.flag)
		}
	}
}

// TestLiveSizes: a live measurement goes to a hundred nodes unless it is told how far.
func TestLiveSizes(t *testing.T) {
	for _, tt := range []struct {
		to   int
		want []int
	}{{defaultTo, []int{10, 50, 100}}, {50, []int{10, 50}}, {200, []int{10, 50, 100, 200}}} {
		o := DefaultOptions()
		o.Live, o.To = true, tt.to
		if err := o.validate(); err != nil || !slices.Equal(o.Sizes, tt.want) {
			t.Errorf("to %d: %v, %v, want %v", tt.to, o.Sizes, err, tt.want)
		}
	}
}

// TestLiveTargets: a live count is compared with the range of the virtual ones, and a
// machine that cannot keep up is no success.
func TestLiveTargets(t *testing.T) {
	counts := func(n int64) *scale.Result {
		return &scale.Result{ByType: map[string]int64{"directory.publish": n}}
	}
	for _, tt := range []struct {
		live int64
		late measure.Decimal
		met  bool
	}{{901, 0, true}, {899, 0, false}, {1150, 0, true}, {1319, 0, true}, {1321, 0, false}, {1150, 60, false}} {
		nodes := counts(tt.live)
		nodes.LateSeconds = tt.late
		virtual := []*scale.Result{counts(1100), counts(1000), counts(1200)}
		r := Report{Options: Options{Live: true}, Live: []Comparison{{Sites: 50, live: nodes, virtual: virtual, Types: live.Differences(nodes, virtual)}}}
		met := true
		for _, target := range r.Targets() {
			met = met && target.Met
		}
		if d := r.Live[0].Types[0]; met != tt.met || d.Virtual != 1100 || d.Least != 1000 || d.Most != 1200 {
			t.Errorf("%d live, %v s late: met %v, want %v; compared with %+v", tt.live, tt.late, met, tt.met, d)
		}
	}
}

// TestLiveLookups: so many requests a look-up takes live are compared with the virtual
// ones, if there were enough look-ups; and a line of the CSV is for each network.
func TestLiveLookups(t *testing.T) {
	of := func(mode string, lookups int64, requests measure.Decimal) *scale.Result {
		return &scale.Result{Mode: mode, Lookups: lookups, RequestsPerLookup: requests}
	}
	for _, tt := range []struct {
		lookups int64
		live    measure.Decimal
		want    string
	}{{50, 1300, "13.0 (+4.0 %) true"}, {50, 1120, "11.2 (-10.4 %) false"}, {5, 1120, ""}} {
		live := of("live", tt.lookups, tt.live)
		c := Comparison{Sites: 24, live: live, virtual: []*scale.Result{of("virtual", 10, 1100), of("virtual", 30, 1300)}}
		r := Report{Options: Options{Live: true}, Results: []*scale.Result{live}, Live: []Comparison{c}}
		got := ""
		for _, target := range r.Targets() {
			if strings.Contains(target.Text, "look-up") {
				got = fmt.Sprint(target.Here, " ", target.Met)
			}
		}
		if got != tt.want {
			t.Errorf("%d live look-ups of %v: %q, want %q", tt.lookups, tt.live, got, tt.want)
		}
		var b bytes.Buffer
		if err := r.Write(&b, "csv"); err != nil || strings.Count(b.String(), "\nlive,") != 1 || strings.Count(b.String(), "\nvirtual,") != 2 {
			t.Errorf("CSV %v:\n%s", err, &b)
		}
	}
}

// TestTargets: each is missed by what is just beyond it, and met by what is not.
func TestTargets(t *testing.T) {
	good := func(sites int) *scale.Result {
		m := &scale.Result{Sites: sites, OFT: 50, EventsPerSecond: 1000, MessagesPerSite: []scale.SiteLoad{{Times: 500}}}
		m.Cheapest, m.Fastest = measure.Spread{Mean: 600, Max: 9}, measure.Spread{Mean: 500, Max: 9}
		m.PerJob.Queries, m.PerJob.QueryLookups = 200, 100
		m.UpkeepPerSiteMinute.Total = 1000
		return m
	}
	missed := func(small, large *scale.Result) (texts []string) {
		r := Report{Options: Options{OFT: []int{50}}, Results: []*scale.Result{small, large}, WallSeconds: 300}
		for _, target := range r.Targets() {
			if !target.Met {
				texts = append(texts, target.Text)
			}
		}
		return texts
	}
	if list := missed(good(50), good(10_000)); len(list) != 0 {
		t.Errorf("missed %q, want none", list)
	}
	for _, tt := range []struct {
		want   string
		change func(small, large *scale.Result)
	}{
		{"50 sites, 50 % OFT: negotiation messages per job, cheapest", func(s, _ *scale.Result) { s.Cheapest.Mean = 601 }},
		{"10000 sites, 50 % OFT: negotiation messages per job, fastest", func(_, l *scale.Result) { l.Fastest.Mean = 601 }},
		{"50 sites, 50 % OFT: directory query", func(s, _ *scale.Result) { s.PerJob.QueryLookups = 101 }},
		{"10000 sites, 50 % OFT: directory query", func(_, l *scale.Result) { l.PerJob.Queries = 501 }},
		{"10000 sites, 50 % OFT: publishing", func(_, l *scale.Result) { l.UpkeepPerSiteMinute.Total = 1201 }},
		{"10000 sites, 50 % OFT: busiest", func(_, l *scale.Result) { l.MessagesPerSite[0].Times = 501 }},
		{"events a second", func(s, _ *scale.Result) { s.EventsPerSecond = 1301 }},
	} {
		small, large := good(50), good(10_000)
		tt.change(small, large)
		if list := missed(small, large); len(list) != 1 || !strings.HasPrefix(list[0], tt.want) {
			t.Errorf("missed %q, want %q only", list, tt.want)
		}
	}
}

// TestSameWhateverTheOrder: the report does not say how many networks were measured at a time.
func TestSameWhateverTheOrder(t *testing.T) {
	var first []byte
	for _, workers := range []int{1, 3} {
		o := DefaultOptions()
		o.Sizes, o.OFT, o.SiteHours, o.Workers = []int{1, 2, 4}, []int{0, 100}, 1, workers
		r, err := Measure(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range r.Results {
			if m.Sites != o.Sizes[i%3] || m.OFT != o.OFT[i/3] {
				t.Errorf("with %d at a time result %d is of %d sites and %d %%", workers, i, m.Sites, m.OFT)
			}
			m.EventsPerSecond, m.WallSeconds, m.ProcessorSeconds, m.SetupSeconds = 0, 0, 0, 0
		}
		r.WallSeconds = 0
		var text bytes.Buffer
		if err := r.Write(&text, "json"); err != nil {
			t.Fatal(err)
		}
		if workers == 1 {
			first = text.Bytes()
		} else if !bytes.Equal(text.Bytes(), first) {
			t.Errorf("with %d at a time:\n%s\none after the other:\n%s", workers, &text, first)
		}
	}
}

// TestReport: the same figures in every form, and a page that stands alone.
func TestReport(t *testing.T) {
	o := DefaultOptions()
	o.Sizes, o.OFT, o.SiteHours = []int{2, 8}, []int{0, 100}, 1
	var last, total int64
	o.Progress = func(done, of int64) { last, total = done, of }
	r, err := Measure(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if total == 0 || last < total*9/10 || last > total {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	var text, table bytes.Buffer
	if err := errors.Join(r.Write(&text, "json"), r.Write(&table, "table")); err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Command string
		Results []map[string]any
		Targets []Target
	}
	if err := json.Unmarshal(text.Bytes(), &parsed); err != nil || len(parsed.Results) != 4 || len(parsed.Targets) == 0 {
		t.Fatalf("%v, %d results, %d targets: %s", err, len(parsed.Results), len(parsed.Targets), text.Bytes())
	}
	if want := "gridnode testnet scale --steps 2,8 --placement coordinated --oft 0,100 --site-hours 1 --seed 1"; parsed.Command != want {
		t.Errorf("command %q, want %q", parsed.Command, want)
	}
	dir := t.TempDir()
	page, err := r.Save(dir)
	if err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(page)
	if err != nil || bytes.Count(html, []byte("<svg")) < 10 || bytes.Contains(html, []byte("src=")) || bytes.Contains(html, []byte("href=\"http")) {
		t.Errorf("%s: %v, %d drawings, or it refers to something", page, err, bytes.Count(html, []byte("<svg")))
	}
	f, err := os.Open(filepath.Join(dir, "scale.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 5 || rows[4][3] != "8" || rows[4][2] != "100" {
		t.Errorf("%v, rows %v", err, rows)
	}
	i := slices.Index(rows[0], "Busiest site: gossip.load")
	if i < 0 || rows[4][i] != fmt.Sprint(r.Results[3].MessagesPerSite[0].ByType["gossip.load"]) || rows[4][i] == "0" {
		t.Errorf("column %d of the CSV is not what the busiest site gossips", i)
	}
	if !strings.Contains(table.String(), "What the busiest site sends and receives") || !strings.Contains(table.String(), "Messages per job by type") || !strings.Contains(table.String(), "target") {
		t.Errorf("the table is\n%s", table.String())
	}
}
