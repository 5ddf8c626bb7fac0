package directory_test

import (
	"fmt"
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
)

// A directory that is alone: its router names nobody but itself.
func Example() {
	d := directory.New(directory.Config{Self: "kth"}, rand.New(rand.NewPCG(1, 2)))
	var out grid.Outbox
	d.SetQuote(0, directory.Quote{
		Name: "KTH SP2", Resources: grid.Resources{Processors: 100}, Rating: grid.Rating{Speed: 900, Bandwidth: 1600},
		Price: 5_120_000, Free: 40, Widest: 40,
	}, &out)
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
