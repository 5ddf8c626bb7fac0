package guest

import (
	"cmp"
	"fmt"
	"time"

	"gridnode/grid"
)

// Scope says how many sites a partner is.
type Scope uint8

// Scopes, from wide to narrow.
const (
	Everyone Scope = iota
	Organisation
	Site
)

// Partner is whom a rule is about: one site, by its ID or the name in its certificate; the
// sites whose certificates name an organisation; or every other site.
type Partner struct {
	Scope Scope
	Name  string // empty for Everyone
}

// String names the partner as in the settings.
func (p Partner) String() string {
	switch p.Scope {
	case Organisation:
		return "orgs." + p.Name
	case Site:
		return "sites." + p.Name
	}
	return "everyone"
}

// Compare orders partners from wide to narrow, then by name.
func (p Partner) Compare(other Partner) int {
	return cmp.Or(cmp.Compare(p.Scope, other.Scope), cmp.Compare(p.Name, other.Name))
}

// Who is a site that asks, as far as it is known.
type Who struct {
	Site grid.SiteID
	Name string // in its certificate; empty if it has none
	Org  string // the same
}

// Is reports whether a site is the partner, or one of it.
func (w *Who) Is(p Partner) bool {
	switch p.Scope {
	case Organisation:
		return w.Org != "" && w.Org == p.Name
	case Site:
		return string(w.Site) == p.Name || w.Name != "" && w.Name == p.Name
	}
	return true
}

// Answer is yes or no, or nothing was said.
type Answer uint8

// Answers.
const (
	Unsaid Answer = iota
	Allow
	Deny
)

// Runs is a set of what may run.
type Runs uint8

// What may run. Programs run in the sandbox.
const (
	Programs Runs = 1 << iota
	DataSets      // jobs that read data sets, which are brought here for them
	Modules       // modules of WebAssembly
)

// None as Rule.Lent lends nothing, and as Rule.GPUs gives none.
const None = -1

// Rule is what an owner says of a partner. What is zero was not said.
type Rule struct {
	Partner
	Access Answer

	Processors int64 // at a time, of jobs and leases
	Share      int64 // the same, in thousandths of the site's processors
	Jobs       int64 // at a time, promised ones and those that wait included
	Lent       int64 // processors lent at a time; None: no leases
	GPUs       int64 // at a time, promised ones included; None: no GPUs

	Time    grid.Time // longest job or lease
	Memory  int64     // bytes for each processor
	Disk    int64     // bytes of files of a job
	Network Answer    // the machine's network
	Price   int64     // thousandths of the site's price
	Hours   Hours     // within which its work has to run
	Runs    Runs
}

// processors returns the count of processors that a rule allows at a site of so many, and
// whether it says any.
func (r *Rule) processors(site int64) (most int64, said bool) {
	switch {
	case r.Processors > 0:
		return r.Processors, true
	case r.Share > 0:
		return max(site*r.Share/1000, 1), true
	}
	return 0, false
}

// OnBan says what becomes of what a banned partner runs here.
type OnBan uint8

// What becomes of the guests of who is banned.
const (
	Finish OnBan = iota // they end by themselves; leases are not renewed
	Cancel              // they are ended
)

var onBanNames = [...]string{"finish", "cancel"}

// String returns the name in the settings.
func (o OnBan) String() string { return onBanNames[o] }

// ParseOnBan reads finish or cancel.
func ParseOnBan(v string) (OnBan, error) {
	for i, name := range onBanNames {
		if name == v {
			return OnBan(i), nil
		}
	}
	return Finish, fmt.Errorf("%q: want finish or cancel", v)
}

// Config is the owner's rules.
type Config struct {
	Rules []Rule // one for a partner
	OnBan OnBan
	Zone  *time.Location // of hours; nil: UTC
}

// zone returns the zone of hours.
func (c *Config) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// Limits is what the processes of a guest may use; zero: not said.
type Limits struct {
	Memory  int64 // bytes for each processor
	Disk    int64
	Network Answer
}
