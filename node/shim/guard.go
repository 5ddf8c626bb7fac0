package shim

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gridnode/node/sandbox"
)

// A shim that is killed cannot end what its tasks have started: only their first processes
// die with it. So it has a guard, its parent, which does nothing but wait for its end. What
// has lost its parents then belongs to the guard, whatever session it is in and whatever
// environment it has, and is killed. Control groups that nothing is in any more are removed:
// the kernel goes through all there are whenever one gets a limit of processors.

// guardedEnv tells a shim that it has a guard.
const guardedEnv = "GRIDNODE_SHIM_GUARDED"

// guard runs this program again as the shim, and ends what it leaves. It returns the exit
// code of the shim.
func guard() (int, error) {
	ready := readyPipe()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1, fmt.Errorf("become subreaper: %w", err)
	}
	files := []uintptr{0, 1, 2}
	env := append(os.Environ(), guardedEnv+"=1")
	if fd := int(ready.Fd()); fd >= 0 {
		env = append(env, readyEnv+"="+strconv.Itoa(len(files)))
		files = append(files, uintptr(fd))
	}
	// Not os.Executable: the file may have been replaced since this process began.
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: env, Files: files})
	if err != nil {
		fmt.Fprintln(ready, err)
		return 1, fmt.Errorf("start the shim: %w", err)
	}
	ready.Close()
	rename("gridnode-guard")
	go func() {
		for sig := range signals {
			if sig != syscall.SIGHUP { // there is no terminal to lose
				_ = syscall.Kill(pid, sig.(syscall.Signal)) // it may have ended
			}
		}
	}()
	for {
		var status syscall.WaitStatus
		gone, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 1, fmt.Errorf("wait for the shim: %w", err)
		}
		if gone == pid {
			bury()
			if status.Signaled() {
				return exitSignal + int(status.Signal()), nil
			}
			return status.ExitStatus(), nil
		}
	}
}

// bury kills and collects all that are children of this process, until there are none:
// what dies leaves its own children.
func bury() {
	for options := syscall.WNOHANG; ; options = 0 { // mostly nobody is left, and all processes of the machine need not be looked at
		if _, err := syscall.Wait4(-1, nil, options, nil); err != nil && err != syscall.EINTR {
			return // no child is left
		}
		for _, pid := range orphansSlowly(nil) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// clearAway removes what the dead shim of home has left in control groups and files, unless
// another one has the home by now: that one did it as it began.
func clearAway(home string) {
	lock, err := takeHome(home)
	if err != nil {
		return // the next shim tries it
	}
	defer lock.Close()
	_ = sandbox.Sweep(home) // the next shim tries it again
}

// rename sets what ps and top call this process, instead of the "exe" of /proc/self/exe.
func rename(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// guarded reports whether this process is a shim that has a guard, and forgets it.
func guarded() bool {
	yes := strings.TrimSpace(os.Getenv(guardedEnv)) != ""
	os.Unsetenv(guardedEnv)
	return yes
}

// keepDescriptors has no task inherit what was open when this process was started.
func keepDescriptors() {
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // an older kernel: what daemons open closes by itself
}
