package slurm

import (
	"cmp"
	"slices"

	"gridnode/grid"
	"gridnode/internal/lrms/others"
)

// view is what a poll shows of the processors, from which follows what others hold.
type view struct {
	now        grid.Time
	processors int64 // of the site: all that it may use
	counts     counts
	ours       []held
	others     []held
	starts     []foretold
}

// held is processors that a job has, or waits for, until some instant.
type held struct {
	processors int64
	until      grid.Time // grid.Never if not known
	waits      bool
}

// foretold is when a job of so many processors would start by Slurm's word.
type foretold struct {
	processors int64
	start      grid.Time // grid.Never if it does not say
}

// see enters a job of somebody else.
func (v *view) see(l *listed) {
	switch l.state {
	case Waiting:
		if l.reason != "Dependency" && l.reason != "JobHeldUser" && l.reason != "JobHeldAdmin" && l.reason != "BeginTime" {
			v.others = append(v.others, held{l.processors, grid.Never, true})
		}
	case Running, Ending:
		v.others = append(v.others, held{l.processors, l.end, false})
	}
}

// crowded reports whether others hold, or wait for, anything that this site might use.
func (v *view) crowded() bool {
	return v.held() > 0 || slices.ContainsFunc(v.others, func(h held) bool { return h.waits })
}

// held returns how many of the site's processors are neither idle nor ours.
func (v *view) held() int64 {
	var ours int64
	for _, h := range v.ours {
		if !h.waits {
			ours += h.processors
		}
	}
	return min(max(v.processors-v.counts.idle-ours, 0), v.processors)
}

// taken returns what others hold, in order of when it is expected back: by the ends of their
// jobs as Slurm expects them, and no earlier than Slurm would start a job of this site.
func (v *view) taken() []others.Taken {
	if !v.crowded() {
		return nil
	}
	instants := []grid.Time{v.now}
	for _, h := range v.others {
		if !h.waits && h.until != grid.Never && h.until > v.now {
			instants = append(instants, h.until)
		}
	}
	for _, s := range v.starts {
		if s.start != grid.Never && s.start > v.now {
			instants = append(instants, s.start)
		}
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)
	if n := others.TakenMax - 2; len(instants) > n {
		instants = slices.Delete(instants, n-1, len(instants)-1) // the last one says when all are back
	}
	// What is held from each instant on; never more than before it.
	amounts := make([]int64, len(instants))
	for i, at := range instants {
		amounts[i] = max(v.heldAt(at), v.refusedAt(at))
	}
	for i := len(amounts) - 2; i >= 0; i-- {
		amounts[i] = max(amounts[i], amounts[i+1])
	}
	var taken []others.Taken
	for i := 1; i < len(amounts); i++ {
		if n := amounts[i-1] - amounts[i]; n > 0 {
			taken = append(taken, others.Taken{Processors: n, Until: instants[i]})
		}
	}
	if n := amounts[len(amounts)-1]; n > 0 {
		taken = append(taken, others.Taken{Processors: n, Until: grid.Never})
	}
	return taken
}

// heldAt returns how many processors others still hold at an instant, of those they hold now.
// What no job of theirs explains is nodes that are down: nobody knows for how long.
func (v *view) heldAt(at grid.Time) int64 {
	now := v.held()
	running := slices.DeleteFunc(slices.Clone(v.others), func(h held) bool { return h.waits })
	slices.SortFunc(running, func(a, b held) int { return cmp.Compare(b.until, a.until) }) // the last to end first: they may hold what this site may use
	var jobs, left int64
	for _, h := range running {
		jobs += h.processors
	}
	if at <= v.now {
		return now
	}
	left = max(now-jobs, 0)
	for _, h := range running {
		if h.until > at {
			left += h.processors
		}
	}
	return min(left, now)
}

// refusedAt returns how many processors Slurm would not have given to a job of this site
// by an instant: those of the site, without what its own jobs have or wait for then.
func (v *view) refusedAt(at grid.Time) int64 {
	if len(v.starts) == 0 {
		return 0
	}
	var given, ours int64
	for _, s := range v.starts {
		if s.start <= max(at, v.now+soon) {
			given = max(given, s.processors)
		}
	}
	for _, h := range v.ours {
		if h.until > at {
			ours += h.processors
		}
	}
	return min(max(v.processors-ours-given, 0), v.processors)
}

// soon is how far ahead a start is as good as now: Slurm's own scheduling takes as long.
const soon = 2 * grid.Second
