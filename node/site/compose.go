package site

import (
	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/gpu"
	"gridnode/internal/lrms/others"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/market/fee"
	"gridnode/node/after"
	"gridnode/node/guest"
	"gridnode/node/history"
	"gridnode/node/member"
	"gridnode/node/quota"
)

// builder makes the parts of a site, and lets those know each other that have to do with
// each other.
type builder struct {
	*Site
	with Parts
	seed uint64 // of every random choice
}

// build makes the parts.
func (s builder) build() error {
	if err := s.own(); err != nil {
		return err
	}
	for _, p := range []struct {
		of   Parts
		make func() error
	}{
		{Gossip, s.gather}, {Gossip, s.tellOthers}, {Market, s.trade}, {Bank, s.pay}, {Leases, s.lend}, {Links, s.link}, {Latencies, s.measure},
		{Data, s.catalogue}, {Coallocation, s.divide}, {Packing, s.pack}, {Names, s.name}, {Membership, s.enrol}, {Guests, s.host},
	} {
		if !s.with.has(p.of) {
			continue
		}
		if err := p.make(); err != nil {
			return err
		}
	}
	s.arrange()
	return nil
}

// own makes what every site has.
func (s builder) own() (err error) {
	pool, err := gpu.New(s.cfg.GPUs)
	if err != nil {
		return err
	}
	s.cluster, err = lrms.New(lrms.Config{
		GPUs:       pool,
		Processors: s.cfg.Processors, Discipline: s.cfg.Discipline, QueueMax: s.cfg.Limits.Jobs, Hold: s.cfg.Market.WithDefaults().HoldSpan,
		Weights: s.cfg.Weights, Seed: s.seed,
	})
	if err != nil {
		return err
	}
	s.price = func() grid.Price { return s.cfg.Price }
	s.jobs = &jobs{base: &s.base, table: newTable(s.cfg.Limits), queue: ownQueue{&s.base}, agent: nobody{}, gpus: pool}
	if s.cfg.Users != nil {
		s.jobs.desk = quota.NewDesk(*s.cfg.Users, s.jobs.mayCost)
	}
	s.jobs.gate = after.NewGate(s.jobs.desk)
	s.limbo = &limbo{base: &s.base, jobs: s.jobs}
	s.recovery = &recovery{base: &s.base, jobs: s.jobs, payment: nobody{}, limbo: s.limbo}
	s.jobs.recovery = s.recovery
	s.room = &room{base: &s.base, jobs: s.jobs, ledger: others.New(s.cluster)}
	if s.cfg.History != nil {
		org := func(id grid.SiteID) string { return s.who(id).Org }
		s.chronicle = &chronicle{base: &s.base, log: history.NewLog(s.cfg.History.Last), siteName: s.SiteName, orgOf: org}
		s.jobs.chronicle = s.chronicle
	}
	return err
}

// gather makes the part that knows with whom this site gossips.
func (s builder) gather() error {
	if s.cfg.Siblings.Size == 0 {
		return nil
	}
	s.cfg.Siblings.Silence = max(3*grid.Minute, 4*s.cfg.Directory.HeartbeatInterval)
	s.cfg.Siblings.Samples = s.with.has(Latencies) && !s.with.has(Names)
	circle, err := sibling.New(s.cfg.Siblings, streamSiblings.of(s.seed))
	if err != nil {
		return err
	}
	s.siblings = &siblings{base: &s.base, circle: circle}
	s.cfg.Directory.Siblings, s.cfg.Survey.Siblings = circle.Members, circle.Members
	s.cfg.Directory.Watchers = circle.Watchers
	return nil
}

// tellOthers makes the part that owns the directory.
func (s builder) tellOthers() error {
	s.quotes = &quotes{
		base: &s.base, dir: directory.New(s.cfg.Directory, streamDirectory.of(s.seed)), agent: nobody{},
		askers: make(map[directory.QueryID]asker), spare: func(grid.Time) int64 { return 0 }, listed: s.with.has(Quotes), siblings: s.siblings,
	}
	if s.siblings != nil {
		s.siblings.dir = s.quotes.dir
	}
	return nil
}

// trade makes the part that owns the market agent.
func (s builder) trade() error {
	agent := market.New(s.cfg.Market, s.cluster, s.quotes.dir, streamMarket.of(s.seed))
	s.placing = &placing{base: &s.base, jobs: s.jobs, agent: agent, payment: nobody{}}
	s.leased = &leased{base: &s.base, jobs: s.jobs, dir: s.quotes.dir}
	s.placing.leased = s.leased
	s.jobs.agent, s.quotes.agent, s.price = agent, agent, agent.Price // it may follow demand
	return nil
}

// pay makes the part that owns the desk.
func (s builder) pay() error {
	desk := bank.NewDesk(s.cfg.Bank, s.seed)
	s.payment = &payment{base: &s.base, jobs: s.jobs, agent: s.jobs.agent, desk: desk, waiting: make(map[*entry]uint32), due: grid.Never}
	s.recovery.payment = s.payment
	if s.placing != nil {
		s.placing.agent.UseBank(desk)
		s.placing.payment = s.payment
	}
	return nil
}

// lend makes the parts that lend and borrow.
func (s builder) lend() error {
	cfg := s.cfg.Lease.book(s.cfg.ID)
	cfg.Seed = s.seed
	if s.payment != nil {
		s.fees = &fees{base: &s.base, desk: s.payment.desk}
		cfg.Bank, cfg.Tariff, cfg.Most = s.payment.desk.Bank(), s.fees.tariff, s.fees.most
	}
	book, err := lease.New(cfg, s.cluster)
	if err != nil {
		return err
	}
	var loads lease.Loads
	if s.quotes != nil {
		loads = s.quotes.loads
	}
	matches, err := lease.NewMatchmaker(s.cfg.Lease.match(), s.cluster, book, loads, streamDelegate.of(s.seed))
	if err != nil {
		return err
	}
	if s.quotes != nil {
		s.quotes.spare = matches.Spare
	}
	s.borrowing = &borrowing{base: &s.base, jobs: s.jobs, book: book, matches: matches, recovery: s.recovery, limbo: s.limbo, pools: newPools()}
	s.pilots = &pilots{base: &s.base, book: book, byEpoch: make(map[uint64]pilot)}
	s.loans = &loans{base: &s.base, chronicle: s.chronicle, book: book, pilots: s.pilots, borrowing: s.borrowing, others: nobody{}, asking: make(map[uint64]uint64)}
	s.spreads = &spreads{here: here{s.jobs}, book: book, match: matches, limbo: s.limbo, alive: make(map[grid.TaskID]bool)}
	s.borrowing.spreads, s.jobs.spreads = s.spreads, s.spreads
	if f := s.fees; f != nil {
		f.book, f.loans, f.borrowing, f.tab = book, s.loans, s.borrowing, fee.New(s.cfg.ID, f.desk, f.lent)
		s.loans.fees, s.payment.fees = f, f
	}
	s.jobs.queue = s.borrowing
	if s.placing != nil {
		s.placing.borrowing = s.borrowing
	}
	if s.siblings != nil {
		s.siblings.matches = matches
	}
	s.jobs.watchers = append(s.jobs.watchers, s.pilots, s.spreads)
	return nil
}

// link makes the part that owns the links.
func (s builder) link() error {
	kinship, err := lease.NewKinship(lease.KinshipConfig{Site: s.cfg.ID, Links: s.cfg.Lease.Match.Links, Consent: s.cfg.Lease.Consent})
	s.links = &links{base: &s.base, kinship: kinship, matches: s.borrowing.matches, siblings: s.siblings, inviting: make(map[grid.SiteID][]uint64)}
	if s.siblings != nil {
		s.siblings.kinship = kinship
	}
	return err
}

// measure makes the part that measures latencies.
func (s builder) measure() error {
	survey, err := coalloc.NewSurvey(s.cfg.Survey, streamLatency.of(s.seed))
	s.latencies = &latencies{base: &s.base, survey: survey, siblings: s.siblings}
	if s.siblings != nil {
		s.siblings.survey = survey
	}
	return err
}

// catalogue makes the part that knows data sets.
func (s builder) catalogue() error {
	cfg := dataset.Config{Self: s.cfg.ID, Federation: s.cfg.Directory.Federation}
	s.inputs = &inputs{base: &s.base, catalog: dataset.New(cfg, streamData.of(s.seed))}
	return nil
}

// divide makes the part that runs jobs at several sites.
func (s builder) divide() error {
	g := &gangs{
		base: &s.base, jobs: s.jobs, home: coalloc.NewHome(s.cfg.ID, s.cluster, s.loans.book, s.seed), inputs: s.inputs, book: s.loans.book,
		recovery: s.recovery, limbo: s.limbo, siteName: s.SiteName, alive: make(map[grid.TaskID]bool),
	}
	g.scout = scout{
		base: &s.base, gangs: g, sites: make(map[grid.SiteID]seenSite), due: grid.Never, whole: true,
		network: func(now grid.Time, ids []grid.SiteID) coalloc.Network { return s.Network(now, ids) },
	}
	if s.cfg.Sites == nil {
		g.scout.quotes = s.quotes
	}
	if s.latencies != nil {
		g.scout.acquaint = s.latencies.survey.Acquaint
	}
	if s.inputs != nil {
		s.inputs.gangs = g
	}
	s.gangs, s.loans.others, s.recovery.gangs = g, g, g
	s.jobs.watchers = append(s.jobs.watchers, g)
	return g.coordinate(s.seed)
}

// pack makes the part of a site that heads clusters.
func (s builder) pack() error {
	s.packing = &packing{
		base: &s.base, jobs: s.jobs, here: here{s.jobs}, agent: s.placing.agent, payment: s.placing.payment, dir: s.quotes.dir,
		members: s.cfg.Heads.Members, booked: make(map[grid.SiteID][]booking), gone: make(map[grid.SiteID]uint64),
	}
	s.placing.packing = s.packing
	return s.packing.head(s.seed)
}

// name makes the part that publishes the site's record and finds those of others.
func (s builder) name() error {
	registry, err := record.New(s.cfg.Record, streamNames.of(s.seed))
	s.names = &names{base: &s.base, registry: registry, siblings: s.siblings, lends: s.with.has(Leases) && s.cfg.Lease.Lend}
	if s.siblings != nil {
		s.siblings.names = s.names
	}
	return err
}

// enrol makes the part that knows the members.
func (s builder) enrol() error {
	s.membership = &membership{
		base: &s.base, quotes: s.quotes, names: s.names, payment: s.payment, fees: s.fees, gangs: s.gangs,
		roll: member.NewRoll(s.cfg.Members, streamMembers.of(s.seed)),
	}
	if s.placing != nil {
		s.membership.agent = s.placing.agent
	}
	s.jobs.members = s.membership
	return nil
}

// host makes the part that keeps to the owner's rules for other sites.
func (s builder) host() error {
	s.guests = &guests{base: &s.base, jobs: s.jobs, loans: s.loans, knows: s.who, held: make(map[grid.JobID]*guest.Hold)}
	s.guests.desk = guest.NewDesk(s.cfg.Guests, s.cfg.Processors, s.who, s.guests.uses)
	s.recovery.guests = s.guests
	if s.placing != nil {
		s.guests.agent = s.placing.agent
		s.placing.agent.UseGuests(s.guests)
	}
	if s.loans != nil {
		s.loans.guests = s.guests
	}
	if s.fees != nil {
		s.fees.guests = s.guests
	}
	if s.membership != nil {
		s.membership.guests = s.guests
	}
	return nil
}

// arrange puts the parts that there are in the orders in which they do things.
func (s builder) arrange() {
	s.tickers, s.calm, s.rest = s.lists.tickers[:0], s.calmList[:0], s.lists.rest[:0]
	s.starters, s.tellers = s.lists.starters[:0], s.lists.tellers[:0]
	for _, p := range []struct {
		of   Parts
		part ticker
	}{
		{Jobs, s.recovery}, {Gossip, s.siblings}, {Gossip, s.quotes}, {Names, s.names}, {Market, s.placing}, {Market, s.leased}, {Leases, s.loans}, {Links, s.links}, {Bank, s.payment},
		{Bank, s.fees}, {Leases, s.borrowing}, {Latencies, s.latencies}, {Data, s.inputs}, {Coallocation, s.gangs}, {Jobs, s.limbo}, {Packing, s.packing}, {Jobs, s.jobs},
		{Membership, s.membership}, {Guests, s.guests},
	} {
		if !s.with.has(p.of) || p.part == ticker(s.siblings) && s.siblings == nil || p.part == ticker(s.fees) && s.fees == nil {
			continue
		}
		s.tickers = append(s.tickers, p.part)
		switch p.part {
		case ticker(s.siblings):
			s.calm = append(s.calm, calmPart{p.part, calmSiblings, 0})
		case ticker(s.quotes):
			s.calm = append(s.calm, calmPart{p.part, calmQuotes, 0})
		case ticker(s.names):
			s.calm = append(s.calm, calmPart{p.part, calmNames, 0})
		case ticker(s.latencies):
			s.calm = append(s.calm, calmPart{p.part, calmLatencies, 0})
		default:
			s.rest = append(s.rest, p.part)
		}
	}
	s.starters, s.tellers = append(s.starters, s.jobs), append(s.tellers, s.jobs)
	if s.with.has(Leases) {
		s.starters = append(s.starters, s.borrowing)
	}
	if s.with.has(Gossip) {
		s.tellers = append(s.tellers, s.quotes)
	}
	for _, k := range []struct {
		of   Parts
		part recorder
	}{{Bank, s.payment}, {Data, s.inputs}, {Coallocation, s.gangs}, {Leases, s.loans}, {Links, s.links}, {Membership, s.membership}, {Jobs, s.room}, {Jobs, s.jobs}, {Guests, s.guests}} {
		if s.with.has(k.of) {
			s.recorders = append(s.recorders, k.part)
		}
	}
	if s.siblings != nil {
		s.recorders = append(s.recorders, s.siblings)
	}
	if s.fees != nil {
		s.recorders = append(s.recorders, s.fees)
	}
	if s.chronicle != nil {
		s.recorders = append(s.recorders, s.chronicle)
	}
	ways := &s.jobs.ways
	*ways = append(*ways, accelerated{s.jobs, s.placing})
	if s.with.has(Leases) {
		*ways = append(*ways, s.spreads)
	} else {
		*ways = append(*ways, apart{here{s.jobs}})
	}
	if s.with.has(Coallocation) {
		*ways = append(*ways, s.gangs)
	} else {
		*ways = append(*ways, whole{s.jobs})
	}
	if s.with.has(Packing) {
		*ways = append(*ways, s.packing)
	}
	if s.with.has(Market) {
		*ways = append(*ways, s.placing)
	}
	*ways = append(*ways, here{s.jobs})
}
