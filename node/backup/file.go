package backup

import (
	"errors"
	"time"
)

// Format is the version of backups. One of a later version is refused.
const Format = 1

// ErrFormat is wrapped by what Restore returns for what is no backup, or one of a later
// version of the program.
var ErrFormat = errors.New("not a backup that this program reads")

// Manifest says what a backup is.
type Manifest struct {
	Format     int       `json:"format"`
	Site       string    `json:"site"` // its ID
	Name       string    `json:"name,omitempty"`
	Federation string    `json:"federation"`
	Version    string    `json:"version"` // of the program that made it
	At         time.Time `json:"at"`
	Batch      uint64    `json:"batch"` // the last one of the store that is in it
	Keys       bool      `json:"keys"`  // the site's private keys are in it
}

// Names of entries that are not files of the home.
const (
	manifestEntry = "backup.json"
	recordsEntry  = "records"
)

// File is a file of the home that a backup has, if it is there.
type File struct {
	Name string // a folder's ends with a slash: all files directly in it
	Key  bool   // whoever has it is the site, or may found others
}

// Files is every file of the home that a backup has.
var Files = []File{
	{"config.yaml", false},
	{"key", true},
	{"root.key", true},
	{"federation.pem", false},
	{"member.pem", false},
	{"tokens.json", false}, // their digests
	{"peers", false},
	{"witness.json", false},
	{"drained", false},
	{"history/", false},
}
