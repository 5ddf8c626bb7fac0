package chaos

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// TestChaos: under all faults at once no invariant is violated, the run heals, and
// it can be repeated.
func TestChaos(t *testing.T) {
	run := func(seed uint64) *measure.Result {
		cfg := Default()
		cfg.Seed, cfg.Sites, cfg.Hours = seed, 6, 5 // in which some jobs are spread
		cfg.Faults = "loss=0.1,duplicate=0.1,reorder=0.1,drift=1000,daemon=2,torn=2,machine=1,partition=3,aim=0.5"
		r, err := Run(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		report := r.Config.(*chaosReport)
		if report.Acked == 0 || report.Lost == 0 {
			t.Errorf("%d jobs acknowledged, %d messages lost: nothing was tried", report.Acked, report.Lost)
		}
		for _, fault := range []testnet.FaultKind{testnet.FaultDaemon, testnet.FaultTorn, testnet.FaultMachine, testnet.FaultPartition} {
			kind := fault.String()
			if report.Injected[kind] == 0 {
				t.Errorf("seed %d: no %s fault was injected", seed, kind)
			}
		}
		if r.Total.Finished+r.Total.Rejected+report.Gangs.Cancelled != r.Total.Submitted {
			t.Errorf("seed %d: %+v", seed, r.Total)
		}
		return r
	}
	hashes := map[string]bool{}
	var leases leaseCounts
	var gangs gangCounts
	var aims aimCounts
	for seed := range uint64(4) {
		r := run(seed)
		hashes[r.TraceHash] = true
		counts := r.Config.(*chaosReport).Leases
		more := r.Config.(*chaosReport).Gangs
		gangs.Whole += more.Whole
		gangs.Broken += more.Broken
		gangs.Spread += more.Spread
		gangs.Cancelled += more.Cancelled
		aimed := r.Config.(*chaosReport).Aimed
		aims.Cancelled, aims.Before, aims.Within, aims.After = aims.Cancelled+aimed.Cancelled, aims.Before+aimed.Before, aims.Within+aimed.Within, aims.After+aimed.After
		leases.Used += counts.Used
		leases.Lost += counts.Lost
	}
	t.Logf("%d executions on borrowed processors, %d lost with their pilots", leases.Used, leases.Lost)
	if gangs.Whole == 0 || gangs.Broken == 0 || gangs.Spread == 0 {
		t.Errorf("%+v: jobs at several sites were not tried", gangs)
	}
	if aims.Cancelled == 0 || aims.Before == 0 || aims.Within == 0 || aims.After == 0 || gangs.Cancelled == 0 {
		t.Errorf("%+v, and %d cancelled: jobs at several sites were not struck at all their stages", aims, gangs.Cancelled)
	}
	if leases.Used == 0 || leases.Lost == 0 {
		t.Errorf("%+v: leases were not tried", leases)
	}
	if again := run(3).TraceHash; !hashes[again] || len(hashes) != 4 {
		t.Errorf("four seeds and one again have %d trace hashes", len(hashes))
	}
}

// scheduleChaos has the faults happen that a seed draws.
func scheduleChaos(n *testnet.Network, seed uint64, faults map[string]float64, span grid.Time) error {
	for _, s := range drawStrikes(seed, n.Len(), faults, span) {
		f, err := s.fault()
		if err == nil {
			err = n.Schedule(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestChaosSchedule: every fault is over when the time of faults is.
func TestChaosSchedule(t *testing.T) {
	f := federation.Builder{Config: testnet.Config{Seed: 5, Inputs: scenario.Inputs(), Durable: true}, Sites: chaosSites(5)}
	n, err := f.Build()
	if err != nil {
		t.Fatal(err)
	}
	const span = 2 * grid.Hour
	if err := scheduleChaos(n, 5, map[string]float64{"daemon": 10, "torn": 10, "machine": 10, "partition": 10}, span); err != nil {
		t.Fatal(err)
	}
	struck := 0
	n.Observe(testnet.Observer{Fault: func(now grid.Time, f *testnet.Fault) {
		struck++
		if now < federation.Warmup || now > federation.Warmup+span+1 {
			t.Errorf("a %v fault begins or ends at %v", f.Kind, now)
		}
	}})
	if err := n.Run(t.Context(), federation.Warmup+span+1, nil); err != nil {
		t.Fatal(err)
	}
	if struck != 2*(3*5*10*2+10*2) {
		t.Errorf("%d faults begin and end", struck)
	}
}

// TestPanicIsAViolation: a core that finds itself broken ends a run like a violated
// invariant, with an error.
func TestPanicIsAViolation(t *testing.T) {
	result, err := caught(func() (*measure.Result, error) { panic("lease: a job runs twice") })
	if result != nil || err == nil || !strings.Contains(err.Error(), "lease: a job runs twice") {
		t.Errorf("result %v, error %v, want what was wrong", result, err)
	}
	want := errors.New("a job was lost")
	if _, err := caught(func() (*measure.Result, error) { return nil, want }); err != want {
		t.Errorf("error %v, want it as it was", err)
	}
}

// TestOlderCopies: sites come up with older copies of their stores, and what others were promised
// holds. With that of a bank it would not, so banks are spared.
func TestOlderCopies(t *testing.T) {
	cfg := Default()
	cfg.Sites, cfg.Hours, cfg.Faults, cfg.Failures = 6, 2, "old=0.4,loss,daemon", ""
	result, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if injected := result.Config.(*chaosReport).Injected; injected["old"] < 3 {
		t.Errorf("injected %v", injected)
	}
	for _, s := range drawStrikes(1, 6, map[string]float64{"old": 10}, 2*grid.Hour) {
		if s.Sites[0] < chaosBanks(6) || s.Delay < grid.Second {
			t.Errorf("site %d comes up with a copy that is %v older", s.Sites[0], s.Delay)
		}
	}
}
