package store

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"

	"gridnode/internal/atomicfile"
)

// Options of a store.
type Options struct {
	Site       string // public identity of the owner; not empty
	Federation string // may be empty

	// Records is the version of what the records mean. A store with those of a higher one is
	// refused: it would be misread, or lose what this program does not know.
	Records int

	// SpaceMin is how many bytes must be free for Space to be content; 0 means the
	// constant SpaceMin, a negative number that Space never complains.
	SpaceMin int64
	// Ballast is how many bytes to keep allocated for the day the disk is full; 0
	// for none.
	Ballast int64

	// SyncBadger syncs Badger's own log, too, in every Commit. Commits then take
	// twice as long, and the records of the last minutes are on disk twice.
	SyncBadger bool

	// Check is a command that ends up calling Check with its last argument. Open
	// runs it before it opens an existing Badger directory; if it is empty, damaged
	// files may end this process.
	Check []string

	behind bool // a store behind its anchor is opened all the same (Accept)

	// Log is told what was repaired and what Badger warns about; nil for nobody.
	Log func(format string, args ...any)
}

// Store keeps records. Commit is for one goroutine at a time; everything else may
// be called concurrently.
type Store struct {
	dir     string
	owner   identity
	options Options
	locked  *os.File
	free    func(dir string) (int64, error)

	engine  *engine
	mirror  mirror
	writing chan stateWritten // the state file being written; nil if none is

	anchored uint64 // the batch that the anchor names, or could not be made to

	mu     sync.Mutex // guards what follows
	stats  Stats
	failed error
}

// Stats counts what a store did since it was opened.
type Stats struct {
	Sequence uint64 // batches since the store was made
	Commits  int64
	Changes  int64
	Bytes    int64 // of changes committed
	States   int64 // state files written
	Free     int64 // bytes free on the file system

	// What Open did.
	Records  int64 // found
	Restored int64 // written to Badger as the mirror had them
	Removed  int64 // deleted from Badger as the mirror had them deleted
	Torn     int64 // bytes of an unacknowledged batch that a crash cut short
	Rebuilt  bool  // all of Badger was written anew
	Mirrored bool  // all of the mirror was written anew, from Badger
}

// Open opens the store in dir, creating it if there is none. The error wraps
// ErrLocked, ErrForeign, ErrFormat, ErrDamaged, ErrBehind or *SpaceError where these apply,
// and says what to do.
func Open(dir string, options Options) (*Store, error) {
	s, err := open(dir, options, Free)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(dir string, options Options, free func(string) (int64, error)) (*Store, error) {
	if options.Site == "" {
		return nil, errors.New("a store needs an owner: Options.Site is empty")
	}
	if options.SpaceMin == 0 {
		options.SpaceMin = SpaceMin
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	locked, err := lock(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, options: options, locked: locked, free: free,
		owner: identity{Format: format, Site: options.Site, Federation: options.Federation, Records: options.Records},
	}
	err = s.holdBallast()
	if err == nil {
		err = s.room(spaceFloor)
	}
	if err == nil {
		err = s.recover()
	}
	if err == nil {
		err = s.checkAnchor()
	}
	if err == nil {
		err = atomicfile.SyncDir(dir)
	}
	if err != nil {
		s.release()
		return nil, err
	}
	s.moveAnchor()
	return s, nil
}

// release closes what is open, in an orderly way or not.
func (s *Store) release() error {
	var errs []error
	if s.engine != nil {
		errs = append(errs, s.engine.close())
	}
	errs = append(errs, s.mirror.close(), unlock(s.locked))
	return errors.Join(errs...)
}

// Commit makes the batch durable: when it returns nil, every change survives
// whatever happens to process and machine. An empty batch costs nothing. It blocks
// for one sync of the disk. The batch is not changed; the caller resets it.
//
// A *SpaceError and the error for a record out of bounds mean that nothing was
// written. After any other error it is unknown whether the batch is there, every
// further Commit returns the same error, and the process should end.
func (s *Store) Commit(batch *Batch) error {
	if batch.err != nil {
		return fmt.Errorf("commit: %w", batch.err)
	}
	if batch.count == 0 {
		return nil
	}
	if err := s.failure(); err != nil {
		return err
	}
	if err := s.room(spaceFloor); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	err := s.mirror.append(batch)
	if err == nil {
		err = s.engine.apply(batch.parts, s.mirror.seq)
	}
	if err == nil {
		err = s.renewState()
	}
	if err == nil && s.anchorDue() {
		s.moveAnchor()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = fmt.Errorf("commit: %w", err)
		return s.failed
	}
	s.stats.Commits++
	s.stats.Changes += int64(batch.count)
	for _, part := range batch.parts {
		s.stats.Bytes += int64(len(part))
	}
	s.stats.Sequence = s.mirror.seq
	return nil
}

func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Sequence returns the number of the last batch, which is durable.
func (s *Store) Sequence() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats.Sequence
}

// Stats returns the counts as they are now.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	stats := s.stats
	s.mu.Unlock()
	stats.Free, _ = s.free(s.dir) // zero if unknown
	return stats
}

// stateWritten is the outcome of writing a state file.
type stateWritten struct {
	size int64
	err  error
}

// renewState begins a new log and has a state file written beside it, when the
// logs have grown enough and no state file is being written.
func (s *Store) renewState() error {
	if s.writing != nil {
		select {
		case done := <-s.writing:
			s.stateDone(done)
		default:
			return nil
		}
	}
	if !s.mirror.stateDue() {
		return nil
	}
	if err := s.mirror.rotate(); err != nil {
		return err
	}
	seq := s.mirror.seq
	records, failed := s.engine.all(nil) // as they are after batch seq, whatever follows
	writing := make(chan stateWritten, 1)
	s.writing = writing
	go func() {
		size, err := s.mirror.writeState(seq, records, failed)
		writing <- stateWritten{size, err}
	}()
	return nil
}

// stateDone notes that a state file was written. If it was not, the logs stay and
// grow until it is tried again.
func (s *Store) stateDone(done stateWritten) {
	s.writing = nil
	if done.err != nil {
		s.log("%v", done.err)
		return
	}
	s.mirror.state = done.size
	s.mu.Lock()
	s.stats.States++
	s.mu.Unlock()
}

func (s *Store) log(format string, args ...any) {
	if s.options.Log != nil {
		s.options.Log(format, args...)
	}
}

// Close waits for what is being written and gives the directory up. The store must
// not be used any more.
func (s *Store) Close() error {
	if s.writing != nil {
		s.stateDone(<-s.writing)
	}
	if s.failure() == nil {
		s.moveAnchor()
	}
	if err := s.release(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// All returns the records whose key begins with prefix, as they are now, in order
// of their keys. The value belongs to the caller. Failed, called after the
// iteration, returns what ended it early. Iterate once.
func (s *Store) All(prefix string) (records iter.Seq2[string, []byte], failed func() error) {
	return owned(s.engine.all([]byte(prefix)))
}

// After is All without the records up to key. It costs nothing for these, nor for what was
// deleted there.
func (s *Store) After(prefix, key string) (records iter.Seq2[string, []byte], failed func() error) {
	return owned(s.engine.from([]byte(prefix), []byte(max(prefix, key+"\x00"))))
}

// owned makes values the caller's.
func owned(found iter.Seq2[[]byte, []byte], failed func() error) (iter.Seq2[string, []byte], func() error) {
	return func(yield func(string, []byte) bool) {
		for key, value := range found {
			if !yield(string(key), append([]byte(nil), value...)) {
				return
			}
		}
	}, failed
}

// Get returns the record under key and whether there is one.
func (s *Store) Get(key string) (value []byte, ok bool, err error) {
	return s.engine.get([]byte(key))
}
