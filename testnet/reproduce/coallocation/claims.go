package coallocation

import (
	"fmt"
	"slices"
	"strings"

	"gridnode/testnet/reproduce"
)

// What section VI-C says in words, each with its own number.

// same is by how many percent two means may differ that the paper calls the same.
const same = 2

// changes returns the changes of an application at the utilizations from one to another.
func (s *coallocationStudy) changes(application string, limit, from, to int) (values []reproduce.Number) {
	for _, u := range s.utilizations {
		if u >= from && u <= to {
			values = append(values, s.change(coallocationCase{policy: "fcm", application: application, limit: limit, utilization: u}))
		}
	}
	return values
}

// claimsApplications is what the text says of figure 7 and table IV.
func (s *coallocationStudy) claimsApplications() []reproduce.Claim {
	var claims []reproduce.Claim
	add := func(text, published string, holds, shape bool, format string, args ...any) {
		c := reproduce.NewClaim(text, published, holds, format, args...)
		c.Shape = shape
		claims = append(claims, c)
	}
	gains := func(v reproduce.Number) bool { return v < 0 }
	loses := func(v reproduce.Number) bool { return v > 0 }
	equal := func(v reproduce.Number) bool { return v > -same && v < same }

	low := map[string][]reproduce.Number{}
	var least, most reproduce.Number
	for _, application := range applicationsMPI {
		low[application] = s.changes(application, 0, 10, 40)
		least, most = min(least, slices.Min(low[application])), max(most, slices.Max(low[application]))
	}
	add("up to 40 % there is no difference, with any of the three (Prime; least and most of all)", "no difference", least > -same && most < same,
		all(low["prime"], equal) && all(low["poisson"], equal), "%s; %s and %s", list(low["prime"]), reproduce.FormatDeviation(least, reproduce.Percent), reproduce.FormatDeviation(most, reproduce.Percent))

	prime := s.changes("prime", 0, 45, 90)
	add("Prime gains, and more with the contention (45 to 90 %)", "increases", all(prime, gains) && slices.IsSortedFunc(prime, descending), all(prime, gains), "%s", list(prime))
	wf, fcm := s.saturation(coallocationCase{policy: "wf", application: "prime"}, s.utilizations), s.saturation(coallocationCase{policy: "fcm", application: "prime"}, s.utilizations)
	add("Prime saturates at lower utilizations without co-allocation", "85–90 against 90–95 %", wf < fcm || wf.Known() && !fcm.Known(), false, "%s against %s", interval(wf), interval(fcm))

	poisson, beyond := s.changes("poisson", 0, 45, 75), s.changes("poisson", 0, 80, 95)
	add("Poisson: co-allocation is advantageous up to 75 % (45 to 75 %)", "advantageous", all(poisson, gains), len(poisson) > 0 && poisson[0] < 0, "%s", list(poisson))
	add("Poisson: beyond, saturation sets in and the response increases (80 to 95 %)", "increases", slices.IsSorted(beyond) && all(beyond, loses), slices.ContainsFunc(beyond, loses), "%s", list(beyond))

	wave, two := s.changes("wave", 0, 45, 90), s.changes("wave", 2, 45, 90)
	add("Wave: the response is longer with co-allocation (45 to 90 %)", "longer", all(wave, loses), false, "%s", list(wave))
	claims = append(claims, s.claimObserved())
	saturated := s.saturation(coallocationCase{policy: "fcm", application: "wave"}, s.utilizations)
	add("Wave saturates earlier than all others", "70–75 against 80–85 % and more", saturated < min(wf, s.saturation(coallocationCase{policy: "fcm", application: "poisson"}, s.utilizations)), false, "%s", interval(saturated))
	claims = append(claims, limitClaims(wave, two)...)
	return append(claims, s.claimReal())
}

// limitClaims are what the text says of a limit of two clusters: it "yields a better
// response time performance than in case of no limit. However, the benefit is minor".
func limitClaims(wave, two []reproduce.Number) []reproduce.Claim {
	better := 0
	var sum reproduce.Number
	for i := range wave {
		if two[i] < wave[i] {
			better++
		}
		sum += 100 * (wave[i] - two[i]) / (100 + wave[i]) / reproduce.Number(len(wave))
	}
	return []reproduce.Claim{
		reproduce.NewClaim("a limit of two clusters yields a better response of Wave (45 to 90 %)", "better", better == len(wave) && better > 0, "%s", list(two)),
		reproduce.NewClaim("the benefit of the limit is minor (less than a tenth of the response, on average)", "minor", sum > 0 && sum < 10, "%s %%", reproduce.Format(sum, 1)),
	}
}

// claimObserved is what the text says of figure 7 (b), at the utilization in the middle.
func (s *coallocationStudy) claimObserved() reproduce.Claim {
	u := s.utilizations[len(s.utilizations)/2]
	observed := func(application string) reproduce.Number {
		return s.of(coallocationCase{policy: "fcm", application: application, utilization: u}, func(o *coallocationOutcome) reproduce.Number { return o.observed }).Here
	}
	wave, prime := observed("wave"), observed("prime")
	return reproduce.Claim{
		Text: fmt.Sprintf("Wave raises the observed utilization, Prime does not (net %d %%)", u), Published: "raises",
		Here: reproduce.Format(wave, 1) + " % against " + reproduce.Format(prime, 1) + " %", Holds: wave > prime+1 && prime < reproduce.Number(u)+1,
	}
}

// claimReal is what the text says of table V: "the net utilization in the real experiments
// is lower than the net utilization in the corresponding simulation experiments".
func (s *coallocationStudy) claimReal() reproduce.Claim {
	var words []string
	holds := true
	for _, application := range applicationsMPI {
		wanted := s.change(realRun("fcm", application, realBackground))
		at := reproduce.None
		for _, u := range s.utilizations {
			v := s.change(coallocationCase{policy: "fcm", application: application, utilization: u})
			if !at.Known() && (wanted < 0 && v <= wanted || wanted > 0 && v >= wanted) {
				at = reproduce.Number(u)
			}
		}
		if holds = holds && (!at.Known() || at > realUtilization); at.Known() {
			words = append(words, reproduce.Format(at, 0)+" %")
		} else {
			words = append(words, "nowhere")
		}
	}
	return reproduce.NewClaim(fmt.Sprintf("for the change of the real runs, at a net %d %%, the simulation needs more (Prime, Poisson, Wave)", realUtilization), "75–80, 65 and 70 %", holds, "%s", strings.Join(words, ", "))
}

// claimsCCR is what the text says of figure 8.
func (s *coallocationStudy) claimsCCR() []reproduce.Claim {
	low := s.changes("ccr=0.1", 0, 10, 95)
	gains := reproduce.NewClaim("CCR 0.1 always benefits (at no utilization more than 0.05 % longer)", "always", all(low, func(v reproduce.Number) bool { return v < 0.05 }), "%s", list(low))
	claims := []reproduce.Claim{gains}
	for _, p := range [][2]string{{"prime", "ccr=0.1"}, {"wave", "ccr=4"}} {
		claims = append(claims, s.claimMatch(p[0], p[1]))
	}
	claims = append(claims, s.gainsThenLoses("ccr=0.25"), s.gainsThenLoses("ccr=0.5"))
	one, four := s.changes("ccr=1", 0, 45, 90), s.changes("ccr=4", 0, 45, 90)
	loses := func(v reproduce.Number) bool { return v > 0 }
	return append(claims,
		reproduce.NewClaim("CCR above 0.5 is disadvantageous (1, 45 to 90 %)", "disadvantageous", all(one, loses), "%s", list(one)),
		reproduce.NewClaim("CCR above 0.5 is disadvantageous (4, 45 to 90 %)", "disadvantageous", all(four, loses), "%s", list(four)))
}

// matched is by how many points the changes of two applications differ on average, at
// most, if one matches the other.
const matched = 5

// claimMatch is that an application's changes are those of a CCR, before it is saturated.
func (s *coallocationStudy) claimMatch(application, synthetic string) reproduce.Claim {
	a, b := s.changes(application, 0, 10, 65), s.changes(synthetic, 0, 10, 65)
	var apart reproduce.Number
	for i := range a {
		apart += max(a[i]-b[i], b[i]-a[i]) / reproduce.Number(len(a))
	}
	return reproduce.NewClaim(fmt.Sprintf("%s matches %s (10 to 65 %%; within %d points on average)", application, strings.Replace(synthetic, "ccr=", "CCR ", 1), matched), "matches", apart <= matched, "%s points apart", reproduce.Format(apart, 1))
}

// gainsThenLoses is what the text says of CCR 0.25 and 0.5: "co-allocation is beneficial
// to a certain extent; … after some point it becomes disadvantageous". What is less than
// 0.1 % is neither. Beyond 85 % WF is saturated, too.
func (s *coallocationStudy) gainsThenLoses(application string) reproduce.Claim {
	values := s.changes(application, 0, 10, 85)
	gains, then := false, false
	for _, v := range values {
		if v < -0.1 && !then {
			gains = true
		}
		if v > 0.1 {
			then = true
		}
	}
	name := "CCR " + strings.TrimPrefix(application, "ccr=")
	c := reproduce.NewClaim(name+" gains, then loses (up to 85 %)", "gains, then loses", gains && then, "%s", list(values))
	c.Shape = then
	return c
}
