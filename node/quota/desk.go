package quota

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"gridnode/grid"
)

// Desk counts what the users of a site have, and keeps to their limits. It is deterministic,
// reads no clock and is not safe for concurrent use.
type Desk struct {
	cfg    Config
	bounds func(*grid.Job) grid.Credits // what a job may cost, before it has a price
	users  map[string]*user
	taken  map[grid.JobID]grid.Credits // jobs that were placed, and what they may cost

	byNumber []*user            // by number less one
	runs     map[grid.JobID]run // on this site's own processors
}

// user is what one has and had.
type user struct {
	name       string
	going      int64        // jobs that are placed or run
	processors int64        // of them
	held       grid.Credits // that they may cost
	spent      purse

	number  int32 // 0: none yet
	used    usage
	unsaved bool      // of it something is not stored
	runs    int64     // processors of this site's that run his jobs
	starts  grid.Time // sum of when they began, for each processor; it may overflow, and so does what it is taken from
}

// NewDesk returns the desk of a site; bounds tells what a job may cost.
func NewDesk(cfg Config, bounds func(*grid.Job) grid.Credits) *Desk {
	return &Desk{cfg: cfg, bounds: bounds, users: make(map[string]*user), taken: make(map[grid.JobID]grid.Credits), runs: make(map[grid.JobID]run)}
}

// Configure changes the limits. What is placed already goes on.
func (d *Desk) Configure(cfg Config) { d.cfg = cfg }

// Limits returns those of a user.
func (d *Desk) Limits(user string) Limits { return d.cfg.Of(user) }

// Watches reports whether Full has to be asked about jobs of a user.
func (d *Desk) Watches(user string) bool {
	if d == nil {
		return false
	}
	l := d.cfg.Of(user)
	return l.Places()
}

// cost returns what a job may cost.
func (d *Desk) cost(j *grid.Job) grid.Credits {
	if held, there := d.taken[j.ID]; there {
		return held
	}
	return max(d.bounds(j), 0)
}

func (d *Desk) of(name string) *user {
	u := d.users[name]
	if u == nil {
		u = &user{name: name}
		d.users[name] = u
	}
	return u
}

// Take counts a job that is placed.
func (d *Desk) Take(j *grid.Job) {
	if _, twice := d.taken[j.ID]; twice {
		return
	}
	u, cost := d.of(j.User), max(d.bounds(j), 0)
	d.taken[j.ID] = cost
	u.going++
	u.processors += j.Processors
	u.held += cost
}

// Priced notes what a job that was taken may cost at most, once that is known.
func (d *Desk) Priced(j *grid.Job, most grid.Credits) {
	before, there := d.taken[j.ID]
	if !there {
		return
	}
	d.taken[j.ID] = most
	d.of(j.User).held += most - before
}

// Give counts a job no longer that was taken.
func (d *Desk) Give(j *grid.Job) {
	cost, there := d.taken[j.ID]
	if !there {
		return
	}
	delete(d.taken, j.ID)
	u := d.of(j.User)
	u.going--
	u.processors -= j.Processors
	u.held -= cost
}

// Audit returns who has other jobs taken than are placed, or counts them wrongly; nil: nobody.
func (d *Desk) Audit(placed map[grid.JobID]*grid.Job) error {
	users := make(map[string]user)
	for id, j := range placed {
		cost, there := d.taken[id]
		if !there {
			return fmt.Errorf("job %s is placed, and not counted for %s", id, j.User)
		}
		u := users[j.User]
		u.going, u.processors, u.held = u.going+1, u.processors+j.Processors, u.held+cost
		users[j.User] = u
	}
	if len(d.taken) != len(placed) {
		return fmt.Errorf("%d jobs are placed, and %d count as that", len(placed), len(d.taken))
	}
	for name, u := range d.users {
		if want := users[name]; u.going != want.going || u.processors != want.processors || u.held != want.held {
			return fmt.Errorf("of %s %d jobs are placed, with %d processors and for %v, and %d, %d and %v count",
				name, want.going, want.processors, want.held, u.going, u.processors, u.held)
		}
	}
	return nil
}

// AuditRecords returns of whom what he has spent and used is not stored as it is; nil: of nobody. What an
// execution has used that has ended at no cost is stored later.
func (d *Desk) AuditRecords(stored map[string][]byte) error {
	if d == nil {
		return nil
	}
	for name, u := range d.users {
		if u.unsaved || u.spent.total == 0 && u.used == (usage{}) {
			continue
		}
		r := u.record()
		if was := stored[r.RecordKey()]; !bytes.Equal(was, r.AppendRecord(nil)) {
			return fmt.Errorf("%s has spent %v, and %q is saved of that", name, u.spent.total, was)
		}
	}
	return nil
}

// Spent counts what an execution of a user's has cost, and saves that and what it has used.
func (d *Desk) Spent(now grid.Time, name string, cost grid.Credits, out *grid.Outbox) {
	if d == nil {
		return
	}
	u := d.of(name)
	if cost > 0 {
		u.spent.add(now, cost, d.cfg.Of(name).Spend.Span)
	}
	if cost > 0 || u.unsaved {
		u.unsaved = false
		out.Save(u.record())
	}
}

// Renews returns when a user may spend more than at now although nothing else has happened.
func (d *Desk) Renews(now grid.Time, name string) grid.Time {
	u, span := d.users[name], d.cfg.Of(name).Spend.Span
	if u == nil || span <= 0 {
		return grid.Never
	}
	return u.spent.next(now - span).Add(span)
}

// Use is what a user has and had.
type Use struct {
	User       string
	Running    int64        // jobs that are placed or run
	Processors int64        // of them
	Held       grid.Credits // that they may cost
	Spent      grid.Credits // in the span of the limit; without one in 30 days
	Total      grid.Credits // ever
	Lately     grid.Time    // processor time on this site's own processors, as it counts for shares
	Limits     Limits
}

// Users returns what users have and had, by name: those that are known, and those of whom the
// owner has said something.
func (d *Desk) Users(now grid.Time) []Use {
	names := make([]string, 0, len(d.users)+len(d.cfg.Users))
	for name := range d.users {
		names = append(names, name)
	}
	for name := range d.cfg.Users {
		if d.users[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list := make([]Use, len(names))
	for i, name := range names {
		list[i] = d.Use(now, name)
	}
	return list
}

// Use returns what one user has and had.
func (d *Desk) Use(now grid.Time, name string) Use {
	use := Use{User: name, Limits: d.cfg.Of(name)}
	if u := d.users[name]; u != nil {
		span := use.Limits.Spend.Span
		if span <= 0 {
			span = spanUsual
		}
		use.Running, use.Processors, use.Held = u.going, u.processors, u.held
		use.Spent, use.Total = u.spent.since(now-span), u.spent.total
		use.Lately = u.lately(now, d.cfg.HalfLife)
	}
	return use
}

// Order is in which jobs of one user are placed that wait for his limits.
func Order(a, b *grid.Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), a.ID.Compare(b.ID)) }
