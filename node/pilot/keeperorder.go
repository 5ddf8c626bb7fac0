package pilot

import (
	"fmt"

	"gridnode/grid"
)

// ordered takes an order of a borrower. Only those of its newest session count: one of an
// older session may have been overtaken by an acknowledgement, after which nobody would
// know that the task has run.
func (k *Keeper) ordered(now grid.Time, in *Ordered, out *Outbox) {
	b := k.borrowers[in.From]
	if b != nil {
		switch {
		case in.Session < b.session:
			out.order(Tell{in.From, in.Session, Report{Kind: ReportSuperseded, ID: in.Order.ID, Session: b.session}})
			out.order(Hangup{in.From, in.Session})
			return
		case in.Session > b.session:
			if b.open {
				out.order(Hangup{in.From, b.session})
			}
			b.session, b.open = in.Session, true
		case !b.open: // it came after its end: it is asked again
			return
		}
	}
	p := k.pilots[in.Order.Key]
	switch {
	case p == nil || p.borrower != b:
		refuse(in, noLease, out)
	case p.state == keptUp || p.tasks[in.Order.ID].isOver():
		k.obey(now, p, in, out)
	case len(p.waiting) >= TasksMax:
		refuse(in, "the pilot is starting, and much waits for it", out)
	default:
		p.waiting = append(p.waiting, *in)
		p.dial(out)
	}
}

// refuse answers an order that cannot be carried out now.
func refuse(in *Ordered, why string, out *Outbox) {
	kind := ReportRefused
	if in.Order.Kind == OrderAcknowledge { // it is not here any more, or goes with the pilot
		kind, why = ReportForgotten, ""
	}
	out.order(Tell{in.From, in.Session, Report{Kind: kind, ID: in.Order.ID, Reason: short(why)}})
}

func (p *kept) refuse(in *Ordered, why string, out *Outbox) {
	if p.borrower.open && in.Session == p.borrower.session {
		refuse(in, why, out)
	}
}

// obey carries an order out.
func (k *Keeper) obey(now grid.Time, p *kept, in *Ordered, out *Outbox) {
	o := in.Order
	t := p.tasks[o.ID]
	switch {
	case o.Kind == OrderAcknowledge:
		p.forget(o.ID, out)
		out.order(Tell{in.From, in.Session, Report{Kind: ReportForgotten, ID: o.ID}})
	case t != nil:
		k.again(p, t, o, out)
	case o.Resume:
		out.order(Tell{in.From, in.Session, Report{Kind: ReportLost, ID: o.ID}})
	case len(p.tasks) >= TasksMax:
		refuse(in, fmt.Sprintf("the lease has %d tasks whose ends were not acknowledged", TasksMax), out)
	case o.Kind == OrderKill: // it will not be started any more
		t = &held{id: o.ID, follower: in.Session, tasks: o.Tasks, roll: roll{left: o.Tasks}}
		p.tasks[o.ID] = t
		p.ended(t, Whole, cancelled(o), out)
	default:
		if why := k.enter(now, p, in, out); why != "" {
			refuse(in, why, out)
		}
	}
}

func cancelled(o *Order) End { return End{ExitCode: ExitCancelled, Reason: o.Reason} }

// enter starts a task that the pilot does not have, or prepares it first if it is of a
// gang. It returns why it cannot.
func (k *Keeper) enter(now grid.Time, p *kept, in *Ordered, out *Outbox) (refused string) {
	o := in.Order
	processors := o.Task.Job.Processors
	if k.permits != nil {
		if why := k.permits(now, in.From, o.Task.Job); why != "" {
			return why
		}
	}
	switch {
	case p.unknown > 0:
		return "the lease has tasks of which it is not known yet how many processors they take"
	case processors > p.processors-p.used:
		return fmt.Sprintf("%d processors are wanted, the lease has %d", p.used+processors, p.processors)
	}
	task := *o.Task
	task.Pilot = grid.Pilot{Site: p.borrower.id, Key: p.key}
	t := &held{id: o.ID, processors: processors, task: &task, follower: in.Session, goes: o.Kind == OrderRun, tasks: o.Tasks, roll: roll{left: o.Tasks}}
	if q := task.Squad; q != nil {
		if at := q.Gang.Parts[q.Part].Site; at != k.self {
			return fmt.Sprintf("component %d is to run at %s", q.Part, at)
		}
		if p.gang != q.Gang.Task && p.gang != (grid.TaskID{}) {
			return fmt.Sprintf("the lease has tasks of job %s, epoch %d", p.gang.Job, p.gang.Epoch)
		}
		p.gang = q.Gang.Task
	}
	p.tasks[o.ID] = t
	p.used += processors
	if task.Squad != nil {
		out.order(Prepare{p.key, p.borrower.id, task, p.until})
		return ""
	}
	p.launch(t, o, out)
	return ""
}

// launch starts a task. o is the order that its borrower gave in the present session, nil
// if it has been a while.
func (p *kept) launch(t *held, o *Order, out *Outbox) {
	out.order(Launch{p.key, *t.task})
	t.state, t.task, t.ran = heldRunning, nil, true
	p.begun(t, o, out)
}

// begun reports that the pilot has a task, and all that it writes from then on.
func (p *kept) begun(t *held, o *Order, out *Outbox) {
	b := p.borrower
	if !b.open || t.follower != b.session {
		return
	}
	p.tell(t, Report{Kind: ReportBegun}, out)
	f := Follow{To: b.id, Session: b.session, Key: p.key, ID: t.id, Tasks: t.tasks}
	if o != nil {
		f.Have = o.Have
	}
	out.order(f)
}

// again is an order about a task that the pilot has.
func (k *Keeper) again(p *kept, t *held, o *Order, out *Outbox) {
	followed := t.follower == p.borrower.session
	t.follower = p.borrower.session
	if t.unknown && o.Task != nil {
		t.unknown, t.processors = false, o.Task.Job.Processors
		p.unknown--
		p.used += t.processors
	}
	if t.found > 0 {
		missing := t.found < o.Tasks
		t.found = 0
		if t.tasks = o.Tasks; missing { // the daemon has died when it had started some
			t.roll.missing()
			if !t.isOver() {
				p.stop(t, becauseAnother, out)
			}
		}
	}
	switch {
	case t.isOver():
		if !followed && t.ran {
			p.begun(t, o, out)
		}
		p.tellEnd(t, out)
	case t.state == heldRunning:
		if !followed {
			p.begun(t, o, out)
		}
		if o.Kind == OrderKill {
			p.stop(t, o.Reason, out)
		}
	case o.Kind == OrderKill:
		p.ended(t, Whole, cancelled(o), out)
	case t.state == heldPreparing:
		t.goes = t.goes || o.Kind == OrderRun
	case o.Kind == OrderRun:
		p.launch(t, o, out)
	default:
		p.tell(t, Report{Kind: ReportReady}, out)
	}
}

// prepared goes on with a task of a gang.
func (k *Keeper) prepared(in *Prepared, out *Outbox) {
	p, t := k.find(in.Key, in.ID)
	if t == nil || t.state != heldPreparing {
		return
	}
	switch {
	case in.Refused != "":
		p.vacate(t)
		delete(p.tasks, t.id)
		p.tell(t, Report{Kind: ReportRefused, Reason: short(in.Refused)}, out)
		return
	case in.Failed != "":
		p.ended(t, Whole, End{ExitCode: ExitNoStart, Reason: short(in.Failed)}, out)
		return
	}
	squad := *t.task.Squad
	squad.Addresses, squad.Inputs = in.Addresses, in.Inputs
	t.task.Squad = &squad
	if t.goes {
		p.launch(t, nil, out)
		return
	}
	t.state = heldReady
	p.tell(t, Report{Kind: ReportReady}, out)
}

// forget drops the end of a task.
func (p *kept) forget(id grid.TaskID, out *Outbox) {
	if p.tasks[id].isOver() {
		delete(p.tasks, id)
		out.order(Forget{p.key, id})
	}
}
