package guest

import (
	"fmt"

	"gridnode/grid"
)

// Around is what a site has and does besides, as far as rules can contradict it.
type Around struct {
	Self       grid.SiteID
	Name       string      // of this site
	Processors int64       // it has
	GPUs       int64       // the same
	Jobs       bool        // it runs jobs of other sites
	Lends      bool        // it lends processors
	Head       grid.SiteID // may head it; empty: nobody
	Open       bool        // the federation has no certificates: nothing of others is taken
}

// Problem is what is wrong with one thing that a rule says.
type Problem struct {
	Partner Partner
	Key     string // as in the settings; empty: the rule as a whole
	Text    string
}

// checker collects what is wrong with rules.
type checker struct {
	around   Around
	everyone *Rule // nil: nothing is said of everyone
	found    []Problem
}

// Check returns what contradicts itself or the site, or could never count, in the order of
// the rules.
func (c *Config) Check(around Around) []Problem {
	k := checker{around: around}
	for i := range c.Rules {
		if c.Rules[i].Scope == Everyone {
			k.everyone = &c.Rules[i]
		}
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		for _, other := range c.Rules[:i] {
			if other.Partner == r.Partner {
				k.add(r, "", "there is a rule for it already")
			}
		}
		k.partner(r)
		k.alone(r)
		k.site(r)
		if r != k.everyone && k.everyone != nil {
			k.wider(r)
		}
	}
	return k.found
}

func (k *checker) add(r *Rule, key, format string, args ...any) {
	k.found = append(k.found, Problem{r.Partner, key, fmt.Sprintf(format, args...)})
}

// partner says whether the rule can be about anybody.
func (k *checker) partner(r *Rule) {
	switch {
	case r.Scope != Everyone && r.Name == "":
		k.add(r, "", "it names nobody")
	case r.Scope == Site && (r.Name == string(k.around.Self) || r.Name == k.around.Name):
		k.add(r, "", "this is the site itself: rules are for others, it never counts")
	}
}

// alone says whether the rule contradicts itself.
func (k *checker) alone(r *Rule) {
	if r.Access == Deny {
		for _, said := range r.said() {
			k.add(r, said, "never counts, as the same rule says access: deny")
		}
		return
	}
	if r.Processors > 0 && r.Share > 0 {
		k.add(r, "share", "processors says the same already: leave one of them out")
	}
	if most, said := r.processors(k.around.Processors); said && r.Lent > most {
		k.add(r, "leases", "%d is never reached: the same rule allows %d processors in all", r.Lent, most)
	}
	if longest := r.Hours.longest(); len(r.Hours) > 0 && r.Time > longest {
		k.add(r, "time", "%v is never reached: the hours of the same rule are %v at most", r.Time, longest)
	}
	if r.Runs == DataSets {
		k.add(r, "run", "data sets are read by jobs, and none may run: say sandbox or wasm, too, or access: deny")
	}
}

// said returns the keys of what a rule says besides access.
func (r *Rule) said() (keys []string) {
	for _, s := range []struct {
		key string
		yes bool
	}{
		{"processors", r.Processors != 0}, {"share", r.Share != 0}, {"jobs", r.Jobs != 0}, {"leases", r.Lent != 0}, {"gpus", r.GPUs != 0}, {"time", r.Time != 0},
		{"memory", r.Memory != 0}, {"disk", r.Disk != 0}, {"network", r.Network != Unsaid}, {"price", r.Price != 0}, {"hours", len(r.Hours) > 0},
		{"run", r.Runs != 0},
	} {
		if s.yes {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// site says whether the rule contradicts what the site does.
func (k *checker) site(r *Rule) {
	a := &k.around
	head := a.Head != "" && r.Scope == Site && r.Name == string(a.Head)
	switch {
	case a.Open:
		k.add(r, "", "never counts: the federation is open, so nothing of another site is taken")
	case head && r.Access == Deny:
		k.add(r, "access", "muscle.head lets the same site in: leave one of them out")
	case !a.Jobs && !a.Lends && a.Head == "":
		k.add(r, "", "never counts: nobody is let in, as foreign and leases.lend are deny")
	case r.Lent > 0 && !a.Lends:
		k.add(r, "leases", "never counts: leases.lend is deny")
	case r.GPUs > a.GPUs:
		k.add(r, "gpus", "%d is never reached: the site has %d", r.GPUs, a.GPUs)
	case r.Jobs > 0 && !a.Jobs && !head && a.Head == "":
		k.add(r, "jobs", "never counts: foreign is deny")
	}
}

// wider says whether the rule allows more than everyone has together.
func (k *checker) wider(r *Rule) {
	all, site := k.everyone, k.around.Processors
	if r.Access == Deny || all.Access == Deny {
		return
	}
	most, said := r.processors(site)
	if bound, bounded := all.processors(site); said && bounded && most > bound {
		key := "processors"
		if r.Processors == 0 {
			key = "share"
		}
		k.add(r, key, "%d processors are never reached: everyone has %d together", most, bound)
	}
	if all.Jobs > 0 && r.Jobs > all.Jobs {
		k.add(r, "jobs", "%d is never reached: everyone has %d together", r.Jobs, all.Jobs)
	}
	if all.GPUs != 0 && r.GPUs > max(all.GPUs, 0) {
		k.add(r, "gpus", "%d is never reached: everyone has %d together", r.GPUs, max(all.GPUs, 0))
	}
	if all.Lent != 0 && r.Lent > max(all.Lent, 0) {
		k.add(r, "leases", "%d is never reached: everyone has %d together", r.Lent, max(all.Lent, 0))
	}
}
