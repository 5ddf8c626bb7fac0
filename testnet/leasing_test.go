package testnet

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// traces returns the path of a real log, or skips the test.
func traces(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("GRIDNODE_TRACES")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "traces")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no log to replay (GRIDNODE_TRACES names their directory): %v", err)
	}
	return path
}

// TestExactEASY: "AWRT in seconds, U in %, and Cmax in seconds for single site
// execution with EASY" (The gain of resource delegation, table 1). CTC is met to the
// printed digit; the cleaned KTH and SDSC logs have other jobs than the paper's, so
// theirs are the figures of this reading of the rules.
func TestExactEASY(t *testing.T) {
	for _, tt := range []struct {
		log               string
		processors        int64
		until             int64
		awrt, u, makespan string
		jobs              int64
	}{
		{"CTC-SP2-1996-3.1-cln.swf.gz", 430, 0, "52937.96", "0.6570", "29306682", 77199},
		{"KTH-SP2-1996-2.1-cln.swf.gz", 100, 0, "75583.21", "", "29363626", 28467},
		{"SDSC-DS-2004-2.1-cln.swf.gz", 1664, 29376000, "54970.50", "", "29357277", 74917},
	} {
		t.Run(tt.log[:4], func(t *testing.T) {
			cfg := DefaultLeasing()
			cfg.Traces, cfg.Processors, cfg.Until = []string{traces(t, tt.log)}, []int64{tt.processors}, tt.until
			r, err := RunLeasing(context.Background(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			s := r.Total
			if s.Finished != tt.jobs || s.AWRT.String() != tt.awrt || s.Makespan.String() != tt.makespan || tt.u != "" && s.Utilization.String() != tt.u {
				t.Errorf("%d jobs, AWRT %v, Cmax %v, U %v; want %d, %s, %s, %s", s.Finished, s.AWRT, s.Makespan, s.Utilization, tt.jobs, tt.awrt, tt.makespan, tt.u)
			}
			if s.Submitted != tt.jobs || s.Accepted != tt.jobs || s.Local != tt.jobs || r.Sites[0].Stats != s {
				t.Errorf("all jobs run at their only site, but the figures are %+v and %+v", s, r.Sites[0])
			}
			t.Logf("%d events, %v s", r.Events, r.WallSeconds)
		})
	}
}
