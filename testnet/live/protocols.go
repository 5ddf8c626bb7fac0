package live

import (
	"cmp"
	"fmt"
	"strconv"

	"gridnode/coalloc"
	"gridnode/coalloc/muscle"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market/bank"
	"gridnode/node/site"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/scenario/scale"
)

// Protocols is what the sites do besides trading, live and in virtual time. The zero
// value: nothing.
type Protocols struct {
	Delegation string `json:"delegation"` // when a site borrows: "dmm", "s-strd" or "x-strd"; empty: never
	Order      string `json:"order"`      // whom it asks first: "neighbours", "most-free", "best-fit" or "gossip"
	Coalloc    string `json:"coalloc"`    // how divided jobs are placed: "wf", "cf", "fcm", "ca" or "adaptive"; empty: no job is divided
	Heads      int    `json:"heads"`      // the first site of each authority heads so many of the others; 0: nobody does
	Packing    string `json:"packing"`    // how a head shares jobs out: "urgent", "muscle", "dll" or "wrand"
	Bank       bool   `json:"bank"`       // every site wants to be paid, by cheques of the bank at the first site

	Local   int `json:"local"`   // with Delegation or Heads: per cent of the jobs that name no price: they stay at home, or with its head
	Divided int `json:"divided"` // with Coalloc: per cent of the jobs of 2 to dividedMax processors that run at several sites
}

// DefaultProtocols is what the flags of the command line start from.
func DefaultProtocols() Protocols {
	return Protocols{Order: lease.OrderGossip.String(), Packing: muscle.PolicyUrgent.String(), Local: 50, Divided: 25}
}

// What a protocol does if nobody says how.
const (
	DelegationUsual = "dmm"
	CoallocUsual    = "adaptive"
	HeadsUsual      = 3
)

// All returns p with those protocols that it leaves out.
func (p Protocols) All() Protocols {
	p.Delegation, p.Coalloc = cmp.Or(p.Delegation, DelegationUsual), cmp.Or(p.Coalloc, CoallocUsual)
	p.Heads, p.Bank = cmp.Or(p.Heads, HeadsUsual), true
	return p
}

// Spans of protocols that go with those of jobs, which are shorter than they were: as
// short as they may be.
const cycle = grid.Second

const (
	childrenMax = 3  // below each site of the hierarchy of delegation
	dividedMax  = 24 // processors of a job that is divided: each has a task
	share       = 100
)

// accounts is what the bank gives all sites together: each pays whatever is asked of it.
const accounts = grid.CreditsMax / 2

// leasePay times its own price is what a site pays for leases: as much as the dearest asks.
const leasePay = 4

// protocols are Protocols, read.
type protocols struct {
	Protocols
	borrow   lease.MatchConfig
	place    coalloc.Policy
	share    muscle.Policy
	sites    int
	id       func(site int) grid.SiteID
	links    func(site int) []lease.Link
	headedBy map[grid.SiteID]bool // IDs of heads
}

// parse reads p for so many sites.
func (p Protocols) parse(sites int, id func(site int) grid.SiteID) (*protocols, error) {
	r := &protocols{Protocols: p, sites: sites, id: id, headedBy: make(map[grid.SiteID]bool)}
	var err error
	bad := func(flag string) error { return scenario.ConfigError(flag, "%v", err) }
	if p.Delegation != "" {
		r.borrow.DelegationCycle = cycle
		if r.borrow.Policy, err = lease.ParsePolicy(p.Delegation); err != nil {
			return nil, bad("delegation")
		}
		if r.borrow.Policy == lease.DMM {
			r.borrow.Threshold = 1000 // the paper's
		}
		if r.borrow.Ordering, err = lease.ParseOrdering(p.Order); err != nil {
			return nil, bad("order")
		}
		r.links = federation.Hierarchy(sites, childrenMax, id)
	}
	if p.Coalloc != "" {
		if r.place, err = coalloc.ParsePolicy(p.Coalloc); err != nil {
			return nil, bad("coalloc")
		}
	}
	if r.share, err = muscle.ParsePolicy(p.Packing); err != nil && p.Heads > 0 {
		return nil, bad("packing")
	}
	for _, n := range []struct {
		flag        string
		value, most int
	}{{"heads", p.Heads, scale.SiblingsMax - 1}, {"local", p.Local, share}, {"divided", p.Divided, share}} {
		if n.value < 0 || n.value > n.most {
			return nil, scenario.ConfigError(n.flag, "%d: want 0 to %d", n.value, n.most)
		}
	}
	for i := 0; i+1 < sites && p.Heads > 0; i += scale.SiblingsMax {
		r.headedBy[id(i)] = true
	}
	return r, nil
}

// tell adds to what a site is told.
func (p *protocols) tell(i int, cfg *site.Config) {
	cfg.Lease.Lend = p.Delegation != "" || p.Coalloc != ""
	if p.Delegation != "" {
		cfg.Lease.Match = p.borrow
		cfg.Lease.Match.Links = p.links(i)
	}
	if p.Coalloc != "" {
		cfg.Coallocation.Queue = coalloc.QueueConfig{Policy: p.place, Interval: cycle}
	}
	if p.Bank {
		cfg.Bank = bank.Config{Offer: i == 0, Bank: p.id(0), Accept: []grid.SiteID{p.id(0)}}
		cfg.Lease.Price, cfg.Lease.Pay = site.OwnPrice, leasePay*cfg.Price
	}
	first := i - i%scale.SiblingsMax
	switch at := i - first; {
	case !p.headedBy[p.id(first)]:
	case at == 0:
		cfg.Heads.HeadConfig = muscle.HeadConfig{Window: cycle, Policy: p.share}
		for m := i + 1; m <= i+p.Heads && m < p.sites; m++ {
			cfg.Heads.Members = append(cfg.Heads.Members, string(p.id(m)))
		}
	case at <= p.Heads:
		cfg.Head = p.id(first)
	}
}

// grants are what the bank issues before the first job.
func (p *protocols) grants() (list []*bank.Grant) {
	for i := 0; i < p.sites && p.Bank; i++ {
		list = append(list, &bank.Grant{ID: grid.JobID{Hi: 1, Lo: uint64(i + 1)}, To: p.id(i), Amount: accounts / grid.Credits(p.sites)})
	}
	return list
}

// dress says which of the protocols a job goes through: by its owner's wish, not by what
// would suit it.
func (p *protocols) dress(seed uint64, j *grid.Job) {
	draws := draw.Mix(draw.Mix(seed, uint64(draw.ForJobs)), j.ID.Hi)
	of := func(percent int) bool {
		draws = draw.Mix(draws, 1)
		return draws%share < uint64(percent)
	}
	local, divided := of(p.Local), of(p.Divided)
	switch {
	case p.Coalloc != "" && divided && j.Processors >= 2 && j.Processors <= dividedMax:
		j.Coallocate = &grid.Coallocation{Count: "2..3", CCR: -1}
	case local && p.headedBy[j.Home]: // it keeps its deadline
		j.Goal, j.Budget = grid.GoalLocal, grid.NoBudget
		return
	case local && p.Delegation != "":
	default:
		return
	}
	j.Goal, j.Budget, j.Deadline = grid.GoalLocal, grid.NoBudget, grid.Never
}

// Flags returns the flags of the command line that say the same.
func (p Protocols) Flags() (flags string) {
	d := DefaultProtocols()
	add := func(flag, value, usual string) {
		if value != usual {
			flags += fmt.Sprintf(" --%s=%s", flag, value)
		}
	}
	add("delegation", p.Delegation, "")
	add("order", p.Order, d.Order)
	add("coalloc", p.Coalloc, "")
	add("heads", strconv.Itoa(p.Heads), "0")
	add("packing", p.Packing, d.Packing)
	if p.Bank {
		flags += " --bank"
	}
	add("local", strconv.Itoa(p.Local), strconv.Itoa(d.Local))
	add("divided", strconv.Itoa(p.Divided), strconv.Itoa(d.Divided))
	return flags
}
