package directory

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
)

// TestAudit: what exceeds its bound, is not in its place or is overdue is found.
func TestAudit(t *testing.T) {
	const now = grid.Hour
	one := func(change func(h *holding, e *record)) func(d *Directory, h *holding) {
		return func(d *Directory, h *holding) {
			h.records = copies(h, now, 1)
			d.holder.recorded = 1
			change(h, &h.records[0])
		}
	}
	for _, tt := range []struct {
		name   string
		exceed func(d *Directory, h *holding)
		wrong  bool
	}{
		{"nothing", func(*Directory, *holding) {}, false},
		{"full", func(d *Directory, h *holding) {
			h.records = copies(h, now, crowdFactor*d.holder.cfg.CellMax)
			d.holder.recorded = len(h.records)
		}, false},
		{"a cell has too many", func(d *Directory, h *holding) {
			h.records = copies(h, now, crowdFactor*d.holder.cfg.CellMax+1)
			d.holder.recorded = len(h.records)
		}, true},
		{"the count is wrong", func(d *Directory, _ *holding) { d.holder.recorded++ }, true},
		{"a site has too many", func(d *Directory, _ *holding) { d.holder.perSite = map[grid.SiteID]int32{"a": publisherMax + 1} }, true},
		{"a site's count is wrong", func(d *Directory, _ *holding) { d.holder.perSite = map[grid.SiteID]int32{"a": 1} }, true},
		{"a copy", one(func(*holding, *record) {}), false},
		{"one where it was", one(func(_ *holding, e *record) { e.quote.Price *= 2 }), true},
		{"one of tomorrow", one(func(_ *holding, e *record) { e.quote.Issued = now + grid.Day }), true},
		{"one for too long", one(func(_ *holding, e *record) { e.expires++ }), true},
		{"one before the first that runs out", one(func(h *holding, _ *record) { h.lapse++ }), true},
		{"one of long ago", one(func(h *holding, e *record) {
			e.quote.Issued -= 2 * grid.Day
			e.expires = e.quote.Expires()
			h.lapse = e.expires
		}), true},
		{"out of order", func(d *Directory, h *holding) {
			h.records = append(copies(h, now, 1), copies(h, now, 1)...)
			h.records[1].quote = quoteAt("a", 0, 1, now)
			h.records[1].at = h.records[1].quote.at(h.cell.attribute)
			d.holder.recorded = 2
		}, true},
		{"a cell that is not looked at", func(d *Directory, _ *holding) { d.holder.upkeepAt = grid.Never }, true},
		{"one that was to be", func(d *Directory, h *holding) {
			h.upkeep.next = now - auditLate - 1
			d.holder.upkeepAt = h.upkeep.next
		}, true},
		{"its own quote", func(d *Directory, _ *holding) {
			d.publisher.own = quoteAt("self", 1, 1, now)
			d.publisher.republishAt = d.publisher.own.Expires()
		}, false},
		{"which runs out before it is renewed", func(d *Directory, _ *holding) {
			d.publisher.own = quoteAt("self", 1, 1, now)
			d.publisher.republishAt = d.publisher.own.Expires() + 1
		}, true},
		{"which was to be renewed", func(d *Directory, _ *holding) {
			d.publisher.own = quoteAt("self", 1, 1, now)
			d.publisher.republishAt = now - auditLate - 1
		}, true},
		{"a query that is overdue", func(d *Directory, _ *holding) {
			d.seeker.queries = map[QueryID]*query{1: {deadline: now - auditLate - 1}}
		}, true},
		{"a question", func(d *Directory, _ *holding) {
			d.requests.list, d.requests.open = []request{{purpose: noPurpose + 1, deadline: now}}, 1
		}, false},
		{"that is overdue", func(d *Directory, _ *holding) {
			d.requests.list, d.requests.open = []request{{purpose: noPurpose + 1, deadline: now - auditLate - 1}}, 1
		}, true},
		{"that does not count", func(d *Directory, _ *holding) {
			d.requests.list = []request{{purpose: noPurpose + 1, deadline: now}}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Config{Self: "self"}, rand.New(rand.NewPCG(1, 2)))
			h := d.holder.hold(now, cell{attribute: Price})
			tt.exceed(d, h)
			if err := d.Audit(now); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}

// copies returns so many of quotes of an instant.
func copies(h *holding, now grid.Time, n int) []record {
	list := make([]record, n)
	for i := range list {
		q := quoteAt("a", 1, 1, now)
		list[i] = record{at: q.at(h.cell.attribute), quote: q, expires: q.Expires()}
	}
	h.lapse = list[0].expires
	return list
}
