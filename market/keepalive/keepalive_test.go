package keepalive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// TestLetsGoFirst: whatever the delays, and with both clocks as wrong as they may be, an
// execution is dead before its home may place the job again.
func TestLetsGoFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lease := grid.Time(rapid.Int64Range(int64(grid.LeaseMin), int64(30*grid.Day)).Draw(t, "lease"))
		asked := grid.Time(rapid.Int64Range(0, int64(grid.Day)).Draw(t, "asked")) // true time
		heard := asked + grid.Time(rapid.Int64Range(0, int64(grid.Hour)).Draw(t, "under way"))
		rate := rapid.Int64Range(-1000, 1000)
		there, home := rate.Draw(t, "rate there"), rate.Draw(t, "rate of home") // millionths
		span := func(local grid.Time, rate int64) grid.Time {                   // that a clock of that rate takes
			return grid.Time(float64(local) / (1 + float64(rate)/1e6))
		}
		killed := asked + span(lease+Kill, there)
		placed := heard + span(Dead(0, lease), home)
		slack := placed - killed
		if slack < graceMin-Kill-10*grid.Millisecond {
			t.Fatalf("lease %v: placed %v after it was killed", lease, slack)
		}
	})
	if d := Dead(0, Default) + 10*grid.Second; d > 3*grid.Minute {
		t.Errorf("a job of a dead site is placed again after %v", d)
	}
}

// bench is a Holder, and what it does.
type bench struct {
	Holder
	now grid.Time
	out grid.Outbox
}

func number(n uint64) grid.TaskID { return grid.TaskID{Job: grid.JobID{Lo: n}, Epoch: 1} }

// did returns what the holder has ordered and told since the last time.
func (b *bench) did() (list []string) {
	for _, s := range b.out.Sends {
		m := s.Message.(*Renew)
		for _, h := range m.Held {
			list = append(list, fmt.Sprintf("%s: %d at %d, begun %v", s.To, h.Task.Job.Lo, m.Stamp/grid.Second, h.Begun))
		}
	}
	for _, in := range b.out.Locals {
		switch in := in.(type) {
		case *Extended:
			list = append(list, fmt.Sprintf("%d goes on until %d", in.Task.Job.Lo, in.End/grid.Second))
		case *Lapsed:
			list = append(list, fmt.Sprintf("%d has lapsed", in.Task.Job.Lo))
		case *Unwanted:
			list = append(list, fmt.Sprintf("%d is unwanted", in.Task.Job.Lo))
		}
	}
	b.out.Reset()
	return list
}

func (b *bench) want(t *testing.T, want ...string) {
	t.Helper()
	if got := b.did(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("at %d: %q, want %q", b.now/grid.Second, got, want)
	}
}

func (b *bench) tick(at grid.Time) {
	b.now = at * grid.Second
	b.Tick(b.now, func(grid.TaskID) grid.Time { return grid.Never }, &b.out)
}

func TestHolder(t *testing.T) {
	b := new(bench)
	const lease = 40 * grid.Second
	b.Enter(0, "h", number(1), lease, lease)
	b.Enter(0, "h", number(2), lease, lease)
	b.Enter(0, "other", number(3), lease, lease)
	b.Begun(0, "h", number(1), 0)
	b.tick(1)
	b.want(t, "h: 1 at 1, begun true", "h: 2 at 1, begun false")
	b.tick(11)
	b.want(t, "other: 3 at 11, begun false", "h: 1 at 11, begun true", "h: 2 at 11, begun false")

	// An answer counts from when it was asked for, whenever it comes.
	b.now = 30 * grid.Second
	b.Renewed(b.now, "h", &Renewed{Stamp: grid.Second, Renewed: []grid.TaskID{number(1), number(3)}}, &b.out)
	b.want(t, "1 goes on until 41")
	b.Renewed(b.now, "h", &Renewed{Stamp: 0, Renewed: []grid.TaskID{number(1)}}, &b.out) // an older one
	b.Renewed(b.now, "h", &Renewed{Stamp: grid.Day, Renewed: []grid.TaskID{number(1)}}, &b.out)
	b.Renewed(b.now, "stranger", &Renewed{Stamp: b.now, Renewed: []grid.TaskID{number(1)}, Unwanted: []grid.TaskID{number(1)}}, &b.out)
	b.want(t)

	// What has not begun by the end of its lease must not. What has, somebody else ends.
	b.tick(40)
	b.want(t, "h: 1 at 40, begun true", "2 has lapsed", "3 has lapsed")
	b.Renewed(b.now, "h", &Renewed{Stamp: 39 * grid.Second, Renewed: []grid.TaskID{number(2)}, Unwanted: []grid.TaskID{number(1), number(9)}}, &b.out)
	b.want(t, "1 is unwanted")
	b.tick(60)
	b.want(t) // it is said once

	for i, home := range []grid.SiteID{"h", "h", "other"} {
		b.Leave(home, number(uint64(i+1)))
	}
	b.Leave("h", number(1))
	if b.Next() != grid.Never || len(b.homes) != 0 {
		t.Errorf("%d homes are left, next %v", len(b.homes), b.Next())
	}
}

// TestUnaskedAnswer: an answer to what was not asked yet does not keep a site from asking sooner again
// what home has not answered.
func TestUnaskedAnswer(t *testing.T) {
	b := new(bench)
	b.Enter(0, "h", number(1), 40*grid.Second, 40*grid.Second)
	b.tick(10)
	b.Renewed(b.now, "h", &Renewed{Stamp: grid.Day}, &b.out)
	if b.tick(20); b.Next() != 20*grid.Second+40*grid.Second/shares/hurry {
		t.Errorf("home has not answered, and is asked next at %v", b.Next())
	}
}

// TestBadLine: over a line that loses a sixth of the messages each way an execution outlives
// hours, and over a good one it takes four renewals a lease.
func TestBadLine(t *testing.T) {
	for _, tt := range []struct {
		lost, most int // of 36 renewals or their answers
	}{{0, 4 * 60 * 60 / 10 * 3}, {11, 4 * 60 * 60}} {
		b := new(bench)
		rng := rand.New(rand.NewPCG(1, 2))
		const lease, hours = 10 * grid.Second, 3 * grid.Hour
		b.Enter(0, "h", number(1), lease, lease)
		b.Begun(0, "h", number(1), 0)
		end, sent := lease, 0
		for b.now = b.Next(); b.now < hours; b.now = b.Next() {
			if b.now >= end {
				t.Fatalf("%d of 36 lost: the lease has lapsed at %v, after %d renewals", tt.lost, b.now, sent)
			}
			b.Tick(b.now, func(grid.TaskID) grid.Time { return grid.Never }, &b.out)
			stamp := b.out.Sends[0].Message.(*Renew).Stamp
			sent++
			if rng.IntN(36) >= tt.lost {
				b.Renewed(b.now+grid.Second/10, "h", &Renewed{Stamp: stamp, Renewed: []grid.TaskID{number(1)}}, &b.out)
				end = stamp + lease
			}
			b.out.Reset()
		}
		if sent > tt.most+10 {
			t.Errorf("%d of 36 lost: %d renewals in %v, want %d at most", tt.lost, sent, hours, tt.most)
		}
	}
}

// TestMany: what does not fit into one message goes into several.
func TestMany(t *testing.T) {
	b := new(bench)
	for n := range uint64(heldMax + 1) {
		b.Enter(0, "h", number(n+1), grid.Minute, grid.Minute)
	}
	b.tick(30)
	if len(b.out.Sends) != 2 {
		t.Errorf("%d messages", len(b.out.Sends))
	}
	some := 0
	for range b.Each {
		if some++; some == 3 {
			break
		}
	}
	all := map[grid.TaskID]bool{}
	for home, id := range b.Each {
		all[id] = home == "h"
	}
	if len(all) != heldMax+1 || some != 3 {
		t.Errorf("%d executions are held, %d of 3", len(all), some)
	}
}

// TestOf: which lease a job has.
func TestOf(t *testing.T) {
	for _, tt := range []struct {
		job  grid.Job
		want grid.Time
	}{
		{grid.Job{}, Default},
		{grid.Job{Terms: &grid.Terms{Lease: grid.Hour}}, grid.Hour},
		{grid.Job{Terms: &grid.Terms{Lease: grid.NoLease}}, 0},
		{grid.Job{Spread: true, Terms: &grid.Terms{Lease: grid.Hour}}, 0},
	} {
		if got := Of(&tt.job, Default); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.job, got, tt.want)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, m := range []wire.Message{
		&Renew{Stamp: 5, Held: []Held{
			{Task: number(1), Begun: true, Ran: 7, Start: grid.Never}, {Task: number(2), Start: 9}, {Task: number(3), Start: grid.Never},
		}},
		&Renewed{Stamp: 5, Renewed: []grid.TaskID{number(1)}, Unwanted: []grid.TaskID{number(2)}},
	} {
		body, err := proto.Marshal(m.Proto())
		if err != nil {
			t.Fatal(err)
		}
		decode, kind := DecodeRenew, wire.MarketRenew
		if _, answer := m.(*Renewed); answer {
			decode, kind = DecodeRenewed, wire.MarketRenewed
		}
		if got := m.MessageKind(); got != kind {
			t.Errorf("%+v is of kind %v, want %v", m, got, kind)
		}
		back, err := decode("x", body)
		if err != nil || fmt.Sprintf("%+v", back) != fmt.Sprintf("%+v", m) {
			t.Errorf("%+v came back as %+v, %v", m, back, err)
		}
	}
	for name, m := range map[string]wire.Message{
		"nothing is held":          &Renew{Stamp: 1},
		"it was asked before time": &Renew{Stamp: -1, Held: []Held{{Task: number(1)}}},
		"no epoch":                 &Renew{Stamp: 1, Held: []Held{{Task: grid.TaskID{Job: grid.JobID{Lo: 1}}}}},
		"no job":                   &Renew{Stamp: 1, Held: []Held{{Task: grid.TaskID{Epoch: 1}}}},
		"it runs for a while yet":  &Renew{Stamp: 1, Held: []Held{{Task: number(1), Begun: true, Ran: -1}}},
	} {
		body, err := proto.Marshal(m.Proto())
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeRenew("x", body); err == nil {
			t.Errorf("%s: taken as %+v", name, back)
		}
	}
}

// TestBadMessages: of what a peer sends that no site would say nothing is taken.
func TestBadMessages(t *testing.T) {
	ran, start := int64(1), int64(2)
	held := func(change func(*wirepb.MarketHeld)) *wirepb.MarketHeld {
		h := &wirepb.MarketHeld{Job: wire.JobBytes(number(1).Job), Epoch: 1}
		change(h)
		return h
	}
	running := held(func(h *wirepb.MarketHeld) { h.Ran = &ran })
	for name, m := range map[string]proto.Message{
		"runs and is to begin":     &wirepb.MarketRenew{Held: []*wirepb.MarketHeld{held(func(h *wirepb.MarketHeld) { h.Ran, h.Start = &ran, &start })}},
		"runs for how long":        &wirepb.MarketRenewed{Renewed: []*wirepb.MarketHeld{running}},
		"runs and is unwanted":     &wirepb.MarketRenewed{Unwanted: []*wirepb.MarketHeld{running}},
		"before time":              &wirepb.MarketRenewed{Stamp: -1},
		"too many":                 &wirepb.MarketRenew{Held: slices.Repeat([]*wirepb.MarketHeld{running}, heldMax+1)},
		"too many of both kinds":   &wirepb.MarketRenewed{Renewed: slices.Repeat([]*wirepb.MarketHeld{held(func(*wirepb.MarketHeld) {})}, heldMax), Unwanted: []*wirepb.MarketHeld{held(func(*wirepb.MarketHeld) {})}},
		"a job of too few bytes":   &wirepb.MarketRenewed{Renewed: []*wirepb.MarketHeld{held(func(h *wirepb.MarketHeld) { h.Job = h.Job[1:] })}},
		"the second is no job":     &wirepb.MarketRenew{Held: []*wirepb.MarketHeld{running, held(func(h *wirepb.MarketHeld) { h.Job = nil })}},
		"begins further than ever": &wirepb.MarketRenew{Held: []*wirepb.MarketHeld{held(func(h *wirepb.MarketHeld) { far := int64(grid.SpanMax) + 1; h.Start = &far })}},
	} {
		body, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		decode := DecodeRenew
		if _, answer := m.(*wirepb.MarketRenewed); answer {
			decode = DecodeRenewed
		}
		if back, err := decode("x", body); err == nil || back != nil {
			t.Errorf("%s: taken as %+v", name, back)
		}
	}
	for _, decode := range []func(grid.SiteID, []byte) (grid.Message, error){DecodeRenew, DecodeRenewed} {
		if back, err := decode("x", []byte{0xff}); err == nil || back != nil {
			t.Errorf("what is no message: taken as %+v, %v", back, err)
		}
	}
}

// TestDead: the last execution is certainly gone a grace after its lease, by a clock that is a thousandth fast.
func TestDead(t *testing.T) {
	for _, lease := range []grid.Time{grid.Minute, Default, grid.Day} {
		const heard = grid.Hour
		span := lease.Add(Grace(lease))
		if got, least := Dead(heard, lease), heard.Add(span).Add(span/500); got <= least || got > least+2 {
			t.Errorf("lease of %v: dead after %v, want just more than %v", lease, got-heard, least-heard)
		}
	}
}

// TestSaid: a home is told how long an execution has run, or when it begins as far as is known.
func TestSaid(t *testing.T) {
	const now = grid.Hour
	never := Held{Start: grid.Never}
	for _, c := range []struct {
		name         string
		begun        bool
		start, until grid.Time
		want         Held
	}{
		{"it runs", true, now - grid.Minute, 7, Held{Begun: true, Ran: grid.Minute, Start: grid.Never}},
		{"it begins to run just now", true, now, 7, Held{Begun: true, Start: grid.Never}},
		{"it runs from a time that is to come", true, now + 1, 7, Held{Begun: true, Start: grid.Never}},
		{"it has run for ever", true, -grid.SpanMax, 7, Held{Begun: true, Ran: grid.SpanMax, Start: grid.Never}},
		{"it begins", false, 0, grid.Minute, Held{Start: grid.Minute}},
		{"it should have begun", false, 0, -1, Held{Start: 0}},
		{"it begins some day", false, 0, grid.SpanMax + 1, Held{Start: grid.SpanMax}},
		{"nobody knows when it begins", false, 0, grid.Never, never},
	} {
		b := new(bench)
		b.Enter(0, "h", number(1), grid.Day, grid.Day)
		if c.begun {
			b.Begun(0, "h", number(1), c.start)
		}
		b.Soon(0, "h")
		b.Tick(now, func(grid.TaskID) grid.Time { return c.until }, &b.out)
		c.want.Task = number(1)
		if got := b.out.Sends[0].Message.(*Renew).Held; len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestWhen: a home is asked four times a lease, and four times as often from the first time on
// that an answer has not come soon; at the end of a lease the site is told what has not begun.
func TestWhen(t *testing.T) {
	const lease, s = 40 * grid.Second, grid.Second
	b := new(bench)
	at := func(want grid.Time) {
		t.Helper()
		if got := b.Next(); got != want {
			t.Errorf("at %v: next %v, want %v", b.now, got, want)
		}
	}
	ask := func(now grid.Time, want ...string) {
		t.Helper()
		b.now = now
		b.Tick(now, func(grid.TaskID) grid.Time { return grid.Never }, &b.out)
		b.want(t, want...)
	}
	b.Begun(0, "h", number(1), 0) // nobody's
	b.Enter(0, "h", number(1), lease, lease)
	at(10 * s)
	b.Enter(0, "h", number(2), 4*lease, 4*lease) // it does not put off the first
	at(10 * s)
	b.Enter(0, "h", number(3), lease, 25*s) // as a site does that comes up
	at(5 * s)
	b.Enter(s, "h", number(3), lease, lease/2) // it is known already
	at(s)
	b.Begun(3*s, "h", number(2), 0)
	at(s)
	ask(s, "h: 1 at 1, begun false", "h: 2 at 1, begun true", "h: 3 at 1, begun false")
	at(11 * s)
	b.Renewed(2*s, "h", &Renewed{Stamp: s}, &b.out)
	ask(11*s, "h: 1 at 11, begun false", "h: 2 at 11, begun true", "h: 3 at 11, begun false")
	at(21 * s) // the last one was answered
	b.Soon(11*s, "h")
	ask(11*s+lost-1, "h: 1 at 11, begun false", "h: 2 at 11, begun true", "h: 3 at 11, begun false")
	at(21*s + lost - 1)
	b.Soon(11*s+lost, "h")
	ask(12*s-1, "h: 1 at 11, begun false", "h: 2 at 11, begun true", "h: 3 at 11, begun false")
	if want := 12*s - 1 + lease/shares/hurry; b.Next() != want { // lost after the one before
		t.Errorf("next %v, want %v", b.Next(), want)
	}
	b.Renewed(13*s, "h", &Renewed{Stamp: 12*s - 1, Renewed: []grid.TaskID{number(1)}}, &b.out)
	b.want(t, "1 goes on until 51")
	b.Renewed(13*s, "h", &Renewed{Stamp: 12*s - 1, Renewed: []grid.TaskID{number(1)}}, &b.out)
	b.want(t) // said once
	ask(23*s, "h: 1 at 23, begun false", "h: 2 at 23, begun true", "h: 3 at 23, begun false")
	at(25 * s) // the end of the third
	b.Renewed(23*s, "h", &Renewed{Stamp: 23 * s, Renewed: []grid.TaskID{number(1)}}, &b.out)
	b.want(t, "1 goes on until 63")
	b.Leave("h", number(2))
	b.Enter(24*s, "h", number(4), lease, 64*s)
	ask(25*s, "h: 1 at 25, begun false", "h: 4 at 25, begun false", "3 has lapsed")
	b.Renewed(25*s, "h", &Renewed{Stamp: 24 * s, Renewed: []grid.TaskID{number(3)}}, &b.out)
	b.want(t) // too late
}

// TestAuditOfHeard: a home that counts as heard before it was asked is found.
func TestAuditOfHeard(t *testing.T) {
	b := bench{now: grid.Hour}
	b.Enter(b.now, "home", number(1), Default, b.now+Default)
	b.Renewed(b.now, "home", &Renewed{Stamp: b.now + grid.Hour}, &b.out)
	if err := b.Audit(b.now); err != nil {
		t.Errorf("an answer to what was not asked: %v", err)
	}
	if b.homes["home"].heard = b.now; b.Audit(b.now) == nil {
		t.Error("a home counts as heard that was not asked, and the audit does not say so")
	}
}

// TestAuditOfOrder: executions that are looked for by halving, and are not in order, are found.
func TestAuditOfOrder(t *testing.T) {
	b := bench{now: grid.Hour}
	b.Enter(b.now, "home", number(1), Default, b.now+Default)
	b.Enter(b.now, "home", number(2), Default, b.now+Default)
	if err := b.Audit(b.now); err != nil {
		t.Errorf("in order: %v", err)
	}
	if slices.Reverse(b.homes["home"].list); b.Audit(b.now) == nil {
		t.Error("executions are in the wrong order, and the audit does not say so")
	}
}
