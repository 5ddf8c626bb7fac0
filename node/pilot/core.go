package pilot

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// Core is a Keeper, a User and Gangs of one site. It reads no clock and does no I/O. Not
// safe for concurrent use.
type Core struct {
	keeper *Keeper
	user   *User
	gangs  *Gangs
}

// New returns a core that has nothing to do.
func New(cfg Config) *Core {
	c := &Core{keeper: NewKeeper(cfg.Self), user: NewUser(), gangs: NewGangs(cfg)}
	c.keeper.permits = cfg.Permits
	return c
}

// Takes reports whether a task that the site starts or kills is for the core. Any other is
// for this site's own processors.
func (c *Core) Takes(t *grid.Task) bool {
	return t.Gang != nil || t.Abandon || t.Job != nil && t.Pilot.Key != 0 || c.gangs.Has(t.ID)
}

// Tasks returns what is begun of a task: itself, or the squads of a gang. Start.Begun
// says which of them have begun.
func Tasks(t *grid.Task) (ids []grid.TaskID) {
	if t.Gang == nil {
		return []grid.TaskID{t.ID}
	}
	for part := range t.Gang.Parts {
		ids = append(ids, grid.SquadTask(t.ID, part))
	}
	return ids
}

// Step applies one input at time now and appends to out what the driver must carry out in
// order. now never decreases. An unknown input is a defect: panic.
func (c *Core) Step(now grid.Time, in grid.Input, out *Outbox) {
	c.feed(now, in, out)
	for i := 0; i < len(out.Locals); i++ {
		c.feed(now, out.Locals[i], out)
	}
	clear(out.Locals)
	out.Locals = out.Locals[:0]
}

// feed gives an input to whom it is for.
func (c *Core) feed(now grid.Time, in grid.Input, out *Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		c.user.Step(now, in, out)
		c.gangs.Step(now, in, out)
	case *Start:
		if in.Task.Gang != nil {
			c.gangs.Step(now, in, out)
		} else {
			c.user.Step(now, in, out)
		}
	case *Kill:
		if _, _, squad := grid.SquadOf(in.Task.ID); squad || in.Task.Pilot.Key != 0 {
			c.user.Step(now, in, out)
		} else {
			c.gangs.Step(now, in, out)
		}
	case *Acknowledge:
		c.user.Step(now, in, out)
		c.gangs.Step(now, in, out)
	case *Keep, *Release, *Up, *Down, *Over, *Unstarted, *Prepared, *Ordered, *Closed:
		c.keeper.Step(now, in, out)
	case *Connected, *Disconnected, *Reported, *Hold, *Go, *Abandon:
		c.user.Step(now, in, out)
	case *Found, *SquadReady, *SquadRefused, *SquadEnded, *Gathered, *Collected:
		c.gangs.Step(now, in, out)
	default:
		panic(fmt.Sprintf("pilot: unknown input %T", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (c *Core) NextTimer() grid.Time { return min(c.user.NextTimer(), c.gangs.NextTimer()) }

// Keeps returns the pilots of other sites, by the number of the grant.
func (c *Core) Keeps() (keys []uint64) {
	for key := range c.keeper.pilots {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Kept returns for whom the pilot of a grant is kept, and until when at the latest; ok is false if it is not.
func (c *Core) Kept(key uint64) (borrower grid.SiteID, until grid.Time, ok bool) {
	p := c.keeper.pilots[key]
	if p == nil {
		return "", 0, false
	}
	return p.borrower.id, p.until, true
}

// Session returns the number of the newest session of a borrower that has leases here, 0 if there
// was none, and whether it is open.
func (c *Core) Session(borrower grid.SiteID) (number uint64, open bool) {
	if b := c.keeper.borrowers[borrower]; b != nil {
		return b.session, b.open
	}
	return 0, false
}

// Idle reports whether nothing of this site runs elsewhere, no gang is its, and it keeps
// no pilot.
func (c *Core) Idle() bool {
	return len(c.user.tasks) == 0 && len(c.gangs.all) == 0 && len(c.keeper.pilots) == 0
}
