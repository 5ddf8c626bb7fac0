package lrms

import (
	"bufio"
	"compress/gzip"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gridnode/grid"

	"gridnode/testnet/workload/tracestest"
)

// traceJob is a job of a log.
type traceJob struct {
	submit, run, estimate grid.Time
	processors            int64
}

// readTrace reads a gzipped SWF log and drops the jobs that the paper on the gain
// of resource delegation drops in section 6.2, and those without an estimate.
func readTrace(tb testing.TB, name string, processors int64, until grid.Time) []traceJob {
	tb.Helper()
	dir := tracestest.Dir(tb)
	f, err := os.Open(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		tb.Skipf("%v; set GRIDNODE_TRACES to the folder with the logs", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	unzip, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var jobs []traceJob
	lines := bufio.NewScanner(unzip)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], ";") {
			continue
		}
		var value [18]int64
		for i := range value {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				tb.Fatalf("%s:%d: %v", name, n, err)
			}
			value[i] = int64(v)
		}
		submit, run, width, estimate := value[1], value[3], value[7], value[8]
		if width <= 0 {
			width = value[4]
		}
		if submit < 0 || run <= 0 || width <= 0 || width > processors || estimate <= 0 || grid.Time(submit)*grid.Second >= until {
			continue
		}
		jobs = append(jobs, traceJob{
			grid.Time(submit) * grid.Second, grid.Time(min(run, estimate)) * grid.Second,
			grid.Time(estimate) * grid.Second, width,
		})
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return jobs
}

// replayer is a bare event loop around a cluster: at one instant completions come
// first, then submissions in the order of the log, then one pass.
type replayer struct {
	ends    endHeap
	started []Request
}

func (p *replayer) run(c *Cluster, jobs []traceJob, ended func(i int, at grid.Time)) {
	for next := 0; next < len(jobs) || len(p.ends) > 0; {
		now := grid.Never
		if next < len(jobs) {
			now = jobs[next].submit
		}
		if len(p.ends) > 0 {
			now = min(now, p.ends[0].at)
		}
		for len(p.ends) > 0 && p.ends[0].at == now {
			i := p.ends.pop()
			if !c.Ended(now, replayID(i)) {
				panic("a task ended that did not run")
			}
			if ended != nil {
				ended(i, now)
			}
		}
		for ; next < len(jobs) && jobs[next].submit == now; next++ {
			j := &jobs[next]
			if err := c.Submit(now, Request{ID: replayID(next), Processors: j.processors, Estimate: j.estimate}); err != nil {
				panic(err)
			}
		}
		p.started = c.Schedule(now, p.started[:0])
		for _, r := range p.started {
			i := int(r.ID.Job.Lo)
			p.ends.push(endEvent{now + jobs[i].run, i})
		}
	}
}

func replayID(i int) grid.TaskID {
	return grid.TaskID{Job: grid.JobID{Hi: 0x5eed, Lo: uint64(i)}}
}

type endEvent struct {
	at  grid.Time
	job int
}

func (e endEvent) before(o endEvent) bool { return e.at < o.at || e.at == o.at && e.job < o.job }

// endHeap is a binary heap; container/heap would allocate.
type endHeap []endEvent

func (h *endHeap) push(e endEvent) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 && e.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = e
	*h = s
}

func (h *endHeap) pop() int {
	s := *h
	job, e := s[0].job, s[len(s)-1]
	s = s[:len(s)-1]
	for i := 0; len(s) > 0; {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if child >= len(s) || !s[child].before(e) {
			s[i] = e
			break
		}
		s[i] = s[child]
		i = child
	}
	*h = s
	return job
}

// "AWRT_k = sum p_j m_j (C_j(S) - r_j) / sum p_j m_j" (The gain of resource
// delegation, eq. 1); table 1 gives the figures for EASY at each site.
func TestTable1(t *testing.T) {
	for _, tt := range []struct {
		trace       string
		processors  int64
		until       grid.Time
		jobs        int
		awrt        string
		makespan    int64
		utilization string
	}{
		{"CTC-SP2-1996-3.1-cln.swf.gz", 430, grid.Never, 77199, "52937.96", 29306682, "0.6570"},
		{"KTH-SP2-1996-2.1-cln.swf.gz", 100, grid.Never, 28467, "75583.21", 29363626, ""},
		{"SDSC-DS-2004-2.1-cln.swf.gz", 1664, 29376000 * grid.Second, 74917, "54970.50", 29357277, ""},
	} {
		t.Run(tt.trace, func(t *testing.T) {
			jobs := readTrace(t, tt.trace, tt.processors, tt.until)
			c, err := New(Config{Processors: tt.processors})
			if err != nil {
				t.Fatal(err)
			}
			var makespan grid.Time
			response, work := new(big.Int), new(big.Int) // processor-seconds²
			finished := 0
			new(replayer).run(c, jobs, func(i int, at grid.Time) {
				j := &jobs[i]
				finished++
				makespan = max(makespan, at)
				area := big.NewInt(j.processors * int64(j.run/grid.Second))
				work.Add(work, area)
				response.Add(response, area.Mul(area, big.NewInt(int64((at-j.submit)/grid.Second))))
			})
			if finished != tt.jobs || len(jobs) != tt.jobs {
				t.Errorf("%d jobs finished of %d, want %d", finished, len(jobs), tt.jobs)
			}
			if awrt := new(big.Rat).SetFrac(response, work).FloatString(2); awrt != tt.awrt {
				t.Errorf("AWRT %s s, want %s", awrt, tt.awrt)
			}
			if got := int64(makespan / grid.Second); got != tt.makespan {
				t.Errorf("makespan %d s, want %d", got, tt.makespan)
			}
			utilization := new(big.Rat).SetFrac(work, big.NewInt(tt.processors*tt.makespan)).FloatString(4)
			if tt.utilization != "" && utilization != tt.utilization {
				t.Errorf("utilization %s, want %s", utilization, tt.utilization)
			}
			if s := c.State(c.now); s.Free != tt.processors || s.Running+s.Queued != 0 || len(c.tasks.index) != 0 {
				t.Errorf("in the end %+v", s)
			}
		})
	}
}
