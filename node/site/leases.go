package site

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gridnode/grid"
	"gridnode/lease"
)

// LeaseConfig says what a site lends and borrows.
type LeaseConfig struct {
	Lend bool      // lend processors to other sites
	Most int64     // processors lent at once at most; 0: all
	Term grid.Time // how long a lease lasts without a word of its borrower; 0: the book's default
	Span grid.Time // longest lease it grants; 0: the book's default

	// Match says when this site borrows by itself, and of whom. Threshold 0: never.
	Match lease.MatchConfig

	Consent lease.Consent // what becomes of invitations to be another site's child
}

// match returns the configuration of the site's lease.Matchmaker.
func (c *LeaseConfig) match() lease.MatchConfig {
	m := c.Match
	m.Lend = c.Lend
	return m
}

// pilotGrace is how long after the end of a lease a pilot and what it started may
// still be alive: the shim's grace, and the time to collect what it killed.
const pilotGrace = 10 * grid.Second

// book returns the configuration of the site's lease.Book.
func (c *LeaseConfig) book(site grid.SiteID) lease.Config {
	cfg := lease.Config{Site: site, Term: c.Term, SpanMax: c.Span, Grace: pilotGrace, Drain: true}
	if c.Term > 0 {
		// What is granted is claimed at once, so a hold need not outlast a term; an
		// execution is given up for dead no sooner than a hold later.
		cfg.Hold = min(c.Term, 30*grid.Second)
		cfg.Retry = max(min(c.Term/6, 5*grid.Second), 100*grid.Millisecond)
	}
	return cfg
}

// ErrUnknownLease: no lease of this site has that number, or not on that side.
var ErrUnknownLease = errors.New("no such lease")

// ErrLease is wrapped by refusals of requests for leases; the text says why.
var ErrLease = errors.New("refused")

// RequestLease asks another site for processors. The answer, once the lease is active
// or the request has failed, is a *LeaseAnswer.
type RequestLease struct {
	Token      uint64
	Lender     grid.SiteID
	Processors int64
	Span       grid.Time
}

// ChangeLease renews, releases or revokes a lease. The answer is a *LeaseAnswer; a
// renewal is asked for and not yet granted then.
type ChangeLease struct {
	Token    uint64
	Change   LeaseChange
	Number   uint64
	Borrower grid.SiteID // of a lease to revoke; empty: whoever has the number
	Span     grid.Time   // Renew: from now
	Force    bool        // Revoke: at once, without asking the borrower; Release: end the jobs that run there
}

// LeaseChange is what becomes of a lease.
type LeaseChange uint8

// Changes of leases.
const (
	RenewLease LeaseChange = iota + 1
	ReleaseLease
	RevokeLease
)

// LeaseAnswer answers RequestLease and ChangeLease.
type LeaseAnswer struct {
	Lease LeaseView
	Err   error // wraps ErrLease, ErrUnknownLease, lease.ErrBounds
}

// LeaseView is what users see of a lease.
type LeaseView struct {
	lease.Lease
	Used int64        // borrowed: processors that run this site's jobs
	Jobs []grid.JobID // borrowed: those jobs
}

// Leases returns what the site lends and borrows, in order of their numbers.
func (s *Site) Leases() []LeaseView {
	if s.book == nil {
		return nil
	}
	var views []LeaseView
	for _, l := range s.book.Leases() {
		views = append(views, s.leaseView(l))
	}
	return views
}

func (s *Site) leaseView(l lease.Lease) LeaseView {
	v := LeaseView{Lease: l}
	if p := s.pool(l.ID); p != nil {
		v.Used = p.used
		for _, t := range p.tasks {
			v.Jobs = append(v.Jobs, t.id.Job)
		}
	}
	return v
}

// requestLease asks on behalf of a user.
func (s *Site) requestLease(now grid.Time, in *RequestLease, out *grid.Outbox) {
	if s.book == nil {
		out.Answer(in.Token, &LeaseAnswer{Err: fmt.Errorf("this site is alone: %w", ErrLease)})
		return
	}
	id, err := s.book.Request(now, in.Lender, lease.Want{Processors: in.Processors, Span: in.Span}, out)
	if err != nil {
		out.Answer(in.Token, &LeaseAnswer{Err: err})
		return
	}
	s.asking[id.Number] = in.Token
}

// changeLease renews, releases or revokes on behalf of a user.
func (s *Site) changeLease(now grid.Time, in *ChangeLease, out *grid.Outbox) {
	l, err := s.findLease(in)
	if err == nil {
		switch in.Change {
		case RenewLease:
			err = s.book.Renew(now, l.ID, in.Span, out)
		case ReleaseLease:
			err = s.releaseLease(now, l, in.Force, out)
		case RevokeLease:
			err = s.book.Revoke(now, l.ID, in.Force, out)
		}
	}
	if errors.Is(err, lease.ErrUnknown) {
		err = fmt.Errorf("lease %d is %s: %w", l.Number, l.State, ErrLease)
	}
	if after, there := s.lookLease(l.ID); err == nil && there {
		l = after
	}
	out.Answer(in.Token, &LeaseAnswer{Lease: s.leaseView(l), Err: err})
}

func (s *Site) lookLease(id lease.ID) (lease.Lease, bool) {
	if s.book == nil {
		return lease.Lease{}, false
	}
	return s.book.Get(id)
}

// findLease returns the lease that a user means.
func (s *Site) findLease(in *ChangeLease) (lease.Lease, error) {
	var found []lease.Lease
	if s.book != nil {
		for _, l := range s.book.Leases() {
			if l.Number == in.Number && l.Lent == (in.Change == RevokeLease) && (in.Borrower == "" || in.Borrower == l.Borrower) {
				found = append(found, l)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return lease.Lease{}, fmt.Errorf("%d sites have a lease %d: name the borrower: %w", len(found), in.Number, ErrUnknownLease)
	case in.Change == RevokeLease:
		return lease.Lease{}, fmt.Errorf("nothing is lent as lease %d: %w", in.Number, ErrUnknownLease)
	}
	return lease.Lease{}, fmt.Errorf("nothing is borrowed as lease %d: %w", in.Number, ErrUnknownLease)
}

// leaseInput handles what the book tells the site, and reports whether it was that.
func (s *Site) leaseInput(now grid.Time, in grid.Input, out *grid.Outbox) bool {
	switch in := in.(type) {
	case *lease.Asked:
		s.leaseAsked(now, in, out)
	case *lease.Activated:
		s.keepPilot(now, in.Lease, out)
	case *lease.Granted:
		if s.matches.Has(in.Number) {
			s.matches.Step(now, in, out)
		} else {
			_ = s.book.Claim(now, in.ID, out) // ErrUnknown: it is over, and Ended follows
		}
	case *lease.Claimed:
		if s.matches.Has(in.Number) {
			s.matches.Step(now, in, out)
		} else {
			s.leaseClaimed(now, in.Lease, out)
		}
	case *lease.Brought:
		s.leaseBrought(now, in, out)
	case *lease.Refused:
		s.matches.Step(now, in, out)
		s.leaseRefused(in, out)
	case *lease.Recalled:
		s.leaseRecalled(now, in.Lease, out)
	case *lease.Vacate:
		s.matches.Step(now, in, out)
		s.leaseVacate(in.Lease, out)
	case *lease.Lost: // its lease has ended, and leaseOver put the job aside
	case *lease.Ended:
		s.matches.Step(now, in, out)
		if in.Lent {
			s.leaseTakenBack(now, in, out)
		} else {
			s.leaseOver(now, in, out)
		}
	default:
		return false
	}
	return true
}

// answerLease tells the user who asked for a lease what has come of it.
func (s *Site) answerLease(number uint64, a *LeaseAnswer, out *grid.Outbox) {
	if token, asked := s.asking[number]; asked {
		delete(s.asking, number)
		out.Answer(token, a)
	}
}

func (s *Site) leaseRefused(in *lease.Refused, out *grid.Outbox) {
	text := in.Reason.String()
	if in.Reason == lease.Busy {
		text = fmt.Sprintf("%s: %d", text, in.Free)
	}
	s.answerLease(in.Number, &LeaseAnswer{Lease: LeaseView{Lease: in.Lease}, Err: fmt.Errorf("%w: %s", ErrLease, text)}, out)
}

// leaseDelivery feeds the book a message, or the news that one did not arrive.
func (s *Site) leaseDelivery(now grid.Time, in grid.Input, out *grid.Outbox) {
	if d, ok := in.(*grid.Delivery); ok && isKinship(d.Message) {
		s.kinship.Step(now, in, out)
		return
	}
	if u, ok := in.(*grid.Undelivered); ok && isKinship(u.Message) {
		return // it is repeated
	}
	s.book.Step(now, in, out)
	if d, ok := in.(*grid.Delivery); ok {
		if m, ok := d.Message.(*lease.Renew); ok {
			if l, there := s.book.Get(lease.ID{Borrower: d.From, Number: m.Number}); there {
				s.keepPilot(now, l, out)
			}
		}
	}
}

// pilot is a lent lease whose processors a pilot keeps.
type pilot struct {
	id  lease.ID
	end grid.Time // as the executor was last told
}

// leaseAsked decides about a request.
func (s *Site) leaseAsked(now grid.Time, in *lease.Asked, out *grid.Outbox) {
	t := s.book.Totals()
	why := lease.Accepted
	switch most := s.cfg.Lease.Most; {
	case s.draining:
		why = lease.Denied
	case most > 0 && in.Processors > most:
		why = lease.TooWide
	case most > 0 && t.Held+t.Lent+in.Processors > most:
		why = lease.Busy
	}
	if why == lease.Accepted {
		s.matches.Step(now, in, out)
		return
	}
	_ = s.book.Refuse(now, in.ID, why, out) // it was asked in this step, so it is there
}

// keepPilot has a pilot keep the processors of a lent lease until its end.
func (s *Site) keepPilot(now grid.Time, l lease.Lease, out *grid.Outbox) {
	if !l.Lent || l.State != lease.Active || l.Via != 0 || l.End <= now || s.pilots[l.Epoch].end >= l.End {
		return
	}
	s.pilots[l.Epoch] = pilot{id: l.ID, end: l.End}
	out.Start(grid.Task{ID: lease.TaskOf(l.Epoch), Limit: l.End - now, Pilot: grid.Pilot{Site: l.Sink, Key: l.Epoch}})
}

// leaseTakenBack ends what runs on processors that were lent.
func (s *Site) leaseTakenBack(now grid.Time, in *lease.Ended, out *grid.Outbox) {
	if in.State == lease.Requested || in.Via != 0 {
		return
	}
	if _, kept := s.pilots[in.Epoch]; kept || in.State == lease.Active || in.State == lease.Ending {
		s.pilots[in.Epoch] = pilot{id: in.ID, end: grid.Never}
		out.Kill(grid.Task{ID: lease.TaskOf(in.Epoch), Cause: "the lease is over: " + in.Cause.String(), Pilot: grid.Pilot{Site: in.Sink, Key: in.Epoch}})
	}
}

// pilotEnded: a pilot and everything it started is gone.
func (s *Site) pilotEnded(now grid.Time, epoch uint64, out *grid.Outbox) {
	p, known := s.pilots[epoch]
	if !known {
		return
	}
	delete(s.pilots, epoch)
	if s.book.Vacated(now, p.id, out) == nil {
		return
	}
	// It died while the lease goes on: what ran there is lost, and the borrower has to
	// know. Taking the lease back tells it so.
	if s.book.Revoke(now, p.id, true, out) == nil {
		s.pilots[epoch] = pilot{id: p.id, end: grid.Never}
	}
}

// recoverPilots keeps the processors that were lent before a restart, at its end.
func (s *Site) recoverPilots(now grid.Time, out *grid.Outbox) {
	for _, l := range s.book.Leases() {
		s.keepPilot(now, l, out)
	}
}

// PilotOf returns the active lease by which another site uses processors of this one.
func (s *Site) PilotOf(from grid.SiteID, key uint64) (lease.Lease, bool) {
	p, known := s.pilots[key]
	if !known {
		return lease.Lease{}, false
	}
	l, there := s.book.Get(p.id)
	return l, there && l.State == lease.Active && l.Sink == from && l.Epoch == key
}

// isPilot returns the epoch of the lease whose pilot a task is.
func IsPilot(id grid.TaskID) (epoch uint64, yes bool) {
	return id.Job.Lo, id == lease.TaskOf(id.Job.Lo)
}

// compareTasks orders tasks of a pool.
func compareTasks(a, b guest) int { return a.id.Compare(b.id) }

// comparePools orders pools by their leases: roughly by age.
func comparePools(a, b *pool) int {
	return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.id.Borrower, b.id.Borrower))
}

// pool returns the borrowed processors of a lease, or nil.
func (s *Site) pool(id lease.ID) *pool {
	at, found := slices.BinarySearchFunc(s.pools, &pool{id: id}, comparePools)
	if !found {
		return nil
	}
	return s.pools[at]
}
