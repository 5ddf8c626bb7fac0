package chaos

import (
	"maps"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/guest"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// promiseWatch looks for promises that are kept for nobody, or not for as long as others count
// on them:
//
//   - what is held for a component of a job is of an attempt to place it;
//   - a guarantee is of a job that has not come (P-1), and those of one home, if there are
//     several, are on half of the processors at most, unless it heads the site;
//   - a guarantee that its home has given back, or that its site says not to have, is held no more;
//   - a request for processors that is passed on comes to an end;
//   - what a pilot counts as used its tasks have (P-1);
//   - what runs at a site is of a job that the site knows, as soon as it is up (J-3);
//   - home counts on an execution for longer than the site where it is lets it live, which starts
//     none that could be alive then still, if it needs all the time that it has (J-3);
//   - an execution that no word of its home reaches is over before home counts it as dead (J-9);
//   - a job has the same deadline wherever it is;
//   - a job that is to run again has a new epoch, so that what is said of the last one comes too late (J-4);
//   - no job comes whose home the owner of the site has banned;
//   - a job whose user was told that it is to end does not go on at home, nor for long at another
//     site that can be reached (J-7);
//   - who gives a lease back says so until its lender has heard it (P-3).
type promiseWatch struct {
	n       *testnet.Network
	checks  *testnet.Checker
	alive   *aliveWatch
	certain bool                     // few messages get lost, other than where the network is cut
	config  func(at int) site.Config // what a site is told
	turns   int
	came    map[int]grid.Time               // when a site last came up
	told    map[int][]told                  // by site: of its jobs, those whose users were told that they are to end
	ending  map[ending]giving               // what borrowers want to give back
	asked   map[uint64]grid.JobID           // cancels, by token
	ran     map[grid.JobID]runAway          // what runs at home
	away    map[grid.JobID]runAway          // … and elsewhere
	back    map[int]map[guarantee]grid.Time // by site: since when guarantees are wanted no more

	requests map[passing]int32          // how often they may be passed on, as they came
	taken    map[int]map[guarantee]bool // by site: jobs that have come for a guarantee
}

// guarantee names one, by its home and its site's name for it.
type guarantee struct {
	home grid.SiteID
	task grid.TaskID
	hold uint64
}

// passing is a request for processors where it has come.
type passing struct {
	site    grid.SiteID
	subject grid.JobID
}

// told is a user who was told that his job is to end.
type told struct {
	job grid.JobID
	at  grid.Time
}

// runAway is an execution, at its home or elsewhere.
type runAway struct {
	site  int
	epoch uint32
}

// ending names a lease that is to end.
type ending struct {
	borrower int
	number   uint64
}

// giving is a lease that its borrower wants to give back.
type giving struct {
	since grid.Time // both sites have been there
	slow  bool      // it wanted to before: its releases come seldom by now
}

// The bounds of what a promiseWatch waits for.
const (
	promiseTurns = 4                        // it looks at one turn of so many: what is wrong lasts longer
	endSoon      = lingerMost + grid.Second // after which nothing goes on at home that is to end, be it that it lingers
	endAwayMost  = 2 * grid.Minute          // after which another site has heard it, of several times that it is told
	backMost     = 4 * grid.Second          // after which a site has heard what it is told once, if nothing gets lost
	releaseMost  = 40 * grid.Second         // four releases, each after twice the pause of the one before
	seldomMost   = 4 * lease.DefaultTerm    // four that come as seldom as they ever do
	deadlineLate = 15 * grid.Minute         // by which the deadline of a job may be later where it has gone
	certainLoss  = 0.02                     // share of messages that get lost at most, for four in a row not to
)

func watchPromises(n *testnet.Network, c *testnet.Checker, alive *aliveWatch, asked map[uint64]grid.JobID, loss float64, config func(at int) site.Config) *promiseWatch {
	w := &promiseWatch{
		n: n, checks: c, alive: alive, certain: loss <= certainLoss, asked: asked, config: config,
		came: comings(n), told: make(map[int][]told), ending: make(map[ending]giving), ran: make(map[grid.JobID]runAway), away: make(map[grid.JobID]runAway),
		back: make(map[int]map[guarantee]grid.Time), requests: make(map[passing]int32),
		taken: make(map[int]map[guarantee]bool),
	}
	n.Observe(testnet.Observer{Turn: w.turn, Start: w.start, End: w.end, Answer: w.answer, Send: w.send, Event: w.event})
	return w
}

// turn looks at a site.
func (w *promiseWatch) turn(now grid.Time, at int) {
	came, ever := w.came[at]
	fresh := ever && came == now
	if w.turns++; w.turns%promiseTurns != 0 && !fresh && len(w.told[at]) == 0 {
		return
	}
	s, up := scenario.SiteAt(w.n, at)
	if !up {
		return
	}
	w.ends(now, at)
	w.lives(at)
	cores := site.CoresOf(s)
	if cores.Coordinator != nil {
		for l := range cores.Home.Each {
			if l.State == lease.Held && !cores.Coordinator.Has(l.ID) {
				w.checks.Violated("%s holds %d processors for a component of job %s, and does not try to place it", w.n.ID(at), l.Processors, l.Subject)
			}
		}
	}
	for l := range lease.All(cores.Book) {
		if cores.Coordinator == nil {
			break
		}
		if v, divided := w.divided(s, l); divided && !cores.Coordinator.Has(l.ID) {
			w.checks.Violated("%s has %s hold %d processors for a component of job %s, which is %s, and does not try to place it", w.n.ID(at), l.Lender, l.Processors, l.Subject, v.State)
		}
	}
	w.givenBack(now, at, cores.Market)
	for g := range cores.Market.Guarantees {
		if several := w.share(cores.Market.Guarantees, g.Home); several > s.Total()/2 && !w.heads(at, g.Home) {
			w.checks.Violated("%s has given %s several guarantees on %d of its %d processors together", w.n.ID(at), g.Home, several, s.Total())
		}
		if v, there := s.Glance(g.Task.Job); there && v.Epoch == g.Task.Epoch && v.Job.Home == g.Home {
			w.checks.Violated("%s has given %s a guarantee for job %s, epoch %d, and has it, too", w.n.ID(at), g.Home, g.Task.Job, g.Task.Epoch)
		}
	}
	if err := testnet.AuditPilots(w.n, at); err != nil {
		w.checks.Violated("%s: %w", w.n.ID(at), err)
	}
	w.releases(now, at, cores.Book)
	if fresh {
		w.strays(at, s)
		for v := range s.Jobs {
			if v.Job.Home != w.n.ID(at) {
				w.takes(at, guarantee{v.Job.Home, grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}, v.Award.Hold})
			}
		}
	}
}

// event checks that a job which is to run again has another epoch than before.
func (w *promiseWatch) event(_ grid.Time, at int, e *grid.Event) {
	if e.Kind != grid.JobReplaced {
		return
	}
	if s, up := scenario.SiteAt(w.n, at); up {
		if v, there := s.Glance(e.Job.ID); there && v.Epoch <= e.Epoch && !v.State.Terminal() {
			w.checks.Violated("job %s is to run again, %s, with epoch %d, as before", e.Job.ID, v.State, v.Epoch)
		}
	}
}

// takes notes that a job has come for a guarantee, and reports whether that is news.
func (w *promiseWatch) takes(at int, g guarantee) bool {
	if w.taken[at] == nil {
		w.taken[at] = make(map[guarantee]bool)
	}
	news := !w.taken[at][g]
	w.taken[at][g] = true
	return news
}

// comes checks that the owner of a site has not banned the home of a job that comes.
func (w *promiseWatch) comes(now grid.Time, at int, g guarantee) {
	s, up := scenario.SiteAt(w.n, at)
	if !up || !w.takes(at, g) || s.GuestDesk() == nil {
		return
	}
	local := w.n.Clock(at).Local(now)
	if ban := s.GuestDesk().Banned(local, &guest.Who{Site: g.home}); ban != nil && ban.Since < local {
		w.checks.Violated("%s takes job %s of %s, which its owner has banned at %v", w.n.ID(at), g.task.Job, g.home, ban.Since)
	}
}

// send takes what is said of guarantees.
func (w *promiseWatch) send(now grid.Time, from int, to grid.SiteID, m grid.Message) {
	switch m := m.(type) {
	case *market.Cancel:
		site, known := w.n.Index(to)
		if !known || !w.alive.certain {
			return
		}
		if w.back[site] == nil {
			w.back[site] = make(map[guarantee]grid.Time)
		}
		w.back[site][guarantee{w.n.ID(from), m.Task, m.Hold}] = now
	case *lease.Request:
		w.passed(from, to, m)
	case *market.Acknowledge:
		s, up := scenario.SiteAt(w.n, from)
		if up && !m.Unknown && m.Of == wire.MarketJobSubmission {
			w.comes(now, from, guarantee{to, m.Task, m.Hold})
		}
		if !up || !m.Unknown {
			return
		}
		for g := range site.CoresOf(s).Market.Guarantees {
			if (guarantee{g.Home, g.Task, g.Hold}) == (guarantee{to, m.Task, m.Hold}) {
				w.checks.Violated("%s says to %s that it has no guarantee %d for job %s, epoch %d, and has it", w.n.ID(from), to, m.Hold, m.Task.Job, m.Task.Epoch)
			}
		}
	}
}

// passed checks that a request may be passed on less often than as it came.
func (w *promiseWatch) passed(from int, to grid.SiteID, m *lease.Request) {
	if came, known := w.requests[passing{w.n.ID(from), m.Subject}]; known && m.Sink != w.n.ID(from) && m.TTL >= came {
		w.checks.Violated("%s passes a request of %s on to %s, which may pass it on %d times, as often as it might itself (%d)", w.n.ID(from), m.Sink, to, m.TTL, came)
	}
	at := passing{to, m.Subject}
	w.requests[at] = max(w.requests[at], m.TTL)
}

// givenBack looks for guarantees that their homes have given back.
func (w *promiseWatch) givenBack(now grid.Time, at int, agent *market.Agent) {
	back := w.back[at]
	if len(back) == 0 {
		return
	}
	for g := range agent.Guarantees {
		since, there := back[guarantee{g.Home, g.Task, g.Hold}]
		home, _ := w.n.Index(g.Home)
		if there && now-since > backMost && w.alive.calm(since, at) && w.alive.calm(since, home) && w.hears(at, home) {
			w.checks.Violated("%s holds %d processors for job %s of %s, which has given them back at %v", w.n.ID(at), g.Processors, g.Task.Job, g.Home, since)
		}
	}
	maps.DeleteFunc(back, func(_ guarantee, since grid.Time) bool { return now-since > grid.Minute })
}

// divided reports whether a lease is one that is held elsewhere for a component of a job.
func (w *promiseWatch) divided(s *site.Site, l *lease.Lease) (site.View, bool) {
	if l.Lent || l.State != lease.Held {
		return site.View{}, false
	}
	v, there := s.Glance(l.Subject)
	return v, there && v.Job.Coallocate != nil
}

// heads reports whether a site is headed by another, which may have all of it.
func (w *promiseWatch) heads(at int, other grid.SiteID) bool {
	cfg := w.config(at)
	return cfg.Head == other
}

// share returns on how many processors a home has guarantees, if it has several: one alone may
// have all.
func (w *promiseWatch) share(all func(func(market.Guarantee) bool), home grid.SiteID) (processors int64) {
	count := 0
	for g := range all {
		if g.Home == home {
			count++
			processors += g.Processors
		}
	}
	if count < 2 {
		return 0
	}
	return processors
}

// strays looks for what runs at a site that has just come up and is of no job there.
func (w *promiseWatch) strays(at int, s *site.Site) {
	w.n.Executions(at, func(x *testnet.Execution) {
		if x.Squad != nil || x.Pilot.Key != 0 {
			return
		}
		if v, there := s.Glance(x.Job.ID); !there || v.Epoch != x.ID.Epoch || v.State.Terminal() {
			w.checks.Violated("%s is up and lets job %s go on with epoch %d, which it does not know (%t, %s, epoch %d)", w.n.ID(at), x.Job.ID, x.ID.Epoch, there, v.State, v.Epoch)
		}
	})
}

// releases looks for leases that their borrower has wanted to give back for long.
func (w *promiseWatch) releases(now grid.Time, at int, book *lease.Book) {
	if !w.certain {
		return
	}
	for l := range lease.All(book) {
		if l.Lent || l.State != lease.Ending {
			continue
		}
		key := ending{at, l.Number}
		giving, known := w.ending[key]
		since := giving.since
		lender, there := w.n.Index(l.Lender)
		if !known || !there || !w.alive.calm(since, at) || !w.alive.calm(since, lender) || !w.hears(lender, at) || !w.hears(at, lender) {
			giving.since, giving.slow = now, known
			w.ending[key] = giving
			continue
		}
		other, up := scenario.SiteAt(w.n, lender)
		most := releaseMost
		if giving.slow {
			most = seldomMost
		}
		if !up || now-since <= most {
			continue
		}
		if held, lent := site.CoresOf(other).Book.Get(l.ID); lent && held.Lent && held.State != lease.Ending {
			w.checks.Violated("%s has given lease %d back to %s since %v, which does not know", w.n.ID(at), l.Number, l.Lender, since)
		}
	}
}

// hears reports whether a site is up and counts another as a member: it heeds nobody else. To
// one that is revoked connections may have ended before everybody knows.
func (w *promiseWatch) hears(at, other int) bool {
	s, up := scenario.SiteAt(w.n, at)
	return up && !w.alive.roster.out(other) && (s.Roll() == nil || s.Roll().Is(w.n.ID(other)))
}

// answer takes what a user is told who wants a job to end.
func (w *promiseWatch) answer(now grid.Time, at int, a grid.Answer) {
	c, yes := a.Value.(*site.Cancelled)
	id, asked := w.asked[a.Token]
	if yes && asked && c.Err == nil {
		w.told[at] = append(w.told[at], told{id, now})
	}
}

// ends looks for jobs that go on at home.
func (w *promiseWatch) ends(now grid.Time, at int) {
	list := w.told[at]
	if came, ever := w.came[at]; len(list) == 0 || ever && now < came+endSoon {
		return
	}
	left := list[:0]
	for _, t := range list {
		x, runs := w.ran[t.job]
		switch {
		case now < t.at+endSoon:
			left = append(left, t)
		case runs && x.site == at:
			w.checks.Violated("job %s goes on at home with epoch %d, and its user was told at %v that it is to end", t.job, x.epoch, t.at)
		case w.certain:
			left = append(left, w.endsAway(now, at, t)...)
		}
	}
	if len(left) == 0 {
		delete(w.told, at)
	} else {
		w.told[at] = left
	}
}

// endsAway looks for a job that goes on at another site, and returns until when that is looked at
// once more: both sites have to be there all the while.
func (w *promiseWatch) endsAway(now grid.Time, home int, t told) []told {
	x, runs := w.away[t.job]
	if !runs {
		return nil
	}
	if !w.alive.calm(t.at, home) || !w.alive.calm(t.at, x.site) || !w.hears(home, x.site) || !w.hears(x.site, home) {
		t.at = now
	} else if now-t.at > endAwayMost {
		w.checks.Violated("job %s goes on at %s with epoch %d, and its user was told before %v that it is to end", t.job, w.n.ID(x.site), x.epoch, t.at)
	}
	return []told{t}
}

// start compares how long home and the executing site count on an execution.
func (w *promiseWatch) start(_ grid.Time, x *testnet.Execution) {
	if x.Squad != nil || x.Pilot.Key != 0 {
		return
	}
	home, known := w.n.Index(x.Job.Home)
	switch {
	case !known:
	case home == x.Site:
		w.ran[x.Job.ID] = runAway{x.Site, x.ID.Epoch}
	default:
		w.away[x.Job.ID] = runAway{x.Site, x.ID.Epoch}
		w.until(x, home)
	}
}

func (w *promiseWatch) end(_ grid.Time, x *testnet.Execution) {
	if w.ran[x.Job.ID].epoch == x.ID.Epoch {
		delete(w.ran, x.Job.ID)
	}
	if x.Squad == nil && w.away[x.Job.ID] == (runAway{x.Site, x.ID.Epoch}) {
		delete(w.away, x.Job.ID)
	}
}

// until compares the instants from which on home and the executing site count an execution as
// impossible with each other, and with when it ends at the latest.
func (w *promiseWatch) until(x *testnet.Execution, home int) {
	there, up := scenario.SiteAt(w.n, x.Site)
	if !up || w.alive.clocks.task(x.ID) {
		return
	}
	its, runs := there.Glance(x.Job.ID)
	if !runs || its.Epoch != x.ID.Epoch {
		return
	}
	clock, limit := w.n.Clock(x.Site), market.Limit(x.Job.SeenFrom(w.n.ID(x.Site)), w.config(x.Site).Rating)
	if end := clock.Local(x.Start).Add(limit); end > its.Award.Until && !w.alive.clocks.set(x.Site) {
		w.checks.Violated("job %s starts at %s with epoch %d and may go on until %v there, and must be over at %v", x.Job.ID, w.n.ID(x.Site), x.ID.Epoch, end, its.Award.Until)
	}
	at, up := scenario.SiteAt(w.n, home)
	if !up {
		return
	}
	mine, known := at.Glance(x.Job.ID)
	if !known || mine.Epoch != x.ID.Epoch || mine.Award.Site != w.n.ID(x.Site) || mine.State.Terminal() {
		return
	}
	w.deadline(x, home, mine.Job.Deadline)
	w.dies(x, home, at)
	if m, i := mine.Award.Until, its.Award.Until; m != grid.Never && (i == grid.Never || w.n.Clock(home).True(m) < w.n.Clock(x.Site).True(i)) {
		w.checks.Violated("job %s may live at %s until %v with epoch %d, and home counts it as dead from %v on", x.Job.ID, w.n.ID(x.Site), w.n.Clock(x.Site).True(i), x.ID.Epoch, w.n.Clock(home).True(m))
	}
}

// lives looks at the executions of other sites' jobs at a site, whose leases are longer by now.
func (w *promiseWatch) lives(at int) {
	if w.alive.clocks.set(at) {
		return
	}
	w.n.Executions(at, func(x *testnet.Execution) {
		home, known := w.n.Index(x.Job.Home)
		if !known || home == at || x.Squad != nil || x.Pilot.Key != 0 || w.alive.clocks.set(home) {
			return
		}
		if s, up := scenario.SiteAt(w.n, home); up {
			w.dies(x, home, s)
		}
	})
}

// dies compares until when an execution goes on by itself with from when on its home counts it as dead.
func (w *promiseWatch) dies(x *testnet.Execution, home int, s *site.Site) {
	task, _, dead, away := market.DeadFrom(site.CoresOf(s).Market, x.Job.ID)
	if !away || task != x.ID || dead == grid.Never {
		return
	}
	if from := w.n.Clock(home).True(dead); x.End > from {
		w.checks.Violated("job %s may be alive at %s until %v with epoch %d if no word of home reaches it, and home counts it as dead from %v on", x.Job.ID, w.n.ID(x.Site), x.End, x.ID.Epoch, from)
	}
}

// deadline compares a job's deadline where it runs with that at its home, which says how much is left:
// clocks do not go alike, and messages take their time. What a head packs has none for its members.
func (w *promiseWatch) deadline(x *testnet.Execution, home int, at grid.Time) {
	its := x.Job.Deadline
	if w.alive.clocks.set(home) || w.alive.clocks.set(x.Site) || w.heads(x.Site, x.Job.Home) {
		return
	}
	if its == grid.Never || at == grid.Never {
		if its != at {
			w.checks.Violated("job %s has deadline %v at %s, and %v at home", x.Job.ID, its, w.n.ID(x.Site), at)
		}
		return
	}
	is, was := w.n.Clock(x.Site).True(its), w.n.Clock(home).True(at)
	if off := (was - x.Start) / 100; is < was-max(off, 0)-grid.Minute || is > was+max(off, 0)+deadlineLate {
		w.checks.Violated("job %s has its deadline at %v at %s, and at %v at home", x.Job.ID, is, w.n.ID(x.Site), was)
	}
}
