package kept

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

// Bounds of a log, in bytes.
const (
	Default = 16 << 20
	Least   = 4 << 10
	Highest = 1 << 30
)

// The note begins with a line feed, so that it is a line of its own.
const (
	noteBegin = "\n[gridnode: cut: of this stream the first "
	noteEnd   = " bytes are kept (files.log)]\n"
	noteMax   = 128
)

// Bound returns what a bound means: 0 stands for Default.
func Bound(bound int64) int64 {
	if bound == 0 {
		return Default
	}
	return bound
}

// Most returns how many bytes a log takes at most, with its note.
func Most(bound int64) int64 { return bound + noteMax }

// Note returns what stands at the end of a log that was cut.
func Note(bound int64) string { return noteBegin + strconv.FormatInt(bound, 10) + noteEnd }

// errNoLog is returned by Cut for what is no plain file: who writes a log may
// have put something else in its place.
var errNoLog = errors.New("it is no log")

// Cut makes a log no longer than its bound and has it end with the note. One that ends with its
// note there already stays as it is.
func Cut(path string, bound int64) error {
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", path, errors.Join(errNoLog, err))
	}
	// Whoever writes goes on at the end, wherever that is: the note stands where the bound is,
	// and what comes behind it goes the next time.
	if err := file.Truncate(bound); err != nil {
		return err
	}
	if _, err := file.WriteAt([]byte(Note(bound)), bound); err != nil {
		return err
	}
	return file.Truncate(bound + int64(len(Note(bound))))
}

// At returns the bound at which a log was cut; 0: it was not, or is not there.
func At(path string) int64 {
	file, err := open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	from := max(info.Size()-noteMax, 0)
	end := make([]byte, info.Size()-from)
	if _, err := file.ReadAt(end, from); err != nil && err != io.EOF {
		return 0
	}
	at := bytes.LastIndex(end, []byte(noteBegin))
	if at < 0 {
		return 0
	}
	// A job that writes such a line has to write it where it would be true.
	bound := from + int64(at)
	if string(end[at:]) != Note(bound) {
		return 0
	}
	return bound
}
