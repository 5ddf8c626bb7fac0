package quota

import (
	"encoding/json"
	"fmt"
	"strings"

	"gridnode/grid"
)

// Prefix begins the keys of what users have spent.
const Prefix = "quota/"

// spanUsual is over what is shown of the spending of users who have no limit.
const spanUsual = 30 * grid.Day

// A purse has few slices for a span. What is spent within a 32nd of it is one slice, which
// counts until the last of it is a span old: so never more is spent in a span than allowed,
// and the exactness of when the rest comes back is a 32nd.
const (
	slicesOfSpan = 32
	slicesMax    = 64
)

// grainUsual is the slice of users who have no limit: it is only shown, and stored with the
// end of every job.
const grainUsual = spanUsual / 8

// purse is what a user has spent, oldest first.
type purse struct {
	slices []slice
	total  grid.Credits
}

// slice is what was spent between two instants.
type slice struct {
	First   grid.Time    `json:"first"`
	Last    grid.Time    `json:"last"`
	Credits grid.Credits `json:"credits"`
}

// add counts what was spent at an instant; span is that of the limit, 0 or less: there is none.
func (p *purse) add(now grid.Time, cost grid.Credits, span grid.Time) {
	p.total += cost
	grain := span / slicesOfSpan
	if span <= 0 {
		grain = grainUsual
	}
	n := 0
	for n < len(p.slices) && p.slices[n].Last <= now-max(span, spanUsual) {
		n++
	}
	p.slices = append([]slice(nil), p.slices[n:]...)
	for i := range p.slices { // a clock was set back: what lies ahead was spent by now
		x := &p.slices[i]
		x.First, x.Last = min(x.First, now), min(x.Last, now)
	}
	if last := len(p.slices) - 1; last >= 0 && now-p.slices[last].First <= grain {
		p.slices[last].Last = now
		p.slices[last].Credits += cost
		return
	}
	p.slices = append(p.slices, slice{now, now, cost})
	if len(p.slices) > slicesMax { // the two oldest count for as long as the younger one
		p.slices[1].First = p.slices[0].First
		p.slices[1].Credits += p.slices[0].Credits
		p.slices = p.slices[1:]
	}
}

// since returns what was spent after an instant.
func (p *purse) since(at grid.Time) (sum grid.Credits) {
	for i := range p.slices {
		if p.slices[i].Last > at {
			sum += p.slices[i].Credits
		}
	}
	return sum
}

// next returns the end of the first slice that ends after an instant, Never if there is none.
func (p *purse) next(at grid.Time) grid.Time {
	for i := range p.slices {
		if p.slices[i].Last > at {
			return p.slices[i].Last
		}
	}
	return grid.Never
}

// record is a purse as it is stored.
type record struct {
	User string
	purse
	used usage
}

// record returns what is stored of a user.
func (u *user) record() *record { return &record{User: u.name, purse: u.spent, used: u.used} }

// stored is its JSON: instants in microseconds, money in millionths of a credit.
type stored struct {
	Total  grid.Credits `json:"total"`
	Slices []slice      `json:"slices,omitempty"`
	Used   grid.Time    `json:"used,omitempty"` // as it counted at UsedAt
	UsedAt grid.Time    `json:"usedAt,omitempty"`
}

// RecordKey implements grid.Record.
func (r *record) RecordKey() string { return Prefix + r.User }

// AppendRecord implements grid.Record.
func (r *record) AppendRecord(dst []byte) []byte {
	text, err := json.Marshal(stored{r.total, r.slices, r.used.sum, r.used.at})
	if err != nil {
		panic(fmt.Sprintf("quota: what %s has spent does not encode: %v", r.User, err))
	}
	return append(dst, text...)
}

// Recover takes up what was stored.
func (d *Desk) Recover(key string, value []byte) error {
	var s stored
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	if len(s.Slices) > slicesMax {
		return fmt.Errorf("%d slices, at most %d", len(s.Slices), slicesMax)
	}
	u := d.of(strings.TrimPrefix(key, Prefix))
	u.spent, u.used = purse{s.Slices, s.Total}, usage{max(s.Used, 0), s.UsedAt}
	return nil
}
