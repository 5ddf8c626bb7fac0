package pilot

import "gridnode/grid"

// Effects at a lender.
type (
	// Dial connects to a pilot, which may be starting. Up or Down answers it.
	Dial struct{ Key uint64 }
	// Launch starts a task under a pilot, or all of a squad. Over comes when it has ended,
	// unless Down comes first; Unstarted if it cannot be started.
	Launch struct {
		Key  uint64
		Task grid.Task
	}
	// Stop ends a task of a pilot, or all of a squad that run. Over comes.
	Stop struct {
		Key    uint64
		ID     grid.TaskID
		Reason string
	}
	// Forget says that the end of a task is safe: its pilot, and the disk, may forget it.
	Forget struct {
		Key uint64
		ID  grid.TaskID
	}
	// Prepare enters a squad of another site's gang, before the next effect, and has what it
	// reads brought here, for as long as it takes but at most until Until. Prepared answers
	// it.
	Prepare struct {
		Key   uint64
		Home  grid.SiteID
		Task  grid.Task
		Until grid.Time
	}
	// Follow sends the outputs of a task as they grow, beyond what the borrower has.
	Follow struct {
		To      grid.SiteID
		Session uint64
		Key     uint64
		ID      grid.TaskID
		Tasks   int     // Order.Tasks
		Have    []int64 // Order.Have
	}
	// Tell sends a report. What is left of the outputs of a task that is followed goes
	// before a ReportEnded.
	Tell struct {
		To      grid.SiteID
		Session uint64
		Report  Report
	}
	// Hangup ends a session, once what was told in it has left.
	Hangup struct {
		To      grid.SiteID
		Session uint64
	}
)

// Effects at a borrower.
type (
	// Connect begins a session. Connected or Disconnected answers it.
	Connect struct {
		Site    grid.SiteID
		Session uint64
	}
	// Disconnect ends a session, once what was sent in it has left. Nothing answers it.
	Disconnect struct {
		Site    grid.SiteID
		Session uint64
	}
	// Send sends an order.
	Send struct {
		Site    grid.SiteID
		Session uint64
		Order   Order
	}
	// Begin notes durably that a task has begun, on borrowed processors or of a gang;
	// Start.Begun says so after a restart.
	Begin struct{ ID grid.TaskID }
)

// Effects at the home of a gang.
type (
	// Gather makes the addresses of a gang's tasks at this site, before the next effect, and
	// with Bring has what they read brought here, by Due at the latest. Gathered answers it.
	Gather struct {
		Task  *grid.Task // does not change
		Bring bool
		Due   grid.Time
	}
	// StartOwn starts a squad on this site's own processors. SquadEnded comes.
	StartOwn struct{ Task grid.Task }
	// KillOwn ends those of its tasks that run. SquadEnded comes; with Whole if none does.
	KillOwn struct{ Task grid.Task }
	// AcknowledgeOwn says that the ends of squads are durable.
	AcknowledgeOwn struct{ IDs []grid.TaskID }
	// Collect makes the outputs of a gang out of those of its tasks as they grow, from the
	// beginning.
	Collect struct{ Gang *grid.Gang }
	// Finish makes them complete. Collected answers it.
	Finish struct{ Gang grid.TaskID }
	// Clear removes what squads have left: the outputs and the inputs of their tasks.
	Clear struct {
		Gang   grid.TaskID
		Squads []Left
	}
)

// Left is a squad that has ended.
type Left struct {
	ID    grid.TaskID
	Tasks int
}

// Effects at both.
type (
	// Disband ends the connections between the tasks of a gang at this site.
	Disband struct {
		Home grid.SiteID
		Gang grid.TaskID
	}
	// Ended tells the site that a task that it started is gone.
	Ended struct{ Ended grid.TaskEnded }
)

// Effect is one of the orders above, by value.
type Effect any

// Outbox collects what a machine orders during a Step. It is reused; the zero value is
// ready.
type Outbox struct {
	Effects []Effect

	// Locals are inputs for the other machines of the same Core, which feeds them on before
	// it returns: a driver of a Core never sees any.
	Locals []grid.Input
}

func (o *Outbox) order(e Effect)      { o.Effects = append(o.Effects, e) }
func (o *Outbox) local(in grid.Input) { o.Locals = append(o.Locals, in) }

// ended reports the end of a task that runs elsewhere: that of a squad to its gang.
func (o *Outbox) ended(now grid.Time, id grid.TaskID, end End) {
	switch _, _, squad := grid.SquadOf(id); {
	case squad:
		o.local(&SquadEnded{id, Whole, end})
	case end.Lost:
		o.order(Ended{grid.TaskEnded{ID: id, Lost: true}})
	default:
		o.order(Ended{grid.TaskEnded{ID: id, Result: end.result(now)}})
	}
}

// Reset empties the outbox and keeps its memory.
func (o *Outbox) Reset() {
	clear(o.Effects)
	clear(o.Locals)
	o.Effects, o.Locals = o.Effects[:0], o.Locals[:0]
}
