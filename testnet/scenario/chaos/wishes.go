package chaos

import (
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/guest"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/draw"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/chaos/forge"
	"gridnode/testnet/scenario/federation"
	"gridnode/testnet/workload"
)

// Wish is what a user or an owner asks a site for, besides the jobs of the workload. A site
// that is down does not hear it.
type Wish struct {
	Kind WishKind  `json:"kind"`
	At   grid.Time `json:"at"`   // microseconds since the beginning of the run
	Site int       `json:"site"` // index of the site that is asked

	Job        string    `json:"job,omitempty"`        // of WishCancel, WishHold, WishRequeue, WishDetain: its ID; of WishReturn: which runs on the lease; empty: any lease
	Lender     int       `json:"lender,omitempty"`     // of WishLease: index of the site to borrow from; of WishRecall, WishLink, WishBan, WishForge, WishLie, WishRumour: of the other one; of WishTransfer: who gets it; of WishRevoke: who is told first
	Processors int64     `json:"processors,omitempty"` // of WishLease
	Span       grid.Time `json:"span,omitempty"`       // of WishLease, WishRenew, WishHold, WishDrain, WishBan, WishDetain, WishCertify: microseconds; of WishTransfer after which it is said again; 0: it is not

	// Which is, of WishReturn, WishRenew and WishRecall, by this number modulo theirs, which of the leases that the
	// site has then, or borrows, or lends to the other one; of WishPrice the price; of WishRevoke whether another site misses the news; of WishLink the change less one; of WishTransfer micro-credits; of WishAccount how many transactions are shown; of WishAsk, WishForge, WishLie, WishRumour, WishData, WishDetain, WishFind, WishInvite, WishNamesakes and WishRemain what.
	Which uint64 `json:"which,omitempty"`
	Force bool   `json:"force,omitempty"` // of WishReturn
}

// WishKind is what is asked for.
type WishKind string

// Wishes.
const (
	WishCancel WishKind = "cancel" // a job shall end
	WishLease  WishKind = "lease"  // processors of another site
	WishReturn WishKind = "return" // one of the site's leases shall end, borrowed or lent
	WishRenew  WishKind = "renew"  // one that the site borrows shall last for longer
	WishRecall WishKind = "recall" // one that the site lends to another one (Lender) is wanted back

	WishHold    WishKind = "hold"    // a job shall wait for a while
	WishRequeue WishKind = "requeue" // a job shall run again

	WishDrain WishKind = "drain" // the site takes no new work for a while
	WishPrice WishKind = "price" // the site's price changes
	WishLink  WishKind = "link"  // a link of delegation changes
	WishBan   WishKind = "ban"   // the site takes nothing of another one for a while

	WishAsk WishKind = "ask" // what sites there are

	WishData      WishKind = "data"      // the site holds a data set, or does not, or is asked who does
	WishFind      WishKind = "find"      // which site is called so
	WishInvite    WishKind = "invite"    // the site invites somebody, or somebody asks to be certified
	WishNamesakes WishKind = "namesakes" // the site meets two strangers of one name
	WishRemain    WishKind = "remain"    // somebody whom the site invites has its certificate renewed, some for long
	WishDetain    WishKind = "detain"    // a job of another site that waits here is held for a while, or ends

	WishTransfer WishKind = "transfer" // the site's credits become another one's
	WishAccount  WishKind = "account"  // what is in the site's account

	WishForge   WishKind = "forge"   // the site hears what an honest one would not say (package forge)
	WishLie     WishKind = "lie"     // … about what runs on processors that it lends or borrows
	WishRumour  WishKind = "rumour"  // … about its siblings
	WishCertify WishKind = "certify" // the site is given a new certificate
	WishRevoke  WishKind = "revoke"  // the site's membership is revoked
)

// wantedAgain is why a job is to run again.
const wantedAgain = "its user wants it again"

// wishTokens is where the tokens of wishes begin: no submission has one of them.
const wishTokens = 1 << 62

// cancelNumbers is where the numbers of cancels begin among those of wishes.
const cancelNumbers = 1 << 32

// One of so many requests by hand is for so many times the processors of another, which is more than
// some owners allow.
const (
	wideEach  = 4
	wideTimes = 4
)

// drawLeases has users ask for leases by hand, and want processors back.
func drawLeases(seed uint64, count int, span grid.Time) (drawn []Wish) {
	pcg := draw.PCG(seed, "leases", draw.ForJobs)
	sites := uint64(count)
	for i := range int(float64(count)*span.Seconds()/3600 + 1) {
		wide := int64(1)
		if i%wideEach == 0 {
			wide = wideTimes
		}
		from, to := int(draw.Uniform(pcg, sites)), int(draw.Uniform(pcg, sites))
		at := federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))
		drawn = append(drawn, Wish{
			Kind: WishLease, At: at, Site: from, Lender: to, Processors: wide * (1 + int64(draw.Uniform(pcg, 8))),
			Span: grid.Minute + grid.Time(draw.Uniform(pcg, uint64(2*grid.Hour))),
		})
		back := Wish{Kind: WishReturn, Which: pcg.Uint64(), Force: draw.Uniform(pcg, 2) == 0, Site: int(draw.Uniform(pcg, sites))}
		back.At = federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))
		drawn = append(drawn, back)
	}
	return append(drawn, drawRenewals(seed, count, span)...)
}

// renewalsEach is how often users of a site want one of its leases to last for longer, per hour.
const renewalsEach = 4

// drawRenewals has users ask for leases to last for longer.
func drawRenewals(seed uint64, count int, span grid.Time) (drawn []Wish) {
	pcg := draw.PCG(seed, "renewals", draw.ForJobs)
	for range int(renewalsEach*float64(count)*span.Seconds()/3600 + 0.5) {
		drawn = append(drawn, Wish{
			Kind: WishRenew, Site: int(draw.Uniform(pcg, uint64(count))), Which: pcg.Uint64(),
			Span: grid.Minute + grid.Time(draw.Uniform(pcg, uint64(2*grid.Hour))),
			At:   federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span))),
		})
	}
	return drawn
}

// liesEach is how many lies come for one forgery of another kind: most find no lease that is in use.
const liesEach = 4

// drawForged draws when sites hear what is forged, a number of times an hour each.
func drawForged(seed uint64, sites int, times float64, span grid.Time) (drawn []Wish) {
	for _, of := range [...]struct {
		kind WishKind
		name grid.SiteID
		each float64
	}{{WishForge, "forgeries", 1}, {WishLie, "lies", liesEach}, {WishRumour, "rumours", 1}} {
		pcg := draw.PCG(seed, of.name, draw.ForFaults)
		for range int(of.each*times*float64(sites)*span.Seconds()/3600 + 0.5) {
			w := Wish{Kind: of.kind, Site: int(draw.Uniform(pcg, uint64(sites))), Lender: int(draw.Uniform(pcg, uint64(sites))), Which: pcg.Uint64()}
			w.At = federation.Warmup + grid.Time(draw.Uniform(pcg, uint64(span)))
			drawn = append(drawn, w)
		}
	}
	return drawn
}

// forged returns what kind of forgery the wish is, if it is one.
func (w *Wish) forged() (kind forge.Kind, yes bool) {
	switch w.Kind {
	case WishForge:
		return forge.Words, true
	case WishLie:
		return forge.Lies, true
	case WishRumour:
		return forge.Rumours, true
	}
	return 0, false
}

// among reports whether the sites of the wish are among so many.
func (w *Wish) among(sites int) bool {
	return w.Site >= 0 && w.Site < sites && w.Lender >= 0 && w.Lender < sites
}

// say has the wish be said when its time comes; number tells it from others of its kind.
// What is for a while is over at the instant healed, too, when everybody is up.
func (w *Wish) say(n *testnet.Network, number int, healed grid.Time) error {
	if !w.among(n.Len()) {
		return fmt.Errorf("a wish (%s) at site %d, of site %d: there are %d", w.Kind, w.Site, w.Lender, n.Len())
	}
	token := wishTokens + uint64(number)
	var id grid.JobID
	if w.Kind == WishCancel || w.Kind == WishHold || w.Kind == WishRequeue {
		var err error
		if id, err = grid.ParseJobID(w.Job); err != nil {
			return fmt.Errorf("a wish (%s) about job %q: %w", w.Kind, w.Job, err)
		}
	}
	switch w.Kind {
	case WishCancel:
		n.Inject(w.At, w.Site, &site.Cancel{Token: token, Job: id, Cause: "its user does not want it"})
	case WishLease:
		n.Inject(w.At, w.Site, &site.RequestLease{Token: token, Lender: n.ID(w.Lender), Processors: w.Processors, Span: w.Span})
	case WishReturn:
		n.Call(w.At, w.Site, func() { w.back(n, wishTokens) })
	case WishRenew:
		n.Call(w.At, w.Site, func() { w.renew(n, wishTokens) })
	case WishRecall:
		n.Call(w.At, w.Site, func() { w.recall(n, wishTokens) })
	case WishHold:
		n.Call(w.At, w.Site, func() {
			id = w.going(n, id)
			w.hold(n, &site.Hold{Job: id})
		})
		for _, at := range [...]grid.Time{w.At + w.Span, healed} {
			n.Call(at, w.Site, func() { w.hold(n, &site.Hold{Job: id, Release: true}) })
		}
	case WishRequeue:
		n.Inject(w.At, w.Site, &site.Requeue{Job: id, Cause: wantedAgain})
	case WishDrain:
		n.Inject(w.At, w.Site, &site.Drain{})
		n.Inject(w.At+w.Span, w.Site, &site.Drain{Back: true})
		n.Inject(healed, w.Site, &site.Drain{Back: true})
	case WishBan:
		ban := guest.Ban{Partner: guest.Partner{Scope: guest.Site, Name: string(n.ID(w.Lender))}, Until: grid.Never, Reason: "its owner is asked about it"}
		n.Inject(w.At, w.Site, &site.BanGuests{Token: wishTokens, Ban: ban})
		n.Inject(w.At+w.Span, w.Site, &site.BanGuests{Token: wishTokens, Ban: ban, Lift: true})
		n.Inject(healed, w.Site, &site.BanGuests{Token: wishTokens, Ban: ban, Lift: true})
	case WishPrice:
		n.Inject(w.At, w.Site, &site.SetPrice{Token: wishTokens, Price: grid.Price(w.Which)})
	case WishAsk:
		n.Inject(w.At, w.Site, w.ask())
	case WishLink:
		n.Inject(w.At, w.Site, &site.ChangeLink{Token: wishTokens, Change: site.InviteLink + site.LinkChange(w.Which), Site: n.ID(w.Lender)})
	default:
		return fmt.Errorf("no wish is called %q", w.Kind)
	}
	return nil
}

// hold has a job wait, or go on, if its home is up.
func (w *Wish) hold(n *testnet.Network, in *site.Hold) {
	if _, up := scenario.SiteAt(n, w.Site); up {
		n.Step(w.Site, in)
	}
}

// going returns of the array of a job one that was let go and has not begun, in whose place others may go
// once it is held; without one, the job itself.
func (w *Wish) going(n *testnet.Network, id grid.JobID) grid.JobID {
	s, up := scenario.SiteAt(n, w.Site)
	if !up {
		return id
	}
	v, known := s.Glance(id)
	if !known || v.Job.Array == nil {
		return id
	}
	home, first := workload.Origin(v.Job.Array.ID)
	for index := range int64(arrayJobs) {
		other := workload.JobID(home, first+index)
		if of, there := s.Glance(other); there && of.Job.Array != nil && (of.State == site.Queued || of.State == site.Placing) {
			return other
		}
	}
	return id
}

// lease returns a lease of a site for which keep is true; ok is false if there is none.
func (w *Wish) lease(n *testnet.Network, keep func(l *site.LeaseView) bool) (l site.LeaseView, ok bool) {
	s, up := scenario.SiteAt(n, w.Site)
	if !up {
		return l, false
	}
	leases := slices.DeleteFunc(s.Leases(), func(l site.LeaseView) bool { return !keep(&l) })
	if len(leases) == 0 {
		return l, false
	}
	return leases[w.Which%uint64(len(leases))], true
}

// renew has a site's user ask for one of the leases that it borrows to last for longer.
func (w *Wish) renew(n *testnet.Network, token uint64) {
	l, ok := w.lease(n, func(l *site.LeaseView) bool { return !l.Lent && l.State == lease.Active })
	if ok {
		n.Step(w.Site, &site.ChangeLease{Token: token, Change: site.RenewLease, Number: l.Number, Span: w.Span})
	}
}

// recall has a site's owner want back what another site has borrowed.
func (w *Wish) recall(n *testnet.Network, token uint64) {
	l, ok := w.lease(n, func(l *site.LeaseView) bool {
		return l.Lent && l.State == lease.Active && l.Borrower == n.ID(w.Lender)
	})
	if ok {
		n.Step(w.Site, &site.ChangeLease{Token: token, Change: site.RevokeLease, Number: l.Number, Borrower: l.Borrower})
	}
}

// back has a site's user release or revoke one of its leases.
func (w *Wish) back(n *testnet.Network, token uint64) {
	l, ok := w.lease(n, func(l *site.LeaseView) bool {
		return w.Job == "" || slices.ContainsFunc(l.Jobs, func(id grid.JobID) bool { return id.String() == w.Job })
	})
	if !ok {
		return
	}
	change := site.ReleaseLease
	if l.Lent {
		change = site.RevokeLease
	}
	n.Step(w.Site, &site.ChangeLease{Token: token, Change: change, Number: l.Number, Borrower: l.Borrower, Force: w.Force})
}
