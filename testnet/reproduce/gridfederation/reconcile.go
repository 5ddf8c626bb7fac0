package gridfederation

import (
	"fmt"
	"slices"
	"strings"

	"gridnode/testnet/reproduce"
)

// busyFast returns the mean utilisation of the fast sites in percent.
func (o *outcome) busyFast() reproduce.Number {
	var sum reproduce.Number
	n := 0
	for i := range o.Sites {
		if slices.Contains(fastSites, i%siteAll) {
			sum += reproduce.Number(100 * o.Sites[i].Utilization.Float())
			n++
		}
	}
	if n == 0 {
		return reproduce.None
	}
	return sum / reproduce.Number(n)
}

// fastOf returns how many of some sites, table 1 again and again, are fast ones.
func fastOf(sites int) (n int) {
	for i := range sites {
		if slices.Contains(fastSites, i%siteAll) {
			n++
		}
	}
	return n
}

// reconcile tells for the claims that hang on load or reading where they hold.
func (s *federationStudy) reconcile() []reproduce.Claim {
	const order = "2.31e9 > 2.16e9 > 2.12e9"
	return []reproduce.Claim{
		s.across("total incentive: OFT > 50/50 > OFC", order, func(r *reading) (bool, string) {
			return inOrder(r, func(o *outcome) float64 { return o.earnedBy(siteAll) })
		}),
		s.across("the same with communication charged", order, func(r *reading) (bool, string) {
			return inOrder(r, func(o *outcome) float64 { return o.incentive(siteAll).taken })
		}),
		s.across("the same for work done within the two days", order, func(r *reading) (bool, string) {
			return inOrder(r, func(o *outcome) float64 { return o.timely })
		}),
		s.across("response time of all users falls from alone to OFT", "12 070 → 11 710 s (−3.0 %)", func(r *reading) (bool, string) {
			return falls(r.alone, r.economy[2], func(u *users) float64 { return u.response })
		}),
		s.across("the same if a rejected job counts as at an idle home", "12 070 → 11 710 s (−3.0 %)", func(r *reading) (bool, string) {
			return falls(r.alone, r.economy[2], func(u *users) float64 { return u.responseIdle })
		}),
		s.across("the same if a rejected job counts to its deadline", "12 070 → 11 710 s (−3.0 %)", func(r *reading) (bool, string) {
			return falls(r.alone, r.economy[2], func(u *users) float64 { return u.responseDeadline })
		}),
		s.across("budget of all users falls from alone to OFC", "935 900 → 887 400 (−5.2 %)", func(r *reading) (bool, string) {
			return falls(r.alone, r.economy[0], func(u *users) float64 { return u.spent.computing })
		}),
		s.across("users spend less under OFC than under OFT", "stated", func(r *reading) (bool, string) {
			return falls(r.economy[2], r.economy[0], func(u *users) float64 { return u.spent.computing })
		}),
	}
}

// across makes a claim that holds if it does at the reading of the experiments, the
// first, and says at which others it would, with their load and figure.
func (s *federationStudy) across(text, published string, holds func(r *reading) (bool, string)) reproduce.Claim {
	ok, figure := holds(s.readings[0])
	here := "as above: " + figure
	var where []string
	for _, r := range s.readings[1:] {
		if would, figure := holds(r); would {
			where = append(where, fmt.Sprintf("%s (load %s %%): %s", r.name, reproduce.Format(s.load(r.used, siteAll), 1), figure))
		}
	}
	switch {
	case ok:
		here += fmt.Sprintf("; at %d of %d", len(where)+1, len(s.readings))
	case len(where) == 0:
		here += fmt.Sprintf("; at none of %d", len(s.readings))
	default:
		here += "; it would be so at " + strings.Join(where, "; ")
	}
	return reproduce.Claim{Text: text, Published: published, Here: here, Holds: ok}
}

// inOrder reports whether owners earn most under OFT and least under OFC.
func inOrder(r *reading, earned func(o *outcome) float64) (bool, string) {
	ofc, mixed, oft := earned(r.economy[0]), earned(r.economy[1]), earned(r.economy[2])
	return oft > mixed && mixed > ofc, fmt.Sprintf("%s, %s, %s millions", reproduce.Format(reproduce.Number(oft/1e6), 0), reproduce.Format(reproduce.Number(mixed/1e6), 0), reproduce.Format(reproduce.Number(ofc/1e6), 0))
}

// falls reports whether a mean over all users falls from one run to another.
func falls(from, to *outcome, of func(u *users) float64) (bool, string) {
	a, b := from.everybody(), to.everybody()
	before, after := reproduce.Ratio(of(&a), float64(a.jobs)), reproduce.Ratio(of(&b), float64(b.jobs))
	return after < before, reproduce.Change(before, after, 0)
}
