package node

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/site"
)

// strdPair is a site of 3 processors that leases what a submitted job lacks, and its
// partner of 4 that lends.
func strdPair(t *testing.T) (borrower, lender *Host) {
	t.Helper()
	cfg, lender := strdConfig(t, grid.Minute)
	return realHost(t, cfg), lender
}

// strdConfig returns the borrower's configuration, with leases of a term, and its partner.
func strdConfig(t *testing.T, term grid.Time) (HostConfig, *Host) {
	t.Helper()
	memory := &p2p.Memory{}
	b, l := realConfig(t, 1, memory), realConfig(t, 2, memory)
	b.Listen, l.Listen = []string{"/ip4/127.0.0.1/tcp/1"}, []string{"/ip4/127.0.0.1/tcp/2"} // found there again
	l.Site.Lease = site.LeaseConfig{Lend: true, Term: term}
	lender := realHost(t, l)
	b.Site.Processors = 3
	b.Site.Lease = site.LeaseConfig{Term: term, Match: lease.MatchConfig{
		Policy: lease.SSTRD, Links: []lease.Link{{Site: lender.ID(), Relation: lease.Sibling}},
	}}
	b.Join = lender.Addrs()
	return b, lender
}

// spreadJob is a job of three tasks, of which two find no processor of their own site.
func spreadJob(t *testing.T, b *Host, n uint64, script string) *grid.Job {
	t.Helper()
	full := scriptJob(b, 1000+n, "sleep 1000")
	full.Tasks, full.Processors = 2, 2
	submitJob(t, b, full)
	until(t, "two own processors are taken", func() bool { return stateOf(t, b, full).State == site.Running })
	j := scriptJob(b, n, script)
	j.Tasks, j.Processors, j.Spread = 3, 3, true
	submitJob(t, b, j)
	return j
}

// TestSpreadJob: a submitted job runs at once, one task on the processor that is idle at
// home and two at the partner, and when it has ended nothing is leased.
func TestSpreadJob(t *testing.T) {
	t.Parallel()
	b, l := strdPair(t)
	j := spreadJob(t, b, 1, "echo rank $GRIDNODE_RANK of $GRIDNODE_NTASKS at $GRIDNODE_SITE")
	until(t, "the job is over", func() bool { return stateOf(t, b, j).State.Terminal() })
	v := stateOf(t, b, j)
	if v.State != site.Done || v.Epoch != 1 || v.Gang == nil || len(v.Gang.Parts) != 2 {
		t.Fatalf("%+v, gang %+v: want done in one execution at two sites", v, v.Gang)
	}
	out := readOutput(t, b, j, run.Stdout)
	for _, want := range []string{"rank 0 of 3 at site-1", "rank 1 of 3 at site-2", "rank 2 of 3 at site-2"} {
		if !strings.Contains(out, want) {
			t.Errorf("output %q, want %q", out, want)
		}
	}
	until(t, "nothing is leased", func() bool { return len(leasesOf(t, b))+len(leasesOf(t, l)) == 0 })
}

// TestCancelSpreadJob: nothing of it is left anywhere.
func TestCancelSpreadJob(t *testing.T) {
	t.Parallel()
	b, l := strdPair(t)
	j := spreadJob(t, b, 1, "echo begun; sleep 1000")
	until(t, "its tasks run", func() bool { return strings.Count(readOutput(t, b, j, run.Stdout), "begun") == 3 })
	cancel1(t, b, j)
	until(t, "it is cancelled", func() bool { return stateOf(t, b, j).State == site.CancelledByUser })
	until(t, "nothing is leased", func() bool { return len(leasesOf(t, b))+len(leasesOf(t, l)) == 0 })
}

// TestSpreadJobLosesLease: its partner takes the processors back, so all of its tasks are
// ended, and it waits again.
func TestSpreadJobLosesLease(t *testing.T) {
	t.Parallel()
	b, l := strdPair(t)
	j := spreadJob(t, b, 1, "echo begun; sleep 1000")
	until(t, "its tasks run", func() bool { return strings.Count(readOutput(t, b, j, run.Stdout), "begun") == 3 })
	lent := leasesOf(t, l)
	if len(lent) != 1 || lent[0].Processors != 2 {
		t.Fatalf("%+v is lent, want two processors", lent)
	}
	a := askLease(t, l, func(token uint64) grid.Input {
		return &site.ChangeLease{Token: token, Change: site.RevokeLease, Number: lent[0].Number, Force: true}
	})
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	until(t, "it waits for processors again", func() bool { // or has them by now, where the machine is busy
		v := stateOf(t, b, j)
		if v.Epoch == 2 && v.State == site.Queued && v.Gang != nil {
			t.Errorf("it waits, and is still at %+v", v.Gang)
		}
		return v.Epoch == 2
	})
	until(t, "its lease is over", func() bool {
		return !slices.ContainsFunc(slices.Concat(leasesOf(t, b), leasesOf(t, l)), func(v site.LeaseView) bool { return v.ID == lent[0].ID })
	})
}

// TestSpreadJobOutlivesRestart: a daemon that starts again takes the job up on the same
// processors, its own and the leased ones.
func TestSpreadJobOutlivesRestart(t *testing.T) {
	t.Parallel()
	cfg, l := strdConfig(t, grid.Minute)
	b := realHost(t, cfg)
	flag := filepath.Join(t.TempDir(), "go")
	j := spreadJob(t, b, 1, fmt.Sprintf("echo begun; while [ ! -e %s ]; do sleep 0.05; done; echo rank $GRIDNODE_RANK done", flag))
	until(t, "its tasks run", func() bool { return strings.Count(readOutput(t, b, j, run.Stdout), "begun") == 3 })
	b.Kill()
	b = realHost(t, cfg)
	until(t, "it is taken up", func() bool { return stateOf(t, b, j).State == site.Running && len(leasesOf(t, b)) == 1 })
	write(t, flag, "")
	until(t, "the job is over", func() bool { return stateOf(t, b, j).State.Terminal() })
	if v := stateOf(t, b, j); v.State != site.Done || v.Epoch != 1 {
		t.Errorf("%+v, want done in its first execution", v)
	}
	if out := readOutput(t, b, j, run.Stdout); strings.Count(out, "begun") != 3 || strings.Count(out, "done") != 3 {
		t.Errorf("output %q, want each task to begin and end once", out)
	}
	until(t, "nothing is leased", func() bool { return len(leasesOf(t, b))+len(leasesOf(t, l)) == 0 })
}
