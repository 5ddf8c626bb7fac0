package grid

import (
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strings"
)

// SiteID names a site: the text form of its node's libp2p peer ID in production,
// a short label in virtual networks. It is never empty for a real site.
type SiteID string

// JobID is the 128-bit identity of a job, chosen by whoever submits it, so that
// a repeated submission is recognised. The zero value names no job.
type JobID struct{ Hi, Lo uint64 }

var jobIDText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// ErrJobID is returned by ParseJobID for text that is not a full job ID.
var ErrJobID = errors.New("not a job ID: want 26 characters of 0-9 a-z without i l o u")

// String returns 26 lower-case base-32 characters; any unique prefix of it is
// accepted from users.
func (id JobID) String() string {
	b := id.Bytes()
	return jobIDText.EncodeToString(b[:])
}

// Short returns the first eight characters of String, for tables.
func (id JobID) Short() string { return id.String()[:8] }

// Bytes returns the big-endian form.
func (id JobID) Bytes() [16]byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], id.Hi)
	binary.BigEndian.PutUint64(b[8:], id.Lo)
	return b
}

// JobIDFromBytes is the inverse of Bytes. It returns ErrJobID unless len(b) is 16.
func JobIDFromBytes(b []byte) (JobID, error) {
	if len(b) != 16 {
		return JobID{}, ErrJobID
	}
	return JobID{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}, nil
}

// ParseJobID reads the text that String prints, in either case.
func ParseJobID(s string) (JobID, error) {
	b, err := jobIDText.DecodeString(strings.ToLower(s))
	if err != nil {
		return JobID{}, ErrJobID
	}
	return JobIDFromBytes(b)
}

// IsZero reports whether id names no job.
func (id JobID) IsZero() bool { return id == JobID{} }

// Compare orders IDs; ties in every queue end in it.
func (id JobID) Compare(other JobID) int {
	switch {
	case id.Hi != other.Hi && id.Hi < other.Hi, id.Hi == other.Hi && id.Lo < other.Lo:
		return -1
	case id == other:
		return 0
	}
	return 1
}

// TaskID is one execution of a job: each time a job is placed anew its epoch
// rises, and whatever carries an older epoch is ignored (fencing).
type TaskID struct {
	Job   JobID
	Epoch uint32
}

// Compare orders by job, then epoch.
func (id TaskID) Compare(other TaskID) int {
	if c := id.Job.Compare(other.Job); c != 0 {
		return c
	}
	switch {
	case id.Epoch < other.Epoch:
		return -1
	case id.Epoch > other.Epoch:
		return 1
	}
	return 0
}

// Key is a point of the DHT's key space (SHA-256 output).
type Key [32]byte
