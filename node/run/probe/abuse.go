package probe

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gridnode/node/kept"
)

// Every attempt has an end of its own, should no limit hold it.
const (
	greedMemory    = 1 << 30
	greedShares    = 8 // processes that share it out
	greedProcesses = 400
	greedDisk      = 64 << 20
	greedFiles     = 3 * 16 << 20 / 4096 // three times what its disk has room for
	greedOutput    = 128 << 20
	greedTime      = 20 * time.Second
)

// childName begins the argument of a process that a probe starts.
const childName = "child"

// child is a process that a probe has started.
func child(what string) int {
	what, rest, _ := strings.Cut(what, ":")
	switch what {
	case "memory":
		if hoard(greedMemory/greedShares) == nil {
			fmt.Print("x") // its parent counts them
		}
		<-time.After(greedTime)
	case "leave": // its own child has no parent that anybody knows
		if again("stay:"+rest) != nil {
			return 1
		}
	case "stay":
		signal.Ignore()
		ignoreAll()
		<-time.After(greedTime)
	}
	return 0
}

// again starts this program as a child, in a session of its own and without environment.
func again(what string) error {
	cmd := exec.Command(os.Args[0], Verb, childName+":"+what)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

func ignoreAll() {
	for sig := syscall.Signal(1); sig < 32; sig++ {
		if sig != syscall.SIGKILL && sig != syscall.SIGSTOP && sig != syscall.SIGCHLD {
			signal.Ignore(sig)
		}
	}
}

// hoard takes memory and keeps it.
func hoard(size int) error {
	const step = 16 << 20
	var all [][]byte
	for have := 0; have < size; have += step {
		b, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	_ = all
	return nil
}

// fill writes files of 4 MiB until nothing more fits, and returns how much did.
func fill(dir string, most int64) (sum int64) {
	signal.Ignore(syscall.SIGXFSZ)
	block := make([]byte, 1<<20)
	for i := 0; sum < most; i++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("fill", i)))
		if err != nil {
			return sum
		}
		for range 4 {
			n, err := f.Write(block)
			sum += int64(n)
			if err != nil {
				f.Close()
				return sum
			}
		}
		f.Close()
	}
	return sum
}

var abuseProbes = []probe{
	{name: "memory", kind: abuse, does: "use more memory than it has", try: func(*baits) error {
		if err := hoard(greedMemory); err == nil {
			<-time.After(time.Second) // for who looks now and then
			return escaped("took %d bytes", greedMemory)
		}
		return nil
	}, after: endsOf("out of memory")},
	{name: "memory-shared-out", kind: abuse, does: "use more memory in many processes", try: func(*baits) error {
		took, theirs, err := os.Pipe()
		if err != nil {
			return err
		}
		for range greedShares {
			cmd := exec.Command(os.Args[0], Verb, childName+":memory")
			cmd.Stdout = theirs
			if err := cmd.Start(); err != nil {
				return nil // there may not be so many
			}
		}
		_ = took.SetReadDeadline(time.Now().Add(greedTime))
		if _, err := io.ReadFull(took, make([]byte, greedShares)); err == nil {
			<-time.After(time.Second) // for who looks now and then
			return escaped("took %d bytes", greedMemory)
		}
		return nil
	}, after: endsOf("out of memory")},
	{name: "processes-many", kind: abuse, does: "start processes without end", try: func(b *baits) error {
		for i := range greedProcesses {
			if err := exec.Command("/bin/sleep", "20").Start(); err != nil {
				if int64(i) > b.Limits.Processes {
					return escaped("%d processes", i)
				}
				return nil
			}
		}
		<-time.After(time.Second)
		return escaped("%d processes", greedProcesses)
	}, after: endsOf("processes")},
	{name: "leave", kind: abuse, does: "leave a process behind (setsid, double fork, no environment, deaf to signals)", try: func(b *baits) error {
		if err := again("leave:" + b.Text); err != nil {
			return fmt.Errorf("cannot start a process: %w", err)
		}
		<-time.After(100 * time.Millisecond)
		return nil
	}, after: func(r *runner, _ *outcome) string { return r.left() }},
	{name: "disk", kind: abuse, does: "fill the disk", try: func(b *baits) error {
		if sum := fill(b.Folder, greedDisk); sum > b.Limits.Disk {
			<-time.After(2 * time.Second) // for who looks now and then
			return escaped("wrote %d bytes", sum)
		}
		return nil
	}, after: endsOf("disk")},
	{name: "disk-sparse", kind: abuse, does: "make a file of a terabyte", try: func(b *baits) error {
		signal.Ignore(syscall.SIGXFSZ)
		f, err := os.Create(filepath.Join(b.Folder, "sparse"))
		if err != nil {
			return err
		}
		defer f.Close()
		if f.Truncate(1<<40) == nil {
			return escaped("made it")
		}
		return nil
	}},
	{name: "disk-shared", kind: abuse, does: "fill the disk that is in memory (/dev/shm)", try: func(b *baits) error {
		if sum := fill("/dev/shm", greedDisk); sum > b.Limits.Disk {
			return escaped("wrote %d bytes", sum)
		}
		return nil
	}},
	{name: "disk-files", kind: abuse, does: "make empty files without end", try: func(b *baits) error {
		for i := range greedFiles {
			for _, dir := range []string{b.Folder, "/dev/shm"} {
				_ = os.WriteFile(filepath.Join(dir, fmt.Sprint("empty", i)), nil, 0o600) // there may be no room, or no such directory
			}
		}
		<-time.After(2 * time.Second) // for who looks now and then
		entries, _ := os.ReadDir(b.Folder)
		shared, _ := os.ReadDir("/dev/shm")
		if n := len(entries) + len(shared); n >= greedFiles {
			return escaped("made %d files", n)
		}
		return nil
	}, after: endsOf("disk")},
	{name: "output", kind: abuse, does: "write output without end", try: func(b *baits) error {
		signal.Ignore(syscall.SIGXFSZ)
		block := []byte(strings.Repeat("x", 1<<20))
		for range greedOutput / len(block) {
			if _, err := os.Stderr.Write(block); err != nil {
				return nil
			}
		}
		return nil // how much is kept is seen outside
	}, after: func(r *runner, o *outcome) string {
		if o.errors > kept.Most(kept.Default) {
			return fmt.Sprintf("%d bytes of output lie on the disk", o.errors)
		}
		return ""
	}},
	{name: "descriptors-many", kind: abuse, does: "hold files open without end", try: func(b *baits) error {
		for n := int64(0); n <= b.Limits.Files; n++ {
			if _, err := unix.Open(os.DevNull, unix.O_RDONLY, 0); err != nil {
				return nil
			}
		}
		return escaped("more than %d files", b.Limits.Files)
	}},
	{name: "limits-raise", kind: abuse, does: "raise its own limits", try: func(b *baits) error {
		var now unix.Rlimit
		for _, what := range []int{unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE, unix.RLIMIT_CORE} {
			if err := unix.Getrlimit(what, &now); err != nil {
				return err
			}
			if now.Max == unix.RLIM_INFINITY || unix.Setrlimit(what, &unix.Rlimit{Cur: now.Max + 1, Max: now.Max + 1}) == nil {
				return escaped("limit %d is %d", what, now.Max)
			}
		}
		return nil
	}},
	{name: "deaf", kind: abuse, does: "ignore every signal at its time limit", try: func(*baits) error {
		ignoreAll()
		<-time.After(greedTime)
		return escaped("still runs after %v", greedTime)
	}, after: endsOf("limit"), span: 500 * time.Millisecond},
	{name: "processors", kind: abuse, does: "compute on more processors than it has", try: func(*baits) error {
		stop := time.After(600 * time.Millisecond)
		for range 3 {
			go func() {
				for n := uint64(1); n != 0; n += 2 { // without end
				}
			}()
		}
		<-stop
		return nil
	}, skip: func(r *runner) string {
		if !r.config.Means.Groups.Has("cpu") {
			return "without control groups of the cpu processors are not limited"
		}
		return ""
	}, after: func(r *runner, o *outcome) string {
		used, span := o.ended.User+o.ended.System, o.ended.End-o.ended.Start
		if limit := span * 3 / 2; used > limit {
			return fmt.Sprintf("it computed for %v in %v", used, span)
		}
		return ""
	}},
}

const abuse = "abuse"

// endsOf returns a look at a job that may have been ended: only for that reason.
func endsOf(word string) func(*runner, *outcome) string {
	return func(_ *runner, o *outcome) string {
		if strings.Contains(o.ended.Reason, word) {
			o.stopped = true
			return ""
		}
		return ""
	}
}
