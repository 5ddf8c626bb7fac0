package site

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/market"
	"gridnode/node/guest"
)

// guests is the part that keeps to the owner's rules for other sites: the market and the
// leases ask it before they take anything in.
type guests struct {
	*base
	desk  *guest.Desk
	jobs  *jobs
	agent *market.Agent // nil: no job of another site comes here
	loans *loans        // nil: nothing is lent
	knows guest.Knows
	held  map[grid.JobID]*guest.Hold
}

// ConfigureGuests changes the owner's rules. What is here already is left alone. The answer
// is a *GuestsChanged.
type ConfigureGuests struct {
	Token  uint64
	Config guest.Config
}

// BanGuests keeps a partner out and, by the owner's policy, ends what it has here. The answer
// is a *GuestsChanged.
type BanGuests struct {
	Token uint64
	Ban   guest.Ban
	Lift  bool // let it in again instead
}

// ChangeGuests ends, holds or releases what other sites have here. The answer is a
// *GuestsChanged.
type ChangeGuests struct {
	Token   uint64
	Change  GuestChange
	Job     grid.JobID     // zero: whatever Partner has
	Partner *guest.Partner // nil: Job says
	Cause   string         // CancelGuest: told to their homes
}

// GuestChange is what becomes of a guest.
type GuestChange uint8

// Changes of guests.
const (
	CancelGuest  GuestChange = iota + 1 // it ends now; of leases, too
	HoldGuest                           // a job that waits is not started
	ReleaseGuest                        // it may be started again
)

// GuestsChanged answers what changes guests.
type GuestsChanged struct {
	Jobs   int // that were changed, or ended
	Leases int // that were revoked
	Err    error
}

// ErrGuest is wrapped by refusals to change guests; the text says why.
var ErrGuest = errors.New("refused")

var errNoGuests = fmt.Errorf("this site takes nothing of others: %w", ErrGuest)

func (*guests) takes(b *board) {
	of := func(s *Site) *guests { return s.guests }
	take(b, of, (*guests).configure)
	take(b, of, (*guests).ban)
	take(b, of, (*guests).change)
}

// Price implements market.Guests.
func (g *guests) Price(of grid.SiteID, price grid.Price) grid.Price { return g.desk.Price(of, price) }

// Admit implements market.Guests.
func (g *guests) Admit(now grid.Time, from grid.SiteID, w *market.Work) bool {
	if w.Job != nil {
		return g.desk.Runs(now, from, w.Job) == guest.Admitted
	}
	if g.draining || g.jobs.chronicle.full() {
		return false
	}
	ask := guest.Ask{Site: from, Processors: w.Processors, Memory: w.Memory, Span: w.Span, GPUs: w.GPUs, Needs: guest.Programs, Only: w.Probe}
	if w.Module {
		ask.Needs = guest.Modules
	}
	return g.desk.Admit(now, &ask) == guest.Admitted
}

// Promise implements market.Guests.
func (g *guests) Promise(now grid.Time, from grid.SiteID, w *market.Work, start, end grid.Time) bool {
	if w.Probe {
		return g.desk.Would(from, start, end) == guest.Admitted
	}
	return g.desk.Promise(now, from, start, end) == guest.Admitted
}

// lends says whether the rules allow a lease that is asked for. Its borrower is counted, who
// asked and proved who it is; whoever it borrows for has to be welcome, too. Where it is the number
// of processors, it says how many they allow at a time.
func (g *guests) lends(now grid.Time, in *lease.Asked) (why lease.Reason, most int64) {
	ask := guest.Ask{Site: in.Borrower, Lease: true, Processors: in.Processors, Span: in.Span, Mine: guest.Use{Lent: in.Processors}}
	switch cause := g.desk.Admit(now, &ask); cause {
	case guest.Admitted:
	case guest.OverProcessors, guest.OverLeases:
		if most = g.desk.Lends(in.Borrower); most > 0 && in.Processors > most {
			return lease.TooWide, most
		}
		return lease.ByRule, most
	default:
		return lease.ByRule, 0
	}
	if g.desk.Promise(now, in.Borrower, now, now.Add(in.Span)) != guest.Admitted ||
		in.Sink != in.Borrower && g.desk.Welcome(now, in.Sink) != guest.Admitted {
		return lease.ByRule, 0
	}
	return lease.Accepted, 0
}

// uses yields what sites have here.
func (g *guests) uses(yield func(grid.SiteID, guest.Use) bool) {
	if g.agent != nil {
		for site, t := range g.agent.Tenants() {
			if !yield(site, guest.Use{Jobs: t.Jobs, Processors: t.Processors, GPUs: t.GPUs}) {
				return
			}
		}
	}
	if g.loans == nil {
		return
	}
	for site, n := range lease.Tenants(g.loans.book) {
		if !yield(site, guest.Use{Lent: n}) {
			return
		}
	}
}

func (g *guests) tick(now grid.Time, out *grid.Outbox) {
	g.desk.Tick(now, out)
	for _, h := range g.holds() {
		e := g.jobs.current(h.Task)
		switch {
		case e == nil || e.state != Queued:
			g.unhold(h, out)
		case h.Until <= now: // it could not end any more before its home places it anew
			g.unhold(h, out)
			g.jobs.expired(now, e, out)
		}
	}
}

func (g *guests) nextTimer() grid.Time {
	next := g.desk.NextTimer()
	for _, h := range g.held {
		next = min(next, h.Until)
	}
	return next
}

func (*guests) keeps() []string { return []string{guest.BanPrefix, guest.HoldPrefix} }

func (g *guests) recover(_ grid.Time, stored records, _ *grid.Outbox) error {
	for key, value := range stored.each {
		h, err := g.desk.Recover(key, value)
		if err != nil {
			return recordError(key, err)
		}
		if h != nil {
			g.held[h.Task.Job] = h
		}
	}
	return nil
}

// records yields bans and what is held as they are to be saved.
func (g *guests) records(yield func(grid.Record) bool) {
	for _, b := range g.desk.Bans() {
		if !yield(&b) {
			return
		}
	}
	for _, h := range g.held {
		if !yield(h) {
			return
		}
	}
}

// configure changes the rules.
func (g *guests) configure(_ grid.Time, in *ConfigureGuests, out *grid.Outbox) {
	g.desk.Configure(in.Config)
	out.Answer(in.Token, &GuestsChanged{})
}

// ban keeps a partner out, or lets it in again.
func (g *guests) ban(now grid.Time, in *BanGuests, out *grid.Outbox) {
	answer := &GuestsChanged{}
	if in.Lift {
		answer.Err = g.desk.Unban(in.Ban.Partner, out)
	} else if answer.Err = g.desk.Ban(in.Ban, out); answer.Err == nil {
		*answer = g.evict(now, func(w *guest.Who) bool { return w.Is(in.Ban.Partner) }, "its site was banned here", out)
	}
	out.Answer(in.Token, answer)
}

// gone ends what a site has here that is a member no longer, by the owner's policy.
func (g *guests) gone(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	g.evict(now, func(w *guest.Who) bool { return w.Site == site }, "its site is a member no longer", out)
}

// evict ends what sites have here, as the owner wants it for those that are banned: what
// waits is given back, what runs is ended or goes on, and leases are not renewed at least.
func (g *guests) evict(now grid.Time, which func(*guest.Who) bool, cause string, out *grid.Outbox) (done GuestsChanged) {
	cancel := g.desk.Config().OnBan == guest.Cancel
	for _, e := range g.foreign() {
		if who := g.knows(e.job.Home); !which(&who) {
			continue
		}
		switch {
		case e.state == Queued:
			g.cluster.Cancel(now, e.task())
			g.jobs.recovery.forget(e)
			g.jobs.expired(now, e, out)
		case e.state == Running && cancel:
			g.jobs.withdraw(now, e, cause, out)
		default:
			continue
		}
		done.Jobs++
	}
	done.Leases = g.revoke(now, which, cancel, out)
	return done
}

// revoke wants lent processors back, and returns of how many leases.
func (g *guests) revoke(now grid.Time, which func(*guest.Who) bool, force bool, out *grid.Outbox) (n int) {
	if g.loans == nil {
		return 0
	}
	for _, l := range g.loans.book.Leases() {
		borrower, sink := g.knows(l.Borrower), g.knows(l.Sink)
		if l.Lent && (which(&borrower) || which(&sink)) && g.loans.book.Revoke(now, l.ID, force, out) == nil {
			n++
		}
	}
	return n
}

// foreign returns the jobs of other sites that are not over, in the order of their IDs.
func (g *guests) foreign() (list []*entry) {
	for _, e := range g.jobs.live {
		if e.foreign && !e.state.Terminal() {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return a.job.ID.Compare(b.job.ID) })
	return list
}

// change ends, holds or releases guests.
func (g *guests) change(now grid.Time, in *ChangeGuests, out *grid.Outbox) {
	answer := &GuestsChanged{}
	if in.Partner == nil {
		e := g.jobs.byID[in.Job]
		if e == nil || !e.foreign {
			answer.Err = fmt.Errorf("%s: %w", in.Job, ErrUnknownJob)
		} else if answer.Err = g.alter(now, e, in, out); answer.Err == nil {
			answer.Jobs = 1
		}
		out.Answer(in.Token, answer)
		return
	}
	which := func(w *guest.Who) bool { return w.Is(*in.Partner) }
	for _, e := range g.foreign() {
		if who := g.knows(e.job.Home); which(&who) && g.alter(now, e, in, out) == nil {
			answer.Jobs++
		}
	}
	if in.Change == CancelGuest {
		answer.Leases = g.revoke(now, which, true, out)
	}
	out.Answer(in.Token, answer)
}

// alter changes one job of another site.
func (g *guests) alter(now grid.Time, e *entry, in *ChangeGuests, out *grid.Outbox) error {
	h := g.held[e.job.ID]
	switch {
	case e.state.Terminal():
		return fmt.Errorf("job %s is over: %w", e.job.ID, ErrGuest)
	case in.Change == CancelGuest && e.state == Cancelling:
		return nil // it is ending
	case in.Change == CancelGuest:
		g.jobs.withdraw(now, e, in.Cause, out)
	case in.Change == HoldGuest && h == nil:
		if e.state != Queued {
			return fmt.Errorf("job %s is %v, and only what waits can be held: %w", e.job.ID, e.state, ErrGuest)
		}
		g.hold(now, e, out)
	case in.Change == ReleaseGuest && h == nil:
		return fmt.Errorf("job %s is not held: %w", e.job.ID, ErrGuest)
	case in.Change == ReleaseGuest:
		g.unhold(h, out)
		g.jobs.recovery.promise(now, e, out)
	}
	return nil
}

// hold takes a job out of the schedule until it is released, or could not end in time.
func (g *guests) hold(now grid.Time, e *entry, out *grid.Outbox) {
	g.cluster.Cancel(now, e.task())
	g.jobs.recovery.forget(e)
	h := &guest.Hold{Task: e.task(), Until: max(e.award.Until-g.jobs.limitOf(e.job), now)}
	g.held[e.job.ID] = h
	e.reason = causeHeld
	out.Save(h)
}

// causeHeld is why a job of another site is not started.
const causeHeld = "held by the owner of this site"

func (g *guests) unhold(h *guest.Hold, out *grid.Outbox) {
	delete(g.held, h.Task.Job)
	if e := g.jobs.current(h.Task); e != nil && e.reason == causeHeld {
		e.reason = ""
	}
	out.Delete(h)
}

// holds returns what the owner holds, in the order of the jobs.
func (g *guests) holds() []*guest.Hold {
	list := make([]*guest.Hold, 0, len(g.held))
	for _, h := range g.held {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *guest.Hold) int { return a.Task.Compare(b.Task) })
	return list
}

// keeping reports whether a recovered job is held, and says so again.
func (g *guests) keeping(e *entry) bool {
	if g == nil || g.held[e.job.ID] == nil || g.held[e.job.ID].Task != e.task() {
		return false
	}
	e.state, e.reason = Queued, causeHeld
	return true
}

// GuestView is what users see of something that another site has here: a job or a lease.
type GuestView struct {
	guest.Who
	Job   *View // nil: a lease
	Lease *lease.Lease
}

// Guests returns what other sites have here, jobs first.
func (s *Site) Guests() (views []GuestView) {
	g := s.guests
	if g == nil {
		return nil
	}
	for _, e := range g.foreign() {
		v := s.jobs.view(e, false)
		views = append(views, GuestView{Who: g.knows(e.job.Home), Job: &v})
	}
	if g.loans == nil {
		return views
	}
	for _, l := range g.loans.book.Leases() {
		if l.Lent && l.State != lease.Requested {
			views = append(views, GuestView{Who: g.knows(cmp.Or(l.Sink, l.Borrower)), Lease: &l})
		}
	}
	return views
}

// Permits says why the owner does not want a job of another site run on lent processors at
// the moment, and counts that; empty: it may.
func (s *Site) Permits(now grid.Time, from grid.SiteID, job *grid.Job) string {
	if s.guests == nil {
		return ""
	}
	if cause := s.guests.desk.Runs(now, from, job); cause != guest.Admitted {
		return lease.ByRule.String()
	}
	return ""
}

// GuestDesk returns the owner's rules for other sites, bans, and what was refused by them;
// nil if the site takes nothing of others. The caller may read it.
func (s *Site) GuestDesk() *guest.Desk {
	if s.guests == nil {
		return nil
	}
	return s.guests.desk
}

// who returns what is known of a site for sure: the rest is what it says itself.
func (s *Site) who(id grid.SiteID) guest.Who {
	who := guest.Who{Site: id}
	if s.membership != nil {
		if m := s.membership.roll.Member(id); m != nil {
			who.Name, who.Org = m.Name, m.Org
		}
	}
	return who
}
