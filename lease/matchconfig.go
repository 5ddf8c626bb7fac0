package lease

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// MatchConfig is what a Matchmaker is told. A zero field takes the default named
// beside it, unless zero is said to be legal.
type MatchConfig struct {
	Links []Link

	// Members are sites outside the neighbourhood that OrderGossip may ask, too.
	Members []grid.SiteID

	Lend bool // other sites may borrow this one's processors, or what it can borrow

	// Threshold is the load, in thousandths of the processors, beyond which requests
	// are delegated: processors in use, or waited for, over processors. 1000 in the
	// paper. 0: nothing is delegated
	Threshold int64

	DelegationCycle grid.Time // between two looks at the load; 60 s

	// MatchCycle is the time between two rounds of dispatching requests to processors
	// (Condor's NEGOTIATOR_INTERVAL, 300 s in the paper). 0: they are dispatched as
	// soon as they can be.
	MatchCycle grid.Time
	Phase      grid.Time // of both cycles, within MatchCycle

	TTL      int32     // how often a request of this site may be delegated (DTTL); 6
	Patience grid.Time // how long a target may think; 2·MatchCycle + DelegationCycle
	Retry    grid.Time // until a request that nobody had room for is delegated anew, and how long a refusal is believed; MatchCycle, at least DelegationCycle
	Rounds   int32     // rounds of delegation after which a request keeps its place in the queue until it starts; 0: it gives way until it fits
	Slack    grid.Time // asked for beyond a job's estimate; 1 min

	Policy    Policy
	Ordering  Ordering
	Selection Selection
	Rules     Rules // of one's own
}

// SeenSpan is how long a request is remembered: "SMs retain a list of resource
// requests they have seen during the past hour" (§4.3). seenMax bounds the list.
const (
	SeenSpan = grid.Hour
	seenMax  = 1 << 17
)

func (cfg MatchConfig) withDefaults(self grid.SiteID) (MatchConfig, error) {
	if cfg.DelegationCycle == 0 {
		cfg.DelegationCycle = grid.Minute
	}
	if cfg.TTL == 0 {
		cfg.TTL = 6
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2*cfg.MatchCycle + cfg.DelegationCycle
	}
	if cfg.Retry == 0 {
		cfg.Retry = max(cfg.MatchCycle, cfg.DelegationCycle)
	}
	if cfg.Slack == 0 {
		cfg.Slack = grid.Minute
	}
	switch {
	case cfg.Threshold < 0 || cfg.Threshold > 1_000_000:
		return cfg, fmt.Errorf("lease: delegation threshold of %d thousandths, want 0 to 1000000: %w", cfg.Threshold, ErrBounds)
	case cfg.DelegationCycle < grid.Second || cfg.DelegationCycle > grid.Day:
		return cfg, fmt.Errorf("lease: delegation cycle of %v, want 1s to 24h: %w", cfg.DelegationCycle, ErrBounds)
	case cfg.MatchCycle != 0 && cfg.MatchCycle < grid.Second || cfg.MatchCycle > grid.Day:
		return cfg, fmt.Errorf("lease: matchmaking cycle of %v, want 0, or 1s to 24h: %w", cfg.MatchCycle, ErrBounds)
	case cfg.TTL < 0 || cfg.TTL > TTLMax:
		return cfg, fmt.Errorf("lease: requests that may be delegated %d times, want 1 to %d: %w", cfg.TTL, TTLMax, ErrBounds)
	case cfg.Phase < 0 || cfg.Phase > grid.Day || cfg.Patience < 0 || cfg.Patience > PatienceLimit || cfg.Retry < 0 || cfg.Slack < 0 || cfg.Slack > grid.Day || cfg.Rounds < 0:
		return cfg, fmt.Errorf("lease: phase %v, patience %v, retry %v, slack %v, %d rounds: %w", cfg.Phase, cfg.Patience, cfg.Retry, cfg.Slack, cfg.Rounds, ErrBounds)
	case cfg.Policy > XSTRD || cfg.Policy != DMM && cfg.Threshold > 0:
		return cfg, fmt.Errorf("lease: policy %d with a threshold of %d thousandths, want none but for dmm: %w", cfg.Policy, cfg.Threshold, ErrBounds)
	case cfg.Ordering > OrderGossip || cfg.Selection > SelectWidest:
		return cfg, fmt.Errorf("lease: ordering %d, selection %d: %w", cfg.Ordering, cfg.Selection, ErrBounds)
	}
	return cfg, CheckLinks(self, cfg.Links)
}

// SetMembers replaces the sites outside the neighbourhood that OrderGossip may ask, too:
// those whose reports reach this one. A member that has a link is asked as a neighbour.
func (m *Matchmaker) SetMembers(sites []grid.SiteID) {
	m.cfg.Members = slices.DeleteFunc(slices.Clone(sites), func(site grid.SiteID) bool {
		return slices.ContainsFunc(m.cfg.Links, func(l Link) bool { return l.Site == site })
	})
}
