package after

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"gridnode/grid"
	"gridnode/node/quota"
)

// Gate holds the jobs of one home that wait. Not safe for concurrent use.
type Gate struct {
	waits  map[grid.JobID]*wait
	on     map[grid.JobID][]*wait // who waits for a job or an array
	arrays map[grid.JobID]*array  // with live jobs
	lines  map[lineKey]*line      // with singletons that wait
	begins []*wait                // in order of when they may begin
	look   []*wait                // to be looked at again
	now    grid.Time

	desk   *quota.Desk        // nil: no user has limits
	full   map[string][]*wait // by user: who waits for his limits alone, in quota.Order
	renews grid.Time          // when one may spend again who waits for that
}

// wait is a job that waits.
type wait struct {
	job    *grid.Job
	turn   *Turn
	over   []bool // dependencies whose jobs are all over
	begun  []bool // or have all begun
	listed bool   // in Gate.look
	gone   bool   // it does not wait any more
	said   bool   // it was dropped
}

// array is an array with live jobs.
type array struct {
	number uint64
	live   int
	going  int64   // of them, that do not wait
	full   []*wait // that wait for nothing but their number, by index
}

// Fate is what the caller's table knows of a job, or of all jobs of an array.
type Fate struct {
	Known  bool
	Live   bool // one is not over
	Failed bool // one has ended otherwise than well
	Begun  bool // all have begun, or are over
}

// Table tells the fate of a job or an array, by its ID.
type Table interface {
	Fate(grid.JobID) Fate
	// Live yields the jobs of a user that are not over, in any order.
	Live(user string) func(yield func(*grid.Job) bool)
}

// NewGate returns a gate at which nobody waits; desk knows the limits of users, nil: there are none.
func NewGate(desk *quota.Desk) *Gate {
	return &Gate{
		desk: desk, full: make(map[string][]*wait), renews: grid.Never,
		waits: make(map[grid.JobID]*wait), on: make(map[grid.JobID][]*wait),
		arrays: make(map[grid.JobID]*array), lines: make(map[lineKey]*line),
	}
}

// Refuses returns why a job cannot be taken: it depends on a job that the table does not
// know, itself included.
func Refuses(j *grid.Job, table Table) error {
	if j.Terms == nil {
		return nil
	}
	for _, d := range j.Terms.After {
		if !table.Fate(d.Job).Known {
			return fmt.Errorf("it is to run %s %s, which is no job of this site, or was one too long ago", d.Condition, d.Job)
		}
	}
	return nil
}

// Waits reports whether a job has to be given to Wait.
func (g *Gate) Waits(j *grid.Job) bool {
	return j.Terms != nil || j.Array != nil && j.Array.Most > 0 || g.desk.Watches(j.User)
}

// Number returns the number of a live array, 0 if it has none.
func (g *Gate) Number(id grid.JobID) uint64 {
	if a := g.arrays[id]; a != nil {
		return a.number
	}
	return 0
}

// Enter notes a live job; waits says that Wait follows.
func (g *Gate) Enter(j *grid.Job, waits bool) {
	if !waits {
		g.take(j)
	}
	if j.Array != nil {
		a := g.arrays[j.Array.ID]
		if a == nil {
			a = &array{number: j.Array.Number}
			g.arrays[j.Array.ID] = a
		}
		a.live++
		if !waits {
			a.going++
		}
	}
	if len(g.lines) > 0 {
		g.lineUp(j)
	}
}

// Back notes that a job which was let go waits again: Wait follows.
func (g *Gate) Back(j *grid.Job) {
	g.give(j)
	if j.Array == nil {
		return
	}
	if a := g.arrays[j.Array.ID]; a != nil {
		a.going--
		g.room(a)
	}
}

// Wait has a job wait until Next lets it go.
func (g *Gate) Wait(j *grid.Job, turn *Turn, table Table) {
	w := &wait{job: j, turn: turn}
	g.waits[j.ID] = w
	if t := j.Terms; t != nil && !turn.Met {
		w.over, w.begun = make([]bool, len(t.After)), make([]bool, len(t.After))
		for i, d := range t.After {
			fate := table.Fate(d.Job)
			w.begun[i] = fate.Begun
			if fate.Failed {
				turn.fail(i, len(t.After))
			}
			if w.over[i] = !fate.Live; fate.Live {
				g.on[d.Job] = append(g.on[d.Job], w)
			}
		}
		if t.Begin > 0 {
			at, _ := slices.BinarySearchFunc(g.begins, w, func(a, b *wait) int {
				return cmp.Or(cmp.Compare(a.job.Terms.Begin, b.job.Terms.Begin), a.job.ID.Compare(b.job.ID))
			})
			g.begins = slices.Insert(g.begins, at, w)
		}
		if t.Singleton {
			g.form(j, table).singles++
		}
	}
	g.list(w)
}

// Hold has a job that waits stay, and Release takes that back.
func (g *Gate) Hold(id grid.JobID) { g.hold(id, true) }

// Release lets a job go that Hold, or its terms, have made stay, once nothing else does.
func (g *Gate) Release(id grid.JobID) { g.hold(id, false) }

func (g *Gate) hold(id grid.JobID, held bool) {
	if w := g.waits[id]; w != nil {
		w.turn.Held = held
		g.stepAside(w)
		g.list(w)
		if a := w.job.Array; held && a != nil && g.arrays[a.ID] != nil {
			g.room(g.arrays[a.ID]) // it may have had its number, and waited for its user's limits
		}
	}
}

// Leave notes that a job is over, whether it waited or not, and how. It returns the jobs
// whose turns have changed: to be stored before anybody hears of the end.
func (g *Gate) Leave(j *grid.Job, well bool) (changed []grid.JobID) {
	w := g.waits[j.ID]
	if w != nil {
		g.forget(w)
	} else {
		g.give(j)
	}
	changed = g.ended(j.ID, well, true, changed)
	if j.Array != nil {
		if a := g.arrays[j.Array.ID]; a != nil {
			if a.live--; w == nil {
				a.going--
			}
			changed = g.ended(j.Array.ID, well, a.live == 0, changed)
			g.room(a)
			if a.live == 0 {
				delete(g.arrays, j.Array.ID)
			}
		}
	}
	g.stepOut(j, w)
	return changed
}

// Begun notes that a job has begun.
func (g *Gate) Begun(j *grid.Job, table Table) {
	ids := []grid.JobID{j.ID}
	if j.Array != nil {
		ids = append(ids, j.Array.ID)
	}
	for _, id := range ids {
		for _, w := range g.on[id] {
			for i, d := range w.job.Terms.After {
				if d.Job == id && d.Condition == grid.After && !w.begun[i] && table.Fate(id).Begun {
					w.begun[i] = true
					g.list(w)
				}
			}
		}
	}
}

// ended tells those that wait for a job or an array.
func (g *Gate) ended(id grid.JobID, well, over bool, changed []grid.JobID) []grid.JobID {
	for _, w := range g.on[id] {
		if w.gone {
			continue
		}
		news := over
		for i, d := range w.job.Terms.After {
			if d.Job != id {
				continue
			}
			w.over[i] = w.over[i] || over
			if !well && w.turn.fail(i, len(w.job.Terms.After)) {
				changed, news = append(changed, w.job.ID), true
			}
		}
		if news {
			g.list(w)
		}
	}
	if over {
		delete(g.on, id)
	}
	return changed
}

// room has the next job of an array looked at that waits for its number.
func (g *Gate) room(a *array) {
	for len(a.full) > 0 {
		w := a.full[0]
		a.full = a.full[1:]
		if !w.gone && !w.turn.Held {
			g.list(w)
			return
		}
	}
}

// list has a job looked at by Next.
func (g *Gate) list(w *wait) {
	if !w.listed && !w.gone {
		w.listed = true
		g.look = append(g.look, w)
	}
}

// Audit returns which count of the gate is not what a recount of the live jobs gives, each with
// whether it waits, or which job waits for nothing at time now; nil: there is nothing of that kind. It is
// asked of a gate at rest.
func (g *Gate) Audit(now grid.Time, live iter.Seq2[*grid.Job, bool]) error {
	defer func(last grid.Time) { g.now = last }(g.now) // an audit changes nothing
	g.now = max(g.now, now)
	arrays, placed, waiting := make(map[grid.JobID]array), make(map[grid.JobID]*grid.Job), 0
	for j, waits := range live {
		if _, there := g.waits[j.ID]; there != waits {
			return fmt.Errorf("job %s waits at the gate: %v, and should: %v", j.ID, there, waits)
		}
		if waits {
			waiting++
		} else {
			placed[j.ID] = j
		}
		if j.Array != nil {
			a := arrays[j.Array.ID]
			if a.live++; !waits {
				a.going++
			}
			arrays[j.Array.ID] = a
		}
	}
	if waiting != len(g.waits) || len(arrays) != len(g.arrays) {
		return fmt.Errorf("%d jobs wait and %d arrays are live, and %d and %d count as that", waiting, len(arrays), len(g.waits), len(g.arrays))
	}
	for id, a := range arrays {
		if has := g.arrays[id]; has == nil || has.live != a.live || has.going != a.going {
			return fmt.Errorf("array %s has %d live jobs, of which %d do not wait, and other counts: %+v", id, a.live, a.going, has)
		}
	}
	if id, idle := g.idle(); idle {
		return fmt.Errorf("job %s waits at the gate, and nothing keeps it there", id)
	}
	if g.desk != nil {
		return g.desk.Audit(placed)
	}
	return nil
}

// idle returns a job that waits for nothing, nor is looked at soon. Of an array the next one may wait for
// another that has its number, and waits for its user's limits.
func (g *Gate) idle() (id grid.JobID, yes bool) {
	if len(g.look) > 0 {
		return id, false
	}
	numbered := make(map[grid.JobID]bool)
	for _, w := range g.waits {
		if w.job.Array != nil && g.reason(w).ofUser() {
			numbered[w.job.Array.ID] = true
		}
	}
	for id, w := range g.waits {
		if g.reason(w) == "" && !(w.job.Array != nil && numbered[w.job.Array.ID]) {
			return id, true
		}
	}
	return id, false
}

// forget takes a job out that does not wait any more.
func (g *Gate) forget(w *wait) {
	w.gone = true
	delete(g.waits, w.job.ID)
	g.stepAside(w)
	if w.job.Terms == nil {
		return
	}
	if w.over != nil {
		for i, d := range w.job.Terms.After {
			if !w.over[i] {
				g.on[d.Job] = slices.DeleteFunc(g.on[d.Job], func(o *wait) bool { return o == w })
				if len(g.on[d.Job]) == 0 {
					delete(g.on, d.Job)
				}
			}
		}
	}
	if w.job.Terms.Begin > 0 {
		g.begins = slices.DeleteFunc(g.begins, func(o *wait) bool { return o == w })
	}
}

// Verdict is what becomes of a job that waited.
type Verdict uint8

// Verdicts of Next.
const (
	Go   Verdict = iota + 1 // it is to be placed
	Drop                    // it is to be cancelled: Leave follows
)

// Next returns a job that waits no longer at time now, or false if there is none.
func (g *Gate) Next(now grid.Time) (grid.JobID, Verdict, bool) {
	g.now = now
	for len(g.begins) > 0 && g.begins[0].job.Terms.Begin <= now {
		w := g.begins[0]
		g.begins = g.begins[1:]
		g.list(w)
	}
	g.renew(now)
	for len(g.look) > 0 {
		w := g.look[0]
		g.look = g.look[1:]
		w.listed = false
		if w.gone {
			continue
		}
		why := g.reason(w)
		if !why.ofUser() {
			g.stepAside(w)
		}
		switch {
		case why == "":
			g.let(w)
			return w.job.ID, Go, true
		case why == NeverMet && w.job.Terms.Drop && !w.said:
			w.said = true
			return w.job.ID, Drop, true
		case why == ArrayFull:
			g.crowd(w)
		case why.ofUser():
			g.lineFor(w, quota.Cause(why))
		}
	}
	return grid.JobID{}, 0, false
}

// let has a job go.
func (g *Gate) let(w *wait) {
	single := w.job.Terms != nil && w.job.Terms.Singleton && !w.turn.Met
	w.turn.Met = true
	g.forget(w)
	g.take(w.job)
	if a := w.job.Array; a != nil && g.arrays[a.ID] != nil {
		g.arrays[a.ID].going++
		g.nextOf(w.job.User) // it may be of the same array, which may be full now
	}
	if single {
		g.unform(w.job)
	}
}

// crowd has a job wait for its number in its array.
func (g *Gate) crowd(w *wait) {
	a := g.arrays[w.job.Array.ID]
	at, there := slices.BinarySearchFunc(a.full, w, func(x, y *wait) int { return cmp.Compare(x.job.Array.Index, y.job.Array.Index) })
	if there { // what it was before it was let go once, which nobody has come to since
		a.full[at] = w
		return
	}
	a.full = slices.Insert(a.full, at, w)
}

// NextTimer returns when Next needs to be called although nothing has happened.
func (g *Gate) NextTimer() grid.Time {
	switch {
	case len(g.look) > 0:
		return 0
	case len(g.begins) > 0:
		return min(g.begins[0].job.Terms.Begin, g.renews)
	}
	return g.renews
}
