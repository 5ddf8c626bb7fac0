package pilot

// Whole, as the number of a task in its squad, stands for all whose end was not told.
const Whole = -1

// becauseAnother is why tasks are ended that have not failed themselves.
const becauseAnother = "the job ends, as another of its tasks did"

// roll is what has become of the tasks that start by one order: one, or those of a squad.
type roll struct {
	left   int  // that have not ended
	failed bool // one of them has
	end    End  // of the first that has failed; else of the one that took longest
}

// isOver reports whether all have ended.
func (r *roll) isOver() bool { return r.left == 0 }

// ended counts the end of a task, or with Whole of all that are left. It reports whether
// that is the first that has failed: the others are to be ended.
func (r *roll) ended(number int, e End) (first bool) {
	if r.left == 0 {
		return false
	}
	if number != Whole {
		r.left--
		e.Number = number
	} else {
		r.left = 0
	}
	switch {
	case r.failed:
	case e.Lost || e.ExitCode != 0 || e.Reason != "":
		r.failed, r.end = true, e
		return true
	case e.Ran >= r.end.Ran:
		r.end = e
	}
	return false
}

// missing notes that some are not there any more, or never were.
func (r *roll) missing() {
	if !r.failed {
		r.failed, r.end = true, End{Lost: true}
	}
}
