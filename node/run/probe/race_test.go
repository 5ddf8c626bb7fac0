//go:build race

package probe

// Guests are other processes, in which the race detector has nothing to find: it only makes
// each of them slow.
func init() { underRace = true }
