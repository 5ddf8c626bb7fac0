package site

import (
	"fmt"
	"slices"
	"strings"

	"gridnode/coalloc"
	"gridnode/coalloc/dataset"
	"gridnode/grid"
)

// inputs is the part that owns the catalog of data sets: those that this site holds, and
// what it has learnt of who holds those that jobs read.
type inputs struct {
	*base
	catalog *dataset.Catalog
	gangs   *gangs // nil: nobody waits for look-ups
}

func (*inputs) takes(b *board) {
	of := func(s *Site) *inputs { return s.inputs }
	hear(b, of, (*inputs).message, kindsOf(&dataset.Protocol)...)
	take(b, of, (*inputs).hold)
	take(b, of, (*inputs).find)
	take(b, of, (*inputs).lend)
	take(b, of, (*inputs).drop)
	take(b, of, (*inputs).learnt)
}

func (n *inputs) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	n.catalog.Step(now, in, out)
}
func (n *inputs) hold(now grid.Time, in *dataset.Hold, out *grid.Outbox) {
	n.catalog.Step(now, in, out)
}
func (n *inputs) find(now grid.Time, in *dataset.Find, out *grid.Outbox) {
	n.catalog.Step(now, in, out)
}
func (n *inputs) lend(now grid.Time, in *dataset.Lend, out *grid.Outbox) {
	n.catalog.Step(now, in, out)
}
func (n *inputs) drop(now grid.Time, in *dataset.Drop, out *grid.Outbox) {
	n.catalog.Step(now, in, out)
}

func (n *inputs) tick(now grid.Time, out *grid.Outbox) {
	if n.catalog.NextTimer() <= now {
		n.catalog.Step(now, grid.Tick{}, out)
	}
}

func (n *inputs) nextTimer() grid.Time { return n.catalog.NextTimer() }

func (n *inputs) keeps() []string { return []string{dataset.RecordPrefix} }

func (n *inputs) recover(now grid.Time, stored records, _ *grid.Outbox) error {
	return n.catalog.Recover(now, stored.each)
}

// learnt: a look-up of a data set has ended, for which jobs may have waited.
func (n *inputs) learnt(now grid.Time, _ *dataset.Learnt, out *grid.Outbox) {
	if n.gangs != nil {
		n.gangs.learnt(now, out)
	}
}

// seek begins to look for the holders of a job's inputs, and reports whether all have
// been looked up and somebody has answered.
func (n *inputs) seek(now grid.Time, j *grid.Job, out *grid.Outbox) bool {
	all := true
	for i := range j.Inputs {
		n.catalog.Want(now, j.Inputs[i].Name, out)
		answer, known := n.catalog.Known(j.Inputs[i].Name)
		if known && len(answer.Holders) == 0 && answer.Silent > 0 {
			known = false // whoever has announced it may be starting
		}
		all = all && (known || !n.catalog.Looking(j.Inputs[i].Name) && answer.Silent == 0)
	}
	return all
}

// of appends what is known of a job's inputs, in their order, and names each site that
// holds one.
func (n *inputs) of(dst []coalloc.Input, j *grid.Job, holder func(grid.SiteID)) []coalloc.Input {
	for i := range j.Inputs {
		in := &j.Inputs[i]
		answer, _ := n.catalog.Known(in.Name)
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
			holder(h.Site)
		}
		dst = append(dst, input)
	}
	return dst
}

// unheld returns the names of a job's inputs that no site is known to hold.
func (n *inputs) unheld(j *grid.Job) (names []string) {
	for i := range j.Inputs {
		if answer, _ := n.catalog.Known(j.Inputs[i].Name); len(answer.Holding(j.Inputs[i].Size)) == 0 {
			names = append(names, j.Inputs[i].Name)
		}
	}
	return names
}

// inputsNote says, for a site, what placing a job there means for its inputs, of which
// some are unheld; empty if it reads nothing.
func inputsNote(view *coalloc.View, j *grid.Job, inputs []coalloc.Input, unheld []string, site grid.SiteID) string {
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
