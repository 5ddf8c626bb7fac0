package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gridnode/internal/atomicfile"
)

// ErrBehind is wrapped by what Open returns for a store that lacks batches which were
// in it: an older copy of the directory, or none at all where there was one. A site
// that went on from there would run jobs again that others run, lend processors
// twice, and pay cheques twice.
var ErrBehind = errors.New("store lacks records that it had")

// anchorEvery is how many batches may be missing before Open is sure to notice, or half
// of what there was if that is less. A new anchor costs about three syncs of the disk, a
// batch one.
const anchorEvery = 256

// anchor says, in a file beside the directory, which batch the store has at least.
type anchor struct {
	identity
	Batch uint64 `json:"batch"`
}

func (s *Store) anchorPath() string { return filepath.Clean(s.dir) + ".anchor" }

// checkAnchor returns an error that wraps ErrBehind if the store that was recovered is
// behind the anchor. An anchor that cannot be read is none: the store has two copies to
// tell by what is damaged, and is not the worse for it.
func (s *Store) checkAnchor() error {
	text, err := os.ReadFile(s.anchorPath())
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			s.log("%v", err)
		}
		return nil
	}
	var a anchor
	if err := json.Unmarshal(text, &a); err != nil {
		s.log("%s is damaged: %v", s.anchorPath(), err)
		return nil
	}
	if a.Site != s.owner.Site || a.Federation != s.owner.Federation {
		return nil // what this home was before is no concern of this store
	}
	if s.mirror.seq < a.Batch && !s.options.behind {
		return fmt.Errorf("%w: %s ends with batch %d, and there was a batch %d: bring the newest copy back; or, if what came since may be forgotten (jobs, leases, credits of a bank), and nothing of it runs any more, 'gridnode restore --this-copy' and start again (%s says how far it was)",
			ErrBehind, s.dir, s.mirror.seq, a.Batch, s.anchorPath())
	}
	s.anchored = a.Batch
	return nil
}

// anchorDue reports whether it is time to move the anchor.
func (s *Store) anchorDue() bool {
	return s.mirror.seq >= s.anchored+min(max(s.anchored, 1), anchorEvery)
}

// moveAnchor writes how far the store is. If that fails the old anchor stays, which is
// right, too, and it is tried again when the next one is due.
func (s *Store) moveAnchor() {
	if s.anchored == s.mirror.seq {
		return
	}
	s.anchored = s.mirror.seq
	if err := s.writeAnchor(); err != nil {
		s.log("write the anchor: %v", err)
	}
}

func (s *Store) writeAnchor() error {
	text, err := json.Marshal(anchor{s.owner, s.mirror.seq})
	if err != nil {
		return err
	}
	temporary := s.anchorPath() + ".tmp"
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, s.anchorPath())
	}
	if err != nil {
		os.Remove(temporary)
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(s.anchorPath()))
}
