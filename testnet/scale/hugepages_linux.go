package scale

import (
	"os"
	"runtime"
	"syscall"
)

// hugeLeast is of how many bytes a heap gains by large pages.
const hugeLeast = 64 << 20

// prepareHeap lets the heap grow into large pages, as far as the system has any: what an
// event of a large federation needs is in no cache, and with small pages not even where it
// is. It takes no memory before that is used, and does nothing where the heap has grown as
// large already.
func prepareHeap(bytes int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if bytes < hugeLeast || int64(m.HeapSys) >= bytes {
		return
	}
	b := make([]byte, bytes)
	_ = syscall.Madvise(b[:len(b)-len(b)%os.Getpagesize()], syscall.MADV_HUGEPAGE) // advice only
	runtime.KeepAlive(b)
	runtime.GC() // frees it, for whatever comes
}
