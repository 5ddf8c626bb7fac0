package owner

import (
	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// Guests has owners hold jobs of other sites that wait at theirs, or end them. It sees to it that
// none begins there while it is held, whatever dies.
type Guests struct {
	Sight
	asked  map[uint64]guest
	held   map[guest]bool
	counts GuestCounts
}

// GuestCounts is what a run has seen of guests.
type GuestCounts struct {
	Held     int64 `json:"held"`
	Ended    int64 `json:"ended"`
	Released int64 `json:"released"`
}

// guest is a job at a site that is not its home.
type guest struct {
	at int
	id grid.TaskID
}

// NewGuests begins to watch.
func NewGuests(s Sight) *Guests {
	w := &Guests{Sight: s, asked: make(map[uint64]guest), held: make(map[guest]bool)}
	s.N.Observe(testnet.Observer{Answer: w.answer, Start: w.start})
	return w
}

// Counts returns what was seen.
func (w *Guests) Counts() GuestCounts { return w.counts }

// Do has a site's owner hold a job of another site, or, for one number of four, end it: that one, or,
// if it does not wait, the first that does. It returns which.
func (w *Guests) Do(at int, id grid.JobID, which uint64) grid.JobID {
	s, up := scenario.SiteAt(w.N, at)
	if !up {
		return id
	}
	v, there := s.Glance(id)
	for _, other := range s.Guests() {
		if there && v.State == site.Queued || other.Job == nil {
			break
		}
		if other.Job.State == site.Queued {
			v, there = *other.Job, true
		}
	}
	if !there || !v.Foreign {
		return id
	}
	id = v.Job.ID
	g := guest{at, grid.TaskID{Job: id, Epoch: v.Epoch}}
	if part(&which, 4) == 0 {
		delete(w.held, g)
		w.counts.Ended++
		w.N.Step(at, &site.ChangeGuests{Token: tokens, Change: site.CancelGuest, Job: id, Cause: "the owner of this site does not want it"})
		return id
	}
	token := guestTokens + uint64(len(w.asked))
	w.asked[token] = g
	w.N.Step(at, &site.ChangeGuests{Token: token, Change: site.HoldGuest, Job: id})
	return id
}

// Release has a site's owner hold a job no more.
func (w *Guests) Release(at int, id grid.JobID) {
	for g := range w.held {
		if g.at == at && g.id.Job == id {
			w.counts.Released++
			delete(w.held, g)
		}
	}
	w.N.Step(at, &site.ChangeGuests{Token: tokens, Change: site.ReleaseGuest, Job: id})
}

func (w *Guests) answer(_ grid.Time, _ int, a grid.Answer) {
	g, asked := w.asked[a.Token]
	if changed, yes := a.Value.(*site.GuestsChanged); asked && yes && changed.Err == nil {
		w.held[g] = true
		w.counts.Held++
	}
}

func (w *Guests) start(_ grid.Time, x *testnet.Execution) {
	if w.held[guest{x.Site, x.ID}] {
		w.Checks.Violated("job %s, epoch %d, begins at %s, whose owner holds it", x.Job.ID, x.ID.Epoch, w.N.ID(x.Site))
	}
}
