package guest

// Cause says by what an owner's rules refuse. Peers are not told which it is.
type Cause uint8

// Causes. Admitted is none.
const (
	Admitted       Cause = iota
	Banned               // until the ban ends
	Denied               // access
	OverProcessors       // processors, share
	OverJobs             // jobs
	OverLeases           // leases
	TooLong              // time
	OverMemory           // memory
	OffHours             // hours
	NotRun               // run
	OverGPUs             // gpus
	causesMax
)

var causeNames = [causesMax]string{"admitted", "banned", "access", "processors", "jobs", "leases", "time", "memory", "hours", "run", "gpus"}

// String returns the key of the rule that refuses, or "banned".
func (c Cause) String() string { return causeNames[c] }
