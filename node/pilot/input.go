package pilot

import "gridnode/grid"

// Inputs from the site. A Core takes them all, and a grid.Tick.
type (
	// Start is the site's order to start a task for which Core.Takes is true. Begun names
	// those of Tasks that have begun before a restart, as Begin has noted.
	Start struct {
		Task  grid.Task
		Begun []grid.TaskID
	}
	// Kill is the site's order to end a task. With Task.Abandon nobody waits for what runs
	// elsewhere: its leases are over.
	Kill struct{ Task grid.Task }
	// Acknowledge says that the ends of these tasks are durable.
	Acknowledge struct{ IDs []grid.TaskID }
	// Keep says that a pilot keeps processors for a borrower, or goes on to do so: the
	// lease is active.
	Keep struct {
		Key        uint64
		Borrower   grid.SiteID
		Processors int64
		Until      grid.Time // when the lease ends at the latest
	}
	// Release says that a lease is over: its pilot, with all that it runs, is being ended.
	Release struct{ Key uint64 }
)

// Inputs from the machine of a lender.
type (
	// Up answers Dial: the pilot is there and has these tasks. That those have ended which
	// do not run any more is said by Over, next.
	Up struct {
		Key   uint64
		Tasks []Adopted
	}
	// Down answers Dial, or comes after Up: the pilot cannot be reached, or is gone.
	Down struct {
		Key uint64
		Why string
	}
	// Over says that a task of a pilot, and everything it started, is gone. Number is its
	// own in its squad, or Whole; of what is no squad it is 0.
	Over struct {
		Key    uint64
		ID     grid.TaskID
		Number int
		End    End
	}
	// Unstarted answers Launch of a task that cannot be started, and never will be; of a
	// squad, of one of its tasks or, with Whole, of all.
	Unstarted struct {
		Key    uint64
		ID     grid.TaskID
		Number int
		Why    string
	}
	// Prepared answers Prepare. If Refused is not empty the task may be asked for again, if
	// Failed is not, it has ended.
	Prepared struct {
		Key             uint64
		ID              grid.TaskID
		Addresses       []string // grid.Squad.Addresses
		Inputs          []string // grid.Squad.Inputs
		Refused, Failed string
	}
)

// Adopted is a task that a pilot has.
type Adopted struct {
	ID      grid.TaskID
	Tasks   int  // of a squad: how many of its tasks are there; else 1
	Running bool // any of them
}

// Inputs from connections. A session is one connection from a borrower to a lender: what
// is sent in one comes in order, without gaps, until it is over. The borrower numbers its
// sessions, later ones higher.
type (
	// Ordered is an order of a borrower, at the lender.
	Ordered struct {
		From    grid.SiteID
		Session uint64
		Order   *Order
	}
	// Closed says to a lender that a session is over.
	Closed struct {
		From    grid.SiteID
		Session uint64
	}
	// Connected answers Connect, at the borrower.
	Connected struct {
		Site    grid.SiteID
		Session uint64
	}
	// Disconnected answers Connect, or comes after Connected, at the borrower.
	Disconnected struct {
		Site    grid.SiteID
		Session uint64
		Why     string
	}
	// Reported is a report of a lender, at the borrower.
	Reported struct {
		Site    grid.SiteID
		Session uint64
		Report  *Report
	}
)

// Inputs from the machine of the home of a gang.
type (
	// Found says after a restart, before anything else, that tasks of a squad are there on
	// this site's own processors; Ended is how they ended, nil if they run.
	Found struct {
		ID     grid.TaskID // of the squad
		Number int         // of the first of them
		Tasks  int         // how many
		Ended  *End
	}
	// SquadEnded says that a task of a squad has ended, or with Whole all that are left.
	SquadEnded struct {
		ID     grid.TaskID // of the squad
		Number int
		End    End
	}
	// Gathered answers Gather. Why is empty if what it asked for is there; if Again is set the
	// job is not to blame for that, and may be started again.
	Gathered struct {
		Gang      grid.TaskID
		Addresses []string
		Inputs    []string
		Why       string
		Again     bool
	}
	// Collected answers Finish.
	Collected struct{ Gang grid.TaskID }
)

// Inputs that the machines of one Core have for each other.
type (
	// Hold has a squad prepared elsewhere, or goes on with it if it has begun.
	Hold struct {
		Task  grid.Task
		Begun bool
	}
	// Go starts squads that are held.
	Go struct{ IDs []grid.TaskID }
	// Abandon gives up what runs elsewhere: its leases are over, and nobody waits for it.
	Abandon struct{ IDs []grid.TaskID }
	// SquadReady says that a squad can be started at once, or has begun.
	SquadReady struct{ ID grid.TaskID }
	// SquadRefused says why a squad is not ready, or not any more.
	SquadRefused struct {
		ID  grid.TaskID
		Why string
	}
)
