package pilot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gridnode/grid"
)

// User is what a borrower runs on the processors of its leases. It has one link for each
// site where something runs, and goes on with every task, over lost connections and
// restarts of either daemon, until the task ends or its lease does. It reads no clock and
// does no I/O. Not safe for concurrent use.
type User struct {
	links   map[grid.SiteID]*link
	tasks   map[grid.TaskID]*away
	alarms  grid.Alarms[*link]
	session uint64 // the last, but for links whose site knows higher ones
	turns   uint64 // tasks so far
}

// link is what runs at one site.
type link struct {
	site    grid.SiteID
	tasks   map[grid.TaskID]*away
	state   linkState
	session uint64
	floor   uint64            // what the site has called its newest session
	since   grid.Time         // connecting, connected
	pause   grid.Time         // before the next attempt but one
	alarm   grid.Alarm[*link] // paused: the next attempt; connected: a task that was refused is to be asked for again
}

type linkState uint8

const (
	linkConnecting linkState = iota
	linkConnected
	linkPaused
)

// away is a task on borrowed processors.
type away struct {
	task  grid.Task
	turn  uint64
	link  *link
	begun bool // its pilot has said that it has it
	held  bool // it is to be prepared only

	kill  bool
	cause string
	over  bool      // the site was told its end
	safe  grid.Time // when the end was acknowledged; 0: it was not

	sent  OrderKind // the last order about it in this session; 0: none, or it was refused
	retry grid.Time // refused: when to ask again
}

// NewUser returns a user of nothing.
func NewUser() *User {
	return &User{links: make(map[grid.SiteID]*link), tasks: make(map[grid.TaskID]*away)}
}

// Has reports whether a task runs on borrowed processors, or its end is not forgotten
// everywhere.
func (u *User) Has(id grid.TaskID) bool { return u.tasks[id] != nil }

// Step applies one input at time now and appends to out what the driver must carry out in
// order. now never decreases. An unknown input is a defect: panic.
func (u *User) Step(now grid.Time, in grid.Input, out *Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		u.tick(now, out)
	case *Start:
		u.add(now, in.Task, slices.Contains(in.Begun, in.Task.ID), false, out)
	case *Hold:
		u.add(now, in.Task, in.Begun, true, out)
	case *Go:
		for _, id := range in.IDs {
			if t := u.tasks[id]; t != nil && t.held {
				t.held, t.retry = false, 0
				u.speak(now, t, out)
			}
		}
	case *Kill:
		u.kill(now, &in.Task, out)
	case *Acknowledge:
		for _, id := range in.IDs {
			if t := u.tasks[id]; t != nil && t.over && t.safe == 0 {
				t.safe, t.retry = max(now, 1), 0
				u.speak(now, t, out)
			}
		}
	case *Abandon:
		for _, id := range in.IDs {
			u.forget(id, out)
		}
	case *Connected:
		u.connected(now, in, out)
	case *Disconnected:
		u.disconnected(now, in, out)
	case *Reported:
		if l := u.links[in.Site]; l != nil && l.state == linkConnected && l.session == in.Session {
			u.reported(now, l, in.Report, out)
		}
	default:
		panic(fmt.Sprintf("pilot: unknown input %T of a user", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (u *User) NextTimer() grid.Time { return u.alarms.Next() }

// add takes up a task. One that has begun is not held: it goes on.
func (u *User) add(now grid.Time, task grid.Task, begun, held bool, out *Outbox) {
	if u.tasks[task.ID] != nil {
		return
	}
	u.turns++
	t := &away{task: task, turn: u.turns, begun: begun, held: held && !begun}
	u.tasks[task.ID] = t
	if held && begun {
		out.local(&SquadReady{task.ID})
	}
	l := u.links[task.Pilot.Site]
	if l == nil {
		l = &link{site: task.Pilot.Site, tasks: make(map[grid.TaskID]*away), pause: PauseMin}
		l.alarm.Owner = l
		u.links[l.site] = l
		u.connect(now, l, out)
	}
	t.link = l
	l.tasks[task.ID] = t
	u.speak(now, t, out)
}

// kill has a task ended. Of one that is not there nobody will tell the end; that of one
// that has ended is under way.
func (u *User) kill(now grid.Time, task *grid.Task, out *Outbox) {
	t := u.tasks[task.ID]
	switch {
	case task.Abandon:
		u.forget(task.ID, out)
	case t == nil:
		out.ended(now, task.ID, End{Lost: true})
	case !t.over && !t.kill:
		t.kill, t.cause, t.retry = true, short(task.Cause), 0
		u.speak(now, t, out)
	}
}

// connect begins a session with a site.
func (u *User) connect(now grid.Time, l *link, out *Outbox) {
	u.session = max(u.session+1, uint64(now))
	l.session = max(u.session, l.floor+1, l.session+1)
	l.state, l.since = linkConnecting, now
	u.alarms.Stop(&l.alarm)
	out.order(Connect{l.site, l.session})
}

func (u *User) connected(now grid.Time, in *Connected, out *Outbox) {
	l := u.links[in.Site]
	if l == nil || l.session != in.Session || l.state != linkConnecting {
		return
	}
	l.state, l.since = linkConnected, now
	for _, t := range l.inTurn() {
		u.speak(now, t, out)
	}
}

// disconnected waits before it tries again: what was ordered is asked for anew then.
func (u *User) disconnected(now grid.Time, in *Disconnected, out *Outbox) {
	l := u.links[in.Site]
	if l == nil || l.session != in.Session || l.state == linkPaused {
		return
	}
	if l.state == linkConnected && now-l.since > PauseMax {
		l.pause = PauseMin
	}
	l.state = linkPaused
	u.alarms.Set(&l.alarm, now+l.pause)
	l.pause = min(2*l.pause, PauseMax)
	for _, t := range l.inTurn() {
		t.sent, t.retry = 0, 0
		if t.held { // nobody knows whether it still is ready there
			out.local(&SquadRefused{t.task.ID, "its site cannot be reached"})
		}
		if t.safe != 0 && now-t.safe > ForgetMax {
			u.forget(t.task.ID, out)
		}
	}
}

// inTurn returns the tasks in the order they came.
func (l *link) inTurn() []*away {
	return slices.SortedFunc(maps.Values(l.tasks), func(a, b *away) int { return cmp.Compare(a.turn, b.turn) })
}

// tick makes the attempts that are due.
func (u *User) tick(now grid.Time, out *Outbox) {
	for a := u.alarms.Pop(now); a != nil; a = u.alarms.Pop(now) {
		l := a.Owner
		if l.state == linkPaused {
			u.connect(now, l, out)
			continue
		}
		for _, t := range l.inTurn() {
			u.speak(now, t, out)
		}
	}
}

// wants returns the order that a task needs now, 0 if none.
func (t *away) wants() OrderKind {
	switch {
	case t.safe != 0:
		return OrderAcknowledge
	case t.over:
		return 0
	case t.kill:
		return OrderKill
	case t.held:
		return OrderPrepare
	}
	return OrderRun
}

// speak sends the order that a task needs, unless it was sent in this session or has to
// wait.
func (u *User) speak(now grid.Time, t *away, out *Outbox) {
	l, kind := t.link, t.wants()
	if l.state != linkConnected || kind == 0 || kind == t.sent {
		return
	}
	if t.retry > now {
		u.retry(l, t.retry)
		return
	}
	o := Order{Kind: kind, Key: t.task.Pilot.Key, ID: t.task.ID, Tasks: tasksOf(&t.task)}
	switch kind {
	case OrderRun, OrderPrepare:
		o.Task, o.Resume = &t.task, t.begun
	case OrderKill:
		o.Resume, o.Reason = t.begun, t.cause
	}
	t.sent = kind
	out.order(Send{l.site, l.session, o})
}

// retry has something asked for again at an instant.
func (u *User) retry(l *link, at grid.Time) {
	if !l.alarm.SetBy(at) {
		u.alarms.Set(&l.alarm, at)
	}
}

// tasksOf returns how many tasks are started with one.
func tasksOf(t *grid.Task) int {
	if t.Squad != nil {
		return t.Squad.Tasks()
	}
	return 1
}

// reported takes in what a lender says about a task; about one that is not there, nothing.
func (u *User) reported(now grid.Time, l *link, r *Report, out *Outbox) {
	if r.Kind == ReportSuperseded { // numbers have gone back with the clock
		l.floor = max(l.floor, min(r.Session, sessionMax-1))
		return
	}
	t := l.tasks[r.ID]
	if t == nil {
		return
	}
	switch {
	case r.Kind == ReportForgotten:
		if t.safe != 0 {
			u.forget(r.ID, out)
		}
	case t.over:
	case r.Kind == ReportBegun:
		u.begun(t, out)
	case r.Kind == ReportReady:
		if t.held {
			out.local(&SquadReady{r.ID})
		}
	case r.Kind == ReportEnded:
		t.over = true
		out.ended(now, r.ID, r.End)
	case r.Kind == ReportLost:
		t.over = true
		out.ended(now, r.ID, End{Lost: true})
	case r.Kind == ReportRefused:
		t.sent, t.retry = 0, now+RefusedPause
		u.retry(l, t.retry)
		if t.held {
			out.local(&SquadRefused{r.ID, short(r.Reason)})
		}
	}
}

// sessionMax bounds what a lender may make of the numbers of sessions.
const sessionMax = 1 << 62

// begun notes that a task has begun. One that was to be prepared had begun before a
// restart that nobody told of it.
func (u *User) begun(t *away, out *Outbox) {
	if !t.begun {
		t.begun = true
		out.order(Begin{t.task.ID})
	}
	if t.held {
		if t.held = false; !t.kill { // else it was told that already
			t.sent = OrderRun
		}
		out.local(&SquadReady{t.task.ID})
	}
}

// forget drops a task, and with the last one the link.
func (u *User) forget(id grid.TaskID, out *Outbox) {
	t := u.tasks[id]
	if t == nil {
		return
	}
	l := t.link
	delete(u.tasks, id)
	delete(l.tasks, id)
	if len(l.tasks) > 0 {
		return
	}
	delete(u.links, l.site)
	u.alarms.Stop(&l.alarm)
	if l.state != linkPaused {
		out.order(Disconnect{l.site, l.session})
	}
}
