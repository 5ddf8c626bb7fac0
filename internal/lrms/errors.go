package lrms

import (
	"errors"
	"fmt"

	"gridnode/grid"
)

// Errors of Cluster's methods; they come wrapped with the values, so test with
// errors.Is. None of them is a bug of the site.
var (
	// ErrInvalid: a request for no processors or without an estimate in range.
	// The requester is at fault; do not repeat it.
	ErrInvalid = errors.New("invalid request")

	// ErrTooWide: more processors than the site has (Adopt: than are idle). Refuse
	// the job, or look for another site.
	ErrTooWide = errors.New("wider than the site")

	// ErrQueueFull: Config.QueueMax jobs and reservations wait. Try again later or
	// elsewhere.
	ErrQueueFull = errors.New("queue is full")

	// ErrKnown: the task waits, is reserved or runs already. A repeated submission
	// may be acknowledged as if it were the first.
	ErrKnown = errors.New("task is known already")

	// ErrUnknown: Commit found no reservation of that ID: it was cancelled, has
	// ended, or never was. Refuse the submission.
	ErrUnknown = errors.New("no such reservation")

	// ErrBusy: Lend found too few processors that are free for that long. Try again
	// when something has ended.
	ErrBusy = errors.New("too few processors are free")

	// ErrTooLate: the reservation could not finish in time; the error is a TooLate.
	ErrTooLate = errors.New("cannot finish in time")
)

// TooLate is the error of Reserve that matches ErrTooLate.
type TooLate struct {
	Finish grid.Time // the earliest finish that could have been promised
}

// Error says when the job could have finished.
func (e TooLate) Error() string {
	return fmt.Sprintf("%v: at the earliest by %v", ErrTooLate, e.Finish)
}

// Is reports whether target is ErrTooLate.
func (e TooLate) Is(target error) bool { return target == ErrTooLate }
