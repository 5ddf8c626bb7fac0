package p2p

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multiformats/go-multiaddr"
)

// TestMemoryLatency: what is written arrives after its latency, but in order, and the
// end of a connection comes behind it.
func TestMemoryLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		latencies := []time.Duration{4 * ms, 6 * ms, 50 * ms, 10 * ms, 70 * ms} // two to dial
		memory := &Memory{Latency: func() time.Duration {
			next := latencies[0]
			latencies = latencies[1:]
			return next
		}}
		l, err := memory.listen(multiaddr.StringCast("/ip4/127.0.0.1/tcp/0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		begun := time.Now()
		near, err := memory.dial(t.Context(), l.Multiaddr())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 10*ms {
			t.Errorf("dialling took %v, want 10ms", took)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		for _, text := range []string{"late", "held up", "last"} { // 50 ms; 10 ms, but behind it; 70 ms
			if _, err := near.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		near.Close()
		for _, want := range []struct {
			text string
			at   time.Duration
		}{{"late", 50 * ms}, {"held up", 50 * ms}, {"last", 70 * ms}} {
			got := make([]byte, len(want.text))
			if _, err := io.ReadFull(far, got); err != nil || string(got) != want.text || time.Since(begun) != want.at {
				t.Errorf("read %q after %v: %v; want %q after %v", got, time.Since(begun), err, want.text, want.at)
			}
		}
		if n, err := far.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("read %d bytes more: %v, want the end", n, err)
		}
	})
}

// TestMemoryPortsComeAround: many connections use all ports up, and then those of others
// again, but never that of a listener.
func TestMemoryPortsComeAround(t *testing.T) {
	m := &Memory{ports: memoryPorts - 1}
	zero := multiaddr.StringCast("/ip4/127.0.0.1/tcp/0")
	last, err := m.listen(zero)
	if err != nil {
		t.Fatal(err)
	}
	m.ports--
	first, err := m.listen(zero)
	if err != nil {
		t.Fatal(err)
	}
	if last.addr.String() != "/ip4/127.0.0.1/tcp/65535" || first.addr.String() != "/ip4/127.0.0.1/tcp/20001" {
		t.Errorf("listening at %v and %v", last.addr, first.addr)
	}
	m.ports = memoryPorts
	if c, err := m.dial(t.Context(), last.addr); err != nil || c.local.String() != "/ip4/127.0.0.1/tcp/20001" {
		t.Errorf("dialled from %+v: %v", c, err)
	}
}
