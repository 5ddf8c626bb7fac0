package pilot

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gridnode/grid"
)

// chaos is a world in which anything may happen at any time, and the leases of its sites.
type chaos struct {
	*world
	t      *rapid.T
	jobs   uint64
	leases []loan
}

// loan is a lease as both sites' books have it.
type loan struct {
	lender, borrower grid.SiteID
	key              uint64
	processors       int64
	gang             bool // it is a gang's
	given            bool // the borrower has given it up
	over             bool // the lender, too
}

// TestAnythingMayHappen: whatever is lost and whoever crashes, at whatever moment, a task
// begins at most once, no lease has more processors used than it has, no task of a gang
// begins before all were ready, every end is told once, and in the end nothing is left.
func TestAnythingMayHappen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld("a", "b", "c"), t: t}
		c.lend("b", "a", 2, false)
		c.lend("c", "a", 3, false)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			c.something()
			if c.broken != "" {
				t.Fatalf("%s\n%s", c.broken, c.trace.String())
			}
		}
		c.heal()
	})
}

func (c *chaos) number(name string, most int) int { return rapid.IntRange(0, most).Draw(c.t, name) }

func (c *chaos) chance(name string) bool { return rapid.Bool().Draw(c.t, name) }

func (c *chaos) lend(lender, borrower grid.SiteID, processors int64, gang bool) uint64 {
	key := uint64(len(c.leases) + 1)
	c.leases = append(c.leases, loan{lender: lender, borrower: borrower, key: key, processors: processors, gang: gang})
	c.sites[lender].keep(key, borrower, processors)
	return key
}

func (c *chaos) job(home grid.SiteID, processors int64) *grid.Job {
	c.jobs++
	return &grid.Job{ID: grid.JobID{Hi: 1, Lo: c.jobs}, Home: home, Resources: grid.Resources{Processors: processors}, Tasks: processors}
}

// something happens.
func (c *chaos) something() {
	home := c.sites["a"]
	switch c.number("what", 20) {
	case 0, 1:
		l := &c.leases[c.number("lease", len(c.leases)-1)]
		if home.core != nil && !l.given && !l.gang {
			job := c.job("a", 1+int64(c.number("processors", int(l.processors)-1)))
			at := grid.Pilot{Site: l.lender, Key: l.key}
			home.start(grid.Task{ID: grid.TaskID{Job: job.ID, Epoch: 1}, Job: job, Limit: grid.Hour, Pilot: at})
		}
	case 2:
		c.startGang()
	case 3:
		if ids := slices.SortedFunc(maps.Keys(home.jobs), grid.TaskID.Compare); len(ids) > 0 {
			home.kill(ids[c.number("job", len(ids)-1)], "cancelled")
		}
	case 4, 5, 6, 7:
		if x := c.pick(); x != nil {
			switch {
			case x.opening:
				c.connect(x, c.chance("reached"))
			case c.chance("order"):
				c.order(x)
			default:
				c.report(x)
			}
		}
	case 8:
		if x := c.pick(); x != nil {
			c.end(x, c.chance("at lender"))
		}
	case 9, 10, 11:
		c.settle()
	case 12:
		if s := c.site(); s.core != nil && c.chance("soon") {
			s.dies = 1 + c.number("processes", 2)
		} else if s.core != nil {
			s.crash()
			c.note("%s: crashes", s.id)
		} else {
			s.skew = grid.Time(c.number("skew", 2)-1) * 100 * grid.Millisecond // the clock was set
			s.restart()
			c.note("%s: is up again", s.id)
		}
	case 13, 14, 15:
		c.endProcess()
	case 16:
		s := c.site()
		s.dial(c.chance("answers"))
		s.ack()
	case 17:
		s := c.site()
		why := []string{"", "", "no"}
		s.prepared(why[c.number("refused", 2)], "")
		s.gathered(why[c.number("gathered", 2)], c.chance("again"))
		s.finished()
	case 18:
		l := &c.leases[c.number("lease", len(c.leases)-1)]
		c.note("%s: the connection to pilot %d breaks", l.lender, l.key)
		if c.chance("unseen") {
			c.sites[l.lender].cut(l.key)
			return
		}
		die := c.number("die", 3) == 0
		c.sites[l.lender].drop(l.key, die)
		if die {
			c.endLease(l)
		}
	case 19:
		if c.number("really", 3) == 0 {
			c.endLease(&c.leases[c.number("lease", len(c.leases)-1)])
		}
	case 20:
		c.advance(grid.Time(c.number("ms", 5000)) * grid.Millisecond)
	}
}

func (c *chaos) site() *site { return c.all()[c.number("site", len(c.sites)-1)] }

func (c *chaos) pick() *session {
	if len(c.sessions) == 0 {
		return nil
	}
	return c.sessions[c.number("session", len(c.sessions)-1)]
}

// startGang starts a gang at home and on one or two leases of its own.
func (c *chaos) startGang() {
	home := c.sites["a"]
	if home.core == nil || c.sites["b"].core == nil || c.sites["c"].core == nil {
		return
	}
	job := c.job("a", 4)
	id := grid.TaskID{Job: job.ID, Epoch: 1}
	g := &grid.Gang{Task: id, Each: 1}
	if c.chance("home") {
		g.Parts = append(g.Parts, grid.GangPart{Site: "a", Processors: 1 + int64(c.number("own", 2))})
	}
	for _, lender := range []grid.SiteID{"b", "c"} {
		processors := int64(1 + c.number("processors", 1))
		if key := c.lend(lender, "a", processors, true); len(g.Parts) == 0 || c.chance("more") {
			g.Parts = append(g.Parts, grid.GangPart{Site: lender, Processors: processors, Pilot: grid.Pilot{Site: lender, Key: key}})
		}
	}
	home.start(grid.Task{ID: id, Job: job, Limit: grid.Hour, Gang: g})
}

// endProcess lets one of the processes end.
func (c *chaos) endProcess() {
	s := c.site()
	code := int32(c.number("exit code", 1))
	for _, key := range slices.Sorted(maps.Keys(s.pilots)) {
		for _, x := range sorted(s.pilots[key].tasks) {
			if s.pilots[key].tasks[x].running && c.chance("this") {
				c.note("%s: %v exits", s.id, x)
				s.end(key, x, code)
				return
			}
		}
	}
	for _, x := range sorted(s.own) {
		if s.own[x].running && c.chance("this") {
			s.endOwn(x, code)
			return
		}
	}
}

// endLease ends a lease: first at the borrower, some day at the lender.
func (c *chaos) endLease(l *loan) {
	lender, borrower := c.sites[l.lender], c.sites[l.borrower]
	if !l.given {
		if borrower.core == nil {
			return
		}
		c.note("%s: gives lease %d up", l.borrower, l.key)
		l.given = true
		borrower.abandon(l.lender, l.key)
		return
	}
	if !l.over && lender.core != nil {
		c.note("%s: lease %d is over", l.lender, l.key)
		l.over = true
		lender.release(l.key)
	}
}

// heal lets everything come to its end, and checks that nothing is left.
func (c *chaos) heal() {
	for _, s := range c.all() {
		s.dies = 0
		s.restart()
	}
	rest := func() {
		for range 20 {
			c.settle()
			c.advance(5 * grid.Second)
		}
	}
	rest()
	for i := range c.leases { // pilots that died take their leases with them
		if l := &c.leases[i]; !l.over && c.sites[l.lender].pilots[l.key].dead {
			c.endLease(l)
			c.endLease(l)
		}
	}
	for range 60 {
		if len(c.sites["a"].jobs) == 0 {
			break
		}
		for _, s := range c.all() {
			for key, m := range s.pilots {
				for _, x := range sorted(m.tasks) {
					s.end(key, x, 0)
				}
			}
			for _, x := range sorted(s.own) {
				s.endOwn(x, 0)
			}
		}
		rest()
	}
	for _, s := range c.all() {
		for id, j := range s.jobs {
			c.violated("%s waits for %s: %+v", s.id, name(id), j)
		}
		for x := range s.own {
			c.violated("%s has %v", s.id, x)
		}
		if n := len(s.core.user.tasks) + len(s.core.user.links) + len(s.core.gangs.all); n > 0 {
			c.violated("%s has %d tasks, links and gangs", s.id, n)
		}
	}
	for i := range c.leases {
		c.endLease(&c.leases[i])
		c.endLease(&c.leases[i])
	}
	for _, s := range c.all() {
		if !s.core.Idle() || len(s.core.keeper.borrowers) > 0 || len(s.entered) > 0 {
			c.violated("%s has something left: %d pilots, gangs %v", s.id, len(s.core.Keeps()), s.entered)
		}
		if s.core.NextTimer() != grid.Never {
			c.violated("%s wants a tick at %v", s.id, s.core.NextTimer())
		}
	}
	if c.broken != "" {
		c.t.Fatalf("%s\n%s", c.broken, c.trace.String())
	}
}
