package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Badger's size: small tables, as a site has thousands of records, not millions.
// An open store takes 5 MiB of heap with them, and all tables of the first level, which
// are mapped, ten times as much.
const (
	memTableSize = 4 << 20
	memTables    = 2
	// valueThreshold is above ValueMax: no value goes to the value log, which
	// then needs no garbage collection, and the smallest file Badger allows. It is
	// below what Badger lets into one transaction, 15 % of a table.
	valueThreshold   = 576 << 10
	valueLogFileSize = 1 << 20

	// memTableSizeMost is what a table held in former versions. One that such a version
	// left in a crash is read into a table as large.
	memTableSizeMost = 8 << 20
)

// Keys of the store's own records in Badger. A caller's key never begins with a
// zero byte.
var (
	keyOwner    = []byte("\x00owner")
	keySequence = []byte("\x00sequence")
)

// engine is Badger with the store's way of counting batches.
type engine struct {
	db      *badger.DB
	compact compactor
}

func engineOptions(dir string, table int64, sync bool, log badger.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(log).
		WithBypassLockGuard(true). // the store has its own lock, which a child on its way to exec cannot hold on to
		WithSyncWrites(sync).
		WithDetectConflicts(true).
		WithChecksumVerificationMode(options.OnTableAndBlockRead).
		WithVerifyValueChecksum(true).
		WithMemTableSize(table).
		WithNumMemtables(memTables).
		WithNumCompactors(0). // they look for work twenty times a second each; see compactor
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(valueLogFileSize).
		WithCompression(options.None). // with it, Badger panics unless it has a block cache
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false)
}

// openEngine opens Badger in dir. A panic or memory fault in this goroutine
// becomes an error; one in Badger's own goroutines cannot be caught (see Check).
func openEngine(dir string, sync bool, log badger.Logger) (e *engine, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			e, err = nil, fmt.Errorf("open %s: Badger panicked: %v", dir, r)
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	table, err := tidyTables(dir)
	if err != nil {
		return nil, err
	}
	db, err := badger.Open(engineOptions(dir, table, sync, log))
	if err != nil {
		return nil, fmt.Errorf("open Badger in %s: %w", dir, err)
	}
	e = &engine{db: db}
	e.compact.start(db, log)
	return e, nil
}

// tidyTables returns how large memory tables are to be for those that a crash has left to be
// read, and removes those of no length. Badger empties a table it no longer needs before it
// removes it, and refuses to open what a crash in between left.
func tidyTables(dir string) (size int64, err error) {
	tables, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil {
		return 0, err
	}
	size = memTableSize
	for _, path := range tables {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return 0, err
		case info.Size() == 0:
			if err := os.Remove(path); err != nil {
				return 0, err
			}
		case info.Size() > memTableSize && info.Size() != 2*memTableSize: // twice its size as long as it is written to
			size = memTableSizeMost
		}
	}
	return size, nil
}

// sequence returns the number of the last batch applied, 0 if there was none.
func (e *engine) sequence() (uint64, error) {
	value, ok, err := e.get(keySequence)
	switch {
	case err != nil || !ok:
		return 0, err
	case len(value) != 8:
		return 0, fmt.Errorf("sequence number of %d bytes in Badger", len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// used reports whether anything is stored.
func (e *engine) used() bool {
	txn := e.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	it.Rewind()
	return it.Valid()
}

// get returns a copy of the value under key.
func (e *engine) get(key []byte) (value []byte, ok bool, err error) {
	err = e.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if err != nil {
			return err
		}
		value, err = item.ValueCopy(nil)
		return err
	})
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %q: %w", key, err)
	}
	return value, true, nil
}

// apply carries out parts of a batch, the last of which has number seq. Whatever
// does not fit one transaction goes into several; the number is in the last.
func (e *engine) apply(parts [][]byte, seq uint64) error {
	w := e.writer()
	defer w.discard()
	for _, part := range parts {
		e.compact.grown(len(part))
		for c, err := range changes(part, batchHead) {
			if err == nil {
				err = w.change(c.kind, c.key, c.value)
			}
			if err != nil {
				return err
			}
		}
	}
	return w.finish(seq)
}

// writer puts changes into as many transactions as they need, in order.
type writer struct {
	db  *badger.DB
	txn *badger.Txn
}

func (e *engine) writer() *writer { return &writer{e.db, e.db.NewTransaction(true)} }

// change adds one change. Key and value must not be changed before finish.
func (w *writer) change(kind byte, key, value []byte) error {
	err := w.add(kind, key, value)
	if errors.Is(err, badger.ErrTxnTooBig) {
		if err = w.txn.Commit(); err == nil {
			w.txn = w.db.NewTransaction(true)
			err = w.add(kind, key, value)
		}
	}
	if err != nil {
		return fmt.Errorf("write %.80q: %w", key, err)
	}
	return nil
}

func (w *writer) add(kind byte, key, value []byte) error {
	if kind == changeDelete {
		return w.txn.Delete(key)
	}
	return w.txn.Set(key, value)
}

// finish records seq as the last batch applied and commits.
func (w *writer) finish(seq uint64) error {
	if err := w.change(changeSet, keySequence, binary.BigEndian.AppendUint64(nil, seq)); err != nil {
		return err
	}
	if err := w.txn.Commit(); err != nil {
		return fmt.Errorf("commit batch %d: %w", seq, err)
	}
	return nil
}

func (w *writer) discard() { w.txn.Discard() }

// all returns the caller's records with prefix as they are now, in order of their
// keys; both slices are valid during one iteration. Failed returns the error that
// ended the iteration early. Iterate at most once.
func (e *engine) all(prefix []byte) (records iter.Seq2[[]byte, []byte], failed func() error) {
	return e.from(prefix, prefix)
}

// from is all, without the records whose keys are less than first.
func (e *engine) from(prefix, first []byte) (records iter.Seq2[[]byte, []byte], failed func() error) {
	txn := e.db.NewTransaction(false)
	var err error
	records = func(yield func([]byte, []byte) bool) {
		defer txn.Discard()
		opt := badger.DefaultIteratorOptions
		opt.Prefix = prefix
		it := txn.NewIterator(opt)
		defer it.Close()
		for it.Seek(first); it.Valid(); it.Next() {
			item := it.Item()
			if item.Key()[0] == 0 {
				continue // the store's own
			}
			more := true
			if err = item.Value(func(value []byte) error {
				more = yield(item.Key(), value)
				return nil
			}); err != nil {
				err = fmt.Errorf("read %q: %w", item.Key(), err)
			}
			if err != nil || !more {
				return
			}
		}
	}
	return records, func() error { return err }
}

func (e *engine) close() error {
	e.compact.stop()
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("close Badger: %w", err)
	}
	return nil
}

// logger passes on what Badger warns about and drops its chatter.
type logger func(format string, args ...any)

func (l logger) Errorf(format string, args ...any)   { l.log(format, args) }
func (l logger) Warningf(format string, args ...any) { l.log(format, args) }
func (l logger) Infof(string, ...any)                {}
func (l logger) Debugf(string, ...any)               {}

func (l logger) log(format string, args []any) {
	if l != nil {
		l("Badger: %s", strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

// firstLine returns the first line of what a child wrote, shortened.
func firstLine(output []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(output), []byte("\n"))
	return fmt.Sprintf("%.300s", line)
}
