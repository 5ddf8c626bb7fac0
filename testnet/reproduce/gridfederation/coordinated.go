package gridfederation

import (
	"context"
	"fmt"
	"slices"

	"gridnode/testnet/reproduce"
)

// The published loop is compared with the coordinated placement, which asks where a
// ranking of quotes, gossiped load and earlier replies says that there is room: the
// paper intends "to research ways to avoid such bottlenecking behavior, principally
// by using coordination via the shared federation directory" (§4).

// Bounds that the coordinated placement is to keep.
const (
	negotiationMax = 6 // messages per job, at the largest size
	worseMax       = 1 // per cent, of acceptance, response time and budget
)

// compared are the populations of the comparison.
var compared = [2]struct {
	population int // of populations
	paper      func(w *federationWindow, n int) *outcome
}{
	{0, func(w *federationWindow, n int) *outcome { return w.scale[n][0] }},
	{2, func(w *federationWindow, n int) *outcome { return w.scale[n][2] }},
}

// coordinatedRuns are those of experiment 5 on the first window, with the
// coordinated placement.
func (s *federationStudy) coordinatedRuns() (runs []reproduce.Run) {
	s.coordinated = make([][2]*outcome, len(s.sizes))
	for n, size := range s.sizes {
		for i := range compared {
			c := federationCase{mode: "economy", oft: populations[compared[i].population].oft, sites: size, placement: "coordinated"}
			runs = append(runs, reproduce.Run{Name: "coordinated: " + c.name(), Weight: int64(size) * 200, Result: &s.coordinated[n][i], Do: func(ctx context.Context) (err error) {
				s.coordinated[n][i], err = s.run(ctx, s.windows[0].days, c)
				return err
			}})
		}
	}
	return runs
}

// compareCoordinated puts both placements side by side.
func (s *federationStudy) compareCoordinated() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Beyond the paper: coordinated placement", Beyond: true,
		Text: []string{
			"The same jobs at the same sites, placed by the paper's loop and by the coordinated placement: it ranks a page of quotes by estimated finish and cost, takes into account what sites gossip and answered before and what is being asked of them, passes over those that could not do it, and asks few that have no room at the moment. Guarantees are given in the same way.",
			"Budget is what the sites charge (eq. 3). Response and budget are over all jobs; a rejected one counts as if it had run at home at once.",
		},
	}
	for i, c := range compared {
		name := populations[c.population].name
		t := reproduce.Table{Title: "Placements compared, " + name, Columns: s.sizeNames()}
		pair := func(measure string, unit reproduce.Unit, decimals int, f func(o *outcome) reproduce.Number) (paper, coordinated reproduce.Measure) {
			paper = reproduce.Measure{Name: measure + ", paper", Unit: unit, Decimals: decimals}
			coordinated = reproduce.Measure{Name: measure + ", coordinated", Unit: unit, Decimals: decimals}
			for n := range s.sizes {
				paper.Cells = append(paper.Cells, reproduce.Cell{Published: reproduce.None, Here: f(c.paper(s.windows[0], n))})
				coordinated.Cells = append(coordinated.Cells, reproduce.Cell{Published: reproduce.None, Here: f(s.coordinated[n][i])})
			}
			t.Measures = append(t.Measures, paper, coordinated)
			return paper, coordinated
		}
		messages, fewer := pair("messages per job", reproduce.Messages, 2, (*outcome).perJob)
		pair("accepted", reproduce.Percent, 2, (*outcome).acceptedAll)
		pair("response time", reproduce.Seconds, 0, (*outcome).responseAll)
		pair("budget spent", reproduce.Credits, 0, (*outcome).spentAll)
		e.Tables = append(e.Tables, t)
		p := reproduce.Plot{Figure: "Figure 6 (" + string(rune('d'+i)) + ")", Title: "Messages per job by placement, " + name + ".", X: "sites", Y: "messages per job"}
		for _, size := range s.sizes {
			p.At = append(p.At, float64(size))
		}
		values := func(m reproduce.Measure) (v []reproduce.Number) {
			for _, cell := range m.Cells {
				v = append(v, cell.Here)
			}
			return v
		}
		p.Series = []reproduce.Series{{Name: "paper", Values: values(messages)}, {Name: "coordinated", Values: values(fewer)}}
		e.Plots = append(e.Plots, p)
		e.Claims = append(e.Claims, s.claimsCoordinated(i)...)
	}
	return e
}

// claimsCoordinated compares the placements at the largest size, and at the size
// where the coordinated one does worst.
func (s *federationStudy) claimsCoordinated(i int) []reproduce.Claim {
	c := compared[i]
	name := populations[c.population].name
	last := len(s.sizes) - 1
	claims := []reproduce.Claim{{
		Text: fmt.Sprintf("at %d sites at most %d messages per job, %s", s.sizes[last], negotiationMax, name), Published: "–",
		Here: reproduce.Change(c.paper(s.windows[0], last).perJob(), s.coordinated[last][i].perJob(), 2), Holds: s.coordinated[last][i].perJob() <= negotiationMax,
	}}
	worst := func(text string, decimals int, f func(o *outcome) reproduce.Number, worse func(paper, coordinated reproduce.Number) reproduce.Number) {
		off := make([]reproduce.Number, len(s.sizes))
		for n := range s.sizes {
			off[n] = worse(f(c.paper(s.windows[0], n)), f(s.coordinated[n][i]))
		}
		n := slices.Index(off, slices.Max(off))
		claims = append(claims, reproduce.Claim{
			Text: fmt.Sprintf("%s at most %d %% worse at every size, %s", text, worseMax, name), Published: "–",
			Here: fmt.Sprintf("worst at %d sites: %s", s.sizes[n], reproduce.Change(f(c.paper(s.windows[0], n)), f(s.coordinated[n][i]), decimals)), Holds: off[n] <= worseMax,
		})
	}
	rise := func(paper, coordinated reproduce.Number) reproduce.Number { return 100 * (coordinated - paper) / paper }
	worst("acceptance", 2, (*outcome).acceptedAll, func(paper, coordinated reproduce.Number) reproduce.Number { return rise(coordinated, paper) })
	if populations[c.population].oft == 0 {
		worst("budget", 0, (*outcome).spentAll, rise)
	} else {
		worst("response time", 0, (*outcome).responseAll, rise)
	}
	return claims
}

// Figures over all jobs of a federation of any size.

func (o *outcome) acceptedAll() reproduce.Number {
	return reproduce.PercentOf(o.Total.Accepted, o.Total.Submitted)
}

func (o *outcome) responseAll() reproduce.Number {
	u := o.everybody()
	return reproduce.Ratio(u.responseIdle, float64(u.jobs))
}

func (o *outcome) spentAll() reproduce.Number {
	u := o.everybody()
	return reproduce.Ratio(u.spent.printed, float64(u.jobs))
}
