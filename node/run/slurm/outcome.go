package slurm

import (
	"fmt"

	"gridnode/grid"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/shim"
)

// Exit codes of what a signal ended, as shells give them.
const (
	exitTerm = 128 + 15
	exitKill = 128 + 9
)

// outcome is how a job ended, by Slurm's word and by what the shim wrote.
type outcome struct {
	grid.Result
	Lost   bool // the cluster's machines failed it: it may run again
	Follow bool `json:",omitempty"` // Slurm might begin it once more, having forgotten that: it is remembered for a while

	said bool // the shim's end says all of it, and becomes durable
}

// itself reports whether a task has ended by itself, whatever Slurm says then.
func itself(e *shim.Ended) bool {
	return e != nil && (e.Cause == shim.CauseExit || e.Cause == shim.CauseLimit || e.Cause == shim.CauseStart)
}

// byShell reports whether it was a shell's word, perhaps, that a signal ended a task.
func byShell(e *shim.Ended) bool { return e.Cause == shim.CauseExit && e.ExitCode > 128 }

// takes reports whether Slurm sends signals to what it brings into that state.
func (s State) takes() bool {
	return s == Cancelled || s == Requeued || s == Preempted || s == Elsewhere || s == TimedOut
}

// saysAll reports whether Slurm would add nothing to how a task ended by its shim's word: not
// why a signal came, nor what time it was.
func saysAll(e *shim.Ended, n *note, now grid.Time) bool {
	return itself(e) && !byShell(e) && e.Start >= n.Ordered-agreeMax && e.End <= now+agreeMax
}

// outcomeOf is settle by the shim's word alone.
func outcomeOf(e *shim.Ended) outcome {
	o := settle(&shown{state: Completed, start: grid.Never, end: grid.Never}, e, true, "")
	o.said = true
	return o
}

// settle says how a job ended. What the task did itself is the shim's to say, as far as it
// could; when, and whether the cluster put an end to it, is Slurm's. wanted is why this site
// ended it, empty if it did not.
func settle(j *shown, e *shim.Ended, began bool, wanted string) outcome {
	o := outcome{Result: grid.Result{Start: j.start, End: j.end, ExitCode: exitCodeOf(j)}}
	if e != nil {
		o.ExitCode, o.Reason = e.ExitCode, e.Reason
		// Slurm counts whole seconds; where the shim agrees it says which part of one.
		if o.Start == grid.Never || agree(o.Start, e.Start) && agree(o.End, e.End) {
			o.Start, o.End = e.Start, e.End
		}
	}
	if o.End = max(o.Start, o.End); began && o.Start != grid.Never {
		o.End = max(o.End, o.Start+1) // what began took some time, whatever its cluster counts by
	}
	byItself := itself(e)
	if byItself && byShell(e) && (e.ExitCode == exitTerm && j.state.takes() || e.ExitCode == exitKill && j.state == OutOfMemory) {
		byItself = false // Slurm's signal went to what its shell was waiting for first
	}
	o.Follow = byItself
	switch {
	case wanted != "":
		o.Reason = wanted
		if e == nil {
			o.ExitCode = exitTerm
		}
	case byItself: // whatever came after that
	case j.state == TimedOut:
		o.Reason = "its time limit in Slurm was reached (TIMEOUT)"
		o.ExitCode = orElse(o.ExitCode, exitTerm)
	case j.state == OutOfMemory || e != nil && e.Cause == shim.CauseSignal && e.ExitCode == exitKill && j.reason == "OutOfMemory":
		o.Reason = "it used more memory than it was given in Slurm (OUT_OF_MEMORY)"
		o.ExitCode = orElse(o.ExitCode, exitKill)
	case j.state == NodeFailed:
		return lost(o, "the node failed (NODE_FAIL)", j)
	case j.state == Preempted:
		return lost(o, "Slurm gave its processors to another job (PREEMPTED)", j)
	case j.state == Requeued:
		return lost(o, "Slurm put it back into its queue (REQUEUED)", j)
	case j.state == Elsewhere:
		return lost(o, "Slurm's own federation took it away (REVOKED)", j)
	case j.state == Cancelled && !began && j.node != "" && j.node != "(null)":
		return lost(o, "Slurm could not start it", j)
	case j.state == Cancelled:
		o.Reason = "it was cancelled in Slurm, not by its user here"
		o.ExitCode = orElse(o.ExitCode, exitTerm)
	case e != nil && e.Cause == shim.CauseKill: // by a signal that Slurm does not account for
		o.Reason = "it was ended by a signal to its batch script"
	case e != nil: // a signal: the shim says which
	// Its end could not be written, but the shim had the task's exit code: a run that follows
	// another one has that of the other one, or fails.
	case j.state == Completed && began:
	case j.state == Failed && began && j.signal == 0 && j.exit > 0 && j.exit < pilot.ExitNoStart:
	case j.state == Failed && began:
		return lost(o, "its shim died", j)
	default:
		o.ExitCode = orElse(o.ExitCode, pilot.ExitNoStart)
		o.Reason = fmt.Sprintf("node %s did not carry it out: is slurm.workdir visible there, and does a program of this machine run there?", j.node)
	}
	return o
}

// ranFor says how a job in a pilot ended that was ordered at an instant and is over now.
func ranFor(e *shim.Ended, ordered, now grid.Time) outcome {
	o := outcome{Result: grid.Result{Start: e.Start, End: run.EndOf(e), ExitCode: e.ExitCode, Reason: e.Reason}, Lost: e.Cause == shim.CauseLost}
	if span := o.End - o.Start; e.Start < ordered-agreeMax || e.End > now+agreeMax { // the clock of the node is another one
		o.Start = max(ordered, now-span)
		o.End = max(now, o.Start+min(span, 1)) // this one may have been set, too
	}
	return o
}

// timed fills in what nobody knows of the times of a job that is over now, and has begun or not.
func (o *outcome) timed(now grid.Time, began bool) {
	if o.Start == grid.Never {
		o.Start, o.End = now, now
		if began {
			o.End++
		}
	}
	if o.End == grid.Never {
		o.End = max(o.Start, now)
	}
}

// agreeMax is how far apart Slurm's word and the shim's may be, as it takes a while until
// Slurm has started the shim and has heard of its end.
const agreeMax = 2 * grid.Second

// agree reports whether two clocks say the same of one instant.
func agree(a, b grid.Time) bool { return a-b < agreeMax && b-a < agreeMax }

// skewMax is from when on a node's clock is taken to differ from the controller's.
const skewMax = 10 * grid.Second

// skewed reports whether the clock of a job's node differs from the controller's.
func skewed(j *shown, e *shim.Ended) bool {
	return e != nil && j.start != grid.Never && (e.Start-j.start > skewMax && e.Start > j.end || j.start-e.Start > skewMax)
}

// lost says that a job was failed by its machines.
func lost(o outcome, why string, j *shown) outcome {
	if j.node != "" && j.node != "(null)" {
		why += " on " + j.node
	}
	o.Lost, o.Reason = true, why
	return o
}

// exitCodeOf returns a job's exit code as a shell would have it.
func exitCodeOf(j *shown) int32 {
	if j.signal != 0 {
		return 128 + j.signal&127
	}
	return j.exit & 255
}

// orElse returns a code that says failure.
func orElse(code, other int32) int32 {
	if code == 0 {
		return other
	}
	return code
}
