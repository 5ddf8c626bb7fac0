package realsite

import (
	"net"
	"runtime"
	"syscall"
)

// DialAs connects to a socket as an account of the machine, with no groups beside it. The thread
// that became it ends.
func DialAs(uid int, socket string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			err = errno
			return
		}
		for _, call := range []uintptr{syscall.SYS_SETRESGID, syscall.SYS_SETRESUID} {
			if _, _, errno := syscall.RawSyscall(call, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
				err = errno
				return
			}
		}
		conn, err = net.Dial("unix", socket)
	}()
	<-done
	return conn, err
}
