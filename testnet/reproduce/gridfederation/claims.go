package gridfederation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gridnode/testnet/reproduce"
)

// What section 3.7 says in words, each with its own number.

// underused is below which utilisation, in percent, the paper calls a resource
// underutilized.
const underused = 60

// claimsAlone is what the text says of experiment 1.
func (s *federationStudy) claimsAlone() []reproduce.Claim {
	o := s.windows[0].alone
	var published, here []int
	for site := range siteAll {
		if publishedAlone.utilization[site] < underused {
			published = append(published, site)
		}
		if utilization(o, site) < underused {
			here = append(here, site)
		}
	}
	return []reproduce.Claim{reproduce.NewClaim("“5 out of 8 resources remained underutilized (less than 60%)”", "5: "+s.namesOf(published),
		len(here) == len(published), "%d: %s", len(here), s.namesOf(here))}
}

// utilization returns a site's in percent.
func utilization(o *outcome, site int) reproduce.Number {
	return reproduce.Number(100 * o.stats(site).Utilization.Float())
}

// points makes a claim of a change between percentages.
func points(text string, published, here [2]reproduce.Number) reproduce.Claim {
	print := func(m [2]reproduce.Number) string {
		return fmt.Sprintf("%s → %s (%s points)", reproduce.Format(m[0], 2), reproduce.Format(m[1], 2), reproduce.FormatDeviation(m[1]-m[0], reproduce.Percent))
	}
	return reproduce.Sized(text, published[1]-published[0], here[1]-here[0], print(published), print(here))
}

// claimsFederation is what the text says of experiment 2.
func (s *federationStudy) claimsFederation() []reproduce.Claim {
	w := s.windows[0]
	risen, moving := 0, 0
	for site := range siteAll {
		if utilization(w.federated, site) > utilization(w.alone, site) {
			risen++
		}
		if st := w.federated.stats(site); st.Migrated > 0 && st.Remote > 0 {
			moving++
		}
	}
	return []reproduce.Claim{
		points("the mean acceptance rises", [2]reproduce.Number{publishedAlone.accepted[siteAll], publishedFederated.accepted[siteAll]}, [2]reproduce.Number{w.alone.accepted(siteAll), w.federated.accepted(siteAll)}),
		points("SDSC Blue rejects far fewer jobs", [2]reproduce.Number{publishedAlone.rejected[siteBlue], publishedFederated.rejected[siteBlue]}, [2]reproduce.Number{100 - w.alone.accepted(siteBlue), 100 - w.federated.accepted(siteBlue)}),
		reproduce.NewClaim("“overall resource utilization of most of the resources increased”", "8 of 8", 2*risen > siteAll, "%d of 8", risen),
		points("for instance that of CTC SP2", [2]reproduce.Number{publishedAlone.utilization[siteCTC], publishedFederated.utilization[siteCTC]}, [2]reproduce.Number{utilization(w.alone, siteCTC), utilization(w.federated, siteCTC)}),
		reproduce.NewClaim("jobs migrate from and to all sites", "8 of 8", moving == siteAll, "%d of 8", moving),
	}
}

// cheapSites are those that "earned significant incentives" under OFC, fastSites
// those that "remained largely underutilized"; costEffective have "the majority of the
// jobs".
var (
	cheapSites    = []int{siteCTC, siteCM5, siteOrigin, sitePar96, siteBlue}
	fastSites     = []int{siteKTH, siteNASA, siteSP2}
	costEffective = []int{siteCM5, siteOrigin, sitePar96, siteBlue}
)

// claimsEconomy is what the text says of experiment 3.
func (s *federationStudy) claimsEconomy() []reproduce.Claim {
	w := s.windows[0]
	ofc, mixed, oft := w.economy[0], w.economy[1], w.economy[2]
	total := func(o *outcome) reproduce.Number { return reproduce.Number(o.earnedBy(siteAll) / 1e6) }
	claims := []reproduce.Claim{
		reproduce.Moved("owners earn more under OFT than under OFC, millions", [2]reproduce.Number{publishedIncentive[0], publishedIncentive[2]}, [2]reproduce.Number{total(ofc), total(oft)}, 0),
		reproduce.Moved("and more under 50/50 than under OFC, millions", [2]reproduce.Number{publishedIncentive[0], publishedIncentive[1]}, [2]reproduce.Number{total(ofc), total(mixed)}, 0),
		reproduce.NewClaim("total incentive: OFT > 50/50 > OFC", "2 310 > 2 160 > 2 120", total(oft) > total(mixed) && total(mixed) > total(ofc),
			"%s, %s, %s millions", reproduce.Format(total(oft), 0), reproduce.Format(total(mixed), 0), reproduce.Format(total(ofc), 0)),
	}
	claims = append(claims, s.claimsSupply(ofc, mixed, oft)...)
	return append(claims, claimsUsers(w)...)
}

// claimsSupply is what the text says of the owners.
func (s *federationStudy) claimsSupply(ofc, mixed, oft *outcome) []reproduce.Claim {
	share := func(part func(site int) float64, of []int) reproduce.Number {
		sum, all := 0.0, 0.0
		for site := range siteAll {
			all += part(site)
			if slices.Contains(of, site) {
				sum += part(site)
			}
		}
		return reproduce.Number(100 * sum / all)
	}
	processed := func(o *outcome) func(int) float64 {
		return func(site int) float64 { return float64(o.stats(site).Local + o.stats(site).Remote) }
	}
	busiest := func(o *outcome) (most reproduce.Number) {
		for site := range siteAll {
			most = max(most, share(processed(o), []int{site}))
		}
		return most
	}
	idle := func(o *outcome) (none []int) {
		for site := range siteAll {
			if o.earnedBy(site) == 0 {
				none = append(none, site)
			}
		}
		return none
	}
	mean := func(o *outcome) (sum reproduce.Number) {
		for site := range siteAll {
			sum += utilization(o, site) / siteAll
		}
		return sum
	}
	least := slices.MinFunc(cheapSites, func(a, b int) int { return cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	most := slices.MaxFunc(fastSites, func(a, b int) int { return cmp.Compare(ofc.earnedBy(a), ofc.earnedBy(b)) })
	fast := share(ofc.earnedBy, fastSites)
	effective := share(processed(ofc), costEffective)
	return []reproduce.Claim{
		reproduce.NewClaim("under OFC each of the five cheap sites earns more than any fast one", "CTC, CM5, Origin, Par96 and Blue earn, KTH, NASA and SP2 do not", ofc.earnedBy(least) > ofc.earnedBy(most),
			"the three fast sites earn %s %%; least of the five %s, most of the three %s", reproduce.Format(fast, 1), s.sites[least].Name, s.sites[most].Name),
		reproduce.NewClaim("under OFC CM5, Origin, Par96 and Blue have the majority of the jobs", "stated", effective > 50, "%s %%", reproduce.Format(effective, 1)),
		reproduce.NewClaim("under OFT every owner earns", "every owner", len(idle(oft)) == 0, "without: %s", s.namesOf(idle(oft))),
		reproduce.NewClaim("under OFT jobs are spread more evenly than under OFC", "stated", busiest(oft) < busiest(ofc),
			"the busiest site has %s %% of the jobs under OFT, %s %% under OFC", reproduce.Format(busiest(oft), 1), reproduce.Format(busiest(ofc), 1)),
		reproduce.NewClaim("under 50/50 every owner earns", "every owner", len(idle(mixed)) == 0, "without: %s", s.namesOf(idle(mixed))),
		reproduce.NewClaim("under 50/50 resources are better used than under OFC", "stated", mean(mixed) > mean(ofc),
			"mean of the sites %s %%, under OFC %s %%", reproduce.Format(mean(mixed), 1), reproduce.Format(mean(ofc), 1)),
	}
}

// claimsUsers is what the text says of the users.
func claimsUsers(w *federationWindow) []reproduce.Claim {
	outcomes := [4]*outcome{w.alone, w.economy[0], w.economy[1], w.economy[2]}
	const alone, ofc, oft = 0, 1, 3
	moved := func(text string, published map[int][4]reproduce.Number, site, from, to int, f func(*users) reproduce.Number) reproduce.Claim {
		a, b := outcomes[from].usersOf(site), outcomes[to].usersOf(site)
		return reproduce.Moved(text, [2]reproduce.Number{published[site][from], published[site][to]}, [2]reproduce.Number{f(&a), f(&b)}, 0)
	}
	said := func(text string, falls bool, from, to int, f func(*users) reproduce.Number) reproduce.Claim {
		a, b := outcomes[from].everybody(), outcomes[to].everybody()
		before, after := f(&a), f(&b)
		return reproduce.NewClaim(text, "stated", (after < before) == falls, "%s", reproduce.Change(before, after, 0))
	}
	return []reproduce.Claim{
		moved("response time of LANL Origin's accepted jobs falls from OFC to OFT, s", publishedAccepted, siteOrigin, ofc, oft, (*users).meanAccepted),
		said("response time of all accepted jobs falls from OFC to OFT, s", true, ofc, oft, (*users).meanAccepted),
		moved("response time of NASA iPSC's users rises from alone to OFT, s", publishedResponse, siteNASA, alone, oft, (*users).meanResponse),
		moved("response time of all users falls from alone to OFT, s", publishedResponse, siteAll, alone, oft, (*users).meanResponse),
		moved("budget of LANL Origin's users rises from alone to OFC", publishedBudget, siteOrigin, alone, ofc, (*users).meanBudget),
		moved("budget of all users falls from alone to OFC", publishedBudget, siteAll, alone, ofc, (*users).meanBudget),
		said("users spend more under OFT than under OFC", false, ofc, oft, (*users).meanBudget),
	}
}

// claimsMessages is what the text says of experiment 4.
func (s *federationStudy) claimsMessages() []reproduce.Claim {
	w := s.windows[0]
	byRemote := func(o *outcome) []int {
		order := []int{0, 1, 2, 3, 4, 5, 6, 7}
		slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(o.stats(a).MessagesRemote, o.stats(b).MessagesRemote) })
		return order
	}
	ofc, oft := byRemote(w.economy[0]), byRemote(w.economy[2])
	var most []reproduce.Number
	var parts []string
	for p, o := range w.economy {
		most = append(most, reproduce.PercentOf(o.stats(byRemote(o)[0]).MessagesRemote, o.Total.MessagesRemote))
		parts = append(parts, fmt.Sprintf("%s %s %%", populations[p].name, reproduce.Format(most[p], 1)))
	}
	return []reproduce.Claim{
		{Text: "under OFC LANL Origin, then LANL CM5, have most remote messages", Published: "LANL Origin, LANL CM5", Here: s.namesOf(ofc[:2]), Holds: slices.Equal(ofc[:2], []int{siteOrigin, siteCM5})},
		{Text: "under OFT NASA iPSC, then SDSC SP2, have most remote messages", Published: "NASA iPSC, SDSC SP2", Here: s.namesOf(oft[:2]), Holds: slices.Equal(oft[:2], []int{siteNASA, siteSP2})},
		reproduce.Moved("OFT takes more messages than OFC", [2]reproduce.Number{publishedMessages[0], publishedMessages[2]}, [2]reproduce.Number{w.economy[0].messages(), w.economy[2].messages()}, 0),
		reproduce.NewClaim("under 50/50 messages are spread more evenly than under OFC and OFT", "“uniform distribution”", most[1] < most[0] && most[1] < most[2],
			"the busiest site has %s of the remote messages", strings.Join(parts, ", ")),
	}
}

// claimsSize is what the text says of experiment 5.
func (s *federationStudy) claimsSize() []reproduce.Claim {
	perJob := func(n, p int) reproduce.Number { return s.windows[0].scale[n][p].perJob() }
	const ofc, oft = 0, 2
	var claims []reproduce.Claim
	var printed []int
	for n, size := range s.sizes {
		if published, ok := publishedPerJob[size]; ok {
			printed = append(printed, n)
			claims = append(claims, reproduce.Moved(fmt.Sprintf("OFT takes more messages per job than OFC at %d sites", size),
				[2]reproduce.Number{published[ofc], published[oft]}, [2]reproduce.Number{perJob(n, ofc), perJob(n, oft)}, 2))
		}
	}
	if len(printed) < 2 {
		return claims
	}
	from, to := printed[0], printed[len(printed)-1]
	for _, p := range []int{ofc, oft} {
		a, b := publishedPerJob[s.sizes[from]], publishedPerJob[s.sizes[to]]
		claims = append(claims, reproduce.Moved(fmt.Sprintf("messages per job grow slowly from %d to %d sites, %s", s.sizes[from], s.sizes[to], populations[p].name),
			[2]reproduce.Number{a[p], b[p]}, [2]reproduce.Number{perJob(from, p), perJob(to, p)}, 2))
	}
	return claims
}
