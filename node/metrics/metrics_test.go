package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/site"
)

// row returns the line of docs/metrics.md about a figure.
func row(f *Figure) string {
	kind := "gauge"
	if f.Rises {
		kind = "counter"
	}
	labels := ""
	if len(f.Labels) > 0 {
		labels = "`" + strings.Join(f.Labels, "`, `") + "`"
	}
	return strings.ReplaceAll(fmt.Sprintf("| `%s` | %s | %s | %s |", f.Name, kind, labels, f.Help), "|  |", "| |")
}

// The page has a line for each figure, as the code describes it, and no other.
func TestPageListsEveryFigure(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range Table {
		if want := row(&Table[i]); !strings.Contains(string(text), want+"\n") {
			t.Errorf("docs/metrics.md has no line\n%s", want)
		}
	}
	known := map[string]bool{}
	for i := range Table {
		known[Table[i].Name] = true
	}
	for _, file := range []string{"../../docs/metrics.md", "../../deploy/grafana/gridnode.json", "../../deploy/prometheus/gridnode.rules.yml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`gridnode_[a-z_]+`).FindAllString(string(text), -1) {
			if !known[name] {
				t.Errorf("%s names %s, which there is not", file, name)
			}
		}
	}
}

// Names follow the conventions of Prometheus: a unit or what is counted at the end, _total
// for what rises, labels in words.
func TestNamesFollowTheConventions(t *testing.T) {
	seen := map[string]bool{}
	name := regexp.MustCompile(`^gridnode_[a-z]+(_[a-z]+)*$`)
	for _, f := range Table {
		if !name.MatchString(f.Name) || seen[f.Name] || f.Help == "" {
			t.Errorf("%s: not a name, there twice, or not explained", f.Name)
		}
		seen[f.Name] = true
		if f.Rises != strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s: counters end in _total, and nothing else does", f.Name)
		}
	}
}

// collect reads what a sample says.
func collect(t *testing.T, s *sample) map[string]int {
	t.Helper()
	series := map[string]int{}
	for i := range Table {
		f := &Table[i]
		d := f.described()
		f.read(s, func(value float64, labels ...string) {
			if _, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, value, labels...); err != nil {
				t.Errorf("%s%q: %v", f.Name, labels, err)
			}
			series[f.Name]++
			for _, l := range labels {
				if f.Name != "gridnode_build_info" && !regexp.MustCompile(`^[a-z_.-]+$`).MatchString(l) {
					t.Errorf("%s: %q is no word", f.Name, l)
				}
			}
		})
	}
	return series
}

// However much there is to count, the number of series is bounded by the program's words.
func TestCardinalityIsBounded(t *testing.T) {
	s := &sample{stored: true, expires: 1, leases: map[[2]string]int{{"in", "active"}: 1}, given: map[string]int64{}, received: map[string]int64{}, guests: make([]int64, 10)}
	for k := range wire.KindMax {
		if wire.KindName(grid.Kind(k)) != "" {
			s.counter.Set(grid.Kind(k), wire.Count{Messages: 1}, wire.Count{Messages: 1})
		}
	}
	var answers market.Answers
	for code := range answers.All {
		s.given[code], s.received[code] = 1, 1
	}
	for state := site.State(1); state <= site.Waiting; state++ {
		s.jobs = append(s.jobs, site.Count{State: state}, site.Count{State: state, Foreign: true})
	}
	total := 0
	for name, n := range collect(t, s) {
		if total += n; n > 2*wire.KindMax {
			t.Errorf("%s has %d series", name, n)
		}
	}
	if total < len(Table) || total > 600 {
		t.Errorf("%d series, want at most 600", total)
	}
}

// A daemon that is starting has no numbers of its own yet, and says that it is not ready;
// programs of other machines and web pages get nothing.
func TestWhoIsAnswered(t *testing.T) {
	serve := New("1.2.3", "abc").Server().Handler
	for _, tt := range []struct {
		path, host, from string
		want             int
	}{
		{"/metrics", "127.0.0.1:7533", "", http.StatusOK},
		{"/metrics", "[::1]:7533", "", http.StatusOK},
		{"/healthz", "localhost", "", http.StatusServiceUnavailable},
		{"/readyz", "localhost", "", http.StatusServiceUnavailable},
		{"/metrics", "evil.example", "", http.StatusForbidden},
		{"/metrics", "127.0.0.1:7533", "cross-site", http.StatusForbidden},
		{"/v1/jobs", "127.0.0.1:7533", "", http.StatusNotFound},
	} {
		r := httptest.NewRequest("GET", tt.path, nil)
		r.Host = tt.host
		if tt.from != "" {
			r.Header.Set("Sec-Fetch-Site", tt.from)
		}
		w := httptest.NewRecorder()
		serve.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s of %s %s: %d %s, want %d", tt.path, tt.host, tt.from, w.Code, w.Body, tt.want)
		}
		if tt.path == "/metrics" && w.Code == http.StatusOK && !strings.Contains(w.Body.String(), "go_goroutines") {
			t.Errorf("no numbers of Go's: %s", w.Body)
		}
	}
	for address, good := range map[string]bool{"127.0.0.1:1": true, "[::1]:0": true, "0.0.0.0:7533": false, "10.0.0.1:7533": false, "localhost": false, ":7533": false} {
		if err := CheckLoopback(address); (err == nil) != good {
			t.Errorf("%s: %v, want it taken: %v", address, err, good)
		}
	}
}
