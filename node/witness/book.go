package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"gridnode/grid"
)

// wordsMax bounds the sites of which a word is kept. The one told longest ago makes room.
const wordsMax = 4096

// Book is what a site remembers of others, and who remembers it. Safe for concurrent use.
type Book struct {
	path string

	mu      sync.Mutex
	changed bool
	kept    pages
}

// pages is a book as it is written.
type pages struct {
	Words     map[grid.SiteID]kept `json:"words,omitempty"`
	Witnesses []grid.SiteID        `json:"witnesses,omitempty"` // have a word of this site
}

type kept struct {
	Word  []byte    `json:"word"` // sealed
	Batch uint64    `json:"batch"`
	Told  time.Time `json:"told"` // by this site's clock
}

// OpenBook reads a book; a new one if there is none. One that cannot be read is begun anew:
// others remember, too.
func OpenBook(path string) (*Book, error) {
	b := &Book{path: path}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &b.kept)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if b.kept.Words == nil {
		b.kept.Words = make(map[grid.SiteID]kept)
	}
	if err != nil {
		return b, fmt.Errorf("what this site remembers of others is begun anew: %w", err)
	}
	return b, nil
}

// of returns the newest word of a site, sealed; nil if there is none.
func (b *Book) of(site grid.SiteID) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept.Words[site].Word
}

// keep keeps a word of a site unless there is a newer one.
func (b *Book) keep(site grid.SiteID, sealed []byte, w Word, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, there := b.kept.Words[site]
	if there && old.Batch >= w.Batch {
		return
	}
	if !there && len(b.kept.Words) >= wordsMax {
		oldest := site
		for id, k := range b.kept.Words {
			if oldest == site || k.Told.Before(b.kept.Words[oldest].Told) || k.Told.Equal(b.kept.Words[oldest].Told) && id < oldest {
				oldest = id
			}
		}
		delete(b.kept.Words, oldest)
	}
	b.kept.Words[site], b.changed = kept{sealed, w.Batch, now}, true
}

// witnesses returns who has a word of this site, the latest last.
func (b *Book) witnesses() []grid.SiteID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept.Witnesses)
}

// witnessed notes that a site has a word of this one.
func (b *Book) witnessed(by grid.SiteID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.kept.Witnesses, by) {
		return
	}
	if len(b.kept.Witnesses) >= witnessesMax {
		b.kept.Witnesses = b.kept.Witnesses[1:]
	}
	b.kept.Witnesses, b.changed = append(b.kept.Witnesses, by), true
}

// save writes the book if it has changed.
func (b *Book) save() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.changed {
		return nil
	}
	text, err := json.Marshal(&b.kept)
	if err == nil {
		err = os.WriteFile(b.path+".tmp", text, 0o600)
	}
	if err == nil { // without a sync: what a crash spoils others remember
		err = os.Rename(b.path+".tmp", b.path)
	}
	if err != nil {
		return fmt.Errorf("write what this site remembers of others: %w", err)
	}
	b.changed = false
	return nil
}
