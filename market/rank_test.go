package market

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/directory"
	"gridnode/grid"
)

// quoteOf is an idle site at its price per processor-hour; change makes it special.
func quoteOf(site string, price int64, change func(*directory.Quote)) directory.Quote {
	q := directory.Quote{
		Site: grid.SiteID(site), Name: site, Resources: grid.Resources{Processors: 10}, Rating: grid.Rating{Speed: 1000, Bandwidth: 1000},
		Price: grid.Price(price) * grid.Credit, Foreign: true, Free: 10, Widest: 10, Sequence: 1,
	}
	if change != nil {
		change(&q)
	}
	return q
}

// hourJob takes one processor for an hour at a site of speed 1000.
func hourJob(change func(*grid.Job)) *grid.Job {
	j := &grid.Job{
		ID: jobID(1), Home: "home", Resources: grid.Resources{Processors: 1}, Tasks: 1, Estimate: grid.Hour,
		Work: grid.Work{Instructions: int64(grid.Hour) * 1000}, Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.GoalCost,
	}
	if change != nil {
		change(j)
	}
	return j
}

// module makes a job one.
func module(j *grid.Job) { j.Command = &grid.Command{Module: &grid.Module{Size: 1}} }

func TestRankOutcomes(t *testing.T) {
	const now = 100 * grid.Hour
	var memory Memory
	memory.Unreachable("x", quoteOf("x", 2, nil).Sequence, now)
	for _, tt := range []struct {
		name    string
		job     func(*grid.Job)
		quote   func(*directory.Quote)
		at      func(*Circumstances)
		outcome Outcome
		finish  grid.Time // from now
		detail  string
	}{
		{"good", nil, nil, nil, OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"twice as fast", nil, func(q *directory.Quote) { q.Speed = 2000 }, nil, OutcomeChosen, grid.Hour / 2, "costs 1, done in 30m0s"},
		{"too narrow", func(j *grid.Job) { j.Processors = 11 }, nil, nil, OutcomeTooNarrow, grid.Never - now, "has 10 processors, the job needs 11"},
		{"too little memory", func(j *grid.Job) { j.Memory = 2 }, func(q *directory.Quote) { q.Memory = 1 }, nil, OutcomeTooLittle, grid.Never - now,
			"has 1 bytes per processor, the job needs 2"},
		{"memory unspecified", func(j *grid.Job) { j.Memory = 2 }, nil, nil, OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"just in time", func(j *grid.Job) { j.Deadline = now + grid.Hour }, nil, nil, OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"just too late", func(j *grid.Job) { j.Deadline = now + grid.Hour - grid.Second }, nil, nil, OutcomeTooLate, grid.Hour,
			"would need 1h0m0s even if idle, 1s too long"},
		{"too late by what messages take", func(j *grid.Job) { j.Deadline = now + grid.Hour }, nil, func(c *Circumstances) { c.Allowance = 1 },
			OutcomeTooLate, grid.Hour, "would need 1h0m0s even if idle, 0s too long"},
		{"loaded", func(j *grid.Job) { j.Deadline = now + 3*grid.Hour/2 },
			func(q *directory.Quote) { q.Processors, q.Free, q.Widest, q.Wait = 16, 0, 0, 10*grid.Hour }, nil, OutcomeLoaded, 7 * grid.Hour / 2,
			"would be done in 3h30m0s, 2h0m0s past the deadline"}, // √(1/16) of 10 h
		{"waits its share", func(j *grid.Job) { j.Processors = 6 },
			func(q *directory.Quote) { q.Processors, q.Free, q.Widest, q.Wait = 18, 5, 2, 12*grid.Hour }, nil, OutcomeChosen, 7 * grid.Hour, "costs 12, done in 7h0m0s"}, // √(4/16) of 12 h
		{"too dear", func(j *grid.Job) { j.Budget = 2*grid.Credit - 1 }, nil, nil, OutcomeTooDear, grid.Hour, "costs 2, the budget is 1.999999"},
		{"just cheap enough", func(j *grid.Job) { j.Budget = 2 * grid.Credit }, nil, nil, OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"paper's OFC has no budget", func(j *grid.Job) { j.Budget = 0 }, nil, func(c *Circumstances) { c.Policy = PlacementPaper },
			OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"paper's OFT has one", func(j *grid.Job) { j.Budget, j.Goal = 0, grid.GoalTime }, nil, func(c *Circumstances) { c.Policy = PlacementPaper },
			OutcomeTooDear, grid.Hour, "costs 2, the budget is 0"},
		{"no foreign jobs", nil, func(q *directory.Quote) { q.Foreign = false }, nil, OutcomeNoForeign, grid.Hour, "runs no jobs of other sites"},
		{"no modules", module, nil, nil, OutcomeNoModules, grid.Hour, "runs no modules of other sites"},
		{"nothing but modules", module, func(q *directory.Quote) { q.Foreign, q.Modules = false, true }, nil, OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"but its own", nil, func(q *directory.Quote) { q.Foreign = false }, func(c *Circumstances) { c.Home, c.HomeStart = "x", now },
			OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"home knows its start", nil, nil, func(c *Circumstances) { c.Home, c.HomeStart = "x", now+grid.Minute },
			OutcomeChosen, grid.Hour + grid.Minute, "costs 2, done in 1h1m0s"},
		{"other site named", func(j *grid.Job) { j.Site = "y" }, nil, nil, OutcomeNotNamed, grid.Hour, "the job is to run at another site"},
		{"home only", func(j *grid.Job) { j.Goal = grid.GoalLocal }, nil, nil, OutcomeNotNamed, grid.Hour, "the job is to run at home"},
		{"refused", nil, nil, func(c *Circumstances) {
			c.Negotiations = []Negotiation{{Site: "x", Outcome: OutcomeRefused, Refusal: Busy}}
		},
			OutcomeRefused, grid.Hour, "is too busy to promise anything"},
		{"refused with its best", nil, nil,
			func(c *Circumstances) {
				c.Negotiations = []Negotiation{{Site: "x", Outcome: OutcomeRefused, Refusal: TooLate, Finish: now + 5*grid.Hour}}
			},
			OutcomeRefused, 5 * grid.Hour, "cannot finish it in time: could be done in 5h0m0s"},
		{"promised", func(j *grid.Job) { j.Deadline = now + 2*grid.Hour }, nil,
			func(c *Circumstances) {
				c.Allowance, c.Negotiations = grid.Hour, []Negotiation{{Site: "x", Outcome: OutcomeCandidate, Finish: now + 2*grid.Hour, Cost: 1}}
			},
			OutcomeChosen, 2 * grid.Hour, "costs 0.000001, done in 2h0m0s"},
		{"expired", nil, nil, func(c *Circumstances) { c.Negotiations = []Negotiation{{Site: "x", Outcome: OutcomeExpired}} },
			OutcomeExpired, grid.Hour, "its guarantee ended before the job could be sent"},
		{"unreachable", nil, nil, func(c *Circumstances) { c.Memory = &memory }, OutcomeUnreachable, grid.Hour, "did not answer"},
		{"there again", nil, func(q *directory.Quote) { q.Sequence++ }, func(c *Circumstances) { c.Memory = &memory }, OutcomeChosen, grid.Hour, "costs 2, done in 1h0m0s"},
		{"long ago", nil, nil, func(c *Circumstances) { c.Memory, c.Now = &memory, now+shunSpan }, OutcomeChosen, grid.Hour + shunSpan, "costs 2, done in 1h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := Circumstances{Now: now, Home: "home"}
			if tt.at != nil {
				tt.at(&at)
			}
			v := Rank(hourJob(tt.job), []directory.Quote{quoteOf("x", 2, tt.quote)}, at)[0]
			if v.Outcome != tt.outcome || v.Finish-now != tt.finish || v.Detail != tt.detail {
				t.Errorf("got %s, %v, %q\nwant %s, %v, %q", v.Outcome, v.Finish-now, v.Detail, tt.outcome, tt.finish, tt.detail)
			}
		})
	}
}

func TestRankOrder(t *testing.T) {
	fast := func(speed int64) func(*directory.Quote) { return func(q *directory.Quote) { q.Speed = speed } }
	late := func(q *directory.Quote) { q.Widest, q.Wait = 0, 10*grid.Hour }
	for _, tt := range []struct {
		name      string
		goal      grid.Goal
		placement Placement
		quotes    []directory.Quote
		want      []grid.SiteID
	}{
		// b costs 3·(1000/3000) = 1 in all, a 2.
		{"lowest cost, not price", grid.GoalCost, PlacementCoordinated, []directory.Quote{quoteOf("a", 2, nil), quoteOf("b", 3, fast(3000))}, []grid.SiteID{"b", "a"}},
		{"paper's lowest price", grid.GoalCost, PlacementPaper, []directory.Quote{quoteOf("b", 3, fast(3000)), quoteOf("a", 2, nil)}, []grid.SiteID{"a", "b"}},
		{"equal cost, earlier finish", grid.GoalCost, PlacementCoordinated, []directory.Quote{quoteOf("a", 2, late), quoteOf("b", 2, nil)}, []grid.SiteID{"b", "a"}},
		{"equal cost and finish, lower ID", grid.GoalCost, PlacementCoordinated, []directory.Quote{quoteOf("b", 2, nil), quoteOf("a", 2, nil)}, []grid.SiteID{"a", "b"}},
		{"equal cost, home", grid.GoalCost, PlacementCoordinated, []directory.Quote{quoteOf("a", 2, nil), quoteOf("home", 2, nil)}, []grid.SiteID{"home", "a"}},
		{"earliest finish, not speed", grid.GoalTime, PlacementCoordinated,
			[]directory.Quote{quoteOf("a", 2, func(q *directory.Quote) { q.Speed = 2000; late(q) }), quoteOf("b", 2, nil)}, []grid.SiteID{"b", "a"}},
		{"paper's highest speed", grid.GoalTime, PlacementPaper,
			[]directory.Quote{quoteOf("b", 2, nil), quoteOf("a", 2, func(q *directory.Quote) { q.Speed = 2000; late(q) })}, []grid.SiteID{"a", "b"}},
		{"equal finish, lower cost", grid.GoalTime, PlacementCoordinated, []directory.Quote{quoteOf("a", 3, nil), quoteOf("b", 2, nil)}, []grid.SiteID{"b", "a"}},
		{"home, then speed", grid.GoalSpill, PlacementCoordinated,
			[]directory.Quote{quoteOf("a", 1, fast(1500)), quoteOf("b", 1, fast(3000)), quoteOf("home", 9, fast(100))}, []grid.SiteID{"home", "b", "a"}},
		{"those that would not do come last", grid.GoalCost, PlacementCoordinated,
			[]directory.Quote{quoteOf("a", 1, func(q *directory.Quote) { q.Foreign = false }), quoteOf("b", 5, nil)}, []grid.SiteID{"b", "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := Circumstances{Home: "home", Policy: tt.placement}
			var got []grid.SiteID
			for _, v := range Rank(hourJob(func(j *grid.Job) { j.Goal = tt.goal }), tt.quotes, at) {
				got = append(got, v.Site)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("order %v, want %v", got, tt.want)
			}
		})
	}
}

// TestRankSubtractsOwn checks that what home is asking a site for counts as taken,
// until a reply or a newer quote says what is really free.
func TestRankSubtractsOwn(t *testing.T) {
	var m Memory
	quote := quoteOf("a", 1, func(q *directory.Quote) { q.Wait = grid.Hour })
	job := hourJob(func(j *grid.Job) { j.Processors = 4 })
	finish := func() grid.Time {
		return Rank(job, []directory.Quote{quote}, Circumstances{Memory: &m})[0].Finish
	}
	if got := finish(); got != grid.Hour {
		t.Errorf("idle: finish %v, want 1h", got)
	}
	m.Asking("a", 8, grid.Hour)
	if got := finish(); got <= grid.Hour {
		t.Errorf("8 of 10 processors asked for: finish %v, want later than 1h", got)
	}
	m.Answered("a", 8, grid.Hour)
	m.Report("a", Load{Free: 2, Widest: 2, Wait: 8 * grid.Hour, Sequence: 1}, 0, 0)
	if got := finish(); got != 5*grid.Hour {
		t.Errorf("2 of 10 free by its reply: finish %v, want 1h and √(2/8) of 8h", got)
	}
	m.Refused("a", 4, 6*grid.Hour)
	if got := finish(); got != 7*grid.Hour {
		t.Errorf("after a refusal that named 6h as the best start: finish %v, want 7h", got)
	}
	quote.Sequence = 2
	if got := finish(); got != grid.Hour {
		t.Errorf("a newer quote says it is idle: finish %v, want 1h", got)
	}
}

// TestRankHearsGossip checks that of quote, reply and load report the newest counts,
// and that what is being asked for is taken from it.
func TestRankHearsGossip(t *testing.T) {
	const now = 100 * grid.Hour
	quote := quoteOf("a", 1, func(q *directory.Quote) { q.Sequence, q.Issued = 5, now-grid.Minute })
	full := directory.Load{Site: "a", Wait: 8 * grid.Hour, Sequence: 7, Issued: now}
	job := hourJob(func(j *grid.Job) { j.Processors = 10 })
	reply := func(gossip uint64) func(*Memory) {
		return func(m *Memory) { m.Report("a", Load{Wait: 2 * grid.Hour, Sequence: 5}, gossip, now) }
	}
	for _, tt := range []struct {
		name   string
		load   func(*directory.Load)
		memory func(*Memory)
		wait   grid.Time
	}{
		{"report newer than the quote", nil, nil, 8 * grid.Hour},
		{"report older than the quote", func(l *directory.Load) { l.Issued = quote.Issued - 1 }, nil, 0},
		{"older report: the wait has passed in part", func(l *directory.Load) { l.Issued = now - grid.Minute/2 }, nil, 8*grid.Hour - grid.Minute/2},
		{"report from a clock that is ahead", func(l *directory.Load) { l.Issued = now + grid.Minute/2 }, nil, 8 * grid.Hour},
		{"reply without a report", func(l *directory.Load) { l.Issued = 0 }, reply(0), 2 * grid.Hour},
		{"reply after the report", nil, reply(7), 2 * grid.Hour},
		{"report after the reply", nil, reply(6), 8 * grid.Hour},
		{"report of room, less what is asked for", func(l *directory.Load) { l.Free, l.Widest, l.Wait = 10, 10, 0 },
			func(m *Memory) { m.Asking("a", 10, 10*grid.Hour-grid.Second) }, 10 * grid.Hour},
		{"a refusal's lesson stays while there is no room", nil, func(m *Memory) { reply(6)(m); m.Refused("a", 10, now+9*grid.Hour) }, 9 * grid.Hour},
		{"and goes when there is", func(l *directory.Load) { l.Free, l.Widest, l.Wait = 10, 10, 0 },
			func(m *Memory) { reply(6)(m); m.Refused("a", 10, now+9*grid.Hour) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			load, memory := full, Memory{}
			if tt.load != nil {
				tt.load(&load)
			}
			if tt.memory != nil {
				tt.memory(&memory)
			}
			gossip := func(site grid.SiteID) (directory.Load, bool) { return load, site == "a" }
			v := Rank(job, []directory.Quote{quote}, Circumstances{Now: now, Home: "home", Memory: &memory, Gossip: gossip})[0]
			if got := v.Finish - now - grid.Hour; got != tt.wait {
				t.Errorf("waits %v, want %v", got, tt.wait)
			}
		})
	}
}

// TestRootOf compares rootOf with its definition.
func TestRootOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Int64Range(1, processorsMax).Draw(t, "whole")
		part := rapid.Int64Range(1, whole).Draw(t, "part")
		n, r := uint64(part)<<38/uint64(whole), uint64(rootOf(part, whole))
		if r*r > n || (r+1)*(r+1) <= n {
			t.Fatalf("root of %d/%d is %d of 2^19", part, whole, r)
		}
	})
}

// TestRankIsTheBest compares Rank with the definition: no candidate is better than
// the chosen one, nothing else would do, and nobody is forgotten.
func TestRankIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name) }
		job := hourJob(func(j *grid.Job) {
			j.Processors, j.Goal = 1+small("processors", 8), grid.Goal(small("goal", 3))
			if small("has deadline", 1) == 1 {
				j.Deadline = grid.Time(small("deadline", 5)) * grid.Hour
			}
			if small("has budget", 1) == 1 {
				j.Budget = grid.Credits(small("budget", 20)) * grid.Credit
			}
		})
		var quotes []directory.Quote
		for i := range small("sites", 8) {
			quotes = append(quotes, quoteOf(fmt.Sprint(i), small("price", 4), func(q *directory.Quote) {
				q.Processors, q.Speed = 1+small("width", 9), 500*(1+small("speed", 3))
				q.Widest = small("widest", q.Processors)
				q.Wait, q.Foreign = grid.Time(small("wait", 6))*grid.Hour, small("foreign", 3) > 0
			}))
		}
		at := Circumstances{Home: "0", HomeStart: grid.Time(small("home start", 3)) * grid.Hour}
		verdicts := Rank(job, quotes, at)
		if len(verdicts) != len(quotes) {
			t.Fatalf("%d verdicts on %d quotes", len(verdicts), len(quotes))
		}
		chosen := -1
		for i, q := range quotes {
			v := verdicts[slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Site == q.Site })]
			home := q.Site == at.Home
			fits := job.Processors <= q.Processors && (home || q.Foreign && job.Goal != grid.GoalLocal) &&
				v.Finish <= job.Deadline && (job.Budget < 0 || job.CostAt(q.Rating, q.Price, q.Cost) <= job.Budget)
			if got := v.Outcome == OutcomeChosen || v.Outcome == OutcomeCandidate; got != fits {
				t.Fatalf("site %s: outcome %s, would do: %v", q.Site, v.Outcome, fits)
			}
			if v.Outcome == OutcomeChosen {
				chosen = i
			}
		}
		for i, q := range quotes {
			v := verdicts[slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Site == q.Site })]
			if v.Outcome != OutcomeCandidate {
				continue
			}
			if chosen < 0 {
				t.Fatal("there are candidates and none is chosen")
			}
			best := verdicts[0]
			switch {
			case job.Goal == grid.GoalCost && v.Cost < best.Cost,
				job.Goal == grid.GoalTime && v.Finish < best.Finish,
				job.Goal == grid.GoalSpill && (q.Site == at.Home || quotes[chosen].Site != at.Home && q.Speed > quotes[chosen].Speed):
				t.Fatalf("chosen %+v, but %d is better: %+v", best, i, v)
			}
		}
	})
}

// TestBestThatCouldBeHad checks what a refusal tells the user.
func TestBestThatCouldBeHad(t *testing.T) {
	quotes := []directory.Quote{
		quoteOf("cheap", 1, func(q *directory.Quote) { q.Widest, q.Wait = 0, 10*grid.Hour }),
		quoteOf("fast", 9, func(q *directory.Quote) { q.Speed = 2000 }),
		quoteOf("narrow", 0, func(q *directory.Quote) { q.Processors, q.Widest = 0, 0 }),
		quoteOf("closed", 0, func(q *directory.Quote) { q.Foreign = false }),
	}
	verdicts := Rank(hourJob(func(j *grid.Job) { j.Deadline, j.Budget = 1, 0 }), quotes, Circumstances{})
	if got := Earliest(verdicts); got.Site != "fast" || got.Finish != grid.Hour/2 {
		t.Errorf("earliest %+v, want fast in half an hour", got)
	}
	if got := Cheapest(verdicts); got.Site != "cheap" || got.Cost != grid.Credit {
		t.Errorf("cheapest %+v, want cheap for one credit", got)
	}
	if got := Earliest(nil); got.Site != "" {
		t.Errorf("earliest of nothing: %+v", got)
	}
}

// TestFilesAreMoved: a job that brings files takes longer where these have to be brought.
func TestFilesAreMoved(t *testing.T) {
	job := hourJob(func(j *grid.Job) {
		j.Command = &grid.Command{Files: &grid.Files{Size: 1 << 30}}
	})
	finish := func(home grid.SiteID) grid.Time {
		return Rank(job, []directory.Quote{quoteOf("a", 1, nil)}, Circumstances{Memory: new(Memory), Home: home})[0].Finish
	}
	if at, away := finish("a"), finish("b"); at != job.EstimateAt(grid.Rating{Speed: 1000, Bandwidth: 1000}) || away <= at {
		t.Errorf("done after %v at home and after %v elsewhere", at, away)
	}
}
