//go:build !linux

package scale

import "time"

// threadTime is known on Linux only.
func threadTime() (time.Duration, bool) { return 0, false }
