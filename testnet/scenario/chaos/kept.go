package chaos

import (
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// keptWatch checks that who has given a guarantee takes the job for which it was given, as long as it
// lasts, unless its owner wants no more of that home, or the site has been down since (J-11).
type keptWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	clocks *clockWatch
	given  map[given]guaranteed // of each site to each home
	came   map[int]grid.Time    // when a site last came up
}

// given is what a site has guaranteed to a home.
type given struct {
	at   int
	home grid.SiteID
	job  grid.JobID
}

// guaranteed is a guarantee, and what has become of it.
type guaranteed struct {
	task  grid.TaskID
	hold  uint64
	at    grid.Time // when it was last given
	until grid.Time
	price grid.Price
	cost  grid.Credits
	over  bool // its home has said that it does not want it, or its job has come
	sent  bool // its job is on its way, for what was guaranteed
}

// keptSlack is how long before its end a guarantee need not be good any more: messages take time, and
// clocks drift.
const keptSlack = 5 * grid.Second

// watchKept starts to watch.
func watchKept(n *testnet.Network, c *testnet.Checker, clocks *clockWatch) {
	w := &keptWatch{n: n, checks: c, clocks: clocks, given: make(map[given]guaranteed), came: comings(n)}
	n.Observe(testnet.Observer{Send: w.send})
}

func (w *keptWatch) send(now grid.Time, from int, to grid.SiteID, m grid.Message) {
	other, known := w.n.Index(to)
	if !known {
		return
	}
	switch m := m.(type) {
	case *market.Reply:
		if key := (given{from, to, m.Task.Job}); m.Refusal == market.Granted && !m.Probe {
			w.given[key] = guaranteed{task: m.Task, hold: m.Hold, at: now, until: now + m.HoldSpan - keptSlack, price: m.Price, cost: m.Cost}
		}
	case *market.Cancel:
		key := given{other, w.n.ID(from), m.Task.Job}
		if g := w.given[key]; g.task == m.Task && g.hold == m.Hold {
			g.over = true
			w.given[key] = g
		}
	case *market.JobSubmission:
		key := given{other, w.n.ID(from), m.Job.ID}
		if g := w.given[key]; g.task == (grid.TaskID{Job: m.Job.ID, Epoch: m.Epoch}) && g.hold == m.Hold {
			g.sent = m.Price == g.price && m.Cost == g.cost
			w.given[key] = g
		}
	case *market.Acknowledge:
		if m.Of == wire.MarketJobSubmission {
			w.acknowledged(now, from, to, m)
		}
	}
}

// acknowledged looks at what a site answers to a job.
func (w *keptWatch) acknowledged(now grid.Time, at int, to grid.SiteID, m *market.Acknowledge) {
	key := given{at, to, m.Task.Job}
	g, there := w.given[key]
	if !there || g.task != m.Task || g.hold != m.Hold {
		return
	}
	if s, up := scenario.SiteAt(w.n, at); m.Unknown && g.sent && !g.over && now < g.until && w.came[at] < g.at && !w.clocks.set(at) && up && !s.Draining() && len(s.GuestDesk().Bans()) == 0 {
		w.checks.Violated("%s has given %s guarantee %d for job %s, epoch %d, until %v, and does not know of it", w.n.ID(at), to, m.Hold, m.Task.Job, m.Task.Epoch, g.until+keptSlack)
	}
	g.over = true
	w.given[key] = g
}
