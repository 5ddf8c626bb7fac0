package market

import (
	"gridnode/directory"
	"gridnode/grid"
)

// Search is the search for a site for one job, as its Policy sees it. What it returns
// belongs to the agent and holds until Policy.Next returns.
type Search struct {
	// Marks are the policy's own notes about this job, all zero when its search begins.
	Marks [4]int64

	job     *grid.Job
	quotes  []directory.Quote
	own     int     // place of home's quote among them, -1 before it stands there
	stretch stretch // of the page under way, or of the next one
	pages   int     // fetched
	end     bool    // the directory has no more quotes

	negotiations []Negotiation // what came of asking, for Rank
	asks         []ask         // the same sites, for the protocol
	sent         int           // negotiations, with home's not counted
	waiting      *acquaintance // site whose turn the job waits for, if any

	// Of this call of Policy.Next:
	now     grid.Time
	at      Circumstances
	known   bool // at is filled in
	ranked  bool // ranking is of this search
	ranking *ranking
	broker  *broker // nil: NewSearch
}

// NewSearch returns the search for a site among quotes, in which nobody was asked and
// no more pages are to come: to try a policy without an agent. Draw returns 0.
func NewSearch(job *grid.Job, quotes []directory.Quote, at Circumstances) *Search {
	s := &Search{job: job, quotes: quotes, own: -1, end: true, now: at.Now, at: at, known: true, ranking: new(ranking)}
	for i := range quotes {
		if quotes[i].Site == at.Home {
			s.own = i
		}
	}
	return s
}

// Job returns the job.
func (s *Search) Job() *grid.Job { return s.job }

// Now returns the instant of this call.
func (s *Search) Now() grid.Time { return s.now }

// Home returns the job's home.
func (s *Search) Home() grid.SiteID {
	if s.broker == nil {
		return s.at.Home
	}
	return s.broker.cfg.Site
}

// Quotes returns what the pages brought so far, each site once, in their order; home's
// own may stand among them.
func (s *Search) Quotes() []directory.Quote { return s.quotes }

// Complete reports whether no more pages are to come.
func (s *Search) Complete() bool { return s.end }

// Asked returns how many negotiations were begun with other sites.
func (s *Search) Asked() int { return s.sent }

// Verdict judges the site of a quote by what is known now: OutcomeCandidate if it would
// do, else the first thing that is wrong with it. Of one that has given its guarantee
// it has the promised finish and cost.
func (s *Search) Verdict(quote int) Verdict { return judge(s.job, &s.quotes[quote], s.circumstances()) }

// Ranked returns the quote in a place of the ranking by Policy.Key, from 0, of those
// that would do, and -1 behind the last.
func (s *Search) Ranked(place int) int {
	if o := s.rank().at(place); o != nil && o.fits {
		return int(o.index)
	}
	return -1
}

// Standing returns how far it has come with the site of a quote.
func (s *Search) Standing(quote int) Standing {
	site := s.quotes[quote].Site
	if s.waiting != nil && s.waiting.site == site {
		return StandingQueued
	}
	i := s.find(site)
	if i < 0 {
		return StandingOpen
	}
	return s.asks[i].standing
}

// Draw returns a random number of 0 to n-1: what draws with it differs from home to
// home, and is the same in every run of one seed.
func (s *Search) Draw(n int) int {
	if s.broker == nil {
		return 0
	}
	return s.broker.rng.IntN(n)
}

// Standing is how far a home has come with a site about one job.
type Standing uint8

const (
	StandingOpen    Standing = iota // was not asked
	StandingQueued                  // is to be asked when fewer negotiations are under way to it
	StandingAsked                   // has not replied yet
	StandingGranted                 // holds processors for the job
	StandingOver                    // refused, did not answer, or its guarantee was taken up or given back
)

// begin prepares a call of Policy.Next.
func (s *Search) begin(now grid.Time) { s.now, s.known, s.ranked = now, false, false }

// circumstances returns what verdicts depend on now.
func (s *Search) circumstances() *Circumstances {
	if !s.known {
		s.at, s.known = s.broker.circumstances(s.now, s), true
	}
	return &s.at
}

// rank returns the ranking as of now.
func (s *Search) rank() *ranking {
	if !s.ranked {
		s.ranking.rank(s.job, s.quotes, s.circumstances())
		s.ranked = true
	}
	return s.ranking
}

// limits returns the configuration of the agent.
func (s *Search) limits() *Config {
	if s.broker == nil {
		cfg := Config{}.WithDefaults()
		return &cfg
	}
	return &s.broker.cfg
}

// find returns the negotiation with a site, or -1.
func (s *Search) find(site grid.SiteID) int {
	for i := range s.asks {
		if s.asks[i].site == site {
			return i
		}
	}
	return -1
}

// outstanding counts the sites whose answer the job waits for.
func (s *Search) outstanding() int {
	n := 0
	if s.waiting != nil {
		n++
	}
	for i := range s.asks {
		if s.asks[i].standing == StandingAsked {
			n++
		}
	}
	return n
}

// guarantee returns the first negotiation that ended in one, or -1.
func (s *Search) guarantee() int {
	for i := range s.asks {
		if s.asks[i].standing == StandingGranted {
			return i
		}
	}
	return -1
}

// award is the move that takes up a guarantee.
func (s *Search) award(i int) Move { return Move{Act: ActAward, Quote: s.asks[i].quote} }
