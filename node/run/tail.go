package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrOutputGone is returned for what is kept nowhere any more: the job ended too long
// ago, never ran, or its site lost it.
var ErrOutputGone = errors.New("the job's output is not kept any more")

// Tail reads the file of one output of a task of this site, which need not exist yet.
type Tail struct {
	Base   string // path of the task's files
	Stream Stream
	Offset int64 // where to begin

	// Over reports whether the task writes no more. nil: what is there now is all.
	Over func() bool
	// Pause waits before the file is looked at again, or returns why reading ends.
	Pause func() error

	file *os.File // nil before the first Read that found it
}

// Open opens the file; Read does so, too, and takes a missing one for an empty one.
func (t *Tail) Open() error {
	if t.file != nil {
		return nil
	}
	file, err := os.Open(t.Base + t.Stream.Suffix())
	if err != nil {
		return err
	}
	if _, err := file.Seek(t.Offset, io.SeekStart); err != nil {
		file.Close()
		return err
	}
	t.file = file
	return nil
}

// Read implements io.Reader. It returns io.EOF once the task is over and all is read.
func (t *Tail) Read(b []byte) (n int, err error) {
	for {
		over := t.Over == nil || t.Over() // asked first: what was written before the end is read then
		if err = t.Open(); err == nil {
			n, err = t.file.Read(b)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = io.EOF
		}
		if n > 0 || err != io.EOF || over {
			return n, err
		}
		if err := t.Pause(); err != nil {
			return 0, err
		}
	}
}

// Close closes the file.
func (t *Tail) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// HasOutput reports whether there is output of the task whose files begin with base.
func HasOutput(base string) bool { return there(base + Stdout.Suffix()) }

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
