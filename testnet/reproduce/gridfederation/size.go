package gridfederation

import (
	"fmt"

	"gridnode/testnet/reproduce"
)

// perJobTolerance is how far messages per job may be from the published mean, in percent.
const perJobTolerance = 25

// experiment5 is the messages per job by size of the federation (figures 6 and 7).
func (s *federationStudy) experiment5() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Experiment 5: messages by size of the system",
		Text: []string{"Table 1 again and again, up to the size. Messages are those of experiment 4, sent and received by a job's home; queries of the directory, O(log n) messages each by assumption, are not among them. " +
			"Figure 7 is not described in the text that we have; here it is what each site sends and receives in all."},
	}
	jobs := reproduce.Table{Title: "Figure 6: messages per job", Columns: s.sizeNames()}
	sites := reproduce.Table{Title: "Figure 7: messages per site", Columns: s.sizeNames()}
	for p := range populations {
		letter := string(rune('a' + p))
		name := populations[p].name
		mean := s.bySize("mean messages per job, "+name, 2, func(size int) reproduce.Number {
			if published, ok := publishedPerJob[size]; ok {
				return published[p]
			}
			return reproduce.None
		}, func(w *federationWindow, n int) reproduce.Number { return measured(w.scale[n][p], (*outcome).perJob) })
		least := s.bySize("min, "+name, 0, nil, func(w *federationWindow, n int) reproduce.Number {
			return measured(w.scale[n][p], func(o *outcome) reproduce.Number { return reproduce.Number(o.Messages.PerJob.Min) })
		})
		most := s.bySize("max, "+name, 0, nil, func(w *federationWindow, n int) reproduce.Number {
			return measured(w.scale[n][p], func(o *outcome) reproduce.Number { return reproduce.Number(o.Messages.PerJob.Max) })
		})
		jobs.Measures = append(jobs.Measures, mean, least, most)
		e.Plots = append(e.Plots, s.sizePlot("Figure 6 ("+letter+")", "Messages per job, "+name+".", "messages per job", mean, least, most))
	}
	for p := range populations {
		letter := string(rune('a' + p))
		name := populations[p].name
		mean, least, most := s.siteMessages(p)
		sites.Measures = append(sites.Measures, mean, least, most)
		e.Plots = append(e.Plots, s.sizePlot("Figure 7 ("+letter+")", "Messages per site, "+name+".", "messages per site", mean, least, most))
	}
	e.Tables = []reproduce.Table{jobs, sites}
	e.Claims = s.claimsSize()
	return e
}

// measured returns a figure of a run that may not have been made.
func measured(o *outcome, f func(*outcome) reproduce.Number) reproduce.Number {
	if o == nil {
		return reproduce.None
	}
	return f(o)
}

// siteMessages returns mean, least and most of what sites send and receive.
func (s *federationStudy) siteMessages(p int) (mean, least, most reproduce.Measure) {
	each := func(o *outcome) []reproduce.Number {
		var counts []reproduce.Number
		for i := range o.Sites {
			counts = append(counts, reproduce.Number(o.Sites[i].MessagesLocal+o.Sites[i].MessagesRemote))
		}
		return counts
	}
	of := func(name string, pick func(reproduce.Spread) reproduce.Number) reproduce.Measure {
		return s.bySize(name+", "+populations[p].name, 0, nil, func(w *federationWindow, n int) reproduce.Number {
			return measured(w.scale[n][p], func(o *outcome) reproduce.Number { return pick(reproduce.SpreadOf(each(o))) })
		})
	}
	return of("mean", func(s reproduce.Spread) reproduce.Number { return s.Mean }), of("min", func(s reproduce.Spread) reproduce.Number { return s.Min }), of("max", func(s reproduce.Spread) reproduce.Number { return s.Max })
}

// bySize makes a measure with a cell for each size.
func (s *federationStudy) bySize(name string, decimals int, published func(size int) reproduce.Number, f func(w *federationWindow, n int) reproduce.Number) reproduce.Measure {
	m := reproduce.Measure{Name: name, Unit: reproduce.Messages, Decimals: decimals}
	for n, size := range s.sizes {
		p := reproduce.None
		if published != nil {
			p = published(size)
		}
		m.Cells = append(m.Cells, s.cell(p, func(w *federationWindow) reproduce.Number { return f(w, n) }))
	}
	return m
}

func (s *federationStudy) sizeNames() []string {
	var names []string
	for _, size := range s.sizes {
		names = append(names, fmt.Sprintf("%d sites", size))
	}
	return names
}

// sizePlot draws mean, least and most over the size.
func (s *federationStudy) sizePlot(figure, title, y string, mean, least, most reproduce.Measure) reproduce.Plot {
	p := reproduce.Plot{Figure: figure, Title: title, X: "sites", Y: y}
	for _, size := range s.sizes {
		p.At = append(p.At, float64(size))
	}
	values := func(m *reproduce.Measure, f func(c *reproduce.Cell) reproduce.Number) []reproduce.Number {
		var out []reproduce.Number
		for i := range m.Cells {
			out = append(out, f(&m.Cells[i]))
		}
		return out
	}
	here := func(c *reproduce.Cell) reproduce.Number { return c.Here }
	p.Series = []reproduce.Series{
		{Name: "mean", Values: values(&mean, here)}, {Name: "most", Values: values(&most, here), Bound: true}, {Name: "least", Values: values(&least, here), Bound: true},
	}
	if mean.Published() {
		p.Series = append(p.Series, reproduce.Series{Name: "mean, published", Values: values(&mean, func(c *reproduce.Cell) reproduce.Number { return c.Published }), Published: true})
	}
	return p
}

// claimsSize compares the means that the text prints.
func (s *federationStudy) claimsSize() []reproduce.Claim {
	var claims []reproduce.Claim
	for n, size := range s.sizes {
		published, ok := publishedPerJob[size]
		if !ok {
			continue
		}
		for p := range populations {
			if !published[p].Known() {
				continue
			}
			here := s.windows[0].scale[n][p].perJob()
			off := 100 * (here - published[p]) / published[p]
			claims = append(claims, reproduce.Claim{
				Text:      fmt.Sprintf("messages per job at %d sites under %s, within %d %%", size, populations[p].name, perJobTolerance),
				Published: reproduce.Format(published[p], 2), Here: fmt.Sprintf("%s (%s)", reproduce.Format(here, 2), reproduce.FormatDeviation(off, reproduce.Messages)), Holds: off >= -perJobTolerance && off <= perJobTolerance,
			})
		}
	}
	return claims
}
