package leasing

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridnode/testnet/measure"
	"gridnode/testnet/simtest"
	"gridnode/testnet/workload"
)

// TestLeasingFiles: what a run leaves in its directory says what it printed.
func TestLeasingFiles(t *testing.T) {
	cfg := Default()
	cfg.Out, cfg.Jobs, cfg.Processors, cfg.Until = t.TempDir(), true, []int64{64, 32}, 86400
	r, err := Run(context.Background(), cfg)
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
	if r.Total.Finished == 0 || int64(len(rows)) != r.Total.Finished+1 || strings.Join(rows[0], " ") != strings.Join(measure.Columns, " ") {
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
	if _, err := Run(context.Background(), cfg); err == nil {
		t.Error("results were saved below a file")
	}
}

// TestLeasingSites: FCFS and EASY differ, the same seed does not, and
// sites of one run do not touch each other.
func TestLeasingSites(t *testing.T) {
	simtest.Alone(t)
	run := func(queue string, processors ...int64) *measure.Result {
		cfg := Default()
		cfg.Queue, cfg.Processors, cfg.Until = queue, processors, 5*86400
		r, err := Run(context.Background(), cfg)
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
		cfg := Default()
		cfg.Traces, cfg.NoEstimate = []string{log}, tt.noEstimate
		r, err := Run(context.Background(), cfg)
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
	cfg := Default()
	cfg.Traces, cfg.Strict = []string{log}, true
	if _, err := Run(context.Background(), cfg); !errors.Is(err, workload.ErrMalformed) || !strings.Contains(err.Error(), log+":2") {
		t.Errorf("malformed log: error %v, want one that names file and line", err)
	}
}
