package directory

import (
	"fmt"
	"slices"
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// guided returns a directory that knows who holds the root, and the three cells that it
// does not know: each covers the next.
func guided(t *testing.T) (d *Directory, cells [3]cell, out *grid.Outbox) {
	t.Helper()
	d, _, out = settledRing(t, "a", "b", "c", "d")
	for i := range cells {
		cells[i] = cell{Price, trie.PrefixOf(trie.Position{Hi: 0x5 << 60}, uint8(4*(i+1)))}
	}
	d.maps[Price].Reset()
	return d, cells, out
}

// pageTo answers the scan that was sent last with hints of who holds some cells.
func pageTo(out *grid.Outbox, hints ...Hint) *grid.Delivery {
	send := out.Sends[len(out.Sends)-1]
	scan := send.Message.(*Scan)
	p := &Page{Token: scan.Token, Cell: scan.Cell, Held: true, HasFences: true, Hints: hints}
	for _, h := range hints {
		p.Fences = append(p.Fences, h.Cell)
	}
	out.Reset()
	return &grid.Delivery{From: send.To, Message: p}
}

// A site that comes to a cell of which it knows nobody is led to it from the root, one
// message for each cell between, and the router is not asked.
func TestGuideLeadsDownwards(t *testing.T) {
	d, cells, out := guided(t)
	d.guide.lead(0, cells[2], out)
	above := root(Price)
	for i, c := range cells {
		if len(out.Sends) != 1 || len(out.Keys) != 0 {
			t.Fatalf("on the way to %v: %d messages, %d look-ups", c, len(out.Sends), len(out.Keys))
		}
		scan := out.Sends[0].Message.(*Scan)
		if scan.Cell != above || scan.At != cells[2].Bits {
			t.Fatalf("asks %v about %x, want %v", scan.Cell, scan.At.Hi, above)
		}
		d.guide.lead(0, cells[2], out)
		if len(out.Sends) != 1 {
			t.Fatal("asks twice at a time")
		}
		holder := grid.SiteID(fmt.Sprintf("holder %d", i))
		d.Step(0, pageTo(out, Hint{c.Prefix, []grid.SiteID{holder}}), out)
		if !d.rings.knows(c) || d.rings.list[c].peers[0] != holder {
			t.Fatalf("does not know who holds %v after the answer", c)
		}
		above = c
	}
	if len(out.Sends) != 0 || len(out.Keys) != 0 || d.requests.open != 0 {
		t.Errorf("knows the holders, and still sends %d messages and looks up %d keys", len(out.Sends), len(out.Keys))
	}
}

// Who leads nowhere, does not answer or cannot be reached is not asked again: the router is.
func TestGuideThatLeadsNowhere(t *testing.T) {
	for name, answer := range map[string]func(d *Directory, c cell, out *grid.Outbox) grid.Input{
		"no hint": func(_ *Directory, _ cell, out *grid.Outbox) grid.Input { return pageTo(out) },
		"other cell": func(_ *Directory, _ cell, out *grid.Outbox) grid.Input {
			return pageTo(out, Hint{trie.PrefixOf(trie.Position{Hi: 0x9 << 60}, 4), []grid.SiteID{"x"}})
		},
		"other attribute": func(_ *Directory, c cell, out *grid.Outbox) grid.Input {
			in := pageTo(out, Hint{c.Prefix, []grid.SiteID{"x"}})
			in.Message.(*Page).Cell.attribute = Speed
			return in
		},
		"unreachable": func(_ *Directory, _ cell, out *grid.Outbox) grid.Input {
			send := out.Sends[0]
			out.Reset()
			return &grid.Undelivered{To: send.To, Message: send.Message}
		},
		"silence": func(_ *Directory, _ cell, out *grid.Outbox) grid.Input {
			out.Reset()
			return grid.Tick{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, cells, out := guided(t)
			d.guide.lead(0, cells[0], out)
			in := answer(d, cells[0], out)
			now := grid.Time(0)
			if _, ok := in.(grid.Tick); ok {
				now = d.requests.next()
			}
			d.Step(now, in, out)
			if len(out.Sends) != 0 || !slices.Equal(out.Keys, []grid.Key{d.rings.list[cells[0]].key}) {
				t.Fatalf("%d messages, look-ups of %x; want one of the cell", len(out.Sends), out.Keys)
			}
			out.Reset()
			d.Step(now, &grid.Closest{Key: d.rings.list[cells[0]].key}, out)
			if d.guide.lead(now, cells[0], out); len(out.Sends) != 0 {
				t.Error("asks the same again")
			}
		})
	}
}

// A holder of the cell above needs to ask nobody; the root, and a cell whose holders
// are known, need no guide.
func TestGuideIsSpared(t *testing.T) {
	d, cells, out := guided(t)
	d.rings.list[root(Price)].peers[0] = d.cfg.Self
	d.holder.note(0, "x", &Report{Cell: root(Price), Child: cells[0].Prefix, Holders: []grid.SiteID{"x", "y"}})
	d.guide.lead(0, cells[0], out)
	if r := d.rings.list[cells[0]]; len(out.Sends) != 0 || !slices.Equal(r.peers, []grid.SiteID{"x", "y"}) {
		t.Errorf("a holder of the root sent %d messages and knows %v", len(out.Sends), r.peers)
	}
	d, cells, out = guided(t)
	d.rings.hint(0, cells[0], "x", []grid.SiteID{"x"})
	d.guide.lead(0, cells[0], out)
	d.guide.lead(0, root(Speed), out)
	d.guide.lead(0, root(Price), out)
	d.rings.lookUp(0, d.rings.at(0, cells[1]), out)
	d.guide.lead(0, cells[1], out)
	if len(out.Sends) != 0 {
		t.Errorf("%d messages about cells that are known or being looked up", len(out.Sends))
	}
}
