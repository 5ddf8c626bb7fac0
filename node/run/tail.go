package run

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"gridnode/grid"
	"gridnode/node/kept"
)

// ErrOutputGone is returned for what is kept nowhere any more: the job ended too long
// ago, never ran, or its site lost it.
var ErrOutputGone = errors.New("the job's output is not kept any more")

// Tail reads the file of one output of a task of this site, which need not exist yet.
type Tail struct {
	Base   string // path of the task's files
	Stream Stream
	Offset int64 // where to begin; then, where it is

	Bound int64 // bytes kept of it (package kept): what lies behind them may go until the task is over

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
			n, err = t.read(b, over)
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

// read reads what stays.
func (t *Tail) read(b []byte, over bool) (n int, err error) {
	if bound := kept.Bound(t.Bound); !over {
		b = b[:min(int64(len(b)), max(bound-t.Offset, 0))]
		if len(b) == 0 {
			return 0, io.EOF
		}
	}
	n, err = t.file.Read(b)
	t.Offset += int64(n)
	return n, err
}

// Close closes the file.
func (t *Tail) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// Size returns how long the outputs are together of the task whose files begin with base.
func Size(base string) (size int64) {
	for stream := Stdout; stream <= Stderr; stream++ {
		if info, err := os.Lstat(base + stream.Suffix()); err == nil {
			size += info.Size()
		}
	}
	return size
}

// Outputs returns what there is of the outputs of the task whose files begin with base. Of what
// cannot be read nothing is known.
func Outputs(base string) (outputs [2]grid.Kept) {
	for i := range outputs {
		if output, err := kept.Read(base+Stream(i+1).Suffix(), -1); err == nil {
			outputs[i] = output
		}
	}
	return outputs
}

// What is returned at the end of an output that is not the one that the job's end speaks of: its file
// was damaged, or its disk lost some of it.
var (
	ErrOutputShort   = errors.New("output is missing")
	ErrOutputChanged = errors.New("output is damaged")
)

// HasOutput reports whether there is output of the task whose files begin with base.
func HasOutput(base string) bool { return there(base + Stdout.Suffix()) }

// Cut returns which outputs of the task whose files begin with base are kept in part only.
func Cut(base string) (streams []Stream) {
	for stream := Stdout; stream <= Stderr; stream++ {
		if kept.At(base+stream.Suffix()) > 0 {
			streams = append(streams, stream)
		}
	}
	return streams
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
