package coalloc

import (
	"errors"
	"testing"

	"gridnode/grid"
)

func TestPing(t *testing.T) {
	const ms = grid.Millisecond
	var p ping
	observe := func(now grid.Time, roundTrip grid.Time) grid.Time {
		t.Helper()
		if err := p.observe(now, roundTrip); err != nil {
			t.Fatal(err)
		}
		if !p.known(now) {
			t.Fatal("what was just measured is not known")
		}
		return p.latency
	}
	if got := observe(0, 20*ms); got != 10*ms {
		t.Errorf("first latency %v, want half the round trip", got)
	}
	if got := observe(grid.Second, 36*ms); got != 11*ms {
		t.Errorf("smoothed %v, want an eighth of the way from 10 to 18 ms", got)
	}
	if got := observe(2*grid.Second, 20*grid.Second); got > 11*ms+11*ms*7/8+1 {
		t.Errorf("one outlier of 10 s makes it %v", got)
	}
	var got grid.Time
	for i := range 200 {
		got = observe(grid.Time(3+i)*grid.Second, 20*ms)
	}
	if got != 10*ms {
		t.Errorf("after 200 measurements of 10 ms it is %v", got)
	}
	if p.known(203*grid.Second + pingAge) {
		t.Error("an old measurement is believed")
	}
	if got := observe(2*grid.Hour, 2*ms); got != ms {
		t.Errorf("after a long silence it is %v, want the new measurement alone", got)
	}
	for _, bad := range []grid.Time{-1, 2*LatencyMax + 1} {
		if err := new(ping).observe(0, bad); !errors.Is(err, ErrAbsurd) {
			t.Errorf("round trip of %v: %v", bad, err)
		}
	}
}
