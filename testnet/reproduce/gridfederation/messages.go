package gridfederation

import (
	"fmt"

	"gridnode/testnet/reproduce"
)

// experiment4 is the messages by site (figure 5).
func (s *federationStudy) experiment4() reproduce.Experiment {
	e := reproduce.Experiment{
		Title: "Experiment 4: messages by site",
		Text: []string{"Local messages are those that a site sends and receives to place its own users' jobs, remote ones those about jobs of others. " +
			"Counted are the paper's four types: negotiate, reply, job-submission and job-completion. A site that serves its own user needs none. Each message is local at one site and remote at another."},
		Claims: s.claimsMessages(),
	}
	t := reproduce.Table{Title: "Figure 5: local and remote messages, by site", Columns: s.siteNames()}
	for p := range populations {
		var published []reproduce.Number
		if p == 0 {
			published = []reproduce.Number{reproduce.None, reproduce.None, reproduce.None, publishedOriginRemote, reproduce.None, reproduce.None, reproduce.None, reproduce.None, reproduce.None}
		}
		local := s.bySite("local, "+populations[p].name, reproduce.Messages, 0, nil, func(w *federationWindow, site int) reproduce.Number {
			return reproduce.Number(w.economy[p].stats(site).MessagesLocal)
		})
		remote := s.bySite("remote, "+populations[p].name, reproduce.Messages, 0, published, func(w *federationWindow, site int) reproduce.Number {
			return reproduce.Number(w.economy[p].stats(site).MessagesRemote)
		})
		t.Measures = append(t.Measures, local, remote)
		e.Plots = append(e.Plots, s.sitePlot(fmt.Sprintf("Figure 5 (%c)", 'a'+p), "Local and remote messages, all users "+populations[p].name+".", "messages", barsOf(&local, "local"), barsOf(&remote, "remote")))
	}
	e.Plots[1].Title = "Local and remote messages, half of the users OFC, half OFT."
	e.Tables = []reproduce.Table{{
		Title: "Messages in all", Columns: populationNames(),
		Measures: []reproduce.Measure{s.byPopulation("messages", reproduce.Messages, 0, publishedMessages, (*outcome).messages)},
	}, t}
	return e
}

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
