package testnet

import "testing"

// alone leaves a simulation out of the short run of the tests, which is the one under
// the race detector: it has one goroutine, others like it stay, and with less time or
// fewer seeds it would say nothing.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a simulation in one goroutine")
	}
}
