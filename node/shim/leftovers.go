package shim

import (
	"syscall"
	"time"
)

// sweepMax is how long to wait for what an earlier shim left to die.
const sweepMax = 10 * time.Second

// sweep kills every process of the home's tasks, as the shim that ran them is dead,
// and returns when none is left.
func sweep(p *past, token string) {
	if p.alive.IsZero() {
		return // there was no shim before
	}
	l := newLeftovers(p, token)
	deadline := time.Now().Add(sweepMax)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if l.kill() || time.Now().After(deadline) {
			return
		}
		<-time.After(pause)
	}
}

// leftovers are the processes of tasks whose shim is dead. They are recognised by the
// mark in their environment or, should they have cleared it, by their session: then
// only if they were started while the dead shim was certainly alive, as later the
// session's number may have become somebody else's.
type leftovers struct {
	token    string
	sessions map[int]bool   // of tasks that ran
	until    uint64         // the dead shim was alive then
	looks    map[int]*looks // at processes of these sessions
	mark     func(pid int) string
}

func newLeftovers(p *past, token string) *leftovers {
	l := &leftovers{token: token, sessions: make(map[int]bool), until: ticksAt(p.alive), looks: make(map[int]*looks), mark: mark}
	for _, k := range p.tasks {
		if k.ended == nil && k.pid > 0 {
			l.sessions[k.pid] = true
		}
	}
	return l
}

// kill kills what is there, and reports whether nothing was, and nothing that may prove
// to be a task's.
func (l *leftovers) kill() (done bool) {
	done = true
	processes(func(p process) {
		if p.gone() {
			return
		}
		ours, sure := l.owns(p)
		if !sure || ours && syscall.Kill(p.pid, syscall.SIGKILL) == nil {
			done = false
		}
	})
	return done
}

// owns reports whether a process is a task's. One that shows no mark is looked at again before
// that is sure.
func (l *leftovers) owns(p process) (ours, sure bool) {
	inside := l.sessions[p.session]
	if inside && p.started <= l.until {
		return true, true
	}
	mark := l.mark(p.pid)
	if _, ours := markedBy(mark, l.token); ours || !inside || mark != "" {
		return ours, true
	}
	seen := l.looks[p.pid]
	if seen == nil {
		seen = new(looks)
		l.looks[p.pid] = seen
	}
	seen.another(p)
	return false, seen.enough()
}
