package coalloc

import (
	"errors"
	"fmt"
	"testing"

	"gridnode/grid"
)

func TestPings(t *testing.T) {
	const ms = grid.Millisecond
	p := NewPings()
	observe := func(now grid.Time, roundTrip grid.Time) grid.Time {
		t.Helper()
		if err := p.Observe(now, "a", roundTrip); err != nil {
			t.Fatal(err)
		}
		latency, ok := p.Latency(now, "a")
		if !ok {
			t.Fatal("what was just measured is not known")
		}
		return latency
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
	if _, ok := p.Latency(203*grid.Second+pingAge, "a"); ok {
		t.Error("an old measurement is believed")
	}
	if got := observe(2*grid.Hour, 2*ms); got != ms {
		t.Errorf("after a long silence it is %v, want the new measurement alone", got)
	}
	for _, bad := range []grid.Time{-1, 2*LatencyMax + 1} {
		if err := p.Observe(0, "b", bad); !errors.Is(err, ErrAbsurd) {
			t.Errorf("round trip of %v: %v", bad, err)
		}
	}
	if p.Forget("a"); len(p.peers) != 0 {
		t.Error("who has left is still known")
	}
}

// TestPingsAreBounded: the peer measured longest ago makes room, reports have a limit.
func TestPingsAreBounded(t *testing.T) {
	p := NewPings()
	for i := range PeersMax + 10 {
		if err := p.Observe(grid.Time(i), grid.SiteID(fmt.Sprint("s", i)), grid.Time(2*(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := p.Latency(0, "s9"); ok || len(p.peers) != PeersMax {
		t.Errorf("%d peers are kept", len(p.peers))
	}
	r := p.Report(grid.Second, []Measured{{Peer: "first"}})
	if len(r) != 1+ReportMax || r[1].Peer != "s10" || r[1].Latency != 11 {
		t.Errorf("a report of %d entries begins with %+v", len(r), r[1])
	}
}
