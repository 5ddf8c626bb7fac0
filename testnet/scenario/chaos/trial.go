package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/market"
	"gridnode/market/keepalive"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos/forge"
	"gridnode/testnet/scenario/chaos/liar"
	"gridnode/testnet/scenario/chaos/word"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// patience is how long after the last fault every job must have ended: the longest
// job, placed anew as often as allowed, and a full queue before it each time.
const patience = 14 * grid.Day

// trial is one run of a script.
type trial struct {
	script *Script
	most   int64                                           // events, after which it is given up; 0: no bound
	tape   *tape                                           // what is said; nil: nobody listens
	wrap   func(id grid.SiteID, s *site.Site) testnet.Site // around each site that is not on tape; nil: nothing

	roster   *roster  // nil: the federation is open
	older    older    // sites that forget
	drawn    []Strike // that happen at given instants
	points   *points
	n        *testnet.Network
	span     grid.Time
	told     Script                // faults, wishes and jobs, as they came
	leases   int                   // wishes for them
	asked    map[uint64]grid.JobID // that users want to end, by token
	forger   *forge.Forger         // what is said that nobody honest says
	accounts *accountWatch         // of banks
	owners   owners
	failed   error // a fault or a wish that is none
}

// errTooLong ends a trial that has had its most events.
var errTooLong = errors.New("no violation so far")

// run performs the script. Its error is ctx's, or a violation.
func (t *trial) run(ctx context.Context) (*measure.Result, error) {
	s := t.script
	faults, err := parseList("faults", s.Faults, intensities)
	if err != nil {
		return nil, err
	}
	uses, err := s.features()
	if err != nil {
		return nil, err
	}
	t.span = s.span()
	if t.roster, err = newRoster(s, uses); err != nil {
		return nil, err
	}
	if t.drawn = s.Strikes; !s.Listed {
		t.drawn = drawStrikes(s.Seed, s.Sites, faults, t.span)
	}
	t.older = olderOf(t.drawn, t.roster.id)
	var watch *testnet.Checker
	f := federation.Builder{
		Config: testnet.Config{
			Seed: s.Seed, Inputs: scenario.Inputs(), Durable: true, Link: chaosLink(faults),
			Squad: uses.squads(s.Seed), Linger: uses.lingers(s.Seed), Untold: t.older.untold(),
			Check: func(now grid.Time) error {
				if t.most > 0 && t.n.Events() > t.most {
					return errTooLong
				}
				return watch.Violation(now)
			},
		},
		Placement: market.PlacementCoordinated, Foreign: true, Sites: chaosSites(s.Sites),
		Retention: grid.Day, Clock: chaosClock(s.Seed, int64(faults["drift"])), Bank: chaosBank(s.Sites, t.roster.id),
		Tell: func(at int, c *site.Config) {
			c.Market.Lease = keepalive.Default
			c.Numbers = s.sets() // they tell which job came first where the clock does not
			uses.tell(s.Seed, at, c, s.Sites, t.roster.id)
			t.roster.invites(at, c)
		},
	}
	t.points = pointsOf(t, faults)
	f.Tear = t.points.tear
	if f.Wrap = t.wrap; t.tape != nil {
		f.Wrap = t.tape.wrap
		f.Hook = func(at int, s *scenario.Enrolled) testnet.Site { return t.tape.listen(f.ID(at), s.Site, s) }
	}
	if s.Lend {
		f.Lease = chaosLease(s.Sites, t.roster.id)
	}
	t.roster.join(&f)
	uses.group(&f)
	n, err := f.Build()
	if err != nil {
		return nil, err
	}
	t.n = n
	t.points.watch(n)
	watch = testnet.Check(n, f.Processors(), scenario.Submission)
	var banks []int
	for b := range chaosBanks(s.Sites) {
		banks = append(banks, b)
	}
	t.roster.watch(n, watch)
	clocks := watchClocks(n)
	if err := liar.Papers(s.Seed); err != nil {
		watch.Violated("%w", err)
	}
	money := watchBooks(n, watch, banks)
	money.roster = t.roster
	money.fees.without = func(m *meter) bool {
		return t.older.lease(&m.Lease) || t.roster.outID(m.Borrower) || t.roster.outID(m.Lender) || t.roster.outID(m.Bank)
	}
	money.literal = func(at int) bool { return uses.hits(s.Seed, "paper", uint64(at)) }
	chaosGrants(n, s.Seed, t.span)
	t.accounts = watchAccounts(n, watch, money)
	lent := watchLeases(n, watch)
	lent.clocks, money.fees.clocks = clocks, clocks
	lent.older, money.older = t.older, t.older
	t.forger = forge.New(forge.Config{N: n, Checks: watch, Used: func(at int, key uint64) int64 { return lent.used[at][key] }})
	watchQuotes(n, watch)
	watchFrames(n, watch, f.Federation)
	alive := watchAlive(n, watch, faults["loss"] == 0)
	alive.roster, alive.clocks = t.roster, clocks
	watchCircles(n, watch, alive)
	gangs := watchGangs(n, watch, alive)
	twins := watchTwins(n, watch, money, t.forger.Publications, t.roster, f.SiteConfig)
	asked := watchAsks(n, watch, alive, faults["loss"])
	histories := watchHistories(n, watch)
	t.asked, histories.clocks = histories.asked, clocks
	watchPromises(n, watch, alive, t.asked, faults["loss"], f.SiteConfig)
	word.New(word.Config{N: n, Checks: watch, Site: f.SiteConfig, Books: money, Apart: func(at int) bool { return t.older[f.ID(at)] || clocks.set(at) }, Forgets: len(t.older) > 0})
	bound := watchBounds(n, watch, t.roster, t.span)
	for i := range f.Sites {
		cfg := f.SiteConfig(i)
		if cfg.Lease.Most > 0 {
			bound.most[i] = cfg.Lease.Most
		}
		bound.queue[i] = cmp.Or(cfg.Coallocation.Queue.Max, coalloc.QueueMaxDefault)
	}
	rest := restWatch{n: n, sites: []func(int) error{money.unsettled, lent.left, bound.left}, all: []func() error{money.committed, lent.pilots, t.roster.unheard}}
	t.roster.giveUp(t.healed())
	liftSpending(n, f.SiteConfig, t.healed())
	t.owners = watchOwners(n, watch, alive, faults["loss"] == 0, f.SiteConfig)
	aimed := t.provoke(faults, uses, f.Sites)
	if t.tape != nil {
		t.tape.hear(n)
	}
	if s.Watch != nil {
		s.Watch(n, watch)
	}
	report := &chaosReport{Config: s.Config, Injected: make(map[string]int64), Transactions: make(map[string]int64)}
	n.Observe(testnet.Observer{Fault: func(_ grid.Time, f *testnet.Fault) {
		if !f.Healing() {
			report.Injected[f.Kind.String()]++
		}
	}})
	source, err := chaosFeed(s, &f, uses)
	if err != nil {
		return nil, err
	}
	source.told = func(j *grid.Job, at int) {
		t.told.Jobs = append(t.told.Jobs, j.ID.String())
		if !s.Listed {
			for _, w := range uses.wishes(s.Seed, j, at) {
				t.wish(w)
			}
		}
	}
	n.Feed(source)
	if t.failed != nil {
		return nil, t.failed
	}
	r := scenario.Run{
		Common: s.Common, Scenario: "chaos", Config: report, Network: n, Sites: f.Described(),
		Begin: federation.Warmup, Window: grid.Never, Read: func() int64 { return source.Read },
		Least: t.healed() + 1, Most: federation.Warmup + t.span + patience,
		Inspect: func(*measure.Result) {
			report.Jumps = clocks.jumps
			report.Lost, report.Acked, report.Checked = n.Lost(), watch.Acknowledged(), n.Events()
			report.Leases, report.Gangs, report.Aimed = lent.counts, gangs.sum(), aimed.counts
			report.Lapsed, report.Points, report.Forged = alive.lapsed, t.points.sum(), t.forger.Count()
			report.Owners = t.owners.counts()
			report.Leases.Paid, report.Asked, report.Accounts = money.fees.paid, asked.answers, t.accounts.counts
			if t.roster != nil {
				report.Members = t.roster.counts
			}
			for kind, count := range money.count {
				report.Transactions[kind.String()] = count
			}
		},
		Quiet: func() bool {
			if t.older.left(n) != nil {
				bound.last = n.Now()
				return false
			}
			left := rest.left()
			bound.late(n.Now(), left)
			return left == nil
		},
		AtRest: func() error {
			return errors.Join(t.failed, t.older.left(n), watch.AtRest(), money.atRest(), t.accounts.atRest(), lent.atRest(), bound.atRest(), twins.atRest())
		},
	}
	return caught(func() (*measure.Result, error) { return r.Do(ctx) })
}

// provoke has the faults and wishes of the script happen, or draws them.
func (t *trial) provoke(faults map[string]float64, uses features, sites []workload.Site) *aims {
	s := t.script
	share := faults["aim"]
	wishes := s.Wishes
	if s.Listed {
		share = 0
	} else {
		if s.Lend {
			wishes = drawLeases(s.Seed, t.n.Len(), t.span)
		}
		wishes = append(wishes, uses.drawOwners(s.Seed, sites, t.span)...)
		wishes = append(wishes, drawAsks(s.Seed, t.n.Len(), uses["ask"], t.span)...)
		wishes = append(wishes, drawAccounts(s.Seed, t.n.Len(), uses["account"], t.span)...)
		wishes = append(wishes, drawForged(s.Seed, t.n.Len(), uses["forge"], t.span)...)
		wishes = append(wishes, uses.drawMembers(s.Seed, len(sites), t.span)...)
	}
	aimed := aimAt(t, share)
	if !s.Listed && uses["poison"] > 0 {
		uses.poison(t)
	}
	if !s.Listed && uses["ban"] > 0 {
		uses.ban(t)
	}
	if !s.Listed && uses["hold"] > 0 && uses["array"] > 0 {
		uses.holdNextOf(t)
	}
	if !s.Listed && uses["detain"] > 0 {
		uses.detain(t)
	}
	if !s.Listed && uses["chain"] > 0 && s.Lend {
		uses.recall(t)
	}
	if !s.Listed && uses["return"] > 0 && s.Lend {
		uses.leave(t)
	}
	if !s.Listed && uses["forge"] > 0 {
		t.forger.Aim(s.Seed, uses["forge"], federation.Warmup+t.span, func(at grid.Time, site, other int, which uint64) {
			t.wish(Wish{Kind: WishForge, At: at, Site: site, Lender: other, Which: which})
		})
	}
	for _, w := range wishes {
		t.wish(w)
	}
	for _, strike := range t.drawn {
		if t.points.sortOf(strike.Kind) == nil { // points has those happen
			t.strike(strike)
		}
	}
	return aimed
}

// strike has a fault happen, and writes it down.
func (t *trial) strike(s Strike) {
	t.told.Strikes = append(t.told.Strikes, s)
	if s.Kind == strikeFull && len(s.Sites) == 1 {
		t.points.full.when[s.Sites[0]] = append(t.points.full.when[s.Sites[0]], s)
		return
	}
	f, err := s.fault()
	if err == nil {
		err = t.n.Schedule(f)
	}
	t.failed = errors.Join(t.failed, err)
}

// wish has a wish be said, and writes it down.
func (t *trial) wish(w Wish) {
	t.told.Wishes = append(t.told.Wishes, w)
	number, healed := t.leases, t.healed()
	if kind, yes := w.forged(); yes && w.among(t.n.Len()) {
		t.n.Call(w.At, w.Site, func() { t.forger.Say(kind, w.Site, w.Lender, w.Which) })
		return
	}
	switch w.Kind {
	case WishCertify, WishRevoke:
		if !w.among(t.n.Len()) {
			break
		}
		t.roster.say(&w, healed, func(err error) { t.failed = errors.Join(t.failed, err) })
		return
	case WishTransfer, WishAccount:
		if !w.among(t.n.Len()) {
			break
		}
		t.accounts.say(&w)
		return
	case WishData, WishFind, WishInvite, WishNamesakes, WishRemain, WishDetain:
		if !w.among(t.n.Len()) {
			break
		}
		t.failed = errors.Join(t.failed, t.owners.say(t.n, &w, healed))
		return
	case WishLease:
		t.leases++
	case WishCancel:
		number = cancelNumbers + len(t.asked)
		t.asked[wishTokens+uint64(number)], _ = grid.ParseJobID(w.Job)
	}
	err := w.say(t.n, number, healed)
	t.failed = errors.Join(t.failed, err)
}

// healed returns when nothing keeps anything from what it is to be any more: faults have ended, and owners have
// taken back what keeps others waiting.
func (t *trial) healed() grid.Time { return federation.Warmup + t.span + grid.Minute }

// listed returns the script with everything that has happened so far listed.
func (t *trial) listed() *Script {
	s := t.script.copy()
	s.Listed, s.Strikes, s.Wishes, s.Jobs = true, t.told.Strikes, t.told.Wishes, append([]string{}, t.told.Jobs...)
	return s.copy()
}

// caught returns as an error what do panics with: a core that finds its own invariants
// broken is a violation like any other.
func caught(do func() (*measure.Result, error)) (result *measure.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("a defect: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}
