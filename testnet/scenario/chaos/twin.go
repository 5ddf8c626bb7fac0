package chaos

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
)

// twinWatch looks now and then, after a turn of a site, at what would come up if its daemon
// died at that instant (R-5, J-1): whatever others or users have been told is in its records,
// and nothing that is over is. A daemon that really dies shows only some of what it has lost,
// and later.
type twinWatch struct {
	n      *testnet.Network
	checks *testnet.Checker
	pcg    *rand.PCG
	read   int64 // records, in all looks
	at     int   // the site that is looked at
}

// twinChance is of how many turns of a million one is looked at, as long as the looks have not
// read more than one record for so many events: large sites would take most of the time.
const (
	twinChance = 6000
	twinEvents = 16
)

func watchTwins(n *testnet.Network, c *testnet.Checker) *twinWatch {
	w := &twinWatch{n: n, checks: c, pcg: draw.PCG(n.Seed(), "twins", draw.ForFaults)}
	n.Observe(testnet.Observer{Turn: w.turn})
	return w
}

// turn looks at a site, by chance.
func (w *twinWatch) turn(now grid.Time, at int) {
	s, up := siteAt(w.n, at)
	if !up {
		return
	}
	if err := w.promises(at, s); err != nil {
		w.checks.Violated("%s would not come up as it is: %w", w.n.ID(at), err)
	}
	if draw.Chance(w.pcg, twinChance) && w.read*twinEvents <= w.n.Events() {
		w.read += int64(w.n.Records(at))
		if err := w.compare(now, at, s); err != nil {
			w.checks.Violated("%s would not come up as it is: %w", w.n.ID(at), err)
		}
	}
}

// compare returns what a site has not saved, or not forgotten.
func (w *twinWatch) compare(now grid.Time, at int, s *site.Site) error {
	core, err := w.n.Twin(at)
	if err != nil {
		return err
	}
	w.at = at
	twin := scenario.SiteOf(core)
	for _, differ := range []func(s, twin *site.Site) error{w.jobs, w.leases(w.n.Clock(at).Local(now)), w.claims, w.money} {
		if err := differ(s, twin); err != nil {
			return err
		}
	}
	return nil
}

// jobs compares the jobs, and how often each was placed.
func (w *twinWatch) jobs(s, twin *site.Site) (err error) {
	count := 0
	s.Jobs(func(v site.View) bool {
		count++
		t, there := twin.Glance(v.Job.ID)
		switch {
		case !there:
			err = fmt.Errorf("its job %s, which is %s, is not saved", v.Job.ID, v.State)
		case t.Epoch != v.Epoch:
			err = fmt.Errorf("its job %s has epoch %d, saved is %d", v.Job.ID, v.Epoch, t.Epoch)
		case (v.State.Terminal() || t.State.Terminal() || v.State == site.Cancelling || t.State == site.Cancelling) && v.State != t.State:
			err = fmt.Errorf("its job %s is %s, saved as %s", v.Job.ID, v.State, t.State)
		case v.Award.Site != t.Award.Site || v.Award.Cost != t.Award.Cost && v.Award.Site != w.n.ID(w.at): // at home it moves with the queue
			err = fmt.Errorf("its job %s is at %q for %v, saved is %q, %v", v.Job.ID, v.Award.Site, v.Award.Cost, t.Award.Site, t.Award.Cost)
		}
		return err == nil
	})
	twin.Jobs(func(site.View) bool {
		count--
		return true
	})
	if err == nil && count != 0 {
		err = fmt.Errorf("it has %d jobs more than are saved", count)
	}
	return err
}

// promised returns the leases of a site by which others may do something, or it may.
func promised(s *site.Site, now grid.Time) map[lease.ID]lease.Lease {
	list := make(map[lease.ID]lease.Lease)
	for _, v := range s.Leases() {
		switch l := v.Lease; {
		case l.End <= now || l.Limit > 0 && l.Limit <= now: // it is over as soon as anybody looks
		case l.Lent && l.State != lease.Requested, !l.Lent && (l.State == lease.Claiming || l.State == lease.Active):
			list[l.ID] = l
		}
	}
	return list
}

// leases compares what is lent and borrowed.
func (w *twinWatch) leases(now grid.Time) func(s, twin *site.Site) error {
	return func(s, twin *site.Site) error {
		saved := promised(twin, now)
		for id, l := range promised(s, now) {
			t, there := saved[id] // it may give it up at once
			switch {
			case !w.n.HasSaved(w.at, lease.RecordPrefix+string(l.Borrower)+"/"+strconv.FormatUint(l.Number, 10)):
				return fmt.Errorf("lease %d of %s by %s, %v, is not saved", l.Number, l.Borrower, l.Lender, l.State)
			case there && (t.Epoch != l.Epoch || t.Processors != l.Processors || l.Lent && t.State != l.State):
				return fmt.Errorf("lease %d of %s by %s is %+v, saved as %+v", l.Number, l.Borrower, l.Lender, l, t)
			}
		}
		return nil
	}
}

// endsEarly counts the leases that a site has lent and that end, and are billed, as its twin
// comes up.
func endsEarly(s, twin *site.Site) (n int) {
	state := make(map[lease.ID]lease.State)
	for _, v := range twin.Leases() {
		state[v.ID] = v.State
	}
	for _, v := range s.Leases() {
		if v.Lent && state[v.ID] != v.State {
			n++
		}
	}
	return n
}

// promises checks that what is claimed for components of jobs, and decided, is saved.
func (w *twinWatch) promises(at int, s *site.Site) error {
	for _, l := range s.Claims() {
		if key := coalloc.HomePrefix + strconv.FormatUint(l.Number, 10); l.State != lease.Held && !w.n.HasSaved(at, key) {
			return fmt.Errorf("a claim for job %s at home, %v, is not saved", l.Subject, l.State)
		}
	}
	for task := range s.Decisions() {
		if !w.n.HasSaved(at, coalloc.RecordPrefix+task.Job.String()) {
			return fmt.Errorf("its decision on job %s, epoch %d, is not saved", task.Job, task.Epoch)
		}
	}
	return nil
}

// claims compares what is claimed for components of jobs, and what is decided, with the
// records of that: a daemon that comes up may give an attempt up at once.
func (w *twinWatch) claims(s, twin *site.Site) error {
	live := make(map[string]bool)
	for _, l := range s.Claims() {
		live[coalloc.HomePrefix+strconv.FormatUint(l.Number, 10)] = true
	}
	stored := twin.Decisions()
	for task, started := range s.Decisions() {
		live[coalloc.RecordPrefix+task.Job.String()] = true
		if was, there := stored[task]; there && was != started {
			return fmt.Errorf("that job %s, epoch %d, has started (%v) is not saved", task.Job, task.Epoch, started)
		}
	}
	for key := range w.n.Saved(w.at) {
		if (strings.HasPrefix(key, coalloc.HomePrefix) || strings.HasPrefix(key, coalloc.RecordPrefix)) && !live[key] {
			return fmt.Errorf("%s is over, and saved still", key)
		}
	}
	return nil
}

// money compares cheques, bills and accounts.
func (w *twinWatch) money(s, twin *site.Site) error {
	desk, stored := s.Desk(), twin.Desk()
	payments, bills := desk.Open()
	if p, b := stored.Open(); p != payments || b != bills {
		return fmt.Errorf("it has %d cheques and %d bills open, saved are %d and %d", payments, bills, p, b)
	}
	_, owed := s.Fees() // what a lease costs that is not paid yet ends with the daemon, and so does the lease
	if _, was := twin.Fees(); was < owed || was > owed+endsEarly(s, twin) {
		return fmt.Errorf("it is owed for %d leases, saved are %d", owed, was)
	}
	books, kept := desk.Ledger(), stored.Ledger()
	if books == nil {
		return nil
	}
	if books.Last() != kept.Last() {
		return fmt.Errorf("its books end with transaction %d, saved is %d", books.Last(), kept.Last())
	}
	for _, id := range books.Sites() {
		is, _ := books.Balance(id)
		if was, _ := kept.Balance(id); is != was {
			return fmt.Errorf("its account of %s is %+v, saved is %+v", id, is, was)
		}
	}
	return nil
}
