package guest

import (
	"cmp"
	"iter"
	"slices"

	"gridnode/grid"
)

// Use is what a site has here.
type Use struct {
	Jobs       int64 // promised ones and those that wait included
	Processors int64 // of them
	Lent       int64 // processors lent to it, or set aside for that
	GPUs       int64 // of its jobs
}

func (u *Use) add(v Use) {
	u.Jobs += v.Jobs
	u.Processors += v.Processors
	u.Lent += v.Lent
	u.GPUs += v.GPUs
}

// Around the desk: what its owner tells it.
type (
	// Knows returns who a site is.
	Knows func(grid.SiteID) Who
	// Uses yields what sites have here, those that have nothing left out.
	Uses iter.Seq2[grid.SiteID, Use]
)

// Desk decides, by the owner's rules, what other sites may have here. It is deterministic,
// reads no clock and is not safe for concurrent use.
type Desk struct {
	cfg        Config
	processors int64 // of the site
	knows      Knows
	uses       Uses
	bans       map[Partner]*Ban
	refused    [causesMax]int64
	refusals   map[grid.SiteID]*Refusals
}

// Refusals is what was refused to one site since the start.
type Refusals struct {
	Site  grid.SiteID
	Count int64
	Last  Cause
	At    grid.Time // the last one
}

// refusalsMax bounds the sites whose refusals are remembered one by one.
const refusalsMax = 1024

// NewDesk returns the desk of a site of so many processors.
func NewDesk(cfg Config, processors int64, knows Knows, uses Uses) *Desk {
	return &Desk{cfg: cfg, processors: processors, knows: knows, uses: uses, bans: make(map[Partner]*Ban), refusals: make(map[grid.SiteID]*Refusals)}
}

// Configure changes the rules. What is here already is not looked at again.
func (d *Desk) Configure(cfg Config) { d.cfg = cfg }

// Config returns the rules.
func (d *Desk) Config() *Config { return &d.cfg }

// Ask is what a site wants to have here.
type Ask struct {
	Site       grid.SiteID
	Lease      bool // processors lent; else a job
	Processors int64
	Memory     int64     // bytes for each; 0: it does not say
	Span       grid.Time // for how long at most
	Needs      Runs      // what it is; 0: not known
	GPUs       int64
	Mine       Use  // of what the site has here, what is this very ask
	Only       bool // it only wants to know: a refusal is not counted
}

// Admit decides whether a site may have what it asks for, if hours are not looked at.
func (d *Desk) Admit(now grid.Time, a *Ask) Cause {
	who := d.knows(a.Site)
	cause := d.admit(now, &who, a)
	if a.Only {
		return cause
	}
	return d.count(now, a.Site, cause)
}

func (d *Desk) admit(now grid.Time, who *Who, a *Ask) Cause {
	if cause := d.welcome(now, who); cause != Admitted {
		return cause
	}
	switch e := d.effective(who); {
	case e.Time > 0 && a.Span > e.Time:
		return TooLong
	case e.Memory > 0 && a.Memory > e.Memory:
		return OverMemory
	case e.Runs != 0 && a.Needs&^e.Runs != 0:
		return NotRun
	}
	for i := range d.cfg.Rules {
		if r := &d.cfg.Rules[i]; who.Is(r.Partner) {
			if cause := d.fits(r, a); cause != Admitted {
				return cause
			}
		}
	}
	return Admitted
}

// Welcome decides whether a site is let in at all.
func (d *Desk) Welcome(now grid.Time, site grid.SiteID) Cause {
	who := d.knows(site)
	return d.count(now, site, d.welcome(now, &who))
}

func (d *Desk) welcome(now grid.Time, who *Who) Cause {
	switch e := d.effective(who); {
	case d.Banned(now, who) != nil:
		return Banned
	case e.Access == Deny:
		return Denied
	}
	return Admitted
}

// fits decides whether the partner of a rule may have so much more.
func (d *Desk) fits(r *Rule, a *Ask) Cause {
	most, said := r.processors(d.processors)
	if !said && r.Jobs == 0 && r.Lent == 0 && r.GPUs == 0 {
		return Admitted
	}
	use := Use{Jobs: -a.Mine.Jobs, Processors: -a.Mine.Processors, Lent: -a.Mine.Lent, GPUs: -a.Mine.GPUs}
	for site, u := range d.uses {
		who := Who{Site: site}
		if r.Scope != Everyone {
			who = d.knows(site)
		}
		if who.Is(r.Partner) {
			use.add(u)
		}
	}
	switch {
	case said && use.Processors+use.Lent+a.Processors > most:
		return OverProcessors
	case a.Lease && r.Lent != 0 && use.Lent+a.Processors > max(r.Lent, 0):
		return OverLeases
	case !a.Lease && r.Jobs > 0 && use.Jobs >= r.Jobs:
		return OverJobs
	case a.GPUs > 0 && r.GPUs != 0 && use.GPUs+a.GPUs > max(r.GPUs, 0):
		return OverGPUs
	}
	return Admitted
}

// Lends returns how many processors the rules let a site have lent at a time, whatever is lent
// already; 0: none, or as many as there are.
func (d *Desk) Lends(site grid.SiteID) (most int64) {
	who := d.knows(site)
	for i := range d.cfg.Rules {
		r := &d.cfg.Rules[i]
		if !who.Is(r.Partner) {
			continue
		}
		if r.Lent < 0 {
			return 0
		}
		processors, _ := r.processors(d.processors)
		for _, bound := range [...]int64{processors, r.Lent} {
			if bound > 0 && (most == 0 || bound < most) {
				most = bound
			}
		}
	}
	return most
}

// Promise decides whether something of a site may run from start to end.
func (d *Desk) Promise(now grid.Time, site grid.SiteID, start, end grid.Time) Cause {
	return d.count(now, site, d.Would(site, start, end))
}

// Would is Promise for who only wants to know.
func (d *Desk) Would(site grid.SiteID, start, end grid.Time) Cause {
	if who := d.knows(site); !d.effective(&who).Hours.Cover(start, end, d.cfg.zone()) {
		return OffHours
	}
	return Admitted
}

// Runs decides whether a site may run a job, which it has shown now.
func (d *Desk) Runs(now grid.Time, site grid.SiteID, job *grid.Job) Cause {
	who := d.knows(site)
	needs := Programs
	if job.IsModule() {
		needs = Modules
	}
	if len(job.Inputs) > 0 {
		needs |= DataSets
	}
	cause := d.welcome(now, &who)
	switch e := d.effective(&who); {
	case cause != Admitted:
	case e.Runs != 0 && needs&^e.Runs != 0:
		cause = NotRun
	case e.Memory > 0 && job.Memory > e.Memory:
		cause = OverMemory
	}
	return d.count(now, site, cause)
}

// Price returns what a site pays where the price is so much.
func (d *Desk) Price(site grid.SiteID, price grid.Price) grid.Price {
	if len(d.cfg.Rules) == 0 || price <= 0 {
		return price
	}
	who := d.knows(site)
	e := d.effective(&who)
	if e.Price == 0 || e.Price == 1000 {
		return price
	}
	whole, rest := int64(price)/1000, int64(price)%1000
	if whole > int64(grid.CreditsMax)/e.Price {
		return grid.Price(grid.CreditsMax)
	}
	return min(max(grid.Price(whole*e.Price+rest*e.Price/1000), 1), grid.Price(grid.CreditsMax))
}

// Name returns what the certificate of a site calls it, empty if it has none.
func (d *Desk) Name(site grid.SiteID) string {
	who := d.knows(site)
	return who.Name
}

// Shuns reports whether the owner wants nothing of a site now.
func (d *Desk) Shuns(now grid.Time, site grid.SiteID) bool {
	who := d.knows(site)
	return d.Banned(now, &who) != nil || d.effective(&who).Access == Deny
}

// Limits returns what the processes of a site may use.
func (d *Desk) Limits(site grid.SiteID) Limits {
	who := d.knows(site)
	e := d.effective(&who)
	return Limits{Memory: e.Memory, Disk: e.Disk, Network: e.Network}
}

// effective returns what the narrowest rule says of everything but counts.
func (d *Desk) effective(who *Who) (e Rule) {
	if len(d.cfg.Rules) == 0 {
		return e
	}
	for _, scope := range [...]Scope{Site, Organisation, Everyone} {
		for i := range d.cfg.Rules {
			r := &d.cfg.Rules[i]
			if r.Scope != scope || !who.Is(r.Partner) {
				continue
			}
			e.Access, e.Network = cmp.Or(e.Access, r.Access), cmp.Or(e.Network, r.Network)
			e.Time, e.Memory, e.Disk = cmp.Or(e.Time, r.Time), cmp.Or(e.Memory, r.Memory), cmp.Or(e.Disk, r.Disk)
			e.Price, e.Runs = cmp.Or(e.Price, r.Price), cmp.Or(e.Runs, r.Runs)
			if len(e.Hours) == 0 {
				e.Hours = r.Hours
			}
		}
	}
	return e
}

// count counts a refusal.
func (d *Desk) count(now grid.Time, site grid.SiteID, cause Cause) Cause {
	if cause == Admitted {
		return cause
	}
	d.refused[cause]++
	r := d.refusals[site]
	if r == nil {
		if len(d.refusals) >= refusalsMax {
			d.forgetOldest()
		}
		r = &Refusals{Site: site}
		d.refusals[site] = r
	}
	r.Count++
	r.Last, r.At = cause, now
	return cause
}

// forgetOldest forgets whose last refusal is the longest ago.
func (d *Desk) forgetOldest() {
	var oldest *Refusals
	for _, r := range d.refusals {
		if oldest == nil || r.At < oldest.At || r.At == oldest.At && r.Site < oldest.Site {
			oldest = r
		}
	}
	delete(d.refusals, oldest.Site)
}

// Refused returns how often each cause has refused something since the start, by Cause.
func (d *Desk) Refused() []int64 { return slices.Clone(d.refused[:]) }

// Refusals returns to whom something was refused, the latest first.
func (d *Desk) Refusals() []Refusals {
	all := make([]Refusals, 0, len(d.refusals))
	for _, r := range d.refusals {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Refusals) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Site, b.Site)) })
	return all
}
