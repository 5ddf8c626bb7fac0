package testnet

import (
	"slices"

	"gridnode/grid"
	"gridnode/node/pilot"
)

// ForgeOrders gives a lender orders as if they came one after the other in a session of a
// borrower: the one that is open, or for back more than 0 one that began so many numbers before
// its newest. It returns what the pilot's core orders because of them, which is carried out, and
// whether there is such a session.
func ForgeOrders(n *Network, lender int, borrower grid.SiteID, back uint64, orders ...*pilot.Order) (effects []pilot.Effect, could bool) {
	a := n.members[lender].away
	if a == nil || a.core == nil {
		return nil, false
	}
	number, open := a.core.Session(borrower)
	if number <= back || back == 0 && !open {
		return nil, false
	}
	for _, o := range orders {
		effects = append(effects, a.overheard(&pilot.Ordered{From: borrower, Session: number - back, Order: o})...)
	}
	return effects, true
}

// ForgeClosed tells a lender that a session with a borrower has ended which began one number before
// the one that is open, and returns whether there is such a session, and whether the lender takes
// its own for open still.
func ForgeClosed(n *Network, lender int, borrower grid.SiteID) (could, open bool) {
	a := n.members[lender].away
	if a == nil || a.core == nil {
		return false, false
	}
	number, open := a.core.Session(borrower)
	if number == 0 || !open {
		return false, false
	}
	a.overheard(&pilot.Closed{From: borrower, Session: number - 1})
	now, open := a.core.Session(borrower)
	return true, open && now == number
}

// ForgeReport gives a borrower a report as if it came in a session of a lender, which began one
// number before the one that is open, and returns what the pilot's core orders because of it, and
// whether there is such a session.
func ForgeReport(n *Network, borrower int, lender grid.SiteID, report *pilot.Report) (effects []pilot.Effect, could bool) {
	a := n.members[borrower].away
	if a == nil || a.core == nil {
		return nil, false
	}
	for _, x := range a.sessions {
		if x.ends[atBorrower].site == a.site && x.ends[atBorrower].open && n.members[x.ends[atLender].site].ID == lender {
			return a.overheard(&pilot.Reported{Site: lender, Session: x.number - 1, Report: report}), true
		}
	}
	return nil, false
}

// overheard is step, and returns what the core orders first.
func (a *away) overheard(in grid.Input) []pilot.Effect {
	if a.core == nil {
		return nil
	}
	a.core.Step(a.l.members[a.site].Clock.Local(a.l.now), in, &a.out)
	effects := slices.Clone(a.out.Effects)
	a.carryAll()
	return effects
}

// Lent returns what a site's pilot has of a lease: executions that go on, and those whose ends
// it keeps, in order of their IDs.
func Lent(n *Network, lender int, key uint64) (alive, over []grid.TaskID) {
	a := n.members[lender].away
	if a == nil || a.pilots[key] == nil {
		return nil, nil
	}
	for id, r := range a.pilots[key].runs {
		if r.state == executionAlive {
			alive = append(alive, id)
		} else {
			over = append(over, id)
		}
	}
	slices.SortFunc(alive, grid.TaskID.Compare)
	slices.SortFunc(over, grid.TaskID.Compare)
	return alive, over
}
