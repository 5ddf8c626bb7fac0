package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/p2p"
	"gridnode/node/run"
	"gridnode/node/site"
)

// leasePair is a site of 1 processor and one of 4 that lends.
func leasePair(t *testing.T, term grid.Time) (borrower, lender *Host) {
	t.Helper()
	memory := &p2p.Memory{}
	b := realConfig(t, 1, memory)
	b.Site.Processors = 1
	b.Site.Lease = site.LeaseConfig{Term: term}
	l := realConfig(t, 2, memory)
	l.Site.Lease = site.LeaseConfig{Lend: true, Term: term}
	lender = realHost(t, l)
	b.Join = lender.Addrs()
	return realHost(t, b), lender
}

func askLease(t *testing.T, h *Host, input func(token uint64) grid.Input) *site.LeaseAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := h.Ask(ctx, input)
	if err != nil {
		t.Fatal(err)
	}
	return answer.(*site.LeaseAnswer)
}

func borrowFrom(t *testing.T, h, lender *Host, processors int64, span grid.Time) *site.LeaseAnswer {
	t.Helper()
	return askLease(t, h, func(token uint64) grid.Input {
		return &site.RequestLease{Token: token, Lender: lender.ID(), Processors: processors, Span: span}
	})
}

func scriptJob(h *Host, n uint64, script string) *grid.Job {
	j := testJob(h, n, grid.Minute)
	j.Command = &grid.Command{Args: []string{"/bin/sh", "-c", script}}
	return j
}

func submitJob(t *testing.T, h *Host, j *grid.Job) {
	t.Helper()
	if _, err := submitTo(h, j); err != nil {
		t.Fatal(err)
	}
}

func stateOf(t *testing.T, h *Host, j *grid.Job) site.View {
	t.Helper()
	v, err := h.view(t.Context(), j.ID)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func leasesOf(t *testing.T, h *Host) (views []site.LeaseView) {
	t.Helper()
	if err := h.Do(t.Context(), func(s *site.Site) { views = s.Leases() }); err != nil {
		t.Fatal(err)
	}
	return views
}

// TestJobOnBorrowedProcessors: a job that finds its own site full runs on borrowed
// processors, in a pilot of the lender; output, exit code and cancellation are as if
// it ran at home.
func TestJobOnBorrowedProcessors(t *testing.T) {
	t.Parallel()
	b, l := leasePair(t, grid.Minute)
	full := scriptJob(b, 1, "sleep 1000")
	submitJob(t, b, full)
	until(t, "the own processor is taken", func() bool { return stateOf(t, b, full).State == site.Running })
	a := borrowFrom(t, b, l, 2, grid.Hour)
	if a.Err != nil || a.Lease.State != lease.Active || a.Lease.Processors != 2 {
		t.Fatalf("%+v", a)
	}

	job := scriptJob(b, 2, "echo out; echo err >&2; pwd; echo $GRIDNODE_HOME_SITE $GRIDNODE_SITE; exit 7")
	submitJob(t, b, job)
	until(t, "the job is over", func() bool { return stateOf(t, b, job).State.Terminal() })
	v := stateOf(t, b, job)
	if v.State != site.Failed || v.Result.ExitCode != 7 || v.Site != b.ID() || v.Foreign {
		t.Errorf("%+v, want exit code 7 at its own site", v)
	}
	out := readOutput(t, b, job, run.Stdout)
	if !strings.HasPrefix(out, "out\n"+filepath.Join(l.cfg.Home, "pilots")) || !strings.Contains(out, string(b.ID())+" site-2\n") {
		t.Errorf("stdout %q, want it to have run in a pilot's directory at the lender", out)
	}
	if got := readOutput(t, b, job, run.Stderr); got != "err\n" {
		t.Errorf("stderr %q", got)
	}

	// Two at once, as many as the lease has; the third waits.
	var sleepers []*grid.Job
	for n := uint64(3); n < 6; n++ {
		j := scriptJob(b, n, "echo $$; sleep 1000")
		submitJob(t, b, j)
		sleepers = append(sleepers, j)
	}
	until(t, "two run", func() bool {
		return stateOf(t, b, sleepers[0]).State == site.Running && stateOf(t, b, sleepers[1]).State == site.Running
	})
	if v := stateOf(t, b, sleepers[2]); v.State != site.Queued {
		t.Errorf("the third is %v, want queued: there are two processors", v.State)
	}
	if views := leasesOf(t, b); len(views) != 1 || views[0].Used != 2 || len(views[0].Jobs) != 2 {
		t.Errorf("leases %+v", views)
	}
	until(t, "it tells its process", func() bool { return readOutput(t, b, sleepers[0], run.Stdout) != "" })
	cancel1(t, b, sleepers[0])
	until(t, "it is cancelled", func() bool { return stateOf(t, b, sleepers[0]).State == site.CancelledByUser })
	until(t, "the third starts in its place", func() bool { return stateOf(t, b, sleepers[2]).State == site.Running })
	pid := strings.TrimSpace(readOutput(t, b, sleepers[0], run.Stdout))
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Errorf("process %s of the cancelled job lives", pid)
	}

	// The lender takes the processors back: what runs there dies with its pilot.
	until(t, "the third tells its process", func() bool { return readOutput(t, b, sleepers[2], run.Stdout) != "" })
	pid = strings.TrimSpace(readOutput(t, b, sleepers[2], run.Stdout))
	revoked := askLease(t, l, func(token uint64) grid.Input {
		return &site.ChangeLease{Token: token, Change: site.RevokeLease, Number: a.Lease.Number, Force: true}
	})
	if revoked.Err != nil {
		t.Fatal(revoked.Err)
	}
	until(t, "its processes are gone", func() bool { _, err := os.Stat("/proc/" + pid); return err != nil })
	until(t, "the job waits for a processor again", func() bool {
		v := stateOf(t, b, sleepers[2])
		return v.State == site.Queued && v.Epoch == 2
	})
	until(t, "nothing is lent", func() bool { return len(leasesOf(t, l)) == 0 && len(leasesOf(t, b)) == 0 })
	if _, err := os.Stat(l.files.Pilot(a.Lease.Key)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pilot has left its directory: %v", err)
	}
}

func cancel1(t *testing.T, h *Host, j *grid.Job) {
	t.Helper()
	answer, err := h.Ask(t.Context(), func(token uint64) grid.Input { return &site.Cancel{Token: token, Job: j.ID, Cause: "not wanted"} })
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.(*site.Cancelled).Err; err != nil {
		t.Fatal(err)
	}
}

func readOutput(t *testing.T, h *Host, j *grid.Job, stream run.Stream) string {
	t.Helper()
	r, err := h.Output(t.Context(), j.ID, stream, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDaemonsRestart: a job on borrowed processors goes on while either daemon, and
// then the other, is away for less than a term, and its output is whole.
func TestDaemonsRestart(t *testing.T) {
	t.Parallel()
	memory := &p2p.Memory{}
	lc, bc := realConfig(t, 2, memory), realConfig(t, 1, memory)
	lc.Listen, bc.Listen = []string{"/ip4/127.0.0.1/tcp/1"}, []string{"/ip4/127.0.0.1/tcp/2"} // found there again
	lc.Site.Lease = site.LeaseConfig{Lend: true, Term: grid.Minute}
	l := realHost(t, lc)
	bc.Site.Processors = 1
	bc.Site.Lease = site.LeaseConfig{Term: grid.Minute}
	bc.Join = l.Addrs()
	b := realHost(t, bc)
	full := scriptJob(b, 1, "sleep 1000")
	submitJob(t, b, full)
	until(t, "the own processor is taken", func() bool { return stateOf(t, b, full).State == site.Running })
	if a := borrowFrom(t, b, l, 1, grid.Hour); a.Err != nil {
		t.Fatal(a.Err)
	}
	// Two of them: a second reader would see the end that the first one's writer makes.
	second, third := filepath.Join(t.TempDir(), "fifo"), filepath.Join(t.TempDir(), "fifo")
	job := scriptJob(b, 2, fmt.Sprintf("mkfifo %[1]s %[2]s; echo one; read x < %[1]s; echo $x; read x < %[2]s; echo $x", second, third))
	submitJob(t, b, job)
	until(t, "it says one", func() bool { return readOutput(t, b, job, run.Stdout) == "one\n" })

	b.Kill()
	write(t, second, "two\n")
	b = realHost(t, bc)
	until(t, "it says two", func() bool { return readOutput(t, b, job, run.Stdout) == "one\ntwo\n" })

	l.Kill()
	_ = realHost(t, lc)
	write(t, third, "three\n")
	until(t, "the job is over", func() bool { return stateOf(t, b, job).State.Terminal() })
	if v := stateOf(t, b, job); v.State != site.Done || v.Epoch != 1 {
		t.Errorf("%+v, want done in its first execution", v)
	}
	if out := readOutput(t, b, job, run.Stdout); out != "one\ntwo\nthree\n" {
		t.Errorf("output %q", out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// TestLeaseRefusals: what cannot be had is refused with a reason, and nothing changes.
func TestLeaseRefusals(t *testing.T) {
	t.Parallel()
	b, l := leasePair(t, grid.Minute)
	for _, tt := range []struct {
		name       string
		from, of   *Host
		processors int64
		span       grid.Time
		want       string
	}{
		{"no processors", b, l, 0, grid.Hour, "processors"},
		{"negative", b, l, -3, grid.Hour, "processors"},
		{"absurd", b, l, 1 << 40, grid.Hour, "processors"},
		{"no time", b, l, 1, 0, "for 0"},
		{"absurd time", b, l, 1, grid.SpanMax, "at most"},
		{"wider than the site", b, l, 5, grid.Hour, "wider"},
		{"of itself", b, b, 1, grid.Hour, "itself"},
		{"of one that does not lend", l, b, 1, grid.Hour, "does not lend"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := borrowFrom(t, tt.from, tt.of, tt.processors, tt.span)
			if a.Err == nil || !strings.Contains(a.Err.Error(), tt.want) {
				t.Errorf("%v, want %q", a.Err, tt.want)
			}
			if n := len(leasesOf(t, b)) + len(leasesOf(t, l)); n != 0 {
				t.Errorf("%d leases", n)
			}
		})
	}
	for _, change := range []site.LeaseChange{site.RenewLease, site.ReleaseLease, site.RevokeLease} {
		a := askLease(t, b, func(token uint64) grid.Input {
			return &site.ChangeLease{Token: token, Change: change, Number: 99, Span: grid.Hour}
		})
		if !errors.Is(a.Err, site.ErrUnknownLease) {
			t.Errorf("change %d of an unknown lease: %v", change, a.Err)
		}
	}
}

// TestPilotDies: the borrower hears of it at once, and what ran there starts again.
func TestPilotDies(t *testing.T) {
	t.Parallel()
	b, l := leasePair(t, grid.Minute)
	full := scriptJob(b, 1, "sleep 1000")
	submitJob(t, b, full)
	until(t, "the own processor is taken", func() bool { return stateOf(t, b, full).State == site.Running })
	a := borrowFrom(t, b, l, 1, grid.Hour)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	job := scriptJob(b, 2, "echo $$; sleep 1000")
	submitJob(t, b, job)
	until(t, "it tells its process", func() bool { return readOutput(t, b, job, run.Stdout) != "" })
	lock, err := os.ReadFile(filepath.Join(l.files.Pilot(a.Lease.Key), "shim.lock"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(lock)))
	if err != nil {
		t.Fatal(err)
	}
	process := strings.TrimSpace(readOutput(t, b, job, run.Stdout))
	syscall.Kill(pid, syscall.SIGKILL)
	until(t, "the job waits again", func() bool { v := stateOf(t, b, job); return v.State == site.Queued && v.Epoch == 2 })
	if _, err := os.Stat("/proc/" + process); err == nil {
		t.Errorf("process %s lives although its pilot is dead and its job waits", process)
	}
	until(t, "the lease is over", func() bool { return len(leasesOf(t, b))+len(leasesOf(t, l)) == 0 })
}

// busyTerm is a term so long that a busy machine renews in time, one whose disk writes something else for
// seconds, too.
const busyTerm = 30 * grid.Second

// TestIdleLeaseIsKept: a lease on which nothing runs for longer than a shim without tasks
// lives is as good as before.
func TestIdleLeaseIsKept(t *testing.T) {
	t.Parallel()
	b, l := leasePair(t, busyTerm)
	a := borrowFrom(t, b, l, 1, grid.Hour)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	for _, h := range []*Host{b, l} {
		until(t, "the lease has been renewed for a term", func() bool {
			held := leasesOf(t, h)
			if len(held) != 1 || held[0].ID != a.Lease.ID || held[0].State != lease.Active {
				t.Fatalf("%v, want the lease of before", held)
			}
			return held[0].End > a.Lease.End+busyTerm
		})
	}
	full, job := scriptJob(b, 1, "sleep 1000"), scriptJob(b, 2, "echo $GRIDNODE_SITE")
	submitJob(t, b, full)
	submitJob(t, b, job)
	until(t, "a job has run there", func() bool { return stateOf(t, b, job).State == site.Done })
}

// TestLeaseIsKept: a job outlives two terms, as the lease is renewed and its
// pilot's limit with it.
func TestLeaseIsKept(t *testing.T) {
	t.Parallel()
	memory := &p2p.Memory{}
	lc, bc := realConfig(t, 2, memory), realConfig(t, 1, memory)
	lc.Site.Lease = site.LeaseConfig{Lend: true, Term: busyTerm}
	bc.Site.Processors, bc.Site.Lease = 1, site.LeaseConfig{Term: busyTerm}
	l := realHost(t, lc)
	bc.Join = l.Addrs()
	b := realHost(t, bc)
	full := scriptJob(b, 1, "sleep 1000")
	submitJob(t, b, full)
	until(t, "the own processor is taken", func() bool { return stateOf(t, b, full).State == site.Running })
	if a := borrowFrom(t, b, l, 1, grid.Hour); a.Err != nil {
		t.Fatal(a.Err)
	}
	job := scriptJob(b, 2, "sleep 62")
	submitJob(t, b, job)
	until(t, "the job is over", func() bool { return stateOf(t, b, job).State.Terminal() })
	if v := stateOf(t, b, job); v.State != site.Done || v.Epoch != 1 {
		t.Errorf("%+v, want done in its first execution", v)
	}
}
