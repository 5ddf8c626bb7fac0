package pilot

import "gridnode/grid"

// OrderKind says what a borrower wants of a task.
type OrderKind uint8

// Orders. The numbers are on the wire.
const (
	OrderRun         OrderKind = 1 // start it unless it was begun, and report about it from now on
	OrderKill        OrderKind = 2 // end it, or never start it, and report about it from now on
	OrderAcknowledge OrderKind = 3 // its end is safe
	OrderPrepare     OrderKind = 4 // of a gang: say when it can be started at once
)

// Order is what a borrower tells the pilot of a lease.
type Order struct {
	Kind OrderKind
	Key  uint64 // the lender's number of the grant, at least 1
	ID   grid.TaskID
	Task *grid.Task // run, prepare; does not change

	// Resume says, in run and kill, that it has begun: whoever does not have it has lost it.
	Resume bool

	// Tasks is how many it is, of a squad; else 1.
	Tasks int

	// Have tells, in run and kill, how many bytes of its outputs the borrower has: stdout
	// and stderr of the first task, of the second, and so on, up to HaveMax; what is left
	// out is 0. The driver of the borrower fills it in.
	Have []int64

	// Span is the borrower's of the trace of the job, in run and prepare; 0: it is not traced.
	// The driver of the borrower fills it in.
	Span uint64

	Reason string // kill
}

// ReportKind says what a lender reports about a task.
type ReportKind uint8

// Reports. The numbers are on the wire.
const (
	ReportBegun      ReportKind = 1 // the pilot has the task
	ReportOutput     ReportKind = 2 // drivers only: no core sees one
	ReportEnded      ReportKind = 3
	ReportLost       ReportKind = 4 // the pilot does not have it, although it has begun
	ReportRefused    ReportKind = 5 // not now
	ReportReady      ReportKind = 6 // what OrderPrepare has asked for
	ReportForgotten  ReportKind = 7 // what OrderAcknowledge was about is not here any more
	ReportSuperseded ReportKind = 8 // the borrower has a newer session here, and this one is over
)

// Report is what a lender tells a borrower.
type Report struct {
	Kind ReportKind
	ID   grid.TaskID

	End     End    // ended
	Reason  string // refused
	Session uint64 // superseded: the newest

	Number int    // output: of which task of a squad; else 0
	Stream uint32 // output: 1 stdout, 2 stderr
	Offset int64  // output: where Data begins
	Data   []byte // output
}

// End says how a task has ended, in a span only: two sites have two clocks.
type End struct {
	Ran      grid.Time
	ExitCode int32
	Reason   string // empty if it ended by itself
	Lost     bool   // it vanished without an outcome; the rest says nothing
	Number   int    // of a squad: the task in it that failed first; 0 if none did
}

// result returns how it ended on the clock of whoever learns of it now.
func (e *End) result(now grid.Time) grid.Result {
	return grid.Result{Start: max(now-e.Ran, 0), End: now, ExitCode: e.ExitCode, Reason: e.Reason}
}

// EndOf returns how a task has ended that ran on this site's own processors.
func EndOf(e *grid.TaskEnded) End {
	return End{Ran: e.Result.End - e.Result.Start, ExitCode: e.Result.ExitCode, Reason: e.Result.Reason, Lost: e.Lost}
}
