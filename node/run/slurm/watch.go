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

// watch has ends looked at as soon as they are written, where the kernel tells: on a network file
// system it does so of this machine's files only. What it does not tell the keeper finds.
func (e *Engine) watch() {
	if err := e.watchDir(); err != nil {
		e.log.Debug("ends of jobs are not seen at once", "error", err)
	}
}

func (e *Engine) watchDir() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("inotify: %w", err)
	}
	file := os.NewFile(uintptr(fd), "inotify")
	defer file.Close()
	if _, err := unix.InotifyAddWatch(fd, e.orders.dir, unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("inotify: %s: %w", e.orders.dir, err)
	}
	defer context.AfterFunc(e.ctx, func() { file.Close() })()
	buf := make([]byte, 64<<10)
	for {
		n, err := file.Read(buf)
		if err != nil {
			if e.ctx.Err() != nil {
				return nil
			}
			return err
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[unix.SizeofInotifyEvent-4:]))
			text, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:min(size, len(b))], []byte{0})
			if name, is := strings.CutSuffix(string(text), ".end"); is {
				select {
				case e.ends <- name:
				default:
				}
			}
			b = b[min(size, len(b)):]
		}
	}
}
