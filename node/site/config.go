package site

import (
	"cmp"
	"fmt"
	"strings"

	"gridnode/coalloc"
	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/gpu"
	"gridnode/internal/lrms/titan"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/guest"
	"gridnode/node/member"
	"gridnode/node/quota"
)

// Discipline is the order in which jobs start on a site's own processors.
type Discipline = lrms.Discipline

// Disciplines.
const (
	FCFS  = lrms.FCFS  // in order of submission
	EASY  = lrms.EASY  // a job may overtake if it does not delay the first one
	TITAN = lrms.TITAN // as a genetic search weighs deadlines, makespan and idle time
)

// ParseDiscipline returns the discipline of that name: fcfs, easy or titan.
func ParseDiscipline(name string) (Discipline, error) { return lrms.ParseDiscipline(name) }

// Weights is what TITAN weighs.
type Weights = titan.Weights

// Config describes one site. Who it is, what it has and what it charges is said here
// and nowhere else: New tells the parts.
type Config struct {
	ID   grid.SiteID
	Name string // what people call it; at most 64 bytes
	grid.Resources
	grid.Rating
	Price      grid.Price // micro-credits per hour; at least 1
	Cost       grid.CostModel
	Discipline Discipline
	Weights    Weights // of what TITAN weighs; zero: titan.DefaultWeights
	Foreign    bool    // run jobs of other sites
	Modules    bool    // run modules of other sites
	GPUs       []gpu.Device
	GPUWeight  int64  // processors that one counts for in what a job costs, 0 to grid.GPUWeightMax
	Limits     Limits // zero: DefaultLimits

	Numbers bool // home jobs get numbers, for those who name jobs by numbers

	// Parts says what the site is made of; zero: Everything. What belongs to a part that
	// it leaves out is not looked at.
	Parts Parts

	Siblings  sibling.Config       // Gossip: with whom. Self, Federation and Heads are filled in. Size 0: with those who listen to Directory.Topic
	Directory directory.Config     // Gossip, Quotes. Self is filled in
	Record    record.Config        // Names. Self and Federation are filled in. Lifetime 0: the site has no record, and finds none
	Market    market.Config        // Market. The site, what it has, charges and takes are filled in
	Bank      bank.Config          // Bank. Self is filled in
	Lease     LeaseConfig          // Leases, Links
	Survey    coalloc.SurveyConfig // Latencies. Self is filled in

	Coallocation coalloc.CoordinatorConfig // Coallocation: of jobs of this site that run at several
	Radius       grid.Time                 // of latency groups, in which jobs placed by coalloc.PolicyCA are kept; 0: there are none

	// Penalty is by how much communication takes longer between sites, for the jobs of this
	// one that run at several. Nil: it is learned from them. Not looked at if Sites are given.
	Penalty *coalloc.Penalty

	// Sites are those over which jobs are divided, if they are known beforehand, with what
	// lies between them. Nil: this site, and those that the directory and gossip tell of.
	Sites *coalloc.View

	Members member.RollConfig // Membership. Self is filled in. No Federation: it is open

	Guests guest.Config // Guests: the owner's rules for other sites

	History *HistoryConfig // nil: no job log is kept

	Users *quota.Config // limits of its users; nil: what they have and spend is not counted

	Heads HeadsConfig // the clusters that this site heads
	Head  grid.SiteID // whose packing this site consents to; empty: nobody's
}

// Parts is a set of what a site is made of.
type Parts uint16

// Parts of a site. A site that leaves parts out says nothing of theirs to others, answers
// users who ask for them that they are not there, and ignores messages that are for them.
// (Others' look-ups may take a site for a holder of the directory's cells: one that has
// neither Quotes nor Gossip should not be found by them.)
//
//	lends and borrows only          Leases
//	the same, by gossiped loads     Leases | Gossip
//	delegates, with links that change at run time    Leases | Links
//	divides jobs over given sites   Leases | Coallocation, and Config.Sites
//	heads clusters                  Market | Quotes | Packing
//	trades, without banks           Market | Quotes
//	runs every job itself           Jobs
const (
	Jobs         Parts = 1 << iota // the jobs, the queue and the processors: always there
	Gossip                         // tells sites of its group how busy it is, and hears them
	Quotes                         // publishes a quote in the directory and asks it; with Gossip
	Market                         // has jobs guaranteed by other sites and guarantees theirs; needs Quotes
	Bank                           // pays and is paid, by cheque, and keeps accounts if it is a bank
	Leases                         // lends and borrows processors; delegates by LeaseConfig.Match
	Links                          // agrees links of the hierarchy of delegation with other sites; needs Leases
	Latencies                      // measures how far other sites are
	Data                           // holds data sets and finds who does
	Coallocation                   // runs jobs at several sites at once; needs Leases, and Quotes unless Sites are given
	Packing                        // shares jobs out over the clusters of HeadsConfig, if there are any; needs Market
	Names                          // publishes the site's record, and finds sites by name or ID
	Membership                     // hears nobody but members of the federation; with Config.Members
	Guests                         // keeps to the owner's rules for other sites
)

// Everything is all parts.
const Everything = Jobs | Gossip | Quotes | Market | Bank | Leases | Links | Latencies | Data | Coallocation | Packing | Names | Membership | Guests

var partNames = [...]string{"jobs", "gossip", "quotes", "market", "bank", "leases", "links", "latencies", "data", "co-allocation", "packing", "names", "membership", "guests"}

// String lists the parts.
func (p Parts) String() string {
	var names []string
	for i, name := range partNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func (p Parts) has(part Parts) bool { return p&part != 0 }

// parts returns what the site is made of, and what is wrong with that.
func (c *Config) parts() (Parts, error) {
	p := c.Parts
	if p == 0 {
		p = Everything
	}
	p |= Jobs
	if p.has(Quotes) {
		p |= Gossip
	}
	if len(c.Heads.Members) == 0 {
		p &^= Packing
	}
	if c.Record.Lifetime == 0 {
		p &^= Names
	}
	if c.Members.Federation == nil {
		p &^= Membership
	}
	for _, need := range []struct{ part, of Parts }{{Quotes, Market}, {Leases, Links}, {Leases, Coallocation}, {Market, Packing}} {
		if p.has(need.of) && !p.has(need.part) {
			return 0, fmt.Errorf("the part %v needs %v", need.of, need.part)
		}
	}
	if p.has(Coallocation) && c.Sites == nil && !p.has(Quotes) {
		return 0, fmt.Errorf("the part %v needs %v, or to be given the sites", Coallocation, Quotes)
	}
	return p, nil
}

// Members may be of organisations that do not trust each other: a holder's word is taken
// together with those of all others. If a fifth of all lie, then of one cell in six hundred
// all four do; with two witnesses it would be one visit in a hundred and twenty.
const (
	witnessesUsual = 3
	replicasUsual  = 4 // directory.Config.Replicas
)

// filled returns c with what is stated once told to all parts.
func (c Config) filled() Config {
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits
	}
	if c.Members.Federation != nil {
		c.Directory.Witnesses = cmp.Or(c.Directory.Witnesses, min(witnessesUsual, max(cmp.Or(c.Directory.Replicas, replicasUsual)-1, 0)))
	}
	c.Directory.Self, c.Survey.Self, c.Bank.Self, c.Members.Self = c.ID, c.ID, c.ID, c.ID
	c.Siblings.Self, c.Siblings.Federation, c.Siblings.Heads = c.ID, c.Directory.Federation, len(c.Heads.Members) > 0
	c.Record.Self, c.Record.Federation = c.ID, c.Directory.Federation
	m := &c.Market
	m.Site, m.Name, m.Resources, m.Rating = c.ID, c.Name, c.Resources, c.Rating
	m.Price, m.Cost, m.Foreign, m.Modules, m.Head = c.Price, c.Cost, c.Foreign, c.Modules, c.Head
	m.GPUWeight = c.GPUWeight
	return c
}

// Limits bounds the table of jobs.
type Limits struct {
	Jobs      int       // live jobs, own and foreign together
	PerUser   int       // live jobs of one user of this site
	Finished  int       // ended jobs kept for status and logs
	Retention grid.Time // how long an ended job is kept; 0 drops it at once
}

// DefaultLimits suits a production site: a burst of tens of thousands of small
// jobs fits, at about 1 KiB each, and a week of results can be looked up.
var DefaultLimits = Limits{Jobs: 100_000, PerUser: 20_000, Finished: 100_000, Retention: 7 * grid.Day}

// HeadsConfig says which clusters a site heads, and how it shares jobs out over them.
// Its own processors, if it has any, are one more.
type HeadsConfig struct {
	Members []string // IDs of sites, or the names they give themselves; none: it heads nobody
	muscle.HeadConfig
}

// LeaseConfig says what a site lends and borrows.
type LeaseConfig struct {
	Lend bool      // lend processors to other sites
	Most int64     // processors lent at once at most; 0: all
	Term grid.Time // how long a lease lasts without a word of its borrower; 0: the book's default
	Span grid.Time // longest lease it grants; 0: the book's default

	// Price is what the site charges for a processor-hour of a lease, micro-credits, if the
	// borrower pays from a bank; 0: nothing; OwnPrice: what it charges for jobs.
	Price grid.Price
	Pay   grid.Price // highest price that the site pays for a lease by itself; 0: what it charges for jobs

	Drift int64 // millionths that a clock may gain or lose; 0: the book's default

	// Match says when this site borrows by itself, and of whom. Threshold 0: never.
	Match lease.MatchConfig

	Consent lease.Consent // what becomes of invitations to be another site's child
}

// OwnPrice is the price of leases of a site that charges for them what it does for jobs.
const OwnPrice grid.Price = -1

// match returns the configuration of the site's lease.Matchmaker.
func (c *LeaseConfig) match() lease.MatchConfig {
	m := c.Match
	m.Lend = c.Lend
	return m
}

// pilotGrace is how long after the end of a lease a pilot and what it started may
// still be alive: the shim's grace, and the time to collect what it killed.
const pilotGrace = 10 * grid.Second

// book returns the configuration of the site's lease.Book.
func (c *LeaseConfig) book(site grid.SiteID) lease.Config {
	cfg := lease.Config{Site: site, Term: c.Term, Drift: c.Drift, SpanMax: c.Span, Grace: pilotGrace, Drain: true, LendMost: c.Most}
	if c.Term > 0 {
		// What is granted is claimed at once, so a hold need not outlast a term; an
		// execution is given up for dead no sooner than a hold later.
		cfg.Hold = min(c.Term, 30*grid.Second)
		cfg.Retry = max(min(c.Term/6, lease.RetryDefault), 100*grid.Millisecond)
	}
	return cfg
}
