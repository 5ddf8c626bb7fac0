package scale

import (
	"syscall"
	"time"
)

// threadTime returns how long the calling thread has had a processor. Others that
// use the machine change it little; it leaves out what the garbage collector does on
// other threads.
func threadTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
