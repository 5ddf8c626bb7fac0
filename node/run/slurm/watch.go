package slurm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// endsMax bounds the ends that are seen and not looked at yet. Those beyond are found nevertheless.
const endsMax = 1024

// watch has ends in a directory looked at as soon as they are written, where the kernel tells: on a
// network file system it does so of this machine's files only. What it does not tell the keeper
// finds. It returns when ctx is done, or with why it cannot.
func watch(ctx context.Context, dir string, ends chan<- string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("inotify: %w", err)
	}
	file := os.NewFile(uintptr(fd), "inotify")
	defer file.Close()
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("inotify: %s: %w", dir, err)
	}
	defer context.AfterFunc(ctx, func() { file.Close() })()
	buf := make([]byte, 64<<10)
	for {
		n, err := file.Read(buf)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[unix.SizeofInotifyEvent-4:]))
			text, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:min(size, len(b))], []byte{0})
			if name, is := strings.CutSuffix(string(text), ".end"); is {
				select {
				case ends <- name:
				default:
				}
			}
			b = b[min(size, len(b)):]
		}
	}
}
