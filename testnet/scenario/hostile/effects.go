package hostile

import (
	"gridnode/grid"
	"gridnode/testnet"
)

// award is a job that is at another site than its home.
type award struct {
	task       grid.TaskID
	home, site grid.SiteID
}

// effects watches whether anything that was forged has an effect on honest sites:
//
//   - a job of an honest home runs at an honest site only if its home has placed it there, and
//     one of another home only with a cheque of a bank that the site accepts;
//   - it ends there by itself or at its limit, and is over for its home only then;
//   - an honest site knows nobody as a member who is none, and nobody as revoked;
//   - quotes are what their sites have signed (census), and no money moves otherwise (money).
type effects struct {
	t      *town
	placed map[grid.TaskID]grid.SiteID // by honest homes
	ended  map[grid.TaskID]int         // where executions have ended
}

// accepted notes that something forged had an effect, which ends the run.
func (t *town) accepted(format string, args ...any) {
	t.effects++
	t.watch.Violated("forged: "+format, args...)
}

func watchEffects(t *town) *effects {
	w := &effects{t: t, placed: make(map[grid.TaskID]grid.SiteID), ended: make(map[grid.TaskID]int)}
	t.n.Observe(testnet.Observer{Event: w.event, Start: w.start, End: w.end})
	return w
}

func (w *effects) event(_ grid.Time, at int, e *grid.Event) {
	if !w.t.honest(at) {
		return
	}
	task := grid.TaskID{Job: e.Job.ID, Epoch: e.Epoch}
	home := w.t.IDs[at]
	switch e.Kind {
	case grid.JobPlaced:
		w.placed[task] = e.Site
		if e.Site != home && w.t.is(e.Site) {
			w.t.awards = append(w.t.awards, award{task, home, e.Site})
			if len(w.t.awards) > heardMax {
				w.t.awards = w.t.awards[1:]
			}
		}
	case grid.JobFinished:
		if where, over := w.ended[task]; e.Site != home && w.t.is(e.Site) && (!over || w.t.IDs[where] != e.Site) {
			w.t.accepted("job %s of %s is over with epoch %d, which has not ended at %s", e.Job.ID, w.t.Sites[at].Name, e.Epoch, w.t.name(e.Site))
		}
	case grid.JobReplaced, grid.JobCancelled:
		if w.t.is(e.Site) {
			w.t.accepted("job %s of %s is %s, which was at %s with epoch %d", e.Job.ID, w.t.Sites[at].Name, e.Kind, w.t.name(e.Site), e.Epoch)
		}
	}
}

func (w *effects) start(_ grid.Time, x *testnet.Execution) {
	at, home := w.t.IDs[x.Site], x.Job.Home
	if !w.t.honest(x.Site) || home == at {
		return
	}
	if from, known := w.t.index[home]; known && w.t.revoked(from) {
		w.t.accepted("job %s of %s, which is revoked, begins at %s", x.Job.ID, w.t.name(home), w.t.name(at))
	}
	switch {
	case !w.t.siteAt(x.Site).Desk().Holds(home, x.ID):
		w.t.accepted("job %s of %s begins at %s, and no cheque pays for it", x.Job.ID, w.t.name(home), w.t.name(at))
	case w.t.is(home) && w.placed[x.ID] != at:
		w.t.accepted("job %s of %s begins with epoch %d at %s, where its home has not placed it", x.Job.ID, w.t.name(home), x.ID.Epoch, w.t.name(at))
	}
}

func (w *effects) end(_ grid.Time, x *testnet.Execution) {
	w.ended[x.ID] = x.Site
	if w.t.honest(x.Site) && w.t.is(x.Job.Home) && x.Reason != "" && x.Reason != testnet.TimeLimit {
		w.t.accepted("job %s of %s is ended at %s: %s", x.Job.ID, w.t.name(x.Job.Home), w.t.Sites[x.Site].Name, x.Reason)
	}
}

// name returns what people call a site.
func (t *town) name(id grid.SiteID) string {
	if at, known := t.index[id]; known {
		return t.Sites[at].Name
	}
	return string(id)
}

// atRest looks at what honest sites know of the members.
func (w *effects) atRest() error {
	for i := range w.t.Sites {
		if !w.t.honest(i) {
			continue
		}
		roll := w.t.siteAt(i).Roll()
		if n := len(roll.Revoked().Lists()); n > min(len(w.t.gone), 1) {
			w.t.accepted("%s has %d revocation lists", w.t.Sites[i].Name, n)
		}
		for _, m := range roll.Members() {
			if at, known := w.t.index[m.Site]; !known || w.t.members[at].Name != m.Name || w.t.revoked(at) || w.t.honest(at) && roll.Revoked().Has(m) {
				w.t.accepted("%s knows %s as the member %s", w.t.Sites[i].Name, m.Site, m.Name)
			}
		}
	}
	return w.t.watch.Violation(0)
}
