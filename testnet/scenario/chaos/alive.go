package chaos

import (
	"slices"

	"gridnode/grid"
	"gridnode/market/keepalive"
	"gridnode/node/blame"
	"gridnode/testnet"
)

// aliveWatch watches executions at other sites than their homes, and what becomes of jobs
// whose executions vanish:
//
//   - one whose home hears of it is not ended for want of a renewal;
//   - a job is given up for its losses only if it was there that often when a machine died, each time;
//   - one that was there many times is given up, and runs no more.
//
// That no two overlap is the testnet.Checker's.
type aliveWatch struct {
	n       *testnet.Network
	watch   *testnet.Checker
	roster  *roster              // nil: the federation is open
	certain bool                 // messages get lost only where the network is cut
	down    map[int]int          // faults that keep a site down
	cuts    int                  // partitions that are on
	ill     map[int]grid.Time    // when a site was last down
	cut     grid.Time            // when there last was a partition
	deaths  map[int][]death      // of each site's machine, those in which nothing vanished left out
	gone    map[int][]grid.JobID // by site that is down: whose executions vanished, which it finds when it is up
	latest  map[int]finding      // of each site
	again   map[int]bool         // sites that may have written down already what they find next, as of an earlier death
	died    map[grid.JobID]int   // in how many deaths of machines executions of jobs have vanished
	lent    map[grid.JobID]bool  // jobs that lost executions on borrowed processors, of which each counts
	clocks  *clockWatch          // nil: none jumps
	lapsed  int64
}

// patient is for how long a fault may have an effect: until the lease has ended that was
// renewed last before it.
const patient = keepalive.Default + grid.Minute

// lossesLeast is after how many of its executions have died a job may be given up, and lossesMost
// after how many it must have been, each time that it is to run: homes do not hear of all.
const (
	lossesLeast = 3
	lossesMost  = 3 * lossesLeast
)

// comings returns when each site last came up, which it keeps up to date.
func comings(n *testnet.Network) map[int]grid.Time {
	came := make(map[int]grid.Time)
	n.Observe(testnet.Observer{Fault: func(now grid.Time, f *testnet.Fault) {
		if f.Healing() && f.Kind.Kills() {
			came[f.Sites[0]] = now
		}
	}})
	return came
}

// watchAlive starts to watch n.
func watchAlive(n *testnet.Network, watch *testnet.Checker, certain bool) *aliveWatch {
	w := &aliveWatch{n: n, watch: watch, certain: certain, down: make(map[int]int), ill: make(map[int]grid.Time), deaths: make(map[int][]death), gone: make(map[int][]grid.JobID), latest: make(map[int]finding), again: make(map[int]bool), died: make(map[grid.JobID]int), lent: make(map[grid.JobID]bool), cut: -grid.Day}
	n.Observe(testnet.Observer{Start: w.start, End: w.end, Event: w.event, Fault: w.fault})
	return w
}

// fault notes who can be heard.
func (w *aliveWatch) fault(now grid.Time, f *testnet.Fault) {
	if f.For == grid.Never {
		return // of a site that is revoked
	}
	change := 1
	if f.Healing() {
		change = -1
	}
	if f.Kind.Cuts() {
		w.cuts, w.cut = w.cuts+change, now
		return
	}
	site := f.Sites[0]
	if !f.Kind.Kills() {
		return
	}
	if change > 0 && w.down[site] == 0 {
		w.unfound(now, site)
	}
	w.down[site] += change
	w.ill[site] = now
	if w.down[site] == 0 {
		w.found(now, site)
	}
}

// well reports whether a site was up for long, and the network whole. One whose clock was set may
// take others' certificates for ended, and hear nobody.
func (w *aliveWatch) well(now grid.Time, site int) bool {
	ill, ever := w.ill[site]
	if w.roster != nil && w.clocks.set(site) {
		return false
	}
	return w.roster.member(site, patient) && w.down[site] == 0 && w.cuts == 0 && now-w.cut > patient && (!ever || now-ill > patient)
}

// calm reports whether a site has been up since an instant, and the network whole.
func (w *aliveWatch) calm(since grid.Time, site int) bool {
	ill, ever := w.ill[site]
	return w.down[site] == 0 && w.cuts == 0 && w.cut < since && (!ever || ill < since)
}

// start looks for jobs that run though they have taken machines down too often. It is started anew
// whenever it is to run again for another reason.
func (w *aliveWatch) start(_ grid.Time, x *testnet.Execution) {
	if id, most := x.Job.ID, lossesMost*(1+int(x.Job.Restarts)); w.died[id] > most && x.Pilot.Key == 0 && x.Squad == nil {
		if _, n := w.suspicions(id); n > most && !w.untimed(id) {
			w.watch.Violated("job %s starts at %s with epoch %d, and %d deaths of machines speak against it", id, w.n.ID(x.Site), x.ID.Epoch, n)
		}
	}
}

func (w *aliveWatch) end(now grid.Time, x *testnet.Execution) {
	if x.Lost {
		w.vanished(now, x)
	}
	if !x.Lapsed {
		return
	}
	w.lapsed++
	home, _ := w.n.Index(x.Job.Home)
	if w.certain && !w.clocks.task(x.ID) && w.well(now, x.Site) && w.well(now, home) {
		w.watch.Violated("job %s was not renewed at %s with epoch %d, though its home could be reached", x.Job.ID, w.n.ID(x.Site), x.ID.Epoch)
	}
}

// event looks at why jobs are given up. Those at several sites lose executions in other ways, too.
func (w *aliveWatch) event(_ grid.Time, _ int, e *grid.Event) {
	if e.Kind != grid.JobFinished || e.Text != vanished || w.lent[e.Job.ID] || e.Job.Coallocate != nil || e.Job.Spread {
		return
	}
	if n, _ := w.suspicions(e.Job.ID); n < lossesLeast && !w.untimed(e.Job.ID) {
		w.watch.Violated("job %s was given up for its losses, and %d deaths of machines speak against it", e.Job.ID, n)
	}
}

// death is one of a machine's, with the jobs whose executions vanished.
type death struct {
	at     grid.Time           // when the site found out
	jobs   map[grid.JobID]bool // whose executions vanished
	closed bool                // what is found later is of another one
	unsure bool                // … or once more of this one: the site has died as it found out
}

// finding is what a site has found last.
type finding struct {
	at   grid.Time
	jobs []grid.JobID
}

func (w *aliveWatch) vanished(now grid.Time, x *testnet.Execution) {
	if x.Pilot.Key != 0 || x.Squad != nil {
		w.lent[x.Job.ID] = true
		return
	}
	w.gone[x.Site] = append(w.gone[x.Site], x.Job.ID)
	if w.down[x.Site] == 0 {
		w.found(now, x.Site)
	}
}

// found notes what has vanished at a site, which finds out now.
func (w *aliveWatch) found(now grid.Time, site int) {
	gone := w.gone[site]
	if len(gone) == 0 {
		return
	}
	delete(w.gone, site)
	defer delete(w.again, site)
	list := w.deaths[site]
	if n := len(list); n == 0 || list[n-1].closed || list[n-1].at.Add(blame.Together) <= now {
		list = append(list, death{at: now, jobs: make(map[grid.JobID]bool), unsure: w.again[site]})
		w.deaths[site] = list
	}
	w.latest[site] = finding{now, gone}
	newest := list[len(list)-1].jobs
	for _, id := range gone {
		if !newest[id] {
			w.died[id]++
		}
		newest[id] = true
	}
}

// unfound has a site that dies as it finds something find it once more when it comes up, as it may
// not have written it down.
func (w *aliveWatch) unfound(now grid.Time, site int) {
	last, ever := w.latest[site]
	if !ever || last.at != now {
		return
	}
	delete(w.latest, site)
	w.gone[site] = append(w.gone[site], last.jobs...)
	list := w.deaths[site]
	newest := &list[len(list)-1]
	newest.closed, newest.unsure = true, newest.unsure || newest.at == now
	w.again[site] = newest.at != now
}

// untimed reports whether the clock of a site has ever jumped where a job was as its machine
// died: which losses are of one death the site tells by it.
func (w *aliveWatch) untimed(id grid.JobID) bool {
	for site, list := range w.deaths {
		if w.clocks.set(site) && slices.ContainsFunc(list, func(d death) bool { return d.jobs[id] }) {
			return true
		}
	}
	return false
}

// suspicions returns at how many deaths a job was there, and at those of the same machine before
// it, at most and at least. One as whose jobs were noted the site died once more may be known to
// have taken some of them only.
func (w *aliveWatch) suspicions(id grid.JobID) (most, least int) {
	const before = 3 // that a site remembers
	for _, list := range w.deaths {
		row, sure := 0, 0
		earlier, known := 0, 0 // deaths: those that are certain, and those that may be remembered
		for i := range list {
			there, unsure, others := list[i].jobs[id], list[i].unsure, len(list[i].jobs) > 1
			if there {
				if row++; row > min(earlier, before) {
					most++
				}
			} else if !unsure {
				row = 0
			}
			switch {
			case !there, unsure && others:
				sure = 0
			case unsure:
				continue // either the job is known to have been there, or nothing is
			default:
				if sure++; sure > min(known, before) {
					least++
				}
			}
			known++
			if !unsure {
				earlier++
			}
		}
	}
	return most, least
}

// What a home says of a job that it gives up for its losses, or for one.
const (
	vanished     = "its execution vanished too often"
	vanishedOnce = "its execution vanished, and it was not to be run again"
)
