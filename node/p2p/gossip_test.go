package p2p

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// TestGossipIsItsAuthors: whoever passes a message on, it is decoded and delivered as of its author, and
// of the author's allowance.
func TestGossipIsItsAuthors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, each = 8, gossipBurst
		memory := &Memory{}
		var nodes []*node
		for i := range size { // a chain: most hear through others
			n, cfg := config(t, uint64(i), memory)
			signed := func(from grid.SiteID, body []byte) (grid.Message, error) {
				m, err := decodeNote(4)(from, body)
				if err == nil && m.(*note).text[:len(from)] != string(from) {
					err = wire.Malformed("a note of %s decoded as of %s", m.(*note).text, from)
				}
				return m, err
			}
			cfg.Topics = []Topic{{Name: "shout", Protocol: &wire.Protocol{ID: "shout", Decoders: map[grid.Kind]wire.Decoder{4: signed}}, SizeMax: 512}}
			if i > 0 {
				cfg.Join = nodes[i-1].Addrs()
			}
			nodes = append(nodes, start(t, n, cfg))
		}
		defer closeAll(nodes)
		time.Sleep(3 * time.Second)
		for k := range each {
			for _, n := range nodes {
				n.Publish("shout", &note{4, fmt.Sprint(n.Self(), " ", k)})
			}
		}
		time.Sleep(5 * time.Second)
		for i, n := range nodes {
			heard := make(map[grid.SiteID]int)
			for _, in := range n.inputs() {
				if d, ok := in.(*grid.Delivery); ok {
					if text := d.Message.(*note).text; text[:len(d.From)] != string(d.From) {
						t.Fatalf("%q was delivered as of %s", text, d.From)
					}
					heard[d.From]++
				}
			}
			for k, other := range nodes {
				if want := each; k != i && heard[other.Self()] != want {
					t.Errorf("node %d heard %d of %d notes of node %d", i, heard[other.Self()], want, k)
				}
			}
			if slices.Contains(texts(n.inputs()), string(n.Self())) || heard[n.Self()] > 0 {
				t.Errorf("node %d hears itself", i)
			}
		}
	})
}
