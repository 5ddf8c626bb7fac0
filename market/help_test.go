package market

import (
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms"
)

func lrmsRequest(number uint64, processors int64, span grid.Time) lrms.Request {
	return lrms.Request{ID: grid.TaskID{Job: grid.JobID{Hi: 9, Lo: number}, Epoch: 1}, Processors: processors, Estimate: span}
}

// list returns the published quotes in the order in which the sites were added.
func (n *network) list() []directory.Quote {
	var quotes []directory.Quote
	for _, id := range n.order {
		quotes = append(quotes, n.quotes[id])
	}
	return quotes
}
