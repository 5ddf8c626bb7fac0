package main

import "gridnode/grid"

// What the API says in words, in the order of a job's life. The client does not have the
// packages that these come from; a test holds the two together.
var jobStates = []string{"placing", "queued", "awarded", "running", "cancelling", "done", "failed", "cancelled", "refused", "waiting", "returned"}

// Outcomes of a site's verdict about a job.
const (
	outcomeChosen    = "chosen"
	outcomeNoForeign = "foreign-refused"
)

// leaseDefault is the lease of a job that names none.
const leaseDefault = 2 * grid.Minute
