package directory

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gridnode/grid"
)

func BenchmarkWarmQuery(b *testing.B) {
	for _, limit := range []int{1, 16} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			keeps, asker := newDirectory(Config{}), New(Config{Self: "asker"}, rand.New(rand.NewPCG(1, 2)))
			for i := range 60 {
				keeps.holder.keep(0, quoteAt(fmt.Sprint("s", i), grid.Price(i), 1, 0), &Copy{Cell: root(Price)})
			}
			keeps.holder.holding(root(Price)).upkeep.standing = mature
			var out, back grid.Outbox
			asker.Find(0, Query{Limit: limit}, &out)
			asker.Step(0, &grid.Closest{Key: out.Keys[0], Peers: []grid.SiteID{"me"}}, &out)
			scan, page := grid.Delivery{From: "asker"}, grid.Delivery{From: "me"}
			round := func() {
				scan.Message = out.Sends[0].Message
				out.Reset()
				keeps.Step(1, &scan, &back)
				page.Message = back.Sends[0].Message
				back.Reset()
				asker.Step(1, &page, &out)
				if f := out.Locals[0].(*Found); len(f.Quotes) != limit {
					b.Fatalf("found %d", len(f.Quotes))
				}
				out.Reset()
			}
			round()
			b.ReportAllocs()
			for b.Loop() {
				asker.Find(1, Query{Limit: limit}, &out)
				round()
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	holder := newDirectory(Config{})
	quotes := make([]*Quote, 60)
	for i := range quotes {
		quotes[i] = quoteAt(fmt.Sprint("s", i), grid.Price(i), 1, 0)
	}
	var out grid.Outbox
	in := grid.Delivery{}
	m := &Publish{Copies: []Copy{{Cell: root(Price)}}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Quote = quotes[i%len(quotes)]
		in.From, in.Message = m.Quote.Site, m
		holder.Step(1, &in, &out)
		out.Reset()
	}
}
