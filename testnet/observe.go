package testnet

import "gridnode/grid"

// Observe adds an observer; observers are called in the order they were added.
func (n *Network) Observe(o Observer) { n.observers = append(n.observers, o) }

// Of what happens in a stride observers are told after it, in the order of the network's
// events: what they are given is kept until then.

// untold reports whether observers are told nothing of what users of a site see.
func (l *lane) untold(home grid.SiteID) bool { return l.cfg.Untold != nil && l.cfg.Untold(home) }

// tellEvent says what a site has told.
func (l *lane) tellEvent(s int32, e *grid.Event) {
	if l.untold(l.members[s].ID) {
		return
	}
	for i := range l.observers {
		switch f := l.observers[i].Event; {
		case f == nil:
		case l.apart:
			kept := *e
			l.between(func(now grid.Time) { f(now, int(s), &kept) })
		default:
			f(l.now, int(s), e)
		}
	}
}

// tellAnswer says what a site has answered.
func (l *lane) tellAnswer(s int32, a grid.Answer) {
	if l.untold(l.members[s].ID) {
		return
	}
	for i := range l.observers {
		if f := l.observers[i].Answer; f != nil {
			l.between(func(now grid.Time) { f(now, int(s), a) })
		}
	}
}

// tellSend says that a site sends a message.
func (l *lane) tellSend(s int32, to grid.SiteID, m grid.Message) {
	for i := range l.observers {
		switch f := l.observers[i].Send; {
		case f == nil:
		case l.apart:
			l.between(func(now grid.Time) { f(now, int(s), to, m) })
		default:
			f(l.now, int(s), to, m)
		}
	}
}

// tellStart says that an execution has started.
func (l *lane) tellStart(x *Execution) {
	if l.untold(x.Job.Home) {
		return
	}
	for i := range l.observers {
		l.tellExecution(l.observers[i].Start, x)
	}
}

// tellEnd says that one has ended.
func (l *lane) tellEnd(x *Execution) {
	if l.untold(x.Job.Home) {
		return
	}
	for i := range l.observers {
		l.tellExecution(l.observers[i].End, x)
	}
}

func (l *lane) tellExecution(f func(now grid.Time, x *Execution), x *Execution) {
	switch {
	case f == nil:
	case l.apart:
		kept := *x
		l.between(func(now grid.Time) { f(now, &kept) })
	default:
		f(l.now, x)
	}
}

// tellReady says that a squad can be started.
func (l *lane) tellReady(s int32, id grid.TaskID) {
	for i := range l.observers {
		if f := l.observers[i].Ready; f != nil {
			l.between(func(now grid.Time) { f(now, int(s), id) })
		}
	}
}

// tellExpel says that a site takes nothing of another one any more.
func (l *lane) tellExpel(s int32, x grid.Expulsion) {
	for i := range l.observers {
		if f := l.observers[i].Expel; f != nil {
			l.between(func(now grid.Time) { f(now, int(s), x) })
		}
	}
}

// tellTurn says that a site has had its Tick.
func (l *lane) tellTurn(s int32) {
	for i := range l.observers {
		switch f := l.observers[i].Turn; {
		case f == nil:
		case l.apart:
			l.between(func(now grid.Time) { f(now, int(s)) })
		default:
			f(l.now, int(s))
		}
	}
}
