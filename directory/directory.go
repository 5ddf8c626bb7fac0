package directory

import (
	"math/rand/v2"

	"gridnode/internal/grid"
	"gridnode/internal/wire"
)

// Config is what a directory is told about its site. A zero field takes the
// default named beside it.
type Config struct {
	Self       grid.SiteID
	Federation string // its name, part of every cell's key

	Lifetime     grid.Time // of quotes, at most 1 h; 10 min
	Replicas     int       // sites that hold a cell, r; 4
	CellMax      int       // live quotes in a cell before it splits, B; 64
	LoadInterval grid.Time // least time between quotes that differ in load only; 1 s
	Timeout      grid.Time // of one request to a holder; 2 s

	Topic             string    // gossip topic for load reports; empty: none
	GossipInterval    grid.Time // least time between load reports; 2 s
	HeartbeatInterval grid.Time // a report is published at least so often; 30 s

	// Seal signs a quote's payload (wire.Seal with Domain). It is nil in virtual
	// time, where messages are never encoded.
	Seal func(payload []byte) ([]byte, error)
}

// Directory is one site's part of the federation directory: it publishes the
// site's quote, holds cells of the index for others, and answers queries. It reads
// no clock and does no I/O. Not safe for concurrent use.
type Directory struct {
	cfg  Config
	rng  *rand.Rand
	own  Quote
	next QueryID
}

// New returns a directory that knows nobody.
func New(cfg Config, rng *rand.Rand) *Directory { return &Directory{cfg: cfg, rng: rng} }

// Step applies one input at time now and appends the effects to out.
func (d *Directory) Step(now grid.Time, in grid.Input, out *grid.Outbox) {}

// NextTimer returns when Step next needs a grid.Tick, and grid.Never if it needs none.
func (d *Directory) NextTimer() grid.Time { return grid.Never }

// SetQuote publishes what changed.
func (d *Directory) SetQuote(now grid.Time, q Quote, out *grid.Outbox) { d.own = q }

// Withdraw takes the site's quote out of the directory.
func (d *Directory) Withdraw(now grid.Time, out *grid.Outbox) { d.own = Quote{} }

// Find begins a query. The answer comes as a *Found among the outbox's Locals.
func (d *Directory) Find(now grid.Time, q Query, out *grid.Outbox) QueryID {
	d.next++
	found := &Found{ID: d.next, End: true}
	if d.own.Site != "" && q.Filter.Match(&d.own) {
		found.Quotes = append(found.Quotes, d.own)
	}
	out.Local(found)
	return d.next
}

// Known returns the newest quote seen of a site.
func (d *Directory) Known(site grid.SiteID) (Quote, bool) { return d.own, d.own.Site == site }

// Load returns the newest gossiped load report of a site.
func (d *Directory) Load(site grid.SiteID) (Load, bool) { return Load{}, false }

// Load is what a site gossips about itself.
type Load struct {
	Site       grid.SiteID
	Free       int64     // idle processors
	Widest     int64     // processors of the widest job that could start now
	Queued     int64     // jobs waiting
	QueuedWork int64     // their processor-seconds by the estimates
	Sequence   uint64    // rises with every report
	Issued     grid.Time // on the site's clock
}

// Protocol is how directories speak to each other.
var Protocol = wire.Protocol{ID: "/gridnode/directory/1.0.0"}

// SetLoad gossips what changed.
func (d *Directory) SetLoad(now grid.Time, load Load, out *grid.Outbox) {}
