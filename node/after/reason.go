package after

import (
	"fmt"
	"strings"

	"gridnode/grid"
	"gridnode/node/quota"
)

// Reason is a stable word for what a job waits for; empty: for nothing.
type Reason string

// Reasons.
const (
	Held      Reason = "held"
	NotBefore Reason = "begin"
	Dependent Reason = "dependency"
	NeverMet  Reason = "dependency-never-satisfied"
	Single    Reason = "singleton"
	ArrayFull Reason = "array-limit"

	UserRunning    = Reason(quota.OverRunning)
	UserProcessors = Reason(quota.OverProcessors)
	UserSpend      = Reason(quota.OverSpend)
)

// AllReasons lists them.
var AllReasons = []Reason{Held, NotBefore, Dependent, NeverMet, Single, ArrayFull, UserRunning, UserProcessors, UserSpend}

// ofUser reports whether it is a limit of the job's user.
func (r Reason) ofUser() bool { return r == UserRunning || r == UserProcessors || r == UserSpend }

// reason returns what a job waits for.
func (g *Gate) reason(w *wait) Reason {
	if w.turn.Held {
		return Held
	}
	if t := w.job.Terms; t != nil && !w.turn.Met {
		if t.Begin > g.now {
			return NotBefore
		}
		if why := w.dependency(); why != "" {
			return why
		}
		if t.Singleton && g.behind(w.job) != nil {
			return Single
		}
	}
	if a := w.job.Array; a != nil && a.Most > 0 && g.arrays[a.ID].going >= a.Most {
		return ArrayFull
	}
	return g.limit(w)
}

// dependency returns Dependent or NeverMet, or nothing if all, or one if that is enough, is met.
func (w *wait) dependency() Reason {
	t := w.job.Terms
	open, never := 0, 0
	for i := range t.After {
		switch w.state(i) {
		case NeverMet:
			never++
		case Dependent:
			open++
		}
	}
	of := len(t.After)
	switch {
	case of == 0, !t.Any && open+never == 0, t.Any && open+never < of:
		return ""
	case !t.Any && never > 0, t.Any && never == of:
		return NeverMet
	}
	return Dependent
}

// state returns what is to be said of dependency i.
func (w *wait) state(i int) Reason {
	failed := w.turn.failed(i)
	if w.job.Terms.After[i].Condition == grid.After {
		if w.begun[i] || w.over[i] {
			return ""
		}
		return Dependent
	}
	switch c := w.job.Terms.After[i].Condition; {
	case c == grid.AfterOK && failed:
		return NeverMet // also if others of the array run still
	case !w.over[i]:
		return Dependent
	case c == grid.AfterNotOK && !failed:
		return NeverMet
	}
	return ""
}

// shownMax is how many jobs are named that one waits for.
const shownMax = 3

// Why returns what a job waits for, as a word and for people; nothing if it does not wait.
func (g *Gate) Why(id grid.JobID) (Reason, string) {
	w := g.waits[id]
	if w == nil {
		return "", ""
	}
	why := g.reason(w)
	switch why {
	case Held:
		return why, "its owner holds it: release lets it go"
	case NotBefore:
		return why, "it may not begin yet"
	case Dependent, NeverMet:
		return why, w.depends(why)
	case Single:
		return why, "an earlier job of its name is not over: " + g.behind(w.job).ID.Short()
	case ArrayFull:
		return why, fmt.Sprintf("%d jobs of its array run or are placed, its limit", w.job.Array.Most)
	case UserRunning, UserProcessors, UserSpend:
		return why, g.limited(w, quota.Cause(why))
	}
	return why, ""
}

// Reasons returns how many jobs wait for what.
func (g *Gate) Reasons() map[Reason]int64 {
	counts := make(map[Reason]int64, len(AllReasons))
	for _, w := range g.waits {
		if why := g.reason(w); why != "" {
			counts[why]++
		}
	}
	return counts
}

// depends names the dependencies that are in a state.
func (w *wait) depends(state Reason) string {
	var names []string
	more := 0
	for i, d := range w.job.Terms.After {
		if w.state(i) != state {
			continue
		}
		if len(names) == shownMax {
			more++
			continue
		}
		names = append(names, fmt.Sprintf("%s %s", d.Condition, d.Job.Short()))
	}
	text := "it waits for " + strings.Join(names, ", ")
	if state == NeverMet {
		text = "what it depends on has ended otherwise, so it never runs: " + strings.Join(names, ", ") + "; cancel it, or submit it anew"
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
