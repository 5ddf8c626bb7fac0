package allowance

import (
	"fmt"
	"testing"
	"time"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestWhoGoesOnIsBanned(t *testing.T) {
	for c := range Classes {
		m, now := NewMeters(&Table), start
		line := Table[c]
		for range int(line.Burst) {
			if v := m.Draw(now, "p", c, 1, 1); v != (Verdict{}) {
				t.Fatalf("%s: %+v within the burst", c, v)
			}
		}
		banned := time.Duration(-1)
		for now.Sub(start) < time.Minute {
			v := m.Draw(now, "p", c, 1, 1)
			if v.Ban != "" {
				banned = now.Sub(start)
				break
			}
			now = now.Add(min(v.Wait, 100*time.Millisecond)) // it does not wait for its tokens
		}
		if banned < Patience-2*time.Second || banned > Patience+2*time.Second {
			t.Errorf("%s: banned after %v above the allowance, want after %v", c, banned, Patience)
		}
	}
}

func TestHonestRateIsNeverHeld(t *testing.T) {
	for c := range Classes {
		m, now := NewMeters(&Table), start
		pace := Table[c].Pace(now)
		for range 100_000 {
			now = now.Add(pace.Draw(now, 1))
			if v := m.Draw(now, "p", c, 1, 1); v != (Verdict{}) {
				t.Fatalf("%s: a sender that keeps pace gets %+v", c, v)
			}
		}
	}
}

// TestRestSavesOneBurst: however long nobody asks, a burst may follow and no more.
func TestRestSavesOneBurst(t *testing.T) {
	b := NewBucket(start, 10, 20)
	for _, now := range []time.Time{start, start.Add(24 * time.Hour), start.Add(48 * time.Hour)} {
		for n := range 20 {
			if !b.Try(now, 1) {
				t.Fatalf("after %v: %d of a burst", now.Sub(start), n)
			}
		}
		if b.Try(now, 1) || b.Full(now) {
			t.Errorf("after %v: more than a burst", now.Sub(start))
		}
	}
}

// TestShortExcessIsForgiven: what was under way when a connection stood still comes at
// once, now and then.
func TestShortExcessIsForgiven(t *testing.T) {
	m, now := NewMeters(&Table), start
	for round := range 20 {
		for range int(Table[Lease].Burst + emptyRate*Table[Lease].Rate) {
			v := m.Draw(now, "p", Lease, 1, 1)
			if v.Ban != "" {
				t.Fatalf("banned in round %d", round)
			}
			now = now.Add(v.Wait)
		}
		now = now.Add(10 * time.Second)
	}
}

func TestManyStreamsCountOnce(t *testing.T) {
	m, now := NewMeters(&Table), start
	m.Draw(now, "p", Market, Table[Market].Burst, 1)
	for range 16 { // each waits for the same tokens
		if v := m.Draw(now, "p", Market, 100, 1); v.Ban != "" {
			t.Fatal("banned for what is one wait")
		}
	}
}

func TestSlowPeers(t *testing.T) {
	m, now := NewMeters(&Table), start
	for i := range 10 * SlowMax { // all streams of a connection that broke
		if why := m.Slow(now.Add(time.Duration(i)*time.Millisecond), "broken"); why != "" {
			t.Fatalf("a connection that broke once: %s", why)
		}
	}
	why := ""
	for i := range SlowMax {
		if why != "" {
			t.Fatalf("banned at the %d. time", i)
		}
		now = now.Add(10 * time.Second)
		why = m.Slow(now, "slow")
	}
	if why == "" {
		t.Errorf("not banned after %d times", SlowMax)
	}
	for range 10 * SlowMax { // so seldom that none is of the same span as the first of so many
		now = now.Add(SlowSpan/(SlowMax-1) + time.Second)
		if why := m.Slow(now, "seldom"); why != "" {
			t.Fatalf("slow now and then: %s", why)
		}
	}
}

func TestMetersAreBounded(t *testing.T) {
	m, now := NewMeters(&Table), start
	for i := range 2 * metersMax {
		m.Draw(now, fmt.Sprint(i), Market, 1, 1)
	}
	if len(m.all) > metersMax {
		t.Errorf("%d peers are remembered", len(m.all))
	}
	if v := m.Draw(now, "one more", Market, 1, 1); v.Wait == 0 {
		t.Error("one that cannot be remembered is not held back")
	}
	if v := m.Draw(now.Add(time.Minute), "one more", Market, 1, 1); v.Wait != 0 {
		t.Error("held back although the others may be forgotten")
	}
}

func TestBansGrowAndAreForgotten(t *testing.T) {
	b, now := NewBans(), start
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		ban, _ := b.Peer(now, "p", "", "flood")
		if got := ban.Until.Sub(now); got != want*time.Minute || ban.Times != i+1 {
			t.Fatalf("ban %d lasts %v, times %d; want %d min", i, got, ban.Times, want)
		}
		if !b.Bars(ban.Until.Add(-1), "p") || b.Bars(ban.Until, "p") {
			t.Error("it bars at the wrong times")
		}
		again, _ := b.Peer(now.Add(time.Second), "p", "", "still")
		if again.Until != ban.Until {
			t.Error("a ban under way was made longer")
		}
		now = ban.Until
	}
	ban, _ := b.Peer(now.Add(5*time.Hour), "p", "", "flood")
	if got := ban.Times; got != 4 {
		t.Errorf("after 5 hours it is ban number %d, want 4 of 8-5+1", got)
	}
	if ban, _ := b.Peer(ban.Until.Add(9*time.Hour), "p", "", "flood"); ban.Times != 1 {
		t.Errorf("after 9 hours it is ban number %d", ban.Times)
	}
}

func TestAddressOfManyBannedPeersIsBanned(t *testing.T) {
	b, now := NewBans(), start
	for i := range addressPeers {
		b.Peer(now, "same", "192.0.2.1", "flood")
		if _, also := b.Peer(now, fmt.Sprint(i), "192.0.2.2", "flood"); (also != "") != (i == addressPeers-1) {
			t.Fatalf("after %d peers the address is banned: %q", i+1, also)
		}
	}
	if b.BarsAddress(now, "192.0.2.1") || !b.BarsAddress(now, "192.0.2.2") {
		t.Error("the wrong address is banned")
	}
	for range 20 {
		now = now.Add(addressMost)
		if ban := b.Address(now, "192.0.2.2", "more"); ban.Until.Sub(now) > addressMost {
			t.Fatalf("an address is banned for %v", ban.Until.Sub(now))
		}
	}
	if !b.Lift("192.0.2.2") || b.BarsAddress(now, "192.0.2.2") {
		t.Error("the ban of an address was not lifted")
	}
	if b.Lift("192.0.2.2") || b.Lift("nobody") {
		t.Error("lifted what is no ban")
	}
}

func TestBansAreBounded(t *testing.T) {
	b, now := NewBans(), start
	for i := range bansMax + 100 {
		b.Peer(now.Add(time.Duration(i)), fmt.Sprint("p", i), fmt.Sprint("a", i), "flood")
	}
	if len(b.peers) > bansMax || len(b.addresses) > bansAddressMax {
		t.Errorf("%d peers and %d addresses", len(b.peers), len(b.addresses))
	}
	if list := b.List(now.Add(time.Second)); len(list) != bansMax || list[len(list)-1].Peer != fmt.Sprint("p", bansMax+99) {
		t.Errorf("%d bans are listed", len(list))
	}
}

// TestBanThatEndsFirstIsKept: who is banned again takes nobody's room, its own either: bans are as many as may
// be, and it is known for how long to ban it.
func TestBanThatEndsFirstIsKept(t *testing.T) {
	b, now := NewBans(), start
	first, _ := b.Peer(now, "again", "192.0.2.1", "flood")
	for i := range bansMax - 1 {
		b.Peer(now.Add(time.Second), fmt.Sprint("p", i), "", "flood")
	}
	for i := range bansAddressMax - 1 {
		b.Address(now.Add(time.Second), fmt.Sprint("a", i), "flood")
	}
	ban, _ := b.Peer(first.Until, "again", "192.0.2.1", "flood")
	if span := ban.Until.Sub(first.Until); ban.Times != 2 || span != 2*banFirst {
		t.Errorf("the second ban lasts %v and is number %d", span, ban.Times)
	}
	if len(b.peers) != bansMax || len(b.addresses) != bansAddressMax {
		t.Errorf("%d peers and %d addresses, want %d and %d", len(b.peers), len(b.addresses), bansMax, bansAddressMax)
	}
}

// TestLiftedWithItsAddress: what was noted of the address of a peer goes with its ban, and the address with it.
func TestLiftedWithItsAddress(t *testing.T) {
	b, now := NewBans(), start
	for i := range addressPeers {
		b.Peer(now, fmt.Sprint(i), "192.0.2.2", "flood")
	}
	if !b.BarsAddress(now, "192.0.2.2") || !b.Lift("0") || b.Bars(now, "0") || b.BarsAddress(now, "192.0.2.2") {
		t.Error("the address stays banned when the ban of a peer of it is lifted")
	}
}

// TestManyPeersForgiveNobody: those that are remembered as they were above their allowance are not forgotten for others.
func TestManyPeersForgiveNobody(t *testing.T) {
	m, now := NewMeters(&Table), start
	line := Table[Other]
	m.Draw(now, "bad", Other, line.Burst+line.Rate, 1)
	for i := range metersMax + 10 {
		m.Draw(now.Add(2*sweepPause), fmt.Sprint("p", i), Market, 0, 0)
	}
	if u := m.Usage("bad"); u.Held == 0 {
		t.Error("a peer is forgotten that was above its allowance a moment ago")
	}
}
