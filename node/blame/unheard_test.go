package blame

import (
	"testing"

	"gridnode/grid"
)

// TestUnheard: what a site says late of an execution that was given up counts once, from that
// site only, and only what it was not told of.
func TestUnheard(t *testing.T) {
	var u Unheard
	losses := uint32(2)
	add := func(site grid.SiteID, epoch uint32) {
		u.Place()
		u.Add(site, epoch, u.Told(losses))
	}
	add("a", 1)
	add("b", 2)
	add("a", 3)
	for i, tt := range []struct {
		site        grid.SiteID
		epoch, says uint32
		want        uint32
	}{
		{"b", 1, 3, 0}, // it was at another site
		{"c", 2, 3, 0},
		{"a", 1, 3, 1},
		{"a", 1, 3, 0}, // told twice
		{"b", 2, 2, 0}, // nothing vanished there
		{"b", 2, 3, 0},
		{"a", 3, 1, 0}, // fewer than it was told of
	} {
		got := u.Hear(tt.site, tt.epoch, tt.says)
		losses += got
		if got != tt.want {
			t.Errorf("%d: %d losses are new, want %d", i, got, tt.want)
		}
		if u = UnheardFromProto(losses, u.Proto()); u.Told(losses) != 2 {
			t.Errorf("%d: the latest site was told of %d losses, want 2", i, u.Told(losses))
		}
	}
	if u.Place(); u.Told(losses) != 3 {
		t.Errorf("the next site is told of %d losses, want 3", u.Told(losses))
	}
}

// TestUnheardIsBounded: only the latest executions are remembered, and none counts without end.
func TestUnheardIsBounded(t *testing.T) {
	var u Unheard
	for epoch := range uint32(unheardMax + 1) {
		u.Add("a", epoch, 0)
	}
	if got := u.Hear("a", 0, 1); got != 0 {
		t.Errorf("the oldest adds %d losses", got)
	}
	for epoch := range uint32(unheardMax) {
		if got := u.Hear("a", epoch+1, 1000); got != lostMax {
			t.Errorf("execution %d adds %d losses, want %d", epoch+1, got, lostMax)
		}
	}
}
