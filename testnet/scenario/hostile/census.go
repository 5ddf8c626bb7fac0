package hostile

import (
	"fmt"
	"math/rand/v2"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario/federation"
)

// Questions of the census.
const (
	askEvery = 3 * grid.Second
	settled  = 30 * grid.Second // how old a price must be for everybody to have it
	tokens   = 1 << 61          // where the tokens of its questions begin
)

// census asks the directory from honest sites, and compares what is found with what there is:
// quotes of all honest sites, whose owners change prices now and then.
type census struct {
	t       *town
	rng     *rand.Rand
	prices  []grid.Price
	changed []grid.Time // when a site's price was set last
	limits  map[uint64]int

	questions, live, found, stale int64
	gone                          grid.Time // after a revocation, in which some answer had a quote of the member
}

func takeCensus(t *town) *census {
	c := &census{t: t, rng: rand.New(draw.PCG(t.cfg.Seed, "census", draw.ForJobs)), limits: make(map[uint64]int), changed: make([]grid.Time, len(t.Sites))}
	for i := range t.Sites {
		c.prices = append(c.prices, t.Sites[i].Price)
	}
	t.n.Observe(testnet.Observer{Answer: c.answered})
	var next func()
	next = func() {
		c.ask()
		if at := t.n.Now() + askEvery; at < t.end() {
			t.n.Call(at, 0, next)
		}
	}
	t.n.Call(federation.Warmup, 0, next)
	return c
}

// ask has an honest site look for the cheapest, and now and then another change its price.
func (c *census) ask() {
	token := tokens + uint64(c.questions)
	if at := c.rng.IntN(len(c.prices)); c.t.honest(at) {
		limit := []int{8, 16, len(c.prices)}[c.rng.IntN(3)]
		c.limits[token] = limit
		c.questions++
		c.t.n.Step(at, &site.FindQuotes{Token: token, Query: directory.Query{Attribute: directory.Price, Limit: limit}})
	}
	if at := c.rng.IntN(len(c.prices)); c.t.honest(at) && c.rng.IntN(3) == 0 {
		c.prices[at], c.changed[at] = c.t.Sites[at].Price/2+grid.Price(c.rng.Int64N(int64(c.t.Sites[at].Price))), c.t.n.Now()
		c.t.n.Step(at, &site.SetPrice{Token: token + 1<<40, Price: c.prices[at]})
	}
}

// answered compares an answer with what there is.
func (c *census) answered(now grid.Time, at int, a grid.Answer) {
	limit, asked := c.limits[a.Token]
	if !asked {
		return
	}
	delete(c.limits, a.Token)
	answer, ok := a.Value.(*directory.Found)
	if !ok {
		return
	}
	got, edge := make(map[int]bool), grid.Price(0)
	for i := range answer.Quotes {
		q := &answer.Quotes[i]
		of, known := c.t.index[q.Site]
		_, signer, _ := wire.Open(directory.Domain, q.Sealed)
		switch opened, err := directory.OpenQuote(q.Sealed); {
		case !known:
			c.t.accepted("%s has found a quote of %s, which is no member", c.t.Sites[at].Name, q.Site)
			continue
		case err != nil || signer != q.Site || opened.Site != q.Site || opened.Price != q.Price || opened.Sequence != q.Sequence || opened.Name != q.Name:
			c.t.accepted("%s has found a quote of %s that it has not signed", c.t.Sites[at].Name, q.Name)
			continue
		case q.Name != c.t.members[of].Name:
			c.t.accepted("%s has found a quote of %s under the name %s", c.t.Sites[at].Name, c.t.members[of].Name, q.Name)
			continue
		case c.t.gone[of] != 0 && now > c.t.gone[of]:
			if c.gone = max(c.gone, now-c.t.gone[of]); c.t.revoked(of) {
				c.t.accepted("%s has found a quote of %s, which was revoked %v ago", c.t.Sites[at].Name, q.Name, (now - c.t.gone[of]).Duration())
			}
			continue
		case c.t.honest(of) && q.Price != c.prices[of] && now-c.changed[of] > settled:
			c.stale++
		}
		got[of] = true
		edge = max(edge, q.Price)
	}
	for i, price := range c.prices {
		due := limit >= len(c.prices) || price < edge // it is among the cheapest
		if c.t.honest(i) && now-c.changed[i] > settled && due {
			c.live++
			if got[i] {
				c.found++
			}
		}
	}
}

// enough returns an error if too few quotes were found.
func (c *census) enough() error {
	if len(c.limits) > 0 {
		return fmt.Errorf("%d questions to the directory were not answered", len(c.limits))
	}
	if c.live == 0 || c.found*100 < c.live*FoundLeast {
		return fmt.Errorf("%d of %d live quotes were found (%.2f %%), want %d %%", c.found, c.live, 100*float64(c.found)/float64(max(c.live, 1)), FoundLeast)
	}
	return nil
}
