package federation

import (
	"cmp"
	"math/rand/v2"
	"strconv"

	"gridnode/coalloc"
	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/directory/sibling"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/market"
	"gridnode/market/bank"
	"gridnode/node/member"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/kademlia"
	"gridnode/testnet/measure"
	"gridnode/testnet/scenario"
	"gridnode/testnet/workload"
)

// quoteLifetime is how long quotes live here. It says how soon a site that died is
// forgotten, and no site of this scenario dies: with less, most messages would say
// that nothing has changed. Placements come out the same from ten minutes to a day.
const quoteLifetime = 6 * grid.Hour

// Warmup is how long sites have to find each other before the first job.
const Warmup = 5 * grid.Minute

// Builder describes a federation of sites that trade, and whatever else they do, and
// builds a virtual network of it. Real nodes are made of the same description: SiteConfig
// tells what each site is told.
type Builder struct {
	testnet.Config
	Name      string // is part of the keys of the directory's cells; empty: "virtual"
	Placement market.Placement
	Foreign   bool // sites run each other's jobs
	Sites     []workload.Site
	IDs       []grid.SiteID                                   // of the sites; nil: their names
	Clock     func(id grid.SiteID) testnet.Clock              // nil: all clocks are right
	Retention grid.Time                                       // how long sites remember jobs that have ended
	lifetime  grid.Time                                       // of quotes; 0: the default
	Bank      func(site int) bank.Config                      // nil: nobody pays anybody
	Lease     func(site int) site.LeaseConfig                 // nil: nobody lends or borrows
	Tell      func(site int, cfg *site.Config)                // what else a site is told; nil: nothing
	Wrap      func(id grid.SiteID, s *site.Site) testnet.Site // around each site of an open federation; nil: none

	Federation *member.Federation                             // whose members the sites are; nil: it is open
	Members    func(site int) *member.Member                  // with Federation: what its roots say of a site at the moment
	Hook       func(i int, s *scenario.Enrolled) testnet.Site // around a member; nil: none

	discipline     lrms.Discipline
	skipInfeasible bool // market.Config
	pricing        market.Pricing
	processorTime  bool // what prices are multiplied with; else CostPaper
	verdicts       bool // sites remember what they made of each other for a job

	Siblings int // sites of one authority, which gossip their load to each other from the beginning; 0: nobody does

	// Authority is whose a site is, empty: nobody's. Sites find their siblings by it, as
	// live ones do, instead of being told, and have records by which they are found. Nil:
	// Siblings says who they are, and nobody has a record.
	Authority func(site int) string

	Router  kademlia.Config         // of the DHT's nodes
	Oracle  bool                    // instead of the Kademlia model: it knows who is closest to a key
	Place   func(site int) grid.Key // in the DHT; nil: SHA-256 of the site's ID
	Through func(site int) []int    // earlier sites that a site joins the DHT through; nil: all have joined at the beginning

	Directory directory.Config // what it does not say is the default
	Allowance grid.Time        // market.Config; 0: what the messages of a placement may take
	commons   []common         // by lane of the network
	index     map[grid.SiteID]int
	Nodes     []*kademlia.Node
}

// common is memory that the sites of a lane use again, each what others have left.
type common struct {
	directory *directory.Slabs
	market    *market.Slabs
	router    *kademlia.Pool // nil where a message may arrive twice
}

func (f *Builder) newCommon() common {
	c := common{directory: new(directory.Slabs), market: new(market.Slabs)}
	if f.Link.Duplicate == 0 {
		c.router = new(kademlia.Pool)
	}
	return c
}

// commonOf returns what a site has in common with others; real ones have nothing.
func (f *Builder) commonOf(site int) (c common) {
	if lane := testnet.LaneOf(f.Workers, site); lane < len(f.commons) {
		c = f.commons[lane]
	}
	return c
}

// SiteID names a site of a virtual network.
func SiteID(s *workload.Site) grid.SiteID { return grid.SiteID(s.Name) }

// ID returns the ID of a site.
func (f *Builder) ID(site int) grid.SiteID {
	if f.IDs != nil {
		return f.IDs[site]
	}
	return SiteID(&f.Sites[site])
}

func (f *Builder) cost() grid.CostModel {
	if f.processorTime {
		return grid.CostProcessorTime
	}
	return grid.CostPaper
}

// Homes returns what the workload needs to know of the sites.
func (f *Builder) Homes() []workload.Home {
	homes := make([]workload.Home, len(f.Sites))
	for i := range f.Sites {
		s := &f.Sites[i]
		homes[i] = workload.Home{ID: f.ID(i), Rating: s.Rating, Price: s.Price, Cost: f.cost()}
	}
	return homes
}

// Described names the sites for the result.
func (f *Builder) Described() []measure.Site {
	d := make([]measure.Site, len(f.Sites))
	for i := range f.Sites {
		d[i] = measure.Site{Name: f.Sites[i].Name, Processors: f.Sites[i].Processors}
	}
	return d
}

// Processors returns how many each site has.
func (f *Builder) Processors() (list []int64) {
	for i := range f.Sites {
		list = append(list, f.Sites[i].Processors)
	}
	return list
}

// Build makes the network and its sites.
func (f *Builder) Build() (*testnet.Network, error) {
	n, err := f.Network()
	if err != nil {
		return nil, err
	}
	for i := range f.Sites {
		if err := f.Add(n, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Network makes the network, to which the sites have yet to be added.
func (f *Builder) Network() (*testnet.Network, error) {
	f.commons = nil
	for i := range f.Sites {
		if lane := testnet.LaneOf(f.Workers, i); lane >= len(f.commons) {
			f.commons = append(f.commons, f.newCommon())
		}
	}
	n, err := testnet.New(f.Config)
	if err == nil && !f.Oracle {
		f.Nodes = f.routers()
	}
	return n, err
}

// Add adds the next site to the network.
func (f *Builder) Add(n *testnet.Network, i int) error {
	s := &f.Sites[i]
	m := testnet.Member{ID: f.ID(i), Rating: s.Rating, New: f.site(i)}
	if f.Clock != nil {
		m.Clock = f.Clock(m.ID)
	}
	if !f.Oracle {
		m.Router = f.routerOf(i)
	}
	if _, err := n.Add(m); err != nil {
		return err
	}
	if f.topic(i) != "" {
		n.Subscribe(f.topic(i), i)
	}
	return nil
}

// routers makes every site's node of the DHT, as it is once all have joined or as it
// comes up.
func (f *Builder) routers() []*kademlia.Node {
	nodes := make([]*kademlia.Node, len(f.Sites))
	cfg := f.Router
	cfg.Refresh = true
	for i := range f.Sites {
		self := kademlia.NewPeer(f.ID(i))
		if f.Place != nil {
			self.Key = f.Place(i)
		}
		cfg.Pool = f.commonOf(i).router
		nodes[i] = kademlia.New(cfg, self)
		if f.Through != nil {
			for _, earlier := range f.Through(i) {
				nodes[i].Join(nodes[earlier].Self())
			}
		}
	}
	if f.Through == nil {
		kademlia.Fill(nodes, rand.New(draw.PCG(f.Seed, "", draw.ForRouter)))
	}
	return nodes
}

// Authorities makes each so many sites in order those of one authority.
func Authorities(size int) func(site int) string {
	return func(site int) string { return "authority " + strconv.Itoa(site/size+1) }
}

// topic is where a site gossips its load, if it was told who its siblings are.
func (f *Builder) topic(i int) string {
	if f.Siblings == 0 || f.Authority != nil {
		return ""
	}
	return "load " + strconv.Itoa(i/f.Siblings+1)
}

// routerOf returns what makes a site's node of the DHT: the one that has joined at
// first, after a restart one that remembers whom the one before it knew.
func (f *Builder) routerOf(i int) func(incarnation int) testnet.Router {
	return func(incarnation int) testnet.Router {
		if incarnation > 0 {
			f.Nodes[i] = f.Nodes[i].Restarted()
		}
		return f.Nodes[i]
	}
}

// SiteConfig returns what a site is told, real or virtual.
func (f *Builder) SiteConfig(i int) site.Config {
	s := &f.Sites[i]
	// A promise has to survive the messages between asking for it and the job's arrival.
	allowance := cmp.Or(f.Allowance, 4*f.Link.LatencyMax)
	dir := f.Directory
	dir.Slabs = f.commonOf(i).directory
	dir.Federation, dir.Topic, dir.Lifetime = cmp.Or(f.Name, "virtual"), f.topic(i), cmp.Or(dir.Lifetime, f.lifetime)
	cfg := site.Config{
		ID: f.ID(i), Name: s.Name, Resources: grid.Resources{Processors: s.Processors}, Rating: s.Rating,
		Price: s.Price, Cost: f.cost(), Foreign: f.Foreign, Discipline: f.discipline,
		Market: market.Config{
			Pricing: f.pricing, Placement: f.Placement, Allowance: allowance, Quiet: !f.verdicts,
			SkipInfeasible: f.skipInfeasible, Slabs: f.commonOf(i).market,
		},
		Directory: dir,
		Survey:    coalloc.SurveyConfig{Topic: dir.Topic},
		Limits:    site.Limits{Jobs: scenario.JobsMax, PerUser: scenario.JobsMax, Finished: scenario.JobsMax, Retention: f.retention()},
	}
	if f.Authority != nil {
		cfg.Siblings = sibling.Config{Size: sibling.SizeDefault, Authority: f.Authority(i)}
		cfg.Record.Lifetime, cfg.Name = record.LifetimeDefault, "site "+s.Name // not its ID, as live
	}
	if f.Bank != nil {
		cfg.Bank = f.Bank(i)
	}
	if f.Lease != nil {
		cfg.Lease = f.Lease(i)
	}
	if f.Federation != nil {
		own := f.Members(i)
		cfg.Name, cfg.Members = own.Name, member.RollConfig{Federation: f.Federation, Name: own.Name, Own: own, Named: f.Router.K}
	}
	if f.Tell != nil {
		f.Tell(i, &cfg)
	}
	return cfg
}

// site returns what makes a site's cores.
func (f *Builder) site(i int) func(incarnation int) (testnet.Site, error) {
	cfg := f.SiteConfig(i)
	return func(incarnation int) (testnet.Site, error) {
		s, err := site.New(cfg, draw.PCG(f.Seed+uint64(incarnation)<<32, cfg.ID, draw.ForSite).Uint64())
		switch {
		case err != nil:
			return nil, err
		case f.Federation != nil:
			e := &scenario.Enrolled{Site: s, Members: f.memberOf}
			if f.Hook != nil {
				return f.Hook(i, e), nil
			}
			return e, nil
		case f.Wrap != nil:
			return f.Wrap(cfg.ID, s), nil
		}
		return s, nil
	}
}

// memberOf returns what the roots say of a site, nil if nothing.
func (f *Builder) memberOf(id grid.SiteID) *member.Member {
	if f.index == nil {
		f.index = make(map[grid.SiteID]int)
		for i := range f.Sites {
			f.index[f.ID(i)] = i
		}
	}
	i, known := f.index[id]
	if !known {
		return nil
	}
	return f.Members(i)
}

// retention is how long sites remember jobs that have ended. Where their verdicts are
// read it is for ever, so that forgetting wakes nobody.
func (f *Builder) retention() grid.Time {
	if f.verdicts {
		return grid.Never
	}
	return f.Retention
}
