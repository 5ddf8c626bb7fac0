package slurm

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// How often the cluster is looked at.
const (
	// lookPause is how often the work directory is looked at for ends, which costs the
	// controller nothing; looksMax bounds how many jobs at a time. What watch sees comes sooner.
	lookPause = 20 * time.Millisecond
	looksMax  = 256
	// A poll asks the controller about everything. It comes after pollMin at the earliest,
	// after pollIdle while this site has no jobs, and after pollShare times what the last
	// squeue took, a part of which is the controller's time.
	pollMin   = time.Second
	pollIdle  = 3 * time.Second
	pollMax   = time.Minute
	pollShare = 40
	// retryPause is after how long Slurm's commands try anew to reach a controller that they did
	// not reach. They do not tell.
	retryPause = time.Second
	// foretellPause is how often Slurm is asked when jobs would start.
	foretellPause = 15 * time.Second
	// killPause is how often scancel is repeated for a job that does not end.
	killPause = 10 * time.Second
	// A job that seems to have ended is asked for again after askPause, doubling.
	askPause    = 10 * time.Millisecond
	askPauseMax = 2 * time.Second
)

// keep watches over the jobs until the engine is closed.
func (e *Engine) keep() {
	defer e.wg.Done()
	k := keeper{Engine: e}
	ticker := time.NewTicker(lookPause)
	defer ticker.Stop()
	polled := make(chan *polled, 1)
	for polling := false; ; {
		if !polling && !time.Now().Before(k.due) { // beside the rest: while the controller takes its time, ends are seen
			polling = true
			e.wg.Go(func() { polled <- k.poll() })
		}
		k.endUnwanted()
		k.lookForEnds()
		k.own.keepPilots()
		select {
		case p := <-polled:
			polling = false
			k.take(p)
			k.due = time.Now().Add(k.pause(p.took))
		case name := <-e.ends:
			k.lookAt(name)
		case <-ticker.C:
		case <-e.wake:
		case <-e.ctx.Done():
			return
		}
	}
}

// keeper is the state of the goroutine that asks Slurm.
type keeper struct {
	*Engine
	due      time.Time // of the next poll
	foretold time.Time // when Slurm was last asked
	starts   []foretold
}

// pause returns how long to wait after a poll that took so long.
func (k *keeper) pause(took time.Duration) time.Duration {
	least := pollMin
	k.mu.Lock()
	lingers := len(k.lingers)
	k.mu.Unlock()
	if lingers == 0 && len(k.live()) == 0 {
		least = pollIdle
	}
	return min(max(least, pollShare*took), pollMax)
}

// live returns the jobs whose ends are not known.
func (k *keeper) live() (jobs []*job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range k.jobs {
		if !j.settled {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// polled is what the cluster says of everything.
type polled struct {
	queue  []listed
	counts counts
	took   time.Duration // how long squeue took; 0 if it failed: then it has waited for an answer, and cost nobody anything
	err    error
}

// poll asks what there is, ours and others'. It changes nothing of k, and may run beside the rest.
func (k *keeper) poll() (p *polled) {
	p = new(polled)
	began := time.Now()
	queue, _, err := k.commands.run(k.ctx, "", "squeue", "-h", "-a", "-o", queueFormat)
	if err == nil {
		p.took = time.Since(began)
		p.queue, err = parseQueue(queue)
	}
	nodes := ""
	if err == nil {
		nodes, _, err = k.commands.run(k.ctx, "", "sinfo", k.cfg.sinfo()...)
	}
	if err == nil {
		p.counts, err = parseCounts(nodes)
	}
	p.err = err
	return p
}

// take takes in what a poll has found, and tells the site what is left for it. It may be some
// moments old: what it says of a job that is not as it was is asked for anew.
func (k *keeper) take(p *polled) {
	if p.took > retryPause {
		k.mu.Lock()
		k.numbered = false // the controller may have been restarted meanwhile
		k.mu.Unlock()
	}
	if p.err != nil {
		k.inTrouble(p.err)
		return
	}
	listed, counts := p.queue, p.counts
	now := k.now()
	v := view{processors: k.processors, counts: counts, now: now}
	byID := make(map[string]int, len(listed))
	for i := range listed {
		byID[listed[i].id] = i
	}
	room := &site.Room{}
	ours := make(map[int]bool)
	for _, j := range k.live() {
		k.mu.Lock()
		id, inside := j.id, j.inside
		k.mu.Unlock()
		i, there := byID[id]
		switch {
		case inside: // Slurm knows its pilot only
		case id == "" && j.own(): // it holds nothing yet, and no job waits for it
			j.awaits(&v)
		case id == "": // being submitted
			v.ours = append(v.ours, held{j.note.Processor, grid.Never, true})
			room.Waiting = append(room.Waiting, j.process.Task)
			k.giveUp(j, "", now)
		case !there, listed[i].name != jobPrefix+j.name: // a controller that was restarted may give a number again
			k.ask(j)
		default:
			ours[i] = true
			k.see(j, &listed[i], room, &v)
		}
	}
	for i := range listed {
		if !ours[i] {
			v.see(&listed[i])
		}
	}
	k.clear()
	k.tidy(listed)
	if v.crowded() && time.Since(k.foretold) > foretellPause {
		k.foretold = time.Now()
		k.starts = k.askStarts(v.processors, now)
	} else if !v.crowded() {
		k.starts = nil
	}
	v.starts = k.starts
	room.Taken = v.taken()
	k.mu.Lock()
	k.idle = counts.idle
	room.Begun, k.begun = k.begun, nil
	k.mu.Unlock()
	k.room(room)
}

// lingering is a job that is over and acknowledged, but which Slurm might begin again.
type lingering struct {
	id    string
	since time.Time
}

// lingerMin is how long such a job is remembered at least: a controller that dies has forgotten
// what it did some seconds before, and begins again what it takes for waiting.
const lingerMin = 15 * time.Second

// tidy ends jobs that were submitted twice, as an answer was lost, and forgets those that Slurm
// will not begin again.
func (k *keeper) tidy(queue []listed) {
	names := make(map[string]string) // numbers
	for _, j := range k.live() {
		k.mu.Lock()
		if j.id != "" && !j.inside {
			names[jobPrefix+j.name] = j.id
		}
		k.mu.Unlock()
	}
	there := make(map[string]bool)
	for i := range queue {
		l := &queue[i]
		there[l.name] = true
		if l.state != Waiting || !isNumber(l.id) {
			continue
		}
		name := strings.TrimPrefix(l.name, jobPrefix)
		k.mu.Lock()
		_, over := k.lingers[name]
		k.mu.Unlock()
		switch id := names[l.name]; {
		case over: // it would be refused by its node, which remembers it
			k.scancel(l.id, name, waitingOnly...)
		case id != "" && id != l.id:
			k.log.Warn("a job was submitted twice: the other one is cancelled", "slurm", id, "other", l.id)
			k.scancel(l.id, name, waitingOnly...)
		}
	}
	var over []string
	k.mu.Lock()
	for name, l := range k.lingers {
		if time.Since(l.since) > cmp.Or(k.cfg.linger, lingerMin) && !there[jobPrefix+name] {
			over = append(over, name)
			delete(k.lingers, name)
		}
	}
	k.mu.Unlock()
	for _, name := range over {
		k.forget(name)
	}
}

// sinfo returns what it is asked.
func (c *Config) sinfo() []string {
	args := []string{"-h", "-o", "%C"}
	if c.Partition != "" {
		args = append(args, "-p", c.Partition)
	}
	return args
}

// see notes what squeue says of one of our jobs.
func (k *keeper) see(j *job, l *listed, room *site.Room, v *view) {
	k.mu.Lock()
	j.state = l.state
	k.mu.Unlock()
	switch l.state {
	case Waiting:
		if k.orders.ran(j.name, j.id) {
			k.ask(j)
			return
		}
		if j.own() {
			j.awaits(v)
			return
		}
		v.ours = append(v.ours, held{j.note.Processor, grid.Never, true})
		room.Waiting = append(room.Waiting, j.process.Task)
		k.giveUp(j, j.id, k.now())
	case Running, Ending, Unknown:
		v.ours = append(v.ours, held{l.processors, l.end, false})
		k.began(j, l.start)
		k.own.runsUntil(j, l.end)
	default:
		k.ask(j)
	}
}

// awaits notes that a pilot waits for processors that the site has given to a gang.
func (j *job) awaits(v *view) {
	if j.glide.gang != nil {
		v.ours = append(v.ours, held{j.note.Processor, grid.Never, true})
	}
}

// began has the site told when a job began.
func (e *Engine) began(j *job, start grid.Time) {
	if start == grid.Never {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !j.told && !j.own() {
		j.told = true
		e.begun = append(e.begun, site.Begun{ID: j.process.Task, Start: max(start, j.note.Ordered)})
	}
}

// giveUp ends a job that has not begun and could not end in time any more: nobody waits for
// it from then on.
func (e *Engine) giveUp(j *job, id string, now grid.Time) {
	if j.note.Until == 0 || now.Add(j.note.Limit) <= j.note.Until || !e.orders.takeBack(j.name) {
		return
	}
	if id != "" {
		e.scancel(id, j.name)
	}
	e.finish(j, outcome{Result: grid.Result{Start: now, End: now, Reason: "Slurm could not begin it in time"}, Lost: true})
}

// endUnwanted ends the jobs that are to end: those not begun by taking their orders back,
// the others by scancel, again and again.
func (k *keeper) endUnwanted() {
	for _, j := range k.live() {
		k.mu.Lock()
		wanted, id, due := j.wanted, j.id, time.Since(j.killed) > killPause
		if wanted != "" && j.inside {
			done := k.own.endInside(j)
			k.mu.Unlock()
			if now := k.now(); done {
				k.finish(j, outcome{Result: grid.Result{Start: now, End: now, ExitCode: exitTerm, Reason: wanted}})
			}
			continue
		}
		if wanted != "" && !j.ready {
			j.dropped = true
		}
		dropped := j.dropped
		k.mu.Unlock()
		if wanted == "" || !dropped && !due {
			continue
		}
		now := k.now()
		cancelled := outcome{Result: grid.Result{Start: now, End: now, ExitCode: exitTerm, Reason: wanted}}
		if dropped {
			k.finish(j, cancelled)
			continue
		}
		back := k.orders.takeBack(j.name)
		if began := k.orders.began(j.name); !back && began != "" {
			id = began
		}
		if id != "" {
			k.mu.Lock()
			j.killed = time.Now()
			k.mu.Unlock()
			k.scancel(id, j.name)
		}
		if back {
			k.finish(j, cancelled)
		}
	}
}

// waitingOnly has scancel leave alone what runs: of two submissions of one job, say.
var waitingOnly = []string{"--state=PENDING"}

// scancel asks Slurm to end a job: one of that name, if the controller may have been restarted
// since it gave the number.
func (e *Engine) scancel(id, name string, only ...string) {
	e.mu.Lock()
	doubt := e.doubt
	e.mu.Unlock()
	args := only[:len(only):len(only)]
	if doubt { // it costs the controller a list of all jobs
		args = append(args, "--name="+jobPrefix+name)
	}
	args = append(args, id)
	if _, _, err := e.commands.run(e.ctx, "", "scancel", args...); err != nil {
		e.inTrouble(err) // it is repeated as long as the job is there
	}
}

// lookForEnds looks whether shims have written ends.
func (k *keeper) lookForEnds() {
	jobs := k.live()
	for _, j := range jobs[:min(len(jobs), looksMax)] { // the order is a different one each time
		k.look(j)
	}
}

// lookAt looks at once whether a job has ended.
func (k *keeper) lookAt(name string) {
	x, err := run.ExecutionOf(name)
	if err != nil {
		return
	}
	k.mu.Lock()
	j := k.jobs[x]
	due := j != nil && j.name == name && !j.settled
	k.mu.Unlock()
	if due {
		k.look(j)
	}
}

// look looks whether the shim of a job has written its end.
func (k *keeper) look(j *job) {
	k.mu.Lock()
	due := j.id != "" && time.Since(j.looked) >= j.pause
	k.mu.Unlock()
	if !due {
		return
	}
	end, err := k.orders.end(j.name)
	k.mu.Lock()
	wanted := j.wanted
	k.mu.Unlock()
	switch {
	case end == nil && err == nil:
	case err == nil && j.glide == nil && wanted == "" && saysAll(end, &j.note, k.now()):
		k.Engine.began(j, end.Start)
		k.finish(j, outcomeOf(end))
	default:
		k.ask(j)
	}
}

// ask asks for one job, and settles it if it has ended.
func (k *keeper) ask(j *job) {
	k.mu.Lock()
	id := j.id
	due := time.Since(j.looked) >= j.pause
	k.mu.Unlock()
	if !due {
		return
	}
	if began := k.orders.began(j.name); began != "" && began != id {
		k.scancel(id, j.name, waitingOnly...)
		id = began // of two submissions this one runs it
		k.mu.Lock()
		j.id = id
		k.mu.Unlock()
	}
	s, known, err := k.shown(id)
	known = known && s.name == jobPrefix+j.name
	k.mu.Lock()
	j.looked = time.Now()
	j.pause = min(max(2*j.pause, askPause), askPauseMax)
	wanted := j.wanted
	k.mu.Unlock()
	if err != nil {
		k.inTrouble(err)
		return
	}
	end, err := k.orders.end(j.name)
	if err != nil {
		k.log.Error("what the shim says of a job cannot be read", "job", j.process.Task.Job, "error", err)
	}
	began := k.orders.began(j.name) != ""
	switch {
	case !known:
		k.forgotten(j, end, began, wanted)
	case s.state == Requeued, s.state == Waiting && began:
		k.again(j, &s, end, began, wanted)
	case s.state.over() && end == nil && wanted == "" && k.comes(j):
	case s.state.over():
		k.settle(j, &s, end, began, wanted)
	}
}

// again settles a job that Slurm will begin once more: somebody has put it back into the queue,
// or a controller that died has forgotten that it had begun.
func (k *keeper) again(j *job, s *shown, end *shim.Ended, began bool, wanted string) {
	s.start, s.end = grid.Never, grid.Never // what it says is about the next run
	switch {
	case wanted == "" && end == nil && began && k.orders.alive(j.name): // it runs, whatever the controller says
		if !j.held { // its node would refuse a second one of that number, and be taken out of service for that
			_, _, err := k.commands.run(k.ctx, "", "scontrol", "hold", j.id)
			j.held = err == nil
		}
		return
	default:
		s.state = before(s, end, wanted)
	}
	k.scancel(j.id, j.name)
	k.settle(j, s, end, began, wanted)
}

// before says how the run ended that Slurm will begin once more. If somebody has put it back, a
// signal came to what its shell was waiting for; a controller that has forgotten it sent none.
func before(s *shown, end *shim.Ended, wanted string) State {
	if wanted == "" && itself(end) && !(byShell(end) && (s.restarts || s.state == Requeued)) {
		return Completed
	}
	return Requeued
}

// comesMax is how long the end that a shim has written may take until it is seen here.
const comesMax = 5 * time.Second

// comes reports whether the end of a job that is over may still come to be seen.
func (k *keeper) comes(j *job) bool {
	if j.over.IsZero() {
		j.over = time.Now()
	}
	k.orders.refresh()
	return time.Since(j.over) < comesMax
}

// shown asks the controller for a job, and accounting if that has forgotten it.
func (k *keeper) shown(id string) (s shown, known bool, err error) {
	text, _, err := k.commands.run(k.ctx, "", "scontrol", "-o", "show", "job", id)
	if err == nil {
		s, err = parseShow(text)
		return s, err == nil, err
	}
	r, refused := errors.AsType[*refusal](err)
	if !refused {
		return s, false, err
	}
	if !strings.Contains(r.text, "Invalid job id") {
		return s, false, r
	}
	text, _, err = k.commands.run(k.ctx, "", "sacct", "-n", "-P", "-j", id, "-o", accountFormat)
	if err != nil {
		return s, false, nil // without accounting there is nobody else to ask
	}
	s, known, err = parseAccount(text, id)
	return s, known && s.state.over(), err // what accounting thinks to be there, and the controller does not know, was forgotten
}

// settle reports how a job ended by Slurm's word.
func (k *keeper) settle(j *job, s *shown, end *shim.Ended, began bool, wanted string) {
	k.orders.takeBack(j.name) // should somebody start it again
	o := settle(s, end, began, wanted)
	if o.Lost && end == nil && began && k.orders.alive(j.name) {
		return // it runs, whatever the controller says: it has an end yet
	}
	if end == nil && o.ExitCode != 0 && o.Reason != "" && !o.Lost {
		if said := k.logged(j.name); said != "" && wanted == "" {
			o.Reason = shortReason(o.Reason + ": " + said)
		}
	}
	o.timed(k.now(), began)
	if s.start != grid.Never {
		k.Engine.began(j, s.start)
	}
	if skewed(s, end) {
		k.log.Warn("the clock of a node differs from that of Slurm's controller: jobs of other sites may be ended too early or too late", "node", s.node, "controller", s.start.Duration(), "node says", end.Start.Duration())
	}
	used := s.user
	if end != nil {
		used = int64(end.User + end.System)
	}
	k.log.Debug("a job of Slurm's ended", "job", j.process.Task.Job, "slurm", j.id, "exit", o.ExitCode, "reason", o.Reason, "lost", o.Lost, "cpu", grid.Time(used))
	k.finish(j, o)
}

// forgotten settles a job of which Slurm knows nothing any more, by what the shim wrote.
func (k *keeper) forgotten(j *job, end *shim.Ended, began bool, wanted string) {
	s := shown{start: grid.Never, end: grid.Never}
	switch {
	case end != nil && (end.Cause != shim.CauseKill || wanted != ""):
		s.state = Completed
	case end == nil && began && k.orders.alive(j.name):
		return // a controller that was restarted may forget what runs
	case !began && !k.orders.takeBack(j.name):
		return // it begins at this moment
	default:
		s.state = NodeFailed
	}
	o := settle(&s, end, began, wanted)
	if end == nil && wanted == "" {
		o.Reason = "Slurm has forgotten it, and its shim wrote nothing"
	}
	o.timed(k.now(), began)
	k.finish(j, o)
}

// inTrouble notes that Slurm does not answer, and has the site told.
func (e *Engine) inTrouble(err error) {
	if e.ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	before := e.trouble
	e.doubt, e.numbered = true, false
	e.trouble = shortReason(err.Error())
	now := e.trouble
	e.mu.Unlock()
	if before != now {
		e.room(&site.Room{Trouble: now})
	}
}

// clear notes that Slurm answers.
func (e *Engine) clear() {
	e.mu.Lock()
	e.trouble = ""
	e.mu.Unlock()
}

func shortReason(text string) string {
	if len(text) > 250 {
		return strings.ToValidUTF8(text[:250], "") + "..."
	}
	return text
}

// askStarts asks Slurm when jobs of a few widths would start.
func (k *keeper) askStarts(processors int64, now grid.Time) (starts []foretold) {
	span := grid.Hour
	for _, n := range []int64{1, (processors + 1) / 2, processors} {
		if n < 1 || len(starts) > 0 && starts[len(starts)-1].processors == n {
			continue
		}
		start, err := k.foretell(k.ctx, n, span, now)
		if _, refused := errors.AsType[*refusal](err); refused && span > grid.Minute {
			span = grid.Minute // longer than the partition lets jobs be
			start, err = k.foretell(k.ctx, n, span, now)
		}
		if err != nil {
			return nil // what squeue says is all there is
		}
		starts = append(starts, foretold{n, start})
	}
	return starts
}
