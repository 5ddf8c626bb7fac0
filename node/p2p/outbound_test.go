package p2p

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
)

// TestPausesAfterFailedDials: a peer that does not answer is dialled after pauses, each twice as long as the one
// before up to a most; what is to be sent meanwhile is undelivered at once.
func TestPausesAfterFailedDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 1)
		defer closeAll(nodes)
		n := nodes[0]
		_, cfg := config(t, 1, n.cfg.Memory)
		silent, err := n.cfg.Memory.listen(cfg.addr("/ip4/127.0.0.1/tcp/9")) // accepts nobody
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		id, err := peer.IDFromPrivateKey(cfg.Key)
		if err != nil {
			t.Fatal(err)
		}
		n.host.Peerstore().AddAddr(id, silent.Multiaddr(), time.Hour)
		send := func() time.Duration {
			began, before := time.Now(), len(n.inputs())
			n.Send(grid.SiteID(id.String()), &note{1, "x"}, 0)
			n.await(func(in []grid.Input) bool { return len(in) == before+1 })
			return time.Since(began)
		}
		for _, pause := range []time.Duration{redialMin, 2 * redialMin, 4 * redialMin, 8 * redialMin, 16 * redialMin} {
			if took := send(); took < dialTimeMax {
				t.Fatalf("before a pause of %v it was dialled for %v", pause, took)
			}
			began := time.Now()
			time.Sleep(pause - 1)
			if took := send(); took > 0 {
				t.Errorf("within a pause of %v a message was undelivered after %v", pause, took)
			}
			time.Sleep(pause - time.Since(began))
		}
	})
}

// TestWhatMayHaveArrivedIsNotUndelivered: of what went out on a stream that broke nobody knows.
func TestWhatMayHaveArrivedIsNotUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet(t, &Memory{}, 2)
		defer closeAll(nodes)
		a, b := nodes[0], nodes[1]
		a.Send(b.Self(), &note{1, "one"}, 0)
		b.await(func(in []grid.Input) bool { return slices.Equal(texts(in), []string{"one"}) })
		b.Close()
		time.Sleep(time.Second)
		a.Send(b.Self(), &note{1, "two"}, 0)
		time.Sleep(time.Second)
		if s := a.Stats(); s.Lost != 1 || s.Undelivered != 0 || len(a.inputs()) > 0 {
			t.Errorf("%d lost, %d undelivered: %v; want one lost", s.Lost, s.Undelivered, describe(a.inputs()))
		}
	})
}

// TestNothingIsLostAsAnOutboundEnds: what comes as it has been idle for long keeps it going.
func TestNothingIsLostAsAnOutboundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			n := newNetwork(Config{})
			o := &outbound{n: n, site: "x", wake: make(chan struct{}, 1)}
			n.out.peers["x"] = o
			taken := make(chan []outgoing)
			go func() { taken <- o.take(nil) }()
			time.Sleep(sendIdleMax - time.Millisecond)
			n.out.mu.Lock() // as enqueue has it
			time.Sleep(time.Millisecond)
			o.waiting = append(o.waiting, outgoing{message: &note{1, "x"}})
			o.wake <- struct{}{}
			n.out.mu.Unlock()
			if batch := <-taken; len(batch) != 1 || n.out.peers["x"] != o {
				t.Fatalf("%d messages were taken of one that was queued", len(batch))
			}
			n.cancel()
		}
	})
}
