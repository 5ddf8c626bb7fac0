package shim

import (
	"syscall"
	"time"
)

// sweepMax is how long to wait for what an earlier shim left to die.
const sweepMax = 10 * time.Second

// sweep kills every process of the home's tasks, as the shim that ran them is dead,
// and returns when none is left. It recognises them by the mark in their environment
// or, should they have cleared it, by their session: then only if they were started
// while the dead shim was certainly alive, as later the session's number may have
// become somebody else's.
func sweep(p *past, token string) {
	if p.alive.IsZero() {
		return // there was no shim before
	}
	sessions := make(map[int]bool)
	for _, k := range p.tasks {
		if k.ended == nil && k.pid > 0 {
			sessions[k.pid] = true
		}
	}
	until := ticksAt(p.alive)
	deadline := time.Now().Add(sweepMax)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left := 0
		processes(func(process process) {
			if process.gone() {
				return
			}
			ours := sessions[process.session] && process.started <= until
			if !ours {
				_, ours = markedBy(mark(process.pid), token)
			}
			if ours && syscall.Kill(process.pid, syscall.SIGKILL) == nil {
				left++
			}
		})
		if left == 0 || time.Now().After(deadline) {
			return
		}
		<-time.After(pause)
	}
}
