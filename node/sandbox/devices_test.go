package sandbox

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// TestDevicesOfATask: a task inside walls can open the devices that it was given, and no
// others that anybody may open.
func TestDevicesOfATask(t *testing.T) {
	const device = "/dev/fuse"
	if f, err := os.OpenFile(device, os.O_RDWR, 0); err != nil {
		t.Skip(err)
	} else {
		f.Close()
	}
	means := Find()
	for _, kind := range []Kind{Bubblewrap, Landlock} {
		t.Run(string(kind), func(t *testing.T) {
			for _, given := range [][]string{nil, {device, "/dev/no-such-device"}} {
				plan, err := means.Plan(kind, &Rule{Walls: true, Devices: given})
				if err != nil {
					t.Skip(err)
				}
				want := "closed\n"
				if given != nil {
					want = "open\n"
				}
				if got := runIn(t, plan, `if (: <>`+device+`) 2>/dev/null; then echo open; else echo closed; fi`); got != want {
					t.Errorf("given %q it is %q", given, got)
				}
			}
		})
	}
}

// runIn runs a script by a plan, and returns what it writes.
func runIn(t *testing.T, plan *Plan, script string) string {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	l := Open(t.TempDir())
	defer l.Close()
	out := int(write.Fd())
	r, err := l.Start(plan, &Process{
		Path: "/bin/sh", Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: t.TempDir(), Files: [3]int{int(null.Fd()), out, out},
	})
	write.Close()
	if err != nil {
		t.Skipf("no process can be started here: %v", err)
	}
	defer r.Release()
	text, _ := io.ReadAll(read) // what is missing is not what the test wants
	var status syscall.WaitStatus
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(r.PID, &status, 0, nil)
	}
	return string(text)
}
