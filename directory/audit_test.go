package directory

import (
	"math/rand/v2"
	"testing"

	"gridnode/grid"
)

// TestAudit: what exceeds its bound is found.
func TestAudit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		exceed func(k *holder, h *holding)
		wrong  bool
	}{
		{"nothing", func(*holder, *holding) {}, false},
		{"full", func(k *holder, h *holding) {
			h.records = make([]record, crowdFactor*k.cfg.CellMax)
			k.recorded = len(h.records)
		}, false},
		{"a cell has too many", func(k *holder, h *holding) {
			h.records = make([]record, crowdFactor*k.cfg.CellMax+1)
			k.recorded = len(h.records)
		}, true},
		{"the count is wrong", func(k *holder, _ *holding) { k.recorded++ }, true},
		{"a site has too many", func(k *holder, _ *holding) { k.perSite = map[grid.SiteID]int32{"a": publisherMax + 1} }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Config{Self: "self"}, rand.New(rand.NewPCG(1, 2)))
			h := d.holder.hold(0, cell{attribute: Price})
			tt.exceed(&d.holder, h)
			if err := d.Audit(); (err != nil) != tt.wrong {
				t.Errorf("%v", err)
			}
		})
	}
}
