package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/market"
	"gridnode/node/guest"
	"gridnode/node/p2p"
	"gridnode/node/sandbox"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// guestRules are the rules of the test below, in a zone in which both of its days begin.
var guestRules = guest.Config{Zone: time.UTC, Rules: []guest.Rule{{
	Processors: 4, Jobs: 2, Time: 2 * grid.Hour, Price: 1500, Hours: guest.Hours{{From: 0, To: 12 * 60}},
}}}

// guestJobs are asked for by one site at another, in this order.
var guestJobs = []struct {
	at         grid.Time // since midnight
	processors int64
	span       grid.Time // half of its estimate
	refused    guest.Cause
}{
	{30 * grid.Second, 2, grid.Hour, guest.Admitted},
	{40 * grid.Second, 3, grid.Minute, guest.OverProcessors},
	{50 * grid.Second, 1, grid.Minute, guest.Admitted},
	{55 * grid.Second, 1, grid.Minute, guest.OverJobs},
	{3 * grid.Minute, 1, 2 * grid.Hour, guest.TooLong},
	{4 * grid.Minute, 2, grid.Minute, guest.Admitted},
	{11*grid.Hour + 30*grid.Minute, 1, 30 * grid.Minute, guest.OffHours},
	{11*grid.Hour + 40*grid.Minute, 1, 5 * grid.Minute, guest.Admitted},
	{12*grid.Hour + 10*grid.Minute, 1, grid.Minute, guest.OffHours},
}

// guestReport says what became of a job, as its home saw it.
func guestReport(v *site.View) string {
	text := fmt.Sprintf("%v of %d processors", v.State, v.Job.Processors)
	for _, verdict := range v.Verdicts {
		if verdict.Outcome == market.OutcomeRefused {
			text += ": " + verdict.Refusal.String()
		}
	}
	if v.State == site.Done {
		text += fmt.Sprintf(" for %v an hour", v.Award.Price)
	}
	return text
}

// guestCounts says what the rules have refused.
func guestCounts(s *site.Site) string { return fmt.Sprint(s.GuestDesk().Refused()) }

// TestRulesRefuseAsInVirtualTime: real hosts refuse by rule what they refuse in virtual
// time, and count it the same.
func TestRulesRefuseAsInVirtualTime(t *testing.T) {
	var live []string
	synctest.Test(t, func(t *testing.T) { live = guestsLive(t) })
	virtual := guestsVirtual(t)
	if got, want := strings.Join(live, "\n"), strings.Join(virtual, "\n"); got != want {
		t.Errorf("live:\n%s\nin virtual time:\n%s", got, want)
	}
	for i, j := range guestJobs {
		want := "done"
		if j.refused != guest.Admitted {
			want = "refused of " + fmt.Sprint(j.processors) + " processors: " + market.ByRule.String()
		}
		if !strings.HasPrefix(virtual[i], want) || j.refused == guest.Admitted && !strings.HasSuffix(virtual[i], " for 1.5 an hour") {
			t.Errorf("job %d: %s, want %s (%v)", i, virtual[i], want, j.refused)
		}
	}
	counts := make([]int64, guest.OverGPUs+1) // the last cause
	for _, j := range guestJobs {
		if j.refused != guest.Admitted {
			counts[j.refused]++
		}
	}
	if want := fmt.Sprint(counts); virtual[len(guestJobs)] != want {
		t.Errorf("counted %s, want %s", virtual[len(guestJobs)], want)
	}
}

func guestsLive(t *testing.T) (report []string) {
	memory := &p2p.Memory{}
	began := time.Now()
	cfg := hostConfig(0, "", memory, &timers{})
	cfg.Site.Guests, cfg.Site.Processors = guestRules, 16
	host := startHost(t, cfg)
	defer closeHost(t, host)
	cfg = hostConfig(1, "", memory, &timers{})
	cfg.Join = host.Addrs()
	home := startHost(t, cfg)
	defer closeHost(t, home)
	var ids []grid.JobID
	for i, j := range guestJobs {
		time.Sleep(time.Until(began.Add(j.at.Duration())))
		job := testJob(home, uint64(i+1), j.span)
		job.Processors, job.Site, job.Goal = j.processors, host.ID(), grid.GoalCost
		if _, err := submitTo(home, job); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, job.ID)
	}
	time.Sleep(time.Hour)
	for _, id := range ids {
		v, err := home.view(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		report = append(report, guestReport(&v))
	}
	if err := host.Do(t.Context(), func(s *site.Site) { report = append(report, guestCounts(s)) }); err != nil {
		t.Fatal(err)
	}
	return report
}

// guestSource yields the jobs of the test.
type guestSource struct{ jobs []*grid.Job }

func (s *guestSource) Next() (*grid.Job, int, error) {
	if len(s.jobs) == 0 {
		return nil, 0, io.EOF
	}
	job := s.jobs[0]
	s.jobs = s.jobs[1:]
	return job, 1, nil
}

func guestsVirtual(t *testing.T) (report []string) {
	n, err := testnet.New(testnet.Config{Seed: 1, Inputs: scenario.Inputs()})
	if err != nil {
		t.Fatal(err)
	}
	rating := grid.Rating{Speed: 1000, Bandwidth: 1000}
	for _, name := range []string{"host", "home"} {
		cfg := site.Config{
			ID: grid.SiteID(name), Name: name, Resources: grid.Resources{Processors: 4}, Rating: rating, Price: grid.Credit, Foreign: true,
			Directory: directory.Config{Federation: "virtual", Topic: "load"},
		}
		if name == "host" {
			cfg.Guests, cfg.Processors = guestRules, 16
		}
		at, err := n.Add(testnet.Member{ID: cfg.ID, Rating: rating, New: func(int) (testnet.Site, error) { return site.New(cfg, 1) }})
		if err != nil {
			t.Fatal(err)
		}
		n.Subscribe("load", at)
	}
	var jobs []*grid.Job
	for i, j := range guestJobs {
		jobs = append(jobs, &grid.Job{
			ID: grid.JobID{Hi: uint64(i + 1), Lo: 1}, Home: "home", User: "me", Resources: grid.Resources{Processors: j.processors}, Tasks: 1, Site: "host", Goal: grid.GoalCost,
			Submit: j.at, Estimate: 2 * j.span, Work: grid.WorkOf(2*j.span, 0, rating), Deadline: grid.Never, Budget: grid.NoBudget, RunTime: j.span,
		})
	}
	n.Feed(&guestSource{append([]*grid.Job(nil), jobs...)})
	if err := n.Run(t.Context(), 14*grid.Hour, nil); err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		v, known := n.Core(1).(*site.Site).Job(job.ID)
		if !known {
			t.Fatalf("job %s is lost", job.ID)
		}
		report = append(report, guestReport(&v))
	}
	return append(report, guestCounts(n.Core(0).(*site.Site)))
}

// The limits of the owner's rules are those of a guest's process; those of others stay.
func TestLimitsOfGuests(t *testing.T) {
	h := &Host{id: "here"}
	h.guests.h = h
	h.guests.limits = map[grid.SiteID]lodger{"there": {Limits: guest.Limits{Memory: 1 << 20, Disk: 5 << 20, Network: guest.Allow}}}
	usual := sandbox.Rule{Walls: true, Limits: sandbox.Limits{Memory: 3 << 20, Disk: 256 << 20}}
	for _, tt := range []struct {
		home    grid.SiteID
		memory  int64
		disk    int64
		network bool
	}{{"here", 3 << 20, 256 << 20, false}, {"there", 2 << 20, 5 << 20, true}, {"elsewhere", 3 << 20, 256 << 20, false}} {
		r := h.guests.narrow(usual, &grid.Task{Job: &grid.Job{Home: tt.home, Resources: grid.Resources{Processors: 2}}})
		if !r.Walls && tt.home != "here" || r.Limits.Memory != tt.memory || r.Limits.Disk != tt.disk || r.Network != tt.network {
			t.Errorf("of %s: %+v", tt.home, r)
		}
	}
}

// TestBansOfHosts: a ban ends what its site has here by the owner's policy, outlives a
// restart, and is lifted.
func TestBansOfHosts(t *testing.T) {
	for _, policy := range []guest.OnBan{guest.Finish, guest.Cancel} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { bansOf(t, policy) })
		})
	}
}

func bansOf(t *testing.T, policy guest.OnBan) {
	memory := &p2p.Memory{}
	cfg := hostConfig(0, t.TempDir(), memory, &timers{})
	cfg.Site.Guests = guest.Config{OnBan: policy}
	host := startHost(t, cfg)
	home := func() *Host {
		other := hostConfig(1, "", memory, &timers{})
		other.Join = host.Addrs()
		return startHost(t, other)
	}()
	defer closeHost(t, home)
	time.Sleep(10 * time.Second)
	submit := func(n uint64, processors int64) grid.JobID {
		job := testJob(home, n, grid.Hour)
		job.Processors, job.Site, job.Goal = processors, host.ID(), grid.GoalCost
		if _, err := submitTo(home, job); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		return job.ID
	}
	runs, waits := submit(1, 3), submit(2, 4)
	var listed []site.GuestView
	if err := host.Do(t.Context(), func(s *site.Site) { listed = s.Guests() }); err != nil || len(listed) != 2 || listed[0].Site != home.ID() {
		t.Fatalf("guests %+v, %v", listed, err)
	}
	ask := func(in func(token uint64) grid.Input) *site.GuestsChanged {
		t.Helper()
		answer, err := host.Ask(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		return answer.(*site.GuestsChanged)
	}
	partner := guest.Partner{Scope: guest.Site, Name: string(home.ID())}
	ban := func(lift bool) *site.GuestsChanged {
		return ask(func(token uint64) grid.Input {
			return &site.BanGuests{Token: token, Ban: guest.Ban{Partner: partner, Since: host.Now(), Until: grid.Never}, Lift: lift}
		})
	}
	// What runs cannot be held, what waits can.
	hold := func(id grid.JobID, change site.GuestChange) error {
		return ask(func(token uint64) grid.Input { return &site.ChangeGuests{Token: token, Change: change, Job: id} }).Err
	}
	if err := hold(runs, site.HoldGuest); !errors.Is(err, site.ErrGuest) {
		t.Errorf("hold what runs: %v", err)
	}
	for _, change := range []site.GuestChange{site.HoldGuest, site.ReleaseGuest, site.HoldGuest} {
		if err := hold(waits, change); err != nil {
			t.Errorf("change %d of what waits: %v", change, err)
		}
	}
	want := map[guest.OnBan]int{guest.Finish: 1, guest.Cancel: 2}[policy]
	if done := ban(false); done.Err != nil || done.Jobs != want {
		t.Errorf("ban: %+v, want %d jobs", done, want)
	}
	time.Sleep(time.Minute)
	states := fmt.Sprint(stateIs(t, home, runs), " ", stateIs(t, home, waits))
	if want := map[guest.OnBan]string{guest.Finish: "awarded refused", guest.Cancel: "failed refused"}[policy]; states != want {
		t.Errorf("jobs are %s, want %s", states, want)
	}
	// The ban outlives the host.
	closeHost(t, host)
	cfg.Executor = func(ended func(*grid.TaskEnded)) (Executor, error) { return &timers{ended: ended}, nil }
	host = startHost(t, cfg)
	defer func() { closeHost(t, host) }()
	time.Sleep(time.Minute)
	if id := submit(3, 1); stateIs(t, home, id) != site.Refused {
		t.Errorf("a job of a banned site is %v", stateIs(t, home, id))
	}
	if done := ban(true); done.Err != nil {
		t.Fatal(done.Err)
	}
	if id := submit(4, 1); stateIs(t, home, id) != site.Awarded {
		t.Errorf("a job of a site that is banned no more is %v", stateIs(t, home, id))
	}
	if done := ban(true); !errors.Is(done.Err, guest.ErrNoBan) {
		t.Errorf("lift a ban twice: %v", done.Err)
	}
}

func stateIs(t *testing.T, h *Host, id grid.JobID) site.State {
	t.Helper()
	v, err := h.view(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return v.State
}
