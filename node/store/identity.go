package store

import (
	"encoding/json"
	"errors"
	"fmt"
)

// format is the version of everything in a store's directory. A store of a higher
// one is refused.
const format = 1

// ErrForeign is wrapped by what Open returns for a store of another site or
// federation: the home or the key was mixed up.
var ErrForeign = errors.New("store belongs to somebody else")

// ErrFormat is wrapped by what Open returns for a store that a later version of
// the program wrote.
var ErrFormat = errors.New("store was written by a later version")

// identity is whose store it is. It is the first record of every file of the
// mirror and a record in Badger.
type identity struct {
	Format     int    `json:"format"`
	Site       string `json:"site"`
	Federation string `json:"federation,omitempty"`
	Records    int    `json:"records,omitempty"` // version of what the records mean, to whoever keeps them
}

func (id identity) encode() []byte {
	b, err := json.Marshal(id)
	if err != nil {
		panic(fmt.Sprintf("store: encode identity %+v: %v", id, err)) // strings and a number
	}
	return b
}

// admits returns nil if the encoded identity found in a file or record at place is
// that of this store, an error wrapping ErrForeign or ErrFormat if not.
func (id identity) admits(found []byte, place string) error {
	var f identity
	if err := json.Unmarshal(found, &f); err != nil || f.Format < 1 {
		return fmt.Errorf("%s names no owner: %w", place, ErrForeign)
	}
	switch {
	case f.Format > format:
		return fmt.Errorf("%w: %s has format %d, this program reads up to %d: update it", ErrFormat, place, f.Format, format)
	case f.Records > id.Records:
		return fmt.Errorf("%w: %s has records of version %d, this program understands up to %d: update it, or restore a backup from before the update", ErrFormat, place, f.Records, id.Records)
	case f.Site != id.Site:
		return fmt.Errorf("%w: %s is of site %s, not of %s: use its own key, or another home", ErrForeign, place, f.Site, id.Site)
	case f.Federation != id.Federation:
		return fmt.Errorf("%w: %s is of federation %q, not of %q: use another home for another federation", ErrForeign, place, f.Federation, id.Federation)
	}
	return nil
}
