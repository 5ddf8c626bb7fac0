package liar

import (
	"fmt"

	"gridnode/directory"
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
