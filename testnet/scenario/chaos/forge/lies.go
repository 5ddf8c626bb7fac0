package forge

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/pilot"
	"gridnode/node/site"
	"gridnode/testnet"
)

// lies are about what runs on processors that are lent: words of a session that another
// has replaced, of who has not borrowed them, and those that come late (J-3, J-4). What is wrong
// changes nothing, and a task that was ended, or has run, never starts.
var lies = []forgery{
	(*Forger).oldOrder, (*Forger).oldReport, (*Forger).killed, (*Forger).resumed, (*Forger).foreignOrder, (*Forger).oldEnd,
}

// newOrder is one to start a job that there is not. One that takes no processors is not refused
// because none is left.
func (f *Forger) newOrder(l lease.Lease, processors int64) *pilot.Order {
	job := &grid.Job{
		ID: grid.JobID{Hi: Mark, Lo: uint64(f.N.Now())}, Home: l.Sink, Estimate: grid.Minute, RunTime: grid.Minute,
		Resources: grid.Resources{Processors: processors},
	}
	id := grid.TaskID{Job: job.ID, Epoch: 1}
	return &pilot.Order{Kind: pilot.OrderRun, Key: l.Epoch, ID: id, Tasks: 1, Task: &grid.Task{ID: id, Job: job, Limit: grid.Hour}}
}

// acts returns what a pilot's core orders that has an effect on a task.
func acts(effects []pilot.Effect) pilot.Effect {
	i := slices.IndexFunc(effects, func(e pilot.Effect) bool {
		switch e.(type) {
		case pilot.Launch, pilot.Prepare, pilot.Stop, pilot.Forget, pilot.Follow, pilot.Ended, pilot.Begin, pilot.StartOwn, pilot.KillOwn, pilot.AcknowledgeOwn:
			return true
		}
		return false
	})
	if i < 0 {
		return nil
	}
	return effects[i]
}

// saysSo reports whether a core says that.
func saysSo(effects []pilot.Effect, kind pilot.ReportKind) bool {
	return slices.ContainsFunc(effects, func(e pilot.Effect) bool {
		t, yes := e.(pilot.Tell)
		return yes && t.Report.Kind == kind
	})
}

// oldOrder has a lender hear an order in a session that a newer one has replaced, be it open or
// not: it says that it knows a newer one, and nothing changes.
func (f *Forger) oldOrder(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, true, lease.Active), which)
	if !there {
		return false, nil
	}
	o := f.newOrder(l, 0)
	alive, over := testnet.Lent(f.N, at, l.Epoch)
	switch which >> 16 % 3 {
	case 0:
		if id, some := Chosen(alive, which>>24); some {
			o = &pilot.Order{Kind: pilot.OrderKill, Key: l.Epoch, ID: id, Tasks: 1, Reason: "forged"}
		}
	case 1:
		if id, some := Chosen(over, which>>24); some {
			o = &pilot.Order{Kind: pilot.OrderAcknowledge, Key: l.Epoch, ID: id}
		}
	}
	effects, could := testnet.ForgeOrders(f.N, at, l.Sink, 1, o)
	switch act := acts(effects); {
	case !could:
		return false, nil
	case act != nil:
		return true, fmt.Errorf("%T %+v in an old session of %s has led to %T", o, o.ID, l.Sink, act)
	case !saysSo(effects, pilot.ReportSuperseded):
		return true, fmt.Errorf("an order in an old session of %s: it is not told that there is a newer one", l.Sink)
	}
	return true, nil
}

// oldReport has a borrower hear in a session that is over that one of its tasks has ended.
func (f *Forger) oldReport(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, false, lease.Active), which)
	lender, known := f.N.Index(l.Lender)
	if !there || !known {
		return false, nil
	}
	alive, _ := testnet.Lent(f.N, lender, l.Epoch)
	id, some := Chosen(alive, which>>16)
	if !some {
		return false, nil
	}
	r := &pilot.Report{Kind: pilot.ReportEnded, ID: id, End: pilot.End{Ran: 1}}
	if which>>24%2 == 0 {
		r = &pilot.Report{Kind: pilot.ReportLost, ID: id}
	}
	effects, could := testnet.ForgeReport(f.N, at, l.Lender, r)
	if len(effects) > 0 {
		return true, fmt.Errorf("the end of job %s, told in an old session by %s, has led to %T", id.Job, l.Lender, effects[0])
	}
	return could, nil
}

// killed has a lender hear that a task is to end that has not come, and then the task.
func (f *Forger) killed(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, true, lease.Active), which)
	if !there {
		return false, nil
	}
	run := f.newOrder(l, 0)
	_, could := testnet.ForgeOrders(f.N, at, l.Sink, 0,
		&pilot.Order{Kind: pilot.OrderKill, Key: l.Epoch, ID: run.ID, Tasks: 1, Reason: "forged"}, run,
		&pilot.Order{Kind: pilot.OrderAcknowledge, Key: l.Epoch, ID: run.ID},
	)
	return could, nil // New sees it start
}

// resumed has a lender hear that a task is to go on that it does not have: it has run.
func (f *Forger) resumed(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, true, lease.Active), which)
	if !there {
		return false, nil
	}
	o := f.newOrder(l, 0)
	o.Resume = true
	_, could := testnet.ForgeOrders(f.N, at, l.Sink, 0, o)
	return could, nil
}

// foreignOrder has a lender hear an order of another borrower than that of the lease.
func (f *Forger) foreignOrder(at int, s *site.Site, other grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, true, lease.Active), which)
	if !there || other == l.Sink {
		return false, nil
	}
	_, could := testnet.ForgeOrders(f.N, at, other, 0, f.newOrder(l, 0))
	return could, nil
}

// oldEnd has a lender hear that a session has ended which a newer one has replaced: it goes on
// speaking in that.
func (f *Forger) oldEnd(at int, s *site.Site, _ grid.SiteID, which uint64) (bool, error) {
	l, there := Chosen(leases(s, true, lease.Active), which)
	if !there {
		return false, nil
	}
	could, open := testnet.ForgeClosed(f.N, at, l.Sink)
	if could && !open {
		return true, fmt.Errorf("an old session of %s has ended, and the present one is taken for ended", l.Sink)
	}
	return could, nil
}
