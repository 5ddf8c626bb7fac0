package keepalive

import "gridnode/grid"

// Bounds of a lease.
const (
	// Default is the lease of a job whose owner asks for none: with what follows it, a
	// job of a dead site is placed again within three minutes.
	Default = 2 * grid.Minute
	// Kill is how long a task whose lease has ended may take to stop before it is killed.
	// Grace covers it whatever the lease.
	Kill = grid.LeaseKill

	shares   = 4               // renewals in the span of a lease
	hurry    = 4               // times as often while the last one is not answered: over a bad line of many some get through
	lost     = grid.Second / 2 // a renewal without an answer for so long is not answered
	graceMin = 5 * grid.Second // Kill, and time to die on a machine that is busy
	graceMax = grid.Minute     // what a limit on the run time has
	pause    = 100 * grid.Millisecond
)

// Grace is how long after the end of its lease a task may need to die.
func Grace(lease grid.Time) grid.Time { return min(max(lease/shares, graceMin), graceMax) }

// Drift is how much longer a span may be on the clock of one site than on that of another:
// each may be a thousandth off, twenty times what quartz without NTP is allowed.
func Drift(span grid.Time) grid.Time { return span/500 + 1 }

// Dead returns the instant, on home's clock, from which on no execution can be alive
// whose site was last heard at heard.
func Dead(heard, lease grid.Time) grid.Time {
	span := lease.Add(Grace(lease))
	return heard.Add(span).Add(Drift(span) + 1)
}

// Of returns the lease of a job, given that of its home: 0 for none.
func Of(j *grid.Job, home grid.Time) grid.Time {
	switch {
	case j.Spread || j.Coallocate != nil: // its tasks are held by other means
		return 0
	case j.Terms == nil || j.Terms.Lease == 0:
		return home
	case j.Terms.Lease == grid.NoLease:
		return 0
	}
	return j.Terms.Lease
}
