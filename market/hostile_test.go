package market

import (
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market/keepalive"
)

// hostile is home a, which has just asked b on behalf of job 1, and a place for
// whatever b may answer.
func hostile(t *testing.T) (n *network, a *site, asked *Negotiate) {
	n = newNetwork(t)
	for _, cfg := range []Config{
		{Offer: Offer{Site: "a", Price: 2 * grid.Credit}}, {Offer: Offer{Site: "b", Price: grid.Credit}}, {Offer: Offer{Site: "c", Price: 9 * grid.Credit}},
	} {
		cfg.Resources, cfg.Rating, cfg.Foreign = grid.Resources{Processors: 10}, grid.Rating{Speed: 1000, Bandwidth: 1000}, true
		n.add(cfg, 0)
	}
	job := n.job(1, "a", 1, grid.Hour, grid.GoalCost)
	job.Budget = 2 * grid.Credit
	n.place(job)
	return n, n.sites["a"], n.flight[0].message.(*Negotiate)
}

// fair is the reply that b would give.
func fair(m *Negotiate) *Reply {
	return &Reply{Task: m.Task, Request: m.Request, Hold: 7, HoldSpan: 10 * grid.Second, Price: grid.Credit, Cost: grid.Credit, Finish: grid.Hour}
}

// TestDishonestReply checks that home takes nothing on trust: not the price, not
// the finish, not who answers to what.
func TestDishonestReply(t *testing.T) {
	const slow = grid.Second / 2 // is the answer
	for _, tt := range []struct {
		name   string
		from   grid.SiteID
		change func(*Reply)
		at     grid.SiteID // where the job goes then; empty if home still waits for b
		detail string
	}{
		{"fair", "b", func(*Reply) {}, "b", ""},
		{"dearer than asked", "b", func(r *Reply) { r.Cost = 2 * grid.Credit }, "a", PriceChanged.String()},
		{"after the deadline", "b", func(r *Reply) { r.Start, r.Finish = 3*grid.Hour, 4*grid.Hour }, "a", TooLate.String() + ": could be done in 4h0m0s"},
		{"over at once", "b", func(r *Reply) { r.HoldSpan = 0 }, "a", "its guarantee ended before the job could be sent"},
		{"over since it was asked", "b", func(r *Reply) { r.HoldSpan = slow }, "a", "its guarantee ended before the job could be sent"},
		{"unknown refusal", "b", func(r *Reply) { r.Refusal, r.Hold = 200, 0 }, "a", "refuses for reason 200"},
		{"somebody else", "c", func(*Reply) {}, "", ""},
		{"other request", "b", func(r *Reply) { r.Request++ }, "", ""},
		{"other epoch", "b", func(r *Reply) { r.Task.Epoch++ }, "", ""},
		{"other job", "b", func(r *Reply) { r.Task.Job.Lo++ }, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, a, m := hostile(t)
			r := fair(m)
			tt.change(r)
			n.now += slow
			a.step(&grid.Delivery{From: tt.from, Message: r})
			j := a.jobs[m.Task.Job]
			if j.award.Site != tt.at {
				t.Fatalf("job is at %q, want %q\n%s", j.award.Site, tt.at, n.takeTrace())
			}
			if tt.detail == "" {
				return
			}
			if !contains(n.trace, tt.detail) {
				t.Errorf("no verdict says %q\n%s", tt.detail, n.takeTrace())
			}
		})
	}
}

// TestDishonestCompletion checks that home pays what was agreed at most, and only
// believes the site that has the job.
func TestDishonestCompletion(t *testing.T) {
	n, a, m := hostile(t)
	a.step(&grid.Delivery{From: "b", Message: fair(m)})
	j := a.jobs[m.Task.Job]
	a.step(&grid.Delivery{From: "c", Message: &JobCompletion{Task: m.Task, Cost: 1}})
	a.step(&grid.Delivery{From: "b", Message: &JobCompletion{Task: grid.TaskID{Job: m.Task.Job, Epoch: 9}, Cost: 1}})
	a.step(&grid.Delivery{From: "c", Message: &Acknowledge{Task: m.Task, Of: wire.MarketJobSubmission, Hold: 7, Unknown: true}})
	a.step(&grid.Delivery{From: "b", Message: &Acknowledge{Task: m.Task, Of: wire.MarketJobSubmission, Hold: 8, Unknown: true}})
	if j.state != "awarded" || j.epoch != 1 {
		t.Fatalf("job is %s in epoch %d, want awarded in 1\n%s", j.state, j.epoch, n.takeTrace())
	}
	a.step(&grid.Delivery{From: "b", Message: &JobCompletion{Task: m.Task, Run: 5 * grid.Second, Ago: grid.SpanMax, Cost: grid.CreditsMax}})
	if j.state != "done" || j.result.Cost != 0 || j.result.Start < 0 {
		t.Errorf("job is %s, result %+v; want done at no cost, since no time has passed, no negative instants", j.state, j.result)
	}
}

// TestHomeMetersWhatItPays checks that a job costs no more than the agreed price for as
// long as its site says that it ran, and as it can have run since it left home.
func TestHomeMetersWhatItPays(t *testing.T) {
	for _, tt := range []struct {
		name            string
		away, run       grid.Time
		claimed, charge grid.Credits
	}{
		{"as agreed", 2 * grid.Hour, grid.Hour, grid.Credit, grid.Credit},
		{"less than it might", 2 * grid.Hour, grid.Hour, grid.Credit / 8, grid.Credit / 8},
		{"more than agreed", 2 * grid.Hour, 2 * grid.Hour, 2 * grid.Credit, grid.Credit},
		{"a quarter of an hour for an hour's price", 2 * grid.Hour, grid.Hour / 4, grid.Credit, grid.Credit / 4},
		{"never ran", grid.Hour, 0, grid.Credit, 0},
		{"longer than it was away", grid.Hour / 2, grid.Hour, grid.Credit, grid.Credit/2 + grid.Credit/1000},
		{"clocks that differ a little", grid.Hour - grid.Second, grid.Hour, grid.Credit, grid.Credit},
	} {
		n, a, m := hostile(t)
		a.step(&grid.Delivery{From: "b", Message: fair(m)})
		n.now += tt.away
		a.step(&grid.Delivery{From: "b", Message: &JobCompletion{Task: m.Task, Run: tt.run, Cost: tt.claimed}})
		if j := a.jobs[m.Task.Job]; j.state != "done" || j.result.Cost != tt.charge {
			t.Errorf("%s: job is %s at a cost of %v, want %v", tt.name, j.state, j.result.Cost, tt.charge)
		}
	}
}

// TestDishonestSubmission checks that a guarantee is for the job it was given for
// and for whom it was given.
func TestDishonestSubmission(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   grid.SiteID
		change func(*JobSubmission)
		taken  bool
	}{
		{"honest", "a", func(*JobSubmission) {}, true},
		{"wider", "a", func(m *JobSubmission) { m.Job.Processors = 10 }, false},
		{"longer", "a", func(m *JobSubmission) { m.Job.Work.Instructions *= 2 }, false},
		{"cheaper", "a", func(m *JobSubmission) { m.Cost-- }, false},
		{"other hold", "a", func(m *JobSubmission) { m.Hold++ }, false},
		{"other epoch", "a", func(m *JobSubmission) { m.Epoch++ }, false},
		{"stolen", "c", func(m *JobSubmission) { m.Job.Home = "c" }, false},
		{"forwarded", "c", func(m *JobSubmission) {}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, _, _ := hostile(t)
			n.deliver(0)
			n.deliver(0)
			b := n.sites["b"]
			m := *n.flight[0].message.(*JobSubmission)
			job := *m.Job
			m.Job = &job
			tt.change(&m)
			b.step(&grid.Delivery{From: tt.from, Message: &m})
			if got := len(b.remotes) == 1; got != tt.taken {
				t.Errorf("taken: %v, want %v\n%s", got, tt.taken, n.takeTrace())
			}
		})
	}
}

// TestUnwantedGuest: what the owner's rules are against when a guarantee is asked for, or when the job
// comes, is refused, and no processors stay reserved for it.
func TestUnwantedGuest(t *testing.T) {
	n, _, asked := hostile(t)
	b, rules := n.sites["b"], &house{factor: 1}
	b.agent.UseGuests(rules)
	check := func(what string) {
		t.Helper()
		if held := b.cluster.State(b.clock()).Reserved; held > 0 || len(b.remotes) > 0 {
			t.Errorf("%s: %d processors are reserved, and %d jobs are here", what, held, len(b.remotes))
		}
	}
	rules.until = b.clock() + 1
	b.step(&grid.Delivery{From: "a", Message: asked})
	check("it would run when no guest may")
	n.flight, rules.until = nil, 0
	again := *asked
	again.Request++
	b.step(&grid.Delivery{From: "a", Message: &again})
	guaranteed, ok := n.flight[0].message.(*Reply)
	if !ok || guaranteed.Refusal != Granted {
		t.Fatalf("b says %+v, want a guarantee", n.flight[0].message)
	}
	job := n.sites["a"].jobs[asked.Task.Job].job
	rules.most = -1 // nobody may from now on
	b.step(&grid.Delivery{From: "a", Message: &JobSubmission{
		Job: job, Epoch: 1, Hold: guaranteed.Hold, Price: guaranteed.Price, Cost: guaranteed.Cost, Deadline: grid.Never,
	}})
	check("the owner has changed the rules")
}

// TestDeadlineIsASpan: sites whose clocks differ mean the same instant by a job's deadline.
func TestDeadlineIsASpan(t *testing.T) {
	n := newNetwork(t)
	for _, cfg := range []Config{{Offer: Offer{Site: "a", Price: 2 * grid.Credit}}, {Offer: Offer{Site: "b", Price: grid.Credit}}} {
		cfg.Resources, cfg.Rating, cfg.Foreign = grid.Resources{Processors: 10}, grid.Rating{Speed: 1000, Bandwidth: 1000}, true
		n.add(cfg, map[grid.SiteID]grid.Time{"b": 50 * grid.Hour}[cfg.Site])
	}
	job := n.job(1, "a", 1, grid.Hour, grid.GoalCost)
	job.Deadline = n.now + 3*grid.Hour
	n.place(job)
	n.deliverAll()
	b := n.sites["b"]
	r := b.remotes[job.ID]
	if r == nil {
		t.Fatalf("b did not take the job\n%s", n.takeTrace())
	}
	if left := r.job.Deadline - b.clock(); left > 3*grid.Hour || left < 3*grid.Hour-grid.Minute {
		t.Errorf("the job has %v left at b, want 3 h", left)
	}
}

// TestHoldsBounded checks that one peer cannot take more than its share, whatever
// it sends, and that nothing is left when its guarantees have ended.
func TestHoldsBounded(t *testing.T) {
	n := newNetwork(t)
	n.silent = true
	b := n.add(Config{
		Offer: Offer{
			Site: "b", Resources: grid.Resources{Processors: 100}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
			Foreign: true,
		},
		HoldsPerPeer: 5,
	}, 0)
	n.add(Config{Offer: Offer{Site: "a", Resources: grid.Resources{Processors: 1}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000}}}, 0)
	ask := func(number uint64, processors int64) {
		b.step(&grid.Delivery{From: "a", Message: &Negotiate{
			Task: grid.TaskID{Job: jobID(number), Epoch: 1}, Request: number, Validity: grid.SpanMax, Processors: processors,
			Work: grid.Work{Instructions: 1000}, Deadline: grid.Never, CostMax: grid.CreditsMax,
		}})
	}
	for i := range uint64(100) {
		ask(i+1, 10)
		if len(b.agent.provider.admission.holds) > 5 {
			t.Fatalf("%d holds for one peer, at most 5", len(b.agent.provider.admission.holds))
		}
	}
	n.now += 10 * grid.Second
	b.step(grid.Tick{})
	if len(b.agent.provider.admission.holds) != 0 || b.cluster.State(b.clock()).Reserved != 0 {
		t.Fatalf("%d holds are left", len(b.agent.provider.admission.holds))
	}
	ask(200, 90) // the first may be as wide as it likes
	ask(201, 1)
	if len(b.agent.provider.admission.holds) != 1 {
		t.Errorf("%d holds, want 1: the second one would reach more than half of the site", len(b.agent.provider.admission.holds))
	}
}

// TestSquattersShare checks that many who ask for guarantees and take none up keep half of
// a site free for who does, and that a lonely one does not keep all of it for long.
func TestSquattersShare(t *testing.T) {
	n, a, asked := hostile(t)
	n.deliverAll()
	b := n.sites["b"]
	if len(b.remotes) != 1 {
		t.Fatal("b did not take the job")
	}
	ask := func(from grid.SiteID, number uint64, processors int64) (held int64) {
		b.step(&grid.Delivery{From: from, Message: &Negotiate{
			Task: grid.TaskID{Job: jobID(number), Epoch: 1}, Request: number, Validity: grid.SpanMax, Processors: processors,
			Work: asked.Work, Deadline: grid.Never, CostMax: grid.CreditsMax,
		}})
		for _, h := range b.agent.provider.admission.holds {
			held += h.processors
		}
		return held
	}
	number := uint64(1000)
	for round := range 5 {
		for i := range 20 {
			number++
			if held := ask(grid.SiteID(rune('A'+i)), number, 1); held > 5 {
				t.Fatalf("round %d: %d of 10 processors are held for sites that take nothing up", round, held)
			}
		}
		n.now += 10 * grid.Second
		b.step(grid.Tick{})
	}
	for i := range 20 {
		number++
		ask(grid.SiteID(rune('A'+i)), number, 1)
	}
	number++
	if ask(a.cfg.Site, number, 4); b.agent.provider.admission.holds[jobID(number)].start != b.clock() {
		t.Error("a site that takes its guarantees up has to wait for those who do not")
	}
	n.now += 10 * grid.Second
	b.step(grid.Tick{})
	if held := ask("A", number+1, 8); held != 0 {
		t.Errorf("%d processors are held at once for a site that let a guarantee stand", held)
	}
	if held := ask("Z", number+2, 8); held != 8 {
		t.Errorf("%d processors are held for a new site that is the only one, want 8", held)
	}
}

// TestMemoryBounded checks that peers cannot grow what a site remembers of them.
func TestMemoryBounded(t *testing.T) {
	var m Memory
	keep := m.at("kept")
	keep.holds = 1
	for i := range 3 * sitesMax {
		m.Report(grid.SiteID(rune(0x4e00+i)), Load{}, 0, 0)
		if len(m.sites) > sitesMax || m.size != len(m.sites) {
			t.Fatalf("%d sites remembered, counted as %d, at most %d", len(m.sites), m.size, sitesMax)
		}
	}
	if m.find("kept") != keep {
		t.Error("a site with a hold was forgotten")
	}
	if m.find(grid.SiteID(rune(0x4e00+3*sitesMax-1))) == nil || m.find(grid.SiteID(rune(0x4e00))) != nil {
		t.Error("not the one unused for longest was forgotten")
	}
	count := 0
	for e := m.newest; count <= m.size; e = e.older {
		count++
		if e.older == m.newest {
			break
		}
	}
	if count != m.size {
		t.Errorf("ring of %d, want %d", count, m.size)
	}
}

// TestPlacementsBounded checks that the site itself cannot overload its agent.
func TestPlacementsBounded(t *testing.T) {
	n := newNetwork(t)
	n.late = true
	a := n.add(Config{Offer: Offer{Site: "a", Resources: grid.Resources{Processors: 1}, Rating: grid.Rating{Speed: 1, Bandwidth: 1}}, PlacementsMax: 2}, 0)
	for i := range uint64(3) {
		n.place(n.job(i+1, "a", 1, grid.Hour, grid.GoalCost))
	}
	if len(a.agent.broker.placing) != 2 || a.jobs[jobID(3)].state != "refused" {
		t.Errorf("%d placements, third job is %s; want 2, refused", len(a.agent.broker.placing), a.jobs[jobID(3)].state)
	}
}

// TestHomeOutlastsExecution checks the two ends of an award against each other:
// however late within its hold a job arrives, the executing site must end it
// before home takes it for gone.
func TestHomeOutlastsExecution(t *testing.T) {
	for _, late := range []grid.Time{0, grid.Second, 4 * grid.Minute, 19 * grid.Minute} {
		t.Run(late.String(), func(t *testing.T) {
			n := newNetwork(t)
			for _, cfg := range []Config{{Offer: Offer{Site: "a", Price: 2 * grid.Credit}}, {Offer: Offer{Site: "b", Price: grid.Credit}, HoldSpan: 20 * grid.Minute}} {
				cfg.Resources, cfg.Rating, cfg.Foreign = grid.Resources{Processors: 10}, grid.Rating{Speed: 1000, Bandwidth: 1000}, true
				n.add(cfg, grid.Time(len(n.order))*grid.Hour)
			}
			job := n.job(1, "a", 1, grid.Hour, grid.GoalCost)
			job.RunTime = job.Estimate
			n.place(job)
			n.deliver(0)
			n.deliver(0)
			submission := n.flight[0]
			n.flight = nil
			n.advance(late, false)
			n.hand(submission)
			a, b := n.sites["a"], n.sites["b"]
			if len(b.remotes) != 1 {
				t.Fatal("b did not take the job")
			}
			home := a.jobs[job.ID].award.Until - a.offset
			there := b.remotes[job.ID].award.Until - b.offset
			if there >= home {
				t.Errorf("b may run it until %v, home takes it for gone at %v", there-n.now, home-n.now)
			}
		})
	}
}

// TestClockSetBack checks that a site whose clock went back is not taken for a
// crowd of late copies.
func TestClockSetBack(t *testing.T) {
	n, a, _ := hostile(t)
	n.deliverAll()
	for _, back := range []grid.Time{grid.Minute, grid.Hour} {
		n.now += grid.Second
		a.offset -= back
		a.crash()
		a.restart()
		n.place(n.job(uint64(back), "a", 1, grid.Hour, grid.GoalCost))
		n.deliverAll()
		got := a.jobs[jobID(uint64(back))].award.Site == "b"
		if want := back > copyLife; got != want {
			t.Errorf("clock set back by %v: b answers %v, want %v", back, got, want)
		}
	}
}

// contains reports whether one of the lines ends in text.
func contains(lines []string, text string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, text) })
}

// TestResultOfWhatRuns: a site that says that it has a result, of a job that goes on here, says nothing.
func TestResultOfWhatRuns(t *testing.T) {
	n, _, asked := hostile(t)
	n.deliverAll()
	b := n.sites["b"]
	b.step(&grid.Delivery{From: "a", Message: &Acknowledge{Task: asked.Task, Of: wire.MarketJobCompletion}})
	if b.agent.provider.jobs[asked.Task.Job] == nil {
		t.Error("the job that runs is forgotten")
	}
}

// TestAwayToTheEnd: home renews no execution that must be over, counts the losses that it knows of whatever
// its site says, and does not send a job once more that is to end.
func TestAwayToTheEnd(t *testing.T) {
	begin := func() (a *site, m *migrated) {
		_, a, asked := hostile(t)
		a.step(&grid.Delivery{From: "b", Message: fair(asked)})
		return a, a.agent.away.jobs[asked.Task.Job]
	}
	var out grid.Outbox
	a, m := begin()
	m.award.Lease, m.award.Until = grid.Hour, a.clock()
	m.heard(a.clock())
	a.agent.away.renew(a.clock(), "b", &keepalive.Renew{Held: []keepalive.Held{{Task: m.task(), Start: grid.Never}}}, &out)
	if r, ok := out.Sends[0].Message.(*keepalive.Renewed); !ok || len(r.Renewed) > 0 {
		t.Errorf("it must be over, and b is told %+v", out.Sends[0].Message)
	}
	a, m = begin()
	m.losses = 3
	out.Reset()
	a.agent.Step(a.clock(), &grid.Delivery{From: "b", Message: &JobCompletion{Task: m.task(), Abandoned: true, Losses: 1}}, &out)
	if lost, ok := out.Locals[0].(*Lost); !ok || lost.Losses != 3 {
		t.Errorf("home hears %+v, want 3 losses", out.Locals[0])
	}
	a, m = begin()
	m.phase = cancelling
	out.Reset()
	a.agent.away.callLast(a.clock(), m, &out)
	if _, ok := out.Sends[0].Message.(*Cancel); !ok || len(out.Sends) != 1 {
		t.Errorf("of a job that is to end b is told %+v", out.Sends[0].Message)
	}
}

// TestPriceThatChangesAgain: a site whose price has changed competes with the new one, once.
func TestPriceThatChangesAgain(t *testing.T) {
	n, a, asked := hostile(t)
	times := 1
	for number := asked.Request; ; times++ {
		n.flight = nil
		a.step(&grid.Delivery{From: "b", Message: &Reply{Task: asked.Task, Request: number, Refusal: PriceChanged, Price: grid.Credit, Start: grid.Never, Finish: grid.Never}})
		again := slices.IndexFunc(n.flight, func(f inFlight) bool { return f.to == "b" })
		if again < 0 || times > 3 {
			break
		}
		number = n.flight[again].message.(*Negotiate).Request
	}
	if times != 2 {
		t.Errorf("b was asked %d times, want 2", times)
	}
}
