package coalloc

import (
	"errors"
	"fmt"
	"testing"

	"gridnode/internal/grid"
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
	if len(r) != 1+ReportMax || r[1].Peer != "s10" || r[1].Latency != 11 || r[1].Age != grid.Second-10 {
		t.Errorf("a report of %d entries begins with %+v", len(r), r[1])
	}
}

// TestLearn: what a peer reports enters the matrix, bounded by what was measured from
// here; what cannot be true is refused.
func TestLearn(t *testing.T) {
	const ms = grid.Millisecond
	p, v, m := NewPings(), viewOf(nil, 1, 1, 1, 1), NewMatrix(4)
	for peer, latency := range map[grid.SiteID]grid.Time{"a": 10 * ms, "b": 12 * ms, "c": 100 * ms} {
		if err := p.Observe(0, peer, 2*latency); err != nil {
			t.Fatal(err)
		}
	}
	taken, bounded, refused := p.Learn(0, "a", []Measured{
		{"b", 3 * ms, 0},            // as it is
		{"c", 1, 0},                 // cannot be: c is 90 ms further from here
		{"d", 7 * ms, 0},            // not measured from here: as it is
		{"a", 1, 0},                 // itself
		{"nobody", 1, 0},            //
		{"b", -5, 0},                //
		{"b", 5, pingAge + 1},       // old
		{"b", LatencyMax + 1, 0},    //
		{"b", 3 * ms, -grid.Second}, // from the future
	}, v, m)
	if taken != 2 || bounded != 1 || refused != 6 {
		t.Errorf("%d taken, %d bounded, %d refused", taken, bounded, refused)
	}
	if m.Latency(0, 1) != 3*ms || m.Latency(1, 0) != 3*ms || m.Latency(0, 2) != 45*ms || m.Latency(0, 3) != 7*ms {
		t.Errorf("the matrix has %v, %v and %v", m.Latency(0, 1), m.Latency(0, 2), m.Latency(0, 3))
	}
	if _, _, refused = p.Learn(0, "stranger", make([]Measured, 3), v, m); refused != 3 {
		t.Errorf("%d entries of a stranger are refused", refused)
	}
}
