package shim

import (
	"os"
	"syscall"
	"time"

	"gridnode/node/kept"
	"gridnode/node/sandbox"
)

// A task writes into its files directly, through no pipe: that costs nothing, and
// what it wrote survives everybody. So nobody stands in its way when it writes too
// much; its files are cut back to Spec.Log now and then, and at its end (kept.Cut).
// RLIMIT_FSIZE would also limit the results it writes elsewhere.
//
// A file that grows is looked at every outputQuick, one that does not ever less
// often, down to outputSlow. On disk there may be Spec.Log and what a task writes
// in that time.
const (
	outputQuick = 200 * time.Millisecond
	outputSlow  = 2 * time.Second
)

// openOutput opens a file for a task to write to. Append mode makes writes go to
// the end also after the file was cut. It belongs to the account, if there is one, which may
// so open it by its descriptor; nobody else finds it.
func openOutput(path string, account *sandbox.Account) (int, error) {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC|syscall.O_APPEND|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if account != nil {
		if err := syscall.Fchown(fd, int(account.User), int(account.Group)); err != nil {
			syscall.Close(fd)
			return -1, &os.PathError{Op: "chown", Path: path, Err: err}
		}
	}
	return fd, nil
}

// output watches over a task's files.
type output struct {
	paths [2]string
	sizes [2]int64
	bound int64 // of each
	cut   [2]bool
	next  time.Time     // when to look again
	pause time.Duration // between looks
}

func newOutput(spec *Spec, now time.Time) output {
	o := output{paths: [2]string{spec.Stdout, spec.Stderr}, bound: kept.Bound(spec.Log), pause: outputQuick, next: now.Add(outputQuick)}
	if o.paths[0] == o.paths[1] {
		o.paths[1] = ""
	}
	return o
}

// look cuts what is too long and decides when to look again.
func (o *output) look(now time.Time) {
	if now.Before(o.next) {
		return
	}
	if o.trim() {
		o.pause = outputQuick
	} else {
		o.pause = min(2*o.pause, outputSlow)
	}
	o.next = now.Add(o.pause)
}

// trim cuts what is too long and reports whether a file has grown.
func (o *output) trim() (grown bool) {
	for i, path := range o.paths {
		var info syscall.Stat_t
		// Only a regular file is cut: the task may have put something else there.
		if path == "" || syscall.Lstat(path, &info) != nil || info.Mode&syscall.S_IFMT != syscall.S_IFREG {
			continue
		}
		grown = grown || info.Size != o.sizes[i]
		most := o.bound
		if o.cut[i] {
			most += int64(len(kept.Note(o.bound)))
		}
		if info.Size > most && kept.Cut(path, o.bound) == nil {
			o.cut[i] = true
			info.Size = o.bound + int64(len(kept.Note(o.bound)))
		}
		o.sizes[i] = info.Size
	}
	return grown
}
