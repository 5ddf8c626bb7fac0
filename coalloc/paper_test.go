package coalloc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// viewOf makes a view of sites "a", "b", … with that many idle processors, of which
// each has 100 unless it has more.
func viewOf(network Network, free ...int64) *View {
	var sites []Site
	for i, f := range free {
		sites = append(sites, Site{ID: grid.SiteID(rune('a' + i)), Processors: max(100, f), Free: f})
	}
	return NewView(sites, network)
}

// text prints parts as "a:16 b:8", in their order.
func text(v *View, parts []Part, ok bool) string {
	if !ok {
		return "no"
	}
	var words []string
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%s:%d", v.Sites[p.Site].ID, p.Processors))
	}
	return strings.Join(words, " ")
}

// table2 is table II of the paper without Delft: a Vrije, b Amsterdam, c MultimediaN,
// d Leiden.
func table2(t testing.TB) *Matrix {
	t.Helper()
	m := NewMatrix(4)
	for _, l := range []struct {
		a, b      int
		latency   grid.Time
		bandwidth int64
	}{
		{0, 0, 30, 561}, {0, 1, 400, 185}, {0, 2, 400, 185}, {0, 3, 1000, 77}, {1, 1, 30, 526},
		{1, 2, 30, 512}, {1, 3, 600, 115}, {2, 2, 30, 560}, {2, 3, 600, 115}, {3, 3, 30, 530},
	} {
		if err := m.Set(l.a, l.b, l.latency, l.bandwidth*1_000_000); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// "Figure 2 illustrates the operation of the WF and the FCM policies for a job of
// total size 24 in a system with 3 clusters, each of which has 16 idle processors. WF
// successively places the three components (assumed to be of size 8 each) of a
// non-fixed job request on the cluster that has the largest (remaining) number of
// available processors, which results in the placement of one component on each of the
// three clusters. On the other hand, FCM results in combining two clusters for a
// flexible job of the same total size (24), splitting the job into two components of
// sizes 16 and 8, respectively."
func TestFigure2(t *testing.T) {
	v := viewOf(nil, 16, 16, 16)
	nonFixed := Request{Processors: 24, Splits: []Split{{{Processors: 8}, {Processors: 8}, {Processors: 8}}}}
	parts, ok := WorstFit(nil, &nonFixed, v)
	if got := text(v, parts, ok); got != "a:8 b:8 c:8" {
		t.Errorf("WF placed %s, want one component on each cluster", got)
	}
	parts, ok = ClusterMinimization(nil, &Request{Processors: 24}, v)
	if got := text(v, parts, ok); got != "a:16 b:8" {
		t.Errorf("FCM placed %s, want 16 and 8 on two clusters", got)
	}
}

// "WF … orders the components of a job with a non-fixed request type according to
// decreasing size" (section IV-A); "hence, it may result in co-allocation even when
// all the components of the considered job would fit together on a single cluster."
func TestWorstFitOrder(t *testing.T) {
	v := viewOf(nil, 20, 30, 10)
	r := Request{Processors: 24, Splits: []Split{{{Processors: 4}, {Processors: 12}, {Processors: 8}}}}
	parts, ok := WorstFit(nil, &r, v)
	if got := text(v, parts, ok); got != "b:12 a:8 b:4" {
		t.Errorf("placed %s, want 12 on b, then 8 on a (20 against 18), then 4 on b (18 against 12)", got)
	}
	if want := []int32{1, 2, 0}; parts[0].Component != want[0] || parts[1].Component != want[1] || parts[2].Component != want[2] {
		t.Errorf("components %v are not in the order %v", parts, want)
	}
	if got := v.Free(); got != 60 {
		t.Errorf("a placement changed what is idle to %d", got)
	}
}

// "first orders the clusters according to increasing intra-cluster latency, and checks
// in this order whether the complete job can be placed in a single cluster. If this is
// not possible, CA computes for each cluster the average of all of its inter-cluster
// latencies … As in the FCM policy, CA then splits up the job into components of sizes
// equal to the numbers of idle processors of the clusters in this order" (section IV-C).
func TestCommunicationAware(t *testing.T) {
	m := table2(t)
	for _, tt := range []struct {
		free       []int64
		processors int64
		want       string
	}{
		{[]int64{50, 20, 25, 30}, 20, "b:20"},              // all are equally good within: the one it fills
		{[]int64{50, 20, 25, 30}, 45, "a:45"},              // a single one
		{[]int64{30, 20, 25, 32}, 40, "b:20 c:20"},         // Amsterdam and MultimediaN are nearest to all, 265 µs
		{[]int64{30, 20, 25, 32}, 64, "b:20 c:25 a:19"},    // then Vrije, 457 µs
		{[]int64{5, 20, 25, 32}, 64, "b:20 c:25 a:5 d:14"}, // Leiden last, 557 µs
		{[]int64{5, 0, 25, 32}, 64, "no"},
	} {
		v := viewOf(m, tt.free...)
		parts, ok := CommunicationAware(nil, &Request{Processors: tt.processors}, v, MetricLatency)
		if got := text(v, parts, ok); got != tt.want {
			t.Errorf("%d on %v: %s, want %s", tt.processors, tt.free, got, tt.want)
		}
	}
	// FCM "may combine clusters with slower inter-cluster communication" (section VII-A).
	v := viewOf(m, 30, 20, 25, 32)
	parts, ok := ClusterMinimization(nil, &Request{Processors: 40}, v)
	if got := text(v, parts, ok); got != "d:32 a:8" {
		t.Errorf("FCM placed %s", got)
	}
	// By bandwidth Vrije's link to Leiden is the worst, too, but Amsterdam comes before
	// MultimediaN by a hair (its averages of the time for a gigabyte).
	parts, ok = CommunicationAware(nil, &Request{Processors: 40}, v, MetricBandwidth)
	if got := text(v, parts, ok); got != "c:25 b:15" {
		t.Errorf("by bandwidth: %s", got)
	}
}

// "co-allocation is restricted to those groups separately" (section IV-C).
func TestGroupsConfine(t *testing.T) {
	v := viewOf(table2(t), 30, 20, 25, 32)
	if n := Groups(v, 500); n != 2 {
		t.Errorf("%d groups within 500 µs, want Vrije, Amsterdam and MultimediaN, and Leiden", n)
	}
	parts, ok := CommunicationAware(nil, &Request{Processors: 75}, v, MetricLatency)
	if got := text(v, parts, ok); got != "b:20 c:25 a:30" {
		t.Errorf("placed %s", got)
	}
	if parts, ok = CommunicationAware(nil, &Request{Processors: 76}, v, MetricLatency); ok {
		t.Errorf("76 processors are split across groups, %s, although the first group has 300", text(v, parts, ok))
	}
	v = viewOf(table2(t), 100, 100, 100, 100)
	Groups(v, 500)
	parts, ok = CommunicationAware(nil, &Request{Processors: 350}, v, MetricLatency)
	if got := text(v, parts, ok); got != "b:100 c:100 a:100 d:50" {
		t.Errorf("a job wider than every group is placed as %s", got)
	}
}

// wave is the penalty that gives the paper's 200 and 750 s.
var wave = Penalty{Extra: 3_437_500, Latency: 970, Sites: 4}

// "its execution time with multiple clusters increases markedly, from 200 seconds as a
// single cluster to 750 seconds when combining four clusters. The Poisson application
// suffers much less" (section VI-A).
func TestSlowdownOfWave(t *testing.T) {
	m := table2(t)
	slowdown := func(ccr int64, parts []Part) int64 {
		v := View{Network: m, Penalty: wave}
		return v.Slowdown(&Request{CCR: ccr}, parts)
	}
	run := func(seconds, ccr int64, sites ...int32) int64 {
		var parts []Part
		for _, s := range sites {
			parts = append(parts, Part{Site: s, Processors: 8})
		}
		return seconds + seconds*slowdown(ccr, parts)/1000
	}
	if got := run(200, 4000, 0); got != 200 {
		t.Errorf("Wave takes %d s in one cluster", got)
	}
	if got := run(200, 4000, 0, 1, 2, 3); got != 750 {
		t.Errorf("Wave takes %d s on four clusters, want 750", got)
	}
	before := int64(200)
	for _, combinations := range [][][]int32{{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, {{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}, {{0, 1, 2, 3}}} {
		var sum int64
		for _, c := range combinations {
			sum += run(200, 4000, c...)
		}
		mean := sum / int64(len(combinations))
		if mean < before+100 || mean > before+250 {
			t.Errorf("Wave takes %d s on %d clusters, %d on one less", mean, len(combinations[0]), before)
		}
		before = mean
	}
	if got := run(180, 250, 0, 1, 2, 3); got < 260 || got > 330 {
		t.Errorf("Poisson takes %d s on four clusters", got)
	}
	if got := run(180, 0, 0, 1, 2, 3); got != 180 {
		t.Errorf("Prime takes %d s on four clusters", got)
	}
	if got := slowdown(4000, []Part{{Site: 1}, {Site: 1}}); got != 0 {
		t.Errorf("two components at one site are slowed down by %d", got)
	}
	if a, b := slowdown(CCRUnknown, []Part{{Site: 0}, {Site: 1}}), slowdown(CCRAssumed, []Part{{Site: 0}, {Site: 1}}); a != b || a == 0 {
		t.Errorf("an unknown CCR slows down by %d, want as %d thousandths do, %d", a, CCRAssumed, b)
	}
}

// TestWideTasks: no task of a flexible job is divided over sites, by any policy.
func TestWideTasks(t *testing.T) {
	m := table2(t)
	v := viewOf(m, 7, 5, 5, 3)
	for _, p := range []Policy{PolicyCF, PolicyFCM, PolicyCA, PolicyAdaptive} { // WF does not split
		r := Request{Processors: 12, Each: 4, CCR: CCRUnknown}
		if parts, ok := p.Place(nil, &r, v, grid.Hour); !ok || r.Fits(parts, v) != nil || Clusters(parts) != 3 {
			t.Errorf("%v places three tasks of 4 as %s", p, text(v, parts, ok))
		}
		r.Processors = 16
		if parts, ok := p.Place(nil, &r, v, grid.Hour); ok {
			t.Errorf("%v places four tasks of 4 as %s", p, text(v, parts, ok))
		}
	}
	r := Request{Processors: 8, Each: 4, ComponentMin: 5}
	if parts, ok := ClusterMinimization(nil, &r, v); ok {
		t.Errorf("components of at least 5 processors, tasks of 4: %s", text(v, parts, ok))
	}
}

// The CF policy places where the inputs are (Mohamed and Epema 2004).
func TestCloseToFiles(t *testing.T) {
	m := table2(t)
	v := viewOf(m, 50, 20, 25, 30)
	r := Request{Processors: 20, Splits: []Split{{{Processors: 20}}}, Inputs: []Input{{Bytes: 1 << 30, Holders: []grid.SiteID{"d"}}}}
	place := func() string {
		parts, ok := CloseToFiles(nil, &r, v)
		return text(v, parts, ok)
	}
	if got := place(); got != "d:20" {
		t.Errorf("placed %s, want it at the file", got)
	}
	v.SetFree(3, 10)
	if got := place(); got != "c:20" { // 115 MB/s like Amsterdam, and more room
		t.Errorf("placed %s, want it where the file comes soonest", got)
	}
	r.Inputs[0].Holders = nil
	if got := place(); got != "a:20" {
		t.Errorf("placed %s, want as by WF when nobody has the file", got)
	}
	r.Inputs[0].Holders = []grid.SiteID{"b"}
	r.Splits, r.Processors = nil, 60
	if got := place(); got != "b:20 c:25 a:15" {
		t.Errorf("a flexible job is placed as %s", got)
	}
	r.Inputs[0].Holders, r.Inputs[0].Closed = nil, []grid.SiteID{"c", "b"}
	if got := place(); got != "no" {
		t.Errorf("a job of 60 is placed at %s, its input is at sites with 45 idle that let nobody copy it", got)
	}
	if r.Processors = 40; place() != "c:25 b:15" {
		t.Errorf("a flexible job whose input cannot be copied is placed as %s", place())
	}
	r.Splits = []Split{{{Processors: 20}, {Processors: 20}}}
	if got := place(); got != "c:20 b:20" {
		t.Errorf("components whose input cannot be copied are placed as %s", got)
	}
	r.Inputs[0].Closed = r.Inputs[0].Closed[:1]
	if got := place(); got != "no" {
		t.Errorf("two components of 20 are placed as %s, only c with 25 idle has their input", got)
	}
	if got := Transfer([]Input{{Bytes: 512_000_000, Holders: []grid.SiteID{"b"}}}, v, 2); got != grid.Second+30 {
		t.Errorf("512 MB at 512 MB/s take %v", got)
	}
	if got := Transfer([]Input{{Bytes: 1 << 62, Holders: []grid.SiteID{"b"}}, {Bytes: 1 << 62, Holders: []grid.SiteID{"b"}}}, v, 0); got < grid.Day || got > grid.SpanMax {
		t.Errorf("huge files take %v", got)
	}
}

// Adaptive splits when that costs less than waiting, and only then.
func TestAdaptive(t *testing.T) {
	m := table2(t)
	wait := grid.Time(1)
	sites := []Site{}
	for i, free := range []int64{30, 20, 25, 32} {
		sites = append(sites, Site{ID: grid.SiteID(rune('a' + i)), Processors: 100, Free: free, Wait: func(int64) grid.Time { return wait + grid.Time(i) }})
	}
	v := NewView(sites, m)
	v.Penalty = wave
	place := func(processors, ccr int64) string {
		parts, ok := Adaptive(nil, &Request{Processors: processors, CCR: ccr}, v, 1000*grid.Second)
		return text(v, parts, ok)
	}
	if got := place(21, 250); got != "c:21" {
		t.Errorf("a job that fits one site is placed as %s, want where it leaves least", got)
	}
	// On a and b the penalty is 76 %, with CCR 1 the job takes 37 % longer; CA's b and c
	// cost nothing.
	if got := place(45, 1000); got != "b:20 c:25" {
		t.Errorf("placed %s, want the split that costs nothing", got)
	}
	parts, _ := CommunicationAware(nil, &Request{Processors: 60}, v, MetricLatency)
	extra := grid.Time(v.Slowdown(&Request{CCR: 1000}, parts)) * grid.Second
	for _, tt := range []struct {
		wait grid.Time
		want bool
	}{{extra - 1, false}, {extra, false}, {extra + 1, true}, {grid.Never - 10, true}} {
		wait = tt.wait
		if got := place(60, 1000); (got != "no") != tt.want {
			t.Errorf("splitting costs %v, waiting %v: %s", extra, tt.wait, got)
		}
	}
	wait = 1
	if got := place(60, 0); got == "no" {
		t.Error("a job that does not communicate waits")
	}
	parts, ok := Adaptive(nil, &Request{Processors: 60, CCR: 1000, ComponentsMin: 2}, v, grid.Hour)
	if !ok || !slices.Equal(parts, []Part{{0, 1, 20}, {1, 2, 25}, {2, 0, 15}}) {
		t.Errorf("a job that wants two components waits for one: %v", parts)
	}
}
