package after

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// line is the live jobs of one user and name while a singleton of them waits.
type line struct {
	jobs    []*grid.Job // by order
	singles int         // of them, that wait as singletons
}

type lineKey struct{ user, name string }

// keyOf returns the line in which a job is. The jobs of an array have one name.
func keyOf(j *grid.Job) lineKey { return lineKey{j.User, j.Title()} }

// order is that in which jobs were submitted, the same after a restart. Numbers tell it, whatever
// the clock showed, which may have been set back since.
func order(a, b *grid.Job) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Submit, b.Submit), a.ID.Compare(b.ID))
}

// form returns the line of a job, made of the live jobs if there is none yet.
func (g *Gate) form(j *grid.Job, table Table) *line {
	key := keyOf(j)
	l := g.lines[key]
	if l == nil {
		l = &line{}
		g.lines[key] = l
		for other := range table.Live(j.User) {
			g.lineUp(other)
		}
	}
	return l
}

// lineUp puts a job into its line, if there is one.
func (g *Gate) lineUp(j *grid.Job) {
	l := g.lines[keyOf(j)]
	if l == nil {
		return
	}
	if at, there := slices.BinarySearchFunc(l.jobs, j, order); !there {
		l.jobs = slices.Insert(l.jobs, at, j)
	}
}

// behind returns the first earlier job of the line that is not of the same array, nil if
// there is none.
func (g *Gate) behind(j *grid.Job) *grid.Job {
	l := g.lines[keyOf(j)]
	if l == nil {
		return nil
	}
	for _, other := range l.jobs {
		if order(other, j) >= 0 {
			return nil
		}
		if j.Array == nil || other.Array == nil || other.Array.ID != j.Array.ID {
			return other
		}
	}
	return nil
}

// stepOut takes a job that is over out of its line; w is its wait, nil if it did not.
func (g *Gate) stepOut(j *grid.Job, w *wait) {
	if len(g.lines) == 0 {
		return
	}
	l := g.lines[keyOf(j)]
	if l == nil {
		return
	}
	if at, there := slices.BinarySearchFunc(l.jobs, j, order); there {
		l.jobs = slices.Delete(l.jobs, at, at+1)
	}
	for _, other := range l.jobs {
		if o := g.waits[other.ID]; o != nil && other.Terms != nil && other.Terms.Singleton {
			g.list(o)
		}
	}
	if w != nil && j.Terms != nil && j.Terms.Singleton && !w.turn.Met {
		g.unform(j)
	}
}

// unform: a singleton waits no longer. Without any there is no line.
func (g *Gate) unform(j *grid.Job) {
	key := keyOf(j)
	if l := g.lines[key]; l != nil {
		if l.singles--; l.singles == 0 {
			delete(g.lines, key)
		}
	}
}
