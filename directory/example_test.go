package directory_test

import (
	"fmt"
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
)

// offer is a quote of a site with 100 processors.
func offer(name string, price grid.Price, free int64) directory.Quote {
	return directory.Quote{
		Name: name, Resources: grid.Resources{Processors: 100}, Rating: grid.Rating{Speed: 900, Bandwidth: 1600},
		Price: price, Free: free, Widest: free,
	}
}

// A directory that is alone: its router names nobody but itself.
func Example() {
	d := directory.New(directory.Config{Self: "kth"}, rand.New(rand.NewPCG(1, 2)))
	var out grid.Outbox
	d.SetQuote(0, offer("KTH SP2", 5_120_000, 40), &out)
	for _, key := range out.Keys { // the driver asks the router
		d.Step(0, &grid.Closest{Key: key, Peers: []grid.SiteID{"kth"}}, &out)
	}
	d.Find(0, directory.Query{Attribute: directory.Price, Filter: directory.Filter{FreeMin: 32}, Limit: 5}, &out)
	for _, in := range out.Locals {
		found := in.(*directory.Found)
		for _, q := range found.Quotes {
			fmt.Println(q.Name, "asks", q.Price, "credits and has", q.Free, "processors free")
		}
	}
	// Output: KTH SP2 asks 5.12 credits and has 40 processors free
}

// The driver's loop, for two sites that know each other: it carries messages and asks
// the router until nothing is left to do.
func ExampleDirectory_Step() {
	sites := []grid.SiteID{"das", "kth"}
	directories := map[grid.SiteID]*directory.Directory{}
	for i, site := range sites {
		directories[site] = directory.New(directory.Config{Self: site}, rand.New(rand.NewPCG(1, uint64(i))))
	}
	outboxes := map[grid.SiteID]*grid.Outbox{"das": {}, "kth": {}}
	carry := func(now grid.Time) (found *directory.Found) {
		for busy := true; busy; {
			busy = false
			for _, site := range sites {
				out := outboxes[site]
				outboxes[site] = &grid.Outbox{}
				for _, e := range out.Effects { // in order
					busy = true
					switch e.Kind {
					case grid.EffectClosest:
						directories[site].Step(now, &grid.Closest{Key: out.Keys[e.Index], Peers: sites}, outboxes[site])
					case grid.EffectSend:
						to := out.Sends[e.Index].To
						directories[to].Step(now, &grid.Delivery{From: site, Message: out.Sends[e.Index].Message}, outboxes[to])
					}
				}
				for _, in := range out.Locals {
					found = in.(*directory.Found)
				}
			}
		}
		return found
	}
	directories["das"].SetQuote(0, offer("DAS", 3_000_000, 12), outboxes["das"])
	directories["kth"].SetQuote(0, offer("KTH", 5_120_000, 40), outboxes["kth"])
	carry(0)
	directories["kth"].Find(grid.Second, directory.Query{Attribute: directory.Price}, outboxes["kth"])
	for _, q := range carry(grid.Second).Quotes {
		fmt.Println(q.Name, q.Price)
	}
	fmt.Println("renews before", directories["das"].NextTimer() < 5*grid.Minute)
	// Output:
	// DAS 3
	// KTH 5.12
	// renews before true
}

// A query that goes on behind the last quote of the answer before.
func ExampleDirectory_Find() {
	d := directory.New(directory.Config{Self: "kth"}, rand.New(rand.NewPCG(1, 2)))
	var out grid.Outbox
	find := func(q directory.Query) *directory.Found {
		out.Reset()
		d.Find(0, q, &out)
		for _, key := range out.Keys {
			d.Step(0, &grid.Closest{Key: key, Peers: []grid.SiteID{"kth"}}, &out)
		}
		return out.Locals[0].(*directory.Found)
	}
	d.SetQuote(0, offer("KTH", 5_120_000, 40), &out)
	for _, key := range out.Keys {
		d.Step(0, &grid.Closest{Key: key, Peers: []grid.SiteID{"kth"}}, &out)
	}
	first := find(directory.Query{Attribute: directory.Speed, Descending: true, Limit: 1})
	fmt.Println(len(first.Quotes), "quote, the last:", first.End)
	behind := directory.Behind(&first.Quotes[0], directory.Speed)
	rest := find(directory.Query{Attribute: directory.Speed, Descending: true, After: behind})
	fmt.Println(len(rest.Quotes), "more, the last:", rest.End)
	// Output:
	// 1 quote, the last: true
	// 0 more, the last: true
}

// Load goes to the siblings on a gossip topic when it changes, but not too often.
func ExampleDirectory_SetLoad() {
	cfg := directory.Config{Self: "das", Topic: "load", GossipInterval: 2 * grid.Second}
	d := directory.New(cfg, rand.New(rand.NewPCG(1, 2)))
	sibling := directory.New(directory.Config{Self: "kth"}, rand.New(rand.NewPCG(1, 3)))
	var out, none grid.Outbox
	d.SetLoad(0, directory.Load{Free: 12}, &out)
	d.SetLoad(grid.Second, directory.Load{Free: 3}, &out) // waits for the interval
	for _, e := range out.Effects {
		if e.Kind == grid.EffectPublish {
			sibling.Step(grid.Second, &grid.Delivery{From: "das", Message: out.Sends[e.Index].Message}, &none)
		}
	}
	load, ok := sibling.Load("das")
	fmt.Println(load.Free, ok, "next report at", d.NextTimer())
	// Output: 12 true next report at 2s
}
