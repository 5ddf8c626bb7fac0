package live

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/site"
)

// TestGossipIsFlat: what a daemon says and hears as gossip in a minute in which nothing
// happens does not grow with the federation, is what a virtual site does, and reaches
// whom it should: in authorities of eight, and in a federation without any, whose circles
// take most of an hour to fill, so that only few nodes are watched for so long.
func TestGossipIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute of processor time")
	}
	for _, c := range []struct {
		name  string
		free  bool
		nodes []int // whole authorities, and most sites are no siblings
	}{{"authorities", false, []int{16, 32}}, {"none", true, []int{16}}} {
		t.Run(c.name, func(t *testing.T) {
			var first float64
			for _, nodes := range c.nodes {
				if nodes > *liveNodes {
					continue
				}
				var live, virtual float64
				synctest.Test(t, func(t *testing.T) { live, virtual = resting(t, nodes, c.free) })
				t.Logf("%d nodes: %.2f messages of gossip per site and minute live, %.2f virtual", nodes, live, virtual)
				if math.Abs(live-virtual) > max(0.1*virtual, 1) { // siblings that come and go are that much
					t.Errorf("%d nodes: %.2f live, %.2f virtual", nodes, live, virtual)
				}
				if first == 0 {
					first = live
				}
				if live > first+max(0.1*first, 1) {
					t.Errorf("%d nodes: %.2f, with 16 it was %.2f", nodes, live, first)
				}
			}
		})
	}
}

// resting returns the messages of gossip that sites receive per site and minute.
func resting(t *testing.T, nodes int, free bool) (live, virtual float64) {
	settle, span := 4*time.Minute, 10*time.Minute
	if free {
		settle = 40 * time.Minute // without authorities circles fill by random look-ups, which come seldom
	}
	watch(t, settle+span+overdue)
	up := Default()
	up.Nodes, up.Count, up.Transport, up.free, up.apart = nodes, 1, "memory", free, 50*time.Millisecond
	l, err := Up(t.Context(), up)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	time.Sleep(settle)
	before := gossiped(l)
	time.Sleep(span)
	live = float64(gossiped(l)-before) / float64(nodes) / span.Minutes()
	for i, h := range l.hosts {
		if err := h.Do(t.Context(), func(s *site.Site) {
			if n := len(s.Siblings()); n < 3 || n > 7 || !free && n != 7 {
				t.Errorf("site %d of %d has %d siblings", i, nodes, n)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}

	n, _, err := l.network(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	count := func() (sum int64) {
		for i := range n.Len() {
			sum += gossipOf(n.Counter(i))
		}
		return sum
	}
	if err := n.Run(t.Context(), n.Now()+grid.FromDuration(settle), nil); err != nil {
		t.Fatal(err)
	}
	begun := count()
	if err := n.Run(t.Context(), n.Now()+grid.FromDuration(span), nil); err != nil {
		t.Fatal(err)
	}
	return live, float64(count()-begun) / float64(nodes) / span.Minutes()
}

func gossiped(l *Live) (sum int64) {
	for _, h := range l.hosts {
		c := h.Counter()
		sum += gossipOf(&c)
	}
	return sum
}

// gossipOf returns the messages of gossip that a site has received.
func gossipOf(c *wire.Counter) (sum int64) {
	for _, kind := range []grid.Kind{wire.GossipLoad, wire.GossipLatency, wire.GossipGreet, wire.GossipReply} {
		sum += c.ReceivedOf(kind).Messages
	}
	return sum
}
