package quota

import (
	"cmp"
	"math/bits"

	"gridnode/grid"
)

// usage is processor time that counts half after a half-life.
type usage struct {
	sum grid.Time // as it counted at the instant; processor time
	at  grid.Time
}

// to returns what counts at an instant. Between two half-lives it falls on a straight line, so
// that whole numbers suffice: 6 % more than by the exponential at most.
func (u usage) to(now, half grid.Time) grid.Time {
	if half <= 0 || now <= u.at {
		return u.sum
	}
	n := (now - u.at) / half
	if n >= 62 {
		return 0
	}
	return grid.Time(mulDiv(uint64(u.sum>>n), uint64(2*half-(now-u.at)%half), uint64(2*half)))
}

// mulDiv returns a*b/c, b at most c.
func mulDiv(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	q, _ := bits.Div64(high, low, c)
	return q
}

// run is an execution on this site's processors.
type run struct {
	processors int64
	start      grid.Time
}

// Owner returns the number of a user, 1 or more; 0: users are not counted.
func (d *Desk) Owner(name string) int32 {
	if d == nil {
		return 0
	}
	u := d.of(name)
	if u.number == 0 {
		d.byNumber = append(d.byNumber, u)
		u.number = int32(len(d.byNumber))
	}
	return u.number
}

// Began counts an execution on this site's own processors since its start.
func (d *Desk) Began(j *grid.Job, start grid.Time) {
	if d == nil || d.runs[j.ID] != (run{}) {
		return
	}
	d.runs[j.ID] = run{j.Processors, start}
	u := d.of(j.User)
	u.runs += j.Processors
	u.starts += grid.Time(j.Processors) * start
}

// Ended counts one as over. What it has used is saved with what it has cost.
func (d *Desk) Ended(now grid.Time, j *grid.Job) {
	if d == nil {
		return
	}
	r, there := d.runs[j.ID]
	if !there {
		return
	}
	delete(d.runs, j.ID)
	u := d.of(j.User)
	u.runs -= r.processors
	u.starts -= grid.Time(r.processors) * r.start
	u.used = usage{u.used.to(now, d.cfg.HalfLife) + grid.Time(r.processors)*max(now-r.start, 0), now}
	u.unsaved = true
}

// Shares reports whether users have shares.
func (d *Desk) Shares() bool { return d != nil && d.cfg.HalfLife > 0 }

// Favours returns how users compare at an instant, by their numbers: who has used least of his
// share lately comes first, what runs included.
func (d *Desk) Favours(now grid.Time) func(a, b int32) int {
	return func(a, b int32) int { return cmp.Compare(d.standing(now, a), d.standing(now, b)) }
}

// standing returns what a user has used lately for each of his shares; nobody has used nothing.
func (d *Desk) standing(now grid.Time, number int32) grid.Time {
	if number == 0 {
		return 0
	}
	u := d.byNumber[number-1]
	return u.lately(now, d.cfg.HalfLife) / grid.Time(d.cfg.Of(u.name).Share)
}

// lately returns the processor time that counts, what runs included.
func (u *user) lately(now, half grid.Time) grid.Time {
	return u.used.to(now, half) + grid.Time(u.runs)*now - u.starts
}
