package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"syscall"
)

// RecordMax bounds one record.
const RecordMax = 16 << 20

// mark begins every record, so that whole records can be found behind damage.
const mark = 0x316c6a67 // "gjl1"

const frameSize = 12 // mark, length, checksum

// castagnoli is made when it is first needed: every program that may become a shim would wait
// for it otherwise.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// ErrFailed is wrapped by what Append returns after an earlier error of its own:
// part of a record may be in the file. The caller must open the journal anew.
var ErrFailed = errors.New("journal failed earlier")

// Journal is a file being appended to. Sync may run while another goroutine
// appends; it then covers what was appended before it was called. Nothing else
// may be called concurrently.
type Journal struct {
	file   *os.File
	size   int64 // end of the last record
	end    int64 // end of the zeros ahead, at least size
	ahead  int64 // how many zeros to write at a time; 0 for none
	buf    []byte
	failed error
}

// Create makes a new, empty journal, replacing whatever is at path. Ahead is how
// many bytes of zeros to write ahead at a time; 0 for none. The caller syncs the
// directory (SyncDir) when the file's existence must be durable.
func Create(path string, ahead int64) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	return &Journal{file: file, ahead: ahead}, nil
}

// Open opens the journal at path, hands its records to each (offset and content,
// valid during the call only) and cuts a torn tail off. It returns an error if the
// file cannot be read, if each returns one, or, with Tail.Damaged set, if whole
// records follow a broken place.
func Open(path string, ahead int64, each func(offset int64, record []byte) error) (*Journal, Tail, error) {
	tail, err := Read(path, each)
	if err != nil {
		return nil, tail, err
	}
	if tail.Damaged {
		return nil, tail, fmt.Errorf("journal %s is damaged at byte %d: whole records follow", path, tail.Size)
	}
	j, err := Continue(path, tail.Size, ahead)
	return j, tail, err
}

// Continue opens the journal at path to append behind its first size bytes, which
// are whole records as Read counted them, and cuts off what is behind.
func Continue(path string, size, ahead int64) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := file.Truncate(size); err != nil {
		file.Close()
		return nil, fmt.Errorf("cut torn tail of journal: %w", err)
	}
	return &Journal{file: file, size: size, end: size, ahead: ahead}, nil
}

// Append writes record behind the others and returns its offset. The record is
// in the hands of the kernel then, not on disk.
func (j *Journal) Append(record []byte) (offset int64, err error) {
	if j.failed != nil {
		return 0, fmt.Errorf("%w: %w", ErrFailed, j.failed)
	}
	if len(record) > RecordMax {
		return 0, fmt.Errorf("journal record of %d bytes, at most %d", len(record), RecordMax)
	}
	if err := j.extend(int64(frameSize + len(record))); err != nil {
		return 0, err
	}
	j.buf = appendFrame(j.buf[:0], j.size, record)
	if _, err := j.file.WriteAt(j.buf, j.size); err != nil {
		return 0, j.fail(fmt.Errorf("append to journal: %w", err))
	}
	offset = j.size
	j.size += int64(len(j.buf))
	if cap(j.buf) > 1<<20 {
		j.buf = nil // one huge batch shall not hold its memory for ever
	}
	return offset, nil
}

// extend writes zeros ahead if the next size bytes would grow the file.
func (j *Journal) extend(size int64) error {
	if j.ahead == 0 || j.size+size <= j.end {
		return nil
	}
	if _, err := j.file.WriteAt(make([]byte, max(j.ahead, size)), j.size); err != nil {
		return j.fail(fmt.Errorf("extend journal: %w", err))
	}
	j.end = j.size + max(j.ahead, size)
	return nil
}

func (j *Journal) fail(err error) error {
	j.failed = err
	return err
}

// Sync makes every record appended so far durable. After an error nothing is
// known about what is on disk: the caller must not try again, but stop.
func (j *Journal) Sync() error {
	if err := syscall.Fdatasync(int(j.file.Fd())); err != nil {
		return fmt.Errorf("sync journal %s: %w", j.file.Name(), err)
	}
	return nil
}

// Size returns where the next record will go.
func (j *Journal) Size() int64 { return j.size }

// Close drops the zeros ahead and closes the file. It does not sync.
func (j *Journal) Close() error {
	err := j.file.Truncate(j.size)
	if closed := j.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

func appendFrame(dst []byte, offset int64, record []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, mark)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(record)))
	dst = binary.LittleEndian.AppendUint32(dst, checksum(offset, record))
	return append(dst, record...)
}

// checksum covers offset and length too: a record copied to another place, or one
// that a user hid in the content of his own, checks nowhere else.
func checksum(offset int64, record []byte) uint32 {
	var place [12]byte
	binary.LittleEndian.PutUint64(place[:], uint64(offset))
	binary.LittleEndian.PutUint32(place[8:], uint32(len(record)))
	return crc32.Update(crc32.Checksum(place[:], castagnoli()), castagnoli(), record)
}
