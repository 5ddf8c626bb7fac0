package shim

import (
	"fmt"
	"os"
	"path/filepath"
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
	paths  [2]string // where they are
	late   [2]string // where they are to be, of those that lie among the spares still
	spares *spares
	sizes  [2]int64
	bound  int64 // of each
	cut    [2]bool
	lost   bool          // what has become of one is not known
	next   time.Time     // when to look again
	pause  time.Duration // between looks
}

func newOutput(spec *Spec, now time.Time) *output {
	o := &output{paths: [2]string{spec.Stdout, spec.Stderr}, bound: kept.Bound(spec.Log), pause: outputQuick, next: now.Add(outputQuick)}
	if o.paths[0] == o.paths[1] {
		o.paths[1] = ""
	}
	return o
}

// open opens the i-th file for the task.
func (o *output) open(i int, account *sandbox.Account) (fd int, err error) {
	if o.spares == nil {
		return openOutput(o.paths[i], account)
	}
	o.late[i] = o.paths[i]
	if fd, o.paths[i], err = o.spares.open(); err != nil {
		o.late[i], o.paths[i] = "", o.late[i]
		return -1, err
	}
	o.spares.users[o.paths[i]] = o
	return fd, nil
}

// name gives the i-th file the name that it is to have. Standard output is there before the
// other one is.
func (o *output) name(i int) {
	if i > 0 {
		o.name(0)
	}
	if o.late[i] == "" {
		return
	}
	delete(o.spares.users, o.paths[i])
	err := os.Rename(o.paths[i], o.late[i])
	if os.IsNotExist(err) {
		if err = os.MkdirAll(filepath.Dir(o.late[i]), 0o700); err == nil {
			err = os.Rename(o.paths[i], o.late[i])
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "output of a task stays where nobody looks for it: %v\n", err)
		o.lost = true
	}
	o.paths[i], o.late[i] = o.late[i], ""
}

// end has the last look, and reports whether nothing was written. Nobody writes any more if
// gone is set.
func (o *output) end(gone bool) (silent bool) {
	o.trim()
	silent = !o.lost && o.sizes == [2]int64{}
	switch {
	case !gone: // it may write still
		o.name(1)
	case !silent && o.late[0] != "":
		o.name(0)
	}
	for i, late := range o.late {
		if late != "" {
			o.spares.give(o.paths[i])
			o.paths[i] = ""
		}
	}
	return silent && gone
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

// trim names what was written to, cuts what is too long, and reports whether a file has grown.
func (o *output) trim() (grown bool) {
	for i, path := range o.paths {
		var info syscall.Stat_t
		if path == "" {
			continue
		}
		// Only a regular file is cut: the task may have put something else there.
		if syscall.Lstat(path, &info) != nil || info.Mode&syscall.S_IFMT != syscall.S_IFREG {
			o.lost = true
			continue
		}
		if info.Size > 0 && o.late[i] != "" {
			o.name(i)
			path = o.paths[i]
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
