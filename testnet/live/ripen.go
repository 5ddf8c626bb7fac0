package live

import (
	"context"
	"fmt"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
)

// ripeQueries are asked at every site before a measurement, again and again until the words
// of one holder and its witnesses are enough.
var ripeQueries = []directory.Query{
	{Attribute: directory.Price, Limit: 1},
	{Attribute: directory.Speed, Descending: true, Limit: 1},
}

// ripeMessages is what a query takes then: a young directory asks all four holders.
const ripeMessages = 6

// How long to wait before a query is asked again.
const (
	settledAgain = 20 * grid.Millisecond
	ripeAgain    = grid.Second / 5
)

// ripen asks the sites of a virtual network what real nodes are asked before a measurement:
// for all quotes (Live.settled), and ripeQueries (Live.mature). Who
// was asked knows of holders that it had missed; a site that was not would find out during
// the measurement, and its queries would cost more then.
func ripen(ctx context.Context, n *testnet.Network) error {
	until := n.Now() + grid.FromDuration(matureMax)
	var found *directory.Found
	token := uint64(1) << 63 // no job's
	n.Observe(testnet.Observer{Answer: func(_ grid.Time, _ int, a grid.Answer) {
		if f, ok := a.Value.(*directory.Found); ok && a.Token == token {
			found = f
		}
	}})
	// ask asks every site in turn, each again after a span until the answer is good.
	ask := func(query directory.Query, good func(*directory.Found) bool, again grid.Time) error {
		for i := 0; i < n.Len(); {
			if n.Now() >= until {
				return fmt.Errorf("the directory of the virtual network did not come to rest within %v", matureMax)
			}
			token, found = token+1, nil
			n.Inject(n.Now(), i, &site.FindQuotes{Token: token, Query: query})
			if err := n.Run(ctx, until, func() bool { return found != nil }); err != nil {
				return err
			}
			if found != nil && found.Err == nil && good(found) {
				i++
			} else if err := n.Run(ctx, min(n.Now()+again, until), nil); err != nil {
				return err
			}
		}
		return nil
	}
	all := directory.Query{Attribute: directory.Price, Limit: min(n.Len(), directory.LimitMax)}
	complete := func(f *directory.Found) bool { return len(f.Quotes) == all.Limit }
	if err := ask(all, complete, settledAgain); err != nil {
		return err
	}
	ripe := func(f *directory.Found) bool { return f.Messages <= ripeMessages }
	for _, query := range ripeQueries {
		if err := ask(query, ripe, ripeAgain); err != nil {
			return err
		}
	}
	return nil
}
