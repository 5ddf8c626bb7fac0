package testnet

import (
	"fmt"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// A tally says what had been counted when it was made, of the sites of every lane.
func TestTally(t *testing.T) {
	n, err := New(Config{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for s := range 200 {
		if _, err := n.Add(Member{ID: grid.SiteID(fmt.Sprint("s", s)), New: func(int) (Site, error) { return &relaySite{}, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	const kind = wire.KademliaFind
	send := func(s int) { n.laneOf(int32(s)).counts.sent(kind, n.inLane(int32(s))) }
	for s := 0; s < n.Len(); s += 3 {
		send(s)
	}
	tally := n.Tally()
	for s := range n.Len() {
		send(s)
	}
	for s := range n.Len() {
		want := int64(0)
		if s%3 == 0 {
			want = 1
		}
		if got, now := tally(s).SentOf(kind).Messages, n.Counter(s).SentOf(kind).Messages; got != want || now != want+1 {
			t.Errorf("site %d had sent %d messages and has %d, want %d and %d", s, got, now, want, want+1)
		}
	}
}
