package muscle

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// MembersMax bounds the clusters that one site heads.
const MembersMax = 64

// Presence says whether a cluster can take part in a window.
type Presence uint8

// Presences of a member.
const (
	Present    Presence = iota // takes part
	Unheard                    // nothing is known of it yet
	Silent                     // was there, and has not been heard of for long
	Unwilling                  // does not consent to be headed by this site
	Unresolved                 // several sites have the name by which it is named
)

var presenceNames = [...]string{"present", "not heard of yet", "silent", "does not consent", "several sites have this name"}

// String returns the presence in words.
func (p Presence) String() string { return presenceNames[p] }

// Member is a cluster as its head knows it at the end of a window.
type Member struct {
	Site     grid.SiteID // empty if it is only known by name
	Name     string
	Presence Presence

	Processors int64
	grid.Rating
	Weights titan.Weights // the default if they are not valid

	Widest int64     // processors of the widest job that could start now
	Wait   grid.Time // until a job as wide as the cluster could start
	Booked []Booking // jobs of this head that are there
}

// Booking is a job that a cluster has, with instants counted from now.
type Booking struct {
	Processors        int64
	Start, Finish     grid.Time
	Arrival, Deadline grid.Time // of the job; grid.Never if it has no deadline
}

// makespan returns how long the cluster is expected to work on what it has.
func (m *Member) makespan() (longest grid.Time) {
	for _, at := range m.free(m.unit()) {
		longest = max(longest, at)
	}
	return longest
}

// unit returns in how many processors a cluster is counted.
func (m *Member) unit() int64 { return max((m.Processors+unitsMax-1)/unitsMax, 1) }

// has returns the jobs that the cluster was given, in units of processors.
func (m *Member) has(unit int64) []Held {
	has := make([]Held, len(m.Booked))
	for i, b := range m.Booked {
		has[i] = Held{
			Processors: int((min(max(b.Processors, 1), m.Processors) + unit - 1) / unit), Span: min(max(b.Finish-b.Start, 0), spanMax),
			Arrival: min(max(b.Arrival, -spanMax), 0), Deadline: within(b.Deadline),
		}
	}
	return has
}

// hope reports whether a job that the member could take if it took part (ever) may
// wait for it: it is present or may come back, or nothing is known of it yet.
func (m *Member) hope(ever bool) bool {
	switch m.Presence {
	case Present, Silent:
		return ever
	case Unheard, Unresolved:
		return true
	}
	return false
}

// TooWide reports whether a job is wider than every member, present or not. It is
// false as long as nothing is known of one of them.
func TooWide(job *grid.Job, members []Member) bool {
	for i := range members {
		if members[i].hope(members[i].wide(job)) {
			return false
		}
	}
	return true
}

// wide reports whether a job is no wider than the cluster.
func (m *Member) wide(j *grid.Job) bool { return j.Processors <= m.Processors }

// spanMax bounds the run times that a head plans with, so that their sums fit.
const spanMax = 3650 * grid.Day

// within bounds a deadline that counts from now, unless there is none.
func within(deadline grid.Time) grid.Time {
	if deadline == grid.Never {
		return deadline
	}
	return min(max(deadline, -spanMax), spanMax)
}

// span returns how long a job is planned to run at the cluster.
func (m *Member) span(j *grid.Job) grid.Time {
	return min(j.SeenFrom(m.Site).EstimateAt(m.Rating), spanMax)
}

// free returns when each of the cluster's units of so many processors is free, in
// ascending order. Two views are put together, and the later instant counts: what the
// cluster says, which may not have heard of the newest jobs, and what this head has
// given it.
func (m *Member) free(unit int64) []grid.Time {
	n := int((m.Processors + unit - 1) / unit)
	told := make([]grid.Time, n)
	startable := int(min(max(m.Widest, 0), m.Processors) / unit)
	for i := startable; i < n; i++ {
		// One after the other until all are.
		told[i] = min(max(m.Wait, 0), spanMax) / grid.Time(n-startable) * grid.Time(i-startable+1)
	}
	booked := make([]grid.Time, n)
	order := slices.Clone(m.Booked)
	slices.SortStableFunc(order, func(a, b Booking) int { return cmp.Compare(a.Start, b.Start) })
	for _, b := range order {
		k := int(min((max(b.Processors, 0)+unit-1)/unit, int64(n)))
		for i := range k {
			booked[i] = max(booked[i], min(b.Finish, spanMax))
		}
		slices.Sort(booked)
	}
	for i := range booked {
		booked[i] = max(booked[i], told[i])
	}
	return booked
}
