package measure

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// handTallies is a case small enough to work out by hand. Site a has 10 processors,
// b has 5. Times in seconds:
//
//	job  home  ran at  processors  submitted  start  end
//	1    a     a       4           0          10     30
//	2    a     b       2           5          5      10
//	3    b     b       5           0          20     120
func handTallies(window grid.Time) (a, b Tally) {
	s := func(v int64) grid.Time { return grid.Time(v) * grid.Second }
	Account(&a, &a, nil, &Times{4, 0, s(10), s(10), s(30), window})
	Account(&a, &b, nil, &Times{2, 0, 0, s(5), s(10), window})
	Account(&b, &b, nil, &Times{5, 0, s(20), s(20), s(120), window})
	a.Submitted, a.Finished, b.Submitted, b.Finished, b.Rejected = 2, 2, 2, 1, 1
	return a, b
}

// TestStatsOfLeases: a job of a on 4 of a's processors and 2 of b's, from 10 to 30 s
// ("The gain of resource delegation", equations 1 to 3).
func TestStatsOfLeases(t *testing.T) {
	var a, b Tally
	Account(&a, &a, &b, &Times{6, 2, 0, 10 * grid.Second, 30 * grid.Second, grid.Never})
	for _, tt := range []struct {
		name string
		got  Stats
		want Stats
	}{
		{"a", a.Stats(4, grid.Never), Stats{
			Local: 1, Utilization: 6667, ASD: 100, AWRT: 2000, ResponseTime: 2000, Makespan: 3000,
			Goodput: 12000, GoodputLocal: 8000, GoodputIntraGrid: 4000, SquashedArea: 8000, LeasedArea: 4000,
		}},
		{"b", b.Stats(2, grid.Never), Stats{Utilization: 6667, Makespan: 3000, SquashedArea: 4000}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, tt.got, tt.want)
		}
	}
}

func TestStatsByHand(t *testing.T) {
	a, b := handTallies(grid.Never)
	total := a
	total.Plus(&b)
	for _, tt := range []struct {
		name string
		got  Stats
		want Stats
	}{
		{"a", a.Stats(10, grid.Never), Stats{
			Submitted: 2, Accepted: 2, Finished: 2, Local: 1, Migrated: 1,
			Utilization:  2667, // 80 of 10 × 30
			AWT:          500,  // (10 + 0) / 2
			ASD:          125,  // ((10+20)/20 + 1) / 2: five seconds count as ten
			AWRT:         2722, // (80·30 + 10·5) / (80 + 10)
			ResponseTime: 1750, Makespan: 3000,
			Goodput: 9000, GoodputLocal: 8000, GoodputIntraGrid: 1000,
			SquashedArea: 8000, QueueLength: 33, // 10 / 30
		}},
		{"b", b.Stats(5, grid.Never), Stats{
			Submitted: 2, Accepted: 1, Rejected: 1, Finished: 1, Local: 1, Remote: 1,
			Utilization: 8500, // 510 of 5 × 120
			AWT:         2000, ASD: 120, AWRT: 12000, ResponseTime: 12000, Makespan: 12000,
			Goodput: 50000, GoodputLocal: 50000, SquashedArea: 51000, QueueLength: 17,
		}},
		{"total", total.Stats(15, grid.Never), Stats{
			Submitted: 4, Accepted: 3, Rejected: 1, Finished: 3, Local: 2, Migrated: 1, Remote: 1,
			Utilization:  3278,  // 590 of 15 × 120
			AWT:          1000,  // 30 / 3
			ASD:          123,   // 3.7 / 3
			AWRT:         10585, // (2450 + 60000) / 590
			ResponseTime: 5167, Makespan: 12000,
			Goodput: 59000, GoodputLocal: 58000, GoodputIntraGrid: 1000, SquashedArea: 59000, QueueLength: 25,
		}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, tt.got, tt.want)
		}
	}

	_, b = handTallies(60 * grid.Second)
	if got := b.Stats(5, 60*grid.Second).Utilization; got != 7000 { // 10 + 5·40 of 5 × 60
		t.Errorf("utilization of b over a minute is %v, want 0.7000", got)
	}
	if got := new(Tally).Stats(0, grid.Never); got != (Stats{}) {
		t.Errorf("a site without processors or jobs has %+v", got)
	}
}

// TestSum compares 128-bit sums with big integers.
func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sum
		want := new(big.Int)
		for range rapid.IntRange(1, 10).Draw(t, "terms") {
			a, b := rapid.Int64Range(0, 1<<45).Draw(t, "a"), rapid.Int64Range(0, 1<<45).Draw(t, "b")
			v := rapid.Int64Range(0, 1<<30).Draw(t, "v")
			var area Sum
			area.Add(a, b)
			s.Scaled(area, v)
			want.Add(want, new(big.Int).Mul(big.NewInt(v), new(big.Int).Mul(big.NewInt(a), big.NewInt(b))))
		}
		if got := s.big(); got.Cmp(want) != 0 {
			t.Fatalf("sum is %v, want %v", got, want)
		}
		d := rapid.Int64Range(1, math.MaxInt64).Draw(t, "divisor")
		double := new(big.Int).Mul(big.NewInt(2), want)
		rounded := double.Add(double, big.NewInt(d)).Quo(double, new(big.Int).Mul(big.NewInt(2), big.NewInt(d)))
		if got := s.Over(SumOf(d), 1); rounded.IsInt64() && got != rounded.Int64() {
			t.Fatalf("%v over %d is %d, want %v", want, d, got, rounded)
		}
	})
	full := Sum{math.MaxUint64, math.MaxUint64}
	full.Add(1, 1)
	if full != (Sum{math.MaxUint64, math.MaxUint64}) {
		t.Errorf("a full sum wrapped around to %v", full)
	}
	var s Sum
	s.Scaled(full, 2)
	if s != full {
		t.Errorf("twice a full sum is %v", s)
	}
}

func TestDecimalsPrintTheSameEverywhere(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Decimal(5293796).String(), "52937.96"},
		{Decimal(2930668200).String(), "29306682"},
		{Decimal(5).String(), "0.05"},
		{Decimal(-1).String(), "-0.01"},
		{Decimal(120).String(), "1.20"},
		{Ratio(6570).String(), "0.6570"},
		{Ratio(10000).String(), "1.0000"},
		{Amount(2_500_000).String(), "2.5"},
	} {
		if tt.got != tt.want {
			t.Errorf("printed %s, want %s", tt.got, tt.want)
		}
	}
}

// TestSpread works a histogram's figures out by hand.
func TestSpread(t *testing.T) {
	var h Histogram
	for v := range int32(200) { // 0 to 199, once each
		h.Add(v)
	}
	if got, want := h.Spread(), (Spread{Mean: 9950, Min: 0, Max: 199, P99: 197}); got != want {
		t.Errorf("spread is %+v, want %+v", got, want)
	}
	h = Histogram{}
	for range 99 {
		h.Add(4)
	}
	h.Add(1000)
	if got, want := h.Spread(), (Spread{Mean: 1396, Min: 4, Max: 1000, P99: 4}); got != want {
		t.Errorf("spread is %+v, want %+v", got, want)
	}
	if got := new(Histogram).Spread(); got != (Spread{}) {
		t.Errorf("spread of nothing is %+v", got)
	}
}

// statsKeys are the keys of STATS; scripts rely on them.
var statsKeys = []string{
	"submitted", "accepted", "rejected", "finished", "local", "migrated", "remote", "utilization",
	"awt", "asd", "awrt", "responseTime", "makespan", "goodput", "goodputLocal", "goodputIntraSite", "goodputIntraGrid",
	"goodputInterGrid", "delegationsPerJob", "squashedArea", "leasedArea", "incentive", "budgetSpent", "messagesLocal", "messagesRemote", "coallocated",
	"queueLength", "missed", "mcp", "pb",
}

// TestResultKeys: the JSON of a run has exactly the stable keys, in tables and CSV, too.
func TestResultKeys(t *testing.T) {
	a, b := handTallies(grid.Never)
	r := &Result{
		Scenario: "leasing", Seed: 7, Mode: "virtual", Config: struct{}{}, TraceHash: "0123456789abcdef",
		Total:    a.Stats(10, grid.Never),
		Sites:    []SiteResult{{"a", 10, a.Stats(10, grid.Never)}, {"b", 5, b.Stats(5, grid.Never)}},
		Messages: Messages{ByType: map[string]int64{"market.reply": 2, "kademlia.find": 3}, PerJob: Spread{Max: 4}},
	}
	var text bytes.Buffer
	if err := r.Write(&text, "json"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Total    map[string]json.Number
		Sites    []map[string]any
		Messages map[string]json.RawMessage
	}
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text.Bytes(), &top); err != nil {
		t.Fatal(err)
	}
	checkKeys(t, "result", top, []string{"scenario", "seed", "mode", "config", "traceHash", "total", "sites", "messages", "events", "virtualSeconds", "wallSeconds"})
	checkKeys(t, "total", got.Total, statsKeys)
	checkKeys(t, "site", got.Sites[0], append([]string{"name", "processors"}, statsKeys...))
	checkKeys(t, "messages", got.Messages, []string{"byType", "perJob", "directoryPerQuery"})
	if got.Total["awrt"] != "27.22" || got.Total["utilization"] != "0.2667" {
		t.Errorf("total is %v", got.Total)
	}

	text.Reset()
	if err := r.Write(&text, "csv"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if want := "name,processors," + strings.Join(statsKeys, ","); lines[0] != want || len(lines) != 4 {
		t.Errorf("csv:\n%s\nwant the header\n%s\nand three lines", text.String(), want)
	}
	if !strings.HasPrefix(lines[3], "total,15,2,2,0,") {
		t.Errorf("last line of csv is %s", lines[3])
	}
	text.Reset()
	if err := r.Write(&text, "table"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"26.67 %", "messages sent: kademlia.find 3, market.reply 2", "seed 7, trace hash 0123456789abcdef"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("table has no %q:\n%s", want, text.String())
		}
	}
	if err := r.Write(&text, "xml"); err == nil {
		t.Error("format xml is accepted")
	}
}

func checkKeys[V any](t *testing.T, what string, got map[string]V, want []string) {
	t.Helper()
	var keys []string
	for k := range got {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(keys, want) {
		t.Errorf("keys of %s are\n%v, want\n%v", what, keys, want)
	}
}

// docs/results.md explains every figure.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range statsKeys {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("docs/results.md does not explain %s", key)
		}
	}
}
