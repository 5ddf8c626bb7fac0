package site

import (
	"fmt"
	"math/rand/v2"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/internal/lrms/titan"
	"gridnode/internal/wire"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/market/bank"
)

// SiteConfig describes one site to its cores.
type Config struct {
	ID   grid.SiteID
	Name string // what people call it; at most 64 bytes
	grid.Resources
	grid.Rating
	Price      grid.Price // micro-credits per hour; at least 1. Market.Price is the same, and counts
	Cost       grid.CostModel
	Discipline lrms.Discipline
	Weights    titan.Weights // of what TITAN weighs; zero: titan.DefaultWeights
	Foreign    bool          // run jobs of other sites
	Alone      bool          // no directory and no market: every job runs here
	Market     market.Config
	Directory  directory.Config
	Lease      LeaseConfig
	Heads      HeadsConfig // the clusters that this site heads
	Head       grid.SiteID // whose packing this site consents to; empty: nobody's
	Survey     coalloc.SurveyConfig

	Coallocation coalloc.CoordinatorConfig // of jobs of this site that run at several
	Radius       grid.Time                 // of latency groups, in which jobs placed by coalloc.PolicyCA are kept; 0: there are none

	Bank   bank.Config // Self is filled in
	Limits Limits
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

// lossesMax is how many executions of one job may vanish before it fails: a job
// that takes its machine down each time must not travel through the federation.
const lossesMax = 3

// Site is one site: its cores and its jobs. Not safe for concurrent use.
type Site struct {
	cfg     Config
	cluster *lrms.Cluster
	dir     *directory.Directory // nil when alone
	agent   *market.Agent        // nil when alone
	book    *lease.Book          // nil when alone
	desk    *bank.Desk           // nil when alone
	matches *lease.Matchmaker    // nil when alone
	survey  *coalloc.Survey      // nil when alone
	kinship *lease.Kinship       // nil when alone
	co      *coallocator         // nil when alone
	data    *dataset.Catalog     // nil when alone

	jobs     map[grid.JobID]*entry
	users    map[string]int // live home jobs by user
	live     int            // entries not terminal
	finished []finishedJob  // ended jobs still kept, oldest first
	entries  grid.Slab[entry]

	pools    []*pool                  // borrowed processors, by lease
	guests   map[grid.TaskID]*pool    // jobs that run there
	stranded []limbo                  // in order of when they are certainly dead
	pilots   map[uint64]pilot         // of lent leases, by epoch
	asking   map[uint64]uint64        // tokens of users who asked for leases, by number
	inviting map[grid.SiteID][]uint64 // tokens of users who invited sites

	heads *heads // nil unless this site heads clusters

	parked    []*entry  // wait until their bank answers
	parkedDue grid.Time // earliest deadline of theirs
	recovered []*entry  // queued before a restart, waiting for the first Tick
	questions map[directory.QueryID]uint64
	started   []lrms.Request
	quoted    directory.Quote // as last given to the directory
	startable grid.Time       // when its Wait is over
	asked     [queryMessagesMax + 1]int64
	draining  bool
	notices   []Notice // for the log, not taken yet

	// What happens seldom needs a whole Tick; see calm.
	unsettled bool      // an input changed something that only a Tick acts on
	touched   bool      // an input was for more than the directory or the survey
	due       grid.Time // when anything but those two needs a Tick; of no use while touched
	steady    grid.Time // until when the offer stays as it is; of no use while touched
}

type finishedJob struct {
	id grid.JobID
	at grid.Time
}

// NewSite returns a site that has no jobs. seed determines every random choice.
func New(cfg Config, seed uint64) (*Site, error) {
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits
	}
	cluster, err := lrms.New(lrms.Config{
		Processors: cfg.Processors, Discipline: cfg.Discipline, QueueMax: cfg.Limits.Jobs, Hold: cfg.Market.WithDefaults().HoldSpan,
		Weights: cfg.Weights, Seed: seed,
	})
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	s := &Site{
		cfg: cfg, cluster: cluster, unsettled: true, touched: true, parkedDue: grid.Never,
		jobs:      make(map[grid.JobID]*entry),
		users:     make(map[string]int),
		questions: make(map[directory.QueryID]uint64),
		guests:    make(map[grid.TaskID]*pool),
		pilots:    make(map[uint64]pilot),
		asking:    make(map[uint64]uint64),
		inviting:  make(map[grid.SiteID][]uint64),
	}
	if cfg.Alone {
		return s, nil
	}
	s.dir = directory.New(cfg.Directory, rand.New(rand.NewPCG(seed, 1)))
	s.agent = market.New(cfg.Market, cluster, s.dir, rand.New(rand.NewPCG(seed, 2)))
	if s.book, err = lease.New(cfg.Lease.book(cfg.ID), cluster); err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	s.matches, err = lease.NewMatchmaker(cfg.Lease.match(), cluster, s.book, s.loads, rand.New(rand.NewPCG(seed, 3)))
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	if s.survey, err = coalloc.NewSurvey(cfg.Survey, rand.New(rand.NewPCG(seed, 4))); err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	if s.kinship, err = lease.NewKinship(lease.KinshipConfig{Site: cfg.ID, Links: cfg.Lease.Match.Links, Consent: cfg.Lease.Consent}); err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	if s.co, err = newCoallocator(&s.cfg, s, seed); err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	s.data = dataset.New(dataset.Config{Self: cfg.ID, Federation: cfg.Directory.Federation}, rand.New(rand.NewPCG(seed, 6)))
	s.cfg.Bank.Self = cfg.ID
	if s.heads, err = newHeads(&cfg, seed); err != nil {
		return nil, fmt.Errorf("site %s: %w", cfg.Name, err)
	}
	s.desk = bank.NewDesk(s.cfg.Bank, seed)
	s.agent.UseBank(s.desk)
	return s, nil
}

// Step applies one input at time now and appends the effects to out. Jobs are
// started by grid.Tick only, so that everything that happens at one instant is
// known when the scheduler decides.
func (s *Site) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	before := len(out.Locals)
	s.apply(now, in, out)
	s.feed(now, before, out)
}

// feed applies what the cores of this site have told each other, but for what stood in
// the outbox before.
func (s *Site) feed(now grid.Time, before int, out *grid.Outbox) {
	if len(out.Locals) > before {
		out.Feed(before, func(in grid.Input) { s.apply(now, in, out) })
	}
}

func (s *Site) apply(now grid.Time, in grid.Input, out *grid.Outbox) {
	s.unsettled = true
	switch in := in.(type) {
	case grid.Tick:
		if s.calm(now) {
			s.tickCalm(now, out)
		} else {
			s.tick(now, out)
		}
		return
	case *grid.Delivery:
		if s.forCalm(in.Message) {
			s.route(now, in.Message, in, out)
			return
		}
	case *grid.Undelivered:
		if s.forCalm(in.Message) {
			s.route(now, in.Message, in, out)
			return
		}
	case *grid.Closest:
		s.dir.Step(now, in, out)
		return
	case *grid.Probed:
		s.survey.Step(now, in, out)
		return
	}
	s.touched = true
	switch in := in.(type) {
	case *grid.TaskEnded:
		s.taskEnded(now, in, out)
	case *grid.Delivery:
		s.delivery(now, in, out)
	case *Submit:
		s.submit(now, in, out)
	case *Cancel:
		s.cancel(now, in, out)
	case *Adopted:
		s.adopted(now, in, out)
	case *bank.Grant, *bank.Transfer, *bank.Question:
		s.atBank(now, in, out)
	case *bank.Written:
		s.written(now, in, out)
	case *bank.Declined:
		s.declined(now, in, out)
	case *bank.Back:
		s.unpark(now, grid.Never, out)
	case *Preview:
		s.preview(now, in, out)
	case *FindQuotes:
		s.findQuotes(now, in, out)
	case *SetPrice:
		s.setPrice(in, out)
	case *Drain:
		s.drain(now, out)
	case *grid.Undelivered:
		s.undelivered(now, in, out)
	case *directory.Found:
		s.found(now, in, out)
	case *market.Placed:
		s.placed(now, in, out)
	case *market.Refused:
		s.refused(now, in, out)
	case *market.Accepted:
		s.accepted(now, in, out)
	case *market.Completed:
		s.completed(now, in, out)
	case *market.Lost:
		s.lostElsewhere(now, in, out)
	case *market.Delivered:
		s.delivered(now, in, out)
	case *market.Revoke:
		s.revoke(now, in, out)
	case *RequestLease:
		s.requestLease(now, in, out)
	case *ChangeLease:
		s.changeLease(now, in, out)
	case *ChangeLink:
		s.changeLink(now, in, out)
	default:
		if !s.coallocInput(now, in, out) && !s.leaseInput(now, in, out) && !s.linkInput(in, out) && !s.dataInput(now, in, out) {
			panic(fmt.Sprintf("node: unknown input %T", in))
		}
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
// It is in the past while something waits for a Tick of the present instant.
func (s *Site) NextTimer() grid.Time {
	if s.unsettled {
		return 0
	}
	if s.agent == nil {
		return s.due
	}
	return min(s.due, s.dir.NextTimer(), s.survey.NextTimer())
}

// nextDue returns when anything but the directory and the survey needs a Tick.
func (s *Site) nextDue() grid.Time {
	t := min(s.cluster.NextTimer(), s.coallocTimer())
	if len(s.finished) > 0 {
		t = min(t, s.finished[0].at.Add(s.cfg.Limits.Retention))
	}
	if s.agent != nil {
		t = min(t, s.agent.NextTimer(), s.book.NextTimer(), s.matches.NextTimer(), s.kinship.NextTimer(), s.desk.NextTimer(), s.data.NextTimer(), s.parkedDue)
	}
	if s.heads != nil {
		t = min(t, s.heads.NextTimer())
	}
	if len(s.stranded) > 0 {
		t = min(t, s.stranded[0].at)
	}
	return t
}

// forCalm reports whether a message is for the directory or the survey.
func (s *Site) forCalm(m grid.Message) bool {
	if s.agent == nil {
		return false
	}
	who := speakers[m.MessageKind()]
	return who == speaksDirectory || who == speaksSurvey
}

// calm reports whether since the last whole Tick nothing has happened to this site but
// to its directory and its survey, and nothing else is due. Most inputs of a site in a
// large federation are of that kind, and a Tick that looks at everything would cost
// more than they do.
func (s *Site) calm(now grid.Time) bool {
	return !s.touched && now < s.due && (now < s.steady || s.draining) && s.agent != nil
}

// tickCalm is tick if there is calm.
func (s *Site) tickCalm(now grid.Time, out *grid.Outbox) {
	if s.dir.NextTimer() <= now {
		s.dir.Step(now, grid.Tick{}, out)
	}
	if s.survey.NextTimer() <= now {
		s.survey.Step(now, grid.Tick{}, out)
	}
	s.unsettled = false
}

// tick does what is due and starts what can start.
func (s *Site) tick(now grid.Time, out *grid.Outbox) {
	s.requeue(now, out)
	if s.agent != nil {
		s.dir.Step(now, grid.Tick{}, out)
		s.agent.Step(now, grid.Tick{}, out)
		s.book.Step(now, grid.Tick{}, out)
		s.kinship.Step(now, grid.Tick{}, out)
		s.desk.Step(now, grid.Tick{}, out)
		if s.parkedDue <= now {
			s.unpark(now, now, out)
		}
		s.matches.Step(now, grid.Tick{}, out)
		if s.survey.NextTimer() <= now {
			s.survey.Step(now, grid.Tick{}, out)
		}
		if s.data.NextTimer() <= now {
			s.data.Step(now, grid.Tick{}, out)
		}
	}
	s.coallocTick(now, out)
	s.rescue(now, out)
	s.pack(now, out)
	s.started = s.schedule(now, s.started[:0], out)
	for i := range s.started {
		s.start(now, s.started[i].ID, out)
	}
	s.lendAHand(now, out)
	s.expire(now, out)
	s.quote(now, out)
	s.due, s.steady = s.nextDue(), s.cluster.Steady()
	s.unsettled, s.touched = false, false // unless the agents told us something: that comes next
}

// quote tells the directory and the siblings what this site offers now.
func (s *Site) quote(now grid.Time, out *grid.Outbox) {
	if s.dir == nil || s.draining {
		return
	}
	state := s.cluster.State(now)
	q := directory.Quote{
		Site: s.cfg.ID, Name: s.cfg.Name, Resources: s.cfg.Resources, Rating: s.cfg.Rating,
		Price: s.Price(), Cost: s.cfg.Cost, Foreign: s.cfg.Foreign,
		Free: state.Free, Widest: state.Widest, Wait: min(state.Wait, grid.SpanMax),
	}
	if !sameOffer(&q, &s.quoted) || q.Wait > 0 && now+q.Wait != s.startable {
		s.quoted, s.startable = q, now+q.Wait
		s.dir.SetQuote(now, q, out)
	}
	s.dir.SetLoad(now, directory.Load{
		Free: state.Free, Widest: state.Widest, Wait: min(state.Wait, grid.SpanMax),
		Queued: int64(state.Queued), QueuedWork: int64(state.QueuedWork) / int64(grid.Second), Headed: s.headed(),
	}, out)
}

// sameOffer reports whether two quotes of this site say the same. A wait that gets
// shorter as time passes is the same offer.
func sameOffer(a, b *directory.Quote) bool {
	return a.Site == b.Site && a.Price == b.Price && a.Free == b.Free && a.Widest == b.Widest && (a.Wait > 0) == (b.Wait > 0)
}

// Price returns what the site charges at the moment, a processor-hour.
func (s *Site) Price() grid.Price {
	if s.agent != nil {
		return s.agent.Price() // it may follow demand
	}
	return s.cfg.Price
}

// Pricing returns how the price comes about.
func (s *Site) Pricing() market.Pricing { return s.cfg.Market.Pricing }

// setPrice changes the price; the next Tick quotes it.
func (s *Site) setPrice(in *SetPrice, out *grid.Outbox) {
	set := &PriceSet{Before: s.Price(), Price: in.Price}
	switch {
	case s.agent != nil:
		set.Price, set.Err = s.agent.SetPrice(in.Price)
	case in.Price < 1 || in.Price > grid.CreditsMax:
		set.Price, set.Err = s.cfg.Price, fmt.Errorf("price of %d micro-credits, want 1 to %d", int64(in.Price), int64(grid.CreditsMax))
	default:
		s.cfg.Price = in.Price
	}
	out.Answer(in.Token, set)
}

// drain withdraws the quote; running and queued jobs go on.
func (s *Site) drain(now grid.Time, out *grid.Outbox) {
	if s.dir != nil && !s.draining {
		s.dir.Withdraw(now, out)
	}
	s.draining = true
}

// delivery hands a message to the core that speaks its protocol.
func (s *Site) delivery(now grid.Time, in *grid.Delivery, out *grid.Outbox) {
	if s.agent == nil {
		return // alone: nobody of ours speaks to anybody
	}
	s.route(now, in.Message, in, out)
}

// undelivered tells the core that sent a message that it did not arrive.
func (s *Site) undelivered(now grid.Time, in *grid.Undelivered, out *grid.Outbox) {
	if s.agent != nil {
		s.route(now, in.Message, in, out)
	}
}

func (s *Site) route(now grid.Time, about grid.Message, in grid.Input, out *grid.Outbox) {
	switch speakers[about.MessageKind()] {
	case speaksMarket:
		s.agent.Step(now, in, out)
	case speaksLease:
		s.leaseDelivery(now, in, out)
	case speaksBank:
		s.desk.Step(now, in, out)
	case speaksSurvey:
		s.survey.Step(now, in, out)
	case speaksData:
		s.data.Step(now, in, out)
	default:
		s.dir.Step(now, in, out)
	}
}

// speaker is the core that speaks a protocol.
type speaker uint8

const (
	speaksDirectory speaker = iota // and gossip of load
	speaksMarket
	speaksLease
	speaksBank
	speaksSurvey
	speaksData
)

// speakers tells which core messages of a kind are for.
var speakers = func() (table [1 << 8]speaker) {
	for who, protocol := range map[speaker]*wire.Protocol{speaksMarket: &market.Protocol, speaksLease: &lease.Protocol, speaksBank: &bank.Protocol, speaksData: &dataset.Protocol} {
		for kind := range protocol.Decoders {
			table[kind] = who
		}
	}
	table[wire.GossipLatency] = speaksSurvey
	return table
}()

// findQuotes asks the directory on behalf of a user.
func (s *Site) findQuotes(now grid.Time, in *FindQuotes, out *grid.Outbox) {
	if s.dir == nil {
		out.Answer(in.Token, &directory.Found{End: true})
		return
	}
	s.questions[s.dir.Find(now, in.Query, out)] = in.Token
}

// found passes the directory's answer to whoever asked.
func (s *Site) found(now grid.Time, in *directory.Found, out *grid.Outbox) {
	s.asked[min(max(in.Messages, 0), queryMessagesMax)]++
	if s.sitesFound(now, in, out) {
		return
	}
	if token, ok := s.questions[in.ID]; ok {
		delete(s.questions, in.ID)
		out.Answer(token, in)
		return
	}
	s.agent.Step(now, in, out)
}

// queryMessagesMax is from how many messages on queries are counted together.
const queryMessagesMax = 63

// QueryMessages returns how many queries of this site the directory has answered
// with 0, 1, 2, … messages; the last number is of those that took more. The caller
// must not change it.
func (s *Site) QueryMessages() []int64 { return s.asked[:] }

// QueryLookups returns how many times queries made the router look for the holders
// of a cell.
func (s *Site) QueryLookups() int64 {
	if s.dir == nil {
		return 0
	}
	return s.dir.QueryLookups
}

func (s *Site) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	if s.agent == nil {
		out.Answer(in.Token, &market.PreviewResult{Certain: true})
		return
	}
	if divided(in.Job) {
		s.seek(now, in.Job, out)
		s.co.previews = append(s.co.previews, Preview{in.Token, in.Job})
		s.scanSites(now, out)
		return
	}
	if s.packs(in.Job) {
		out.Answer(in.Token, s.packedPreview(now, in.Job))
		return
	}
	s.agent.Step(now, &market.Preview{Token: in.Token, Job: in.Job}, out)
}

// Limits returns the bounds of the table of jobs, defaults filled in.
func (s *Site) Limits() Limits { return s.cfg.Limits }

// Pilot reports whether this site keeps a pilot for the lease of that epoch.
func (s *Site) Pilot(epoch uint64) bool { _, kept := s.pilots[epoch]; return kept }

// Held returns how much is held here that somebody must let go of one day: leases given
// and taken, claims and holds of co-allocated jobs, their gangs, and pilots.
func (s *Site) Held() int {
	held := len(s.pilots)
	if s.book != nil {
		held += len(s.Leases()) + len(s.co.home.Leases()) + s.co.coord.Claiming() + len(s.co.gangs)
	}
	return held
}
