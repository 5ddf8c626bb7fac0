package site

import (
	"fmt"
	"slices"
	"time"

	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
	"gridnode/market"
)

// packing is the part of a site that heads clusters: it collects jobs for a window, and
// shares them out over the clusters when the window closes.
type packing struct {
	*base
	*muscle.Head
	jobs    *jobs
	here    here
	agent   *market.Agent
	payment cheques
	dir     *directory.Directory

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

	arrival, deadline grid.Time
}

// due returns the job's deadline, counted from now.
func (b *booking) due(now grid.Time) grid.Time {
	if b.deadline == grid.Never {
		return grid.Never
	}
	return b.deadline - now
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

// head makes the muscle.Head. The error is about the configuration.
func (h *packing) head(seed uint64) (err error) {
	if len(h.members) > muscle.MembersMax {
		return fmt.Errorf("heads %d clusters, at most %d", len(h.members), muscle.MembersMax)
	}
	h.Head, err = muscle.NewHead(h.cfg.Heads.HeadConfig, streamPacking.of(seed))
	return err
}

func (*packing) takes(*board) {}

// tick shares the jobs out when the window closes.
func (h *packing) tick(now grid.Time, out *grid.Outbox) {
	if h.NextTimer() > now {
		return
	}
	members := h.memberList(now)
	if !h.Due(now, members) {
		return
	}
	w := h.Close(now, members)
	for i := range w.Allotments {
		a := &w.Allotments[i]
		if e := h.jobs.byID[a.Job.ID]; e != nil && e.packed != nil && e.state == Placing {
			h.allot(now, e, w, a, out)
		}
	}
	w.Allotments = nil
	h.last, h.closed = w, now
}

func (h *packing) nextTimer() grid.Time { return h.NextTimer() }

// wants implements way: a job is shared out over the clusters that this site heads,
// unless its owner wants the market, or named a site.
func (*packing) wants(j *grid.Job) bool {
	return j.Goal == grid.GoalLocal && j.Budget < 0 && j.Site == ""
}

// admit refuses a job that would be refused at the end of its window, as it is
// wider than every cluster.
func (h *packing) admit(now grid.Time, j *grid.Job) error {
	if j.Processors <= h.widest {
		return nil // a burst of jobs does not look at all members again and again
	}
	members := h.memberList(now)
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

// place lets a job wait for the end of the window.
func (h *packing) place(now grid.Time, e *entry, _ *grid.Outbox) {
	if e.packed == nil {
		e.packed = &packed{}
	}
	p := e.packed
	p.member, e.reason = "", ""
	h.Collect(now, e.job, p.barred, p.unfit, p.times)
	if h.OnArrival() {
		h.Assign(now, e.job.ID, h.memberList(now))
	}
	p.barred = nil
}

// withdraw takes a job out that is not wanted any more.
func (h *packing) withdraw(_ grid.Time, e *entry, _ *grid.Outbox) {
	if e.packed != nil {
		h.Head.Withdraw(e.job.ID)
		e.packed = nil
	}
}

// explain implements way. What the last window made of a job that no member could take
// is worked out for whoever asks: thousands may wait.
func (h *packing) explain(e *entry, v *View, whole bool) {
	if e.packed == nil {
		return
	}
	if whole && h.Left(e.job.ID) {
		v.Verdicts = h.reasons(h.closed, h.last, e.job, nil)
	}
	if e.state != Placing || e.award.Site != "" || h.payment.parks(e) {
		return
	}
	v.Waits = true
	if e.packed.member != "" {
		v.Reason = "is being given to " + h.memberName(e.packed.member)
		return
	}
	jobs, closes := h.Waiting()
	v.Reason = fmt.Sprintf("waits for the packing window that closes at %s, one of %d jobs so far",
		time.UnixMicro(int64(closes)).UTC().Format("15:04:05.0Z"), jobs)
	if rule, threshold := h.Collects(); rule == muscle.CollectMakespan {
		v.Reason = fmt.Sprintf("waits until a cluster has work for no more than %v, one of %d jobs so far", threshold.Duration(), jobs)
	}
	switch {
	case h.Left(e.job.ID):
		v.Reason = "no member that is there could take it; " + v.Reason
	case e.packed.why != "":
		v.Reason = e.packed.why + "; " + v.Reason
	}
}

// preview implements way.
func (h *packing) preview(now grid.Time, in *Preview, out *grid.Outbox) {
	out.Answer(in.Token, h.outlook(now, in.Job))
}

// allot gives a job to the cluster that it was allotted to.
func (h *packing) allot(now grid.Time, e *entry, w *muscle.Window, a *muscle.Allotment, out *grid.Outbox) {
	e.verdicts = h.reasons(now, w, e.job, a)
	switch {
	case a.Member < 0:
		e.reason = fmt.Sprintf("needs %d processors, and no cluster that this site heads has as many", e.job.Processors)
		if len(e.packed.unfit) > 0 {
			e.reason = "no cluster that this site heads has room for it; " + e.packed.why
		}
		e.packed = nil
		out.Tell(grid.Event{Kind: grid.JobRefused, Job: e.job, Epoch: e.epoch, Text: e.reason})
		h.jobs.end(now, e, Refused, out)
	case w.Members[a.Member].Site == h.cfg.ID:
		e.packed = nil
		h.here.place(now, e, out)
		h.jobs.save(e, out)
	default:
		// Deadlines are soft in a packing: the member promises the earliest end it can.
		pinned := *e.job
		pinned.Site, pinned.Deadline, pinned.Goal = w.Members[a.Member].Site, grid.Never, grid.GoalCost
		e.packed.member = pinned.Site
		// It counts from here on, as the next packing may come before the member's answer.
		start := now.Add(a.Placement.Start)
		h.book(now, pinned.Site, booking{e.task(), e.job.Processors, start, a.Finish, e.job.Submit, e.job.Deadline})
		e.unheard.Place()
		h.agent.Step(now, &market.Place{Job: &pinned, Epoch: e.epoch, Messages: e.messages, Losses: e.losses, Headed: true}, out)
	}
}

// placed: the member guarantees the job.
func (h *packing) placed(now grid.Time, e *entry) {
	a := &e.award
	for i := range e.verdicts {
		if v := &e.verdicts[i]; v.Site == a.Site {
			v.Price, v.Cost, v.Finish = a.Price, a.Cost, a.Finish
		}
	}
	h.book(now, a.Site, booking{e.task(), e.job.Processors, a.Start, a.Finish, e.job.Submit, e.job.Deadline})
	if a.Bank == "" {
		e.packed, e.reason = nil, ""
	}
}

// book notes what a member has, or is being asked to take, in place of what was noted of
// the job before.
func (h *packing) book(now grid.Time, member grid.SiteID, b booking) {
	list := slices.DeleteFunc(h.booked[member], func(o booking) bool { return o.task == b.task || !h.has(member, o, now) })
	h.booked[member] = append(list, b)
}

// has reports whether a member still has a job of this site, or is being asked to take it.
func (h *packing) has(member grid.SiteID, b booking, now grid.Time) bool {
	e := h.jobs.current(b.task)
	theirs := e != nil && (e.award.Site == member || e.award.Site == "" && e.packed != nil && e.packed.member == member)
	return theirs && !e.state.Terminal() && b.finish > now
}

// refused: the member does not take the job, so it waits for the next window.
func (h *packing) refused(now grid.Time, e *entry, in *market.Refused, out *grid.Outbox) {
	p := e.packed
	why := "did not take it"
	for i := range in.Verdicts {
		if v := &in.Verdicts[i]; v.Site == p.member {
			why = v.Outcome.String() + ": " + v.Detail
			switch {
			case v.Outcome == market.OutcomeUnreachable:
				if l, heard := h.dir.Load(p.member); heard {
					h.gone[p.member] = l.Sequence
				}
			case len(p.unfit) >= unfitMax:
			case v.Outcome == market.OutcomeTooLittle, v.Outcome == market.OutcomeTooNarrow, v.Outcome == market.OutcomeRefused && v.Refusal == market.TooWide:
				p.unfit = append(p.unfit, p.member)
			}
		}
	}
	p.why = h.memberName(p.member) + ": " + why
	p.barred = append(p.barred, p.member)
	p.times++
	e.messages = in.Messages
	out.Tell(grid.Event{Kind: grid.JobReplaced, Job: e.job, Epoch: e.epoch, Site: p.member, Text: p.why})
	h.jobs.place(now, e, out)
	h.jobs.save(e, out)
}

// memberName returns what people call a member.
func (h *packing) memberName(site grid.SiteID) string {
	if site == h.cfg.ID {
		return h.cfg.Name
	}
	if l, heard := h.dir.Load(site); heard && l.Headed.Name != "" {
		return l.Headed.Name
	}
	return string(site)
}

// memberList returns the clusters as they are known now: this site's own processors
// first, if it has any, then the members in the order of the configuration.
func (h *packing) memberList(now grid.Time) (members []muscle.Member) {
	if h.cfg.Processors > 0 {
		state := h.cluster.State(now)
		members = append(members, muscle.Member{
			Site: h.cfg.ID, Name: h.cfg.Name, Processors: h.cfg.Processors, Rating: h.cfg.Rating, Weights: h.cfg.Weights,
			Widest: state.Widest, Wait: max(state.Wait, grid.Time(state.QueuedWork/h.cfg.Processors)),
		})
	}
	reports := h.dir.Headed(h.cfg.ID)
	taken := map[grid.SiteID]bool{h.cfg.ID: true}
	for _, name := range h.members {
		m := h.member(now, name, reports)
		if m.Site == "" || !taken[m.Site] {
			members = append(members, m)
		}
		taken[m.Site] = true
	}
	return members
}

// member returns what is known of a cluster that the configuration names.
func (h *packing) member(now grid.Time, name string, reports []directory.Load) muscle.Member {
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
		if _, heard := h.dir.Load(grid.SiteID(name)); heard {
			m.Site, m.Presence = grid.SiteID(name), muscle.Unwilling
		}
		return m
	}
	said := &report.Headed
	m.Site, m.Name, m.Presence = report.Site, said.Name, muscle.Present
	if m.Name == "" {
		m.Name = string(m.Site)
	}
	m.Processors, m.Rating = said.Processors, said.Rating
	m.Weights = titan.Weights{OverDeadline: said.Weights[0], Makespan: said.Weights[1], Idle: said.Weights[2]}
	m.Widest, m.Wait = report.Widest, report.Wait
	if said.Processors > 0 {
		m.Wait = max(m.Wait, grid.Time(report.QueuedWork/said.Processors)*grid.Second)
	}
	m.Wait -= now - report.Heard
	if sequence, gone := h.gone[m.Site]; gone && sequence >= report.Sequence || now-report.Heard > h.dir.Silence() {
		m.Presence = muscle.Silent
	} else if gone {
		delete(h.gone, m.Site)
	}
	for _, b := range h.booked[m.Site] {
		if h.has(m.Site, b, now) {
			m.Booked = append(m.Booked, muscle.Booking{
				Processors: b.processors, Start: b.start - now, Finish: b.finish - now, Arrival: b.arrival - now, Deadline: b.due(now),
			})
		}
	}
	return m
}

// headed is what this site tells the one that heads it.
func (b *base) headed() directory.Headed {
	if b.cfg.Head == "" {
		return directory.Headed{}
	}
	w := b.cfg.Weights
	return directory.Headed{
		Head: b.cfg.Head, Name: b.cfg.Name, Processors: b.cfg.Processors, Rating: b.cfg.Rating,
		Weights: [3]int64{w.OverDeadline, w.Makespan, w.Idle},
	}
}
