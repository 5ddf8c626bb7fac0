package chaos

import (
	"fmt"
	"slices"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos/owner"
	"gridnode/testnet/scenario/federation"
)

// askWatch compares what users are told who ask the directory with what sites have said:
//
//   - quotes come in the order that was asked for, each site once, none that has run out or was
//     taken back (D-1, D-3);
//   - an answer that calls itself certain has every site that said long ago what it offers, while
//     all were there, if it has been there since, and the network whole: be it that holders of it
//     have died since (D-2).
type askWatch struct {
	n       *testnet.Network
	checks  *testnet.Checker
	alive   *aliveWatch
	certain bool // few messages get lost, other than where the network is cut
	answers int64
	down    int   // faults that keep sites down
	gaps    []gap // when not all sites were there
}

// gap is when not all sites were there.
type gap struct{ from, to grid.Time }

// The bounds of an askWatch.
const (
	askToken = wishTokens - 16 // the first of four
	askAfter = grid.Minute     // of which a site sees that others are there again, or tells them its quote
	askLate  = 3 * grid.Minute // after which all holders have a quote, messages to whom get lost at times
)

func watchAsks(n *testnet.Network, c *testnet.Checker, alive *aliveWatch, loss float64) *askWatch {
	w := &askWatch{n: n, checks: c, alive: alive, certain: loss <= certainLoss}
	n.Observe(testnet.Observer{Answer: w.answer, Fault: w.fault})
	return w
}

// fault notes when not all are there.
func (w *askWatch) fault(now grid.Time, f *testnet.Fault) {
	switch {
	case !f.Kind.Kills():
	case !f.Healing():
		if w.down++; w.down == 1 {
			w.gaps = append(w.gaps, gap{now, grid.Never})
		}
	default:
		if w.down--; w.down == 0 {
			w.gaps[len(w.gaps)-1].to = now
		}
	}
}

// all reports whether all sites were there between two instants.
func (w *askWatch) all(from, to grid.Time) bool {
	return !slices.ContainsFunc(w.gaps, func(g gap) bool { return g.from <= to && from <= g.to })
}

// drawAsks draws when users ask what sites there are.
func drawAsks(seed uint64, sites int, times float64, span grid.Time) (drawn []Wish) {
	pcg := draw.PCG(seed, "asks", draw.ForJobs)
	for range int(times*float64(sites)*span.Seconds()/3600 + 0.5) {
		w := Wish{Kind: WishAsk, Site: int(draw.Uniform(pcg, uint64(sites))), Which: draw.Uniform(pcg, 4)}
		w.At = federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))
		drawn = append(drawn, w)
	}
	return drawn
}

// askedBy returns the question of that number, of four.
func askedBy(which uint64) directory.Query {
	return directory.Query{Attribute: [...]directory.Attribute{directory.Price, directory.Speed}[which%2], Descending: which/2%2 == 1}
}

// answer takes what a user is told.
func (w *askWatch) answer(now grid.Time, at int, a grid.Answer) {
	found, yes := a.Value.(*directory.Found)
	which := a.Token - askToken
	if !yes || which >= 4 {
		return
	}
	w.answers++
	ask, local := askedBy(which), w.n.Clock(at).Local(now)
	there := make(map[grid.SiteID]bool)
	for i := range found.Quotes {
		q := &found.Quotes[i]
		switch {
		case there[q.Site]:
			w.checks.Violated("%s is told two quotes of %s", w.n.ID(at), q.Site)
		case q.Withdrawn || q.Expires() <= local:
			w.checks.Violated("%s is told quote %d of %s, which has run out at %v (withdrawn: %t)", w.n.ID(at), q.Sequence, q.Site, q.Expires(), q.Withdrawn)
		case i > 0 && directory.Behind(&found.Quotes[i-1], ask.Attribute).Passed(q, ask.Descending):
			w.checks.Violated("%s is told the quote of %s behind that of %s", w.n.ID(at), q.Site, found.Quotes[i-1].Site)
		}
		there[q.Site] = true
	}
	if !w.certain || !found.Certain || found.Err != nil || !found.End || !w.whole(now, at) {
		return
	}
	for other := range w.n.Len() {
		s, up := scenario.SiteAt(w.n, other)
		if !up || there[w.n.ID(other)] || !w.whole(now, other) || s.Draining() {
			continue
		}
		if q, known := s.Known(w.n.ID(other)); known && !q.Withdrawn && w.said(now, other, &q) {
			w.checks.Violated("%s is told for certain of %d sites, and not of %s, which has offered what it does since %v", w.n.ID(at), len(found.Quotes), q.Site, w.n.Clock(other).True(q.Issued))
		}
	}
}

// said reports whether a quote of a site was told long ago, and is good for a while.
func (w *askWatch) said(now grid.Time, other int, q *directory.Quote) bool {
	mine := w.n.Clock(other)
	issued := mine.True(q.Issued)
	return issued < now-askLate && mine.True(q.Expires()) > now+clocksApart && w.all(issued-askAfter, issued+askAfter)
}

// whole reports whether a site has been heard by all for long, and has heard all.
func (w *askWatch) whole(now grid.Time, at int) bool {
	return w.alive.roster.member(at, askLate) && w.alive.calm(now-2*askLate, at) && !w.alive.clocks.set(at)
}

// ask returns the question of a user.
func (w *Wish) ask() *site.FindQuotes {
	return &site.FindQuotes{Token: askToken + w.Which%4, Query: askedBy(w.Which)}
}

// owners is what owners of sites do besides, and who watches that (package owner).
type owners struct {
	data        *owner.Data
	guests      *owner.Guests
	names       *owner.Names
	invitations *owner.Invitations // nil: the federation is open
	namesakes   *owner.Namesakes   // nil: nobody may invite
	renewals    *owner.Renewals    // nil: nobody may invite
}

// ownerCounts is what a run has seen of that.
type ownerCounts struct {
	Data        owner.DataCounts       `json:"data"`
	Guests      owner.GuestCounts      `json:"guests"`
	Names       owner.NameCounts       `json:"names"`
	Invitations owner.InvitationCounts `json:"invitations"`
	Namesakes   owner.NamesakeCounts   `json:"namesakes"`
	Renewals    owner.RenewalCounts    `json:"renewals"`
}

// watchOwners begins to watch.
func watchOwners(n *testnet.Network, c *testnet.Checker, alive *aliveWatch, certain bool, config func(at int) site.Config) (o owners) {
	sight := owner.Sight{
		N: n, Checks: c, Certain: certain, Set: alive.clocks.set,
		Whole: func(now grid.Time, at int, span grid.Time) bool {
			return alive.roster.member(at, span) && alive.calm(now-span, at) && !alive.clocks.set(at)
		},
	}
	var names []string
	for at := range n.Len() {
		names = append(names, config(at).Name)
	}
	o.data, o.guests, o.names = owner.NewData(sight), owner.NewGuests(sight), owner.NewNames(sight, names)
	if alive.roster != nil {
		o.invitations = owner.NewInvitations(sight, alive.roster.invited)
		if alive.roster.issuer != nil {
			o.namesakes = owner.NewNamesakes(sight, alive.roster.certifies)
			o.renewals = owner.NewRenewals(sight, alive.roster.invited)
		}
	}
	return o
}

// counts returns what was seen.
func (o *owners) counts() ownerCounts {
	c := ownerCounts{Data: o.data.Counts(), Guests: o.guests.Counts(), Names: o.names.Counts()}
	if o.invitations != nil {
		c.Invitations = o.invitations.Counts()
	}
	if o.namesakes != nil {
		c.Namesakes, c.Renewals = o.namesakes.Counts(), o.renewals.Counts()
	}
	return c
}

// say has an owner do what a wish says. What keeps others waiting is over at the instant healed.
func (o *owners) say(n *testnet.Network, w *Wish, healed grid.Time) error {
	if w.Kind == WishDetain {
		id, err := grid.ParseJobID(w.Job)
		if err != nil {
			return fmt.Errorf("a wish (%s) about job %q: %w", w.Kind, w.Job, err)
		}
		n.Call(w.At, w.Site, func() { id = o.guests.Do(w.Site, id, w.Which) })
		n.Call(w.At+w.Span, w.Site, func() { o.guests.Release(w.Site, id) })
		n.Call(healed, w.Site, func() { o.guests.Release(w.Site, id) })
		return nil
	}
	n.Call(w.At, w.Site, func() {
		switch w.Kind {
		case WishFind:
			o.names.Do(w.Site, w.Which)
		case WishInvite:
			if o.invitations != nil {
				o.invitations.Do(n.Now(), w.Site, w.Which)
			}
		case WishNamesakes:
			if o.namesakes != nil {
				o.namesakes.Do(w.Site, w.Which)
			}
		case WishRemain:
			if o.renewals != nil {
				o.renewals.Do(w.Site, w.Which)
			}
		default:
			if set, closed := o.data.Do(w.Site, w.Which); closed {
				n.Call(healed, w.Site, func() { o.data.Do(w.Site, owner.Drop(set)) })
			}
		}
	})
	return nil
}
