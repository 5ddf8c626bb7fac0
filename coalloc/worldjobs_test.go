package coalloc

import (
	"maps"
	"slices"
	"strconv"

	"gridnode/grid"
	"gridnode/lease"
)

func (w *world) local(n *node, in grid.Input) {
	switch in := in.(type) {
	case *lease.Asked:
		if n.cluster.State(w.now).Free < in.Processors || n.book.Grant(w.now, in.ID, lease.Terms{}, &n.out) != nil {
			if err := n.book.Refuse(w.now, in.ID, lease.Busy, 0, &n.out); err != nil {
				w.t.Fatal(err)
			}
		}
	case *lease.Activated:
	case *Rejected:
		j := w.job(in.Task.Job)
		if len(n.coord.View().Sites) <= simLenders { // for want of a site that was missed
			w.after(10*grid.Second, func() { w.submit(j) })
			break
		}
		j.reject = true
	case *Start:
		w.start(n, in)
	case *Aborted:
		n.home.Vacated(w.now, in.Task.Job, &n.out)
	case *Broken:
		j := w.job(in.Task.Job)
		if j.done {
			w.t.Fatalf("job %d is broken after its end", j.task.Job.Lo)
		}
		j.task.Epoch++
		j.started = 0
		if in.Started { // what runs at home takes a while to end
			w.after(grid.Time(w.rng.Int64N(int64(10*grid.Second))), func() { w.vacate(j) })
		} else {
			n.home.Vacated(w.now, in.Task.Job, &n.out)
		}
		w.after(max(in.Gone-w.now, 0), func() { w.submit(j) })
	case *lease.Granted:
		if !Own(in.ID) || n.coord.Has(in.ID) {
			n.coord.Step(w.now, in, &n.out)
		}
	case *lease.Ended:
		if !in.Lent {
			n.coord.Step(w.now, in, &n.out)
		}
	default:
		if n.coord == nil {
			w.t.Fatalf("a lender is told %T", in)
		}
		n.coord.Step(w.now, in, &n.out)
	}
}

// start checks the barrier: when a job starts, every part's lease is active at its
// site and saved there.
func (w *world) start(n *node, in *Start) {
	j := w.job(in.Task.Job)
	var sum int64
	for _, p := range in.Parts {
		sum += p.Processors
		lender := w.nodes[p.Site]
		if lender == n {
			at := slices.IndexFunc(n.home.Leases(), func(l lease.Lease) bool { return l.ID == p.Lease })
			if at < 0 || n.home.Leases()[at].State != lease.Active || n.home.Leases()[at].Processors != p.Processors {
				w.t.Fatalf("job %d starts, but its part at home is not claimed: %v", j.task.Job.Lo, n.home.Leases())
			}
			continue
		}
		if _, saved := lender.saved[lease.RecordPrefix+string(p.Lease.Borrower)+"/"+strconv.FormatUint(p.Lease.Number, 10)]; !saved && !in.Again {
			w.t.Fatalf("job %d starts, but its part at %s would not survive a crash there", j.task.Job.Lo, p.Site)
		}
		if lender.up && !in.Again {
			l, ok := lender.book.Get(p.Lease)
			if !ok || l.State != lease.Active || l.Processors != p.Processors {
				w.t.Fatalf("job %d starts, but its part at %s is %v (%v)", j.task.Job.Lo, p.Site, l.State, ok)
			}
		}
	}
	switch {
	case sum != j.request.Processors:
		w.t.Fatalf("job %d starts on %d of %d processors", j.task.Job.Lo, sum, j.request.Processors)
	case j.done || in.Task.Epoch > j.task.Epoch:
		w.t.Fatalf("job %d, done %v, starts with epoch %d of %d", j.task.Job.Lo, j.done, in.Task.Epoch, j.task.Epoch)
	case in.Task.Epoch < j.task.Epoch:
		w.t.Fatalf("job %d starts with the old epoch %d", j.task.Job.Lo, in.Task.Epoch)
	case !in.Again && j.started != 0:
		w.t.Fatalf("job %d starts a second time in epoch %d", j.task.Job.Lo, in.Task.Epoch)
	}
	if j.started == 0 {
		j.started = w.now
		j.starts++
		task := in.Task
		w.after(j.run, func() { w.finish(j, task) })
	}
}

// finish ends a job's tasks. If its home is down, it learns of that later.
func (w *world) finish(j *simJob, task grid.TaskID) {
	n := w.nodes[j.home]
	switch {
	case j.task != task || j.started == 0 || j.done: // it was broken meanwhile
	case !n.up:
		w.after(5*grid.Second, func() { w.finish(j, task) })
	default:
		j.done = true
		w.step(n, &Finish{task.Job})
		w.vacate(j)
	}
}

// vacate says that nothing of a job runs at home any more.
func (w *world) vacate(j *simJob) {
	if n := w.nodes[j.home]; n.up {
		n.home.Vacated(w.now, j.task.Job, &n.out)
		w.carry(n)
		w.arm(n)
	}
}

func (w *world) job(id grid.JobID) *simJob { return w.jobs[id.Lo-1] }

func (w *world) submit(j *simJob) {
	n := w.nodes[j.home]
	if n.up && !j.done && !n.coord.Knows(j.task.Job) { // else boot does it
		w.look(n)
		w.step(n, &Submit{Task: j.task, Request: j.request, Estimate: 2 * j.run})
	}
}

// check: no site lends more than it has.
func (w *world) check() {
	for _, id := range w.order {
		n := w.nodes[id]
		if n.up && n.size > 0 {
			if s := n.cluster.State(w.now); s.Free+s.Held+s.Busy != n.size {
				w.t.Fatalf("%s: %+v", id, s)
			}
		}
	}
}

// submitAll makes n jobs that could be placed, at random instants within span.
func (w *world) submitAll(n int, span grid.Time) {
	var homes []grid.SiteID
	for _, id := range w.order {
		if w.nodes[id].places {
			homes = append(homes, id)
		}
	}
	for range n {
		r := &Request{Processors: 2 + w.rng.Int64N(24), CCR: CCRUnknown}
		switch w.rng.IntN(4) {
		case 0:
			r.ComponentsMin, r.ComponentsMax = 2, 4
		case 1:
			r.Splits = []Split{{{Processors: r.Processors - 1}, {Processors: 1}}, {{Processors: r.Processors / 2}, {Processors: r.Processors - r.Processors/2}}}
		case 2:
			r.Splits = []Split{{{4, "a"}, {4, "b"}, {4, "c"}}}
			r.Processors = 12
		}
		j := &simJob{task: grid.TaskID{Job: grid.JobID{Hi: 9, Lo: uint64(len(w.jobs) + 1)}, Epoch: 1}, request: r, home: homes[w.rng.IntN(len(homes))], run: 20*grid.Second + grid.Time(w.rng.Int64N(int64(3*grid.Minute)))}
		w.jobs = append(w.jobs, j)
		w.after(grid.Time(w.rng.Int64N(int64(span))), func() { w.submit(j) })
	}
}

// settled reports whether every job is done, or was refused as impossible.
func (w *world) settled() bool {
	return !slices.ContainsFunc(w.jobs, func(j *simJob) bool { return !j.done && !j.reject })
}

// heal ends all faults and waits until everything is done: every job that can be placed
// runs, and nothing is left behind anywhere.
func (w *world) heal() {
	w.faulty = false
	clear(w.island)
	begun := w.now
	w.run(begun+6*grid.Hour, w.settled)
	for _, j := range w.jobs {
		if !j.done && !j.reject {
			w.t.Fatalf("six hours after healing job %d of %s, epoch %d, has not been done: started %v, known there %v", j.task.Job.Lo, j.home, j.task.Epoch, j.started, w.nodes[j.home].coord.Knows(j.task.Job))
		}
		if j.reject && j.request.Placeable(w.nodes[w.order[simLenders]].coord.View()) == nil {
			w.t.Fatalf("job %d is refused although it can be placed", j.task.Job.Lo)
		}
	}
	w.run(w.now+10*grid.Minute, nil)
	for _, id := range w.order {
		n := w.nodes[id]
		if leases := n.book.Leases(); len(leases) != 0 || n.cluster.State(w.now).Free != n.size {
			w.t.Fatalf("%s has %v left, %d of %d processors are free", id, leases, n.cluster.State(w.now).Free, n.size)
		}
		if n.coord != nil && (n.coord.Claiming() != 0 || n.coord.Queue().Len() != 0 || len(n.coord.byLease) != 0 || len(n.home.Leases()) != 0) {
			w.t.Fatalf("%s has %d jobs and %v left", id, n.coord.Claiming(), n.home.Leases())
		}
		if len(n.saved) != 0 {
			w.t.Fatalf("%s keeps %v", id, slices.Sorted(maps.Keys(n.saved)))
		}
	}
}
