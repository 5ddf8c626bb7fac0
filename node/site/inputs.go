package site

import (
	"fmt"
	"slices"
	"strings"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/grid"
)

// lookMax is how long a job waits at first for who holds its inputs, if the look-ups
// have to wait for others.
const lookMax = 30 * grid.Second

// DataSets yields the data sets that this site holds, by name.
func (s *Site) DataSets(yield func(*dataset.Set) bool) {
	if s.data != nil {
		s.data.Sets(yield)
	}
}

// DataSet returns a data set that this site holds.
func (s *Site) DataSet(name string) (dataset.Set, bool) {
	if s.data == nil {
		return dataset.Set{}, false
	}
	return s.data.Get(name)
}

// dataInput passes an input on to the catalog, and reports whether it was for it.
func (s *Site) dataInput(now grid.Time, in grid.Input, out *grid.Outbox) bool {
	switch in := in.(type) {
	case *dataset.Hold:
		if s.data == nil {
			out.Answer(in.Token, &dataset.Held{Err: fmt.Errorf("%w: this site is alone", dataset.ErrRefused)})
			return true
		}
	case *dataset.Find:
		if s.data == nil {
			out.Answer(in.Token, &dataset.Answer{})
			return true
		}
	case *dataset.Drop:
		if s.data == nil {
			out.Answer(in.Token, &dataset.Held{Err: dataset.ErrUnknown})
			return true
		}
	case *dataset.Learnt:
		s.learnt(now, out)
		return true
	case *grid.Provided, *grid.Providers:
	default:
		return false
	}
	if s.data != nil {
		s.data.Step(now, in, out)
	}
	return true
}

// learnt: a look-up of a data set has ended, for which jobs may have waited.
func (s *Site) learnt(now grid.Time, out *grid.Outbox) {
	c := s.co
	if c.scan.query == 0 && (len(c.newcomers) > 0 || len(c.previews) > 0) {
		s.handOver(now, false, out)
	}
}

// seek begins to look for the holders of a job's inputs, and reports whether all have
// been looked up and somebody has answered.
func (s *Site) seek(now grid.Time, j *grid.Job, out *grid.Outbox) bool {
	all := true
	for i := range j.Inputs {
		s.data.Want(now, j.Inputs[i].Name, out)
		answer, known := s.data.Known(j.Inputs[i].Name)
		if known && len(answer.Holders) == 0 && answer.Silent > 0 {
			known = false // whoever has announced it may be starting
		}
		all = all && (known || !s.data.Looking(j.Inputs[i].Name) && answer.Silent == 0)
	}
	return all
}

// inputsOf appends what is known of a job's inputs, in their order, and enters their
// holders among the sites, as their place in the network counts also if they have no
// processors.
func (s *Site) inputsOf(dst []coalloc.Input, j *grid.Job) []coalloc.Input {
	view := s.co.coord.View()
	before := len(view.Sites)
	for i := range j.Inputs {
		in := &j.Inputs[i]
		answer, _ := s.data.Known(in.Name)
		size := in.Size
		if size == grid.SizeUnknown {
			size = answer.Size()
		}
		input := coalloc.Input{Bytes: max(size, 0)}
		for _, h := range answer.Holding(in.Size) {
			if h.Shared {
				input.Holders = append(input.Holders, h.Site)
			} else {
				input.Closed = append(input.Closed, h.Site)
			}
			if view.Index(h.Site) < 0 {
				view.Put(coalloc.Site{ID: h.Site})
			}
		}
		dst = append(dst, input)
	}
	if len(view.Sites) > before {
		s.setNetwork()
	}
	return dst
}

// refreshInputs tells the placement queue who holds what the jobs in it read.
func (s *Site) refreshInputs(now grid.Time, out *grid.Outbox) {
	c := s.co
	kept := c.readers[:0]
	for _, e := range c.readers {
		if e.state.Terminal() || !c.coord.Knows(e.job.ID) {
			continue
		}
		kept = append(kept, e)
		if w := c.coord.Queue().Waiting(e.job.ID); w != nil {
			s.seek(now, e.job, out)
			w.Request.Inputs = s.inputsOf(w.Request.Inputs[:0], e.job)
		}
	}
	clear(c.readers[len(kept):])
	c.readers = kept
}

// unheld returns the names of a job's inputs that no site is known to hold.
func (s *Site) unheld(j *grid.Job) (names []string) {
	for i := range j.Inputs {
		if answer, _ := s.data.Known(j.Inputs[i].Name); len(answer.Holding(j.Inputs[i].Size)) == 0 {
			names = append(names, j.Inputs[i].Name)
		}
	}
	return names
}

// inputsNote says, for a site, what placing a job there means for its inputs, of which
// some are unheld; empty if it reads nothing.
func (s *Site) inputsNote(j *grid.Job, inputs []coalloc.Input, unheld []string, site grid.SiteID) string {
	if len(j.Inputs) == 0 {
		return ""
	}
	var here, closed []string
	for i := range inputs {
		in := &inputs[i]
		switch {
		case slices.Contains(in.Holders, site), slices.Contains(in.Closed, site):
			here = append(here, j.Inputs[i].Name)
		case len(in.Holders) == 0 && len(in.Closed) > 0:
			closed = append(closed, j.Inputs[i].Name)
		}
	}
	view := s.co.coord.View()
	at := view.Index(site)
	var notes []string
	if len(here) > 0 {
		notes = append(notes, "holds "+listed(here))
	}
	if len(closed) > 0 {
		notes = append(notes, listed(closed)+" cannot be brought here")
	} else if missing := len(j.Inputs) - len(here) - len(unheld); missing > 0 && at >= 0 {
		notes = append(notes, fmt.Sprintf("%d of %d inputs to be brought, about %v", missing, len(j.Inputs), coalloc.Transfer(inputs, view, at)))
	}
	if len(unheld) > 0 {
		notes = append(notes, "no site is known to hold "+listed(unheld))
	}
	return strings.Join(notes, "; ")
}

// listed names the first of a few and counts the others: it stands beside every site.
func listed(names []string) string {
	first := names[0]
	if len(first) > listedMax {
		first = first[:listedMax] + "…"
	}
	if len(names) > 1 {
		first += fmt.Sprintf(" and %d others", len(names)-1)
	}
	return first
}

const listedMax = 80 // a digest is shorter
