package testnet

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/workload"
)

// TestConfigErrorsNameTheFlag: whatever is wrong with a configuration, the error
// says which flag to change.
func TestConfigErrorsNameTheFlag(t *testing.T) {
	ctx := context.Background()
	leasing := func(f func(*LeasingConfig)) func() error {
		return func() error {
			cfg := DefaultLeasing()
			f(&cfg)
			_, err := RunLeasing(ctx, cfg)
			return err
		}
	}
	federation := func(f func(*FederationConfig)) func() error {
		return func() error {
			cfg := DefaultFederation()
			f(&cfg)
			_, err := RunFederation(ctx, cfg)
			return err
		}
	}
	chaos := func(f func(*ChaosConfig)) func() error {
		return func() error {
			cfg := DefaultChaos()
			f(&cfg)
			_, err := RunChaos(ctx, cfg)
			return err
		}
	}
	headerless := filepath.Join(t.TempDir(), "log.swf")
	if err := os.WriteFile(headerless, []byte("1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flag string
		run  func() error
	}{
		{"policy", leasing(func(c *LeasingConfig) { c.Policy = "greedy" })},
		{"queue", leasing(func(c *LeasingConfig) { c.Queue = "lifo" })},
		{"no-estimate", leasing(func(c *LeasingConfig) { c.NoEstimate = "guess" })},
		{"until", leasing(func(c *LeasingConfig) { c.Until = -1 })},
		{"until", leasing(func(c *LeasingConfig) { c.Until = 1 << 60 })},
		{"processors", leasing(func(c *LeasingConfig) { c.Processors = []int64{0} })},
		{"processors", leasing(func(c *LeasingConfig) { c.Processors = []int64{1, 2}; c.Traces = []string{"a", "b", "c"} })},
		{"processors", leasing(func(c *LeasingConfig) { c.Traces = []string{headerless} })},
		{"mode", federation(func(c *FederationConfig) { c.Mode = "anarchy" })},
		{"placement", federation(func(c *FederationConfig) { c.Placement = "random" })},
		{"oft", federation(func(c *FederationConfig) { c.OFT = 101 })},
		{"sites", federation(func(c *FederationConfig) { c.Sites = 0 })},
		{"dht", federation(func(c *FederationConfig) { c.DHT = "chord" })},
		{"latency", federation(func(c *FederationConfig) { c.LatencyMax = 1 })},
		{"trace", federation(func(c *FederationConfig) { c.Traces = []string{headerless} })},
		{"trace", federation(func(c *FederationConfig) { c.Traces = []string{"/nonexistent"} })},
		{"trace", federation(func(c *FederationConfig) { c.Traces = []string{t.TempDir()} })},
		{"sites", chaos(func(c *ChaosConfig) { c.Sites = 1001 })},
		{"hours", chaos(func(c *ChaosConfig) { c.Hours = 0 })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "loss,flood" })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "loss=2" })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "loss=much" })},
		{"faults", chaos(func(c *ChaosConfig) { c.Faults = "" })},
	} {
		err := tt.run()
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "--"+tt.flag+":") {
			t.Errorf("error %v, want one about --%s", err, tt.flag)
		}
	}
}

// TestLeasingFiles: what a run leaves in its directory says what it printed.
func TestLeasingFiles(t *testing.T) {
	cfg := DefaultLeasing()
	cfg.Out, cfg.Jobs, cfg.Processors, cfg.Until = t.TempDir(), true, []int64{64, 32}, 86400
	r, err := RunLeasing(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(cfg.Out, "jobs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if r.Total.Finished == 0 || int64(len(rows)) != r.Total.Finished+1 || strings.Join(rows[0], " ") != strings.Join(jobColumns, " ") {
		t.Errorf("jobs.csv has %d lines under %v for %d jobs", len(rows)-1, rows[0], r.Total.Finished)
	}
	var want bytes.Buffer
	if err := r.Write(&want, "json"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(cfg.Out, "result.json"))
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("result.json (%v) is not what was printed", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Out, "sites.csv")); err != nil {
		t.Error(err)
	}
	cfg.Out = filepath.Join(cfg.Out, "result.json", "below a file")
	if _, err := RunLeasing(context.Background(), cfg); err == nil {
		t.Error("results were saved below a file")
	}
}

// TestLeasingSites: FCFS and EASY differ, the same seed does not, and
// sites of one run do not touch each other.
func TestLeasingSites(t *testing.T) {
	alone(t)
	run := func(queue string, processors ...int64) *Result {
		cfg := DefaultLeasing()
		cfg.Queue, cfg.Processors, cfg.Until = queue, processors, 5*86400
		r, err := RunLeasing(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	easy, again, fcfs := run("easy", 64), run("easy", 64), run("fcfs", 64)
	if easy.TraceHash != again.TraceHash || easy.TraceHash == fcfs.TraceHash {
		t.Errorf("trace hashes: EASY %s, again %s, FCFS %s", easy.TraceHash, again.TraceHash, fcfs.TraceHash)
	}
	if easy.Total.AWT >= fcfs.Total.AWT || easy.Total.Finished != fcfs.Total.Finished {
		t.Errorf("backfilling makes jobs wait longer: %v s with EASY, %v s with FCFS", easy.Total.AWT, fcfs.Total.AWT)
	}
	titan, again := run("titan", 64), run("titan", 64)
	if titan.TraceHash != again.TraceHash || titan.TraceHash == easy.TraceHash || titan.Total.Finished != easy.Total.Finished {
		t.Errorf("trace hashes: TITAN %s, again %s, EASY %s; %d jobs finished", titan.TraceHash, again.TraceHash, easy.TraceHash, titan.Total.Finished)
	}
	both := run("easy", 64, 100)
	if both.Sites[0].Stats != easy.Sites[0].Stats {
		t.Errorf("a neighbour changes a site's figures from %+v to %+v", easy.Sites[0], both.Sites[0])
	}
}

// TestNoEstimate: jobs without an estimate are dropped, or their run time is one.
func TestNoEstimate(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log.swf")
	lines := "; MaxProcs: 4\n" +
		"1 0 0 100 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1\n" + // no estimate
		"2 5 0 100 4 -1 -1 4 60 -1 1 1 1 1 1 -1 -1 -1\n" + // killed at its estimate
		"3 6 0 10 2 -1 -1 2 60 -1 1 1 1 1 1 -1 -1 -1\n"
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		noEstimate string
		jobs       int64
		makespan   string
	}{{"drop", 2, "75"}, {"runtime", 3, "170"}} {
		cfg := DefaultLeasing()
		cfg.Traces, cfg.NoEstimate = []string{log}, tt.noEstimate
		r, err := RunLeasing(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.Total.Finished != tt.jobs || r.Total.Makespan.String() != tt.makespan {
			t.Errorf("%s: %d jobs until %v, want %d until %s", tt.noEstimate, r.Total.Finished, r.Total.Makespan, tt.jobs, tt.makespan)
		}
	}
	if err := os.WriteFile(log, []byte("; MaxProcs: 4\n1 0 0 ten\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultLeasing()
	cfg.Traces = []string{log}
	if _, err := RunLeasing(context.Background(), cfg); !errors.Is(err, workload.ErrMalformed) || !strings.Contains(err.Error(), log+":2") {
		t.Errorf("malformed log: error %v, want one that names file and line", err)
	}
}

// TestCancelledRun: Ctrl-C ends a run at once.
func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := RunLeasing(ctx, DefaultLeasing()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// TestProgressOnlyOnTerminals: a file or a pipe gets no progress bar.
func TestProgressOnlyOnTerminals(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	p := newProgress(f, "leasing", 10, func() int64 { return 5 })
	p.pulse()
	p.stop()
	q := newProgress(&b, "leasing", 10, func() int64 { return 5 })
	q.pulse()
	q.stop()
	if info, err := f.Stat(); err != nil || info.Size() != 0 || b.Len() != 0 {
		t.Errorf("progress was written to a file (%v) or a buffer (%q)", info, b.String())
	}
	newProgress(nil, "leasing", 0, nil).stop()
}

// TestMatchLogs: logs are told by their names.
func TestMatchLogs(t *testing.T) {
	for name, want := range map[string]int{
		"CTC-SP2-1996-3.1-cln.swf.gz": 0, "KTH-SP2-1996-2.1-cln.swf.gz": 1, "LANL-CM5-1994-4.1-cln.swf.gz": 2, "LANL-O2K-1999-2.swf.gz": 3,
		"NASA-iPSC-1993-3.1-cln.swf.gz": 4, "SDSC-Par-1996-3.1-cln.swf.gz": 5, "SDSC-BLUE-2000-4.2-cln.swf.gz": 6, "SDSC-SP2-1998-4.2-cln.swf.gz": 7,
		"SDSC-DS-2004-2.1-cln.swf.gz": -1, "RICC-2010-2.swf.gz": -1,
	} {
		if got := siteOfLog(filepath.Join("SDSC", "CTC", name)); got != want {
			t.Errorf("%s is of site %d, want %d", name, got, want)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2-1996-2.swf", "README.md", "CTC.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := matchLogs([]string{dir})
	if err != nil || logs[1] != filepath.Join(dir, "KTH-SP2-1996-2.1-cln.swf.gz") || logs[0] != "" {
		t.Errorf("logs %v, error %v: want the published one for KTH and none for CTC", logs, err)
	}
}

// TestFeedSharesUsers: so many of a hundred users want the fastest site, and a user
// always wants the same.
func TestFeedSharesUsers(t *testing.T) {
	for _, oft := range []int{0, 30, 100} {
		cfg := DefaultFederation()
		cfg.OFT = oft
		fastest := 0
		for u := range 2000 {
			job := &workload.Job{User: "user" + string(rune('A'+u%26)) + string(rune('a'+u/26)), Number: int64(u)}
			goal := cfg.goal(u%8, job)
			if job.Number += 5000; cfg.goal(u%8, job) != goal {
				t.Fatalf("user %s changes its mind", job.User)
			}
			if goal == grid.GoalTime {
				fastest++
			}
		}
		if fastest < oft*20-100 || fastest > oft*20+100 || oft == 0 && fastest > 0 || oft == 100 && fastest < 2000 {
			t.Errorf("--oft %d: %d of 2000 users want the fastest site", oft, fastest)
		}
	}
}
