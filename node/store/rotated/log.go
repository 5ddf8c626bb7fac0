package rotated

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gridnode/internal/atomicfile"
)

// Options of a log.
type Options struct {
	Size   int64                    // bytes of a file, at least; it ends with the line that reaches them
	Files  int                      // that are kept, at least 2
	Number func(line []byte) uint64 // of a line; 0: it is not a line
}

// suffix ends the names of files.
const suffix = ".jsonl"

// lineMax bounds a line.
const lineMax = 1 << 20

// Log appends lines. It is for one goroutine at a time.
type Log struct {
	dir     string
	options Options
	file    *os.File // the newest; nil: none yet, or it has to be opened anew
	size    int64    // of it, all of it whole lines that are on disk
	last    uint64   // number of the last line
	step    func() error
}

// Open opens the log in dir, which it makes if it is not there.
func Open(dir string, options Options) (*Log, error) {
	g := &Log{dir: dir, options: options, step: func() error { return nil }}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := g.resume(); err != nil {
		return nil, fmt.Errorf("open log in %s: %w", dir, err)
	}
	return g, nil
}

// Last returns the number of the last line, 0 if there is none.
func (g *Log) Last() uint64 { return g.last }

// Dir returns where the files are.
func (g *Log) Dir() string { return g.dir }

// name is of the file whose first line has a number.
func name(first uint64) string { return fmt.Sprintf("%020d%s", first, suffix) }

// files returns the numbers of the first lines of the files, oldest first.
func files(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var firsts []uint64
	for _, e := range entries {
		digits, ours := strings.CutSuffix(e.Name(), suffix)
		n, err := strconv.ParseUint(digits, 10, 64)
		if ours && err == nil && e.Name() == name(n) && e.Type().IsRegular() {
			firsts = append(firsts, n)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// resume opens the newest file and cuts off what is not a whole line.
func (g *Log) resume() error {
	firsts, err := files(g.dir)
	if err != nil || len(firsts) == 0 {
		return err
	}
	first := firsts[len(firsts)-1]
	file, err := os.OpenFile(filepath.Join(g.dir, name(first)), os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	size, last, err := g.whole(file)
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if last == 0 {
		last = first - 1 // the lines before are in older files
	}
	g.file, g.size, g.last = file, size, max(g.last, last)
	if len(firsts) > g.options.Files {
		return g.prune() // fewer are wanted than before, or it was killed in the middle of it
	}
	return nil
}

// whole returns how much of a file is whole lines, and the number of the last one. It looks
// at the end of the file only.
func (g *Log) whole(file *os.File) (size int64, last uint64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	end := info.Size()
	var tail []byte // from end on, what is in no whole line is cut off
	for from := end; ; {
		at := bytes.LastIndexByte(tail, '\n') // ends the last line
		begin := -1
		if at >= 0 {
			begin = bytes.LastIndexByte(tail[:at], '\n')
		}
		switch {
		case at >= 0 && (begin >= 0 || from == 0):
			if n := g.options.Number(tail[begin+1 : at]); n > 0 {
				return from + int64(at) + 1, n, nil
			}
			tail = tail[:begin+1] // it was never a line: a crash of the machine left it
			continue
		case from == 0:
			return 0, 0, nil
		case len(tail) > 2*lineMax:
			return 0, 0, fmt.Errorf("%s: the last %d bytes are no lines: move the file away", file.Name(), len(tail))
		}
		more := min(from, 64<<10)
		from -= more
		block := make([]byte, more, more+int64(len(tail)))
		if _, err := io.ReadFull(io.NewSectionReader(file, from, more), block); err != nil {
			return 0, 0, err
		}
		tail = append(block, tail...)
	}
}

// Append writes the lines that are newer than the last one, in order. After an error some
// of them may be there: append all of them again later.
func (g *Log) Append(lines [][]byte) error {
	if g.removed() {
		g.close()
	}
	if g.file == nil {
		if err := g.resume(); err != nil {
			return fmt.Errorf("append to log in %s: %w", g.dir, err)
		}
	}
	for len(lines) > 0 {
		n, err := g.write(lines)
		if err != nil {
			g.close() // what is there is known when it is opened again
			return fmt.Errorf("append to log in %s: %w", g.dir, err)
		}
		lines = lines[n:]
	}
	return nil
}

// removed reports whether somebody has removed the newest file.
func (g *Log) removed() bool {
	if g.file == nil {
		return false
	}
	_, err := os.Stat(g.file.Name())
	return errors.Is(err, os.ErrNotExist)
}

// write writes as many lines as go into one file, and returns how many.
func (g *Log) write(lines [][]byte) (taken int, err error) {
	var text []byte
	last, begin := g.last, g.last+1
	for _, line := range lines {
		n := g.options.Number(line)
		if n == 0 || len(line) >= lineMax || bytes.IndexByte(line, '\n') >= 0 {
			return 0, fmt.Errorf("not a line: %.80q", line)
		}
		taken++
		if n <= last {
			continue // it is there
		}
		if len(text) == 0 {
			begin = n
		}
		text, last = append(append(text, line...), '\n'), n
		if g.size+int64(len(text)) >= g.options.Size {
			break
		}
	}
	if len(text) == 0 {
		return taken, nil
	}
	if g.file == nil || g.size >= g.options.Size {
		if err := g.rotate(begin); err != nil {
			return 0, err
		}
	}
	if err := g.put(text); err != nil {
		return 0, err
	}
	g.size, g.last = g.size+int64(len(text)), last
	return taken, nil
}

// put appends text to the newest file, and to the disk.
func (g *Log) put(text []byte) error {
	if err := g.step(); err != nil {
		_, _ = g.file.WriteAt(text[:len(text)/2], g.size)
		return err
	}
	if _, err := g.file.WriteAt(text, g.size); err != nil {
		return err
	}
	if err := g.step(); err != nil {
		return err
	}
	return g.file.Sync()
}

// rotate begins a new file, and removes those that are too many.
func (g *Log) rotate(first uint64) error {
	g.close()
	if err := g.step(); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(g.dir, name(first)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	g.file, g.size = file, 0
	return g.prune()
}

// prune removes the files that are too many.
func (g *Log) prune() error {
	firsts, err := files(g.dir)
	if err != nil {
		return err
	}
	for _, old := range firsts[:max(len(firsts)-g.options.Files, 0)] {
		if err := g.step(); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(g.dir, name(old))); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return atomicfile.SyncDir(g.dir)
}

func (g *Log) close() {
	if g.file != nil {
		_ = g.file.Close() // it is synced, or of no use
		g.file = nil
	}
}

// Close ends it.
func (g *Log) Close() { g.close() }
