package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"os"

	"gridnode/node/store/journal"
)

// loaded is what a mirror's directory holds.
type loaded struct {
	records map[string]place
	seq     uint64       // of the last batch that is there without a gap
	files   []mirrorFile // as place.file counts them
	base    uint64       // of the state file read; 0 if there is none
	state   int64        // bytes of it
	logged  int64        // bytes of logs behind it
	last    int          // the log to go on with, an index of files; -1 if there is none
	end     int64        // of its last whole record
	torn    int64        // bytes of the last log that a crash cut short
	damage  error        // why batches behind seq may be missing; nil if none can be
	newest  uint64       // number of a batch that was certainly written once, from seq on
}

// place is where the newest value of a key is.
type place struct {
	file   int32
	size   int32
	offset int64 // of the journal record
	at     int32 // of the value in it
	hash   uint64
}

var hashSeed = maphash.MakeSeed()

// errOwner marks a file of another owner, which is nobody's damage.
type errOwner struct{ error }

// load reads a mirror. Damage is reported in loaded.damage; the error is for what
// cannot be read at all and for a mirror that is not id's.
func load(dir string, id identity) (*loaded, error) {
	files, err := mirrorFiles(dir)
	if err != nil {
		return nil, err
	}
	l := &loaded{records: make(map[string]place), files: files, last: -1}
	state := -1
	for i, f := range files {
		if f.extension == "state" {
			state = i // the newest: a state file gets its name when it is complete
		}
	}
	if state >= 0 {
		err = l.readState(state, id)
	}
	for i := range files {
		if err != nil {
			break
		}
		if files[i].extension == "log" && files[i].base >= l.seq {
			err = l.readLog(i, id)
		}
	}
	if foreign, ok := errors.AsType[errOwner](err); ok {
		return nil, foreign.error
	}
	l.damage, l.newest = err, max(l.newest, l.seq)
	for _, f := range files {
		l.newest = max(l.newest, f.base)
	}
	return l, nil
}

// empty reports whether there was no mirror.
func (l *loaded) empty() bool { return len(l.files) == 0 }

func (l *loaded) readState(i int, id identity) error {
	f := l.files[i]
	complete := false
	tail, err := journal.Read(f.path, func(offset int64, record []byte) error {
		switch {
		case offset == 0:
			return checkOwner(record, f.path, id)
		case complete || len(record) == 0:
			return errChanges
		case record[0] == kindState:
			return l.apply(i, offset, record, 1)
		case record[0] == kindEnd && len(record) == batchHead && binary.BigEndian.Uint64(record[1:]) == f.base:
			complete = true
			return nil
		}
		return errChanges
	})
	if err != nil {
		return err
	}
	if !complete || tail.Torn > 0 {
		return fmt.Errorf("state file %s is damaged at byte %d", f.path, tail.Size)
	}
	l.seq, l.base, l.state = f.base, f.base, tail.Size
	return nil
}

func (l *loaded) readLog(i int, id identity) error {
	f := l.files[i]
	if f.base != l.seq {
		return fmt.Errorf("log %s begins behind batch %d, but the last batch found before it is %d", f.path, f.base, l.seq)
	}
	tail, err := journal.Read(f.path, func(offset int64, record []byte) error {
		if offset == 0 {
			return checkOwner(record, f.path, id)
		}
		if len(record) < batchHead || record[0] != kindBatch || binary.BigEndian.Uint64(record[1:]) != l.seq+1 {
			return fmt.Errorf("%w: want batch %d", errChanges, l.seq+1)
		}
		if err := l.apply(i, offset, record, batchHead); err != nil {
			return err
		}
		l.seq++
		return nil
	})
	switch {
	case err != nil:
		return err
	case tail.Damaged || tail.Records == 0:
		if len(tail.Last) >= batchHead && tail.Last[0] == kindBatch {
			l.newest = binary.BigEndian.Uint64(tail.Last[1:])
		}
		return fmt.Errorf("log %s is damaged at byte %d", f.path, tail.Size)
	}
	l.last, l.end = i, tail.Size
	l.logged += tail.Size
	l.torn = tail.Torn
	return nil
}

func checkOwner(record []byte, path string, id identity) error {
	if err := id.admits(record, path); err != nil {
		return errOwner{err}
	}
	return nil
}

// apply notes the changes of a record behind its first skip bytes.
func (l *loaded) apply(file int, offset int64, record []byte, skip int) error {
	for c, err := range changes(record, skip) {
		if err != nil {
			return err
		}
		if c.kind == changeDelete {
			delete(l.records, string(c.key))
			continue
		}
		l.records[string(c.key)] = place{
			file: int32(file), offset: offset, at: int32(c.at), size: int32(len(c.value)),
			hash: maphash.Bytes(hashSeed, c.value),
		}
	}
	return nil
}

// values reads values back by their places.
type values struct {
	files  []mirrorFile
	open   map[int32]*os.File
	at     place // of the record in hand
	record []byte
}

// value returns the value at p, valid until the next call.
func (v *values) value(p place) ([]byte, error) {
	if v.record == nil || v.at.file != p.file || v.at.offset != p.offset {
		file := v.open[p.file]
		if file == nil {
			var err error
			if file, err = os.Open(v.files[p.file].path); err != nil {
				return nil, fmt.Errorf("read mirror: %w", err)
			}
			if v.open == nil {
				v.open = make(map[int32]*os.File)
			}
			v.open[p.file] = file
		}
		record, err := journal.ReadAt(file, p.offset)
		if err != nil {
			return nil, fmt.Errorf("read mirror %s: %w", file.Name(), err)
		}
		v.at, v.record = p, record
	}
	return v.record[p.at : p.at+p.size], nil
}

func (v *values) close() {
	for _, f := range v.open {
		f.Close()
	}
}
