package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gridnode/node/store/journal"
)

// ErrDamaged is wrapped by what Open returns when neither copy can be trusted to
// hold every acknowledged record.
var ErrDamaged = errors.New("store is damaged in both of its copies")

// recover opens both copies and makes them agree.
func (s *Store) recover() error {
	s.mirror = mirror{dir: filepath.Join(s.dir, "mirror"), owner: s.owner.encode()}
	if err := os.MkdirAll(s.mirror.dir, 0o700); err != nil {
		return err
	}
	held, err := load(s.mirror.dir, s.owner)
	if err != nil {
		return err
	}
	number, err := s.badgerNumber()
	if err != nil {
		return err
	}
	applied, broken, err := s.openBadger(number, held.empty())
	if err != nil {
		return err
	}
	switch {
	case held.damage == nil && broken != nil && !held.empty():
		s.log("%v: building it anew from the mirror", broken)
		s.stats.Rebuilt = true
		if s.engine, err = openEngine(s.badgerDir(number+1), s.options.SyncBadger, logger(s.options.Log)); err != nil {
			return err
		}
		return s.followMirror(held, 0)
	case broken != nil:
		return s.damaged(broken, held.damage)
	case held.damage != nil && (applied <= held.seq || applied < held.newest):
		return s.damaged(fmt.Errorf("the records in Badger end with batch %d, and there was a batch %d", applied, max(held.newest, held.seq+1)), held.damage)
	case held.damage != nil || applied > held.seq || held.empty():
		err = s.followBadger(held, applied)
	default:
		err = s.followMirror(held, applied)
	}
	if err != nil {
		return err
	}
	return s.removeBadgersBefore(number)
}

// damaged says that both copies are, and what to do.
func (s *Store) damaged(broken, mirror error) error {
	if mirror == nil {
		mirror = errors.New("there is no mirror")
	}
	return fmt.Errorf("%w: %s: %w; %w: restore the directory from a backup, or move it and %s away and lose its jobs", ErrDamaged, s.dir, broken, mirror, s.anchorPath())
}

// Badger's directories are numbered. The highest is in use; the one before it, if
// any, was found broken and is kept until the next Open.
func (s *Store) badgerDir(number int) string {
	return filepath.Join(s.dir, "badger-"+strconv.Itoa(number))
}

// badgerNumber returns the number of the directory in use, 0 if there is none.
func (s *Store) badgerNumber() (int, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, err
	}
	highest := 0
	for _, e := range entries {
		digits, found := strings.CutPrefix(e.Name(), "badger-")
		if n, err := strconv.Atoi(digits); found && err == nil {
			highest = max(highest, n)
		}
	}
	return highest, nil
}

func (s *Store) removeBadgersBefore(number int) error {
	for n := number - 1; n > 0; n-- {
		dir := s.badgerDir(n)
		if _, err := os.Stat(dir); err != nil {
			break
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// openBadger opens the directory of that number, a new one for 0, and returns the
// last batch applied to it. Broken says that Badger cannot be used; the error, that
// the store as a whole cannot.
func (s *Store) openBadger(number int, alone bool) (applied uint64, broken, err error) {
	dir := s.badgerDir(max(number, 1))
	if number > 0 && len(s.options.Check) > 0 {
		broken, err = checkInChild(s.options.Check, dir)
		if err != nil {
			s.log("%v", err) // it is opened unchecked then
		}
		if broken != nil {
			return 0, broken, nil
		}
	}
	s.engine, broken = openEngine(dir, s.options.SyncBadger, logger(s.options.Log))
	if broken != nil {
		return 0, broken, nil
	}
	owner, known, broken := s.engine.get(keyOwner)
	if broken == nil {
		applied, broken = s.engine.sequence()
	}
	switch {
	case broken != nil:
		s.engine.close() // of no use; what it says changes nothing
		s.engine = nil
		return 0, broken, nil
	case known:
		err = s.owner.admits(owner, dir)
	case alone && s.engine.used():
		err = fmt.Errorf("%w: %s names no owner: it is not a store of this program", ErrForeign, dir)
	}
	return applied, nil, err
}

// followMirror makes Badger's content what the mirror holds.
func (s *Store) followMirror(held *loaded, applied uint64) error {
	s.stats.Records, s.stats.Torn = int64(len(held.records)), held.torn
	w := s.engine.writer()
	defer w.discard()
	from := values{files: held.files}
	defer from.close()
	records, failed := s.engine.all(nil)
	for key, value := range records {
		p, known := held.records[string(key)]
		var err error
		switch {
		case !known:
			s.stats.Removed++
			err = w.change(changeDelete, bytes.Clone(key), nil)
		case int(p.size) == len(value) && p.hash == maphash.Bytes(hashSeed, value):
			delete(held.records, string(key))
		}
		if err != nil {
			return err
		}
	}
	if err := failed(); err != nil {
		return err
	}
	missing := slices.SortedFunc(maps.Keys(held.records), func(a, b string) int {
		return held.records[a].compare(held.records[b]) // in the order of the files
	})
	for _, key := range missing {
		value, err := from.value(held.records[key])
		if err == nil {
			s.stats.Restored++
			err = w.change(changeSet, []byte(key), value)
		}
		if err != nil {
			return err
		}
	}
	if s.stats.Restored+s.stats.Removed > 0 {
		s.log("repaired %d of %d records of Badger from the mirror, removed %d", s.stats.Restored, s.stats.Records, s.stats.Removed)
	}
	if err := s.own(w, held.seq); err != nil {
		return err
	}
	return s.mirror.resume(held)
}

// followBadger writes the mirror anew.
func (s *Store) followBadger(held *loaded, applied uint64) error {
	if !held.empty() {
		s.log("the mirror is damaged (%v) or ends with batch %d, Badger with %d: writing it anew", held.damage, held.seq, applied)
	}
	s.mirror.seq = applied
	s.stats.Mirrored = applied > 0
	records, failed := s.engine.all(nil)
	counted := func(yield func([]byte, []byte) bool) {
		for key, value := range records {
			s.stats.Records++
			if !yield(key, value) {
				return
			}
		}
	}
	var err error
	if s.mirror.state, err = s.mirror.writeState(applied, counted, failed); err != nil {
		return err
	}
	if err := s.mirror.rotate(); err != nil {
		return err
	}
	w := s.engine.writer()
	defer w.discard()
	return s.own(w, applied)
}

// own finishes w with the owner's record in it.
func (s *Store) own(w *writer, seq uint64) error {
	s.stats.Sequence = seq
	if err := w.change(changeSet, keyOwner, s.owner.encode()); err != nil {
		return err
	}
	return w.finish(seq)
}

func (p place) compare(q place) int {
	if p.file != q.file {
		return int(p.file) - int(q.file)
	}
	if p.offset != q.offset {
		return int(p.offset - q.offset)
	}
	return int(p.at) - int(q.at)
}

// resume goes on with the last log, or begins the first one, and removes what a
// crash left half made.
func (m *mirror) resume(held *loaded) error {
	m.seq, m.logged, m.state = held.seq, held.logged, held.state
	for _, f := range held.files {
		if strings.HasSuffix(f.extension, "tmp") || f.base < held.base {
			if err := os.Remove(f.path); err != nil {
				return err
			}
		}
	}
	if held.last < 0 {
		return m.rotate()
	}
	var err error
	if m.log, err = journal.Continue(held.files[held.last].path, held.end, logAhead); err != nil {
		return err
	}
	// Its last batch may never have been synced, but is about to be acted upon.
	return m.log.Sync()
}
