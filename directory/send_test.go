package directory

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// A query may have the router asked although the peers it named are still
// believed. If that answer never comes, the listing must wait for an instant at
// which it has something to do.
func TestUnansweredLookUpDoesNotSpin(t *testing.T) {
	d := New(Config{Self: "a", Federation: "f"}, rand.New(rand.NewPCG(1, 1)))
	now := 100 * grid.Second
	c := cell{attribute: Price}
	r := &ring{cell: c, key: c.key("f"), peers: []grid.SiteID{"b"}, span: grid.Minute, until: now + grid.Minute, begun: now - d.rings.lookupMax()}
	d.rings.list = map[cell]*ring{c: r}
	l := &d.publisher.listings[Price]
	l.places = []place{{cell: c, role: proper}}
	d.publisher.schedule(now, l)
	if l.retry != r.until {
		t.Errorf("due at %v; it is %v and there is something to do at %v", l.retry, now, r.until)
	}
}

// In a cell that covers others a quote goes to one holder first, to the others once
// that one has it or does not answer, and to nobody else if it belongs further down.
func TestOneHolderIsAskedFirst(t *testing.T) {
	child := trie.PrefixOf(trie.First(), 1)
	for _, tt := range []struct {
		name   string
		cells  []trie.Prefix // that are known below the root
		answer func(r *Receipt) bool
		first  int // publications before the answer
		then   int // after it, to the root
	}{
		{"no other cells", nil, func(*Receipt) bool { return true }, 4, 0},
		{"it belongs there", []trie.Prefix{trie.PrefixOf(trie.Last(), 4)}, func(*Receipt) bool { return true }, 1, 3},
		{"it belongs further down", []trie.Prefix{trie.PrefixOf(trie.Last(), 4)}, func(r *Receipt) bool {
			r.Moved, r.To, r.Fences, r.Absent, r.Holders = true, child, []trie.Prefix{child}, true, []grid.SiteID{"e"}
			return true
		}, 1, 0},
		{"no answer", []trie.Prefix{trie.PrefixOf(trie.Last(), 4)}, func(*Receipt) bool { return false }, 1, 4},
	} {
		d, _, out := settledRing(t, "a", "b", "c", "d")
		now := grid.Second
		d.maps[Price].Refresh(now, grid.Hour)
		for _, x := range tt.cells {
			d.maps[Price].Add(x)
		}
		sent := func() (to []grid.SiteID) {
			for _, s := range out.Sends {
				if p, ok := s.Message.(*Publish); ok && slices.ContainsFunc(p.Copies, func(c Copy) bool { return c.Cell == root(Price) }) {
					to = append(to, s.To)
				}
			}
			out.Reset()
			return to
		}
		q := goodQuote()
		d.SetQuote(now, q, out)
		first := sent()
		r := Receipt{Cell: root(Price)}
		if tt.answer(&r) {
			d.Step(now, &grid.Delivery{From: first[0], Message: &Published{Sequence: d.publisher.own.Sequence, Receipts: []Receipt{r}}}, out)
		} else {
			d.Step(now+d.cfg.Timeout, grid.Tick{}, out)
		}
		if then := sent(); len(first) != tt.first || len(then) != tt.then {
			t.Errorf("%s: sent to %v, then to %v; want %d and %d", tt.name, first, then, tt.first, tt.then)
		}
	}
}

// Every holder answers every other renewal, for all of its cells at a time, and every
// change of terms.
func TestRenewalsAreAnsweredInTurn(t *testing.T) {
	n := newNetwork(t, 1, Config{Lifetime: 10 * grid.Minute})
	populate(n, 40, n.any)
	n.run(n.cfg.Lifetime) // nobody is young any more, who asks holders who the others are
	s := n.sites[3]
	type sent struct{ quiet, loud int }
	to := map[grid.SiteID]*sent{}
	n.onSend = func(from, site grid.SiteID, m grid.Message) {
		p, ok := m.(*Publish)
		if !ok || from != s.id {
			return
		}
		for i := range p.Copies {
			if p.Copies[i].Quiet != p.Copies[0].Quiet {
				t.Fatalf("%s is to answer for a part of its cells", site)
			}
		}
		if to[site] == nil {
			to[site] = &sent{}
		}
		if p.Copies[0].Quiet {
			to[site].quiet++
		} else {
			to[site].loud++
		}
	}
	n.run(66 * grid.Minute) // eight renewals or so
	for site, c := range to {
		if c.loud < 3 || c.quiet < 3 || c.loud-c.quiet > 1 || c.quiet-c.loud > 1 {
			t.Errorf("%s got %d that it answers and %d others", site, c.loud, c.quiet)
		}
	}
	clear(to)
	n.set(s, n.offer(s, s.want.Price+1, s.want.Speed, s.want.Free))
	for site, c := range to {
		if c.quiet > 0 {
			t.Errorf("%s need not answer a new price", site)
		}
	}
	if len(to) < 4 {
		t.Errorf("a new price went to %d sites", len(to))
	}
}

// A holder that never answered has the quote again once anything is heard of it: it was cut off.
// One that refuses the quote has not.
func TestSilentHolderIsTriedOnceHeard(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		d, _, out := settledRing(t, "a", "b", "c", "d")
		sent := func() (copies int) {
			for _, s := range out.Sends {
				if p, ok := s.Message.(*Publish); ok && s.To == "a" {
					copies += len(p.Copies)
				}
			}
			out.Reset()
			return copies
		}
		d.SetQuote(0, goodQuote(), out)
		for _, key := range slices.Clone(out.Keys) {
			d.Step(0, &grid.Closest{Key: key, Peers: []grid.SiteID{"a", "b", "c", "d"}}, out)
		}
		now := 10 * triesMax * d.cfg.Timeout
		if refuses {
			r := []Receipt{{Cell: root(Price), Refused: true}, {Cell: root(Speed), Refused: true}}
			d.Step(1, &grid.Delivery{From: "a", Message: &Published{Sequence: d.publisher.own.Sequence, Receipts: r}}, out)
		}
		for at := grid.Time(1); at < now; at += d.cfg.Timeout {
			d.Step(at, grid.Tick{}, out)
		}
		out.Reset()
		d.Step(now, &grid.Delivery{From: "a", Message: &Scan{Cell: root(Price), Limit: 1}}, out)
		if copies := sent(); (copies == attributes) == refuses {
			t.Errorf("%d copies sent to who is heard again (refuses: %t)", copies, refuses)
		}
		d.Step(now, &grid.Delivery{From: "a", Message: &Scan{Cell: root(Price), Limit: 1}}, out)
		if copies := sent(); copies != 0 {
			t.Errorf("%d copies sent once more, before an answer is due", copies)
		}
	}
}
