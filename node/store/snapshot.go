package store

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"gridnode/node/store/journal"
)

// Snapshot is every record as it was after one batch. It is to be written once.
type Snapshot struct {
	Batch   uint64 // number of that batch
	owner   []byte
	records iter.Seq2[[]byte, []byte]
	failed  func() error
}

// Snapshot returns the records as they are now. It is for the goroutine that commits: only
// there no batch is half done. The snapshot stays as it is while others follow, and anybody
// may write it.
func (s *Store) Snapshot() *Snapshot {
	records, failed := s.engine.all(nil)
	return &Snapshot{Batch: s.mirror.seq, owner: s.owner.encode(), records: records, failed: failed}
}

// Write writes the snapshot to a new file, with checksums, its owner and its format: a
// state file of a mirror, which Restore takes.
func (n *Snapshot) Write(path string) error {
	file, err := journal.Create(path, 0)
	if err != nil {
		return err
	}
	of := mirror{owner: n.owner}
	err = of.fillState(file, n.Batch, n.records, n.failed)
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(path)
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Restore makes the store in dir, where none may be, of the snapshot of a batch in a file,
// which it takes away. What was committed behind that batch is lost for good, so the store
// goes on from a number behind all of it (Leap). The errors are those of Open.
func Restore(dir, file string, batch uint64, options Options) error {
	of := mirror{dir: filepath.Join(dir, "mirror")}
	if _, err := os.Stat(of.dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("restore store: there is one in %s already", dir)
	}
	err := os.MkdirAll(of.dir, 0o700)
	if err == nil {
		err = os.Rename(file, of.path(batch, "state"))
	}
	if err != nil {
		return fmt.Errorf("restore store: %w", err)
	}
	return Accept(dir, options)
}

// Accept has the store in dir count as the newest there is, although batches behind its
// last one are lost: it goes on from a number behind all of them (Leap).
func Accept(dir string, options Options) error {
	options.behind = true
	s, err := Open(dir, options)
	if err != nil {
		return err
	}
	if err := s.leap(); err != nil {
		return errors.Join(fmt.Errorf("go on behind what is lost: %w", err), s.Close())
	}
	return s.Close()
}

// Leap is how far the number of the last batch goes ahead when batches are lost: further
// than any store has come since a copy of it was made. Whoever has heard of a lost batch
// takes the store for newer, and a copy from before for older.
const Leap = 1 << 32

// leap renumbers the last batch. A crash in between leaves Badger ahead of the mirror,
// which Open then writes anew.
func (s *Store) leap() error {
	to := s.mirror.seq + Leap
	w := s.engine.writer()
	defer w.discard()
	err := s.own(w, to)
	if err == nil {
		s.mirror.seq = to
		records, failed := s.engine.all(nil)
		s.mirror.state, err = s.mirror.writeState(to, records, failed)
	}
	if err == nil {
		err = s.mirror.rotate()
	}
	return err
}
