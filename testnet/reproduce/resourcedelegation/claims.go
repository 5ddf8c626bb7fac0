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
	almost := reproduce.NewClaim("almost all results improve AWRT", "11 of 12", better >= 11, "%d of 12", better)
	almost.Shape = better > 6
	claims := []reproduce.Claim{
		almost,
		s.bothProfit(),
		reproduce.NewClaim("S-STRD improves AWRT of the smaller partner by at least 15 %", "14.9 %", least >= 15, "%.1f %%", least),
		s.smallerGainsMore(),
		s.eachSetup("large partners profit, too, with S-STRD", setupsAll, 1, 0, func(g [2]reproduce.Number) bool { return g[0] > 0 }),
		s.eachSetup("that improvement is marginal for SDSC05 (above 0, below 1 %)", []int{1, 2}, 1, 0, func(g [2]reproduce.Number) bool { return g[0] > 0 && g[0] < 1 }),
		s.utilizationRises(),
		s.granterIsUsed(),
		s.eachSetup("X-STRD helps the smaller partner more than S-STRD", setupsAll, 0, 1, func(g [2]reproduce.Number) bool { return g[1] > g[0] }),
		s.eachSetup("X-STRD helps the larger partner more than S-STRD, set-up 2 apart", []int{0, 2}, 1, 1, func(g [2]reproduce.Number) bool { return g[1] > g[0] }),
	}
	return append(append(claims, s.discrepancyClaims()...), s.requestClaims()...)
}

// bothProfit is that "both partners benefit from their cooperation".
func (s *delegationStudy) bothProfit() reproduce.Claim {
	both := 0
	for p := range delegationPolicies {
		for setup := range setups {
			if s.gain(p, column{setup, 0}) > 0 && s.gain(p, column{setup, 1}) > 0 {
				both++
			}
		}
	}
	c := reproduce.NewClaim("both partners benefit from their cooperation, in almost all set-ups", "5 of 6", both >= 5, "%d of 6", both)
	c.Shape = both > 3
	return c
}

// smallerGainsMore is that "as expected, small partners benefit from the enormous resource
// potential provided by large partners".
func (s *delegationStudy) smallerGainsMore() reproduce.Claim {
	more := 0
	for p := range delegationPolicies {
		for setup := range setups {
			if s.gain(p, column{setup, 0}) > s.gain(p, column{setup, 1}) {
				more++
			}
		}
	}
	c := reproduce.NewClaim("small partners benefit from large ones: they gain more AWRT", "6 of 6", more == 6, "%d of 6", more)
	c.Shape = more > 3
	return c
}

// granterIsUsed is that "the granting of idle resources can increase utilization": in table
// 2 that of the larger partner rises everywhere.
func (s *delegationStudy) granterIsUsed() reproduce.Claim {
	rises := 0
	for p := range delegationPolicies {
		for setup := range setups {
			if s.gainUtilization(p, column{setup, 1}) > 0 {
				rises++
			}
		}
	}
	c := reproduce.NewClaim("granting increases utilisation: that of the larger partner rises", "6 of 6", rises == 6, "%d of 6", rises)
	c.Shape = rises > 3
	return c
}

// discrepancyClaims is what the paper says about X-STRD between machines of very different
// sizes, and why: set-up 2.
func (s *delegationStudy) discrepancyClaims() []reproduce.Claim {
	kth, sdsc := column{1, 0}, column{1, 1}
	harm, published := s.gain(1, sdsc), publishedLeasing[1].gain[3]
	leased := func(p int, c column) reproduce.Number { return reproduce.Number(s.stats(p, c).LeasedArea.Float()) }
	used := func(p int) reproduce.Number { return reproduce.Number(100 * s.stats(p, sdsc).Utilization.Float()) }
	print := func(n reproduce.Number) string { return reproduce.Format(n, 2) }
	ratio := leased(1, kth) / leased(1, sdsc)
	printed := publishedLeasing[1].leased[2] / publishedLeasing[1].leased[3]
	moved := func(text string, i int, c column) reproduce.Claim {
		millions := func(n reproduce.Number) reproduce.Number { return n / 1e6 }
		return reproduce.Moved(text, [2]reproduce.Number{millions(publishedLeasing[0].leased[i]), millions(publishedLeasing[1].leased[i])},
			[2]reproduce.Number{millions(leased(0, c)), millions(leased(1, c))}, 0)
	}
	loss := func(s, x reproduce.Number) reproduce.Number { return x - s }
	return []reproduce.Claim{
		reproduce.Sized("in set-up 2 X-STRD harms the larger partner", published, harm, reproduce.Format(published, 1)+" %", reproduce.Format(harm, 1)+" %"),
		reproduce.Sized("X-STRD is less robust where sizes differ most: SDSC05 loses against S-STRD in set-up 2",
			loss(publishedLeasing[0].gain[3], published), loss(s.gain(0, sdsc), harm),
			print(loss(publishedLeasing[0].gain[3], published))+" points", print(loss(s.gain(0, sdsc), harm))+" points"),
		reproduce.Sized("in set-up 2 with X-STRD the exchange is unbalanced: KTH leases more than SDSC05", printed-1, ratio-1, print(printed)+" times", print(ratio)+" times"),
		moved("X-STRD gives KTH more resources of SDSC05 than S-STRD, set-up 2, million processor-seconds", 2, kth),
		moved("and SDSC05 fewer of KTH, million processor-seconds", 3, sdsc),
		reproduce.Moved("which leads to higher utilisation of SDSC05, %", [2]reproduce.Number{publishedLeasing[0].utilization[3], publishedLeasing[1].utilization[3]},
			[2]reproduce.Number{used(0), used(1)}, 2),
	}
}

// requestClaims is what the paper says about requests, of which it prints no figures.
func (s *delegationStudy) requestClaims() []reproduce.Claim {
	share := func(site int) float64 {
		d := &s.asked[0][1][site]
		return 100 * float64(d.Refused) / float64(max(d.Asked, 1))
	}
	more, waits, calm := 0, 0, 0
	var times []string
	for setup := range setups {
		var asked [2]int64
		for p := range delegationPolicies {
			asked[p] = s.asked[p][setup][0].Asked + s.asked[p][setup][1].Asked
		}
		if asked[1] > asked[0] {
			more++
		}
		times = append(times, fmt.Sprintf("%.2f", float64(asked[1])/float64(max(asked[0], 1))))
		for site := range setups[setup] {
			if c := (column{setup, site}); s.stats(1, c).AWT < s.stats(0, c).AWT {
				waits++
			}
			if s.queues[1][setup][site].overtaken() < s.queues[0][setup][site].overtaken() {
				calm++
			}
		}
	}
	extensive := reproduce.NewClaim("X-STRD demands many additional requests (no figure is printed)", "more in 3 of 3", more == len(setups), "%s times as many", strings.Join(times, ", "))
	extensive.Shape = 2*more > len(setups)
	less := reproduce.NewClaim("X-STRD penalises waiting jobs less: they are overtaken less often than with S-STRD", "6 of 6 (no figure is printed)", calm == 6, "%d of 6", calm)
	less.Shape = calm > 3
	shorter := reproduce.NewClaim("and the mean wait is shorter", "6 of 6 (no figure is printed)", waits == 6, "%d of 6", waits)
	shorter.Shape = waits > 3
	return []reproduce.Claim{
		reproduce.NewClaim("with S-STRD requests of the larger site are frequently rejected in set-up 2", "more than half, and more than KTH's",
			share(1) > 50 && share(1) > share(0), "%.0f %%, of KTH's %.0f %%", share(1), share(0)),
		extensive, less, shorter,
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
	changed, weeks := 0, 0
	for i := range kth.weeks {
		if weeks++; kth.weeks[i].least < kth.weeks[i].most && i < len(ctc.weeks) && ctc.weeks[i].least < ctc.weeks[i].most {
			changed++
		}
	}
	always := reproduce.NewClaim("sizes change continuously: in every week at both sites", "figure 4", changed == weeks, "%d of %d weeks", changed, weeks)
	always.Shape = 2*changed > weeks
	return []reproduce.Claim{
		always,
		reproduce.NewClaim("KTH occasionally grants all its resources", "0 processors left", least == 0, "%.0f left", least),
		reproduce.NewClaim("KTH quadruples its original size through leases", "4 times", times >= 4, "%.1f times, %.0f processors", times, most),
		// Switched, KTH has as many more than CTC as CTC owns more than KTH.
		reproduce.Sized("then the sizes of KTH and CTC are almost switched", reproduce.Number(ctc.own-kth.own), most-other, "430 and 100 processors", fmt.Sprintf("%.0f and %.0f", most, other)),
		reproduce.NewClaim("on the average sites nearly keep their size", "figure 5", drift < 0.05, "%s", strings.Join(means, ", ")),
	}
}
