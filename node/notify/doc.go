// Package notify runs the commands that owners of jobs want run at home when their jobs are
// over (grid.Terms.Notify).
//
// A command runs at least once: what has run is noted beside the job's output only
// afterwards, and what is not noted runs when the host starts again. It runs as its job's
// owner, for a bounded time, after the files of the job have come home. That it failed is
// logged, and it is not run again.
package notify
