package shim

import (
	"strings"
	"syscall"
	"time"
)

// sweepMax is how long to wait for what an earlier shim left to die.
const sweepMax = 10 * time.Second

// sweep kills every process of the tasks that an earlier shim was running when it
// died, and returns when none is left. It recognises them by the mark in their
// environment or, should they have cleared it, by their session: then only if they
// were started while the earlier shim was certainly alive, as later the session's
// number may have become somebody else's.
func sweep(p *past, token string) {
	running := make(map[string]bool)
	sessions := make(map[int]bool)
	for id, k := range p.tasks {
		if k.ended == nil {
			running[token+"/"+id] = true
			sessions[k.pid] = k.pid > 0
		}
	}
	if len(running) == 0 {
		return
	}
	until := ticksAt(p.alive)
	deadline := time.Now().Add(sweepMax)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left := 0
		processes(func(process process) bool {
			if process.gone() {
				return true
			}
			ours := sessions[process.session] && process.started <= until
			if !ours {
				m := mark(process.pid)
				ours = strings.HasPrefix(m, token+"/") && running[m]
			}
			if ours && syscall.Kill(process.pid, syscall.SIGKILL) == nil {
				left++
			}
			return true
		})
		if left == 0 || time.Now().After(deadline) {
			return
		}
		<-time.After(pause)
	}
}
