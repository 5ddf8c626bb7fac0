package slurm

import (
	"cmp"
	"os"
	"strconv"
	"time"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/shim"
)

// The site's own pilots serve its small jobs: those that fit on a node of a pilot and end
// before it does. One is kept; the next one is asked for when half of its time is over, and
// then it takes nothing new. Where jobs of this site wait for processors that a pilot
// holds, it gives way.
const (
	// A job that finds the pilot full waits for it as long as jobs there end quickly: no longer
	// than glance if none does, and turnMax in all. Slurm itself takes about as long.
	glance  = 50 * time.Millisecond
	turnMax = time.Second
	// spare is what is left of a pilot when the last job in it must be over.
	spare = 30 * grid.Second
	// yieldPause is how long a job of this site waits in Slurm until pilots give way.
	yieldPause = 3 * time.Second
	// againPause is how long it takes until a pilot is asked for that was refused, doubling.
	againPause    = 10 * time.Second
	againPauseMax = 10 * time.Minute
)

// pilots is the part of an engine that keeps pilots, above all the site's own. Guarded by
// Engine.mu.
type pilots struct {
	*Engine
	waiting []*job    // for room in a pilot, in order
	placed  []*job    // to be launched
	end     time.Time // when something ended in a pilot
	dormant bool      // none is wanted until there is a job for it
	again   time.Time // when one may be asked for
	pause   time.Duration
	wake    chan struct{} // something is placed

	listened time.Time // when that was tried last; the keeper's
}

// suits reports whether a job may run in a pilot of this site. What is configured for one partner
// holds for jobs of Slurm's.
func (e *pilots) suits(j *job) bool {
	t := &j.task
	return e.cfg.Pilots > 0 && j.note.Partner == "" && t.Squad == nil && len(t.GPUs) == 0 && t.Job.Memory == 0 && t.Limit > 0 &&
		j.note.Processor <= e.cfg.Pilots && t.Limit+spare <= e.cfg.PilotTime
}

// offer has a job run in a pilot, now or soon, and reports whether it does. The caller holds
// e.mu.
func (e *pilots) offer(j *job) bool {
	if !e.suits(j) {
		return false
	}
	e.own.dormant = false
	if g := e.seat(j); g == nil && !e.worthWaiting(j, time.Now()) {
		return false
	}
	if j.inside = true; j.via == nil {
		e.own.waiting = append(e.own.waiting, j)
	}
	return true
}

// seat places a job in a pilot that has room. The caller holds e.mu.
func (e *pilots) seat(j *job) *glidein {
	now := time.Now()
	for _, g := range e.glideins {
		if !g.small() || g.leaves || !g.up() || g.until.IsZero() || now.Add((j.task.Limit + spare).Duration()).After(g.until) {
			continue
		}
		if j.chair = g.take(j.note.Processor, false); j.chair != nil {
			j.via, g.last = g, now
			e.own.placed = append(e.own.placed, j)
			select {
			case e.own.wake <- struct{}{}:
			default:
			}
			return g
		}
	}
	return nil
}

// worthWaiting reports whether it is worth while to wait for a pilot. The caller holds e.mu.
func (e *pilots) worthWaiting(j *job, now time.Time) bool {
	waited := now.Sub(j.offered)
	glance, turnMax := cmp.Or(e.cfg.turn, glance), cmp.Or(e.cfg.turn, turnMax)
	for _, g := range e.glideins {
		switch {
		case !g.small() || g.leaves || g.gone:
		case !g.up() || g.until.IsZero(): // it comes: in the queue the job would wait behind it
			if waited < turnMax*2 && now.Sub(g.batch.offered) < againPause {
				return true
			}
		case g.widest() >= j.note.Processor && !now.Add((j.task.Limit + spare).Duration()).After(g.until):
			if waited < turnMax && (waited < glance || now.Sub(e.own.end) < glance) {
				return true
			}
		}
	}
	return false
}

// reseat places those that wait, and gives to Slurm those that have waited for too long. The
// caller holds e.mu.
func (e *pilots) reseat() {
	now := time.Now()
	left := e.own.waiting[:0]
	for _, j := range e.own.waiting {
		switch {
		case j.settled || e.seat(j) != nil:
		case e.worthWaiting(j, now):
			left = append(left, j)
		default:
			e.outside(j)
		}
	}
	clear(e.own.waiting[len(left):])
	e.own.waiting = left
}

// outside gives a job to Slurm that was to run in a pilot. The caller holds e.mu.
func (e *pilots) outside(j *job) {
	j.inside, j.via, j.chair = false, nil, nil
	e.wg.Add(1)
	go e.submit(j)
}

// launcher launches what is placed until the engine is closed.
func (e *pilots) launcher() {
	for {
		select {
		case <-e.own.wake:
		case <-e.ctx.Done():
			return
		}
		e.mu.Lock()
		batch := e.own.placed
		e.own.placed = nil
		e.mu.Unlock()
		e.launch(batch)
	}
}

// launch starts what is placed: first it is noted durably, once for all.
func (e *pilots) launch(batch []*job) {
	logs := make(map[*glidein]error)
	var specs []*job
	for _, j := range batch {
		spec, err := e.Spec(&j.task, j.process.Number, e.files.Process(j.note.Home, j.process))
		if err != nil {
			e.vacate(j)
			e.refused(j, err)
			continue
		}
		spec.ID = j.name
		if spec.Peers, err = e.peers(j); err != nil {
			_ = os.RemoveAll(e.files.Process(j.note.Home, j.process) + run.ScratchSuffix)
			e.vacate(j)
			e.refused(j, err)
			continue
		}
		e.mu.Lock()
		if j.wanted == "" && !j.settled && !j.via.gone {
			j.spec = &spec
			j.via.open[j.name] = j
			j.via.log.launch(j)
			logs[j.via] = nil
			specs = append(specs, j)
		} else {
			_ = os.RemoveAll(e.files.Process(j.note.Home, j.process) + run.ScratchSuffix)
			e.unlaunched(j)
		}
		e.mu.Unlock()
	}
	for g := range logs {
		if logs[g] = g.log.sync(); logs[g] != nil {
			e.log.Error("cannot note what is launched in a pilot: jobs go to Slurm's queue instead", "error", logs[g])
		}
	}
	e.start(specs, logs)
}

// start has the shims start what is noted, but for what could not be noted or whose pilot has gone
// meanwhile: that was never launched, also for the daemon after this one.
func (e *pilots) start(specs []*job, logs map[*glidein]error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range specs {
		if logs[j.via] != nil || j.via.gone && !j.settled {
			g := j.via
			delete(g.open, j.name)
			j.spec = nil
			if err := g.log.over(j.name); err != nil {
				e.log.Warn("cannot note that a job was not launched", "error", err)
			}
			e.unlaunched(j)
			e.clearGlidein(g) // the last one, perhaps, that it was kept for
			continue
		}
		j.launched = true
		if c := j.via.connected(j.chair[0].node); c != nil {
			_ = e.ways.start(c, *j.spec) // closed: it is started when the shim calls again
		}
	}
}

// unlaunched has a job run elsewhere that was placed in a pilot and cannot be launched there. One
// that has ended meanwhile, or is to end, it leaves alone. The caller holds e.mu.
func (e *pilots) unlaunched(j *job) {
	switch {
	case j.settled || j.wanted != "":
	case j.task.Squad != nil: // it runs beside its others, or not at all
		e.unseated(j)
	default:
		j.via.give(j.chair)
		e.outside(j)
	}
}

// arriveOwn takes up what a shim has that called: of what was launched and it does not know, it
// has not heard. The caller holds e.mu.
func (e *pilots) arriveOwn(g *glidein, node int, client *shim.Client) {
	if g.leaves {
		_ = client.Retire()
	}
	if g.until.IsZero() && !g.batch.fromEarlier {
		g.until = time.Now().Add(g.batch.note.Limit.Duration())
	}
	g.last = time.Now()
	if g.gang != nil {
		g.answerHold()
	}
	knows := make(map[string]bool)
	for _, t := range client.Adopt() {
		knows[t.ID] = true
		if g.open[t.ID] == nil && t.Running {
			_ = client.Kill(t.ID, "nobody waits for it any more")
		}
	}
	for name, j := range g.open {
		switch {
		case j.settled || !j.launched || j.chair[0].node != node || knows[name]:
		case j.spec != nil:
			_ = e.ways.start(client, *j.spec)
		default: // of an earlier daemon, which died before it was sent
			lost := j
			e.wg.Go(func() { e.over(g, lost, &shim.Ended{ID: name, Cause: shim.CauseLost, Start: e.now(), End: e.now()}) })
		}
	}
	e.soon()
}

// over reports how a job in a pilot ended.
func (e *pilots) over(g *glidein, j *job, end *shim.Ended) {
	o := ranFor(end, j.note.Ordered, e.now())
	e.mu.Lock()
	if j.wanted != "" && !o.Lost {
		o.Reason = j.wanted
	}
	e.mu.Unlock()
	e.vacate(j)
	e.finish(j, o)
}

// vacate takes a job off its seat, and gives that to the next.
func (e *pilots) vacate(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j.chair == nil || j.vacated {
		return
	}
	j.vacated = true
	now := time.Now()
	j.via.give(j.chair)
	j.via.last, e.own.end = now, now
	e.reseat()
}

// acknowledged forgets a job of a pilot. The caller holds e.mu.
func (e *pilots) acknowledged(j *job) {
	g := j.via
	delete(e.jobs, j.process)
	if g == nil || g.open[j.name] == nil {
		return
	}
	delete(g.open, j.name)
	if g.gone {
		e.clearGlidein(g)
		return
	}
	if err := g.log.over(j.name); err != nil {
		e.log.Warn("cannot note that a job is over", "error", err)
	}
	if c := g.connected(j.chair[0].node); c != nil {
		_ = c.Ack(j.name) // closed: it is told again, and acknowledged then
	}
}

// keepPilots keeps a pilot of the site's own, and looks after those of leases. The keeper calls it
// again and again.
func (e *pilots) keepPilots() {
	e.mu.Lock()
	listens := e.cfg.Pilots > 0 || len(e.glideins) > 0
	e.mu.Unlock()
	if !listens {
		return
	}
	if e.listener == nil && time.Since(e.own.listened) > time.Second {
		if err := e.listen(); err != nil && e.ctx.Err() == nil {
			e.log.Warn("pilots cannot call", "error", err)
		}
		e.own.listened = time.Now()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.keepLents(now)
	e.keepGangs(now)
	e.leaveParted(now)
	e.reseat()
	crowded := e.crowdedOut(now)
	var stays, comes *glidein
	for _, g := range e.glideins {
		switch {
		case !g.small() || g.gone || g.leaves:
			continue
		case e.cfg.Pilots == 0:
			e.leave(g, "slurm.pilots is 0")
			continue
		case crowded:
			e.leave(g, "jobs of this site wait for its processors")
			continue
		case e.cfg.PilotIdle > 0 && g.up() && len(g.open) == 0 && now.Sub(g.last) > e.cfg.PilotIdle.Duration():
			e.own.dormant = true
			e.leave(g, "it is idle")
			continue
		}
		if g.up() {
			if stays != nil { // this is the next one
				e.leave(stays, "the next one is there")
			}
			stays = g
		} else {
			comes = g
		}
	}
	half := e.cfg.PilotTime.Duration() / 2
	ages := stays != nil && !stays.until.IsZero() && time.Until(stays.until) < half
	if ages && comes != nil && len(stays.open) == 0 && now.Sub(comes.batch.offered) > yieldPause {
		e.leave(stays, "the next one waits for its processors")
	}
	if e.cfg.Pilots > 0 && comes == nil && (stays == nil || ages) && !e.own.dormant && !crowded && now.After(e.own.again) {
		e.askOwn(now)
	}
}

// leaveParted has pilots end of which a node does not call any more. Its shim has ended, perhaps, while
// those of the other nodes keep the pilot there: what it ran is lost once that is over. The
// caller holds e.mu.
func (e *pilots) leaveParted(now time.Time) {
	for _, g := range e.glideins {
		if g.lent == nil && !g.gone && len(g.nodes) > 0 && !g.up() && now.Sub(g.parted) > cmp.Or(e.cfg.silence, silence).Duration() {
			e.leave(g, "a node of it does not call")
		}
	}
}

// crowdedOut reports whether a job of this site has waited in Slurm for so long that processors
// of pilots may be what it waits for. The caller holds e.mu.
func (e *pilots) crowdedOut(now time.Time) bool {
	reach := e.idle // what they would have if pilots ended
	for _, g := range e.glideins {
		if g.small() && g.up() {
			reach += g.most
		}
	}
	for _, j := range e.jobs {
		if j.note.Processor <= reach && !j.inside && (j.glide == nil || j.glide.gang != nil) && !j.settled && j.id != "" && j.state == Waiting && !j.offered.IsZero() && now.Sub(j.offered) > yieldPause {
			return true
		}
	}
	return false
}

// askOwn asks Slurm for a pilot. The caller holds e.mu.
func (e *pilots) askOwn(now time.Time) {
	e.newest = max(e.newest+1, int64(e.now()))
	x := ownPilot(e.newest)
	j := &job{process: x, name: x.Name() + "." + strconv.FormatInt(e.newest, 36), fresh: true, offered: now, note: note{
		Ordered: e.now(), Limit: e.cfg.PilotTime, Tasks: e.cfg.Pilots, Each: 1, Processor: e.cfg.Pilots, Pilot: &keeps{Processors: e.cfg.Pilots},
	}}
	e.enter(j)
	e.wg.Add(1)
	go e.submit(j)
}

// enter enters a pilot. The caller holds e.mu.
func (e *pilots) enter(j *job) {
	j.glide = newGlidein(j)
	j.glide.log = &launches{path: e.orders.path(j.name, tasksEnd)}
	e.glideins = append(e.glideins, j.glide)
	e.add(j)
}

// refusedOwn notes that a pilot does not come about. The caller holds e.mu.
func (e *pilots) refusedOwn(now time.Time, err error) {
	e.own.pause = min(max(2*e.own.pause, againPause), againPauseMax)
	e.own.again = now.Add(e.own.pause)
	e.log.Warn("a pilot for small jobs does not come about: they go to Slurm's queue", "again in", e.own.pause, "error", err)
}

// ended takes the end of the job that a pilot is. What its shims have told nobody is in their
// records; of what is not, the pilot has taken the end with it.
func (e *pilots) endedGlidein(g *glidein, o *outcome) {
	e.mu.Lock()
	g.gone = true
	e.mu.Unlock()
	e.ways.overAll(g)
	ends := e.leftIn(g)
	e.mu.Lock()
	now := time.Now()
	switch {
	case g.lent != nil:
	case g.gang != nil:
		g.failHold(o.Reason)
	case !g.leaves && (len(g.nodes) == 0 || now.Sub(g.batch.offered) < againPause):
		e.refusedOwn(now, &refusal{o.Reason})
	default:
		e.own.pause = 0
	}
	var lost []*job
	for name, j := range g.open {
		if !j.settled && j.launched && ends[name] == nil {
			lost = append(lost, j)
		}
	}
	e.clearGlidein(g)
	e.mu.Unlock()
	for name, end := range ends {
		e.mu.Lock()
		j := g.open[name]
		e.mu.Unlock()
		if j != nil {
			e.over(g, j, end)
		}
	}
	why := o.Reason
	if why == "" {
		why = "it ended"
	}
	for _, j := range lost {
		now := e.now()
		e.over(g, j, &shim.Ended{ID: j.name, Cause: shim.CauseLost, Reason: "its pilot is gone: " + shortReason(why), Start: j.note.Ordered, End: now})
	}
}

// leftIn returns the ends that the shims of a pilot have left.
func (e *pilots) leftIn(g *glidein) map[string]*shim.Ended {
	ends := make(map[string]*shim.Ended)
	home := e.orders.path(g.batch.name, homeEnd)
	entries, _ := os.ReadDir(home) // none: it never began
	for _, entry := range entries {
		left, err := shim.Left(home + "/" + entry.Name())
		if err != nil {
			e.log.Error("what a pilot has left cannot be read", "slurm", g.batch.id, "error", err)
		}
		for i := range left {
			ends[left[i].ID] = &left[i]
		}
	}
	return ends
}

// clearGlidein forgets a pilot that is gone, with its files, once nothing of it is needed. The
// caller holds e.mu.
func (e *pilots) clearGlidein(g *glidein) {
	if !g.gone || len(g.open) > 0 || g.cleared {
		return
	}
	g.cleared = true
	for i, other := range e.glideins {
		if other == g {
			e.glideins = append(e.glideins[:i:i], e.glideins[i+1:]...)
			break
		}
	}
	g.log.close()
	if g.lent != nil {
		if err := os.RemoveAll(e.files.Pilot(g.lent.key)); err != nil {
			e.log.Warn("cannot remove what a pilot left", "error", err)
		}
		return // its order is the lease's job's: it goes when that is acknowledged
	}
	delete(e.jobs, g.batch.process)
	if err := e.orders.forget(g.batch.name); err != nil {
		e.log.Warn("cannot remove what a pilot left in slurm.workdir", "error", err)
	}
}

// recoverGlidein takes up a pilot of an earlier daemon, and returns what was launched there.
// The caller holds e.mu.
func (e *pilots) recoverGlidein(j *job) (running []run.Found, err error) {
	j.fromEarlier = true
	e.enter(j)
	g := j.glide
	log, open, err := openLaunches(g.log.path)
	if err != nil {
		return nil, err
	}
	g.log = log
	for _, o := range open {
		o.glide, o.via = nil, g
		e.add(o)
		g.open[o.name] = o
		if n := o.chair[0].node; n >= len(g.used) {
			g.used = grow(g.used, n+1)
		}
		g.used[o.chair[0].node] += o.chair[0].processors
		running = append(running, run.Found{Process: o.process, Start: o.note.Ordered})
	}
	return running, nil
}

// endInside ends a job in a pilot, or reports that it was not launched and never will be. The
// caller holds e.mu.
func (e *pilots) endInside(j *job) (never bool) {
	if j.spec == nil && !j.launched { // it waits for room, or for the launcher, which looks at Job.wanted
		if j.chair != nil && !j.vacated {
			j.vacated = true
			j.via.give(j.chair)
		}
		return true
	}
	if c := j.via.connected(j.chair[0].node); c != nil && time.Since(j.killed) > killPause {
		j.killed = time.Now()
		_ = c.Kill(j.name, j.wanted) // closed: again, when it has called
	}
	return false
}

// runsUntil notes when Slurm ends the job of a pilot.
func (e *pilots) runsUntil(j *job, end grid.Time) {
	if j.glide == nil || end == grid.Never {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	j.glide.until = time.UnixMicro(int64(end))
}
