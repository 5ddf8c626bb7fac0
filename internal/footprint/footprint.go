// Package footprint keeps the memory of a process that runs for long to what it uses.
//
// Coming up touches most of a large program: every package is initialized, and with each page that
// is touched the kernel maps those around it. They stay mapped, and count as resident, though a
// daemon at rest needs the smaller part. Trim has the kernel unmap the pages of the program that
// are as they are in its file. Nothing is lost: what is used next is mapped again, out of the page
// cache, by a fault of about a microsecond.
package footprint

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// period is from one Trim to the next: what was not used for so long is not resident.
const period = time.Minute

// Keep trims the process once a minute until ctx ends. The first time, when it has come up, it
// gives back the heap's free pages as well. It returns an error at once if the system does not let
// it.
func Keep(ctx context.Context) error {
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if first {
			debug.FreeOSMemory()
		}
		if err := Trim(); err != nil {
			return err
		}
	}
}

// Trim unmaps the pages of the program that nothing is written to. They are mapped again when they
// are used. May be called at any time: the program's file, unlike a library's, stays where it is.
func Trim() error {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("find what is mapped: %w", err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find what is mapped: %w", err)
	}
	maps, err := clean(bytes.NewReader(text), program)
	if err != nil {
		return fmt.Errorf("find what is mapped: %w", err)
	}
	for _, m := range maps {
		if err := m.advise(unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("unmap %x-%x: %w", m.begin, m.end, err)
		}
	}
	return nil
}

// mapping is the addresses [begin, end) of this process.
type mapping struct{ begin, end uintptr }

func (m mapping) advise(advice int) error {
	if _, _, e := syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, uintptr(advice)); e != 0 {
		return e
	}
	return nil
}

// clean returns the private mappings of a program, as smaps has them, that may not be written and of
// which no page is the process's own. A page of its own, of a program that is relocated when it
// starts or one with a debugger's breakpoint, would be lost.
func clean(smaps io.Reader, program string) ([]mapping, error) {
	var found []mapping
	var last mapping
	var candidate bool
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) < 2:
		case words[0] == "Anonymous:":
			if candidate && words[1] == "0" {
				found = append(found, last)
			}
			candidate = false
		case !strings.HasSuffix(words[0], ":"): // begin-end permissions offset device inode path
			candidate = strings.HasSuffix(lines.Text(), " "+program) && !strings.Contains(words[1], "w") && strings.HasSuffix(words[1], "p")
			if _, err := fmt.Sscanf(words[0], "%x-%x", &last.begin, &last.end); err != nil {
				return nil, err
			}
		}
	}
	return found, lines.Err()
}
