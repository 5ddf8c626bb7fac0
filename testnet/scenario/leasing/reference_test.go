package leasing

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridnode/testnet/workload/tracestest"
)

// reference is a job as the plainest reading of a log and of its scheduler has it. All
// times are seconds. It shares no code with what it is compared with.
type reference struct {
	submit, run, estimate, processors int64
	start, end                        int64
}

// readPlainly makes jobs of the lines of an SWF file as the documentation says it.
func readPlainly(lines []string, machine int64, takeRunTime bool) (jobs []*reference) {
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 18 || strings.HasPrefix(f[0], ";") {
			continue
		}
		at := func(i int) int64 {
			n, err := strconv.ParseFloat(f[i-1], 64)
			if err != nil || n < 0 {
				return -1
			}
			return int64(n)
		}
		j := &reference{submit: at(2), run: at(4), processors: at(8), estimate: at(9)}
		if j.processors <= 0 {
			j.processors = at(5)
		}
		if j.estimate <= 0 && takeRunTime {
			j.estimate = j.run
		}
		if j.submit < 0 || j.run <= 0 || j.processors <= 0 || j.processors > machine || j.estimate <= 0 {
			continue
		}
		j.run = min(j.run, j.estimate)
		jobs = append(jobs, j)
	}
	return jobs
}

// runPlainly starts jobs in the order of their submission, and with backfill (EASY) those
// further behind that do not delay the first that waits: at each second first jobs end,
// then new ones come, then there is one pass.
func runPlainly(jobs []*reference, machine int64, backfill bool) {
	free := machine
	var queue, running []*reference
	next := 0
	start := func(j *reference, now int64) {
		j.start, j.end = now, now+j.run
		free -= j.processors
		running = append(running, j)
	}
	for next < len(jobs) || len(running) > 0 {
		now := int64(1 << 62)
		if next < len(jobs) {
			now = jobs[next].submit
		}
		for _, j := range running {
			now = min(now, j.end)
		}
		running = slices.DeleteFunc(running, func(j *reference) bool {
			if j.end == now {
				free += j.processors
			}
			return j.end == now
		})
		for ; next < len(jobs) && jobs[next].submit == now; next++ {
			queue = append(queue, jobs[next])
		}
		for len(queue) > 0 && queue[0].processors <= free {
			start(queue[0], now)
			queue = queue[1:]
		}
		if !backfill || len(queue) == 0 {
			continue
		}
		// When the first can start at the latest, and what is left beside it then.
		ends := slices.Clone(running)
		slices.SortFunc(ends, func(a, b *reference) int { return cmp.Compare(a.start+a.estimate, b.start+b.estimate) })
		shadow, then := int64(0), free
		for _, j := range ends {
			if then >= queue[0].processors && j.start+j.estimate > shadow {
				break
			}
			shadow, then = j.start+j.estimate, then+j.processors
		}
		spare := then - queue[0].processors
		rest := queue[:1:1]
		for _, j := range queue[1:] {
			short := now+j.estimate <= shadow
			if j.processors > free || !short && j.processors > spare {
				rest = append(rest, j)
				continue
			}
			if !short {
				spare -= j.processors
			}
			start(j, now)
		}
		queue = rest
	}
}

// replayed returns what the product makes of a log: a line per job.
func replayed(t *testing.T, path string, machine int64, queue, noEstimate string) (lines []string) {
	cfg := Default()
	cfg.Traces, cfg.Processors, cfg.Queue, cfg.NoEstimate, cfg.Out, cfg.Jobs = []string{path}, []int64{machine}, queue, noEstimate, t.TempDir(), true
	if _, err := Run(t.Context(), cfg); err != nil {
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
	column := func(name string) int { return slices.Index(rows[0], name) }
	for _, r := range rows[1:] {
		lines = append(lines, strings.Join([]string{r[column("submit")], r[column("processors")], r[column("estimate")], r[column("start")], r[column("end")]}, " "))
	}
	return lines
}

// compare replays a log with both, and reports the first job that differs.
func compare(t *testing.T, path string, lines []string, machine int64, queue, noEstimate string) {
	t.Helper()
	jobs := readPlainly(lines, machine, noEstimate == "runtime")
	runPlainly(jobs, machine, queue == "easy")
	var want []string
	for _, j := range jobs {
		want = append(want, fmt.Sprint(j.submit, j.processors, j.estimate, j.start, j.end))
	}
	got := replayed(t, path, machine, queue, noEstimate)
	slices.Sort(want)
	slices.Sort(got)
	if len(got) != len(want) {
		t.Errorf("%d jobs ran, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("submit, processors, estimate, start, end: %s, want %s", got[i], want[i])
		}
	}
}

// wildLine is a job of a log as there are some: fields that are unknown, below zero,
// fractions, or not there; run times above the estimate, no estimate, or none at all.
func wildLine(rng *rand.Rand, number, submit, machine int64) string {
	one := func(of ...int64) int64 { return of[rng.IntN(len(of))] }
	some := 1 + rng.Int64N(machine)
	span := one(1, 2, 7, 30, 60, 300, 3600)*(1+rng.Int64N(20)) + rng.Int64N(5)
	requested := one(some, some, some, some, -1, 0, machine, machine+1, 1)
	estimate := one(span, span, 2*span, 3600, span/2, 86400, -1, 0)
	run := one(span, span, span, span/3, span/10, 0, -1)
	status := one(1, 1, 0, 5, -1, -4, 99)
	line := fmt.Sprintf("%d %d %d %d %d %.2f %d %d %d %d %d %d %d %d %d %d %d %d",
		number, submit, one(-1, 0, 77, -5), run, some, rng.Float64()*100, one(-1, 1024), requested, estimate, one(-1, -1, 4096, -3), status,
		one(-1, 1, 2, 3), one(-1, 1), one(-1, 5), one(-1, 0, 1), one(-1, 1), one(-1, number-1), one(-1, 10, -9))
	switch rng.IntN(40) {
	case 0:
		return ""
	case 1:
		return "; a note between jobs"
	case 2:
		return line[:len(line)/2]
	case 3:
		return "\t " + strings.ReplaceAll(line, " ", "   ") + "  \r"
	}
	return line
}

// TestReplayIsTheReference: a log, however odd, runs second for second as plain code that
// shares nothing with the product has it, with FCFS and EASY.
func TestReplayIsTheReference(t *testing.T) {
	logs := 200
	if testing.Short() {
		logs = 20
	}
	for seed := range uint64(logs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		machine := []int64{1, 7, 64, 128}[seed%4]
		lines := []string{"; Version: 2.2", fmt.Sprintf("; MaxProcs: %d", machine)}
		submit := int64(0)
		for n := range 60 + rng.Int64N(300) {
			submit += []int64{0, 0, 1, 10, 120, 900}[rng.IntN(6)]
			lines = append(lines, wildLine(rng, n+1, submit, machine))
		}
		path := filepath.Join(t.TempDir(), "log.swf")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, queue := range []string{"fcfs", "easy"} {
			for _, noEstimate := range []string{"drop", "runtime"} {
				compare(t, path, lines, machine, queue, noEstimate)
				if t.Failed() {
					t.Fatalf("seed %d, %d processors, %s, %s", seed, machine, queue, noEstimate)
				}
			}
		}
	}
}

// TestLogsRunAsTheReference: whole logs of real machines.
func TestLogsRunAsTheReference(t *testing.T) {
	if testing.Short() {
		t.Skip("replays whole logs by a quadratic reference")
	}
	for name, machine := range map[string]int64{"KTH-SP2-1996-2.1-cln": 100, "CTC-SP2-1996-3.1-cln": 430, "SDSC-SP2-1998-4.2-cln": 128} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(tracestest.Dir(t), name+".swf.gz")
			f, err := os.Open(path)
			if err != nil {
				t.Skip(err)
			}
			defer f.Close()
			text, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for s := bufio.NewScanner(text); s.Scan(); {
				lines = append(lines, s.Text())
			}
			compare(t, path, lines, machine, "easy", "drop")
		})
	}
}
