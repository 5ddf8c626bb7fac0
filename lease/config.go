package lease

import (
	"fmt"

	"gridnode/grid"
)

// Bounds of what a peer may ask for, and of what it can make this site keep.
const (
	ProcessorsMax = 1 << 24        // of one lease
	SpanLimit     = 366 * grid.Day // of Want.Span and Config.SpanMax
	TermMax       = grid.Day       // of Config.Term
	HoldLimit     = grid.Hour      // of Want.Hold
	PatienceLimit = grid.Day       // of Want.Patience
	TTLMax        = grid.TTLMax    // of Want.TTL
	HopsMax       = TTLMax + 1     // length of a chain

	LeasesMax  = 1 << 16 // leases and undecided requests of a Book, lent and borrowed together
	PerPeerMax = 1 << 13 // of them with one peer as the borrower
)

// Config is what a Book is told. A zero field takes the default named beside it.
type Config struct {
	Site grid.SiteID
	Seed uint64 // another one at each start: after a crash, numbers begin where it says

	// Term is how long a lease lasts without a renewal; the borrower renews at a
	// third of it. It is the lender's choice. 5 min, from a second to TermMax
	Term grid.Time

	Hold    grid.Time // how long a grant waits for its claim unless the borrower says; 30 s, at most HoldLimit
	SpanMax grid.Time // longest lease, renewals included; 30 days, at most SpanLimit
	Retry   grid.Time // first repetition of a message without an answer; doubles each time; 5 s
	Drift   int64     // millionths that a clock may gain or lose; 1000, at most 100,000

	// LendMost is how many processors the owner lends at once, 0 for all. A refusal says it; to
	// keep it is the business of whoever is Asked
	LendMost int64

	// Grace is how long after the end of a lease something of the borrower may still
	// run here before it is gone. 0 is legal; at most HoldLimit
	Grace grid.Time

	// Tariff returns what this site charges a borrower for a processor-hour of a lease that
	// is paid from a bank, and whether it lends to who pays from there; bank is empty if
	// nobody pays. Nil: nothing, to anybody
	Tariff func(borrower, bank grid.SiteID) (price grid.Price, lends bool)

	Bank grid.SiteID       // whose cheques pay for what this site borrows; empty: nobody pays
	Most func() grid.Price // highest price that it pays if Want.Most does not say; nil: any

	// Drain says that processors come back only when the owner reports, by Vacated,
	// that nothing of the borrower runs on them any more. Without it they are back as
	// soon as the lease is over.
	Drain bool
}

// DefaultTerm is Config.Term if nothing is said, and RetryDefault Config.Retry.
const (
	DefaultTerm  = 5 * grid.Minute
	RetryDefault = 5 * grid.Second
)

// withDefaults returns cfg with zero fields filled in, or what is wrong with it.
func (cfg Config) withDefaults() (Config, error) {
	set := func(v *grid.Time, def grid.Time) {
		if *v == 0 {
			*v = def
		}
	}
	set(&cfg.Term, DefaultTerm)
	set(&cfg.Hold, 30*grid.Second)
	set(&cfg.SpanMax, 30*grid.Day)
	set(&cfg.Retry, RetryDefault)
	if cfg.Drift == 0 {
		cfg.Drift = 1000
	}
	switch {
	case cfg.Site == "":
		return cfg, fmt.Errorf("lease: a book without a site")
	case cfg.Term < grid.Second || cfg.Term > TermMax:
		return cfg, fmt.Errorf("lease: term of %v, want 1s to %v", cfg.Term, TermMax)
	case cfg.Hold < 0 || cfg.Hold > HoldLimit:
		return cfg, fmt.Errorf("lease: hold of %v, want more than 0 and at most %v", cfg.Hold, HoldLimit)
	case cfg.Grace < 0 || cfg.Grace > HoldLimit:
		return cfg, fmt.Errorf("lease: grace of %v, want 0 to %v", cfg.Grace, HoldLimit)
	case cfg.SpanMax < 0 || cfg.SpanMax > SpanLimit:
		return cfg, fmt.Errorf("lease: leases of at most %v, want more than 0 and at most %v", cfg.SpanMax, SpanLimit)
	case cfg.Retry < 0:
		return cfg, fmt.Errorf("lease: repetition after %v, want more than 0", cfg.Retry)
	case cfg.Drift < 0 || cfg.Drift > 100_000:
		return cfg, fmt.Errorf("lease: clocks that drift by %d millionths, want 0 to 100000", cfg.Drift)
	}
	return cfg, nil
}

// most returns the highest price of a lease for which so much is wanted to be paid.
func (cfg *Config) most(wanted grid.Price) grid.Price {
	if wanted == 0 && cfg.Bank != "" && cfg.Most != nil {
		wanted = cfg.Most()
	}
	return wanted
}

// tariff returns what a lease costs that is paid from a bank, and whether there is one.
func (cfg *Config) tariff(borrower, bank grid.SiteID) (grid.Price, bool) {
	if cfg.Tariff == nil {
		return 0, true
	}
	return cfg.Tariff(borrower, bank)
}

// shorter returns how long the borrower may count on a span that the lender counts
// on its own clock: whatever both clocks do, it is over here first.
func (cfg *Config) shorter(span grid.Time) grid.Time { return span - cfg.margin(span) }

// longer returns after how long a span that the lender counts is surely over there.
func (cfg *Config) longer(span grid.Time) grid.Time { return span + cfg.margin(span) + 1 }

// margin is what two clocks, both off by Drift, may differ by over a span: a factor
// of (1+d)/(1-d), which is below 1+3d for every d that Config allows.
func (cfg *Config) margin(span grid.Time) grid.Time {
	return grid.Time(int64(span)/1_000_000*3*cfg.Drift + int64(span)%1_000_000*3*cfg.Drift/1_000_000 + 1)
}
