package site

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/market"
)

// HeadsConfig says which clusters a site heads, and how it shares jobs out over them.
// Its own processors, if it has any, are one more.
type HeadsConfig struct {
	Members []string // IDs of sites, or the names they give themselves; none: it heads nobody
	muscle.HeadConfig
}

// heads is what a site does that heads clusters.
type heads struct {
	*muscle.Head
	members []string
	booked  map[grid.SiteID][]booking // what members have of this site, by the awards
	gone    map[grid.SiteID]uint64    // members that could not be reached: the load report that was the newest then
	last    *muscle.Window            // that closed, without its allotments; nil before
	closed  grid.Time                 // when it did
	widest  int64                     // processors of the widest member, when a job was last too wide for it
}

// booking is a job that a member has.
type booking struct {
	task          grid.TaskID
	processors    int64
	start, finish grid.Time
}

// packed is what is known of a home job on its way through a packing.
type packed struct {
	member grid.SiteID   // it is being given to; empty while it waits for the window
	barred []grid.SiteID // refused it; they are not asked in the next window
	unfit  []grid.SiteID // will never have room for it
	times  int           // members have refused it
	why    string        // it waits once more; empty the first time
}

// unfitMax bounds the members that a job remembers not to fit.
const unfitMax = muscle.MembersMax

// newHeads returns nil for a site that heads nobody. The error is about cfg.
func newHeads(cfg *Config, seed uint64) (*heads, error) {
	c := &cfg.Heads
	if len(c.Members) == 0 {
		return nil, nil
	}
	if len(c.Members) > muscle.MembersMax {
		return nil, fmt.Errorf("heads %d clusters, at most %d", len(c.Members), muscle.MembersMax)
	}
	head, err := muscle.NewHead(c.HeadConfig, rand.New(rand.NewPCG(seed, 16)))
	if err != nil {
		return nil, err
	}
	return &heads{Head: head, members: c.Members, booked: make(map[grid.SiteID][]booking), gone: make(map[grid.SiteID]uint64)}, nil
}

// headed is what this site tells the one that heads it.
func (s *Site) headed() directory.Headed {
	if s.cfg.Head == "" {
		return directory.Headed{}
	}
	w := s.cfg.Weights
	return directory.Headed{
		Head: s.cfg.Head, Name: s.cfg.Name, Processors: s.cfg.Processors, Rating: s.cfg.Rating,
		Weights: [3]int64{w.OverDeadline, w.Makespan, w.Idle},
	}
}

// packs reports whether a home job is shared out over the clusters that this site
// heads: unless its owner wants the market, or named a site.
func (s *Site) packs(j *grid.Job) bool {
	return s.heads != nil && j.Goal == grid.GoalLocal && j.Budget < 0 && j.Site == ""
}

// admitPacked refuses a job that would be refused at the end of its window, as it is
// wider than every cluster.
func (s *Site) admitPacked(now grid.Time, j *grid.Job) error {
	h := s.heads
	if j.Processors <= h.widest {
		return nil // a burst of jobs does not look at all members again and again
	}
	members := s.memberList(now)
	h.widest = 0
	for i := range members {
		h.widest = max(h.widest, members[i].Processors)
	}
	switch {
	case !muscle.TooWide(j, members):
		return nil
	case h.widest == 0:
		return fmt.Errorf("%w: no cluster consents to be headed by this site", ErrTooWide)
	}
	return fmt.Errorf("%w: it needs %d processors, the widest cluster that this site heads has %d", ErrTooWide, j.Processors, h.widest)
}

// collect lets a job wait for the end of the window.
func (s *Site) collect(now grid.Time, e *entry) {
	if e.packed == nil {
		e.packed = &packed{}
	}
	p := e.packed
	p.member, e.reason = "", ""
	s.heads.Collect(now, e.job, p.barred, p.unfit, p.times)
	p.barred = nil
}

// uncollect takes a job out that is not wanted any more.
func (s *Site) uncollect(e *entry) {
	if e.packed != nil {
		s.heads.Withdraw(e.job.ID)
		e.packed = nil
	}
}

// view copies an entry for users, with what it waits for.
func (s *Site) view(e *entry) View {
	v := e.view()
	if divided(e.job) && e.state == Queued && s.co != nil { // it changes from scan to scan, and is not stored
		v.Reason = s.whyWaiting(e)
	}
	if e.packed == nil || e.state != Placing || e.parked || e.award.Site != "" {
		return v
	}
	v.Waits = true
	if e.packed.member != "" {
		v.Reason = "is being given to " + s.memberName(e.packed.member)
		return v
	}
	jobs, closes := s.heads.Waiting()
	v.Reason = fmt.Sprintf("waits for the packing window that closes at %s, one of %d jobs so far",
		time.UnixMicro(int64(closes)).UTC().Format("15:04:05.0Z"), jobs)
	switch {
	case s.heads.Left(e.job.ID):
		v.Reason = "no member that is there could take it; " + v.Reason
	case e.packed.why != "":
		v.Reason = e.packed.why + "; " + v.Reason
	}
	return v
}

// whyLeft returns what the last window made of a job that no member could take. It is
// worked out for whoever asks: thousands may wait.
func (s *Site) whyLeft(e *entry) []market.Verdict {
	if e.packed == nil || !s.heads.Left(e.job.ID) {
		return e.verdicts
	}
	return s.reasons(s.heads.closed, s.heads.last, e.job, nil)
}

// pack shares the jobs out when the window closes.
func (s *Site) pack(now grid.Time, out *grid.Outbox) {
	if s.heads == nil || s.heads.NextTimer() > now {
		return
	}
	w := s.heads.Close(now, s.memberList(now))
	for i := range w.Allotments {
		a := &w.Allotments[i]
		if e := s.jobs[a.Job.ID]; e != nil && e.packed != nil && e.state == Placing {
			s.allot(now, e, w, a, out)
		}
	}
	w.Allotments = nil
	s.heads.last, s.heads.closed = w, now
}

// allot gives a job to the cluster that it was allotted to.
func (s *Site) allot(now grid.Time, e *entry, w *muscle.Window, a *muscle.Allotment, out *grid.Outbox) {
	e.verdicts = s.reasons(now, w, e.job, a)
	switch {
	case a.Member < 0:
		e.reason = fmt.Sprintf("needs %d processors, and no cluster that this site heads has as many", e.job.Processors)
		if len(e.packed.unfit) > 0 {
			e.reason = "no cluster that this site heads has room for it; " + e.packed.why
		}
		e.packed = nil
		out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Text: e.reason})
		s.end(now, e, Refused, out)
	case w.Members[a.Member].Site == s.cfg.ID:
		e.packed = nil
		s.placeHere(now, e, out)
		s.save(e, out)
	default:
		// Deadlines are soft in a packing: the member promises the earliest end it can.
		pinned := *e.job
		pinned.Site, pinned.Deadline, pinned.Goal = w.Members[a.Member].Site, grid.Never, grid.GoalCost
		e.packed.member = pinned.Site
		s.agent.Step(now, &market.Place{Job: &pinned, Epoch: e.epoch, Messages: e.messages, Headed: true}, out)
	}
}

// packedAway: the member guarantees the job.
func (s *Site) packedAway(now grid.Time, e *entry) {
	a := &e.award
	for i := range e.verdicts {
		if v := &e.verdicts[i]; v.Site == a.Site {
			v.Price, v.Cost, v.Finish = a.Price, a.Cost, a.Finish
		}
	}
	list := slices.DeleteFunc(s.heads.booked[a.Site], func(b booking) bool { return !s.has(a.Site, b, now) })
	s.heads.booked[a.Site] = append(list, booking{e.task(), e.job.Processors, a.Start, a.Finish})
	if a.Bank == "" {
		e.packed, e.reason = nil, ""
	}
}

// has reports whether a member still has a job of this site.
func (s *Site) has(member grid.SiteID, b booking, now grid.Time) bool {
	e := s.current(b.task)
	return e != nil && !e.state.Terminal() && e.award.Site == member && b.finish > now
}

// packRefused: the member does not take the job, so it waits for the next window.
func (s *Site) packRefused(now grid.Time, e *entry, in *market.Refused, out *grid.Outbox) {
	p := e.packed
	why := "did not take it"
	for i := range in.Verdicts {
		if v := &in.Verdicts[i]; v.Site == p.member {
			why = v.Outcome.String() + ": " + v.Detail
			switch {
			case v.Outcome == market.OutcomeUnreachable:
				if l, heard := s.dir.Load(p.member); heard {
					s.heads.gone[p.member] = l.Sequence
				}
			case len(p.unfit) >= unfitMax:
			case v.Outcome == market.OutcomeTooLittle, v.Outcome == market.OutcomeTooNarrow, v.Outcome == market.OutcomeRefused && v.Refusal == market.TooWide:
				p.unfit = append(p.unfit, p.member)
			}
		}
	}
	p.why = s.memberName(p.member) + ": " + why
	p.barred = append(p.barred, p.member)
	p.times++
	e.messages = in.Messages
	out.Tell(grid.Event{Kind: grid.JobReplaced, Job: e.job, Epoch: e.epoch, Site: p.member, Text: p.why})
	s.place(now, e, out)
	s.save(e, out)
}

// memberName returns what people call a member.
func (s *Site) memberName(site grid.SiteID) string {
	if site == s.cfg.ID {
		return s.cfg.Name
	}
	if l, heard := s.dir.Load(site); heard && l.Headed.Name != "" {
		return l.Headed.Name
	}
	return string(site)
}

// memberList returns the clusters as they are known now: this site's own processors
// first, if it has any, then the members in the order of the configuration.
func (s *Site) memberList(now grid.Time) (members []muscle.Member) {
	if s.cfg.Processors > 0 {
		state := s.cluster.State(now)
		members = append(members, muscle.Member{
			Site: s.cfg.ID, Name: s.cfg.Name, Processors: s.cfg.Processors, Rating: s.cfg.Rating, Weights: s.cfg.Weights,
			Widest: state.Widest, Wait: max(state.Wait, grid.Time(state.QueuedWork/s.cfg.Processors)),
		})
	}
	reports := s.dir.Headed(s.cfg.ID)
	taken := map[grid.SiteID]bool{s.cfg.ID: true}
	for _, name := range s.heads.members {
		m := s.member(now, name, reports)
		if m.Site == "" || !taken[m.Site] {
			members = append(members, m)
		}
		taken[m.Site] = true
	}
	return members
}

// member returns what is known of a cluster that the configuration names.
func (s *Site) member(now grid.Time, name string, reports []directory.Load) muscle.Member {
	m := muscle.Member{Name: name, Presence: muscle.Unheard}
	var report *directory.Load
	for i := range reports {
		r := &reports[i]
		switch {
		case string(r.Site) == name:
			report = r
		case r.Headed.Name != name || report != nil && string(report.Site) == name:
			continue
		case report != nil:
			m.Presence = muscle.Unresolved
			return m
		default:
			report = r
		}
		if string(r.Site) == name {
			break
		}
	}
	if report == nil {
		if _, heard := s.dir.Load(grid.SiteID(name)); heard {
			m.Site, m.Presence = grid.SiteID(name), muscle.Unwilling
		}
		return m
	}
	h := &report.Headed
	m.Site, m.Name, m.Presence = report.Site, h.Name, muscle.Present
	if m.Name == "" {
		m.Name = string(m.Site)
	}
	m.Processors, m.Rating = h.Processors, h.Rating
	m.Weights = titan.Weights{OverDeadline: h.Weights[0], Makespan: h.Weights[1], Idle: h.Weights[2]}
	m.Widest, m.Wait = report.Widest, report.Wait
	if h.Processors > 0 {
		m.Wait = max(m.Wait, grid.Time(report.QueuedWork/h.Processors)*grid.Second)
	}
	m.Wait -= now - report.Heard
	if sequence, gone := s.heads.gone[m.Site]; gone && sequence >= report.Sequence || now-report.Heard > s.dir.Silence() {
		m.Presence = muscle.Silent
	} else if gone {
		delete(s.heads.gone, m.Site)
	}
	for _, b := range s.heads.booked[m.Site] {
		if s.has(m.Site, b, now) {
			m.Booked = append(m.Booked, muscle.Booking{Processors: b.processors, Start: max(b.start-now, 0), Finish: b.finish - now})
		}
	}
	return m
}
