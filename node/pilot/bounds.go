package pilot

import "gridnode/grid"

// Exit codes of executions that were never begun.
const (
	// ExitNoStart is for a reason of ours, as container runtimes use it.
	ExitNoStart = 125
	// ExitCancelled is for one that was killed before it began: what a shell reports of a
	// process that SIGTERM ended, and what a job has that is cancelled in the queue.
	ExitCancelled = 128 + 15
)

const (
	// TasksMax bounds what a pilot knows: what runs, what is prepared, and ends that are not
	// acknowledged. It is far beyond what runs at once on the processors of a lease, and
	// keeps a borrower that never acknowledges from growing the lender.
	TasksMax = 1 << 14

	// HaveMax bounds Order.Have, so that it fits a frame beside the largest job. Outputs of
	// which it does not tell are sent from their beginning again when a session breaks.
	HaveMax = 1 << 10

	// ReasonMax bounds a reason, in bytes: it is what a result may carry.
	ReasonMax = 256

	// ReadyMax is how long the tasks of a gang have until all are ready, besides the time
	// that bringing their inputs takes: more than a lender's daemon takes to start again.
	ReadyMax = grid.Minute

	// RefusedPause is how long a task that was refused waits until it is asked for again.
	// What refuses it passes within seconds (a pilot that starts, an end that is not
	// acknowledged yet), or ends with the lease.
	RefusedPause = 500 * grid.Millisecond

	// PauseMin and PauseMax are between attempts to reach a site; each pause is twice the
	// one before. At most they are well below the term of a lease.
	PauseMin = 100 * grid.Millisecond
	PauseMax = 5 * grid.Second

	// ForgetMax is how long a site that cannot be reached is told that it may forget an end.
	// It forgets it with the lease at the latest.
	ForgetMax = 10 * grid.Minute
)

// short returns a reason as a result may carry it.
func short(reason string) string {
	if len(reason) <= ReasonMax {
		return reason
	}
	return reason[:ReasonMax-3] + "..."
}
