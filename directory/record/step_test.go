package record

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

// lone is the registry of "me", of which a test says what others say.
type lone struct {
	*Registry
	t *testing.T
}

func newLone(t *testing.T) lone {
	t.Helper()
	g, err := New(Config{Self: "me"}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return lone{g, t}
}

// want gives the registry an input, of a site if it is a message, and fails unless that has
// it send what is wanted.
func (l lone) want(now grid.Time, from grid.SiteID, in any, want ...string) {
	l.t.Helper()
	if m, ok := in.(grid.Message); ok {
		in = &grid.Delivery{From: from, Message: m}
	}
	var out grid.Outbox
	l.Step(now, in, &out)
	if err := Audit(now, l.Registry); err != nil {
		l.t.Error(err)
	}
	var did []string
	for _, s := range out.Sends {
		did = append(did, string(s.To)+": "+describe(s.Message))
	}
	for _, a := range out.Answers {
		did = append(did, fmt.Sprintf("%d: %v", a.Token, a.Value.(*Found).sites()))
	}
	if !slices.Equal(did, want) {
		l.t.Errorf("at %v after %T of %q: %q, want %q", now, in, from, did, want)
	}
}

// names returns n sites.
func names(prefix string, n int) (sites []grid.SiteID) {
	for i := range n {
		sites = append(sites, grid.SiteID(fmt.Sprintf("%s%02d", prefix, i)))
	}
	return sites
}

func recordOf(site, name string, sequence uint64, issued grid.Time) *Record {
	return &Record{Site: grid.SiteID(site), Offer: Offer{Name: name}, Sequence: sequence, Issued: issued, Lifetime: LifetimeDefault}
}

// TestBounds: what is at a bound is taken, and what is beyond is not.
func TestBounds(t *testing.T) {
	for _, cfg := range []Config{
		{Lifetime: 10*grid.Minute - 1}, {Lifetime: lifetimeMax + 1}, {Replicas: -1}, {Replicas: replicasMax + 1}, {Timeout: -1}, {Timeout: grid.Minute + 1},
	} {
		if g, err := New(cfg, nil); err == nil || g != nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	for _, cfg := range []Config{
		{}, {Lifetime: 10 * grid.Minute}, {Lifetime: lifetimeMax}, {Replicas: 1}, {Replicas: replicasMax}, {Timeout: 1}, {Timeout: grid.Minute},
	} {
		if _, err := New(cfg, nil); err != nil {
			t.Error(err)
		}
	}
	a := newSigner(t, 0)
	for name, change := range map[string]func(*Record){
		"name":      func(r *Record) { r.Name = strings.Repeat("x", NameMax) },
		"authority": func(r *Record) { r.Authority = strings.Repeat("x", NameMax) },
		"nothing":   func(r *Record) { r.Offer, r.Issued, r.Lifetime, r.Sequence = Offer{}, 0, 1, 1 },
		"issued":    func(r *Record) { r.Issued = grid.SpanMax },
		"lifetime":  func(r *Record) { r.Lifetime = lifetimeMax },
		"resources": func(r *Record) { r.Processors, r.Memory = processorsMax, memoryMax },
		"rating":    func(r *Record) { r.Speed, r.Bandwidth = grid.RatingMax, grid.RatingMax },
		"services":  func(r *Record) { r.Services = unknown - 1 },
		"address":   func(r *Record) { r.Addresses = []string{"x", strings.Repeat("x", addressMax)} },
		"addresses": func(r *Record) { r.Addresses = slices.Repeat([]string{"x"}, addressesMax) },
	} {
		if r, err := Open(a.record(t, change).Sealed); err != nil || r == nil {
			t.Errorf("the largest %s: %v", name, err)
		}
	}
	sealed := a.record(t, nil).Sealed
	for _, size := range []int{sealedMax, sealedMax + 1} {
		padded := binary.AppendUvarint(slices.Clone(sealed), 15<<3|2) // a field that nobody knows
		padded = binary.AppendUvarint(padded, uint64(size-len(padded)-2))
		if _, err := Open(append(padded, make([]byte, size-len(padded))...)); (err == nil) != (size <= sealedMax) {
			t.Errorf("signed form of %d bytes: %v", size, err)
		}
	}
	for name, change := range map[string]func(*Offer){
		"processors": func(o *Offer) { o.Processors = -1 }, "memory": func(o *Offer) { o.Memory = memoryMax + 1 }, "speed": func(o *Offer) { o.Speed = -1 },
		"bandwidth below": func(o *Offer) { o.Bandwidth = -1 }, "bandwidth above": func(o *Offer) { o.Bandwidth = grid.RatingMax + 1 },
		"services": func(o *Offer) { o.Services = unknown }, "authority": func(o *Offer) { o.Authority = "a\nb" }, "address": func(o *Offer) { o.Addresses = []string{"a\nb"} },
	} {
		var o Offer
		if change(&o); o.Check() == nil {
			t.Errorf("%s: %+v was taken", name, o)
		}
	}
	if err := (&Record{Site: "s", Sequence: 1, Issued: grid.SpanMax + 1, Lifetime: 1}).Check(); err == nil {
		t.Error("a record from beyond all time was taken")
	}
	addresses := append([]string{"", "a\nb", strings.Repeat("x", addressMax+1), strings.Repeat("x", addressMax)}, slices.Repeat([]string{"y"}, addressesMax)...)
	if got := Bounded(addresses); !slices.Equal(got, addresses[3:3+addressesMax]) {
		t.Errorf("of %q a record may hold %q", addresses, got)
	}
}

// TestHolding: a holder takes what is newer, says what it has, and forgets what has expired.
func TestHolding(t *testing.T) {
	l := newLone(t)
	enter := func(now grid.Time, r *Record, want string) {
		t.Helper()
		l.want(now, r.Site, &Enter{r}, string(r.Site)+": "+want)
	}
	rejected := func(want int64) {
		t.Helper()
		if l.Rejected != want {
			t.Errorf("%d were rejected, want %d", l.Rejected, want)
		}
	}
	enter(1, recordOf("a", "delft", 5, 0), "entered taken 5")
	if want := 1 + LifetimeDefault/8; l.NextTimer() != want {
		t.Errorf("it looks for what has expired at %v, want %v", l.NextTimer(), want)
	}
	rejected(0)
	enter(1, recordOf("a", "delft", 5, 0), "entered taken 5") // again
	enter(1, recordOf("a", "delft", 4, 0), "entered outdated 5")
	rejected(1)
	enter(1, recordOf("b", "", 1, 2+skewMax), "entered void 0")
	rejected(2)
	enter(1, recordOf("b", "delft", 1, 1+skewMax), "entered taken 1 a")
	l.want(1, "x", &Enter{recordOf("a", "delft", 9, 0)})
	rejected(3)
	enter(2, recordOf("leiden", "leiden", 1, 2), "entered taken 1")
	l.want(2, "x", &Inquire{1, "delft"}, `x: inform a "delft"  #5; b "delft"  #1`)
	l.want(2, "x", &Inquire{1, "leiden"}, `x: inform leiden "leiden"  #1`)
	enter(3, recordOf("b", "leiden", 2, 3), "entered taken 2 leiden")
	l.want(3, "x", &Inquire{1, "delft"}, `x: inform a "delft"  #5`)

	// What has expired is told to nobody even before it is looked for, and may be older than what comes.
	l.want(LifetimeDefault-1, "x", &Inquire{1, "a"}, `x: inform a "delft"  #5`)
	l.want(LifetimeDefault, "x", &Inquire{1, "a"}, "x: inform")
	l.want(LifetimeDefault, "x", &Inquire{1, "delft"}, "x: inform")
	enter(LifetimeDefault, recordOf("a", "delft", 2, LifetimeDefault-1), "entered taken 2")
	l.want(LifetimeDefault+1, "", grid.Tick{})
	if len(l.holder.held) != 3 {
		t.Errorf("%d records are held, want 3", len(l.holder.held))
	}
	if now, want := LifetimeDefault+1, LifetimeDefault+1+LifetimeDefault/8; l.NextTimer() != want {
		t.Errorf("at %v it looks again at %v, want %v", now, l.NextTimer(), want)
	}
	l.want(3*LifetimeDefault, "", grid.Tick{})
	if l.NextTimer() != grid.Never || len(l.holder.held)+len(l.holder.claims) > 0 {
		t.Errorf("of %d records and %d names it looks again at %v", len(l.holder.held), len(l.holder.claims), l.NextTimer())
	}
}

// TestPublishing: the place of a holder that does not take the record, or does not answer, is
// another one's; once there is none left others are looked for, but not at once again.
func TestPublishing(t *testing.T) {
	l := newLone(t)
	var out grid.Outbox
	l.Set(0, Offer{}, &out)
	me, sites := key("", "me"), names("s", 6)
	l.want(1, "", &grid.Closest{Key: me, Peers: sites}, `s00: enter me ""  #1`, `s01: enter me ""  #1`, `s02: enter me ""  #1`, `s03: enter me ""  #1`)
	l.want(1, "", &grid.Closest{Key: me, Peers: names("t", 6)}) // not asked for
	own := l.publisher.own
	if own.Sequence != 1 {
		t.Fatalf("sequence %d", own.Sequence)
	}
	l.want(2, "x", &Entered{Sequence: 1, Refusal: Full}) // nobody asked that one
	l.want(2, "s00", &Entered{Sequence: 1, Claims: []grid.SiteID{"me", "q", "p"}})
	if !slices.Equal(l.Rivals(), []grid.SiteID{"p", "q"}) {
		t.Errorf("rivals are %v", l.Rivals())
	}
	l.want(2, "s00", &Entered{Sequence: 1, Refusal: Full}) // has answered
	l.want(2, "s01", &Entered{Sequence: 0})                // the one before
	l.want(2, "s02", &Entered{Refusal: Full})
	l.want(2, "", grid.Tick{}, `s04: enter me ""  #1`)
	timeout := 1 + l.cfg.Timeout
	l.want(timeout-1, "", grid.Tick{})
	l.want(timeout, "", grid.Tick{}, `s01: enter me ""  #1`, `s03: enter me ""  #1`)
	l.want(timeout, "s03", &Entered{Sequence: 1})
	l.want(timeout, "s04", &Entered{Sequence: 1})
	l.want(2*timeout-1, "", grid.Tick{}, `s05: enter me ""  #1`) // s01 was sent it twice
	now := 2 * timeout
	at := &l.publisher.places[0]
	if want := []grid.SiteID{"s00", "s05", "s04", "s03"}; !slices.Equal(at.holders, want) {
		t.Errorf("holders are %v, want %v", at.holders, want)
	}
	l.want(now, "s05", &Entered{Refusal: Full}) // nobody is left for its place
	if want := lookPause; at.look != want {
		t.Errorf("it looks for others at %v, want %v", at.look, want)
	}
	l.want(lookPause, "", grid.Tick{})
	if !l.Asked(me) || at.look != 2*lookPause {
		t.Errorf("it waits until %v, want %v", at.look, 2*lookPause)
	}
	l.want(lookPause, "s00", &Entered{Sequence: 1})
	l.want(lookPause, "", &grid.Undelivered{To: "s00", Message: &Enter{own}}) // lost while it looks
	if at.look != 2*lookPause {
		t.Errorf("it waits until %v, want %v", at.look, 2*lookPause)
	}
	// Those who failed are left out once.
	l.want(lookPause, "", &grid.Closest{Key: me, Peers: sites})
	if want := []grid.SiteID{"s03", "s04"}; !slices.Equal(at.holders, want) || len(at.failed) != 0 {
		t.Errorf("holders are %v, want %v; failed %v", at.holders, want, at.failed)
	}
	if most := lookPause + l.cfg.Lifetime; at.look > most || at.look < most-l.cfg.Lifetime/8 || at.pace != 2*l.cfg.Lifetime {
		t.Errorf("it looks again at %v, and %v after that", at.look, at.pace)
	}
	at.look = lookPause + 1
	l.want(at.look, "", grid.Tick{})
	l.want(at.looked, "", &grid.Closest{Key: me, Peers: sites}, `s00: enter me ""  #1`, `s01: enter me ""  #1`, `s02: enter me ""  #1`)
	if l.publisher.copy("s04") != nil {
		t.Error("it keeps a copy where there is no need")
	}
}

// TestSequence: a holder that has a newer record makes this site issue one that is newer still,
// unless no clock could have been so far ahead.
func TestSequence(t *testing.T) {
	const now = grid.Hour
	for ahead, believed := range map[grid.Time]bool{1: true, grid.Day - 1: true, grid.Day: false, grid.Day + 1: false} {
		l := newLone(t)
		var out grid.Outbox
		l.Set(now, Offer{}, &out)
		l.want(now, "", &grid.Closest{Key: key("", "me"), Peers: []grid.SiteID{"a"}}, fmt.Sprintf(`a: enter me ""  #%d`, now))
		l.want(now, "a", &Entered{Refusal: Outdated, Sequence: uint64(now + ahead)})
		if got := l.publisher.copy("a") != nil; got != believed {
			t.Errorf("%v ahead: a holder %t", ahead, got)
		}
		if !believed {
			continue
		}
		if got := l.NextTimer(); got != now+changePause {
			t.Errorf("%v ahead: the next at %v", ahead, got)
		}
		l.want(now+changePause, "", grid.Tick{}, fmt.Sprintf(`a: enter me ""  #%d`, max(now+changePause, now+ahead+1)))
	}
}

// TestAlone: a site that finds nobody but itself looks again, ever less often.
func TestAlone(t *testing.T) {
	l := newLone(t)
	l.Set(0, Offer{}, &grid.Outbox{})
	var now grid.Time
	at := &l.publisher.places[0]
	for i, span := range []grid.Time{lookAlone, 2 * lookAlone, 4 * lookAlone, 8 * lookAlone, 16 * lookAlone, lookAloneMax, lookAloneMax} {
		l.want(now, "", &grid.Closest{Key: at.key, Peers: []grid.SiteID{"me"}[:i%2]})
		if at.look != now+span {
			t.Errorf("the next after %v, want %v", at.look-now, span)
		}
		now = at.look
		l.want(now, "", grid.Tick{})
	}
}

// TestWaves: first the nearest are asked, and the others only if those know nobody.
func TestWaves(t *testing.T) {
	for _, found := range []bool{true, false} {
		l := newLone(t)
		l.want(0, "", &Find{1, "delft"})
		sites := names("s", firstWave+2)
		var asked []string
		for _, site := range sites {
			asked = append(asked, string(site)+": inquire delft")
		}
		l.want(0, "", &grid.Closest{Key: key("", "delft"), Peers: append([]grid.SiteID{"me"}, sites...)}, asked[:firstWave]...)
		m := &Inform{Token: l.seeker.token}
		for i, site := range sites[:firstWave-1] {
			if i == 1 && found {
				l.want(0, site, &Inform{Token: m.Token, Records: []*Record{recordOf("a", "delft", 1, 0)}})
			} else {
				l.want(0, site, m)
			}
			l.want(0, site, m) // twice
		}
		last := sites[firstWave-1]
		if found {
			l.want(0, last, m, "1: [a]")
			continue
		}
		l.want(0, last, m, asked[firstWave:]...)
		l.want(0, sites[firstWave], m) // to what was asked before
		l.want(l.cfg.Timeout-1, "", grid.Tick{})
		l.want(l.cfg.Timeout, "", grid.Tick{}, "1: []")
	}
}

// TestExpiredMeanwhile: a record that expires while others are asked is not told of.
func TestExpiredMeanwhile(t *testing.T) {
	for _, late := range []grid.Time{0, 1} {
		l := newLone(t)
		end := recordOf("a", "delft", 1, 0).Expires()
		start := end - l.cfg.Timeout + late
		l.want(start, "", &Find{1, "delft"})
		l.want(start, "", &grid.Closest{Key: key("", "delft"), Peers: []grid.SiteID{"b", "c"}}, "b: inquire delft", "c: inquire delft")
		l.want(end-1, "b", &Inform{Token: l.seeker.token, Records: []*Record{recordOf("a", "delft", 1, 0)}})
		if late > 0 {
			l.want(end, "c", &Inform{Token: l.seeker.token}, "1: []")
		} else {
			l.want(end-1, "c", &Inform{Token: l.seeker.token}, "1: [a]")
		}
	}
}

// TestNewest: of so many sites the newest record is remembered, those that came last.
func TestNewest(t *testing.T) {
	s := &newLone(t).seeker
	for i := range 2*seenMax + 3 {
		s.newest(1, recordOf(fmt.Sprint(i), "", 2, 0))
		s.newest(1, recordOf(fmt.Sprint(i), "", 1, 0))
	}
	if len(s.seen) != seenMax || len(s.order) != seenMax {
		t.Errorf("%d are remembered, in an order of %d", len(s.seen), len(s.order))
	}
	for i := seenMax + 3; i < 2*seenMax+3; i++ {
		if r := s.seen[grid.SiteID(fmt.Sprint(i))]; r == nil || r.Sequence != 2 {
			t.Fatalf("of site %d it remembers %+v", i, r)
		}
	}
	older := recordOf("9999", "", 1, LifetimeDefault)
	s.newest(1, recordOf("9999", "", 2, 0))
	if got := s.newest(LifetimeDefault, older); got != older {
		t.Error("a record that has expired counts")
	}
}

// TestUnbound: of names that were used the one goes that was not used for longest, of several
// the first.
func TestUnbound(t *testing.T) {
	s := &newLone(t).seeker
	for text, used := range map[string]grid.Time{"d": 2, "c": 1, "b": 1, "a": 3} {
		s.bound[text] = binding{"site", used}
	}
	for _, next := range []string{"b", "c", "d", "a"} {
		if _, known := s.bound[next]; !known {
			t.Errorf("%s went before its turn", next)
		}
		s.unbind()
		if _, known := s.bound[next]; known {
			t.Errorf("%s did not go: %v", next, s.bound)
		}
	}
}
