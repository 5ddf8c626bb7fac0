package gridfederation

import (
	"fmt"
	"slices"
	"strings"

	"gridnode/testnet/reproduce"
)

// cell makes a figure of the windows: the first is ours, all give the spread.
func (s *federationStudy) cell(published reproduce.Number, f func(w *federationWindow) reproduce.Number) reproduce.Cell {
	c := reproduce.Cell{Published: published, Here: f(s.windows[0])}
	if len(s.windows) > 1 {
		numbers := make([]reproduce.Number, len(s.windows))
		for i, w := range s.windows {
			numbers[i] = f(w)
		}
		if spread := reproduce.SpreadOf(numbers); spread.N > 1 {
			c.Spread = &spread
		}
	}
	return c
}

// bySite makes a measure with a cell for each site of table 1 and one for all.
// published may be nil.
func (s *federationStudy) bySite(name string, unit reproduce.Unit, decimals int, published []reproduce.Number, f func(w *federationWindow, site int) reproduce.Number) reproduce.Measure {
	m := reproduce.Measure{Name: name, Unit: unit, Decimals: decimals}
	for site := range siteAll + 1 {
		p := reproduce.None
		if published != nil {
			p = published[site]
		}
		m.Cells = append(m.Cells, s.cell(p, func(w *federationWindow) reproduce.Number { return f(w, site) }))
	}
	return m
}

// byPopulation makes a measure with a cell for each population.
func (s *federationStudy) byPopulation(name string, unit reproduce.Unit, decimals int, published []reproduce.Number, f func(o *outcome) reproduce.Number) reproduce.Measure {
	m := reproduce.Measure{Name: name, Unit: unit, Decimals: decimals}
	for p := range populations {
		m.Cells = append(m.Cells, s.cell(published[p], func(w *federationWindow) reproduce.Number { return f(w.economy[p]) }))
	}
	return m
}

func (s *federationStudy) siteNames() []string {
	var names []string
	for i := range s.sites {
		names = append(names, s.sites[i].Name)
	}
	return append(names, "all")
}

func populationNames() []string {
	var names []string
	for _, p := range populations {
		names = append(names, p.name)
	}
	return names
}

// sitePlot is a bar chart by site.
func (s *federationStudy) sitePlot(figure, title, y string, series ...reproduce.Series) reproduce.Plot {
	return reproduce.Plot{Figure: figure, Title: title, Y: y, Columns: s.siteNames()[:siteAll], Series: series}
}

// namesOf lists sites.
func (s *federationStudy) namesOf(sites []int) string {
	var names []string
	for _, i := range sites {
		names = append(names, s.sites[i].Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// rejectedCompared says where fewer or more jobs are rejected than in the paper, as
// far as its tables tell.
func (s *federationStudy) rejectedCompared(accepted []reproduce.Number, of *outcome) string {
	type difference struct {
		site            int
		here, published float64
	}
	var all []difference
	var here, published float64
	for site := range siteAll {
		d := difference{site, float64(of.stats(site).Rejected), float64(publishedJobs[site] * (100 - accepted[site]) / 100)}
		here, published = here+d.here, published+d.published
		all = append(all, d)
	}
	far := func(d difference) float64 { return max(d.here-d.published, d.published-d.here) }
	slices.SortStableFunc(all, func(a, b difference) int {
		switch {
		case far(a) > far(b):
			return -1
		case far(a) < far(b):
			return 1
		}
		return 0
	})
	var parts []string
	for _, d := range all[:3] {
		parts = append(parts, fmt.Sprintf("%s %.0f (published %.0f)", s.sites[d.site].Name, d.here, d.published))
	}
	return fmt.Sprintf("Rejected are %.0f jobs (published %.0f); the greatest differences are at %s.", here, published, strings.Join(parts, ", "))
}

// barsOf turns a measure by site into bars, "all" left out.
func barsOf(m *reproduce.Measure, name string) reproduce.Series {
	s := reproduce.Series{Name: name}
	for _, c := range m.Cells[:siteAll] {
		s.Values = append(s.Values, c.Here)
	}
	return s
}

// publishedBarsOf does the same for the published figures.
func publishedBarsOf(m *reproduce.Measure, name string) reproduce.Series {
	s := reproduce.Series{Name: name, Published: true}
	for _, c := range m.Cells[:siteAll] {
		s.Values = append(s.Values, c.Published)
	}
	return s
}
