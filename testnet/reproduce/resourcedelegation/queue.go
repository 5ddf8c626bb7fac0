package resourcedelegation

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/testnet/reproduce"
)

// queue follows which jobs of a site wait. The paper prints "the average queue length
// Q̄" (table 2) and does not say over what it is averaged.
type queue struct {
	events []queueEvent
	sorted bool
	jobs   [][2]grid.Time // when each was submitted and started
}

// queueEvent is a job that joins the queue or leaves it for its start.
type queueEvent struct {
	at     grid.Time
	leaves bool
}

// add enters a job. One that starts at once has been in the queue, too.
func (q *queue) add(submit, start grid.Time) {
	q.events = append(q.events, queueEvent{submit, false}, queueEvent{start, true})
	q.jobs = append(q.jobs, [2]grid.Time{submit, start})
}

// sort puts the events in order. At one instant jobs come before any is started.
func (q *queue) sort() {
	if q.sorted {
		return
	}
	q.sorted = true
	slices.SortFunc(q.events, func(a, b queueEvent) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		switch {
		case a.leaves == b.leaves:
			return 0
		case a.leaves:
			return 1
		}
		return -1
	})
}

// overEvents returns the mean over all submissions and starts, each with the job that
// comes or goes: a simulator that notes the length of its queue whenever it looks at it
// gets this. It is the reading that is compared: all twelve figures are within 13 %, where
// the mean over time is 28 to 83 % below them.
func (q *queue) overEvents() reproduce.Number {
	q.sort()
	var length, sum int64
	for _, e := range q.events {
		if e.leaves {
			sum += length
			length--
		} else {
			length++
			sum += length
		}
	}
	return reproduce.Ratio(float64(sum), float64(len(q.events)))
}

// overSubmissions returns the mean over submissions, of the jobs that are left once
// those have started that could.
func (q *queue) overSubmissions() reproduce.Number {
	q.sort()
	var length, sum, jobs int64
	for i := 0; i < len(q.events); {
		at, come := q.events[i].at, int64(0)
		for ; i < len(q.events) && q.events[i].at == at; i++ {
			if q.events[i].leaves {
				length--
			} else {
				length++
				come++
			}
		}
		sum += come * length
		jobs += come
	}
	return reproduce.Ratio(float64(sum), float64(jobs))
}

// overtaken returns how often, per job, one that waited saw a later one start before it.
func (q *queue) overtaken() reproduce.Number {
	slices.SortFunc(q.jobs, func(a, b [2]grid.Time) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	starts := make([]grid.Time, len(q.jobs))
	for i := range q.jobs {
		starts[i] = q.jobs[i][1]
	}
	jobs := float64(len(starts))
	return reproduce.Ratio(float64(inversions(starts, make([]grid.Time, len(starts)))), jobs)
}

// inversions sorts a list, and returns how many pairs were in the wrong order.
func inversions(list, space []grid.Time) (n int64) {
	if len(list) < 2 {
		return 0
	}
	half := len(list) / 2
	n = inversions(list[:half], space[:half]) + inversions(list[half:], space[half:])
	copy(space, list)
	left, right := space[:half], space[half:len(list)]
	for i := range list {
		if len(left) > 0 && (len(right) == 0 || left[0] <= right[0]) {
			list[i], left = left[0], left[1:]
		} else {
			list[i], right = right[0], right[1:]
			n += int64(len(left))
		}
	}
	return n
}
