package resourcedelegation

import (
	"fmt"
	"math"
	"strings"

	"gridnode/testnet/reproduce"
)

// What section 6.3 says in words, each with its own number.

// pairClaims is what the paper says about table 2.
func (s *delegationStudy) pairClaims() []reproduce.Claim {
	better, least := 0, math.Inf(1)
	for i := range 2 * len(setups) {
		c := columnOf(i)
		for p := range delegationPolicies {
			if s.gain(p, c) > 0 {
				better++
			}
		}
		if c.site == 0 {
			least = min(least, float64(s.gain(0, c)))
		}
	}
	kth, sdsc := column{1, 0}, column{1, 1}
	harm, published := s.gain(1, sdsc), publishedLeasing[1].gain[3]
	balance := func(of func(column) float64) reproduce.Number { return reproduce.Number(of(kth) / of(sdsc)) }
	print := func(n reproduce.Number) string { return reproduce.Format(n, 2) }
	ratio := balance(func(c column) float64 { return s.stats(1, c).LeasedArea.Float() })
	printed := publishedLeasing[1].leased[2] / publishedLeasing[1].leased[3]
	almost := reproduce.NewClaim("almost all results improve AWRT", "11 of 12", better >= 11, "%d of 12", better)
	almost.Shape = better > 6
	return []reproduce.Claim{
		almost,
		reproduce.NewClaim("S-STRD improves AWRT of the smaller partner by at least 15 %", "14.9 %", least >= 15, "%.1f %%", least),
		s.eachSetup("large partners profit, too, with S-STRD, if only marginally", setupsAll, 1, 0, func(g [2]reproduce.Number) bool { return g[0] > 0 }),
		s.utilizationRises(),
		s.eachSetup("X-STRD helps the smaller partner more than S-STRD", setupsAll, 0, 1, func(g [2]reproduce.Number) bool { return g[1] > g[0] }),
		s.eachSetup("X-STRD helps the larger partner more than S-STRD, set-up 2 apart", []int{0, 2}, 1, 1, func(g [2]reproduce.Number) bool { return g[1] > g[0] }),
		reproduce.Sized("in set-up 2 X-STRD harms the larger partner", published, harm, reproduce.Format(published, 1)+" %", reproduce.Format(harm, 1)+" %"),
		reproduce.Sized("in set-up 2 with X-STRD the exchange is unbalanced: KTH leases more than SDSC05", printed-1, ratio-1, print(printed)+" times", print(ratio)+" times"),
	}
}

var setupsAll = []int{0, 1, 2}

// eachSetup makes a claim of the gains of one site of some set-ups, with S-STRD and, if
// last is 1, with X-STRD; it is in shape if it is so in most of them.
func (s *delegationStudy) eachSetup(text string, of []int, site, last int, holds func(gains [2]reproduce.Number) bool) reproduce.Claim {
	print := func(gains [2]reproduce.Number) string {
		if last == 0 {
			return reproduce.Format(gains[0], 1) + " %"
		}
		return reproduce.Format(gains[0], 1) + " → " + reproduce.Format(gains[1], 1) + " %"
	}
	var published, here []string
	met := 0
	for _, setup := range of {
		c := column{setup, site}
		i := 2*setup + site
		gains := [2]reproduce.Number{s.gain(0, c), s.gain(1, c)}
		published = append(published, print([2]reproduce.Number{publishedLeasing[0].gain[i], publishedLeasing[1].gain[i]}))
		here = append(here, print(gains))
		if holds(gains) {
			met++
		}
	}
	c := reproduce.NewClaim(text, strings.Join(published, ", "), met == len(of), "%s", strings.Join(here, ", "))
	c.Shape = 2*met > len(of)
	return c
}

// utilizationRises is that SDSC05 is used more with S-STRD: "the increase of utilization
// indicates a compact schedule".
func (s *delegationStudy) utilizationRises() reproduce.Claim {
	var published, here []string
	holds, shape := true, true
	for _, setup := range []int{1, 2} {
		c := column{setup, 1}
		p, h := publishedLeasing[0].gainUtilization[2*setup+1], s.gainUtilization(0, c)
		one := reproduce.Sized("", p, h, "", "")
		holds, shape = holds && one.Holds, shape && one.Shape
		published = append(published, reproduce.Format(p, 2)+" %")
		here = append(here, reproduce.Format(h, 2)+" %")
	}
	c := reproduce.NewClaim("the utilisation of SDSC05 rises with S-STRD", strings.Join(published, ", "), holds, "%s", strings.Join(here, ", "))
	c.Shape = shape
	return c
}

// sizeClaims is what the paper says about figures 4 and 5.
func (s *delegationStudy) sizeClaims() []reproduce.Claim {
	kth, ctc := s.sizes[0], s.sizes[1]
	least, most, other := kth.sizes.quantile(0), kth.sizes.quantile(1000), ctc.sizes.quantile(0)
	drift, means := 0.0, []string{}
	for i, r := range s.sizes {
		drift = max(drift, math.Abs(float64(r.sizes.mean())/float64(r.own)-1))
		means = append(means, fmt.Sprintf("%s %.1f of %d", machines[setups[0][i]].name, r.sizes.mean(), r.own))
	}
	times := math.Round(10*float64(most)/float64(kth.own)) / 10
	return []reproduce.Claim{
		reproduce.NewClaim("KTH occasionally grants all its resources", "0 processors left", least == 0, "%.0f left", least),
		reproduce.NewClaim("KTH quadruples its original size through leases", "4 times", times >= 4, "%.1f times, %.0f processors", times, most),
		// Switched, KTH has as many more than CTC as CTC owns more than KTH.
		reproduce.Sized("then the sizes of KTH and CTC are almost switched", reproduce.Number(ctc.own-kth.own), most-other, "430 and 100 processors", fmt.Sprintf("%.0f and %.0f", most, other)),
		reproduce.NewClaim("on the average sites nearly keep their size", "figure 5", drift < 0.05, "%s", strings.Join(means, ", ")),
	}
}
