// Package reproducetest has what the tests of the papers share.
package reproducetest

import (
	"context"
	"errors"
	"testing"

	"gridnode/testnet/reproduce"
)

// Begins has the first runs of a paper's evaluation run side by side, and reports
// whether that is all that there is time for. The whole of it is for the normal run of the
// tests: under the race detector it takes minutes, and what runs do at once, the only
// thing that the detector looks at, they do from the start.
func Begins(t *testing.T, p reproduce.Paper, o reproduce.Options) (enough bool) {
	t.Helper()
	if !testing.Short() {
		return false
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reports := 0
	o.Progress = func(done, total int64) {
		if reports++; reports > 2 { // the first says that nothing is done
			cancel()
		}
	}
	if _, err := reproduce.Reproduce(ctx, p, o); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v, want it to have been cancelled", err)
	}
	return true
}
