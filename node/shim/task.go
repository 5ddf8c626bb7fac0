package shim

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/node/sandbox"
)

const (
	// drainPause is how long to wait before looking again whether the rest of a task
	// is gone, doubling up to drainPauseMax.
	drainPause    = time.Millisecond
	drainPauseMax = 50 * time.Millisecond
	// drainMax is when to stop waiting for processes that do not die of SIGKILL: they
	// hang in the kernel, or belong to another user. Their task is then reported as
	// ended with a reason that says so.
	drainMax = time.Minute
)

// task is one that runs, or of which something is left.
type task struct {
	id    string
	pid   int // of the first process, its process group and its session
	start grid.Time
	out   *output
	limit *time.Timer      // nil for none
	lease time.Duration    // since boot: when it is ended unless it is renewed; 0 for never
	run   *sandbox.Running // nil for a task without a plan
	spec  *Spec            // as it was started
	term  *terminal        // nil: it has none
	sides map[int]*side    // commands that run beside it, by process number

	// Set when the shim ends the task.
	cause  Cause
	reason string
	killAt time.Time    // SIGKILL is due; zero if nobody asked for an end
	asked  map[int]bool // orphans that were sent SIGTERM

	// Set when the first process has ended and was collected.
	collected time.Time
	pause     time.Duration
	// Nobody is left in the process group. As long as somebody is, its number belongs
	// to it; from then on it may be given away, but not before all others have been.
	empty  bool
	stuck  bool // some of its processes cannot be killed
	leaves bool // there is something in a directory of its own
	over   bool // its end is noted once what it wrote is durable
	end    Ended
}

// startTask starts the task of spec. A second start of a known task does nothing:
// the daemon may repeat itself after a broken connection.
func (s *shim) startTask(spec *Spec) {
	if s.tasks[spec.ID] != nil {
		return
	}
	if e := s.results[spec.ID]; e != nil {
		s.tell(e)
		return
	}
	now := time.Now()
	start := wall(now)
	fail := func(failed *startError) {
		e := &Ended{ID: spec.ID, ExitCode: failed.code, Cause: CauseStart, Reason: shorten(failed.reason), Start: start, End: start}
		if !atomicfile.NoDescriptors(failed.err) {
			s.record(e)
			return
		}
		e.Cause = CauseLost // it never was: whoever ordered it tries again, here or elsewhere
		s.note(e)
		s.after(ScarcePause, func() {
			if s.results[e.ID] == e {
				s.tell(e)
			}
		})
	}
	if len(s.tasks)+len(s.results) >= TasksMax {
		// Not recorded: there is no room for it.
		s.tell(&Ended{ID: spec.ID, ExitCode: exitNoStart, Cause: CauseStart, Reason: fmt.Sprintf("the shim already has %d tasks", TasksMax), Start: start, End: start})
		return
	}
	if err := s.keep(func() error { return s.records.intent(spec.ID, start) }); err != nil {
		fail(noStart("note it", err))
		return
	}
	ordered := spec
	spec, err := s.ways.open(ordered)
	if err != nil {
		spec = ordered
		fail(noStart("ways to its other tasks", err))
		return
	}
	env := spec.Env[:len(spec.Env):len(spec.Env)]
	if !spec.Plan.Walled() { // a guest's environment has nothing of the site
		env = override(env, s.inherit)
	}
	env = append(env, MarkEnv+"="+s.records.markOf(spec.ID))
	var run *sandbox.Running
	term, tty, err := openTerminal(spec)
	if err != nil {
		s.ways.leave(spec.ID)
		fail(noStart("start", err))
		return
	}
	out := newOutput(spec, now)
	if spec.Outputs == OutputsLate {
		out.spares = s.sparesBeside(spec)
	}
	pid, failed := execute(spec, env, s.null, tty, out, func(p *sandbox.Process) (_ int, err error) {
		if s.launcher == nil {
			s.launcher = sandbox.Open(s.config.Home)
		}
		if run, err = s.launcher.Start(spec.Plan, p); err != nil {
			return 0, err
		}
		return run.PID, nil
	})
	if tty != nil {
		tty.Close() // the task has it
	}
	if failed != nil {
		out.end(true)
		term.close()
		s.ways.leave(spec.ID)
		fail(failed)
		return
	}
	t := &task{id: spec.ID, pid: pid, start: start, out: out, run: run, spec: spec, term: term}
	if term != nil {
		go term.pump()
	}
	s.tasks[t.id] = t
	s.sessions[pid] = t
	s.limit(t, spec.Limit, spec.Limit)
	s.lease(t, spec.Lease)
	s.warn(t, spec)
	if err := s.keep(func() error { return s.records.started(t.id, pid, start) }); err != nil {
		s.log("task %s: %v", t.id, err) // a later shim still finds it by its mark
	}
}

// warn has a signal sent to t before its limit, so that it can save what it has.
func (s *shim) warn(t *task, spec *Spec) {
	sig := syscall.Signal(spec.Warn.Number)
	if sig == 0 || spec.Limit == 0 {
		return
	}
	s.after(max(spec.Limit-spec.Warn.Before, 0).Duration(), func() {
		switch {
		case s.tasks[t.id] != t || !t.killAt.IsZero() || !t.collected.IsZero():
		case t.run != nil && t.run.Outer(): // the first process is the launcher of the walls, which passes on only this
			if sig == syscall.SIGTERM {
				t.run.Ask()
			}
		case spec.Warn.First:
			syscall.Kill(t.pid, sig)
		default:
			t.signalGroup(sig)
		}
	})
}

// limit has t end after a span, given that its whole limit is total; 0 for never.
func (s *shim) limit(t *task, span, total grid.Time) {
	if t.limit != nil {
		t.limit.Stop()
		t.limit = nil
	}
	if span == 0 {
		return
	}
	var timer *time.Timer
	timer = s.after(span.Duration(), func() {
		if t.limit == timer { // and was not extended in the last moment
			s.endTask(t, CauseLimit, fmt.Sprintf("wall-clock limit of %v exceeded", total))
		}
	})
	t.limit = timer
}

// enforce ends a task that has broken a limit of its plan, without grace: it may be about to
// fill the memory or the disk.
func (s *shim) enforce(t *task, now time.Time) {
	if t.run == nil || !t.killAt.IsZero() || !t.collected.IsZero() {
		return
	}
	left, _ := s.orphansOf(t)
	if reason := t.run.Check(now, left); reason != "" {
		t.cause, t.reason, t.killAt = CauseLimit, shorten(reason), now
		s.kill(t)
	}
}

// extendTask gives a task another limit.
func (s *shim) extendTask(id string, span grid.Time) {
	if t := s.tasks[id]; t != nil && t.killAt.IsZero() && t.collected.IsZero() {
		s.limit(t, span, wall(time.Now())-t.start+span)
	}
}

// endTask asks everything of t to stop, and kills it when the grace is over. The
// first cause counts.
func (s *shim) endTask(t *task, cause Cause, reason string) {
	s.endWithin(t, s.config.Grace, cause, reason)
}

// endWithin is endTask with a grace.
func (s *shim) endWithin(t *task, grace time.Duration, cause Cause, reason string) {
	if s.tasks[t.id] != t || t.over || !t.killAt.IsZero() {
		return
	}
	t.cause, t.reason = cause, shorten(reason)
	t.killAt = time.Now().Add(grace)
	if t.run != nil {
		t.run.Ask()
	}
	if t.run == nil || !t.run.Outer() {
		t.signalGroup(syscall.SIGTERM)
		t.signalGroup(syscall.SIGCONT) // one that was stopped could not hear it
	}
	left, _ := s.orphansOf(t)
	t.ask(left)
	t.signalSides(syscall.SIGTERM)
	s.after(grace, func() { s.kill(t) })
}

// signalGroup sends sig to the process group of t, if anybody is left in it.
func (t *task) signalGroup(sig syscall.Signal) {
	if !t.empty {
		syscall.Kill(-t.pid, sig)
	}
}

// kill ends everything that is known to belong to t, unless nothing is left.
func (s *shim) kill(t *task) {
	if s.tasks[t.id] != t || t.over {
		return
	}
	t.signalGroup(syscall.SIGKILL)
	if t.run != nil {
		t.run.Kill()
	}
	t.signalSides(syscall.SIGKILL)
	left, _ := s.orphansOf(t)
	for _, pid := range left {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// ask sends SIGTERM, once, to each of the orphans of t that left its process group:
// they were not asked to stop with it.
func (t *task) ask(orphans []int) {
	for _, pid := range orphans {
		if p, ok := readProcess(pid); !ok || p.group == t.pid || t.asked[pid] {
			continue
		}
		if t.asked == nil {
			t.asked = make(map[int]bool)
		}
		t.asked[pid] = true
		syscall.Kill(pid, syscall.SIGTERM)
		syscall.Kill(pid, syscall.SIGCONT)
	}
}

// collected notes that a child has ended: a task's first process, or an orphan.
func (s *shim) collected(pid int, status syscall.WaitStatus, usage *syscall.Rusage) {
	t := s.sessions[pid]
	if side := s.sides[pid]; side != nil {
		s.endSide(side, status)
		return
	}
	if t == nil || !t.collected.IsZero() {
		o := s.orphans[pid]
		delete(s.orphans, pid)
		if o != nil && o.owner != nil && !o.owner.collected.IsZero() {
			s.drain(o.owner)
		}
		s.endOrphans() // it may have left children
		return
	}
	if t.limit != nil {
		t.limit.Stop()
	}
	t.collected, t.pause = time.Now(), drainPause
	t.end = endOf(t, status, usage)
	s.drain(t)
}

func endOf(t *task, status syscall.WaitStatus, usage *syscall.Rusage) Ended {
	e := Ended{
		ID: t.id, ExitCode: int32(status.ExitStatus()), Cause: t.cause, Reason: t.reason,
		Start: t.start, End: max(wall(t.collected), t.start),
		User: grid.Time(usage.Utime.Nano() / 1000), System: grid.Time(usage.Stime.Nano() / 1000),
		MaxRSS: int64(usage.Maxrss) << 10,
	}
	if status.Signaled() {
		e.ExitCode = exitSignal + int32(status.Signal())
		if t.killAt.IsZero() {
			e.Cause, e.Reason = CauseSignal, fmt.Sprintf("ended by signal %d (%v)", status.Signal(), status.Signal())
		}
	}
	return e
}

// drain reports the end of t if nothing is left of it. Otherwise it kills what is
// left, unless that was asked to stop and has time, and looks again soon.
func (s *shim) drain(t *task) {
	if s.tasks[t.id] != t || t.over {
		return
	}
	now := time.Now()
	// The group first: its processes, as they die, leave their children as orphans.
	t.empty = t.empty || syscall.Kill(-t.pid, 0) == syscall.ESRCH
	left, settled := s.orphansOf(t)
	if t.empty && len(left) == 0 && len(t.sides) == 0 && settled && (t.run == nil || t.run.Empty()) && t.term.over() {
		s.finish(t)
		return
	}
	if now.Sub(t.collected) > s.config.Grace+drainMax {
		t.stuck = true
		t.end.Reason = shorten(strings.TrimPrefix(t.end.Reason+"; some of its processes cannot be killed", "; "))
		s.finish(t)
		return
	}
	if now.After(t.killAt) { // also if it is zero
		s.kill(t)
	} else {
		t.ask(left)
	}
	s.after(t.pause, func() { s.drain(t) })
	t.pause = min(2*t.pause, drainPauseMax)
}

func (s *shim) finish(t *task) {
	t.over = true
	delete(s.sessions, t.pid)
	s.ways.leave(t.id)
	t.term.end(&t.end)
	silent := t.out.end(!t.stuck)
	t.end.Silent = silent && t.spec.Outputs != OutputsAtOnce
	t.end.OutputCut = t.out.cut[0] || t.out.cut[1]
	if t.run != nil {
		if reason := t.run.Reason(int(t.end.ExitCode)); reason != "" && t.killAt.IsZero() {
			t.end.Cause, t.end.Reason = CauseLimit, shorten(reason)
		}
		t.run.Release()
	}
	s.settle(t, silent)
}

// conclude notes the end of t, of which nothing is left to do.
func (s *shim) conclude(t *task) {
	delete(s.tasks, t.id)
	s.record(&t.end)
	s.endOrphans()
}

// endOrphans kills, when there is no task, orphans that could not be told whose they are:
// they are nobody's then. Their children are orphans once they are collected.
func (s *shim) endOrphans() {
	if len(s.tasks) > 0 {
		return
	}
	for _, pid := range orphans(nil) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// record keeps e until it is acknowledged, and tells the daemon.
func (s *shim) record(e *Ended) {
	s.note(e)
	s.tell(e)
}

// note keeps e until it is acknowledged.
func (s *shim) note(e *Ended) {
	s.results[e.ID] = e
	if err := s.keep(func() error { return s.records.ended(e) }); err != nil {
		s.log("task %s: %v: its end is only in memory", e.ID, err)
	}
}

// ScarcePause is how long the end of a task waits that could not begin for want of descriptors:
// others end meanwhile, and whoever ordered it does not try all that it may within a moment.
const ScarcePause = 5 * time.Second

// orphan is a child of the shim that is no task's first process: its parent died.
type orphan struct {
	owner *task // nil if that cannot be told
	looks       // while it is
}

// orphansOf returns the processes of t whose parents died, first of all those that
// left its process group. Settled is false if there are some that may prove to be
// its own at another look.
func (s *shim) orphansOf(t *task) (mine []int, settled bool) {
	settled = true
	s.pids = orphans(s.pids[:0])
	for _, pid := range s.pids {
		if first := s.sessions[pid]; first != nil && first.collected.IsZero() || s.sides[pid] != nil {
			continue // not one that lost its parent, listed by a kernel without lists of children
		}
		o := s.orphans[pid]
		if o == nil {
			o = &orphan{}
			s.orphans[pid] = o // until it is collected its number is nobody else's
		}
		if o.owner == nil && !o.enough() {
			var p process
			var gone bool
			if o.owner, p, gone = s.ownerOf(pid); gone {
				o.looks = looks{} // it will be collected; its own children became orphans as it died
			} else {
				o.another(p)
			}
			settled = settled && o.owner != nil
		}
		if o.owner == t {
			mine = append(mine, pid)
		}
	}
	return mine, settled
}

// ownerOf returns the task that a process belongs to, nil if that cannot be told.
// Gone says that it has ended, and took the answer with it.
func (s *shim) ownerOf(pid int) (t *task, p process, gone bool) {
	p, ok := readProcess(pid)
	if t := s.sessions[p.session]; ok && t != nil {
		return t, p, false
	}
	if id, ours := s.records.marked(mark(pid)); ours {
		t := s.tasks[id]
		if t == nil || t.over {
			syscall.Kill(pid, syscall.SIGKILL) // its task has ended, so must it
			return nil, p, false
		}
		return t, p, false
	}
	after, ok := readProcess(pid) // the mark could not be read if it ended before that
	return nil, p, !ok || after.gone()
}

// wall returns t as microseconds since the Unix epoch, never negative.
func wall(t time.Time) grid.Time { return max(grid.Time(t.UnixMicro()), 0) }
