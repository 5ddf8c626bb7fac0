package testnet

import (
	"context"
	"fmt"
	"testing"

	"gridnode/grid"
	"gridnode/testnet/draw"
	"gridnode/testnet/simtest"
)

// relaySite passes every message on to the next site and sets its timer anew each
// time: the least a core can do.
type relaySite struct {
	next    grid.SiteID
	message grid.Message
	timer   grid.Time
}

func (s *relaySite) NextTimer() grid.Time { return s.timer }

func (s *relaySite) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in.(type) {
	case grid.Tick:
		if s.timer <= now {
			s.timer = now + grid.Minute
		}
	case *grid.Delivery:
		s.timer = now + grid.Minute
		out.Send(s.next, s.message)
	case *toySend:
		out.Send(s.next, s.message)
	}
}

// BenchmarkEngine is the bare engine: one event is one message delivered and sent
// on, Tick and timer included. Ten messages per site are under way.
func BenchmarkEngine(b *testing.B) {
	for _, sites := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("sites=%d", sites), func(b *testing.B) {
			n, err := New(Config{Seed: 1, Link: Link{LatencyMin: 10 * grid.Millisecond, LatencyMax: 200 * grid.Millisecond}})
			if err != nil {
				b.Fatal(err)
			}
			for i := range sites {
				s := &relaySite{next: grid.SiteID(fmt.Sprint("s", (i*7919+1)%sites)), message: &toyMessage{toyPing, i}, timer: grid.Never}
				if _, err := n.Add(Member{ID: grid.SiteID(fmt.Sprint("s", i)), New: func(int) (Site, error) { return s, nil }}); err != nil {
					b.Fatal(err)
				}
				for j := range 10 {
					n.Inject(grid.Time(j)*grid.Millisecond, i, &toySend{})
				}
			}
			// Run until memory has reached its size.
			if err := n.Run(context.Background(), 5*grid.Second, nil); err != nil {
				b.Fatal(err)
			}
			begin := n.Events()
			end := begin + int64(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			busy := simtest.ProcessorTime()
			if err := n.Run(context.Background(), grid.Never, func() bool { return n.Events() >= end }); err != nil {
				b.Fatal(err)
			}
			simtest.ReportEvents(b, n.Events()-begin, simtest.ProcessorTime()-busy)
		})
	}
}

// BenchmarkQueue takes the first event out and puts one in, with so many waiting.
func BenchmarkQueue(b *testing.B) {
	for _, waiting := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			var h eventQueue
			pcg := draw.PCG(1, "", draw.ForLinks)
			number := uint64(0)
			for range waiting {
				number++
				h.push(grid.Time(draw.Uniform(pcg, 1e6)), classOther|number, event{})
			}
			b.ReportAllocs()
			for b.Loop() {
				at := h.next()
				number++
				_, e := h.pop()
				h.push(at+grid.Time(draw.Uniform(pcg, 1e6)), classOther|number, e)
			}
		})
	}
}
