package liar

import (
	"fmt"
	"slices"
	"strconv"

	"gridnode/directory"
	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/node/site"
)

// Directory floods a site that holds cells of the directory: with quotes of very many
// sites for one cell, of which it has got one, or with very many quotes of one site.
func (t *Twin) Directory(sent *directory.Publish) error {
	d := site.CoresOf(t.Site).Directory
	if len(sent.Copies) == 0 || sent.Quote.Withdrawn {
		return nil
	}
	quote := func(of grid.SiteID) *directory.Quote {
		q := *sent.Quote
		t.made++
		q.Site, q.Sequence, q.Issued = of, q.Sequence+t.Base+t.made, t.Now // newer than any that is known of it
		return &q
	}
	if t.Base>>8%2 == 0 {
		c := sent.Copies[0]
		if c.Cell.Length == 128 { // it has none below
			return nil
		}
		c.Spare, c.Skip = true, trie.PrefixOf(c.Cell.Bits, c.Cell.Length+1) // spares are of no cell below, so it cannot be divided
		for i := range crowd {
			m := &directory.Publish{Quote: quote(grid.SiteID(fmt.Sprintf("crowd-%d", i))), Copies: []directory.Copy{c}}
			t.Site.Step(t.Now, &grid.Delivery{From: m.Quote.Site, Message: m}, new(grid.Outbox)) // of members there are not so many
		}
		return d.Audit(t.Now)
	}
	for i := range uint(prices) {
		q := quote(t.Then[0])
		if q.Price, q.Speed = 1<<(2*i), min(int64(1)<<(2*i), grid.RatingMax); q.Check() != nil { // in other cells, in either order
			break
		}
		var copies []directory.Copy
		for length := uint8(depthLeast); length <= depth; length++ {
			for bits := range uint64(1) << length {
				c := sent.Copies[0]
				c.Cell.Prefix, c.Spare = trie.PrefixOf(trie.Position{Hi: bits << (64 - length)}, length), false
				copies = append(copies, c)
			}
		}
		for part := range slices.Chunk(copies, directory.CopiesMax) {
			t.Site.Step(t.Now, &grid.Delivery{From: t.Then[0], Message: &directory.Publish{Quote: q, Copies: part}}, new(grid.Outbox))
		}
	}
	return d.Audit(t.Now)
}

// How much a flood has.
const (
	crowd  = 4*64 + 8 // quotes for one cell: more than one keeps
	prices = 30

	// Its cells are all that have so many bits.
	depthLeast, depth = 3, 7

	queries = 64 // more than a site has asked that has just come up
)

// Queue submits more jobs that have to run at several sites than may wait, or be claimed there:
// one is placed at once, if it can be, and the others are as wide as the site, so that they wait.
func (t *Twin) Queue(most int) error {
	c := site.CoresOf(t.Site).Coordinator
	if c == nil {
		return nil
	}
	wide := t.Site.Offer().Processors
	for i := range most + 2 {
		id, width := t.task(), int64(1)
		if i > 0 {
			width = wide
		}
		t.step(&site.Submit{Job: &grid.Job{
			ID: id.Job, Home: t.ID, User: id.Job.String(), Resources: grid.Resources{Processors: width}, Tasks: width, Submit: t.Now, Estimate: grid.Minute,
			Deadline: grid.Never, Budget: grid.NoBudget, Goal: grid.GoalLocal, Coallocate: &grid.Coallocation{Components: strconv.FormatInt(width, 10), CCR: -1},
		}})
	}
	for id := range directory.QueryID(queries) { // they are handed over once the sites have been looked at
		t.step(&directory.Found{ID: id, End: true})
	}
	if waiting := c.Queue().Len() + c.Claiming(); waiting > most {
		return fmt.Errorf("%d jobs wait to be placed at several sites, %d may", waiting, most)
	}
	return nil
}
