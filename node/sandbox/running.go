package sandbox

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Running is a task that was started.
type Running struct {
	PID int // of the first process, its process group and its session

	plan     *Plan
	seat     *seat
	launcher *Launcher
	dir      string
	user     uint32    // whom it runs as; 0: this process's account
	net      *network  // it is alone in; nil: another one
	next     time.Time // when to look at its folder again
	pause    time.Duration
}

// Outer reports whether the first process is not the task's own but bwrap: when that ends,
// so do all others, at once.
func (r *Running) Outer() bool { return r.plan.Kind == Bubblewrap }

// Ask sends SIGTERM to the processes of the task, but not to bwrap.
func (r *Running) Ask() {
	for _, pid := range r.Processes() {
		if pid != r.PID || !r.Outer() {
			_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// Kill kills what can be found of the task and reports whether there was something.
func (r *Running) Kill() (some bool) {
	if r.seat.group != nil {
		return r.seat.group.Kill()
	}
	return false
}

// Processes returns the task's processes, as far as they are found.
func (r *Running) Processes() []int {
	if r.seat.group != nil {
		return r.seat.group.Processes()
	}
	return descendants([]int{r.PID})
}

// Empty reports whether nothing is left in the task's control group, if it has one.
func (r *Running) Empty() bool { return r.seat.group == nil || len(r.seat.group.Processes()) == 0 }

// Release gives up the thread and the group. Nothing of the task may be left.
func (r *Running) Release() {
	r.seat.leave()
	if r.net != nil {
		r.launcher.nets = append(r.launcher.nets, r.net.fd)
	}
}

// Reason says which limit the task has broken, empty for none. It is asked when the task
// has ended: what the kernel refused is no reason before.
func (r *Running) Reason(code int) string {
	limits := &r.plan.Limits
	g := r.seat.group
	switch {
	case g != nil && g.Killed():
		return fmt.Sprintf("out of memory: it used more than its %s", r.memoryText())
	case r.plan.Module > 0 && code == 128+int(syscall.SIGKILL): // said by what runs it
		return fmt.Sprintf("out of memory: the module wanted more than its %s", bytesText(r.plan.Module))
	case code == 128+int(syscall.SIGXFSZ):
		return fmt.Sprintf("disk: a file of it reached %s", bytesText(max(limits.Disk, r.diskOf())))
	case code != 0 && g != nil && g.Refused():
		return fmt.Sprintf("it wanted more than its %d processes", limits.Processes)
	}
	return ""
}

// memoryText says how much memory the task has.
func (r *Running) memoryText() string {
	text := bytesText(r.plan.Limits.Memory)
	if r.plan.HasFolder() && !r.plan.Kept {
		text += ", files in " + Folder + " included"
	}
	return text
}

func (r *Running) diskOf() int64 {
	if r.plan.Walled() {
		return r.plan.disk()
	}
	return 0
}

// Between two looks at a task's folder.
const (
	folderQuick = 200 * time.Millisecond
	folderSlow  = 5 * time.Second
)

// Check returns which limit the task has broken, empty for none. others are processes of
// it that have lost their parents.
func (r *Running) Check(now time.Time, others []int) string {
	limits := &r.plan.Limits
	if g := r.seat.group; g != nil && g.Killed() {
		return r.Reason(0)
	}
	memory := limits.Memory > 0 && !r.launcher.Grouped("memory")
	processes := limits.Processes > 0 && !r.launcher.Grouped("pids")
	if memory || processes {
		list := descendants(append([]int{r.PID}, others...))
		if n := int64(len(list)); processes && n > limits.Processes {
			return fmt.Sprintf("it has %d processes, more than its %d", n, limits.Processes)
		}
		if sum := resident(list); memory && sum > limits.Memory {
			return fmt.Sprintf("out of memory: it uses %s, more than its %s", bytesText(sum), bytesText(limits.Memory))
		}
	}
	if r.Outer() && r.crowded() {
		return fmt.Sprintf("disk: it has too many files: each counts %s, or more, of its %s", bytesText(inodesPer), bytesText(r.plan.disk()))
	}
	if limits.Disk > 0 && (r.plan.Kept || !r.plan.HasFolder()) && r.plan.Walled() && !now.Before(r.next) {
		size := folderSize(r.dir, limits.Disk)
		if size > limits.Disk {
			return fmt.Sprintf("disk: its files take more than its %s", bytesText(limits.Disk))
		}
		r.pause = min(max(2*r.pause, folderQuick), folderSlow)
		if size > limits.Disk/4 {
			r.pause = folderQuick
		}
		r.next = now.Add(r.pause)
	}
	return ""
}

// crowded reports whether there are more files in a folder in memory than may be: bwrap bounds
// the size of one, which says nothing of files that are empty.
func (r *Running) crowded() bool {
	folders := map[string]int64{"/dev/shm": min(r.plan.disk(), sharedMemory)}
	if !r.plan.Kept {
		folders[Folder] = r.plan.disk()
	}
	for _, pid := range r.Processes() {
		seen := false
		for dir, size := range folders {
			inside := filepath.Join("/proc", strconv.Itoa(pid), "root", dir)
			if sameDevice(inside, dir) {
				continue // it is not inside yet, or is bwrap
			}
			var info unix.Statfs_t
			if unix.Statfs(inside, &info) != nil {
				continue // it has ended
			}
			seen = true
			if int64(info.Files-info.Ffree) > max(size/inodesPer, inodesLeast) {
				return true
			}
		}
		if seen {
			return false // all others see the same
		}
	}
	return false
}

// sameDevice reports whether two paths are on one file system, or cannot be seen.
func sameDevice(a, b string) bool {
	var x, y unix.Stat_t
	return unix.Stat(a, &x) != nil || unix.Stat(b, &y) == nil && x.Dev == y.Dev
}

// descendants returns processes and what came from them.
func descendants(list []int) []int {
	for i := 0; i < len(list); i++ {
		dir := "/proc/" + strconv.Itoa(list[i]) + "/task"
		threads, _ := os.ReadDir(dir) // none: it has ended
		for _, thread := range threads {
			text, _ := os.ReadFile(filepath.Join(dir, thread.Name(), "children"))
			for field := range bytes.FieldsSeq(text) {
				if pid, err := strconv.Atoi(string(field)); err == nil {
					list = append(list, pid)
				}
			}
		}
	}
	return list
}

// resident returns the memory that processes take, what they share counted for each.
func resident(pids []int) (sum int64) {
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		if err != nil {
			continue
		}
		if fields := bytes.Fields(text); len(fields) > 2 {
			all, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
			sum += max(all-shared, 0) * int64(os.Getpagesize())
		}
	}
	return sum
}

// ofAccount returns how many processes and threads an account has.
func ofAccount(uid int) (n int64) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var info syscall.Stat_t
		dir := filepath.Join("/proc", e.Name(), "task")
		if _, err := strconv.Atoi(e.Name()); err != nil || syscall.Stat(dir, &info) != nil || int(info.Uid) != uid {
			continue
		}
		n += max(int64(info.Nlink)-2, 1)
	}
	return n
}

// folderSize adds up what lies in a directory, and stops beyond most.
func folderSize(dir string, most int64) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it has just been removed
		}
		if info, err := d.Info(); err == nil {
			sum += max(blocks(info), inodesPer)
		}
		if sum > most {
			return fs.SkipAll
		}
		return nil
	})
	return sum
}

// blocks returns what a file takes on disk.
func blocks(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<28) == 0:
		return strconv.FormatFloat(float64(n)/(1<<30), 'f', -1, 64) + " GiB"
	case n >= 1<<20:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n>>10, 10) + " KiB"
}
