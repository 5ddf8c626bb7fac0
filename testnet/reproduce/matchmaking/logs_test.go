package matchmaking

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/scenario/delegation"
)

// TestLongRunOfLogs: whoever has the logs of the two grids gets table 3 from them.
func TestLongRunOfLogs(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, sites int) {
		var b strings.Builder
		b.WriteString("# a log in the Grid Workloads Format\n")
		for i := range 2000 {
			fmt.Fprintf(&b, "%d %d 0 600 4 -1 -1 4 -1 -1 1 u g x q p site%02d -1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n", i+1, 1130803200+i*300, i%sites)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gwa-t-1-das2.gwf", 5)
	if logs, err := gridLogs(dir); err != nil || logs != nil {
		t.Fatalf("logs %v, %v: want none, as that of Grid'5000 is missing", logs, err)
	}
	write("gwa-t-2-grid5000.gwf", 15)
	o := reproduce.DefaultOptions()
	o.Windows, o.Sizes, o.Traces = 1, []int{50}, dir
	s := newMatchStudy(o)
	var err error
	if s.logs, err = gridLogs(dir); err != nil || len(s.logs) != 2 {
		t.Fatalf("logs %v, %v: want both", s.logs, err)
	}
	for _, a := range delegation.Architectures {
		c := longCase(a)
		c.set = 1
		if s.results[c], err = s.run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	e := s.long()
	jobs, finished := e.Tables[0].Measures[0].Cells[0].Here, e.Tables[0].Measures[4].Cells[0].Here
	if e.Tables[0].Title != "Table 3" || jobs < 2 || jobs > 4 || finished != 100 {
		t.Errorf("%s: %v thousand jobs, %v %% finished: want those of four days of both logs", e.Tables[0].Title, jobs, finished)
	}
	if text := e.Text[0]; !strings.Contains(text, "Cluster 19: ") || strings.Contains(text, "not to be had") {
		t.Errorf("the text does not say that logs were run: %s", text)
	}
}
