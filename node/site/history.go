package site

import (
	"strconv"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node/history"
)

// chronicle is the part that writes the job log: a line for whatever ends here, or for this
// site elsewhere, saved in the step in which it ends. Sites of experiments have none.
type chronicle struct {
	*base
	log      *history.Log
	siteName func(grid.SiteID) string
	orgOf    func(grid.SiteID) string
}

// HistoryConfig says that the site keeps a job log.
type HistoryConfig struct {
	Last uint64 // number of the last line in files; 0: there is none
}

// HistoryKept tells the site that files have all lines of its job log up to one.
type HistoryKept struct{ Last uint64 }

func (*chronicle) takes(b *board) {
	take(b, func(s *Site) *chronicle { return s.chronicle }, (*chronicle).kept).private = calmNobody
}

func (c *chronicle) kept(_ grid.Time, in *HistoryKept, out *grid.Outbox) { c.log.Kept(in.Last, out) }

func (*chronicle) keeps() []string { return []string{history.Prefix} }

// recover implements recorder.
func (c *chronicle) recover(_ grid.Time, stored records, out *grid.Outbox) error {
	for key := range stored.each {
		if err := c.log.Recover(key, out); err != nil {
			return err
		}
	}
	return nil
}

// job writes the line of a job that has ended in a state.
func (c *chronicle) job(now grid.Time, e *entry, state State, out *grid.Outbox) {
	if c == nil {
		return
	}
	j, r := e.job, &e.result
	l := &history.Line{
		Kind: history.Job, Foreign: e.foreign, ID: j.ID.String(), Epoch: e.epoch, Number: j.Number, Name: j.Name, User: j.User,
		Home: j.Home, Site: e.award.Site, Processors: j.Processors, GPUs: j.GPUs.Count, Submitted: j.Submit,
		Start: r.Start, End: r.End, Price: e.award.Price, Cost: r.Cost, Bank: e.award.Bank, State: state.String(), Exit: r.ExitCode, Reason: e.reason,
	}
	if state == Returned {
		l.Start = e.start
	}
	if l.End == 0 {
		l.End = now
	}
	if l.Start == l.End { // it was cancelled before it began
		l.Start = 0
	}
	if r.Reason != "" {
		l.Reason = r.Reason
	}
	if e.foreign {
		l.Site = c.cfg.ID
	}
	if e.gang != nil {
		l.Site = ""
		for _, p := range e.gang.Parts {
			l.Sites = append(l.Sites, p.Site)
		}
	}
	if l.Start > 0 {
		l.Used = max(l.End-l.Start, 0) * grid.Time(l.Processors)
	}
	c.write(l, out)
}

// lent writes the line of a lease of this site's processors that has ended.
func (c *chronicle) lent(now grid.Time, in *lease.Ended, out *grid.Outbox) {
	if c == nil || in.State != lease.Active && (in.State != lease.Held || in.Price == 0) {
		return // it was never there, or is told again
	}
	end := min(now, in.End)
	l := &history.Line{
		Kind: history.Lease, Foreign: true, ID: strconv.FormatUint(in.Number, 10), Home: in.Borrower, Site: c.cfg.ID,
		Processors: in.Processors, Start: in.Since, End: end, Price: in.Price, Bank: in.Bank, State: "ended", Reason: in.Cause.String(),
	}
	held := max(end-in.Since, 0)
	if in.State == lease.Held && (in.Cause == lease.Revoked || in.Cause == lease.Broken) {
		held = 0 // as it is billed
	}
	l.Used, l.Cost = held*grid.Time(l.Processors), grid.CostProcessorTime.Cost(in.Price, in.Processors, held)
	c.write(l, out)
}

func (c *chronicle) write(l *history.Line, out *grid.Outbox) {
	l.HomeName = c.siteName(l.Home)
	if l.Site != "" {
		l.SiteName = c.siteName(l.Site)
	}
	if l.Bank != "" {
		l.BankName = c.siteName(l.Bank)
	}
	if l.Foreign {
		l.Org = c.orgOf(l.Home)
	} else if l.Site != c.cfg.ID {
		l.Org = c.orgOf(l.Site)
	}
	c.log.Add(l, out)
}

// full reports whether no more jobs should be taken, as their ends could not be logged.
func (c *chronicle) full() bool { return c != nil && c.log.Full() }

// LastLine returns the number of the latest line of the job log; 0: there is none.
func (s *Site) LastLine() uint64 {
	if s.chronicle == nil {
		return 0
	}
	return s.chronicle.log.Last()
}
