package site

import (
	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
)

// compose makes the parts and lets those know each other that have to do with each other.
func (s *Site) compose(parts Parts, seed uint64) (err error) {
	if err = s.own(seed); err != nil {
		return err
	}
	if parts.has(Gossip) {
		s.tellOthers(parts, seed)
	}
	if parts.has(Market) {
		s.trade(seed)
	}
	if parts.has(Bank) {
		s.pay(seed)
	}
	if parts.has(Leases) {
		err = s.lend(seed)
	}
	if err == nil && parts.has(Links) {
		err = s.link()
	}
	if err == nil && parts.has(Latencies) {
		err = s.measure(seed)
	}
	if parts.has(Data) {
		s.inputs = &inputs{base: &s.base, catalog: dataset.New(dataset.Config{Self: s.cfg.ID, Federation: s.cfg.Directory.Federation}, streamData.of(seed))}
	}
	if err == nil && parts.has(Coallocation) {
		err = s.divide(seed)
	}
	if err == nil && parts.has(Packing) {
		err = s.pack(seed)
	}
	if err == nil {
		s.arrange(parts)
	}
	return err
}

// own makes what every site has.
func (s *Site) own(seed uint64) (err error) {
	s.cluster, err = lrms.New(lrms.Config{
		Processors: s.cfg.Processors, Discipline: s.cfg.Discipline, QueueMax: s.cfg.Limits.Jobs, Hold: s.cfg.Market.WithDefaults().HoldSpan,
		Weights: s.cfg.Weights, Seed: seed,
	})
	s.price = func() grid.Price { return s.cfg.Price }
	s.jobs = &jobs{base: &s.base, table: newTable(s.cfg.Limits), queue: ownQueue{&s.base}, agent: nobody{}}
	s.limbo = &limbo{base: &s.base, jobs: s.jobs}
	s.recovery = &recovery{base: &s.base, jobs: s.jobs, payment: nobody{}, limbo: s.limbo}
	s.jobs.recovery = s.recovery
	return err
}

// tellOthers makes the part that owns the directory.
func (s *Site) tellOthers(parts Parts, seed uint64) {
	s.quotes = &quotes{
		base: &s.base, dir: directory.New(s.cfg.Directory, streamDirectory.of(seed)), agent: nobody{},
		askers: make(map[directory.QueryID]asker), listed: parts.has(Quotes),
	}
}

// trade makes the part that owns the market agent.
func (s *Site) trade(seed uint64) {
	agent := market.New(s.cfg.Market, s.cluster, s.quotes.dir, streamMarket.of(seed))
	s.placing = &placing{base: &s.base, jobs: s.jobs, agent: agent, payment: nobody{}}
	s.jobs.agent, s.quotes.agent, s.price = agent, agent, agent.Price // it may follow demand
}

// pay makes the part that owns the desk.
func (s *Site) pay(seed uint64) {
	desk := bank.NewDesk(s.cfg.Bank, seed)
	s.payment = &payment{base: &s.base, jobs: s.jobs, agent: s.jobs.agent, desk: desk, waiting: make(map[*entry]bool), due: grid.Never}
	s.recovery.payment = s.payment
	if s.placing != nil {
		s.placing.agent.UseBank(desk)
		s.placing.payment = s.payment
	}
}

// lend makes the parts that lend and borrow.
func (s *Site) lend(seed uint64) error {
	book, err := lease.New(s.cfg.Lease.book(s.cfg.ID), s.cluster)
	if err != nil {
		return err
	}
	var loads lease.Loads
	if s.quotes != nil {
		loads = s.quotes.loads
	}
	matches, err := lease.NewMatchmaker(s.cfg.Lease.match(), s.cluster, book, loads, streamDelegate.of(seed))
	if err != nil {
		return err
	}
	s.borrowing = &borrowing{base: &s.base, jobs: s.jobs, book: book, matches: matches, recovery: s.recovery, limbo: s.limbo, pools: newPools()}
	s.pilots = &pilots{base: &s.base, book: book, byEpoch: make(map[uint64]pilot)}
	s.loans = &loans{base: &s.base, book: book, pilots: s.pilots, borrowing: s.borrowing, others: nobody{}, asking: make(map[uint64]uint64)}
	s.jobs.queue = s.borrowing
	s.jobs.watchers = append(s.jobs.watchers, s.pilots)
	return nil
}

// link makes the part that owns the links.
func (s *Site) link() error {
	kinship, err := lease.NewKinship(lease.KinshipConfig{Site: s.cfg.ID, Links: s.cfg.Lease.Match.Links, Consent: s.cfg.Lease.Consent})
	s.links = &links{base: &s.base, kinship: kinship, matches: s.borrowing.matches, inviting: make(map[grid.SiteID][]uint64)}
	return err
}

// measure makes the part that measures latencies.
func (s *Site) measure(seed uint64) error {
	survey, err := coalloc.NewSurvey(s.cfg.Survey, streamLatency.of(seed))
	s.latencies = &latencies{base: &s.base, survey: survey}
	return err
}

// divide makes the part that runs jobs at several sites.
func (s *Site) divide(seed uint64) error {
	g := &gangs{
		base: &s.base, jobs: s.jobs, home: coalloc.NewHome(s.cfg.ID, s.cluster, s.loans.book), inputs: s.inputs, book: s.loans.book,
		recovery: s.recovery, limbo: s.limbo, siteName: s.SiteName, alive: make(map[grid.TaskID]bool),
	}
	g.scout = scout{
		base: &s.base, gangs: g, sites: make(map[grid.SiteID]seenSite), due: grid.Never, whole: true,
		network: func(now grid.Time, ids []grid.SiteID) coalloc.Network { return s.Network(now, ids) },
	}
	if s.cfg.Sites == nil {
		g.scout.quotes = s.quotes
	}
	if s.inputs != nil {
		s.inputs.gangs = g
	}
	s.gangs, s.loans.others = g, g
	s.jobs.watchers = append(s.jobs.watchers, g)
	return g.coordinate(seed)
}

// pack makes the part of a site that heads clusters.
func (s *Site) pack(seed uint64) error {
	s.packing = &packing{
		base: &s.base, jobs: s.jobs, here: here{s.jobs}, agent: s.placing.agent, payment: s.placing.payment, dir: s.quotes.dir,
		members: s.cfg.Heads.Members, booked: make(map[grid.SiteID][]booking), gone: make(map[grid.SiteID]uint64),
	}
	s.placing.packing = s.packing
	return s.packing.head(seed)
}

// arrange puts the parts that there are in their orders.
func (s *Site) arrange(parts Parts) {
	for _, p := range []struct {
		of   Parts
		part part
	}{
		{Jobs, s.recovery}, {Gossip, s.quotes}, {Market, s.placing}, {Leases, s.loans}, {Leases, s.pilots}, {Links, s.links}, {Bank, s.payment},
		{Leases, s.borrowing}, {Latencies, s.latencies}, {Data, s.inputs}, {Coallocation, s.gangs}, {Jobs, s.limbo}, {Packing, s.packing}, {Jobs, s.jobs},
	} {
		if !parts.has(p.of) {
			continue
		}
		s.parts = append(s.parts, p.part)
		if p.of.has(Gossip | Latencies) {
			s.calm = append(s.calm, p.part)
		} else {
			s.rest = append(s.rest, p.part)
		}
	}
	s.starters, s.tellers = []starter{s.jobs}, []teller{s.jobs}
	if parts.has(Leases) {
		s.starters = append(s.starters, s.borrowing)
	}
	if parts.has(Gossip) {
		s.tellers = append(s.tellers, s.quotes)
	}
	for _, k := range []struct {
		of   Parts
		part keeper
	}{{Bank, s.payment}, {Data, s.inputs}, {Coallocation, s.gangs}, {Leases, s.loans}, {Links, s.links}} {
		if parts.has(k.of) {
			s.keepers = append(s.keepers, k.part)
		}
	}
	ways := &s.jobs.ways
	if parts.has(Coallocation) {
		*ways = append(*ways, s.gangs)
	} else {
		*ways = append(*ways, whole{s.jobs})
	}
	if parts.has(Packing) {
		*ways = append(*ways, s.packing)
	}
	if parts.has(Market) {
		*ways = append(*ways, s.placing)
	}
	*ways = append(*ways, here{s.jobs})
}
