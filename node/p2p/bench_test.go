package p2p

import (
	"context"
	"testing"

	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/grid"
	"gridnode/node/p2p/allowance"
)

// pair starts two nodes on loopback TCP, connected; b hands what arrives to arrived.
func pair(b *testing.B, profile Profile) (from, to *node, arrived chan grid.Input) {
	arrived = make(chan grid.Input, 1<<16)
	to, cfg := config(b, 1, nil)
	cfg.Profile = profile
	cfg.Deliver = func(d *grid.Delivery) bool { arrived <- d; return true }
	start(b, to, cfg)
	from, cfg = config(b, 2, nil)
	cfg.Profile = profile
	cfg.Join = to.Addrs()
	start(b, from, cfg)
	<-from.joined
	wide := allowance.Table
	for c := range wide {
		wide[c].Rate, wide[c].Burst = 1e12, 1e12
	}
	from.Warden.lines, to.Warden.meters = &wide, allowance.NewMeters(&wide)
	return from, to, arrived
}

// BenchmarkMessage sends messages of 200 bytes one at a time: the time is that of
// one message from Send to Deliver.
func BenchmarkMessage(b *testing.B) {
	text := string(make([]byte, 200))
	for _, profile := range []struct {
		name string
		Profile
	}{{"node", ProfileNode}, {"fleet", ProfileFleet}} {
		b.Run("kept/"+profile.name, func(b *testing.B) {
			from, to, arrived := pair(b, profile.Profile)
			for b.Loop() {
				from.Send(to.Self(), &note{1, text}, 0)
				<-arrived
			}
		})
		b.Run("fresh/"+profile.name, func(b *testing.B) {
			from, to, arrived := pair(b, profile.Profile)
			for b.Loop() {
				s, err := from.host.NewStream(context.Background(), to.host.ID(), protocol.ID(chat.ID))
				if err != nil {
					b.Fatal(err)
				}
				s.Write(frame(1, text))
				s.Close()
				<-arrived
			}
		})
	}
	b.Run("stream of messages", func(b *testing.B) {
		from, to, arrived := pair(b, ProfileNode)
		sent := 0
		for b.Loop() {
			from.Send(to.Self(), &note{1, text}, 0)
			if sent++; sent > 1000 {
				<-arrived
			}
		}
	})
}
