package delegation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/testnet/scenario"
)

// gwf writes a log of a grid: jobs at these seconds, of these processors, from these sites.
func gwf(t *testing.T, jobs ...[3]any) string {
	t.Helper()
	text := "# SiteOrigin is field 17\n"
	for i, j := range jobs {
		text += fmt.Sprintf("%d %v 0 60 %v -1 -1 %v 60 -1 1 u%d g x q p %v -1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n", i+1, j[0], j[1], j[1], i%2, j[2])
	}
	path := filepath.Join(t.TempDir(), "grid.gwf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLogsGoToTheirClusters(t *testing.T) {
	const day = 1130803200 // 2005-11-01
	path := gwf(t, [3]any{day - 10, 1, "fs1"}, [3]any{day + 5, 2, "fs0"}, [3]any{day + 6, 100, "fs1"}, [3]any{day + 7, 64, "fs1"}, [3]any{day + 2*86400, 1, "fs0"})
	read := func(change func(*Config)) (text string) {
		cfg := Default()
		cfg.Days = DaysMax
		change(&cfg)
		jobs, inputs, err := cfg.Jobs()
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			text += fmt.Sprintf("%02d+%d:%d %s, ", j.Site, j.Submit/1e6, j.Processors, j.User)
		}
		for _, in := range inputs {
			text += in.Note
		}
		return text
	}
	for _, tt := range []struct {
		name, want string
		change     func(*Config)
	}{
		{"sites of origin in order", "01+0:1 u0, 00+15:2 u1, 01+17:64 u1, 00+172810:1 u0, 1 jobs are wider than its 64 processors and left out",
			func(c *Config) { c.Traces = []string{path} }},
		{"from a day, for a day", "00+5:2 u1, 01+7:64 u1, 1 jobs are wider than its 64 processors and left out",
			func(c *Config) { c.Traces, c.From, c.Days = []string{path}, "2005-11-01", 1 }},
		{"a site of origin for a cluster", "19+0:2 u1, 19+172795:1 u0, ", func(c *Config) { c.Clusters = []string{"19=" + path + ":fs0"} }},
		{"a whole log for a cluster", "19+0:1 u0, 19+15:2 u1, 19+16:100 u0, 19+17:64 u1, 19+172810:1 u0, ", func(c *Config) { c.Clusters = []string{"19=" + path} }},
	} {
		if got := read(tt.change); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	r := delegate(t, func(c *Config) { c.Traces, c.Days, c.Drain, c.Sample = []string{path}, DaysMax, true, 3600 })
	if r.Total.Finished != 4 || len(Samples(r)) < 48 {
		t.Errorf("%d jobs finished, %d samples: want all 4, one an hour", r.Total.Finished, len(Samples(r)))
	}
}

func TestLogsThatFail(t *testing.T) {
	path := gwf(t, [3]any{1, 1, "a"})
	broken := filepath.Join(t.TempDir(), "broken.swf")
	if err := os.WriteFile(broken, []byte("; MaxProcs: 4\n1 0 0 60 1 -1 -1 1 60 -1 -4 1 1 1 1 1 -1 -1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	many := make([][3]any, 21)
	for i := range many {
		many[i] = [3]any{i, 1, fmt.Sprintf("site%02d", i)}
	}
	for _, tt := range []struct {
		name, want string
		config     bool
		change     func(*Config)
	}{
		{"no such cluster", "--cluster", true, func(c *Config) { c.Clusters = []string{"20=" + path} }},
		{"no file", "--cluster", true, func(c *Config) { c.Clusters = []string{"04"} }},
		{"one log for two", "cluster 04 has all jobs", true, func(c *Config) { c.Clusters = []string{"04=" + path, "05=" + path} }},
		{"no such origin", "no job of it is for any cluster", false, func(c *Config) { c.Clusters = []string{"04=" + path + ":b"} }},
		{"too many origins", "21 sites", true, func(c *Config) { c.Traces = []string{gwf(t, many...)} }},
		{"no day", "--from", true, func(c *Config) { c.Traces, c.From = []string{path}, "November" }},
		{"nothing then", "within 1 days from 2005-11-01", false, func(c *Config) { c.Traces, c.From = []string{path}, "2005-11-01" }},
		{"strict", "broken.swf:2", false, func(c *Config) { c.Traces, c.Strict = []string{broken}, true }},
	} {
		cfg := Default()
		tt.change(&cfg)
		_, err := Run(context.Background(), cfg)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, scenario.ErrConfig) != tt.config {
			t.Errorf("%s: %v, want one with %q", tt.name, err, tt.want)
		}
	}
	cfg := Default()
	cfg.Traces = []string{broken}
	if jobs, inputs, err := cfg.Jobs(); err != nil || len(jobs) != 1 || !strings.Contains(inputs[0].Lines, "repaired") {
		t.Errorf("not strict: %d jobs, %+v, %v: want the job, and a line about the repair", len(jobs), inputs, err)
	}
}
