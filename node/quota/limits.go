package quota

import (
	"errors"
	"fmt"

	"gridnode/grid"
)

// Limits are what one user may have. In each number 0 says nothing, and None that there is no
// bound.
type Limits struct {
	Jobs       int64 // that wait or run: over it no more are taken
	Running    int64 // of them that are placed or run: over it they wait
	Processors int64 // of those that are placed or run
	Spend      Spend
	Share      int64 // of this site's processors, beside those of others; 0: one
}

// None lifts a bound for one user that all have.
const None = -1

// Spend is how much may be spent in every span.
type Spend struct {
	Credits grid.Credits
	Span    grid.Time // 0: nothing is said; None: there is no bound
}

// String returns a limit as it is written in config.yaml.
func (s Spend) String() string {
	switch s.Span {
	case 0:
		return ""
	case None:
		return "none"
	}
	return s.Credits.String() + "/" + s.span()
}

// span returns a span in days, if it is so many.
func (s Spend) span() string {
	if s.Span%grid.Day == 0 {
		return fmt.Sprintf("%dd", s.Span/grid.Day)
	}
	return s.Span.String()
}

// Config is what an owner says about users.
type Config struct {
	HalfLife grid.Time // after which use of processors counts half for shares; 0: there are none
	Everyone Limits
	Users    map[string]Limits // by account; what they do not say, Everyone does
}

// Of returns the limits of a user; what is 0 or None has no bound.
func (c *Config) Of(user string) Limits {
	own, all := c.Users[user], c.Everyone
	return Limits{
		Jobs: said(own.Jobs, all.Jobs), Running: said(own.Running, all.Running), Processors: said(own.Processors, all.Processors),
		Spend: spendOf(own.Spend, all.Spend), Share: max(said(own.Share, all.Share), 1),
	}
}

func said(own, all int64) int64 {
	if own != 0 {
		return own
	}
	return all
}

func spendOf(own, all Spend) Spend {
	if own.Span != 0 {
		return own
	}
	return all
}

// Places reports whether any of the limits is asked for before a job is placed.
func (l *Limits) Places() bool { return l.Running > 0 || l.Processors > 0 || l.Spend.Span > 0 }

// ErrLimit is wrapped by refusals of jobs because of a limit of their user; the text says which.
var ErrLimit = errors.New("a limit of this user")

// Cause is why a job of a user waits; empty: for nothing.
type Cause string

// Causes.
const (
	OverRunning    Cause = "user-running"
	OverProcessors Cause = "user-processors"
	OverSpend      Cause = "user-spend"
)

// Refuses returns why a job cannot be taken of a user who has so many already, ErrLimit, if so.
func (d *Desk) Refuses(j *grid.Job, live int64) error {
	if d == nil {
		return nil
	}
	l := d.cfg.Of(j.User)
	if l.Jobs > 0 && live >= l.Jobs {
		return fmt.Errorf("%w: %s has %d jobs here that wait or run, and may have %d (max-jobs)", ErrLimit, j.User, live, l.Jobs)
	}
	if err := d.alone(j, l); err != nil {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return nil
}

// alone returns which limit a job alone is over, nil if it is within all.
func (d *Desk) alone(j *grid.Job, l Limits) error {
	switch cost := d.cost(j); {
	case l.Processors > 0 && j.Processors > l.Processors:
		return fmt.Errorf("it needs %d processors, and %s may have %d at a time (processors)", j.Processors, j.User, l.Processors)
	case l.Spend.Span > 0 && cost > l.Spend.Credits:
		return fmt.Errorf("it may cost %s, and %s may spend %s (spend)", cost, j.User, l.Spend)
	}
	return nil
}

// Full returns why a job may not be placed yet.
func (d *Desk) Full(now grid.Time, j *grid.Job) Cause {
	l := d.cfg.Of(j.User)
	u := d.users[j.User]
	if u == nil {
		u = &user{}
	}
	switch {
	case l.Running > 0 && u.going >= l.Running:
		return OverRunning
	case l.Processors > 0 && u.processors+j.Processors > l.Processors:
		return OverProcessors
	case l.Spend.Span > 0 && u.spent.since(now-l.Spend.Span)+u.held+d.cost(j) > l.Spend.Credits:
		return OverSpend
	}
	return ""
}

// Never reports whether a job alone is over a limit of its user: it waits until that is
// another one, and keeps nobody else from going.
func (d *Desk) Never(j *grid.Job) bool { return d.alone(j, d.cfg.Of(j.User)) != nil }

// Why says a cause for people.
func (d *Desk) Why(now grid.Time, j *grid.Job, cause Cause) string {
	l, u := d.cfg.Of(j.User), d.users[j.User]
	if cause != "" && d.Never(j) {
		return d.alone(j, l).Error() + ": it goes only under other limits or at another price; 'gridnode cancel' takes it back"
	}
	if u == nil {
		u = &user{}
	}
	switch cause {
	case OverRunning:
		return fmt.Sprintf("%s has %d jobs that are placed or run, and may have %d", j.User, u.going, l.Running)
	case OverProcessors:
		return fmt.Sprintf("%s has %d processors, this job needs %d, and %d at a time are allowed", j.User, u.processors, j.Processors, l.Processors)
	case OverSpend:
		text := fmt.Sprintf("%s has spent %s in the last %s", j.User, u.spent.since(now-l.Spend.Span), l.Spend.span())
		if u.held > 0 {
			text += fmt.Sprintf(", what runs may cost %s", u.held)
		}
		return text + fmt.Sprintf(", this job %s, and %s are allowed", d.cost(j), l.Spend.Credits)
	}
	return ""
}
