package slurm

import "strings"

// State is where Slurm says that a job stands.
type State uint8

// States, by what they mean here.
const (
	Unknown   State = iota // a word that no version here knows: the job is taken to be there still
	Waiting                // it has no processors, or not yet
	Running                // it has processors, suspended or not
	Ending                 // its processes are being ended; the outcome is not said yet
	Requeued               // Slurm has taken it back to run it again
	Completed              // exit code 0
	Failed                 // another exit code
	Cancelled
	TimedOut
	OutOfMemory
	NodeFailed
	Preempted
	Elsewhere // another cluster of Slurm's own federation runs it
)

// words are the names of states in squeue, scontrol and sacct, from 22.05 to 24.11.
var words = map[string]State{
	"PENDING": Waiting, "CONFIGURING": Waiting, "RESV_DEL_HOLD": Waiting, "POWER_UP_NODE": Waiting,
	"RUNNING": Running, "SUSPENDED": Running, "STOPPED": Running, "RESIZING": Running, "SIGNALING": Running, "EXPEDITING": Running,
	"COMPLETING": Ending, "STAGE_OUT": Ending, "UPDATE_DB": Ending,
	"REQUEUED": Requeued, "REQUEUE_HOLD": Requeued, "REQUEUE_FED": Requeued, "SPECIAL_EXIT": Requeued,
	"COMPLETED": Completed, "FAILED": Failed, "CANCELLED": Cancelled, "TIMEOUT": TimedOut, "DEADLINE": TimedOut, "OUT_OF_MEMORY": OutOfMemory,
	"NODE_FAIL": NodeFailed, "BOOT_FAIL": NodeFailed, "LAUNCH_FAILED": NodeFailed, "RECONFIG_FAIL": NodeFailed, "PREEMPTED": Preempted, "REVOKED": Elsewhere,
}

// stateOf reads the name of a state; sacct says "CANCELLED by 1000".
func stateOf(text string) State {
	word, _, _ := strings.Cut(strings.TrimSuffix(text, "+"), " ")
	return words[word]
}

// over reports whether nothing of the job is left.
func (s State) over() bool { return s >= Completed }
