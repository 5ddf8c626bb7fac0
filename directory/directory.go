package directory

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Config is what a directory is told about its site. A zero field takes the
// default named beside it.
type Config struct {
	Self       grid.SiteID
	Federation string // its name, part of every cell's key; may be empty; at most 64 bytes

	Lifetime     grid.Time // of quotes, at most a day; 10 min
	Replicas     int       // sites that hold a cell, r, at most 16; 4
	CellMax      int       // live quotes in a cell before it splits, B, 8 to 1024; 64
	LoadInterval grid.Time // least time between quotes that differ in load only, at first; 1 s
	Timeout      grid.Time // of one request to a holder, at most Lifetime/4; 2 s or Lifetime/4

	Topic             string    // gossip topic for load reports; empty: none are published
	GossipInterval    grid.Time // least time between load reports; 2 s
	HeartbeatInterval grid.Time // a report is published at least so often; 30 s

	// Seal signs a quote's payload: wire.Seal with Domain. It is nil in virtual
	// time, where messages are never encoded. An error of it is fatal.
	Seal func(payload []byte) ([]byte, error)

	Slabs *Slabs // for messages; nil: its own
}

// ErrConfig is wrapped by every error of Config.Validate.
var ErrConfig = errors.New("directory configuration")

// Validate returns an error wrapping ErrConfig that names the first bad field.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case len(c.Self) == 0 || len(c.Self) > siteMax:
		return bad("site ID of %d bytes, want 1 to %d", len(c.Self), siteMax)
	case len(c.Federation) > nameMax:
		return bad("federation name of %d bytes, at most %d", len(c.Federation), nameMax)
	case c.Lifetime < 0 || c.Lifetime > lifetimeMax:
		return bad("lifetime of %v, want more than 0, at most %v", c.Lifetime, lifetimeMax)
	case c.Replicas < 0 || c.Replicas > replicasMax:
		return bad("%d replicas, want 1 to %d", c.Replicas, replicasMax)
	case c.CellMax < 0 || c.CellMax > cellMaxMax || c.CellMax > 0 && c.CellMax < cellMaxMin:
		return bad("%d quotes in a cell, want %d to %d", c.CellMax, cellMaxMin, cellMaxMax)
	case c.LoadInterval < 0 || c.Timeout < 0 || c.GossipInterval < 0 || c.HeartbeatInterval < 0:
		return bad("a span is negative")
	case max(c.LoadInterval, c.GossipInterval, c.HeartbeatInterval) > grid.Day:
		return bad("a span is over %v", grid.Day)
	case c.Timeout > c.withDefaults().Lifetime/4:
		return bad("timeout of %v, at most a quarter of the lifetime of quotes", c.Timeout)
	}
	return nil
}

// Bounds of a configuration.
const (
	replicasMax = 16
	cellMaxMin  = 8
	cellMaxMax  = 1024
)

// withDefaults returns c with every zero field filled in.
func (c Config) withDefaults() Config {
	orTime := func(v *grid.Time, def grid.Time) {
		if *v == 0 {
			*v = def
		}
	}
	orTime(&c.Lifetime, 10*grid.Minute)
	orTime(&c.LoadInterval, grid.Second)
	orTime(&c.Timeout, min(2*grid.Second, max(c.Lifetime/4, 1)))
	orTime(&c.GossipInterval, 2*grid.Second)
	orTime(&c.HeartbeatInterval, 30*grid.Second)
	if c.Replicas == 0 {
		c.Replicas = 4
	}
	if c.CellMax == 0 {
		c.CellMax = 64
	}
	return c
}

// knownMax bounds the sites whose newest quote is remembered.
const knownMax = 4096

// Directory is one site's part of the federation directory: it publishes the
// site's quote, holds cells of the index for others, and answers queries. It reads
// no clock and does no I/O. Not safe for concurrent use.
type Directory struct {
	cfg    Config
	rng    *rand.Rand
	spread uint64 // of Config.Self

	// Rejected counts what other sites sent and should not have: quotes that have
	// expired or come from the future, or that do not answer the question.
	Rejected int64

	// Outdated counts quotes that a holder had and whose site has published elsewhere
	// or withdrawn since. Just after a change that is no fault.
	Outdated int64

	// QueryLookups counts the look-ups of holders that queries asked for; all others
	// are for keeping the index.
	QueryLookups int64

	// The own quote.
	own         *Quote // nil before the first
	changed     uint64 // sequence since which the own quote says what it says
	pace        pace
	renewals    uint32 // of the own quote
	republishAt grid.Time
	listings    [attributes]listing

	// Cells held for others.
	holdings   []*holding // ordered by cell
	records    int        // entries in all of them
	publishers map[grid.SiteID]int32
	mirrored   []*mirrored // copies of hot cells that others hold, at most mirroredMax
	upkeepAt   grid.Time

	// Where to find what.
	maps     [attributes]trie.Map
	rings    map[cell]*ring
	lookups  map[grid.Key]*ring // look-ups under way
	began    grid.Time          // when this site first had to do with a cell; grid.Never before
	fewPeers bool               // some ring is of fewer sites than are to hold its cell
	suspects []suspect
	requests requests

	// Queries.
	queries      map[QueryID]*query
	deadlines    []QueryID // in order of their deadlines, from overdueAt on; some are finished
	overdueAt    int
	spareQueries []*query
	lastQuery    QueryID

	known  newest[*Quote]
	loads  newest[Load]
	gossip gossip

	*Slabs          // what is handed out is the driver's
	mail   []letter // copies that go out at the end of the call
	voids  []voidLetter
	sites  []grid.SiteID // reused
	peers  []grid.SiteID // reused by inspect
	due    []*holding    // reused by maintain
}

// Slabs are what messages and answers are cut from, a chunk of each type at a time.
// Directories that take turns, as those of one virtual network, may share one: a chunk
// for each of thousands of sites would be most of their memory. The zero value is
// ready. Not safe for concurrent use.
type Slabs struct {
	scans        grid.Slab[Scan]
	pages        grid.Slab[Page]
	publishes    grid.Slab[Publish]
	answers      grid.Slab[Published]
	withdraws    grid.Slab[Withdraw]
	reports      grid.Slab[Report]
	reporteds    grid.Slab[Reported]
	founds       grid.Slab[Found]
	quoteSpace   []*Quote
	receiptSpace []Receipt
	copySpace    []Copy
	foundSpace   []Quote
}

// New returns a directory that knows nobody. A configuration that Validate rejects
// is the caller's bug: New panics.
func New(cfg Config, rng *rand.Rand) *Directory {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	d := &Directory{
		cfg: cfg.withDefaults(), rng: rng, spread: spreadOf(cfg.Self),
		began: grid.Never, pace: pace{flushAt: grid.Never}, republishAt: grid.Never, upkeepAt: grid.Never,
		known: newest[*Quote]{max: knownMax}, loads: newest[Load]{max: loadsMax},
		gossip: gossip{next: grid.Never},
		Slabs:  cmp.Or(cfg.Slabs, new(Slabs)),
	}
	for a := range d.maps {
		d.maps[a].Reset()
		d.listings[a].retry = grid.Never
	}
	return d
}

// Step applies one input at time now and appends to out what the driver must carry
// out in order. now never decreases. Messages it does not expect change nothing; an
// unknown input type is our bug: it panics.
func (d *Directory) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		d.tick(now, out)
	case *grid.Delivery:
		d.deliver(now, in.From, in.Message, out)
	case *grid.Undelivered:
		d.undelivered(now, in.To, in.Message, out)
	case *grid.Closest:
		d.onClosest(now, in, out)
	default:
		panic(fmt.Sprintf("directory: unknown input %T", in))
	}
	d.post(out)
}

// NextTimer returns when Step next needs a grid.Tick, and grid.Never if it needs none.
func (d *Directory) NextTimer() grid.Time {
	t := min(d.pace.flushAt, d.republishAt, d.upkeepAt, d.requests.next(), d.gossip.next)
	for a := range d.listings {
		t = min(t, d.listings[a].retry)
	}
	if q := d.oldest(); q != nil {
		t = min(t, q.deadline)
	}
	return t
}

// oldest returns the query under way that began first, or nil.
func (d *Directory) oldest() *query {
	for ; d.overdueAt < len(d.deadlines); d.overdueAt++ {
		if q := d.queries[d.deadlines[d.overdueAt]]; q != nil {
			if d.overdueAt > queriesMax {
				d.deadlines = slices.Delete(d.deadlines, 0, d.overdueAt)
				d.overdueAt = 0
			}
			return q
		}
	}
	d.deadlines, d.overdueAt = d.deadlines[:0], 0
	return nil
}

// tick does what is due.
func (d *Directory) tick(now grid.Time, out *grid.Outbox) {
	for q, ok := d.requests.overdue(now); ok; q, ok = d.requests.overdue(now) {
		d.unanswered(now, q, false, out)
	}
	for q := d.oldest(); q != nil && q.deadline <= now; q = d.oldest() {
		q.failed = true
		d.finish(now, q, out)
	}
	if d.pace.flushAt <= now {
		d.flush(now, out)
	}
	if d.republishAt <= now {
		d.renew(now, out)
	}
	for a := range d.listings {
		if l := &d.listings[a]; l.retry <= now {
			d.lapse(now, l, out)
		}
	}
	if d.upkeepAt <= now {
		d.maintain(now, out)
	}
	if d.gossip.next <= now {
		d.beat(now, out)
	}
}

// deliver takes a message from another site.
func (d *Directory) deliver(now grid.Time, from grid.SiteID, message grid.Message, out *grid.Outbox) {
	d.heard(now, from)
	switch m := message.(type) {
	case *Publish:
		d.onPublish(now, from, m, out)
	case *Withdraw:
		if m.Quote.Site != from {
			d.Rejected++
			return
		}
		d.answerOne(from, m.Quote.Sequence, d.onWithdraw(now, m), out)
	case *Published:
		for i := range m.Receipts {
			d.onReceipt(now, from, m.Sequence, &m.Receipts[i], out)
		}
	case *Scan:
		if m.Limit == 0 {
			d.compared(now, from, m.Cell, out)
		}
		if m.Via != "" {
			d.onScanVia(now, from, m, out)
		} else {
			out.Send(from, d.onScan(now, from, m))
		}
	case *Page:
		if m.Token == 0 {
			d.voided(now, from, m)
		}
		if q, ok := d.requests.take(m.Token, from); ok {
			d.onAnswer(now, q, m, out)
		}
	case *Report:
		reply := d.reporteds.New()
		*reply = d.onReport(now, from, m)
		out.Send(from, reply)
	case *Reported:
		if q, ok := d.requests.take(m.Token, from); ok && (q.purpose == forWay || q.purpose == forKeep) {
			d.onReported(now, q, m, out)
		}
	case *LoadReport:
		d.onLoad(now, from, &m.Load)
	}
}

// onAnswer takes a page that was asked for.
func (d *Directory) onAnswer(now grid.Time, r request, p *Page, out *grid.Outbox) {
	switch r.purpose {
	case forSum:
		d.onSum(now, r, p)
	case forHint:
		d.onGuided(now, r.cell, p, out)
	case forCopy:
		d.onCopy(now, r, p, out)
	case forScan:
		q := d.queries[r.query]
		if q == nil {
			return
		}
		q.messages++
		if q.visit.number != r.round {
			return // the visit ended without it
		}
		q.visit.open--
		enough := p.Mature
		ring := d.rings[cell{q.ask.Attribute, q.visit.cell}]
		if ring != nil && p.Held {
			same := d.compareRing(now, ring, r.site, p.Ring)
			enough = enough && same // else one of the two knows better who holds the cell
			if same && p.Ring != 0 {
				q.visit.agreed++
			}
		}
		credible, honest := d.onPage(now, q, p, enough)
		switch {
		case !honest:
			d.distrust(now, r.site)
		case enough && credible && ring != nil:
			ring.heed(r.site, r.site == q.visit.mirror, p.Mirrors)
		}
		if r.site == q.visit.mirror {
			if !enough || !honest {
				ring.forgo(r.site) // a holder is asked next
			}
		} else {
			q.visit.young = q.visit.young || !enough || !credible
		}
		d.run(now, q, out)
	}
}

// undelivered takes the news that a site cannot be reached.
func (d *Directory) undelivered(now grid.Time, to grid.SiteID, message grid.Message, out *grid.Outbox) {
	var token uint64
	switch m := message.(type) {
	case *Scan:
		token = m.Token
	case *Report:
		token = m.Token
	case *Publish:
		for i := range m.Copies {
			d.unpublished(now, to, m.Copies[i].Cell, out)
		}
		return
	case *Withdraw:
		d.unpublished(now, to, m.Cell, out)
		return
	}
	if q, ok := d.requests.take(token, to); ok {
		d.unanswered(now, q, true, out)
	}
}

// unanswered goes on without the answer to a request.
func (d *Directory) unanswered(now grid.Time, r request, certain bool, out *grid.Outbox) {
	d.strike(now, r.site, certain)
	switch r.purpose {
	case forScan:
	case forHint:
		d.onGuided(now, r.cell, nil, out)
		return
	case forCopy:
		d.onCopy(now, r, nil, out)
		return
	default:
		d.fail(now, r)
		return
	}
	if q := d.queries[r.query]; q != nil && q.visit.number == r.round {
		if r.site == q.visit.mirror {
			d.rings[cell{q.ask.Attribute, q.visit.cell}].forgo(r.site)
		}
		q.visit.open--
		d.run(now, q, out)
	}
}

// unpublished goes on without a holder of the own quote.
func (d *Directory) unpublished(now grid.Time, to grid.SiteID, c cell, out *grid.Outbox) {
	l := &d.listings[c.attribute]
	for i := range l.places {
		p := &l.places[i]
		for j := range p.copies {
			if r := &p.copies[j]; p.cell == c && r.site == to && (r.deadline != 0 || p.role != leaving && r.has == r.sent && r.sent != 0) {
				d.miss(now, p, r, true)
				d.send(now, l, loud, out)
				return
			}
		}
	}
}

// learn remembers a quote if it is the newest of its site, and else returns the one
// that is newer.
func (d *Directory) learn(q *Quote) (newer *Quote) {
	v, fresh := d.known.put(q.Site)
	if fresh || (*v).Sequence < q.Sequence {
		*v = q
	}
	if (*v).Sequence == q.Sequence {
		return nil
	}
	return *v
}

// Known returns the newest quote seen of a site, which may have expired or been
// withdrawn.
func (d *Directory) Known(site grid.SiteID) (Quote, bool) {
	if q := d.known.get(site); q != nil {
		return **q, true
	}
	return Quote{}, false
}
