package live

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gridnode/grid"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// writeLog writes a log of a site: jobs that overlap, of 1 to 4 processors, and a line in
// the middle with a status that the format does not know.
func writeLog(t *testing.T, jobs int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("; MaxProcs: 100\n; UnixStartTime: 0\n")
	for i := range jobs {
		status := 1
		if i == jobs/2 {
			status = -4
		}
		fmt.Fprintf(&b, "%d %d -1 %d %d -1 -1 %d %d -1 %d %d 1 1 1 1 -1 -1\n", i+1, 60*i, 600+60*(i%7), 1+i%4, 1+i%4, 900, status, 1+i%9)
	}
	path := filepath.Join(t.TempDir(), "KTH-SP2-1996-x.swf")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLogThroughAllProtocols: a log is replayed by nodes that lend, divide jobs, head
// clusters and pay, and everything that was submitted ends, and is paid for. What they say
// stands beside what virtual networks say.
func TestLogThroughAllProtocols(t *testing.T) {
	path := writeLog(t, 2000)
	synctest.Test(t, func(t *testing.T) {
		l := up(t, func(cfg *Config) {
			cfg.Nodes, cfg.Count, cfg.Traces, cfg.Shrink, cfg.Load = 8, 160, []string{path}, 16, 90
			cfg.Protocols = cfg.Protocols.All()
		})
		defer closeLive(t, l)
		if faults := l.work.Inputs[1].Faults; !strings.Contains(faults, "1 ") {
			t.Errorf("faults of the log: %q", faults)
		}
		r, err := l.Replay(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Beside(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		checkProtocols(t, r, 160)
		var text strings.Builder
		if err := r.Write(&text, "table"); err != nil || !strings.Contains(text.String(), "lease.claim") || !strings.Contains(text.String(), "beside 5 virtual networks") {
			t.Errorf("%v: the table says\n%s", err, &text)
		}
		text.Reset()
		var keys struct{ Beside map[string]any }
		if err := r.Write(&text, "json"); err != nil || json.Unmarshal([]byte(text.String()), &keys) != nil || keys.Beside["rates"] == nil {
			t.Errorf("%v: %v", err, keys)
		}
	})
}

// checkProtocols checks that jobs went through all protocols, live and in virtual time.
func checkProtocols(t *testing.T, r *measure.Result, jobs int64) {
	t.Helper()
	s := &r.Total
	if s.Submitted != jobs || s.Finished != s.Accepted || s.Accepted < jobs*9/10 {
		t.Errorf("%d jobs: %d submitted, %d accepted, %d finished", jobs, s.Submitted, s.Accepted, s.Finished)
	}
	if s.Incentive != s.BudgetSpent || s.Incentive <= 0 || s.Coallocated == 0 || s.LeasedArea == 0 {
		t.Errorf("sites earned %v, users paid %v; %d jobs were divided, %v processor-seconds leased", s.Incentive, s.BudgetSpent, s.Coallocated, s.LeasedArea)
	}
	beside := r.Beside.(*Beside)
	for _, kind := range []string{"lease.request", "lease.claim", "lease.release", "bank.draw", "bank.redeem", "market.negotiate", "gossip.load"} {
		i := slices.IndexFunc(beside.Types, func(d Difference) bool { return d.Type == kind })
		if i < 0 || beside.Types[i].Live == 0 || beside.Types[i].Least == 0 || r.Messages.ByType[kind] < beside.Types[i].Live {
			t.Errorf("%s: %d sent, beside virtual networks %+v", kind, r.Messages.ByType[kind], beside.Types)
		}
	}
}

// TestPoliciesLend: sites borrow by every policy of delegation.
func TestPoliciesLend(t *testing.T) {
	for _, policy := range []string{"dmm", "s-strd", "x-strd"} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := up(t, func(cfg *Config) {
					cfg.Nodes, cfg.Count, cfg.Shrink, cfg.Load = 8, 160, 16, 150
					cfg.Protocols.Delegation, cfg.Protocols.Order = policy, "most-free"
				})
				defer closeLive(t, l)
				r, err := l.Replay(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if r.Messages.ByType["lease.claim"] == 0 || r.Total.LeasedArea == 0 || r.Total.Finished != r.Total.Accepted {
					t.Errorf("%d claims, %v processor-seconds leased, %d of %d jobs finished", r.Messages.ByType["lease.claim"], r.Total.LeasedArea, r.Total.Finished, r.Total.Accepted)
				}
			})
		})
	}
}

// TestLoadIsWhatWasAskedFor: whatever the rate, jobs ask for the share of the processors
// that is wanted; and a speed-up that is given is kept.
func TestLoadIsWhatWasAskedFor(t *testing.T) {
	for _, tt := range []struct {
		load    float64
		speedup int64
		rate    float64
	}{{50, 0, 5}, {120, 0, 100}, {90, 20, 0}} {
		w, err := federation.NewTable1(24, nil, workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.Shrink(16)
		cfg := Config{Count: 480, Load: tt.load, Speedup: tt.speedup, rate: tt.rate}
		pace, speedup := cfg.tempo(w)
		if tt.speedup > 0 && speedup != tt.speedup {
			t.Errorf("a speed-up of %d, want %d", speedup, tt.speedup)
		}
		var processors int64
		for _, s := range w.Sites {
			processors += s.Processors
		}
		area, first, last, job, source := 0.0, grid.Never, grid.Time(0), workload.Job{}, w.Source(0)
		for range cfg.Count {
			if ok, err := source.Next(&job); !ok || err != nil {
				t.Fatal(err)
			}
			area += float64(job.Processors) * job.RunTime.Seconds() / float64(speedup)
			first, last = min(first, job.Submit), job.Submit
		}
		load := 100 * area / ((last - first).Seconds() / float64(pace)) / float64(processors)
		if load < 0.9*tt.load || load > 1.1*tt.load {
			t.Errorf("pace %d, speed-up %d: the jobs keep %.0f %% busy, want %v", pace, speedup, load, tt.load)
		}
	}
}
