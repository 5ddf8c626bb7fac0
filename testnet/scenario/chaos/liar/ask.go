package liar

import (
	"fmt"
	"slices"

	"gridnode/directory"
	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/node/site"
)

// askRounds bounds how often the site of Ask is answered.
const askRounds = 64

// Ask has a user ask the directory, of whose holders the first has an older quote of a site than
// the others have: he is told the newer one, once (D-3).
func (t *Twin) Ask(sent *directory.Quote) error {
	if sent.Withdrawn {
		return nil
	}
	var older, newer directory.Quote
	for i, q := range []*directory.Quote{&older, &newer} {
		*q = *sent
		t.made++
		q.Site, q.Sequence, q.Issued, q.Price = t.Then[0], sent.Sequence+t.Base+t.made, t.Now, sent.Price+grid.Price(i+1)
	}
	if newer.Check() != nil {
		return nil
	}
	t.step(&grid.Closest{Key: directory.RootKey("virtual", directory.Price), Peers: t.Then}) // which it may have asked for as it came up
	out := t.step(&site.FindQuotes{Token: mark, Query: directory.Query{Limit: 1}})
	told := 0
	for range askRounds {
		next := new(grid.Outbox)
		for _, key := range out.Keys {
			t.Site.Step(t.Now, &grid.Closest{Key: key, Peers: t.Then}, next)
		}
		for _, s := range out.Sends {
			scan, yes := s.Message.(*directory.Scan)
			if !yes || scan.Token == 0 || scan.Limit == 0 {
				continue
			}
			q := &newer
			if told == 0 {
				q = &older
			}
			told++
			page := &directory.Page{Token: scan.Token, Cell: scan.Cell, Held: true, Quotes: []*directory.Quote{q}}
			t.Site.Step(t.Now, &grid.Delivery{From: s.To, Message: page}, next)
		}
		for _, a := range out.Answers {
			if found, yes := a.Value.(*directory.Found); yes && a.Token == mark {
				return t.asked(found, &newer, told)
			}
		}
		t.Site.Step(t.Now, grid.Tick{}, next)
		out = next
	}
	return nil
}

// asked looks at what the user is told.
func (t *Twin) asked(found *directory.Found, newer *directory.Quote, told int) error {
	if told < 2 {
		return nil
	}
	for i := range found.Quotes {
		if q := &found.Quotes[i]; q.Site == newer.Site && q.Sequence < newer.Sequence {
			return fmt.Errorf("who asks the directory is told quote %d of %s, and %d of its holders have quote %d", q.Sequence, q.Site, told-1, newer.Sequence)
		}
	}
	return nil
}

// Scan asks a holder for what it has of a cell from a quote on, upwards and downwards: that one is
// the first (D-2).
func (t *Twin) Scan(sent *directory.Publish) error {
	if len(sent.Copies) == 0 || sent.Quote.Withdrawn {
		return nil
	}
	q, c := *sent.Quote, sent.Copies[0]
	t.made++
	q.Sequence, q.Issued = sent.Quote.Sequence+t.Base+t.made, t.Now
	c.Ring, c.Quiet = 0, false
	t.hear(q.Site, &directory.Publish{Quote: &q, Copies: []directory.Copy{c}})
	for _, value := range []int64{int64(q.Price), q.Speed} { // by one of them the cell has it in order
		at := trie.PositionOf(value, directory.Spread(q.Site))
		first := func(from trie.Position, down bool) bool {
			scan := &directory.Scan{Token: mark, Cell: c.Cell, At: from, Descending: down, Limit: 1}
			page, held := answer[*directory.Page](t.hear(t.Then[0], scan))
			return held && len(page.Quotes) > 0 && page.Quotes[0].Site == q.Site
		}
		if first(at, false) && !first(at.Next(), false) && !first(at, true) {
			return fmt.Errorf("who asks for the quotes of a cell from that of %s on downwards is told another one first, or none", q.Site)
		}
	}
	return nil
}

// Receipts changes the price of the site twice. A holder has received the first of these quotes, and
// the second gets lost: it is sent again (D-2). Time passes meanwhile.
func (t *Twin) Receipts() error {
	price := t.Site.Price()
	first, to := t.offer(price + 1)
	if first == nil {
		return nil
	}
	var second *directory.Publish
	for _, s := range t.step(&site.SetPrice{Token: mark, Price: price + 2}).Sends {
		if m, yes := s.Message.(*directory.Publish); yes && s.To == to && m.Quote.Sequence > first.Quote.Sequence && awaits(m) {
			second = m
		}
	}
	if second == nil {
		return nil
	}
	received := &directory.Published{Sequence: first.Quote.Sequence}
	for i := range first.Copies {
		received.Receipts = append(received.Receipts, directory.Receipt{Cell: first.Copies[i].Cell})
	}
	t.hear(to, received)
	sent := func(m grid.Message) bool {
		p, yes := m.(*directory.Publish)
		return yes && p.Quote.Sequence >= second.Quote.Sequence
	}
	if !t.again(to, sent) {
		return fmt.Errorf("%s has received quote %d, and is not sent quote %d again, which got lost", to, first.Quote.Sequence, second.Quote.Sequence)
	}
	return nil
}

// awaits reports whether who publishes a quote waits for the receipt of any of its copies: of one for a
// holder that is to be one no more, it does not.
func awaits(m *directory.Publish) bool {
	return slices.ContainsFunc(m.Copies, func(c directory.Copy) bool { return !c.Quiet })
}

// offer changes the price of the site, and returns what it says to a holder of its quote; nil: nothing.
func (t *Twin) offer(price grid.Price) (*directory.Publish, grid.SiteID) {
	out := t.step(&site.SetPrice{Token: mark, Price: price})
	for range askRounds {
		for _, s := range out.Sends {
			if m, yes := s.Message.(*directory.Publish); yes && !m.Quote.Withdrawn && m.Quote.Price == price {
				return m, s.To
			}
		}
		next := new(grid.Outbox)
		for _, key := range out.Keys {
			t.Site.Step(t.Now, &grid.Closest{Key: key, Peers: t.Then}, next)
		}
		out = next
	}
	return nil, ""
}
