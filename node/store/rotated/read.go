package rotated

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Read yields the lines of the log in dir, without their line breaks, oldest first, until
// yield returns false. A line belongs to yield until it returns. What is appended or removed
// meanwhile may be missing, and nothing else is.
func Read(dir string, yield func(line []byte) bool) error {
	firsts, err := files(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, first := range firsts {
		if err != nil {
			break
		}
		var more bool
		if more, err = readFile(filepath.Join(dir, name(first)), yield); !more && err == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}

func readFile(path string, yield func([]byte) bool) (more bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil // it was the oldest
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	for lines := bufio.NewReaderSize(file, lineMax); ; {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return true, nil // and what is not whole yet is not a line
		case err != nil:
			return false, fmt.Errorf("%s: %w", path, err)
		case !yield(line[:len(line)-1]):
			return false, nil
		}
	}
}
