package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"gridnode/internal/atomicfile"
	"gridnode/node/store/journal"
)

// logAhead is how many zeros a log is extended by at a time (see package journal).
const logAhead = 1 << 20

// stateEvery is how many bytes the logs grow, at least, before a new state file
// makes them superfluous. Together with the size of the last state it bounds what
// Open must read, and what is written twice.
const stateEvery = 16 << 20

// statePart is the size of one record of a state file.
const statePart = 256 << 10

// mirror is the copy that makes batches durable. Files are named after the
// sequence number of the last batch before their first record:
//
//	0000000000000000.log    every batch from 1 on
//	00000000000004d2.state  all records after batch 1234
//	00000000000004d2.log    every batch from 1235 on
type mirror struct {
	dir    string
	owner  []byte // identity, first record of every file
	log    *journal.Journal
	seq    uint64 // of the last batch in the log
	logged int64  // bytes of logs since the last complete state file
	state  int64  // size of that state file
}

func (m *mirror) path(base uint64, extension string) string {
	return filepath.Join(m.dir, fmt.Sprintf("%016x.%s", base, extension))
}

// append writes the parts of batch as batches of their own numbers and syncs once.
func (m *mirror) append(batch *Batch) error {
	for _, part := range batch.parts {
		part[0] = kindBatch
		binary.BigEndian.PutUint64(part[1:], m.seq+1)
		if _, err := m.log.Append(part); err != nil {
			return err
		}
		m.seq++
		m.logged += int64(len(part))
	}
	return m.log.Sync()
}

// stateDue reports whether it is time for a new state file.
func (m *mirror) stateDue() bool { return m.logged > max(stateEvery, m.state) }

// rotate begins a new log behind the last batch. The file gets its name when its
// first record is on disk, so that a log without one is known to be damaged.
func (m *mirror) rotate() error {
	temporary := m.path(m.seq, "tmp")
	log, err := journal.Create(temporary, logAhead)
	if err != nil {
		return err
	}
	if _, err = log.Append(m.owner); err == nil {
		err = log.Sync()
	}
	if err == nil {
		err = os.Rename(temporary, m.path(m.seq, "log"))
	}
	if err == nil {
		err = atomicfile.SyncDir(m.dir)
	}
	if err != nil {
		log.Close()
		return fmt.Errorf("begin log of %s: %w", m.dir, err)
	}
	old := m.log
	m.log, m.logged = log, 0
	if old != nil {
		return old.Close()
	}
	return nil
}

// writeState writes all records, as they were after batch seq, into a state file,
// then removes every file it makes superfluous. It may run beside append.
func (m *mirror) writeState(seq uint64, records iter.Seq2[[]byte, []byte], failed func() error) (size int64, err error) {
	temporary := m.path(seq, "state.tmp")
	file, err := journal.Create(temporary, 0)
	if err != nil {
		return 0, err
	}
	err = m.fillState(file, seq, records, failed)
	size = file.Size()
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, m.path(seq, "state"))
	}
	if err == nil {
		err = atomicfile.SyncDir(m.dir)
	}
	if err != nil {
		os.Remove(temporary)
		return 0, fmt.Errorf("write state of %s: %w", m.dir, err)
	}
	return size, m.removeBefore(seq)
}

func (m *mirror) fillState(file *journal.Journal, seq uint64, records iter.Seq2[[]byte, []byte], failed func() error) error {
	if _, err := file.Append(m.owner); err != nil {
		return err
	}
	part := []byte{kindState}
	flush := func() error {
		_, err := file.Append(part)
		part = part[:1]
		return err
	}
	for key, value := range records {
		part = appendChange(part, changeSet, string(key), value)
		if len(part) > statePart {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := failed(); err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	if _, err := file.Append(binary.BigEndian.AppendUint64([]byte{kindEnd}, seq)); err != nil {
		return err
	}
	return file.Sync()
}

// removeBefore removes what a state file after batch seq has made superfluous.
func (m *mirror) removeBefore(seq uint64) error {
	files, err := mirrorFiles(m.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		if f.base < seq {
			errs = append(errs, os.Remove(f.path))
		}
	}
	return errors.Join(errs...)
}

func (m *mirror) close() error {
	if m.log == nil {
		return nil
	}
	return m.log.Close()
}

// mirrorFile is one file of a mirror's directory.
type mirrorFile struct {
	path      string
	base      uint64
	extension string // log, state, tmp or state.tmp
}

// mirrorFiles returns the mirror's files by rising base, states before logs.
func mirrorFiles(dir string) ([]mirrorFile, error) {
	entries, err := os.ReadDir(dir) // sorted by name: by base, as all names are equally long
	if err != nil {
		return nil, fmt.Errorf("list mirror: %w", err)
	}
	var states, logs []mirrorFile
	for _, e := range entries {
		name, extension, _ := strings.Cut(e.Name(), ".")
		f := mirrorFile{path: filepath.Join(dir, e.Name()), extension: extension}
		if n, err := fmt.Sscanf(name, "%16x", &f.base); n != 1 || err != nil || len(name) != 16 {
			continue // not ours
		}
		switch extension {
		case "state", "tmp", "state.tmp":
			states = append(states, f)
		case "log":
			logs = append(logs, f)
		}
	}
	return append(states, logs...), nil
}
