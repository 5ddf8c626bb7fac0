package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A file whose reads, writes and flushes are those of a volatile disk, by the protocol of FUSE
// (fuse(4), linux/fuse.h): a file system that is one file, mounted over a file.

// Operations that a file needs; others are answered with ENOSYS, which the kernel takes for "never ask again".
const (
	fuseForget      = 2
	fuseGetattr     = 3
	fuseSetattr     = 4
	fuseOpen        = 14
	fuseRead        = 15
	fuseWrite       = 16
	fuseRelease     = 18
	fuseFsync       = 20
	fuseFlush       = 25
	fuseInit        = 26
	fuseInterrupt   = 36
	fuseDestroy     = 38
	fuseBatchForget = 42
)

const (
	fuseWriteMax  = 128 << 10
	fuseHeader    = 40 // of a request
	fuseBigWrites = 1 << 5
	fuseMaxPages  = 1 << 22
)

// diskFile is a volatile disk as a file.
type diskFile struct {
	disk *volatile
	path string
	size int64
	fd   int
	done sync.WaitGroup
}

// mountDisk has the file at path show the disk, until close.
func mountDisk(path string, disk *volatile, size int64) (*diskFile, error) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=100000,user_id=0,group_id=0", fd)
	if err := unix.Mount("campaign", path, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("mount %s: %w", path, err)
	}
	f := &diskFile{disk: disk, path: path, size: size, fd: fd}
	f.done.Go(f.serve)
	return f, nil
}

func (f *diskFile) close() error {
	err := unix.Unmount(f.path, unix.MNT_DETACH)
	f.done.Wait()
	return errors.Join(err, unix.Close(f.fd))
}

// serve answers until the file is unmounted. Each request has a goroutine: while the power is being cut
// some wait, and others read.
func (f *diskFile) serve() {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		b := make([]byte, fuseWriteMax+4096)
		n, err := unix.Read(f.fd, b)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n < fuseHeader:
			return // ENODEV: it is unmounted
		}
		switch op := binary.LittleEndian.Uint32(b[4:]); op {
		case fuseForget, fuseBatchForget, fuseInterrupt:
		case fuseWrite, fuseFsync:
			all.Go(func() { f.answer(op, b[:n]) })
		default:
			f.answer(op, b[:n])
		}
	}
}

// answer carries out a request and answers it.
func (f *diskFile) answer(op uint32, request []byte) {
	body, errno := f.carryOut(op, request[fuseHeader:])
	reply := make([]byte, 16, 16+len(body))
	binary.LittleEndian.PutUint32(reply, uint32(16+len(body)))
	binary.LittleEndian.PutUint32(reply[4:], uint32(-int32(errno)))
	copy(reply[8:16], request[8:16]) // which request it was
	_, _ = unix.Write(f.fd, append(reply, body...))
}

func (f *diskFile) carryOut(op uint32, in []byte) (out []byte, errno unix.Errno) {
	le := binary.LittleEndian
	switch op {
	case fuseInit:
		out = make([]byte, 64)
		le.PutUint32(out, 7)
		le.PutUint32(out[4:], 31)
		le.PutUint32(out[8:], fuseWriteMax) // read ahead
		le.PutUint32(out[12:], fuseBigWrites|fuseMaxPages)
		le.PutUint16(out[16:], 64) // waiting in the background at most
		le.PutUint16(out[18:], 48)
		le.PutUint32(out[20:], fuseWriteMax)
		le.PutUint32(out[24:], 1)
		le.PutUint16(out[28:], fuseWriteMax/4096)
		return out, 0
	case fuseGetattr, fuseSetattr:
		out = make([]byte, 16+88)
		le.PutUint64(out, 1<<30) // valid for so many seconds
		attr := out[16:]
		le.PutUint64(attr, 1)
		le.PutUint64(attr[8:], uint64(f.size))
		le.PutUint64(attr[16:], uint64(f.size/512))
		le.PutUint32(attr[60:], unix.S_IFREG|0o600)
		le.PutUint32(attr[64:], 1)
		le.PutUint32(attr[80:], 4096)
		return out, 0
	case fuseOpen:
		return make([]byte, 16), 0
	case fuseRead:
		out = make([]byte, le.Uint32(in[16:]))
		n, _ := f.disk.read(out, int64(le.Uint64(in[8:])))
		return out[:n], 0
	case fuseWrite:
		n := le.Uint32(in[16:])
		if err := f.disk.write(in[40:40+n], int64(le.Uint64(in[8:]))); err != nil {
			return nil, unix.EIO
		}
		out = make([]byte, 8)
		le.PutUint32(out, n)
		return out, 0
	case fuseFsync:
		if f.disk.flush() != nil {
			return nil, unix.EIO
		}
		return nil, 0
	case fuseFlush, fuseRelease, fuseDestroy:
		return nil, 0
	}
	return nil, unix.ENOSYS
}
