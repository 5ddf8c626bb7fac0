package directory

import (
	"math/rand/v2"
	"testing"

	"gridnode/internal/grid"
)

// A query may have the router asked although the peers it named are still
// believed. If that answer never comes, the listing must wait for an instant at
// which it has something to do.
func TestUnansweredLookUpDoesNotSpin(t *testing.T) {
	d := New(Config{Self: "a", Federation: "f"}, rand.New(rand.NewPCG(1, 1)))
	now := 100 * grid.Second
	c := cell{attribute: Price}
	r := &ring{cell: c, key: c.key("f"), peers: []grid.SiteID{"b"}, span: grid.Minute, fresh: now + grid.Minute, asked: now - d.lookupMax()}
	d.rings = map[cell]*ring{c: r}
	l := &d.listings[Price]
	l.places = []place{{cell: c, role: home}}
	d.schedule(now, l)
	if l.retry != r.fresh {
		t.Errorf("due at %v; it is %v and there is something to do at %v", l.retry, now, r.fresh)
	}
}
