package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Tail says what was found behind the last whole record.
type Tail struct {
	Records int
	Size    int64  // where the last whole record ends
	Torn    int64  // bytes behind it up to the last that is not zero
	Damaged bool   // whole records follow a broken place: not the work of a crash
	Last    []byte // the last of these
}

// Read hands the records of the journal at path to each, oldest first: the offset
// and the content, which is valid during the call only. It changes nothing. It
// returns an error if the file cannot be read or each returns one; a torn or
// damaged tail is no error.
func Read(path string, each func(offset int64, record []byte) error) (Tail, error) {
	file, err := os.Open(path)
	if err != nil {
		return Tail{}, fmt.Errorf("read journal: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Tail{}, fmt.Errorf("read journal: %w", err)
	}
	tail, err := walk(io.NewSectionReader(file, 0, info.Size()), each)
	if err != nil {
		return tail, fmt.Errorf("read journal %s: %w", path, err)
	}
	return tail, nil
}

// readAhead is how many bytes of a journal are read at once.
const readAhead = 1 << 18

// walk is Read of what a file holds.
func walk(content *io.SectionReader, each func(offset int64, record []byte) error) (Tail, error) {
	var tail Tail
	var record []byte
	var err error
	r := bufio.NewReaderSize(content, int(min(content.Size(), readAhead)))
	for {
		record, err = readFrame(r, tail.Size, content.Size()-tail.Size, record)
		if err == errNoFrame {
			return tail, tail.search(content)
		}
		if err != nil {
			return tail, err
		}
		if err := each(tail.Size, record); err != nil {
			return tail, fmt.Errorf("at byte %d: %w", tail.Size, err)
		}
		tail.Records++
		tail.Size += int64(frameSize + len(record))
	}
}

// ReadAt returns the record at an offset that Append returned or Read reported.
func ReadAt(file io.ReaderAt, offset int64) ([]byte, error) {
	const most = frameSize + RecordMax
	record, err := readFrame(io.NewSectionReader(file, offset, most), offset, most, nil)
	if err != nil {
		return nil, fmt.Errorf("journal record at byte %d: %w", offset, err)
	}
	return record, nil
}

var errNoFrame = errors.New("no whole record")

// readFrame returns the record that r, with no more than so many bytes left, has at offset, in
// buf grown as needed, or errNoFrame.
func readFrame(r io.Reader, offset, left int64, buf []byte) ([]byte, error) {
	var head [frameSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return buf, noFrame(err)
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head[:]) != mark || size > RecordMax || int64(size) > left-frameSize {
		return buf, errNoFrame
	}
	if cap(buf) < int(size) {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(r, buf); err != nil {
		return buf, noFrame(err)
	}
	if checksum(offset, buf) != binary.LittleEndian.Uint32(head[8:]) {
		return buf, errNoFrame
	}
	return buf, nil
}

func noFrame(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errNoFrame
	}
	return err
}

// search looks through what follows the last whole record.
func (t *Tail) search(content *io.SectionReader) error {
	behind := make([]byte, content.Size()-t.Size)
	n, err := content.ReadAt(behind, t.Size)
	if err != nil && err != io.EOF {
		return err
	}
	behind = behind[:n]
	rest := bytes.TrimRight(behind, "\x00")
	t.Torn = int64(len(rest))
	wanted := binary.LittleEndian.AppendUint32(nil, mark)
	for at := 1; at < len(rest); { // the record at 0 is known to be broken
		next := bytes.Index(rest[at:], wanted)
		if next < 0 {
			break
		}
		at += next
		record, err := readFrame(bytes.NewReader(behind[at:]), t.Size+int64(at), int64(len(behind)-at), nil) // it may end in zeros
		if err != nil {
			at++
			continue
		}
		t.Damaged, t.Last = true, record
		at += frameSize + len(record)
	}
	return nil
}
