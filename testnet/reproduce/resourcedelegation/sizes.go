package resourcedelegation

import (
	"gridnode/grid"
	"gridnode/testnet/reproduce"
)

// reconfiguration follows how many processors a site has at its disposal.
type reconfiguration struct {
	own            int64
	since          grid.Time
	size, borrowed int64
	sizes, leased  durations
	weeks          []week
}

// week is what the size was in a week of the log.
type week struct {
	least, most int64
	area        float64 // processor-seconds
}

const weekSpan = 7 * grid.Day

// durations is for how long a number of processors was had, by number.
type durations []grid.Time

func newReconfiguration(own int64) *reconfiguration {
	return &reconfiguration{own: own, size: own}
}

// lease says what the site has borrowed and lent from an instant on.
func (r *reconfiguration) lease(at grid.Time, borrowed, lent int64) {
	r.until(at)
	r.size, r.borrowed = r.own+borrowed-lent, borrowed
}

// until accounts for the time up to an instant.
func (r *reconfiguration) until(at grid.Time) {
	if at <= r.since {
		return
	}
	r.sizes.add(r.size, at-r.since)
	r.leased.add(r.borrowed, at-r.since)
	for r.since < at {
		n := int(r.since / weekSpan)
		for len(r.weeks) <= n {
			r.weeks = append(r.weeks, week{least: r.size, most: r.size})
		}
		w := &r.weeks[n]
		end := min(at, grid.Time(n+1)*weekSpan)
		w.least, w.most = min(w.least, r.size), max(w.most, r.size)
		w.area += float64(r.size) * (end - r.since).Seconds()
		r.since = end
	}
}

func (d *durations) add(processors int64, span grid.Time) {
	for int64(len(*d)) <= processors {
		*d = append(*d, 0)
	}
	(*d)[processors] += span
}

func (d durations) total() (t grid.Time) {
	for _, span := range d {
		t += span
	}
	return t
}

// quantile returns the least number that was not exceeded for at least permille
// thousandths of the time; 0 gives the least that was had, 1000 the greatest.
func (d durations) quantile(permille int64) reproduce.Number {
	total := d.total()
	if total == 0 {
		return reproduce.None
	}
	var sum grid.Time
	for n, span := range d {
		sum += span
		if span > 0 && sum*1000 >= total*grid.Time(permille) {
			return reproduce.Number(n)
		}
	}
	return reproduce.Number(len(d) - 1)
}

// mean returns the mean over time.
func (d durations) mean() reproduce.Number {
	area := 0.0
	for n, span := range d {
		area += float64(n) * span.Seconds()
	}
	return reproduce.Number(area / d.total().Seconds())
}
