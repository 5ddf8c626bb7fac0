//go:build !linux

package scale

// prepareHeap does nothing where the kernel cannot be told.
func prepareHeap(int64) {}
