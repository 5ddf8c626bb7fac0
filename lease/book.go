package lease

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms"
)

// Book is the leases of one site, lent and borrowed. It grants nothing by itself:
// its owner decides (Asked), and so do Matchmaker and whoever else composes with
// it. It is deterministic, reads no clock and is not safe for concurrent use.
type Book struct {
	cfg     Config
	cluster *lrms.Cluster
	entries map[ID]*entry
	alarms  grid.Alarms[*entry]
	peers   map[grid.SiteID]int // entries by borrower, where this site is the lender
	tenants tenants             // processors of this site's own by borrower: asked for, held, and lent
	over    recent[ID]          // lent leases that have ended: a copy of their request is no new one
	freed   recent[ID]          // of them, of this site's own processors, which are its own again
	numbers Numbers             // of this site's requests
	epochs  Numbers
	totals  Totals
}

// Totals are processors by where their leases are.
type Totals struct {
	Held     int64 // this site's own: granted and not claimed yet
	Lent     int64 // this site's own: used by borrowers, or draining
	Borrowed int64 // of other sites: claimed, and not lent on
	Relayed  int64 // of other sites: lent on
}

// entry is a lease with what it needs to go on. Which fields mean anything depends
// on the side and the state.
type entry struct {
	Lease
	alarm  grid.Alarm[*entry]
	until  grid.Time // Requested: when the borrower gives up, or the lender may not grant any more
	hold   grid.Time // as asked
	retry  grid.Time // borrower: when to repeat what is not answered; Active: when to renew
	pause  grid.Time // until the repetition after that
	repeat bool      // something was sent more than once: that a copy is undeliverable means nothing

	sequence uint64                   // borrower: of the newest claim or renewal
	sent     [sequencesKept]grid.Time // borrower: when the newest of them were sent, by sequence
	stamp    grid.Time                // borrower: the lender's clock as last told
	gone     grid.Time                // borrower: when the source has surely taken the processors back; lender: until when it counts on them at most
	goneSpan grid.Time                // borrower: how long after a word of the lender that is; lender: the term when it was last renewed
	wanted   grid.Time                // borrower: span to ask for with the next renewal
	revoked  bool                     // the lender wants them back
	onward   ID                       // borrower: the lease by which the processors are lent on; zero if they are not
	cause    Cause                    // lender, Ending
	due      bool                     // borrower: its owner pays for it
}

// sequencesKept is how many renewals may be under way and still be understood when
// they are confirmed.
const sequencesKept = 4

// overMax and overSpan bound Book.over. A copy that comes later than that is taken
// for a new request; its borrower releases what it is granted.
const (
	overMax  = 1 << 14
	overSpan = grid.Hour
)

// ErrUnknown is returned for leases that are not in the book, or not in the state
// that is asked for. Nothing has changed.
var ErrUnknown = errors.New("no such lease")

// ErrBounds is returned for requests that no site would take. Nothing has changed.
var ErrBounds = errors.New("out of bounds")

// ErrLoop is returned for links that do not make a hierarchy. Nothing has changed.
var ErrLoop = errors.New("not a hierarchy")

// New returns an empty book. cluster has this site's processors and belongs to the
// owner; the book lends them. The error says which field of cfg is out of range.
func New(cfg Config, cluster *lrms.Cluster) (*Book, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Book{
		cfg: cfg, cluster: cluster, entries: make(map[ID]*entry), peers: make(map[grid.SiteID]int), tenants: make(tenants),
		over: newRecent[ID](overSpan, overMax), freed: newRecent[ID](overSpan, overMax),
	}, nil
}

// TaskOf names the task as which lent processors are counted in lrms. No job is
// called so: epochs of jobs begin at 1.
func TaskOf(epoch uint64) grid.TaskID {
	const mark = 0x6c65617365 // "lease"
	return grid.TaskID{Job: grid.JobID{Hi: mark, Lo: epoch}}
}

// Step applies one input at time now and appends to out what the driver must carry
// out in order. now never decreases. Inputs: *grid.Delivery of this package's
// messages, *grid.Undelivered, grid.Tick.
func (b *Book) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	b.expire(now, out)
	switch in := in.(type) {
	case grid.Tick:
	case *grid.Delivery:
		b.receive(now, in.From, in.Message, out)
	case *grid.Undelivered:
		if m, ok := in.Message.(*Request); ok {
			b.unreachable(now, in.To, m, out)
		}
	default:
		panic(fmt.Sprintf("lease: unknown input %T", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (b *Book) NextTimer() grid.Time { return b.alarms.Next() }

func (b *Book) receive(now grid.Time, from grid.SiteID, m grid.Message, out *grid.Outbox) {
	switch m := m.(type) {
	case *Request:
		b.asked(now, from, m, out)
	case *Claim:
		b.claimed(now, from, m, out)
	case *Renew:
		b.renewed(now, from, m, out)
	case *Release:
		b.released(now, from, m, out)
	case *Grant:
		b.granted(now, from, m, out)
	case *Refuse:
		b.refused(now, from, m, out)
	case *Renewed:
		b.confirmed(now, from, m, out)
	case *Released:
		b.gone(now, from, m, out)
	case *Revoke:
		b.recalled(now, from, m, out)
	default:
		panic(fmt.Sprintf("lease: unknown message %T", m))
	}
}

// expire lets what is due happen.
func (b *Book) expire(now grid.Time, out *grid.Outbox) {
	for a := b.alarms.Pop(now); a != nil; a = b.alarms.Pop(now) {
		if e := a.Owner; e.Lent {
			b.lenderDue(now, e, out)
		} else {
			b.borrowerDue(now, e, out)
		}
	}
}

// Get returns a lease. ID.Borrower is this site for what it borrows.
func (b *Book) Get(id ID) (Lease, bool) {
	if e := b.entries[id]; e != nil {
		return e.Lease, true
	}
	return Lease{}, false
}

// Gone returns from when on nothing of this site runs on the processors of a lease that
// it has borrowed, even if it is never heard of again; 0 for others.
func (b *Book) Gone(id ID) grid.Time {
	if e := b.entries[id]; e != nil && !e.Lent {
		return e.gone
	}
	return 0
}

// Leases returns all leases and undecided requests, in order of their IDs.
func (b *Book) Leases() []Lease {
	all := make([]Lease, 0, len(b.entries))
	for _, e := range b.entries {
		all = append(all, e.Lease)
	}
	slices.SortFunc(all, func(a, b Lease) int { return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Lender, b.Lender)) })
	return all
}

// Totals returns processors by where their leases are.
func (b *Book) Totals() Totals { return b.totals }

// Site returns the site whose book it is.
func (b *Book) Site() grid.SiteID { return b.cfg.Site }

// count adds (sign 1) or takes away (-1) an entry's processors, by its state.
func (b *Book) count(e *entry, sign int64) {
	n := sign * e.Processors
	switch {
	case e.Lent && e.Via != 0 || e.State == Requested:
	case e.Lent && e.State == Held:
		b.totals.Held += n
	case e.Lent:
		b.totals.Lent += n
	case e.State == Claiming || e.State == Active:
		if e.onward == (ID{}) {
			b.totals.Borrowed += n
		} else {
			b.totals.Relayed += n
		}
	}
	if t := &b.totals; t.Held < 0 || t.Lent < 0 || t.Borrowed < 0 || t.Relayed < 0 {
		panic(fmt.Sprintf("lease: %s: totals %+v after lease %v", b.cfg.Site, *t, e.Lease))
	}
}

// enter moves an entry to a state.
func (b *Book) enter(e *entry, s State) {
	b.count(e, -1)
	e.State = s
	b.count(e, 1)
}

// insert adds an entry. Its alarm is not set yet.
func (b *Book) insert(e *entry) {
	b.entries[e.ID] = e
	e.alarm.Owner = e
	if e.Lent {
		b.peers[e.Borrower]++
		if e.Via == 0 {
			b.tenants.add(e.Borrower, e.Processors)
		}
	}
}

// remove forgets an entry.
func (b *Book) remove(e *entry) {
	b.count(e, -1)
	b.alarms.Stop(&e.alarm)
	delete(b.entries, e.ID)
	if e.Lent {
		if b.peers[e.Borrower]--; b.peers[e.Borrower] == 0 {
			delete(b.peers, e.Borrower)
		}
		if e.Via == 0 {
			b.tenants.add(e.Borrower, -e.Processors)
		}
	}
}

// tenants is processors by borrower.
type tenants map[grid.SiteID]int64

// add counts processors that a site has here, or has not any more.
func (t tenants) add(site grid.SiteID, processors int64) {
	if t[site] += processors; t[site] == 0 {
		delete(t, site)
	}
}

// Tenants yields the processors of its site's own that others have asked for, hold or use,
// by borrower, in no particular order.
func Tenants(b *Book) iter.Seq2[grid.SiteID, int64] { return maps.All(b.tenants) }

// Numbers gives a site numbers that it has not used yet, not even before a crash. They follow its
// clock, and each start of its daemon has a lead of its own over that: so starts that read the same
// on a clock that stands still, or is set back, use different numbers. Those of a later start may be
// smaller. The zero value is for a site that has never been started before.
type Numbers struct {
	newest uint64
	lead   uint64 // microseconds before the clock
}

// A lead is more than what a start can have used beyond its clock, and lies somewhere in leadSpan.
const (
	leadLeast = 1 << 24
	leadSpan  = uint64(15 * grid.Minute)
)

// Restart chooses the lead of a start. Another seed is for each.
func (n *Numbers) Restart(seed uint64) { n.lead = leadLeast + seed%leadSpan }

// Used says that a number is in use: newer ones are larger.
func (n *Numbers) Used(number uint64) { n.newest = max(n.newest, number) }

// Next returns a number, from 1.
func (n *Numbers) Next(now grid.Time) uint64 {
	n.newest = max(n.newest+1, uint64(max(now, 1))+n.lead)
	return n.newest
}

// All yields what Book.Leases returns, in no particular order, and allocates nothing. What it
// yields must not be changed. Of a nil Book it yields nothing.
func All(b *Book) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		if b == nil {
			return
		}
		for _, e := range b.entries {
			if !yield(&e.Lease) {
				return
			}
		}
	}
}
