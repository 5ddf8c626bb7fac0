package directory

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Directory is one site's part of the federation directory: it publishes the
// site's quote, holds cells of the index for others, and answers queries. It reads
// no clock and does no I/O. Not safe for concurrent use.
//
// It is put together of parts that own their state. A Directory only gives each input
// to the part whose it is:
//
//	publisher  the own quote, and the copies of it at the holders of its cells
//	seeker     the queries of this site
//	holder     the cells that this site holds for others
//	images     copies of hot cells that it holds as a mirror
//	rings      who holds which cell; which sites are suspect
//	guide      finds holders by asking those of cells above
//	gossip     load of this site and of its siblings
type Directory struct {
	Counts
	shared

	rings     rings
	guide     guide
	holder    holder
	images    images
	publisher publisher
	seeker    seeker
	gossip    gossip
}

// New returns a directory that knows nobody. A configuration that Validate rejects
// is the caller's bug: New panics.
func New(cfg Config, rng *rand.Rand) *Directory {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	d := &Directory{}
	d.shared = shared{
		cfg: cfg.withDefaults(), rng: rng, spread: spreadOf(cfg.Self), Slabs: cmp.Or(cfg.Slabs, new(Slabs)),
		known: newest[*Quote]{max: knownMax}, counts: &d.Counts,
	}
	for a := range d.maps {
		d.maps[a] = trie.NewMap()
	}
	d.rings = newRings(&d.shared)
	d.holder = newHolder(&d.shared, &d.rings, d.own)
	d.guide = guide{shared: &d.shared, rings: &d.rings, holder: &d.holder}
	d.images = images{shared: &d.shared, suspects: &d.rings.suspects, holder: &d.holder}
	d.publisher = newPublisher(&d.shared, &d.rings, &d.guide, &d.holder)
	d.seeker = seeker{shared: &d.shared, rings: &d.rings, holder: &d.holder}
	d.gossip = newGossip(&d.shared)
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
		r := d.rings.onClosest(now, in)
		if r != nil {
			d.holder.named(now, r.cell, len(in.Peers))
		}
		d.goOn(now, r, out)
	default:
		panic(fmt.Sprintf("directory: unknown input %T", in))
	}
	d.post(out)
}

// NextTimer returns when Step next needs a grid.Tick, and grid.Never if it needs none.
func (d *Directory) NextTimer() grid.Time {
	return min(d.publisher.next(), d.holder.upkeepAt, d.requests.next(), d.gossip.next(), d.seeker.next())
}

// SetQuote publishes what the site offers from now on. Everything up to Foreign is
// the caller's, the rest is filled in here. A changed price, speed or size goes out
// at once; what differs in load only goes out if it matters, at a bounded rate, and
// else with the next renewal. A quote that violates its bounds is the caller's bug: it
// panics.
func (d *Directory) SetQuote(now grid.Time, q Quote, out *grid.Outbox) {
	d.publisher.set(now, q, out)
	d.post(out)
}

// Republish publishes the site's quote anew, if it has one, where holders may have refused it.
func (d *Directory) Republish(now grid.Time, out *grid.Outbox) {
	d.publisher.again(now, out)
	d.post(out)
}

// Withdraw takes the site's quote out of the directory. SetQuote puts it back.
func (d *Directory) Withdraw(now grid.Time, out *grid.Outbox) {
	d.publisher.withdraw(now, out)
	d.post(out)
}

// Find begins a query. The answer, a *Found, comes among the outbox's Locals, in
// this call or a later Step, within 8 × Config.Timeout. A query whose fields are
// out of bounds is the caller's bug: it panics.
func (d *Directory) Find(now grid.Time, ask Query, out *grid.Outbox) QueryID {
	return d.seeker.find(now, ask, out)
}

// Around draws another place among the quotes that have the value of q: one in the
// same cell as place, as far as this site knows the cells, so that asking from there
// needs no other holders. random is where in it, from 0 to the largest value.
func (d *Directory) Around(q *Quote, a Attribute, place, random uint64) (spread uint64) {
	width := trie.PositionOf(q.value(a), 0).Width()
	fixed := max(d.maps[a].Find(trie.PositionOf(q.value(a), place), nil).Length, width) - width
	if fixed >= 64 {
		return place
	}
	return place&^(^uint64(0)>>fixed) | random>>fixed
}

// Known returns the newest quote seen of a site, which may have expired or been
// withdrawn.
func (d *Directory) Known(site grid.SiteID) (Quote, bool) {
	if q := d.known.get(site); q != nil {
		return **q, true
	}
	return Quote{}, false
}

// Memory returns what the directory is to Remember after a restart.
func (d *Directory) Memory() []Ring { return d.publisher.remembered() }

// Remember has a directory that knows nobody yet deal with those who held the cells before a restart.
// They are believed like any site's hint: for a short time, and then asked who the others are.
func (d *Directory) Remember(now grid.Time, known []Ring) {
	for i := range known {
		r := &known[i]
		d.remap(now, r.Attribute)
		d.maps[r.Attribute].Add(r.Cell)
		d.rings.hint(now, cell{r.Attribute, r.Cell}, d.cfg.Self, r.Holders)
	}
}

// Kept yields the copies of quotes that this site keeps for others, in all cells. They must
// not be changed.
func (d *Directory) Kept(yield func(*Quote) bool) {
	for _, h := range d.holder.holdings {
		for i := range h.records {
			if !yield(h.records[i].quote) {
				return
			}
		}
	}
}

// SetLoad gossips the site's load if it changed so that it matters, at most every
// Config.GossipInterval. Without a Config.Topic or Config.Siblings it does nothing.
func (d *Directory) SetLoad(now grid.Time, load Load, out *grid.Outbox) { d.gossip.set(now, load, out) }

// Resound tells those siblings the load who have not heard of it: there are new ones.
func (d *Directory) Resound(now grid.Time, out *grid.Outbox) { d.gossip.resound(now, out) }

// Unheard says that a sibling may have forgotten what it has heard: Resound tells it.
func (d *Directory) Unheard(site grid.SiteID) { d.gossip.unheard(site) }

// Load returns the newest load report gossiped by another site.
func (d *Directory) Load(site grid.SiteID) (Load, bool) { return d.gossip.load(site) }

// Headed returns the newest load reports of the sites that consent to be headed by
// one, in order of their IDs. It takes time proportional to how many reports are
// remembered.
func (d *Directory) Headed(by grid.SiteID) (reports []Load) { return d.gossip.headed(by) }

// Silence returns for how long a headed site that is there may be silent: three
// heartbeats may be lost.
func (d *Directory) Silence() grid.Time { return 4 * d.cfg.HeartbeatInterval / headedBeats }

// tick does what is due.
func (d *Directory) tick(now grid.Time, out *grid.Outbox) {
	for r, ok := d.requests.overdue(now); ok; r, ok = d.requests.overdue(now) {
		d.unanswered(now, r, false, out)
	}
	d.seeker.tick(now, out)
	d.publisher.tick(now, out)
	d.holder.tick(now, out)
	d.gossip.tick(now, out)
}

// deliver gives a message from another site to the part whose it is.
func (d *Directory) deliver(now grid.Time, from grid.SiteID, message grid.Message, out *grid.Outbox) {
	for _, a := range d.rings.heard(now, from) {
		d.publisher.hasten(now, a)
	}
	d.publisher.heard(now, from, out)
	switch m := message.(type) {
	case *Publish:
		d.holder.onPublish(now, from, m, out)
	case *Withdraw:
		d.holder.onWithdraw(now, from, m, out)
	case *Published:
		for i := range m.Receipts {
			d.publisher.onReceipt(now, from, m.Sequence, &m.Receipts[i], out)
		}
	case *Scan:
		if m.Limit == 0 {
			d.holder.compared(now, from, m.Cell, out)
		}
		if m.Via != "" {
			d.images.onScan(now, from, m, out)
		} else {
			out.Send(from, d.holder.onScan(now, from, m))
		}
	case *Page:
		if m.Token == 0 {
			d.images.voided(now, from, m)
		}
		if r, ok := d.requests.take(m.Token, from); ok {
			d.rings.suspects.answered(from)
			d.answered(now, r, m, out)
		}
	case *Report:
		d.holder.onReport(now, from, m, out)
	case *Reported:
		if r, ok := d.requests.take(m.Token, from); ok && (r.purpose == forWay || r.purpose == forKeep) {
			d.holder.onReported(now, r, m, out)
		}
	case *LoadReport:
		d.gossip.onLoad(now, from, &m.Load)
	}
}

// answered gives a page to the part that asked for it.
func (d *Directory) answered(now grid.Time, r request, p *Page, out *grid.Outbox) {
	switch r.purpose {
	case forScan:
		d.seeker.onPage(now, r, p, out)
	case forSum:
		d.holder.onSum(now, r, p, out)
	case forCopy:
		d.holder.onCopies(now, r, p, out)
	case forHint:
		d.goOn(now, d.guide.onPage(now, r.cell, r.site, p, out), out)
	case forImage:
		d.images.onPage(now, r, p, out)
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
			d.publisher.undelivered(now, to, m.Copies[i].Cell, out)
		}
		return
	case *Withdraw:
		d.publisher.undelivered(now, to, m.Cell, out)
		return
	}
	if r, ok := d.requests.take(token, to); ok {
		d.unanswered(now, r, true, out)
	}
}

// unanswered lets the part that made a request go on without the answer.
func (d *Directory) unanswered(now grid.Time, r request, certain bool, out *grid.Outbox) {
	d.rings.suspects.strike(now, r.site, certain)
	switch r.purpose {
	case forScan:
		d.seeker.unanswered(now, r, out)
	case forHint:
		d.goOn(now, d.guide.onPage(now, r.cell, r.site, nil, out), out)
	case forImage:
		d.images.onPage(now, r, nil, out)
	case forSign, forCopy: // it was a suspect before; the next round sees what is missing
	default:
		d.holder.unanswered(now, r)
	}
}

// goOn lets those who wait for the holders of a cell go on; nil: nobody does.
func (d *Directory) goOn(now grid.Time, r *ring, out *grid.Outbox) {
	if r != nil {
		d.publisher.goOn(now, r.cell, out)
		d.seeker.goOn(now, r, out)
	}
}

// own takes what this site, as a holder, has to tell itself about its own quote.
func (d *Directory) own(now grid.Time, sequence uint64, r *Receipt, out *grid.Outbox) {
	d.publisher.onReceipt(now, d.cfg.Self, sequence, r, out)
}

// post sends what the parts have collected during a call.
func (d *Directory) post(out *grid.Outbox) {
	d.holder.postVoids(out)
	d.publisher.post(out)
}

// auditLate is how long after it was due something may wait still: a timer may be late.
const auditLate = grid.Minute

// Audit returns what is wrong with a directory that is at rest, between two Steps; nil: nothing is.
//
//   - What its site holds for others is within its bounds: of others' quotes, as many as are counted,
//     each of the cell that it is in, of a time that has come, and none for long after its end.
//   - Its quote is renewed before it runs out.
//   - Each query, question and cell has its turn: none is overdue.
func (d *Directory) Audit(now grid.Time) error {
	if err := d.holder.audit(now); err != nil {
		return err
	}
	if err := d.publisher.audit(now); err != nil {
		return err
	}
	for id, q := range d.seeker.queries {
		if q.deadline+auditLate < now {
			return fmt.Errorf("query %d was to be over at %v", id, q.deadline)
		}
	}
	return d.requests.audit(now)
}
