package wire

import (
	"google.golang.org/protobuf/proto"

	"gridnode/grid"
)

// Unmarshal fills p from the body of a message of a kind, or returns an error
// wrapping ErrMalformed.
func Unmarshal(body []byte, p proto.Message, kind grid.Kind) error {
	if err := proto.Unmarshal(body, p); err != nil {
		return Malformed("%s: %v", KindName(kind), err)
	}
	return nil
}

// Checked returns m, or only the error: what a Decoder ends with.
func Checked[M grid.Message](m M, err error) (grid.Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Check collects the first thing wrong with a message or record; a protocol embeds
// it in checks of its own. Err, if not nil, wraps ErrMalformed.
type Check struct{ Err error }

// Fail says that something is wrong.
func (c *Check) Fail(what string) {
	if c.Err == nil {
		c.Err = Malformed("%s", what)
	}
}

// Positive wants v to be more than 0.
func (c *Check) Positive(what string, v uint64) {
	if v == 0 {
		c.Fail("no " + what)
	}
}

// Within wants v to be from low to high.
func (c *Check) Within(what string, v, low, high int64) {
	if c.Err == nil && (v < low || v > high) {
		c.Err = Malformed("%s %d, want %d to %d", what, v, low, high)
	}
}

// JobBytes is the wire form of a job's ID.
func JobBytes(id grid.JobID) []byte {
	b := id.Bytes()
	return b[:]
}
