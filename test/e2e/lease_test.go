package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridnode/test/realsite"
)

// leaseInfo is what the tests look at in a lease.
type leaseInfo struct {
	Number     uint64   `json:"number"`
	Direction  string   `json:"direction"`
	Borrower   string   `json:"borrower"`
	Processors int64    `json:"processors"`
	Used       int64    `json:"used"`
	State      string   `json:"state"`
	Jobs       []string `json:"jobs"`
	Price      float64  `json:"price"`
	Ceiling    float64  `json:"ceiling"`
}

func (s *site) leases(args ...string) (all []leaseInfo) {
	s.Helper()
	s.json(&all, "leases", args...)
	return all
}

// held prints what does not change of a site's leases while nobody changes them.
func (s *site) held() string {
	s.Helper()
	var list []string
	for _, l := range s.leases() {
		list = append(list, fmt.Sprint(l.Number, l.Direction, l.Processors, l.State))
	}
	return strings.Join(list, ", ")
}

// eventually waits for a condition that must come true before long.
func (s *site) eventually(what string, condition func() bool) {
	s.Helper()
	if !soonTrue(patience, condition) {
		s.Fatalf("waited in vain until %s%s", what, s.logTail())
	}
}

// soonTrue reports whether a condition comes true in that time.
func soonTrue(span time.Duration, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	return realsite.Until(ctx, look, func() (bool, error) { return condition(), nil }) == nil
}

// inState returns how many of the jobs are in a state.
func (s *site) inState(state string, ids []string) (n int) {
	s.Helper()
	for _, id := range ids {
		if s.status(id).State == state {
			n++
		}
	}
	return n
}

func (s *site) set(settings ...string) *site {
	s.Helper()
	for i := 0; i < len(settings); i += 2 {
		s.ok("config", "set", settings[i], settings[i+1])
	}
	return s
}

// once is a script that holds a lock as long as it runs, notes that it was started, and
// goes on for ever the first time and ends the second. Two at a time are noted as well.
func once(dir, name string) string {
	return fmt.Sprintf(`cd %[1]s; exec 9>%[2]s.lock; flock -n 9 || echo %[2]s >> overlaps; echo $$ >> %[2]s.runs
[ $(wc -l < %[2]s.runs) -ge 2 ] && exit 0; exec sleep 1000`, dir, name)
}

// runsOf returns the processes that a script of once has been.
func runsOf(tb testing.TB, dir, name string) (pids []int) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name+".runs"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			tb.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func noOverlaps(tb testing.TB, dir string) {
	tb.Helper()
	if text, err := os.ReadFile(filepath.Join(dir, "overlaps")); err == nil {
		tb.Errorf("these ran twice at once: %s", text)
	}
}

// runs reports whether a process has not ended. One that has may wait for its parent to notice.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ") && !strings.Contains(string(text), ") X ")
}

// TestDelegation: a site of two processors with six jobs borrows by itself from one
// that has eight idle, and its users do not see where a job runs. The lender's daemon
// dies: its pilots end by themselves, and what was lost starts again, once.
func TestDelegation(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("needs flock:", err)
	}
	t.Parallel()
	const cycle = 10 * time.Second
	lender := newSite(t, "hill", "--processors", "8").set("leases.lend", "allow", "leases.term", "10s").start()
	borrower := newSite(t, "vale", "--processors", "2", "--join", lender.addr).
		set("leases.term", "10s", "delegation.threshold", "1", "delegation.cycle", cycle.String(), "delegation.links", "sibling:"+lender.id).start()
	borrower.sees(2)
	dir := t.TempDir()
	open(t, dir, 0o777)
	var ids []string
	names := make(map[string]string)
	for i := range 6 {
		name := fmt.Sprint("job", i)
		id := strings.TrimSpace(borrower.ok("submit", "-t", "10m", "--", "sh", "-c", once(dir, name)))
		ids = append(ids, id)
		names[id] = name
	}
	borrower.eventually("all six run", func() bool { return borrower.inState("running", ids) == 6 })
	away := make(map[string]bool)
	for _, l := range borrower.leases("--in") {
		for _, id := range l.Jobs {
			away[id] = true
		}
	}
	if len(away) != 4 {
		t.Fatalf("%d jobs run on borrowed processors, want 4: %v", len(away), borrower.leases())
	}
	if lent := lender.leases("--out"); len(lent) != 4 {
		t.Errorf("hill lends %v, want four processors", lent)
	}
	var jobs []struct {
		SiteName  string    `json:"siteName"`
		Home      string    `json:"home"`
		Foreign   bool      `json:"foreign"`
		Submitted time.Time `json:"submitted"`
		Start     time.Time `json:"start"`
	}
	borrower.json(&jobs, "status")
	for _, j := range jobs {
		if j.SiteName != "vale" || j.Home != borrower.id || j.Foreign {
			t.Errorf("%+v does not look like vale's own", j)
		}
		if wait := j.Start.Sub(j.Submitted); wait > 2*cycle {
			t.Errorf("a job started %v after it was submitted, want two cycles of %v at most", wait, cycle)
		}
	}
	if text := lender.ok("status"); strings.Contains(text, "running") {
		t.Errorf("hill shows jobs of vale:\n%s", text)
	}

	for id := range away { // every pilot has begun its job
		borrower.eventually(names[id]+" has begun", func() bool { return len(runsOf(t, dir, names[id])) == 1 })
	}
	lender.kill()
	died := time.Now()
	for _, id := range ids { // room for what is lost
		if !away[id] {
			borrower.ok("cancel", id)
		}
	}
	for id := range away {
		borrower.eventually("a lost job has run again", func() bool { return borrower.status(id).State == "done" })
		t.Logf("%s has run again %v after the lender died", names[id], time.Since(died).Round(100*time.Millisecond))
		j := borrower.status(id)
		pids := runsOf(t, dir, names[id])
		if len(pids) != 2 || j.Epoch != 2 {
			t.Errorf("%s was started %d times, epoch %d, want twice", names[id], len(pids), j.Epoch)
		}
		if runs(pids[0]) {
			t.Errorf("process %d of hill lives although its lease is over", pids[0])
		}
	}
	noOverlaps(t, dir)
	borrower.eventually("no lease is left", func() bool { return len(borrower.leases()) == 0 })
	lender.start()
	lender.eventually("hill has its processors back", func() bool { return len(lender.leases()) == 0 })
}

// TestLeaseByHand: request, list, use, renew, release and revoke.
func TestLeaseByHand(t *testing.T) {
	sites := federation(t, []string{"hill", "vale"}, map[string][]string{"hill": {"--processors", "4"}, "vale": {"--processors", "1"}})
	hill, vale := sites[0], sites[1]
	if r := vale.code(5, "lease", "request", "hill", "-n", "2", "-t", "10m"); !strings.Contains(r.stderr, "does not lend") {
		t.Errorf("%v, want the reason", r)
	}
	hill.kill()
	hill.set("leases.lend", "allow", "leases.term", "40s", "leases.most", "3").start()
	vale.sees(2)
	for _, tt := range []struct {
		code int
		word string
		args []string
	}{
		{2, "at least 1", []string{"request", "hill", "-n", "0", "-t", "10m"}},
		{2, "at least 1", []string{"request", "hill", "-n", "-2", "-t", "10m"}},
		{2, "processors", []string{"request", "hill", "-n", "99999999999", "-t", "10m"}},
		{2, "--time is missing", []string{"request", "hill", "-n", "1"}},
		{2, "not more than zero", []string{"request", "hill", "-n", "1", "-t", "0"}},
		{2, "at most", []string{"request", "hill", "-n", "1", "-t", "2000d"}},
		{2, "wants SITE", []string{"request", "-n", "1", "-t", "10m"}},
		{2, "itself", []string{"request", "vale", "-n", "1", "-t", "10m"}},
		{4, "no site is called", []string{"request", "dale", "-n", "1", "-t", "10m"}},
		{5, "wider", []string{"request", "hill", "-n", "4", "-t", "10m"}},
		{5, "longer", []string{"request", "hill", "-n", "1", "-t", "60d"}},
		{4, "nothing is borrowed", []string{"renew", "77", "-t", "10m"}},
		{4, "nothing is borrowed", []string{"release", "77"}},
		{4, "nothing is lent", []string{"revoke", "77"}},
		{2, "no number", []string{"release", "first"}},
		{2, "unknown verb", []string{"borrow"}},
	} {
		if r := vale.code(tt.code, append([]string{"lease"}, tt.args...)...); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("lease %q: %v, want %q", tt.args, r, tt.word)
		}
	}
	if all := append(vale.leases(), hill.leases()...); len(all) != 0 {
		t.Fatalf("refused requests have left %v", all)
	}

	var l leaseInfo
	text := vale.ok("lease", "request", "hill", "-n", "2", "-t", "30m", "-o", "json")
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.State != "active" || l.Processors != 2 {
		t.Fatalf("%v in %s", err, text)
	}
	number := fmt.Sprint(l.Number)
	if table := vale.ok("leases"); !strings.Contains(table, "hill") || !strings.Contains(table, number) {
		t.Errorf("leases:\n%s", table)
	}
	if out := hill.leases("--out"); len(out) != 1 || out[0].Borrower != vale.id {
		t.Errorf("hill lends %v", out)
	}
	if in := hill.leases("--in"); len(in) != 0 {
		t.Errorf("hill borrows %v", in)
	}
	before := fmt.Sprint(vale.held(), hill.held())
	for _, tt := range []struct {
		s    *site
		code int
		word string
		args []string
	}{
		{vale, 2, "not more than zero", []string{"renew", number, "-t", "0"}},
		{vale, 2, "at most", []string{"renew", number, "-t", "2000d"}},
		{vale, 2, "--time is missing", []string{"renew", number}},
		{vale, 2, "wants LEASE", []string{"renew", "-t", "1h"}},
		{vale, 4, "nothing is borrowed", []string{"renew", number + "0", "-t", "1h"}},
		{vale, 4, "nothing is lent", []string{"revoke", number, "--force"}}, // it is the borrower
		{hill, 4, "nothing is borrowed", []string{"release", number, "--force"}},
		{hill, 4, "nothing is borrowed", []string{"renew", number, "-t", "1h"}},
		{hill, 4, "nothing is lent", []string{"revoke", number, "--borrower", hill.id}},
		{hill, 4, "no site is called", []string{"revoke", number, "--borrower", "dale"}},
		{hill, 2, "no number", []string{"revoke", "0"}},
	} {
		if r := tt.s.code(tt.code, append([]string{"lease"}, tt.args...)...); !strings.Contains(r.stderr, tt.word) {
			t.Errorf("lease %q: %v, want %q", tt.args, r, tt.word)
		}
	}
	if after := fmt.Sprint(vale.held(), hill.held()); after != before {
		t.Errorf("refused commands have changed %s to %s", before, after)
	}
	gate := newGate(t)
	wait := "read x < " + string(gate)
	first := strings.TrimSpace(vale.ok("submit", "--", "sh", "-c", wait))
	vale.eventually("the own processor is taken", func() bool { return vale.status(first).State == "running" })
	failed := strings.TrimSpace(vale.code(9, "submit", "-q", "-W", "--", "sh", "-c", "echo to out; echo to err >&2; exit 9").stdout)
	if out, errs := vale.ok("logs", failed), vale.ok("logs", "--stderr", failed); out != "to out\n" || errs != "to err\n" {
		t.Errorf("stdout %q and stderr %q", out, errs)
	}
	second := strings.TrimSpace(vale.ok("submit", "--", "sh", "-c", "echo $GRIDNODE_SITE; sleep 1000"))
	vale.eventually("it runs at hill", func() bool { return vale.ok("logs", second) == "hill\n" })
	if r := vale.code(5, "lease", "release", number); !strings.Contains(r.stderr, "runs 1 of this site's jobs") {
		t.Errorf("%v", r)
	}
	vale.ok("lease", "renew", number, "-t", "1:00:00")
	vale.ok("cancel", second)
	vale.eventually("it is cancelled", func() bool { return vale.status(second).State == "cancelled" })
	vale.ok("lease", "release", number)
	vale.eventually("nothing is borrowed", func() bool { return len(vale.leases()) == 0 })
	hill.eventually("nothing is lent", func() bool { return len(hill.leases()) == 0 })
	for _, verb := range [][]string{{"renew", number, "-t", "1h"}, {"release", number}} { // it has ended
		if r := vale.code(4, append([]string{"lease"}, verb...)...); !strings.Contains(r.stderr, "nothing is borrowed") {
			t.Errorf("lease %q: %v", verb, r)
		}
	}

	text = vale.ok("lease", "request", "hill", "-n", "1", "-t", "10m", "-o", "json")
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	if r := vale.code(4, "lease", "revoke", fmt.Sprint(l.Number)); !strings.Contains(r.stderr, "nothing is lent") {
		t.Errorf("%v", r)
	}
	hill.ok("lease", "revoke", fmt.Sprint(l.Number))
	vale.eventually("nothing is borrowed", func() bool { return len(vale.leases()) == 0 })
	gate.open(t)
	vale.ok("wait", first)
}

// ipProgram is the tool that makes network namespaces.
var ipProgram, _ = exec.LookPath("ip")

// namespaces makes two network namespaces with a link between them, or skips the test.
// It returns their names and what cuts the link or mends it.
func namespaces(t *testing.T) (names [2]string, link func(up bool)) {
	t.Helper()
	if ipProgram == "" {
		t.Skip("needs ip (iproute2) to make network namespaces")
	}
	ip := func(args ...string) error {
		out, err := exec.Command(ipProgram, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	for i := range names {
		names[i] = fmt.Sprintf("gridnode-%d-%d", os.Getpid(), i)
		if err := ip("netns", "add", names[i]); err != nil {
			t.Skipf("network namespaces are not permitted here: %v", err)
		}
		t.Cleanup(func() {
			if err := ip("netns", "del", names[i]); err != nil {
				t.Error(err)
			}
		})
	}
	for _, args := range []string{
		"link add gn0 netns " + names[0] + " type veth peer name gn1 netns " + names[1],
		"-n " + names[0] + " addr add 10.77.0.1/24 dev gn0", "-n " + names[1] + " addr add 10.77.0.2/24 dev gn1",
		"-n " + names[0] + " link set lo up", "-n " + names[1] + " link set lo up",
		"-n " + names[0] + " link set gn0 up", "-n " + names[1] + " link set gn1 up",
	} {
		if err := ip(strings.Fields(args)...); err != nil {
			t.Skipf("a link between network namespaces cannot be made here: %v", err)
		}
	}
	return names, func(up bool) {
		t.Helper()
		state := map[bool]string{true: "up", false: "down"}[up]
		if err := ip("-n", names[0], "link", "set", "gn0", state); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPartition: the network between borrower and lender falls apart. The processor is
// never used by both, and after it has healed both agree within a term.
func TestPartition(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("needs flock:", err)
	}
	t.Parallel()
	names, link := namespaces(t)
	const term = 15 * time.Second
	in := func(s *site, i int) *site {
		s.netns, s.ip = names[i], fmt.Sprintf("10.77.0.%d", i+1)
		return s.set("network.listen", fmt.Sprintf("/ip4/%s/tcp/%d", s.ip, s.port), "leases.term", term.String())
	}
	hill := in(newSite(t, "hill", "--processors", "1"), 0).set("leases.lend", "allow").start()
	vale := in(newSite(t, "vale", "--processors", "1", "--join", hill.addr), 1).
		set("delegation.threshold", "1", "delegation.cycle", "1s", "delegation.links", "sibling:"+hill.id).start()
	vale.sees(2)
	dir := t.TempDir()
	open(t, dir, 0o777)
	own := strings.TrimSpace(vale.ok("submit", "--", "sleep", "1000"))
	vale.eventually("the own processor is taken", func() bool { return vale.status(own).State == "running" })
	// Whoever has hill's one processor holds the lock.
	away := strings.TrimSpace(vale.ok("submit", "--", "sh", "-c", once(dir, "away")))
	var number uint64
	vale.eventually("a job runs on hill's processor", func() bool {
		in := vale.leases("--in")
		if len(in) == 1 {
			number = in[0].Number
		}
		return len(in) == 1 && len(runsOf(t, dir, "away")) == 1
	})
	knows := func(s *site) bool {
		for _, l := range s.leases() {
			if l.Number == number {
				return true
			}
		}
		return false
	}
	holder := fmt.Sprintf(`cd %s; exec 9>away.lock; flock -n 9 || echo hill >> overlaps; exec sleep 1000`, dir)
	local := strings.TrimSpace(hill.ok("submit", "--", "sh", "-c", holder))
	if state := hill.status(local).State; state != "queued" {
		t.Fatalf("hill's own job is %s, want queued: its processor is lent", state)
	}

	link(false)
	hill.eventually("hill has its processor back and uses it", func() bool { return hill.status(local).State == "running" })
	if pid := runsOf(t, dir, "away")[0]; runs(pid) {
		t.Errorf("process %d runs on a processor that hill has given to its own job", pid)
	}
	if out := hill.leases(); len(out) != 0 {
		t.Errorf("hill still lends %v", out)
	}
	vale.eventually("vale knows that its lease is over", func() bool {
		in := vale.leases("--in")
		return len(in) == 0 || in[0].State != "active"
	})

	link(true)
	healed := time.Now()
	hill.eventually("both agree", func() bool { return !knows(hill) && !knows(vale) })
	t.Logf("both agreed about the lease %v after the network had healed", time.Since(healed).Round(100*time.Millisecond))
	if took := time.Since(healed); took > term {
		t.Errorf("it took %v until both agreed, want a term of %v at most", took, term)
	}
	hill.ok("cancel", local)
	vale.eventually("the lost job has run again", func() bool { return vale.status(away).State == "done" })
	t.Logf("the lost job was over %v after the network had healed", time.Since(healed).Round(100*time.Millisecond))
	if pids := runsOf(t, dir, "away"); len(pids) != 2 {
		t.Errorf("the lost job was started %d times, want twice", len(pids))
	}
	vale.eventually("nothing is lent", func() bool { return len(vale.leases())+len(hill.leases()) == 0 })
	noOverlaps(t, dir)
}

// TestWideAndParkedJobs: a job wider than its site is refused with what to do about it,
// waits if a lease can run it, and is accepted where processors are borrowed by load. A
// job that waits for processors nobody has runs on a lease that was asked for by hand.
func TestWideAndParkedJobs(t *testing.T) {
	t.Parallel()
	hill := newSite(t, "hill", "--processors", "4").set("leases.lend", "allow", "leases.term", "40s").start()
	moor := newSite(t, "moor", "--processors", "1", "--join", hill.addr).start() // does not lend
	vale := newSite(t, "vale", "--processors", "1", "--join", hill.addr).start()
	for _, s := range []*site{hill, moor, vale} {
		s.sees(3)
	}
	wide := []string{"submit", "-n", "3", "-t", "10m", "--", "sh", "-c", "echo $GRIDNODE_SITE"}
	r := vale.code(5, append([]string{"submit", "-W"}, wide[1:]...)...)
	if id := r.job(); !strings.Contains(vale.ok("why", id), "gridnode lease request") {
		t.Errorf("why %s says\n%s", id, vale.ok("why", id))
	}
	vale.ok("lease", "request", "hill", "-n", "3", "-t", "30m")
	vale.code(5, "submit", "-W", "-n", "4", "-t", "10m", "--", "true") // wider than the lease
	vale.code(5, "submit", "-W", "-n", "3", "-t", "40m", "--", "true") // longer
	gate := newGate(t)
	busy := strings.TrimSpace(vale.ok("submit", "-t", "10m", "--", "sleep", "1000"))
	vale.eventually("the own processor is taken", func() bool { return vale.status(busy).State == "running" })
	blocker := strings.TrimSpace(vale.ok("submit", "-t", "10m", "--", "sh", "-c", "read x < "+string(gate)))
	vale.eventually("the lease is in use", func() bool { return vale.status(blocker).State == "running" })
	id := strings.TrimSpace(vale.ok(wide...))
	if j := vale.status(id); j.State != "queued" || !strings.Contains(j.Reason, "waits for a lease of 3") {
		t.Errorf("%+v, want queued, with the reason", j)
	}
	vale.kill() // it is not refused by a restart either
	vale.start()
	if j := vale.status(id); j.State != "queued" {
		t.Errorf("after a restart: %+v, want queued", j)
	}
	gate.open(t)
	vale.ok("wait", id)
	if out := vale.ok("logs", id); out != "hill\nhill\nhill\n" {
		t.Errorf("its tasks ran at %q", out)
	}

	// By load, of a site that does not lend: jobs are parked.
	vale.kill()
	vale.set("delegation.threshold", "1", "delegation.cycle", "1s", "delegation.links", "sibling:"+moor.id).start()
	for _, l := range vale.leases("--in") { // one may end meanwhile by itself
		if r := vale.run("lease", "release", fmt.Sprint(l.Number)); r.code != 0 && !strings.Contains(r.stderr, "no such lease") {
			t.Errorf("lease %d is not given back: %v", l.Number, r)
		}
	}
	narrow := strings.TrimSpace(vale.ok("submit", "-t", "10m", "--", "sh", "-c", "echo $GRIDNODE_SITE"))
	wideID := strings.TrimSpace(vale.ok(wide...))
	if vale.status(wideID).State != "queued" {
		t.Errorf("%+v, want queued: vale delegates", vale.status(wideID))
	}
	vale.sees(3)
	vale.eventually("hill lends three processors again, once those of the first lease are back", func() bool {
		return vale.run("lease", "request", "hill", "-n", "3", "-t", "30m").code == 0
	})
	vale.ok("wait", narrow, wideID)
	for id, tasks := range map[string]int{narrow: 1, wideID: 3} {
		if out := vale.ok("logs", id); out != strings.Repeat("hill\n", tasks) {
			t.Errorf("%s ran at %q", id, out)
		}
	}
}

// TestReleaseByForce: jobs on a lease that is released by force, or recalled by its lender,
// start again, once; so they do if the lender never comes back.
func TestReleaseByForce(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("needs flock:", err)
	}
	t.Parallel()
	hill := newSite(t, "hill", "--processors", "2").set("leases.lend", "allow", "leases.term", "20s").start()
	vale := newSite(t, "vale", "--processors", "1", "--join", hill.addr).start()
	vale.sees(2)
	hill.sees(2)
	dir := t.TempDir()
	open(t, dir, 0o777)
	busy := strings.TrimSpace(vale.ok("submit", "--", "sleep", "1000"))
	vale.eventually("the own processor is taken", func() bool { return vale.status(busy).State == "running" })
	borrow := func() string {
		var l leaseInfo
		text := vale.ok("lease", "request", "hill", "-n", "1", "-t", "30m", "-o", "json")
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(l.Number)
	}
	start := func(name string) string {
		id := strings.TrimSpace(vale.ok("submit", "--", "sh", "-c", once(dir, name)))
		vale.eventually(name+" has begun", func() bool { return len(runsOf(t, dir, name)) == 1 })
		return id
	}
	again := func(name, id string) {
		t.Helper()
		vale.eventually("the lease is over", func() bool { return len(vale.leases()) == 0 })
		vale.eventually(name+" waits", func() bool { j := vale.status(id); return j.State == "queued" && j.Epoch == 2 })
		if pid := runsOf(t, dir, name)[0]; runs(pid) {
			t.Errorf("process %d of %s lives although its job waits again", pid, name)
		}
	}

	first := borrow()
	forced := start("forced")
	vale.ok("lease", "release", first, "--force")
	again("forced", forced)

	second := borrow() // forced runs here, for the second time, and is done
	vale.ok("wait", forced)
	recalled := start("recalled")
	hill.ok("lease", "revoke", second)
	again("recalled", recalled)

	third := borrow()
	vale.ok("wait", recalled)
	gone := start("gone")
	hill.kill()
	vale.ok("lease", "release", third, "--force")
	again("gone", gone)
	vale.ok("cancel", busy)
	vale.ok("wait", gone)
	for name, id := range map[string]string{"forced": forced, "recalled": recalled, "gone": gone} {
		if j := vale.status(id); len(runsOf(t, dir, name)) != 2 || j.State != "done" || j.Epoch != 2 {
			t.Errorf("%s has run %d times: %+v", name, len(runsOf(t, dir, name)), j)
		}
	}
	noOverlaps(t, dir)
}
