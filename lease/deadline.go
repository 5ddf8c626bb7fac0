package lease

import (
	"fmt"
	"strings"

	"gridnode/grid"
)

// A job with a deadline is delegated as long as a lease can still keep it: the request says
// within which span processors must be there, whoever refuses says when it would have them
// and for how long, and what is granted is claimed only if the job ends in time on it. Of a
// job that waits for a lease only, its owner hears when none keeps its deadline (Unmet).

// Unmet says that no lease keeps the deadline of a job that was given to SubmitWide. It is
// forgotten.
type Unmet struct {
	Task   grid.TaskID
	Reason string // for the user
}

// outlook is what sites have said in this round about when a job could have processors.
type outlook struct {
	ready grid.Time // the earliest instant; grid.Never: nobody says
	said  []string  // for the user
}

// saidMax bounds what is told to users about a round.
const saidMax = 4

// say remembers what a site has said.
func (o *outlook) say(site grid.SiteID, format string, args ...any) {
	if len(o.said) < saidMax {
		o.said = append(o.said, fmt.Sprintf("%s: ", site)+fmt.Sprintf(format, args...))
	}
}

// heard takes what a site that refuses has said: a job of so long a run time could start
// there then.
func (o *outlook) heard(now grid.Time, in *Refused, need grid.Time) {
	switch {
	case in.Reason == Unreachable || in.Reason == Silent || in.Reason == Full: // nobody knows: it is asked again
		o.ready = min(o.ready, now)
		o.say(in.Lender, "%v", in.Reason)
	case in.Span > 0 && in.Span < need:
		o.say(in.Lender, "lends for %v at most, the job takes up to %v", in.Span, need)
	case in.Ready > 0:
		o.ready = min(o.ready, now.Add(in.Ready))
		o.say(in.Lender, "%v, ready in %v", in.Reason, in.Ready/grid.Second*grid.Second)
	default:
		o.say(in.Lender, "%v", in.Reason)
	}
}

// within returns within which span the processors for a request have to be there; 0 if it
// does not matter. ok is false if it is too late.
func (d *demand) within(now grid.Time) (span grid.Time, ok bool) {
	if d.latest == grid.Never {
		return 0, true
	}
	return d.latest - now, d.latest > now
}

// kept reports whether a job that starts now on a lease of that span ends by its deadline.
func (d *demand) kept(now, span grid.Time) bool {
	return d.latest == grid.Never || now <= d.latest && span >= d.Estimate
}

// decline gives a lease back on which a job would not keep its deadline, and asks the next
// target.
func (d *demand) decline(m *Matchmaker, now grid.Time, l *Lease, out *grid.Outbox) {
	if now > d.latest {
		d.outlook.say(l.Lender, "its processors came too late")
	} else {
		d.outlook.say(l.Lender, "lends for %v, the job takes up to %v", l.Span, d.Estimate)
	}
	delete(m.asking, l.Number)
	d.out = 0
	_ = m.book.Release(now, l.ID, out) // ErrUnknown: it has ended by itself
	m.again(now, d, out)
}

// unmet is the end of a round for a job with a deadline. One of the queue keeps its place
// there. One that waits for a lease is delegated anew if somebody will have processors in
// time; else its owner hears that nobody will.
func (d *demand) unmet(m *Matchmaker, now grid.Time, out *grid.Outbox) {
	ready, said := d.outlook.ready, d.outlook.said
	d.outlook = outlook{ready: grid.Never}
	d.retry = now + m.cfg.Retry
	switch {
	case !d.wide:
		d.away = false
		m.cluster.Unpark(now, d.ID)
	case now < d.latest && ready <= d.latest:
		if !d.aside {
			m.setAside(d)
		}
	default:
		switch {
		case now > d.latest:
			said = append(said, fmt.Sprintf("the job takes up to %v, more than is left", d.Estimate))
		case len(said) == 0:
			said = []string{"there is nobody to be asked"}
		}
		m.forget(d)
		out.Local(&Unmet{d.ID, strings.Join(said, "; ")})
	}
}
